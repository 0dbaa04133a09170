"""Serves `POST /v1/forget`: erases what the state contains about a person, while ragwatch runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragwatch.errors import RagwatchError
from ragwatch.ports import Erased, Erasure
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_body import json_object, read_body
from ragwatch.web.reply import json_reply
from ragwatch.web.samples import ParameterError

PATH = "/v1/forget"
_FIELDS = frozenset({"ids", "metadata", "with_scores", "dry_run"})

Forget = Callable[[Erasure, bool], Awaitable[Erased]]
"""Erases, or only counts where the second argument is true."""


def erasure_routes(forget: Forget | None) -> list[Route]:
    """`POST /v1/forget`; none without `forget`. What is erased stands in the body, which no log contains."""
    if forget is None:
        return []

    async def erase(request: Request) -> Response:
        body = json_object(await read_body(request), "ids")
        dry_run = _flag(body, "dry_run")
        try:
            erased = await forget(_erasure(body), dry_run)
        except RagwatchError as error:
            return json_reply({"error": str(error)}, 503)
        if not dry_run:
            shown(erased.keys)
        return json_reply(_counts(erased))

    return [Route(PATH, erase, methods=["POST"])]


def _erasure(body: Mapping[str, object]) -> Erasure:
    if unknown := sorted(set(body) - _FIELDS):
        raise ParameterError(f"{unknown[0]}: is not known; use ids, metadata, with_scores, dry_run")
    ids, pairs = body.get("ids", []), body.get("metadata", [])
    if not isinstance(ids, list) or not all(isinstance(name, str) and name for name in ids):
        raise ParameterError("ids: not a list of texts that are not empty")
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise ParameterError("metadata: not a list of pairs of key and value, each a text that is not empty")
    if not ids and not pairs:
        raise ParameterError("ids: is missing; give ids, or metadata")
    return Erasure(frozenset(ids), frozenset((key, value) for key, value in pairs), _flag(body, "with_scores"))


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) and text for text in pair)


def _flag(body: Mapping[str, object], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise ParameterError(f"{name}: is neither true nor false")
    return value


def _counts(erased: Erased) -> dict[str, object]:
    return {
        "answers": len(erased.keys),
        "verdicts": erased.verdicts,
        "labels": erased.labels,
        "feedback": erased.feedback,
        "pending": erased.pending,
        "batched": erased.batched,
        "others": erased.others,
        "complete": erased.complete,
    }
