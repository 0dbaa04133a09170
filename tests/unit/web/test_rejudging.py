"""`POST /v1/rejudge`, through an HTTP client."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from support.asked import application, asking

from ragwatch.errors import StoreError
from ragwatch.web import ParameterError

KEY = "0" * 32
BODY = {"judge": "big", "of": "embedded", "keys": [KEY]}


class Reader:
    """Notes what is to be read."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.wanted: list[Mapping[str, Any]] = []

    async def rejudge(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read."""
        self.wanted.append(fields)
        if self.error is not None:
            raise self.error
        return {"stored": 1}


async def sent(reader: Reader, body: Any, **parts: Any) -> httpx.Response:
    """The response to a request."""
    async with asking(application(rejudge=reader.rejudge, **parts)) as client:
        return await client.post("/v1/rejudge", json=body)


async def test_fields_are_handed_on() -> None:
    """With the whole as the share, and no end of the charts, where none is given; the audit line names the keys."""
    reader, lines = Reader(), list[dict[str, Any]]()
    response = await sent(reader, BODY, audit=lambda **line: lines.append(line))
    assert (response.status_code, response.json()) == (200, {"stored": 1})
    await sent(reader, {**BODY, "share": 0.5, "charted_before": 7})
    fixed = {"judge": "big", "of": "embedded", "keys": (KEY,)}
    assert reader.wanted == [
        {**fixed, "share": 1.0, "charted_before": math.inf},
        {**fixed, "share": 0.5, "charted_before": 7.0},
    ]
    assert (lines[0]["action"], lines[0]["path"], lines[0]["keys"]) == ("write", "/v1/rejudge", [KEY])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"judge": ""}, "judge: is not"),
        ({"of": 7}, "of: is not"),
        ({"keys": []}, "keys: not a list"),
        ({"keys": ["r1"]}, "keys: not a list"),
        ({"keys": [KEY] * 101}, "keys: 101, at most 100"),
        ({"share": 0}, "share: not a number"),
        ({"share": True}, "share: not a number"),
        ({"charted_before": "now"}, "charted_before: not a number"),
        ({"colour": 1}, "colour: is not known"),
    ],
)
async def test_a_wrong_field_is_named(change: dict[str, Any], named: str) -> None:
    """Nothing is read."""
    reader = Reader()
    response = await sent(reader, BODY | change)
    assert (response.status_code, reader.wanted) == (400, [])
    assert response.json()["error"].startswith(named)


@pytest.mark.parametrize(("error", "status"), [(StoreError("state: full"), 503), (ParameterError("of: unknown"), 400)])
async def test_what_fails_is_told(error: Exception, status: int) -> None:
    """As JSON."""
    response = await sent(Reader(error), BODY)
    assert (response.status_code, response.json()) == (status, {"error": str(error)})
