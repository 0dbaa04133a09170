"""Commands that ask a running ragwatch: what they ask for and say, and to whom they send which token."""

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest
from click.testing import CliRunner
from support.answering import Asked, Reply, answering, dripping
from support.asked import application
from support.certificates import Authority
from support.command_line import command, refused
from support.kit import AT, a_draw, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE
from support.snapshots import small

from ragwatch.commands import cli
from ragwatch.commands.api_client import MAX_BYTES, ApiClient, read_token
from ragwatch.errors import ConfigError, ExternalError, RagwatchError
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.terminal import options
from ragwatch.web import Server
from ragwatch.web.pages.overview import overview
from ragwatch.web.scope import PageScope

acknowledge = partial(command, "acknowledge")


def reply(asked: Asked) -> Reply:
    """A ragwatch that knows all routes but one."""
    if asked.query.get("route") == "gone":
        return 400, {"error": "route: 'gone' is not known"}, {}
    return 200, b"faithfulness on search\nempty_answers on a b, tenant x\n", {}


def test_asks_for_what_was_said() -> None:
    """Special characters in names arrive unchanged."""
    said: dict[tuple[str, ...], dict[str, str]] = {
        (): {},
        ("--quantity", "faithfulness", "--route", "a b&c"): {"quantity": "faithfulness", "route": "a b&c"},
        ("--renew",): {"renew": "true"},
        ("--judge", "claude"): {"judge": "claude"},
    }
    with answering(reply) as (url, asked):
        for arguments in said:
            result = acknowledge("--url", f"{url}/", *arguments)
            assert (result.exception, result.stdout) == (
                None,
                "faithfulness on search\nempty_answers on a b, tenant x\n",
            )
    assert [(one.path, one.query) for one in asked] == [("/-/drift/acknowledge", query) for query in said.values()]


NO_URLS = (
    *("file:///etc/passwd", "http://[x/", "http://a:b/", "http://a b/", "http://a\nb/", "http://a/\x7f", "http://"),
    *("http://a%00/", "http://a:99999/", "http://\udcff/"),
)


def test_refusals_and_silence_are_reported() -> None:
    """As a usage error with the reason in the response, without the JSON around it; a closed port is no success.

    What makes no sense is not sent.
    """
    with answering(reply) as (url, _):
        message = refused(acknowledge("--url", url, "--route", "gone"))
    assert message == f"{url} refused: route: 'gone' is not known"
    assert "no response" in refused(acknowledge("--url", url), ExternalError)
    for arguments, message in (
        *((["--url", url], "is not a URL") for url in NO_URLS),
        (["--judge", "claude", "--route", "search"], "anchors have no quantity and no route"),
        (["--route", "caf\udce9"], "is not UTF-8"),
    ):
        assert message in refused(acknowledge(*arguments))
    unheard = opened("--url", "http://127.0.0.1:9")
    assert "give the address of the running ragwatch with --url" in str(unheard.exception)
    assert refused(opened("--url", "file:///etc/passwd"))


