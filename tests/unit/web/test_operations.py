"""`POST /v1/forget` and `POST /v1/rejudge`, through an HTTP client."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from support.asked import application, asking

from ragwatch.errors import StoreError
from ragwatch.ports import Erased, Erasure
from ragwatch.web import ParameterError

KEY = "0" * 32
ERASED = Erased((KEY,), frozenset({"a text of hers"}), pending=1, verdicts=2, labels=3, others=4, batched=5)
FORGET, REJUDGE = "/v1/forget", "/v1/rejudge"
BODIES: dict[str, dict[str, Any]] = {
    FORGET: {"ids": ["r1"]},
    REJUDGE: {"judge": "big", "of": "embedded", "keys": [KEY]},
}


class Operations:
    """Notes what is to be erased and read again."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.wanted: list[Any] = []

    async def forget(self, erasure: Erasure, dry_run: bool) -> Erased:  # noqa: FBT001 - the signature of `Forget`
        """Erase."""
        self.note((erasure, dry_run))
        return ERASED

    async def rejudge(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read."""
        self.note(fields)
        return {"stored": 1}

    def note(self, wanted: object) -> None:
        """Keep what is wanted, and fail."""
        self.wanted.append(wanted)
        if self.error is not None:
            raise self.error


async def sent(called: Operations, path: str, body: Any, **parts: Any) -> httpx.Response:
    """The response to a request."""
    async with asking(application(forget=called.forget, rejudge=called.rejudge, **parts)) as client:
        return await client.post(path, json=body)


async def test_counts_of_what_was_erased_come_back_and_no_text() -> None:
    """Ids, pairs and flags are handed on; the response has numbers, and the audit line keys, of what was erased."""
    eraser, lines = Operations(), list[dict[str, Any]]()
    body = {"ids": ["r1"], "metadata": [["user.id", "7"]], "with_scores": True}
    response = await sent(eraser, FORGET, body, audit=lambda **line: lines.append(line))
    counts = {"verdicts": 2, "labels": 3, "feedback": 0, "pending": 1, "batched": 5, "others": 4}
    assert response.json() == {"answers": 1, **counts, "complete": True}
    await sent(eraser, FORGET, {"ids": ["r1"], "dry_run": True}, audit=lambda **line: lines.append(line))
    wanted = Erasure(frozenset({"r1"}), frozenset({("user.id", "7")}), with_scores=True)
    assert eraser.wanted == [(wanted, False), (Erasure(frozenset({"r1"})), True)]
    assert [(line["action"], line["path"], line["keys"]) for line in lines] == [
        ("write", FORGET, [KEY]),
        ("write", FORGET, []),
    ]


async def test_fields_of_a_second_reading_are_handed_on() -> None:
    """With the whole as the share, and no end of the charts, where none is given; the audit line names the keys."""
    reader, lines = Operations(), list[dict[str, Any]]()
    response = await sent(reader, REJUDGE, BODIES[REJUDGE], audit=lambda **line: lines.append(line))
    assert (response.status_code, response.json()) == (200, {"stored": 1})
    await sent(reader, REJUDGE, {**BODIES[REJUDGE], "share": 0.5, "charted_before": 7})
    fixed = {**BODIES[REJUDGE], "keys": (KEY,)}
    assert reader.wanted == [
        {**fixed, "share": 1.0, "charted_before": math.inf},
        {**fixed, "share": 0.5, "charted_before": 7.0},
    ]
    assert (lines[0]["action"], lines[0]["path"], lines[0]["keys"]) == ("write", REJUDGE, [KEY])


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (FORGET, [], "body: not an object"),
        (FORGET, {"ids": []}, "ids: is missing"),
        (FORGET, {"ids": "r1"}, "ids: not a list"),
        (FORGET, {"ids": [""]}, "ids: not a list"),
        (FORGET, {"ids": [7]}, "ids: not a list"),
        (FORGET, {"metadata": {"user": "7"}}, "metadata: not a list of pairs"),
        (FORGET, {"metadata": [["user"]]}, "metadata: not a list of pairs"),
        (FORGET, {"metadata": [["user", 7]]}, "metadata: not a list of pairs"),
        (FORGET, {"dry_run": 1}, "dry_run: is neither true nor false"),
        (FORGET, {"with_scores": "no"}, "with_scores: is neither true nor false"),
        (FORGET, {"user": "7"}, "user: is not known"),
        (REJUDGE, {"judge": ""}, "judge: is not"),
        (REJUDGE, {"of": 7}, "of: is not"),
        (REJUDGE, {"keys": []}, "keys: not a list"),
        (REJUDGE, {"keys": ["r1"]}, "keys: not a list"),
        (REJUDGE, {"keys": [KEY] * 101}, "keys: 101, at most 100"),
        (REJUDGE, {"share": 0}, "share: not a number"),
        (REJUDGE, {"share": True}, "share: not a number"),
        (REJUDGE, {"charted_before": "now"}, "charted_before: not a number"),
        (REJUDGE, {"colour": 1}, "colour: is not known"),
    ],
)
async def test_a_wrong_field_is_named(path: str, body: Any, message: str) -> None:
    """And nothing is erased or read."""
    called = Operations()
    response = await sent(called, path, BODIES[path] | body if isinstance(body, dict) else body)
    assert (response.status_code, called.wanted) == (400, [])
    assert response.json()["error"].startswith(message)


@pytest.mark.parametrize(
    ("path", "error", "status"),
    [
        (FORGET, StoreError("state: cannot write: disk full"), 503),
        (REJUDGE, StoreError("state: full"), 503),
        (REJUDGE, ParameterError("of: unknown"), 400),
    ],
)
async def test_what_fails_is_told(path: str, error: Exception, status: int) -> None:
    """As JSON, with the reason."""
    response = await sent(Operations(error), path, BODIES[path])
    assert (response.status_code, response.json()) == (status, {"error": str(error)})
