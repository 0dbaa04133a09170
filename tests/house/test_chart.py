"""The Helm chart: its values are checked by the configuration's own schema, and what it deploys is allowed to start.

`make check-deploy` renders it with helm. Without helm, its schema and defaults are held here; tools/kit.py writes the
chart with what is generated (test_kit.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tools.chart import values_schema

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "ragwatch"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = values_schema()


def refused(values: dict[str, Any]) -> list[str]:
    """Places of values that the schema refuses."""
    validator = jsonschema.Draft7Validator(SCHEMA)
    return [".".join(map(str, error.absolute_path)) for error in validator.iter_errors(values)]


def test_the_values_and_the_example_are_accepted() -> None:
    """Every value of values.yaml is in the schema, and the other way round."""
    example = yaml.safe_load((CHART.parent / "example-values.yaml").read_text(encoding="utf-8"))
    assert (refused(VALUES), refused(example)) == ([], [])
    assert {*VALUES, "global"} == set(SCHEMA["properties"])
    for name, value in VALUES.items():
        if isinstance(value, dict) and "properties" in SCHEMA["properties"][name] and name != "config":
            assert set(value) == set(SCHEMA["properties"][name]["properties"]), name


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replicass": 2}, ""),
        ({"config": {"sampling": {"probabilty": 0.2}}}, "config.sampling"),
        ({"config": {"state": "/elsewhere"}}, "config"),
        ({"config": {"web": {"listen": "127.0.0.1:1"}}}, "config.web"),
        ({"auth": {"basicAuthUsers": {"oncall": "the password in the clear"}}}, "auth.basicAuthUsers.oncall"),
        ({"service": {"port": 70000}}, "service.port"),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(values: dict[str, Any], place: str) -> None:
    """A misspelt key of ragwatch, a key that the chart sets itself, a password where a hash belongs."""
    if "config" in values:
        values = {"config": {**VALUES["config"], **values["config"]}}
    assert refused(values) == [place]