BAD, WORSE = an_evidence((1, 0), (0, 0)), an_evidence((0, 0), (0, 0))


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a ragwatch: r1 is good, r2 bad, r3 worse, r4 older and as bad, r5 of another hour."""
    store = SqliteStore(tmp_path / "state")
    times = {"r1": AT - 10, "r2": AT - 20, "r3": AT - 30, "r4": AT - 40, "r5": AT - 9000}
    draws = [a_draw(name, at=at, route="other" if name == "r2" else "search") for name, at in times.items()]
    store.admit(an_admission(*draws))
    evidence = [an_evidence((1, 0)), BAD, WORSE, WORSE, WORSE]
    store.settle([a_verdict(draw, read) for draw, read in zip(draws, evidence, strict=True)])
    app = application(small(), store=store)
    one = Server(app, "127.0.0.1", 0)
    ports: SimpleQueue[int] = SimpleQueue()
    thread = Thread(target=lambda: asyncio.run(one.serve(started=ports.put)))
    thread.start()
    yield f"http://127.0.0.1:{ports.get(timeout=DEADLINE)}"
    one.stop()
    thread.join(DEADLINE)
    store.close()


opened = partial(command, "open")


def link(address: str, name: str) -> str:
    """The line of an answer."""
    return f"{address}/samples/{a_draw(name).key}?judge=embedded\n"


def test_the_worst_answer_of_the_time(address: str) -> None:
    """The lowest faithfulness, the newest of equal ones; a good answer is none: exit code 3 and no address."""
    result = opened("--url", f"{address}/")
    assert result.return_value == 0, result.exception
    assert result.stdout == link(address, "r3")
    assert result.stderr == "faithfulness 0.00, stage at fault generation, route search, 2023-11-14 22:12 UTC\n"
    assert opened("--url", address, "--route", "other").stdout == link(address, "r2")
    assert opened("--url", address, "--quantity", "faithfulness").stdout == link(address, "r3")
    assert opened("--url", address, "--since", "25s").stdout == link(address, "r2")
    for more in (["--since", "15s"], ["--since", "15s", "--quantity", "faithfulness"], ["--quantity", "contradiction"]):
        result = opened("--url", address, *more)
        assert (result.return_value, result.stdout) == (3, "")
        assert "choose an earlier --since" in result.stderr


def test_a_wrong_word_is_told(address: str, tmp_path: Path) -> None:
    """By name: of the running ragwatch for quantities and times, of the configuration for routes."""
    for more, named in (
        (["--quantity", "colour"], f"{address} refused: quantity: 'colour' is not known; use one of"),
        (["--since", "soon"], f"{address} refused: since: not a time"),
        (["--route", "caf\udce9"], "--route caf\udce9: is not UTF-8"),
    ):
        result = opened("--url", address, *more)
        assert refused(result)
        assert str(result.exception).startswith(named)
    config = tmp_path / "ragwatch.yaml"
    config.write_text(
        "sources: [{kind: tail, name: app, path: /nowhere/*}]\nroutes: [search]\n"
        f"web: {{listen: {address.removeprefix('http://')}, external_url: https://rag.example.org/watch/}}\n"
    )
    wrong = opened("--config", str(config), "--route", "gone")
    assert "use one of: search, other" in refused(wrong)
    assert opened("--config", str(config), "--route", "search").stdout == link("https://rag.example.org/watch", "r3")
    assert opened("--config", str(config), "--url", address).stdout == link(address, "r3")


def test_another_server_is_told() -> None:
    """What is not a reply of this version is one clear error, never a traceback or half an address."""
    verdict = {"key": "k", "judge_name": "j", "route": "r"}
    replies: list[object] = [
        [],
        {"samples": 1},
        {"samples": [{"verdict": None}]},
        {"samples": [{"verdict": {"key": "k"}}]},
        {"samples": [{"verdict": verdict | {"at": "now"}}]},
        {"samples": [{"verdict": verdict | {"at": 1e300, "scores": 3}}]},
    ]
    for said in replies:
        with answering(lambda _, said=said: (200, said, {})) as (address, _):
            result = opened("--url", address)
        assert "is not that of a ragwatch of this version" in refused(result, RagwatchError), said
        assert result.stdout == ""


CALLS: dict[str, Callable[[ApiClient], object]] = {
    "tasks": lambda client: client.tasks("ann", 1),
    "put": lambda client: client.put([]),
    "revoke": lambda client: client.revoke("k", None),
    "labels": lambda client: client.labels(),
    "answer": lambda client: client.answer("k"),
    "worst": lambda client: client.worst({}),
    "incident": lambda client: client.incident({}),
    "acknowledge": lambda client: client.acknowledge({}),
    "overview": lambda client: _looked(client.address),
}


def _looked(url: str) -> None:
    if error := command("status", "--url", url).exception:
        raise error


@pytest.mark.parametrize("said", [b'{"a": 1}', b"[1]", b"null", b"hello", b"<!doctype html>", b"", b"\xff"])
def test_another_service_is_told(said: bytes) -> None:
    """Whatever is asked of it, what it answers is one clear error; nothing of it is shown, or taken for success."""
    with answering(lambda _: (200, said, {})) as (url, _):
        for name, call in CALLS.items():
            with pytest.raises(RagwatchError, match="is not that of a ragwatch of this version"):
                print(name, call(ApiClient(url)))


@pytest.mark.parametrize(("begin", "said"), [
    (b"HTTP/1.1 200", "not the whole of it within 1 s; give the address"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", "not the whole of it within 1 s; give the address"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "it does not speak HTTP"),
])  # fmt: skip
def test_a_response_has_a_whole_deadline(begin: bytes, said: str) -> None:
    """It ends a response of which a byte comes now and then, in its head or body."""
    with dripping(begin) as url, pytest.raises(ExternalError, match=said):
        ApiClient(url, seconds=1.0).overview(None)


@pytest.mark.parametrize(("length", "said"), [(10, "its response ends too early"), (0, "more than 16 MiB")])
def test_a_response_is_bounded_and_whole(length: int, said: str) -> None:
    """One that is too long is refused, and so is one of which a part is missing."""
    body = b"1" if length else bytes(MAX_BYTES + 1)
    headers = {"Content-Length": str(length or len(body)), "Connection": "close"}
    with answering(lambda _: (200, body, headers)) as (url, _), pytest.raises(ExternalError, match=said):
        ApiClient(url).overview(None)


def test_why_there_is_no_response_is_told() -> None:
    """A closed port and TLS where there is none say what to do."""
    with answering(reply) as (url, _):
        assert "does not speak TLS; give" in refused(acknowledge("--url", url.replace("http", "https")), ExternalError)
    closed = refused(acknowledge("--url", url), ExternalError)
    assert "no response: Connection refused; start `ragwatch run`, or give" in closed


def test_code_and_text() -> None:
    """The code says how quality is; an unknown route, and another server, are errors."""
    empty = overview(None, PageScope(routes=("search", "support"), windows=("1h", "1d")), now=0.0)
    full = overview(Snapshot(at=0.0, problems=("disk is full",)), PageScope(), now=0.0)
    bad = {**empty, "state": "bad", "headline": "Quality is worse"}
    views: list[tuple[object, list[str], int | type[Exception], str]] = [
        (empty, [], 3, "No data yet"),
        (bad, ["--route", "search"], 1, "route search"),
        ({**empty, "state": "unsure"}, ["--json"], 0, '"state": "unsure"'),
        (full, [], 3, "not ready: disk is full"),
        (empty, ["--route", "none"], ConfigError, "is not configured; use one of: search, support"),
        (empty, ["--route", "other"], ConfigError, "--route other: has no answers; use one of: search, support"),
        ({"state": "good"}, [], RagwatchError, "not that of a ragwatch of this version"),
    ]
    for view, arguments, code, text in views:
        with answering(lambda _, view=view: (200, view, {})) as (url, _):
            done = command("status", "--url", url, *arguments)
        if isinstance(code, int):
            assert (done.return_value, text in done.output) == (code, True), arguments
        else:
            assert text in refused(done, code)


@pytest.mark.parametrize(("command_line", "asked"), [
    (["status"], "/api/v1/snapshot"), (["open"], "/api/v1/samples"), (["acknowledge"], "/-/drift/acknowledge"),
    (["incident", "--since", "1h"], "/incident.md"),
])  # fmt: skip
def test_the_usual_configuration_names_the_address(
    command_line: list[str], asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that ask the daemon find it at `web.listen` of the file in the folder, as `run` does."""
    monkeypatch.chdir(tmp_path)
    with answering(lambda _: (404, b"<!doctype html><title>Error</title>", {})) as (url, requests):
        config = {
            "state": "state",
            "sources": [{"kind": "push", "name": "app"}],
            "web": {"listen": url.removeprefix("http://")},
        }
        (tmp_path / "ragwatch.yaml").write_text(json.dumps(config))
        assert "a web page, and no reply of ragwatch" in refused(command(*command_line), RagwatchError)
        assert requests[0].path == asked


