"""Tests an endpoint with requests that hold nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ragwatch.pipeline.export import messages
from ragwatch.pipeline.export.client import OtlpClient
from ragwatch.pipeline.export.rules import ExportRules, ExportTarget, Signal


async def try_endpoint(target: ExportTarget, signals: Iterable[Signal]) -> Mapping[Signal, str | None]:
    """Send an empty request of each kind. Returns what is wrong with each; None if it was accepted.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """
    client = OtlpClient(target, time.time)
    faults: dict[Signal, str | None] = {}
    try:
        for signal in signals:
            reply = await client.send(signal, messages.request_of(signal, (), ExportRules(), 0.0))
            faults[signal] = None if reply.failure is None else f"{reply.failure}: {reply.why}"
    finally:
        await client.close()
    return faults
