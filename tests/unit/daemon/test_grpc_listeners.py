"""The addresses on which sources receive calls over gRPC, from their start to their end."""

from __future__ import annotations

import pytest
from structlog.testing import CapturingLogger

from ragwatch.config.web import WebOptions
from ragwatch.daemon.web_access import GrpcListeners, WebAccess
from ragwatch.ports.receiving import GrpcListener, Handler, IncomingRequest, Reply
from ragwatch.telemetry import Telemetry

grpc = pytest.importorskip("grpc", reason="needs the package grpcio: pip install 'ragwatch-exporter[grpc]'")
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def answering(text: bytes) -> Handler:
    """A handler that says its name."""

    async def handle(_: IncomingRequest) -> Reply:
        return Reply(200, text)

    return handle


async def test_every_source_has_its_address_and_follows_a_reload() -> None:
    """A call reaches the handler of its source that is active now; the log names the addresses; after the end, none."""
    log = CapturingLogger()
    telemetry = Telemetry(log)
    handlers = {METHOD: {"one": answering(b"1"), "two": answering(b"2")}}
    listeners = GrpcListeners(
        [GrpcListener(name, "127.0.0.1:0", 1 << 20, 4) for name in ("one", "two")],
        lambda: handlers,
        WebAccess(WebOptions(), telemetry),
        telemetry,
    )
    await listeners.bind()
    await listeners.start()
    addresses = {call.kwargs["source"]: call.kwargs["address"] for call in log.calls}
    async with grpc.aio.insecure_channel(addresses["two"]) as channel:
        export = channel.unary_unary(METHOD)
        assert await export(b"") == b"2"
        handlers[METHOD]["two"] = answering(b"3")
        assert await export(b"") == b"3"
        await listeners.stop()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await export(b"")
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await listeners.stop()
