"""The section `export`: what is valid, what is refused and how, and that secrets are not shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragwatch.config import parse
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.export.evaluation import Signal

URL = "https://otel.example.org/api/public/otel/"


def parsed(otlp: dict[str, Any], folder: Path) -> Any:
    """The options of a configuration with this section."""
    sources = [{"kind": "push", "name": "app"}]
    return parse({"sources": sources, "export": {"otlp": otlp}}, folder=folder).settings.export.otlp


def test_defaults_and_paths(tmp_path: Path) -> None:
    """Both forms and all quantities are sent, no explanation; a slash at the end is left out, files are beside it."""
    options = parsed({"endpoint": URL, "headers": {"Authorization": "Basic c2VjcmV0"}, "ca_file": "ca.pem"}, tmp_path)
    assert options.target.endpoint == URL.rstrip("/")
    assert options.target.headers == {"Authorization": "Basic c2VjcmV0"}
    assert options.target.ca_file == str(tmp_path / "ca.pem")
    assert options.signals == (Signal.LOGS, Signal.SPANS)
    assert "c2VjcmV0" not in repr(options) + str(options.model_dump()) + options.model_dump_json()
    rules = options.rules({"a": None, "b": (Quantity.CONTRADICTION,)}, {}, {})
    assert rules.of_judge("a") == rules.of_judge("gone") == tuple(Quantity)
    assert rules.of_judge("b") == (Quantity.CONTRADICTION,)
    assert rules.explanations is False


def test_quantities_that_a_judge_does_not_judge(tmp_path: Path) -> None:
    """Of those wanted, a judge sends what it judges."""
    options = parsed({"endpoint": URL, "quantities": ["faithfulness", "contradiction"], "logs": False}, tmp_path)
    rules = options.rules({"a": None, "b": (Quantity.CONTRADICTION, Quantity.NEED_RECALL)}, {}, {})
    assert rules.of_judge("a") == (Quantity.FAITHFULNESS, Quantity.CONTRADICTION)
    assert rules.of_judge("b") == (Quantity.CONTRADICTION,)
    assert options.signals == (Signal.SPANS,)


@pytest.mark.parametrize(
    ("otlp", "message"),
    [
        ({}, "export.otlp.endpoint: is missing"),
        ({"endpoint": "otel.example.org:4318"}, "export.otlp.endpoint: .*is not a URL; write one such as"),
        ({"endpoint": "http://[::1"}, "export.otlp.endpoint: .*is not a URL"),
        ({"endpoint": "http://a/?key=1"}, "export.otlp.endpoint: .*is not a URL"),
        ({"endpoint": "http://u:p@a"}, "export.otlp.endpoint: .*holds a user name"),
        ({"endpoint": f"{URL}v1/traces"}, "export.otlp.endpoint: .*ends with /v1/traces, which is added"),
        ({"endpoint": URL, "logs": False, "spans": False}, "export.otlp: .*sends neither `logs` nor `spans`"),
        ({"endpoint": URL, "headers": {"Content-Type": "x"}}, "export.otlp.headers: .*'Content-Type' cannot be set"),
        ({"endpoint": URL, "headers": {"A": "secret\r\nB: c"}}, "export.otlp.headers: .*A: is empty, or holds"),
        ({"endpoint": URL, "timeout": "1h"}, "export.otlp.timeout: .*is more than 120 s"),
        ({"endpoint": URL, "quantities": []}, "export.otlp.quantities"),
        ({"endpoint": URL, "header": {}}, "export.otlp.header: .*did you mean `headers`"),
    ],
)
def test_what_is_refused(tmp_path: Path, otlp: dict[str, Any], message: str) -> None:
    """Each error names the key and what to write; none shows a secret."""
    with pytest.raises(ConfigError, match=message) as caught:
        parsed(otlp, tmp_path)
    assert "secret" not in str(caught.value)
