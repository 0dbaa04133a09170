"""Rules of the section `web`: what is open where, what refuses to start, files that change, and addresses of gRPC."""

import hashlib
import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import CapturingLogger
from support.certificates import Authority

from ragwatch.config.web import WebOptions
from ragwatch.daemon.web_access import CHECK_SECONDS, GrpcListeners, WebAccess, read_rules
from ragwatch.errors import ConfigError
from ragwatch.ports.sources import GrpcListener, Handler, IncomingRequest, Reply
from ragwatch.telemetry import EventCount, Telemetry
from ragwatch.web import EVERYTHING, Access, RateLimit, Right

METRICS, PAGES, WRITE, INGEST = Right
TOKEN = "0123456789abcdef"  # noqa: S105 - of a test
CI = {"name": "ci", "token": TOKEN, "rights": ["write"]}
HASH = "$2y$04$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze"
USERS = f"basic_auth_users: {{prometheus: '{HASH}', anna: '{HASH}'}}\n"
TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
CLIENTS = (
    "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: authority.crt,"
    " client_auth_type: RequireAndVerifyClientCert, client_allowed_sans: [prom]}\n"
)


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority and two certificates of a server."""
    folder = tmp_path_factory.mktemp("issued")
    authority = Authority(folder)
    authority.issue("server", "server")
    authority.issue("next", "server")
    return folder


def options(folder: Path, text: str | None = None, **web: Any) -> WebOptions:
    """A section `web`, with a configuration file that holds this text."""
    path = folder / "web.yml"
    if text is not None:
        path.write_text(text)
    return WebOptions(**{"config_file": None if text is None else path, **web})


def access(folder: Path, text: str | None = None, **web: Any) -> Access:
    """The rights of a section `web`."""
    return read_rules(options(folder, text, **web)).access


def test_x19_x20_others_are_not_let_in_by_oversight(tmp_path: Path) -> None:
    """Beyond loopback, without anybody who could be asked, it does not start unless `web.open` says what is open."""
    for listen in ("0.0.0.0:10477", "[::]:1", "10.1.2.3:1", "rag.internal:1"):
        with pytest.raises(ConfigError, match=r"^web\.listen: .* can be reached from other machines.* web\.open"):
            access(tmp_path, listen=listen)
        with pytest.raises(ConfigError, match="can be reached"):
            access(tmp_path, "http_server_config: {http2: true}", listen=listen)
        assert access(tmp_path, listen=listen, open=["pages"]).anonymous == {METRICS, PAGES}
        assert access(tmp_path, listen=listen, open=["metrics"]).anonymous == {METRICS}
        assert access(tmp_path, listen=listen, open=["pages", "write"]).anonymous == {METRICS, PAGES, WRITE}
        assert access(tmp_path, listen=listen, tokens=[CI]).anonymous == frozenset()
        assert access(tmp_path, USERS, listen=listen).anonymous == frozenset()


def listener(address: str) -> GrpcListener:
    """An address of a source over gRPC."""
    return GrpcListener("traces", address, 1 << 20, 4)


def test_x19_nobody_sends_over_grpc_by_oversight(tmp_path: Path) -> None:
    """Beyond loopback, calls are received from those alone whom somebody has named, wherever the pages are."""
    for address in ("0.0.0.0:4317", "[::]:4317", "rag.internal:4317"):
        with pytest.raises(ConfigError, match=r"^source traces: grpc\.listen: .* can be reached .* web\.tokens"):
            read_rules(options(tmp_path), [listener(address)])
        with pytest.raises(ConfigError, match="can be reached"):
            read_rules(options(tmp_path, open=["metrics", "write"]), [listener(address)])
        read_rules(options(tmp_path, tokens=[CI]), [listener(address)])
        read_rules(options(tmp_path, open=["ingest"]), [listener(address)])
    read_rules(options(tmp_path), [listener("127.0.0.1:4317"), listener("localhost:1")])


def test_rights_over_grpc_are_those_of_its_own_address(tmp_path: Path) -> None:
    """Where nobody can be asked, loopback is open, and elsewhere what `web.open` names, wherever the pages are."""
    local = WebAccess(options(tmp_path, open=["ingest"]), Telemetry())
    assert local.access().anonymous == EVERYTHING
    assert local.access_at(is_local=False).anonymous == {INGEST}
    away = WebAccess(options(tmp_path, listen="0.0.0.0:1", open=["pages"]), Telemetry())
    assert away.access_at(is_local=True).anonymous == EVERYTHING
    named = WebAccess(options(tmp_path, tokens=[CI]), Telemetry())
    assert named.access_at(is_local=True) == named.access()


def test_connections_over_grpc_follow_tls_as_those_over_http_do(issued: Path, tmp_path: Path) -> None:
    """Other certificates, versions and demands on clients hold for new connections, without a restart."""
    shutil.copytree(issued, tmp_path, dirs_exist_ok=True)
    texts = {"tls": TLS, "clients": CLIENTS, "strict": TLS.replace("}", ", min_version: TLS13}")}
    files = {name: tmp_path / f"{name}.yml" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    web = options(tmp_path, TLS, tokens=[CI])
    access = WebAccess(
        web.model_copy(update={"config_file": files["tls"]}), Telemetry(), listeners=[listener("[::]:1")]
    )
    for name, mode in (("clients", ssl.CERT_REQUIRED), ("strict", ssl.CERT_NONE)):
        other = web.model_copy(update={"config_file": files[name]})
        access.check(other)
        access.use(other)
        inside = access.grpc_tls()
        assert inside is not None
        assert inside.context.verify_mode is mode
    assert inside.context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert read_rules(web).grpc_tls is None


def test_loopback_is_open_until_somebody_is_named(tmp_path: Path) -> None:
    """The default asks nobody; with a user or a token, only what `web.open` names is open."""
    assert access(tmp_path).anonymous == EVERYTHING
    assert access(tmp_path, open=["metrics"]).anonymous == EVERYTHING
    assert access(tmp_path, tokens=[CI]).anonymous == frozenset()
    assert access(tmp_path, USERS, open=["metrics"]).anonymous == {METRICS}


def test_users_and_tokens_carry_rights(tmp_path: Path) -> None:
    """Every user may do everything, as in Prometheus, until `web.users` names one; then others may read the series."""
    assert access(tmp_path, USERS).rights_of(["anna"]) == EVERYTHING
    named = access(tmp_path, USERS, users={"anna": ["pages"]})
    assert (named.rights_of(["anna"]), named.rights_of(["prometheus"])) == ({PAGES}, {METRICS})
    digest = hashlib.sha256(TOKEN.encode())
    hashed = access(tmp_path, tokens=[{**CI, "token": f"sha256:{digest.hexdigest()}"}])
    assert hashed.tokens == access(tmp_path, tokens=[CI]).tokens
    assert (hashed.tokens[0].digest, hashed.tokens[0].rights) == (digest.digest(), {WRITE})


@pytest.mark.parametrize("text", [None, USERS])
def test_a_user_who_does_not_exist_is_named(tmp_path: Path, text: str | None) -> None:
    """A misspelt user would keep the rights of the default."""
    with pytest.raises(ConfigError, match=r"^web\.users\.ana: is not under basic_auth_users"):
        access(tmp_path, text, users={"ana": ["pages"]})


def test_client_certificates_are_credentials(issued: Path) -> None:
    """Names in certificates may have rights; a server that does not verify them has nobody to ask."""
    rules = read_rules(options(issued, CLIENTS, listen="0.0.0.0:1", users={"prom": ["metrics"]}))
    assert rules.access.certificates
    assert rules.access.rights_of(["prom"]) == {METRICS}
    assert rules.tls is not None
    assert rules.tls.allowed_names == {"prom"}
    with pytest.raises(ConfigError, match="can be reached"):
        read_rules(options(issued, TLS, listen="0.0.0.0:1"))


def test_headers_and_rate_are_handed_on(tmp_path: Path) -> None:
    """They hold for every address, with and without users."""
    text = "http_server_config: {headers: {X-Frame-Options: sameorigin}}\nrate_limit: {interval: 500ms, burst: 3}\n"
    for more in ("", USERS):
        found = access(tmp_path, text + more)
        assert (found.headers, found.rate) == ({"X-Frame-Options": "sameorigin"}, RateLimit(0.5, 3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("users: {}", "web.config_file: web.yml: users: is not a known key"),
        (TLS.replace("server.key", "next.key"), "web.config_file: web.yml: tls_server_config.cert_file: the key"),
        (TLS.replace("server.crt", "gone.crt"), "web.config_file: web.yml: tls_server_config.cert_file: "),
    ],
)
def test_what_is_wrong_stops_the_start(issued: Path, text: str, expected: str) -> None:
    """The error names our key, the file, its key, and what to write."""
    with pytest.raises(ConfigError) as raised:
        WebAccess(options(issued, text), Telemetry())
    assert str(raised.value).startswith(expected)


class Running:
    """Rules in force, whose files may change; `now` is the clock."""

    def __init__(self, web: WebOptions) -> None:
        self.now = 0.0
        self.telemetry = Telemetry()
        self.rules = WebAccess(web, self.telemetry, lambda: self.now)

    def failures(self) -> float:
        """Changes that were refused."""
        return self.telemetry.counts().get((EventCount.WEB_FILE_FAILURES, ()), 0.0)

    def wait(self) -> None:
        """Let the files be looked at again."""
        self.now += CHECK_SECONDS


def test_changed_users_are_in_force_soon(tmp_path: Path) -> None:
    """A user who was taken out is asked in vain after a second; nothing is read before."""
    running = Running(options(tmp_path, USERS))
    assert set(running.rules.access().users) == {"prometheus", "anna"}
    options(tmp_path, USERS.replace(", anna", ", ben"))
    assert set(running.rules.access().users) == {"prometheus", "anna"}
    running.wait()
    assert set(running.rules.access().users) == {"prometheus", "ben"}
    assert running.failures() == 0


@pytest.mark.parametrize("text", ["", "basic_auth_users: {anna: ", "tls_server_config:", "users: {}"])
def test_a_half_written_file_opens_nothing(issued: Path, text: str) -> None:
    """An empty, broken or shortened file keeps the old users and TLS in force; it is counted once, if it stays."""
    running = Running(options(issued, TLS + USERS))
    assert running.rules.scheme == "https"
    options(issued, text)
    for _ in range(3):
        running.wait()
        assert running.rules.tls() is not None
        assert set(running.rules.access().users) == {"prometheus", "anna"}
    assert running.failures() == 1
    options(issued, TLS + USERS.replace("anna", "ben"))
    running.wait()
    assert set(running.rules.access().users) == {"prometheus", "ben"}
    assert (issued / "web.yml").write_text(TLS)
    for failures in (1, 2, 2):
        running.wait()
        assert running.rules.access().has_credentials
        assert running.failures() == failures


def test_certificates_rotate_in_two_steps(issued: Path, tmp_path: Path) -> None:
    """Certificate and key change one after the other: in between the old pair stays in force."""
    for name in ("server.crt", "server.key"):
        shutil.copy(issued / name, tmp_path / name)
    running = Running(options(tmp_path, TLS))
    old = running.rules.tls()
    shutil.copy(issued / "next.crt", tmp_path / "server.crt")
    running.wait()
    assert running.rules.tls() is old
    (tmp_path / "server.key").unlink()
    running.wait()
    assert running.rules.tls() is old
    shutil.copy(issued / "next.key", tmp_path / "server.key")
    running.wait()
    assert running.rules.tls() is not old
    assert running.failures() == 0


def test_a_reload_puts_another_section_into_force(tmp_path: Path) -> None:
    """Tokens and open rights follow the configuration; a wrong section changes nothing."""
    running = Running(WebOptions(tokens=(CI,)))
    running.rules.use(WebOptions(open=("pages",), tokens=(CI,)))
    assert running.rules.access().anonymous == {PAGES}
    with pytest.raises(ConfigError):
        running.rules.use(options(tmp_path, "users: {}"))
    assert running.rules.access().anonymous == {PAGES}
    assert (running.rules.scheme, running.rules.tls()) == ("http", None)


METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def answering(text: bytes) -> Handler:
    """A handler that says its name."""

    async def handle(_: IncomingRequest) -> Reply:
        return Reply(200, text)

    return handle


async def test_every_source_has_its_address_and_follows_a_reload() -> None:
    """A call reaches the handler of its source that is active now; the log names the addresses; after the end, none."""
    grpc = pytest.importorskip("grpc", reason="needs the package grpcio: pip install 'ragwatch-exporter[grpc]'")
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
