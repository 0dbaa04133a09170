"""Serves `POST /v1/rejudge`: has a judge read some stored answers, while ragwatch runs."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

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

Rejudge = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
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


def _fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Check the fields of a request.

    Raises:
        ParameterError: One is unknown, missing or invalid.
    """
    if unknown := sorted(set(body) - set(_FIELDS)):
        raise ParameterError(f"{unknown[0]}: is not known; use {', '.join(_FIELDS)}")
    for name in ("judge", "of"):
        if not isinstance(body.get(name), str) or not body[name]:
            raise ParameterError(f"{name}: is not the name of a judge")
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
        "judge": body["judge"],
        "of": body["of"],
        "share": float(share),
        "keys": tuple(keys),
        "charted_before": math.inf if before is None else float(before),
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