def test_status_fits_into_a_terminal() -> None:
    """No figure is cut at 80 characters, and what is not calibrated is marked and explained."""
    level = {"value": 0.8, "low": 0.61, "high": 1.0, "n": 31, "labels": 0, "labels_given": 0, "calibrated": False}
    given = {"lower_is_better": False, "threshold": 0.85, "state": "plain", "value": 0.98, "n": 12345}
    figures = [{**given, "quantity": "context_sentence_precision", "corrected": level}]
    figures += [{**given, "quantity": "faithfulness", "corrected": {**level, "labels": 27, "labels_given": 52}}]
    route = {"route": "web", "drawn": 2150.0, "stages": [{"stage": "none", "share": 1.0}]}
    view = {**overview(None, PageScope(), now=0.0), "window": "15m", "state": "plain"}
    view |= {"routes": [{**route, "judges": [{"judge": "embedded", "why": None, "figures": figures}]}]}
    with answering(lambda _: (200, view, {})) as (url, _):
        shown = command("status", "--url", url).output
    row = "context sentence precision 0.61 .. 1.00 * 0.980 >= 0.85 12345"
    assert row in [" ".join(line.split()) for line in shown.splitlines()]
    assert "2,150 sampled in all; stage at fault in 15m: good 100%" in shown
    assert "* not calibrated: wide until people have labelled about 50 answers of a route" in shown
    assert [line for line in shown.splitlines() if "given" in line] == [
        "* faithfulness: not calibrated, 27 of 50 labels (52 given; they age)"
    ]
    assert max(map(len, shown.splitlines()[2:])) <= 80


def test_another_server_writes_no_incident(tmp_path: Path) -> None:
    """What is no incident is an error, and no file is written."""

    def reply(asked: Asked) -> Reply:
        return 200, b"# Incident on all routes" if asked.query["since"] == "14:00" else b"<html>", {}

    out = tmp_path / "incident.md"
    with answering(reply) as (url, _):
        assert refused(command("incident", "--url", url, "--out", out, "--since", "1h"), RagwatchError)
        assert not out.exists()
        assert refused(command("incident", "--url", url, "--out", tmp_path / "no" / "such", "--since", "14:00"))
        assert command("incident", "--url", url, "--out", out, "--since", "14:00").return_value == 0
    assert out.read_text() == "# Incident on all routes"


