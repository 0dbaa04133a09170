"""A wrong value is told with its key and what to write instead, in words of the configuration and not of pydantic."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragwatch.config import Config, load
from ragwatch.config.text import resolve_secrets, value_of
from ragwatch.errors import ConfigError

SOURCE = "sources: [{kind: tail, name: app, path: app.jsonl}]\n"
PROBE = "{kind: http, url: 'http://localhost/', body: '{{ query }}', contexts: passages}"
EMPTY = "is empty; write its value or its keys, or remove it"
NO_PATH = "is empty; write a path, or remove this key"
NUL = "contains the character NUL, which no path or header can hold; leave it out"


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("route_treshold: {}", "route_treshold: is not a known key; did you mean `thresholds.routes`?"),
        ("route_thresholds: {}", "route_thresholds: is not a known key; did you mean `thresholds.routes`?"),
        ("alerts: {route_slos: {}}", "alerts.route_slos: is not a known key; did you mean `alerts.slos.routes`?"),
        ("alerts: {route_slo: {}}", "alerts.route_slo: is not a known key; did you mean `alerts.slos.routes`?"),
        ("treshold: {}", "treshold: is not a known key; did you mean `thresholds`?"),
        (
            "alerts: {slos: {routes: {faq: {faithfulness: {objectiv: 0.9, objective: 0.9}}}}}",
            "alerts.slos.routes.faq.faithfulness.objectiv: is not a known key; did you mean `objective`?",
        ),
    ],
)
def test_suggested_keys_exist(tmp_path: Path, text: str, message: str) -> None:
    """They can be written as they are suggested."""
    assert told(tmp_path, text) == message


@pytest.mark.parametrize("text", ["zzz: 1", "alerts: {zzz: 1}"])
def test_listed_keys_exist(tmp_path: Path, text: str) -> None:
    """A list of the keys has no name of a field that is no key."""
    message = told(tmp_path, text)
    assert "use one of: " in message
    assert "route_" not in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drift: {tolerance: 1e-3}", "drift.tolerance: '1e-3' is read as a text; write 0.001, without quotes"),
        ("drift: {tolerance: '0.5'}", "drift.tolerance: '0.5' is read as a text; write 0.5, without quotes"),
        ("alerts: {rejects: 1E-7}", "alerts.rejects: '1E-7' is read as a text; write 0.0000001, without quotes"),
        ("labels: {share_unsure: 0e0}", "labels.share_unsure: '0e0' is read as a text; write 0, without quotes"),
        ("drift: {tolerance: 1e-999999999}", "drift.tolerance: is not a number; write one"),
        ("drift: {tolerance: few}", "drift.tolerance: is not a number; write one"),
        ("drift: {tolerance: nan}", "drift.tolerance: is not a number; write one"),
        (
            "gate: {metrics: {faithfulness: 1e-3}}",
            "gate.metrics.faithfulness.threshold: '1e-3' is read as a text; write 0.001, without quotes",
        ),
    ],
)
def test_numbers_that_yaml_reads_as_texts(tmp_path: Path, text: str, message: str) -> None:
    """YAML 1.1 wants a point and a sign in the exponent."""
    assert told(tmp_path, text) == message


def test_texts_that_look_like_numbers_stay_texts(tmp_path: Path) -> None:
    """Such as the short hash of a commit."""
    assert read(tmp_path, "routes: [1e5, 12e3456]").settings.routes == ("1e5", "12e3456")
    assert value_of("1e5") == "1e5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("audit: {file: ''}", f"audit.file: {NO_PATH}"),
        ("audit: {file: '${RAGWATCH_NOT:-}'}", f"audit.file: {NO_PATH}"),
        ("audit: {file: /}", "audit.file: '/' is a directory; write the path of a file"),
        ("state: ''", f"state: {NO_PATH}"),
        ("anchors: {file: ''}", f"anchors.file: {NO_PATH}"),
        ("web: {config_file: ''}", f"web.config_file: {NO_PATH}"),
        ("export: {otlp: {endpoint: 'http://x', ca_file: ''}}", f"export.otlp.ca_file: {NO_PATH}"),
        (f"canaries: [{{suite: s, file: '', probe: {PROBE}}}]", "canaries[0].file: '' is not a path; write one"),
    ],
)
def test_empty_paths_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """As a path, an empty text would be the working directory."""
    assert told(tmp_path, text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r'state: "/x\0"', f"c.yaml: state: {NUL}"),
        (r'anchors: {file: "a\0"}', f"c.yaml: anchors.file: {NUL}"),
        (r'web: {config_file: "a\0"}', f"c.yaml: web.config_file: {NUL}"),
        (r'sources: [{kind: tail, name: app, path: "/tmp/x\0"}]', f"c.yaml: sources[0].path: {NUL}"),
        (r'web: {"a\0b": 1}', rf"c.yaml: web.a\0b: {NUL}"),
    ],
)
def test_nul_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The operating system takes it for the end of a path."""
    assert told(tmp_path, text) == message


