"""`ragwatch forget`, commands that need texts where the store does not keep them, and `ragwatch redact`."""

import json
import os
from pathlib import Path

import pytest
from support.callers import canned
from support.command_line import command, configured, refused
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission

from ragwatch.audit import verify
from ragwatch.commands.check import check_all
from ragwatch.commands.check_settings import Finding
from ragwatch.commands.forget import MAX_SEARCHED_BYTES, copies_elsewhere
from ragwatch.commands.redact import MAX_BYTES
from ragwatch.config import load
from ragwatch.errors import ConfigError
from ragwatch.ports import Query
from ragwatch.redaction.redactor import Redactor
from ragwatch.stores import KINDS
from ragwatch.stores.lock import StateLock
from ragwatch.stores.sqlite.store import SqliteStore

MAIL = "anna.example@example.org"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with a judged answer of anna and one of bob; a suite and anchors, one of which quote her."""
    store = SqliteStore(tmp_path / "state")
    draws = [
        a_draw(f"request-of-{name}", question=f"Where is the parcel of {name}?", metadata={"user": user})
        for name, user in (("anna", Redactor().redact(MAIL)), ("bob", "bob"))
    ]
    store.admit(an_admission(*draws, a_draw("waiting", metadata={"user": "anna"})))
    store.prepare_batch(JUDGE, {a_draw("waiting").key: 1}, "seed", now=AT)
    store.settle([a_verdict(draw) for draw in draws])
    store.close()
    (tmp_path / "state" / "ragwatch.db.bak").touch()
    (tmp_path / "suite.yaml").write_text("items: [{query: 'Where is the parcel of anna?', expected: [d1]}]\n")
    (tmp_path / "anchors.jsonl").write_text('{"question": "x", "contexts": ["y"], "answer": "z"}\n')
    path = tmp_path / "ragwatch.yaml"
    path.write_text(
        f"state: {tmp_path}/state\nsources: [{{kind: tail, name: app, path: '{tmp_path}/log/*'}}]\n"
        "canaries: [{suite: docs, file: suite.yaml, probe: {kind: http, url: 'http://127.0.0.1:1/', contexts: a,"
        " params: {q: '{{ query }}'}}}]\n"
        "anchors: {file: anchors.jsonl}\naudit: {file: audit.jsonl}\n"
        "judges: [{name: embedded, kind: lexical}, {name: big, kind: openai, model: m, base_url: 'http://127.0.0.1:1/v1'}]\n"
    )
    return path


def privacy(config: Path) -> list[Finding]:
    """What `check` says of texts, keys and the audit log."""
    return [one for one in check_all(load(config)) if one.subject.startswith(("store.", "audit."))]


def test_a_person_is_erased(config: Path) -> None:
    """By the value before redaction; copies elsewhere are listed, of the state only what is not its own."""
    (config.parent / "state" / "ragwatch.secret").touch()
    (config.parent / "state" / "ragwatch.tmp").mkdir(exist_ok=True)
    result = command("forget", "--config", config, "--metadata", f"user={MAIL}")
    assert result.return_value == 0, result.output
    assert "1 answers erased: texts, metadata, ids and notes; scores and labels remain" in result.output
    assert result.output.count("beside the database") == 1
    for line in (
        "not erased: {folder}/state/ragwatch.db.bak: beside the database; delete it if it is a backup",
        "not erased: {folder}/log/*: the logs of source app; what is not read yet will be stored",
        "not erased: {folder}/suite.yaml: line 1 contains one of the texts; edit it",
        "not erased: {folder}/anchors.jsonl: contains none of the ids and texts",
        "not erased: judge big: texts were sent to http://127.0.0.1:1/v1; see its retention",
        "not erased: backups of the state, exported files",
    ):
        assert line.format(folder=config.parent) in result.output
    store = SqliteStore(config.parent / "state")
    assert [row.sample is None for row in store.find(Query())] == [False, True]
    store.close()
    log = config.parent / "audit.jsonl"
    (line,) = map(json.loads, log.read_text().splitlines())
    assert (line["action"], line["keys"]) == ("forget", [a_draw("request-of-anna").key])
    assert verify([log]).error is None


def test_pending_draws_batches_and_other_rows_are_counted(config: Path) -> None:
    """A dry run, with the state alone, counts the same and writes no audit log; saved states are part of the report."""
    state = config.parent / "state"
    result = command("forget", "--state", state, "--metadata", "user=anna", "--dry-run")
    assert '1 pending draws: would become unjudged{reason="erased"}' in result.output
    assert "1 of them are in a message batch at the provider" in result.output
    assert command("forget", "--state", state, "waiting", "--with-scores").return_value == 0
    assert command("forget", "--state", state, "waiting-not").return_value == 3
    assert not (config.parent / "audit.jsonl").exists()
    store = SqliteStore(config.parent / "state")
    store.remember("x", {"question": "Where is the parcel of anna?"})
    store.close()
    assert (
        "1 canary runs, states and events with these texts"
        in command("forget", "--config", config, "request-of-anna").output
    )


def test_the_usual_configuration_is_used(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither a configuration nor a state is given, as by other commands."""
    monkeypatch.chdir(config.parent)
    assert command("forget", "waiting-not").return_value == 3


