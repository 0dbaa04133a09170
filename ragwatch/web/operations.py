"""Serves `POST /v1/forget` and `POST /v1/rejudge`: erases a person, or has stored answers read again, during a run."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TypedDict, TypeGuard

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragwatch.errors import RagwatchError
from ragwatch.ports import Erased, Erasure
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_values import ParameterError, json_object, json_reply, read_body
from ragwatch.web.samples import KEY

FORGET_PATH, REJUDGE_PATH = "/v1/forget", "/v1/rejudge"
_MAX_KEYS = 100

Forget = Callable[[Erasure, bool], Awaitable[Erased]]
"""Erases, or only counts where the second argument is true."""


class RejudgeFields(TypedDict):
    """The checked fields of a request."""

    judge: str
    of: str
    share: float
    keys: tuple[str, ...]
    charted_before: float


Rejudge = Callable[[RejudgeFields], Awaitable[Mapping[str, object]]]
"""Has answers read, from the checked fields of a request. Returns what became of them, as JSON values."""


def operation_routes(forget: Forget | None, rejudge: Rejudge | None) -> list[Route]:
    """The routes; none without what they call. What is erased stands in the body, which no log contains."""
    routes: list[Route] = []
    if forget is not None:

        async def erase(request: Request) -> Response:
            body = json_object(await read_body(request), "ids")
            erasure, dry_run = _erasure(body), _flag(body, "dry_run")
            try:
                erased = await forget(erasure, dry_run)
            except RagwatchError as error:
                return json_reply({"error": str(error)}, 503)
            if not dry_run:
                shown(erased.keys)
            counts = {name: value for name, value in asdict(erased).items() if name not in ("keys", "texts")}
            return json_reply({"answers": len(erased.keys), **counts})

        routes.append(Route(FORGET_PATH, erase, methods=["POST"]))
    if rejudge is not None:

        async def read(request: Request) -> Response:
            fields = _rejudge_fields(json_object(await read_body(request), "keys"))
            try:
                outcome = await rejudge(fields)
            except RagwatchError as error:
                return json_reply({"error": str(error)}, 503)
            shown(fields["keys"])
            return json_reply(dict(outcome))

        routes.append(Route(REJUDGE_PATH, read, methods=["POST"]))
    return routes


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(text, str) and text for text in value)


def _check_names(body: Mapping[str, object], names: Sequence[str]) -> None:
    if unknown := sorted(set(body) - set(names)):
        raise ParameterError(f"{unknown[0]}: is not known; use {', '.join(names)}")


def _erasure(body: Mapping[str, object]) -> Erasure:
    _check_names(body, ("ids", "metadata", "with_scores", "dry_run"))
    ids, pairs = body.get("ids", []), body.get("metadata", [])
    if not _are_texts(ids):
        raise ParameterError("ids: not a list of texts that are not empty")
    if not isinstance(pairs, list) or not all(_are_texts(pair) and len(pair) == 2 for pair in pairs):
        raise ParameterError("metadata: not a list of pairs of key and value, each a text that is not empty")
    if not ids and not pairs:
        raise ParameterError("ids: is missing; give ids, or metadata")
    return Erasure(frozenset(ids), frozenset((key, value) for key, value in pairs), _flag(body, "with_scores"))


def _flag(body: Mapping[str, object], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise ParameterError(f"{name}: is neither true nor false")
    return value


def _rejudge_fields(body: Mapping[str, object]) -> RejudgeFields:
    """Check the fields of a request. Raises ParameterError: one is unknown, missing or invalid."""
    _check_names(body, ("judge", "of", "share", "keys", "charted_before"))
    judge, other = _judge_name(body, "judge"), _judge_name(body, "of")
    keys, share, before = body.get("keys"), body.get("share", 1.0), body.get("charted_before")
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and KEY.fullmatch(key) for key in keys):
        raise ParameterError("keys: not a list of keys of samples, of 32 hexadecimal digits each")
    if len(keys) > _MAX_KEYS:
        raise ParameterError(f"keys: {len(keys)}, at most {_MAX_KEYS} in one request")
    if not _is_number(share) or not 0.0 < share <= 1.0:
        raise ParameterError("share: not a number above 0, at most 1")
    if before is not None and not _is_number(before):
        raise ParameterError("charted_before: not a number of seconds since the epoch")
    return {
        "judge": judge,
        "of": other,
        "share": float(share),
        "keys": tuple(keys),
        "charted_before": math.inf if before is None else float(before),
    }


def _judge_name(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise ParameterError(f"{name}: is not the name of a judge")
    return value


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
