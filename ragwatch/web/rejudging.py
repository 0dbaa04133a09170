"""Serves `POST /v1/rejudge`: has a judge read some stored answers, while ragwatch runs."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TypedDict, TypeGuard

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragwatch.errors import RagwatchError
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_body import json_object, read_body
from ragwatch.web.reply import json_reply
from ragwatch.web.samples import KEY, ParameterError

PATH = "/v1/rejudge"
_FIELDS = ("judge", "of", "share", "keys", "charted_before")
_MAX_KEYS = 100


class RejudgeFields(TypedDict):
    """The checked fields of a request."""

    judge: str
    of: str
    share: float
    keys: tuple[str, ...]
    charted_before: float


Rejudge = Callable[[RejudgeFields], Awaitable[Mapping[str, object]]]
"""Has answers read, from the checked fields of a request. Returns what became of them, as JSON values."""


def rejudge_routes(rejudge: Rejudge | None) -> list[Route]:
    """`POST /v1/rejudge`; none without `rejudge`."""
    if rejudge is None:
        return []

    async def read(request: Request) -> Response:
        fields = _fields(json_object(await read_body(request), "keys"))
        try:
            outcome = await rejudge(fields)
        except RagwatchError as error:
            return json_reply({"error": str(error)}, 503)
        shown(fields["keys"])
        return json_reply(dict(outcome))

    return [Route(PATH, read, methods=["POST"])]


def _fields(body: Mapping[str, object]) -> RejudgeFields:
    """Check the fields of a request.

    Raises:
        ParameterError: One is unknown, missing or invalid.
    """
    if unknown := sorted(set(body) - set(_FIELDS)):
        raise ParameterError(f"{unknown[0]}: is not known; use {', '.join(_FIELDS)}")
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