@pytest.mark.parametrize("text", [r'state: "\ud800"', r'redaction: {salt: "\ud800"}'])
def test_half_of_a_surrogate_pair_is_refused(tmp_path: Path, text: str) -> None:
    """No encoding has it."""
    assert "contains half of a surrogate pair; write" in told(tmp_path, text)


def test_variables_are_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reads other bytes as halves of surrogate pairs, which no encoding has."""
    monkeypatch.setenv("RAGWATCH_LATIN", os.fsdecode(b"gr\xfcn"))
    with pytest.raises(ConfigError, match="a: environment variable RAGWATCH_LATIN is not UTF-8 text; set it to one"):
        resolve_secrets({"a": "${RAGWATCH_LATIN}"}, tmp_path)


def test_confidence_has_a_limit(tmp_path: Path) -> None:
    """Beyond it an interval would have no ends."""
    assert read(tmp_path, "estimates: {confidence: 0.9999}").settings.estimates.confidence == 0.9999
    message = told(tmp_path, "estimates: {confidence: 0.9999999999999999}")
    assert message == "estimates.confidence: input should be less than or equal to 0.9999"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((f"{key}:", f"{key}: {EMPTY}") for key in ("web", "state", "drain", "thresholds", "routes")),
        ("log: {level: }", f"log.level: {EMPTY}"),
        ("sources: [{kind: tail, name: app, path: }]", f"sources[0].path: {EMPTY}"),
        ("state: 5", "state: is not a path; write one"),
        ("web: 5", "web: is not a mapping; write its keys below it"),
        ("segments: 5", "segments: is not a mapping; write its keys below it"),
        ("events: {metadata: release}", "events.metadata: is a text; write a list, such as [a, b]"),
        ("web: {hosts: x}", "web.hosts: is a text; write a list, such as [a, b]"),
        ("web: {hosts: 5}", "web.hosts: is not a list; write a list, such as [a, b]"),
        ("segments: {a: []}", "segments.a: is empty; give at least 1"),
        ("alerts: {windows: [1h]}", "alerts.windows: has too few items; give at least 2"),
        (
            "events: {metadata: [a, a, a, a, a, a, a, a, a, a, a]}",
            "events.metadata: has more than 10 items; leave some out",
        ),
        ("7: x", "[7]: the key 7 is not a text; write it in quotes"),
        ("yes: x", "[1]: the key true is not a text; write it in quotes"),
        ("log: {level: info, format: 5}", "log.format: 5 is not known; use 'json' or 'text'"),
        ("redaction: {enabled: []}", "redaction.enabled: is neither true nor false; write one of them"),
        ("judging: {batch: []}", "judging.batch: is not a whole number; write one"),
    ],
)
def test_messages_say_what_to_write(tmp_path: Path, text: str, message: str) -> None:
    """And nothing of the program that reads it."""
    assert told(tmp_path, text) == message


def test_a_wrong_item_is_told_once(tmp_path: Path) -> None:
    """A list whose only item is wrong is not empty."""
    message = told(tmp_path, f"canaries: [{{suite: s, k: [0], items: [{{query: q, expected: [a]}}], probe: {PROBE}}}]")
    assert message == "canaries[0].k[0]: input should be greater than or equal to 1"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("drift: {detector: cusum}", "drift.threshold: is for cusum and page_hinkley"),
        ("drift: {controls: {a: b, b: c}}", "drift.controls: 'b' is a control and has one; name"),
        ("anchors: {file: a, every: 100d}", "anchors.false_alarm_every: is not longer than `every`"),
        ("alerts: {window: 2h}", "alerts.window: is not one of `windows`, or the longest"),
        ("alerts: {windows: [1h, 15m]}", "alerts.windows: must rise, such as [15m, 1h, 1d]"),
        ("alerts: {slos: {faithfulness: {objective: 0.1}}}", "alerts.slos.faithfulness: burns[0] can never fire"),
        (
            "alerts: {slos: {faithfulness: {objective: 0.9}}, burns: [{long: 2h, short: 1h, budget: 0.1}]}",
            "alerts.burns: long and short must be of `windows`",
        ),
        ("judging: {lease: 1s}", "judging.lease: is shorter than timeout"),
        ("gate: {metrics: {mrr: {severity: warn}}}", "gate.metrics.mrr: has no threshold; give one"),
    ],
)
def test_keys_that_contradict_one_another(tmp_path: Path, text: str, start: str) -> None:
    """The path is that of the key that is to be changed, not of its section."""
    assert told(tmp_path, text).startswith(start)


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
