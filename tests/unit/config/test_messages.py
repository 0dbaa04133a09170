"""A wrong value is told with its key and what to write instead, in words of the configuration and not of pydantic."""

import json
import os
from pathlib import Path

import pytest
from support.sentences import written_and_said

from ragwatch.config import Config, load
from ragwatch.config.text import resolve_secrets, value_of
from ragwatch.errors import ConfigError

SOURCE = "sources: [{kind: tail, name: app, path: app.jsonl}]\n"
PROBE = "{kind: http, url: 'http://localhost/', body: '{{ query }}', contexts: passages}"
CONFIGS = Path(__file__).parents[2] / "data" / "configs"
FILES = sorted(CONFIGS.glob("invalid-*.yaml"))
assert len(FILES) >= 20, "the folder is elsewhere"


def read(folder: Path, text: str) -> Config:
    """The configuration of these keys and one source."""
    path = folder / "c.yaml"
    path.write_text(text if text.startswith("sources:") else SOURCE + text)
    return load(path)


def told(folder: Path, text: str) -> str:
    """What is told about a wrong configuration."""
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    return str(caught.value)


@pytest.mark.parametrize(("text", "message"), written_and_said("configs/messages.txt"))
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Every error begins with the key as it stands in the file and says what to write instead; none shows a secret."""
    said = told(tmp_path, text)
    assert said == message or (message.startswith("... ") and said.startswith(message.removeprefix("... ")))
    assert "s3cret" not in said


def test_routes_are_texts(tmp_path: Path) -> None:
    """A short hash of a commit is no number; what services call their routes can be listed as it is.

    A list of the keys has no name of a field that is no key.
    """
    routes = ("1e5", "12e3456", "/search", "/v1/items/{id}", "chat:v2", "~beta")
    assert read(tmp_path, f"routes: {json.dumps(routes)}".replace('"1e5"', "1e5")).settings.routes == routes
    assert value_of("1e5") == "1e5"
    for message in (told(tmp_path, "zzz: 1"), told(tmp_path, "alerts: {zzz: 1}")):
        assert "use one of: " in message
        assert "route_" not in message


def test_variables_are_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reads other bytes as halves of surrogate pairs, which no encoding has."""
    monkeypatch.setenv("RAGWATCH_LATIN", os.fsdecode(b"gr\xfcn"))
    with pytest.raises(ConfigError, match="a: environment variable RAGWATCH_LATIN is not UTF-8 text; set it to one"):
        resolve_secrets({"a": "${RAGWATCH_LATIN}"}, tmp_path)


JUDGE = "judges: [{{name: j, kind: {}, model: m, api_key: k, prices: {{input: 1, output: 2}}, base_url: URL}}]"
WITH_URLS = [
    *map(JUDGE.format, ("claude", "openai")),
    "sources: [{kind: nats, name: n, url: URL, stream: s, consumer: c}]",
    "sources: [{kind: redis_streams, name: r, url: URL, stream: s, group: g}]",
    "sources: [{kind: sqs, name: q, queue_url: URL}]",
    "sources: [{kind: otlp, name: o, resolve: {url: URL}}]",
    "sources: [{kind: otlp, name: o, grpc: {listen: URL}}]",
    "export: {otlp: {endpoint: URL}}",
    "web: {external_url: URL}",
    "web: {trace_url: URL}",
    "web: {listen: URL}",
    "store: {kind: postgres, url: URL}",
    "canaries: [{suite: s, file: f, probe: {kind: http, url: URL, contexts: passages}}]",
]


@pytest.mark.parametrize("keys", WITH_URLS)
def test_x5_no_message_shows_the_login_of_a_url(tmp_path: Path, keys: str) -> None:
    """Whatever is wrong with the URL besides."""
    for url in (
        *("http://u:word@h/", "u:word@h:1", "http:/u:word@h", "http://u:word@[::1/x", "ftp://u:w@word@h/x"),
        *("http://u:word/b@h/x", "http://u:word@/x", "http://u:word x@h/x", "//u:word@h", "http://word@[::1"),
    ):
        said = ""
        try:
            read(tmp_path, keys.replace("URL", json.dumps(url)))
        except ConfigError as error:
            said = str(error).replace("password", "")
        assert "word" not in said, url


def test_errors_of_files_name_the_key(tmp_path: Path) -> None:
    """One of several files is found by the key that names it; each line stands by itself."""
    (tmp_path / "a.jsonl").write_text('{"query": 1}\nnope\n')
    (tmp_path / "suite.yaml").write_text("items: [{query: 1, qery: x}]")
    anchors = told(tmp_path, "anchors: {file: a.jsonl}").splitlines()
    assert [line.split(": ")[1] for line in anchors] == ["a.jsonl line 1", "a.jsonl line 2"]
    assert all(line.startswith("anchors.file: ") for line in anchors)
    assert told(tmp_path, f"canaries: [{{suite: s, file: suite.yaml, probe: {PROBE}}}]").splitlines() == [
        "canaries[0].file: suite.yaml: items[0].query: is not a text; write it in quotes",
        "canaries[0].file: suite.yaml: items[0].qery: is not a known key; did you mean `query`?",
    ]
    missing = told(tmp_path, f"canaries: [{{suite: s, file: gone.yaml, probe: {PROBE}}}]")
    assert missing.startswith(f"canaries[0].file: {tmp_path}/gone.yaml: cannot be read: No such file")


@pytest.mark.costly
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.removeprefix("invalid-"))
def test_x18_wrong_files_say_what_is_wrong(path: Path) -> None:
    """Every wrong file of the test data is refused with the line that its first comment expects."""
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# expect: ")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert expected in str(caught.value)
