"""Builds the schema of the values of the Helm chart."""

from typing import Any

from ragwatch.config.schema import json_schema

SET_BY_CHART = ("listen", "config_file")
"""Keys of `web` that the chart sets; it sets `state`, too."""

_OBJECT: dict[str, Any] = {"type": "object"}
_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS = {**_OBJECT, "additionalProperties": _TEXT}
_FLAG: dict[str, Any] = {"type": "boolean"}
_LIST = {"type": "array", "items": _OBJECT}


def _section(**properties: dict[str, Any]) -> dict[str, Any]:
    return {**_OBJECT, "additionalProperties": False, "properties": properties}


def values_schema() -> dict[str, Any]:
    """JSON schema of values.yaml; what stands under `config` is checked as `ragwatch check` would.

    Helm knows draft 7, whose place for definitions is a pointer like any other.
    """
    config = json_schema()
    definitions = config.pop("$defs")
    for name in ("$schema", "$id"):
        config.pop(name, None)
    del config["properties"]["state"]
    web = definitions["WebOptions"]
    for name in SET_BY_CHART:
        del web["properties"][name]
    schema = _section(
        image=_section(repository=_TEXT, tag=_TEXT, pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]}),
        imagePullSecrets=_LIST,
        replicas={"type": "integer", "minimum": 0},
        config=config,
        env=_LIST,
        auth=_section(
            basicAuthUsers={**_TEXTS, "additionalProperties": {**_TEXT, "pattern": r"^\$2[aby]\$"}},
            existingSecret=_TEXT,
        ),
        persistence=_section(enabled=_FLAG, size=_TEXT, storageClassName=_TEXT, existingClaim=_TEXT),
        service=_section(port={"type": "integer", "minimum": 1, "maximum": 65535}),
        podMonitor=_section(enabled=_FLAG, labels=_TEXTS, interval=_TEXT, scrapeSecret=_TEXT),
        prometheusRule=_section(enabled=_FLAG, labels=_TEXTS, spec=_OBJECT),
        networkPolicy=_section(enabled=_FLAG, monitoringNamespace=_TEXT, clients=_LIST),
        resources=_OBJECT,
        podLabels=_TEXTS,
        podAnnotations=_TEXTS,
        nodeSelector=_TEXTS,
        tolerations=_LIST,
        affinity=_OBJECT,
        topologySpreadConstraints=_LIST,
        **{"global": _OBJECT},
    )
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "$defs": definitions}
