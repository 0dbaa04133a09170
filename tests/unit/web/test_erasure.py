"""`POST /v1/forget`, through an HTTP client."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest
from support.asked import application, asking

from ragwatch.errors import StoreError
from ragwatch.ports import Erased, Erasure
from ragwatch.web import Access, RequestPolicy, Right, Token
from ragwatch.web.access import NOTHING

ERASED = Erased(("0" * 32,), frozenset({"a text of hers"}), pending=1, verdicts=2, labels=3, others=4, batched=5)


class Eraser:
    """Notes what it is to erase."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.wanted: list[tuple[Erasure, bool]] = []

    async def forget(self, erasure: Erasure, dry_run: bool) -> Erased:  # noqa: FBT001 - the signature of `Forget`
        """Erase."""
        self.wanted.append((erasure, dry_run))
        if self.error is not None:
            raise self.error
        return ERASED


async def sent(eraser: Eraser, body: Any, **parts: Any) -> httpx.Response:
    """The response to a request."""
    async with asking(application(forget=eraser.forget, **parts)) as client:
        return await client.post("/v1/forget", json=body, headers={"Authorization": "Bearer t"})


async def test_counts_come_back_and_no_text() -> None:
    """Ids, pairs and flags are handed on; the response has numbers, and the audit line keys, of what was erased."""
    eraser, lines = Eraser(), list[dict[str, Any]]()
    body = {"ids": ["r1"], "metadata": [["user.id", "7"]], "with_scores": True}
    response = await sent(eraser, body, audit=lambda **line: lines.append(line))
    assert response.json() == {
        "answers": 1,
        "verdicts": 2,
        "labels": 3,
        "feedback": 0,
        "pending": 1,
        "batched": 5,
        "others": 4,
        "complete": True,
    }
    await sent(eraser, {"ids": ["r1"], "dry_run": True}, audit=lambda **line: lines.append(line))
    wanted = Erasure(frozenset({"r1"}), frozenset({("user.id", "7")}), with_scores=True)
    assert eraser.wanted == [(wanted, False), (Erasure(frozenset({"r1"})), True)]
    assert [(line["action"], line["path"], line["keys"]) for line in lines] == [
        ("write", "/v1/forget", ["0" * 32]),
        ("write", "/v1/forget", []),
    ]


async def test_it_needs_the_right_to_write() -> None:
    """Who may read pages may not erase."""
    eraser = Eraser()
    for right, status in ((Right.PAGES, 403), (Right.WRITE, 200)):
        token = Token("t", hashlib.sha256(b"t").digest(), frozenset({right}))
        policy = RequestPolicy(access=lambda token=token: Access(tokens=(token,), anonymous=NOTHING))  # type: ignore[misc]
        assert (await sent(eraser, {"ids": ["r1"]}, policy=policy)).status_code == status
    assert len(eraser.wanted) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "body: not an object"),
        ({}, "ids: is missing"),
        ({"ids": "r1"}, "ids: not a list"),
        ({"ids": [""]}, "ids: not a list"),
        ({"ids": [7]}, "ids: not a list"),
        ({"metadata": {"user": "7"}}, "metadata: not a list of pairs"),
        ({"metadata": [["user"]]}, "metadata: not a list of pairs"),
        ({"metadata": [["user", 7]]}, "metadata: not a list of pairs"),
        ({"ids": ["a"], "dry_run": 1}, "dry_run: is neither true nor false"),
        ({"ids": ["a"], "with_scores": "no"}, "with_scores: is neither true nor false"),
        ({"ids": ["a"], "user": "7"}, "user: is not known"),
    ],
)
async def test_wrong_requests_erase_nothing(body: Any, message: str) -> None:
    """The response names the field."""
    eraser = Eraser()
    response = await sent(eraser, body)
    assert (response.status_code, eraser.wanted) == (400, [])
    assert response.json()["error"].startswith(message)


async def test_a_failure_is_told() -> None:
    """A store that cannot be written is a 503 with its reason."""
    response = await sent(Eraser(StoreError("state: cannot write: disk full")), {"ids": ["r1"]})
    assert (response.status_code, response.json()) == (503, {"error": "state: cannot write: disk full"})