def test_wrong_use_is_explained(config: Path) -> None:
    """The error says what to give instead; without an address it names the process that has the state."""
    for arguments, message in (
        ((), "--config: is missing"),
        (("--state", "none"), "ID: is missing"),
        (("--state", "none", "x"), "contains no ragwatch.db"),
        (("--state", "none", "--metadata", "user"), "is not a key and a value"),
    ):
        assert message in str(command("forget", *arguments).exception)
    lock = StateLock(config.parent / "state")
    config.write_text(f"{config.read_text()}web: {{listen: '127.0.0.1:1'}}\n")
    try:
        error = str(command("forget", "--state", config.parent / "state", "x").exception)
        assert f"in use by a running ragwatch (process {os.getpid()}); give --config or --url" in error
        assert "127.0.0.1:1/v1/forget: no response" in str(command("forget", "--config", config, "x").exception)
    finally:
        lock.close()


def test_a_running_ragwatch_is_asked(config: Path) -> None:
    """The request has ids and values as they are and as redaction leaves them; copies elsewhere are listed."""
    counts = {"answers": 1, "verdicts": 1, "labels": 0, "pending": 0, "batched": 0, "others": 2, "complete": True}
    with canned((200, {}, counts)) as (address, sent):
        result = command("forget", "--config", config, "--url", address, "--metadata", f"user={MAIL}", "--dry-run")
    assert result.return_value == 0, result.output
    assert "2 canary runs, states and events" in result.output
    assert f"not erased: {config.parent}/suite.yaml: line 1 contains one of the texts; edit it" in result.output
    assert sent == [
        {
            "ids": [],
            "metadata": sorted([["user", MAIL], ["user", Redactor().redact(MAIL)]]),
            "with_scores": False,
            "dry_run": True,
        }
    ]
    assert not (config.parent / "audit.jsonl").exists()  # the one that is asked writes its line


def test_another_ragwatch_is_noticed(config: Path) -> None:
    """One with another state has not erased these answers, whatever it says; one of another version is told."""
    for reply, arguments, message in (
        ({"answers": 1}, (), "still contains these answers"),
        ({"answers": 0}, ("--dry-run",), "still contains these answers"),
        ({"answers": 1}, ("--dry-run",), "not that of a ragwatch of this version"),
        ({}, ("--dry-run",), "not that of a ragwatch of this version"),
    ):
        with canned((200, {}, reply)) as (address, _):
            words = ("forget", "--config", config, "--url", address, "request-of-anna", *arguments)
            assert message in str(command(*words).exception), (reply, arguments)


def test_files_that_are_too_large_or_gone(config: Path, tmp_path: Path) -> None:
    """A large suite is named without being searched; one that is gone is an error; a large log is not redacted."""
    loaded = load(config)
    os.truncate(config.parent / "anchors.jsonl", MAX_SEARCHED_BYTES + 1)
    assert any("too large to be searched" in line for line in copies_elsewhere(loaded, config, []))
    (config.parent / "anchors.jsonl").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        list(copies_elsewhere(loaded, config, []))
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert "split it" in str(command("redact", path).exception)


