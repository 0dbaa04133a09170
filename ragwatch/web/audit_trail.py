"""Records in the audit log who has been shown which samples, and who has sent a request that changes something.

A line is written before the response is sent. If it cannot be written, the response is a 503 instead.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from urllib.parse import parse_qsl

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragwatch.audit import known_fields
from ragwatch.errors import StoreError
from ragwatch.web.access import INGEST_PATHS, MCP_PATH, SAFE_METHODS, TASKS_PATH
from ragwatch.web.authentication import USER

ANONYMOUS = "anonymous"
READS = frozenset(
    {"/samples", "/api/v1/samples", "/api/v1/labels", "/causes", "/api/v1/causes", "/samples.csv", "/samples.jsonl"}
    | {"/label", "/incident.md"}
)
"""Paths whose GET is recorded even if it shows no sample."""
PARAMETERS = frozenset(
    {"route", "stage", "judge", "outcome", "quantity", "below", "above", "since", "until", "sort", "limit", "texts"}
    | {"renew", "suite", "kind", "after", "window", "labelled", "disputed"}
)
"""Query parameters that are recorded; others may contain texts."""
_SAMPLE = re.compile(r"(?:/api/v1)?/samples/([0-9a-f]{32})(?:/prompt)?")
_OWN_PATHS = re.compile(
    r"/(-/[a-z/]{1,40}|v1/[a-z/]{1,40}|api/v1/[a-z]{1,20}|[a-z]{0,20}|samples\.(csv|jsonl)|incident\.md)"
)
_shown: ContextVar[list[str] | None] = ContextVar("shown", default=None)

AuditRecord = Callable[..., None]
"""See `AuditLog.record`."""


def shown(keys: Iterable[str]) -> None:
    """Note that the response to the current request contains texts of these samples, or changes them."""
    noted = _shown.get()
    if noted is not None:
        noted += keys


class AuditTrail:
    """Middleware that writes the audit log. It belongs inside the authentication."""

    def __init__(self, app: ASGIApp, record: AuditRecord | None = None) -> None:
        self._app = app
        self._record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if (record := self._record) is None:
            await self._app(scope, receive, send)
            return
        keys: list[str] = []
        token = _shown.set(keys)
        status, recorded, refused = 0, 0, False

        async def send_recorded(message: Message) -> None:
            nonlocal status, recorded, refused
            if refused:
                return
            starts = message["type"] == "http.response.start"
            status = message.get("status", status)
            if (starts and _is_recorded(scope)) or len(keys) > recorded:
                new, recorded = keys[recorded:], len(keys)
                try:
                    await asyncio.to_thread(_write, record, scope, status, new)
                except StoreError as error:
                    refused = True
                    if not starts:
                        raise
                    await PlainTextResponse(f"{error}\n", status_code=503)(scope, receive, send)
                    return
            await send(message)

        try:
            await self._app(scope, receive, send_recorded)
        finally:
            _shown.reset(token)


def _write(record: AuditRecord, scope: Scope, status: int, keys: list[str]) -> None:
    path, client, sample = scope["path"], scope.get("client"), _SAMPLE.fullmatch(scope["path"])
    query = scope.get("query_string", b"").decode("ascii", "replace")
    try:
        parameters = known_fields(parse_qsl(query, max_num_fields=50), PARAMETERS)
    except ValueError:  # more parameters than there are
        parameters = {}
    record(
        actor=scope.get(USER, ANONYMOUS),
        address=None if client is None else client[0],
        action="read" if scope["method"] in SAFE_METHODS or path in (TASKS_PATH, MCP_PATH) else "write",
        keys=list(dict.fromkeys([*([sample[1]] if sample else []), *keys])),
        method=scope["method"],
        path=path if _OWN_PATHS.fullmatch(path) else "/samples" if sample else "other",
        parameters=parameters or None,
        status=status,
    )


def _is_recorded(scope: Scope) -> bool:
    """Whether a request is recorded even if it shows no sample: it reads samples, or may change something.

    Traffic that services send is not recorded: it is what is watched, and has counters of its own.
    """
    path = scope["path"]
    if path in INGEST_PATHS:
        return False
    return scope["method"] not in SAFE_METHODS or path in READS or _SAMPLE.fullmatch(path) is not None
