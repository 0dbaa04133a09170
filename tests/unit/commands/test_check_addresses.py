"""`ragwatch check` of addresses, rights, brokers and exports: nothing is taken, and no text is sent."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from support.brokers import redis_server
from support.certificates import Authority
from support.command_line import findings
from support.kit import a_line, an_admission
from support.otlp_backend import Fault, OtlpBackend

from ragwatch.commands.check_settings import EXAMPLE, FAILED, OK, WARNING, Finding, check_web
from ragwatch.config.web import WebOptions
from ragwatch.errors import ConfigError
from ragwatch.formats import build
from ragwatch.formats.record import parse as parse_line
from ragwatch.statistics.tally import Tally, TallyKey
from ragwatch.stores.sqlite.store import SqliteStore

TOKEN = "0123456789abcdef"  # noqa: S105 - a made up one
ASSEMBLED, REFUSED = (Tally.TRACES, ("traces", "assembled")), (Tally.TRACES, ("traces", "refused"))


def finding(folder: Path, web: dict[str, Any], names: tuple[str, ...] = ("app",)) -> Finding:
    """What `check` says of the first source."""
    sources = [{"kind": "push", "name": name} for name in names]
    return findings(folder, web={"listen": "127.0.0.1:10999", **web}, sources=sources)["sources[0]"]


def test_the_command_that_sends_an_answer(tmp_path: Path) -> None:
    """A token where one is needed, the name where there are several sources, an address that a client can use."""
    token = {"tokens": [{"name": "a", "token": TOKEN, "rights": ["ingest"]}]}
    said: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
        ({}, ("app",), " http://127.0.0.1:10999/v1/samples"),
        ({}, ("app",), "one with: curl -H 'Content-Type: application/json' -d"),  # and no token
        (token, ("app",), "Authorization: Bearer $TOKEN"),
        ({}, ("app", "other"), "'http://127.0.0.1:10999/v1/samples?source=app'"),
        ({"listen": "0.0.0.0:10999", "open": ["ingest"]}, ("app",), " http://localhost:10999/v1/samples"),
        ({"listen": "[::1]:10999"}, ("app",), "'http://[::1]:10999/v1/samples'"),
        ({"external_url": "https://rag.example/w/"}, ("app",), " https://rag.example/w/v1/samples"),
    ]
    for web, names, says in said:
        one = finding(tmp_path, web, names)
        assert one.state == OK
        assert says in one.detail


def test_nobody_may_send(tmp_path: Path) -> None:
    """Where no client has the right, that is a warning, with what to add; an open address is a failure."""
    for kind in ("push", "otlp"):
        web = {"listen": "127.0.0.1:0", "tokens": [{"name": "ci", "token": TOKEN, "rights": ["write"]}]}
        one = findings(tmp_path, web=web, sources=[{"kind": kind, "name": "app"}])["sources[0]"]
        assert one.state == WARNING
        assert "nobody has the right ingest: give it to a token" in one.detail
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        check_web(WebOptions(listen="0.0.0.0:10477"), ())


def test_the_example_is_a_sample() -> None:
    """What the command sends is read as a sample."""
    sample = build("auto").read(parse_line(EXAMPLE.encode())[0], "fallback")
    assert (sample.id, sample.answer, len(sample.contexts)) == ("1", "Goethe.", 1)


def test_where_calls_are_received(tmp_path: Path) -> None:
    """The address over gRPC is tested."""
    pytest.importorskip("grpc", reason="needs the package grpcio: pip install 'ragwatch-exporter[grpc]'")
    sources = [{"kind": "otlp", "name": "traces", "grpc": {"listen": "127.0.0.1:0"}}]
    states = findings(tmp_path, sources=sources)
    assert states["sources.traces.grpc"].detail == "127.0.0.1:0 is free"
    assert "calls over gRPC at 127.0.0.1:0" in states["sources[0]"].detail


@pytest.mark.parametrize(
    ("tallies", "state", "says"),
    [
        (None, "ok", "no request in a trace is complete yet"),
        ({ASSEMBLED: 1200, REFUSED: 3}, "ok", "requests in traces: 1,200 assembled, 3 refused"),
        ({(Tally.TRACES, ("traces", "unrelated")): 7}, "warning", "7 unrelated"),
        ({ASSEMBLED: 1, (Tally.SILENT, ("traces", "traceloop")): 2}, "warning", ("2 hold no texts, because content "
         "capture is off: set TRACELOOP_TRACE_CONTENT=true")),
    ],
)  # fmt: skip
def test_traces_so_far(tmp_path: Path, tallies: dict[TallyKey, float] | None, state: str, says: str) -> None:
    """Counts by outcome, and the switch of each instrumentation that sends no texts; before any, that it waits."""
    if tallies is not None:
        store = SqliteStore(tmp_path / "state")
        store.admit(an_admission(tallies=Counter(tallies)))
        store.close()
    finding = findings(tmp_path, sources=[{"kind": "otlp", "name": "traces"}])["sources[0]"]
    assert finding.state == state
    assert says in finding.detail


def checked(folder: Path, port: int) -> Finding:
    """What `check` says of the source."""
    source = {"kind": "redis_streams", "name": "app", "url": f"redis://127.0.0.1:{port}/0", "stream": "rag"}
    found = findings(folder, routes=["search"], sources=[source])
    assert [subject for subject in found if subject.startswith("sources[0]")] == ["sources[0]"]
    return found["sources[0]"]


def test_a_stream_is_shown_and_not_read(tmp_path: Path) -> None:
    """Without a stream it warns and creates none; with one it reads records, and there is still no group."""
    server = redis_server(tmp_path)
    client: Any = redis.Redis(port=server.port)
    try:
        missing = checked(tmp_path, server.port)
        assert (missing.state, client.exists("rag")) == (WARNING, 0)
        assert "the stream rag does not exist; ragwatch creates it at its start" in missing.detail
        client.xadd("rag", {"data": a_line("a")})
        there = checked(tmp_path, server.port)
        assert (there.state, there.detail) == (OK, "1 of 1 records of redis stream rag are samples")
        assert client.xinfo_groups("rag") == []
    finally:
        client.close()
        server.kill()
    down = checked(tmp_path, server.port)
    assert (down.state, "cannot be reached" in down.detail) == (FAILED, True)


@pytest.fixture
def backend() -> Iterator[OtlpBackend]:
    """A backend that accepts everything."""
    found = OtlpBackend()
    yield found
    found.close()


def exported(folder: Path, otlp: dict[str, Any], **sections: Any) -> Finding:
    """What `check` says of the export."""
    return findings(folder, export={"otlp": otlp}, **sections)["export.otlp"]


def test_what_an_endpoint_of_exports_takes(tmp_path: Path, backend: OtlpBackend) -> None:
    """Where scores go, that no text does, and what is refused with what to set; headers that travel unencrypted."""
    one = exported(tmp_path, {"endpoint": backend.url, "quantities": ["faithfulness"]})
    assert one.state == OK
    assert one.detail.startswith(f"{backend.url} gets scores of faithfulness and no text of users;")
    assert [request.body for request in backend.received] == [b"", b""]
    one = exported(tmp_path, {"endpoint": backend.url}, store={"kind": "sqlite", "texts": "none"})
    assert (one.state, "store.texts is none" in one.detail) == (WARNING, True)
    backend.faults = [Fault(404)]
    one = exported(tmp_path, {"endpoint": backend.url, "explanations": True})
    assert one.state == FAILED
    assert "all quantities and texts of answers that explain them" in one.detail
    assert "events: refused: HTTP 404; set logs: false if" in one.detail
    assert "spans: accepted" in one.detail
    options = {"endpoint": "http://nowhere.invalid", "headers": {"Authorization": "Bearer hidden"}, "timeout": "5s"}
    one = exported(tmp_path, options)
    assert one.state == FAILED
    assert "the headers travel unencrypted: write https" in one.detail
    assert "hidden" not in one.detail


CI = {"name": "ci", "token": TOKEN, "rights": ["write"]}
HASH = "$2y$04$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze"
EVERYWHERE = "0.0.0.0:10477"
TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"


@pytest.mark.parametrize(
    ("web", "text", "state", "detail"),
    [
        ({}, None, OK, "HTTP; nobody is asked for a password: ingest, metrics, pages, write"),
        ({"tokens": [CI]}, None, OK, "HTTP; 1 tokens; without them: nothing"),
        ({"tokens": [CI], "open": ["metrics"]}, TLS, OK, "TLS; 1 tokens; without them: metrics"),
        ({"listen": EVERYWHERE}, f"{TLS}basic_auth_users: {{a: {HASH}}}", OK, "TLS; 1 users; without them: nothing"),
        ({"listen": EVERYWHERE, "open": ["pages"]}, None, OK, "HTTP; nobody is asked for a password: metrics, pages"),
        ({"listen": EVERYWHERE, "tokens": [CI]}, None, WARNING, "HTTP; 1 tokens; without them: nothing; passwords and"),
        (
            {"listen": EVERYWHERE},
            TLS.replace("}", ", client_auth_type: VerifyClientCertIfGiven, client_ca_file: authority.crt}"),
            OK,
            "TLS; client certificates; without them: nothing",
        ),
    ],
)
def test_who_may_do_what(tmp_path: Path, web: dict[str, Any], text: str | None, state: str, detail: str) -> None:
    """Transport, who is asked, and what is open to the others."""
    if text is not None:
        Authority(tmp_path).issue("server", "server")
        (tmp_path / "web.yml").write_text(text)
        web = {**web, "config_file": tmp_path / "web.yml"}
    finding = check_web(WebOptions.model_validate(web), ())
    assert (finding.state, finding.detail[: len(detail)]) == (state, detail)