def test_what_needs_texts_says_that_they_are_not_kept(config: Path) -> None:
    """Nobody takes a part of the answers, which would be a biased one, for all of them."""
    whole = config.read_text()
    for texts in ("failing", "none"):
        config.write_text(f"{whole}store: {{kind: sqlite, texts: {texts}}}\n")
        for words in (("canary", "suggest"), ("compare", "a", "b", "--live"), ("label", "--annotator", "ann")):
            error = refused(command(*words, "--config", config))
            assert error.startswith(f"store.texts: is {texts}, and ")
        alone = command("diagnose", "--config", config).output  # it has canary runs
        assert ("store.texts is none: answers without texts are left out" in alone) is (texts == "none")


def test_check_reports_what_privacy_costs(config: Path) -> None:
    """Consequences of `store.texts`, readable key files and a broken audit log are warnings; missing keys fail."""
    (config.parent / "audit.jsonl").write_text("{}\n")
    config.write_text(f"{config.read_text()}store: {{kind: sqlite, texts: none}}\n")
    states = {finding.subject: (finding.state, finding.detail) for finding in privacy(config)}
    assert states["store.texts"][0] == "warning"
    assert states["store.encryption"][0] == "ok"
    assert "the chain is broken" in states["audit.file"][1]
    (config.parent / "audit.jsonl").unlink()
    assert [finding.state for finding in privacy(config)] == ["warning", "ok", "ok"]
    config.write_text(config.read_text().replace("file: audit.jsonl", "file: none/audit.jsonl"))
    assert [finding.state for finding in privacy(config)][2] == "failed"
    config.write_text(config.read_text().replace("texts: none", "encryption: {key_file: none}"))
    assert [finding.state for finding in privacy(config)][:2] == ["ok", "failed"]


def test_check_tests_the_keys_on_the_state(config: Path) -> None:
    """The wrong key is found before the daemon starts; so is a key file that others may read."""
    pytest.importorskip("cryptography", reason="needs the extra encryption")

    key = config.parent / "key"
    key.write_text("ab" * 32)
    config.write_text(f"{config.read_text()}store: {{kind: sqlite, encryption: {{key_file: key}}}}\n")
    assert [finding.state for finding in privacy(config)][1] == "warning"
    key.chmod(0o600)
    loaded = load(config)
    store = KINDS["sqlite"].build(loaded.store.options, loaded.settings.state)
    store.remember("x", {"a": 1})
    store.close()
    assert [finding.state for finding in privacy(config)][1] == "ok"
    assert command("forget", "--config", config, "--dry-run", "request-of-anna").return_value == 0
    key.write_text("cd" * 32)
    findings = list(privacy(config))
    assert (findings[1].state, "encrypted with key" in findings[1].detail) == ("failed", True)
    assert "encrypted with key" in str(command("diagnose", "--config", config).exception)


def test_redact_shows_places_and_masks_values(tmp_path: Path) -> None:
    """Nothing of a short value is shown, and the first two characters of a long one; without any, exit code 0."""
    path = tmp_path / "log.txt"
    path.write_text("fine\nask ann@example.org or 10.0.0.1\n")
    result = command("redact", path)
    assert result.return_value == 1
    assert result.stdout.splitlines() == [
        f"{path}:2:5: email: an*** (15 characters)",
        f"{path}:2:24: ipv4: *** (8 characters)",
    ]
    assert "2 values would be redacted" in result.stderr
    result = command("redact", "-", said="a plain text")
    assert (result.return_value, result.stdout) == (0, "")


def test_redact_uses_the_rules_of_a_configuration(tmp_path: Path) -> None:
    """They are used; JSON holds the findings and their counts; an unsafe one is refused with what to write instead."""
    words = ("redact", "-", "--json", "--config")

    def own(pattern: str) -> dict[str, object]:
        return {"rules": [{"name": "employee", "pattern": pattern}]}

    result = command(*words, configured(tmp_path, redaction=own("EMP-[0-9]{6}")), said="ask EMP-123456")
    said = json.loads(result.stdout)
    assert (result.return_value, said["counts"]) == (1, {"employee": 1})
    place = {"rule": "employee", "kind": "CUSTOM", "line": 1, "column": 5, "length": 10}
    assert said["findings"][0].items() >= place.items()
    error = refused(command(*words, configured(tmp_path, redaction=own("(a+)+b")), said="x"))
    assert "redaction.rules[0].pattern" in error
    assert "{1,64}" in error