def test_the_configuration_is_looked_for_here_and_in_etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --config the file in the folder counts, then the one of the system; else the error says what to do."""
    monkeypatch.chdir(tmp_path)
    system = tmp_path / "etc.yaml"
    monkeypatch.setattr(options, "CONFIG_FILES", (Path("ragwatch.yaml"), system))
    missing = CliRunner().invoke(cli, ["causes"])
    assert (missing.exit_code, "write one with `ragwatch init`" in missing.output) == (2, True)
    for file in (system, tmp_path / "ragwatch.yaml"):
        file.write_text("nonsense: 1\n")
        error = CliRunner().invoke(cli, ["causes"], standalone_mode=False).exception
        assert f"{file.name}: nonsense" in str(error) or "nonsense" in str(error)


TOKEN = "0123456789abcdef"  # noqa: S105 - of a test


def let_in(asked: Asked) -> Reply:
    """Answer whoever has the token; requests below /moved are sent elsewhere."""
    if asked.path.startswith("/moved/"):
        return 303, b"", {"Location": f"http://localhost:{asked.headers['Host'].partition(':')[2]}/elsewhere"}
    right = asked.headers.get("Authorization") == f"Bearer {TOKEN}"
    said = b"no alarm is active" if asked.path.startswith("/-/") else {"tasks": []}
    return (200, said, {}) if right else (401, b"This address needs a token.\n", {})


def test_a_token_comes_from_the_option_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option is first, then the file that a variable names, then the variable itself; else there is none.

    What is wrong with a file is told, without what it holds.
    """
    monkeypatch.delenv("RAGWATCH_TOKEN", raising=False)
    monkeypatch.delenv("RAGWATCH_TOKEN_FILE", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("RAGWATCH_TOKEN", "of-the-environment")
    assert read_token(None) == "of-the-environment"
    (tmp_path / "named").write_text("of-the-named-file\n")
    monkeypatch.setenv("RAGWATCH_TOKEN_FILE", str(tmp_path / "named"))
    assert read_token(None) == "of-the-named-file"
    (tmp_path / "given").write_text("of-the-given-file")
    assert read_token(tmp_path / "given") == "of-the-given-file"
    for content, expected in ((b"", "is empty"), (b"a b", "more than a token"), (b"\xff", "not text")):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(ConfigError, match=f"--token-file: .*{expected}"):
            read_token(tmp_path / "token")
    with pytest.raises(ConfigError, match=r"--token-file: .* cannot be read"):
        read_token(tmp_path / "gone")


def test_commands_send_the_token(tmp_path: Path) -> None:
    """`acknowledge` and the client of labels are let in with the token, and say what to give without it."""
    (tmp_path / "token").write_text(TOKEN)
    wanted = r"401: This address needs a token\. give a token with --token-file"
    with answering(let_in) as (url, _):
        assert command("acknowledge", "--url", url, "--token-file", tmp_path / "token").exception is None
        assert ApiClient(url, TOKEN).tasks("ann", 1) == []
        assert re.search(wanted, refused(command("acknowledge", "--url", url), ExternalError))
        with pytest.raises(RagwatchError, match=wanted):
            ApiClient(url).tasks("ann", 1)


@pytest.mark.parametrize(
    "url", ["http://u:word@127.0.0.1:1", "http://word@127.0.0.1:1", "u:word@h", "http://u:word@[::1"]
)
def test_x5_no_command_shows_the_login_of_a_url(url: str) -> None:
    """It is refused, and the way to give a token is named where the rest is right."""
    for name in ("acknowledge", "status"):
        said = refused(command(name, "--url", url), ConfigError)
        assert "word" not in said.replace("password", "")
        assert ("--token-file" in said) == ("127.0.0.1" in url)


def test_a_token_is_not_sent_elsewhere() -> None:
    """Where a server redirects to gets no token."""
    with answering(let_in) as (url, asked), pytest.raises(RagwatchError):
        ApiClient(f"{url}/moved", TOKEN).labels()
    seen = [(one.path, one.headers.get("Authorization")) for one in asked]
    assert seen == [("/moved/api/v1/labels", f"Bearer {TOKEN}"), ("/elsewhere", None)]


def test_an_authority_of_your_own_is_named_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is not trusted says what to set; with SSL_CERT_FILE the commands are answered."""
    authority = Authority(tmp_path)
    pair = authority.issue("server", "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with answering(let_in, context) as (url, _):
        with pytest.raises(RagwatchError, match="name the file of that authority in SSL_CERT_FILE"):
            ApiClient(url, TOKEN).tasks("ann", 1)
        assert "in SSL_CERT_FILE" in refused(command("acknowledge", "--url", url), ExternalError)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.cert))
        assert ApiClient(url, TOKEN).tasks("ann", 1) == []
