"""A wrong value is told with its key and what to write instead, in words of the configuration and not of pydantic."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ragwatch.config import Config, load
from ragwatch.config.text import resolve_secrets, value_of
from ragwatch.errors import ConfigError

SOURCE = "sources: [{kind: tail, name: app, path: app.jsonl}]\n"
SLO = "slos: {faithfulness: {objective: 0.9}}"
FEEDBACK = "rollout: {a: x, b: y, live: {start: '2026-01-31', feedback:"
PROBE = "{kind: http, url: 'http://localhost/', body: '{{ query }}', contexts: passages}"
FILES = sorted((Path(__file__).parents[2] / "data" / "configs").glob("invalid-*.yaml"))
assert len(FILES) >= 20, "the folder is elsewhere"
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


SAID = [
    # Suggested keys can be written as they are suggested.
    ("route_thresholds: {}", "route_thresholds: is not a known key; did you mean `thresholds.routes`?"),
    ("alerts: {route_slos: {}}", "alerts.route_slos: is not a known key; did you mean `alerts.slos.routes`?"),
    ("treshold: {}", "treshold: is not a known key; did you mean `thresholds`?"),
    (
        "alerts: {slos: {routes: {faq: {faithfulness: {objectiv: 0.9, objective: 0.9}}}}}",
        "alerts.slos.routes.faq.faithfulness.objectiv: is not a known key; did you mean `objective`?",
    ),
    # YAML 1.1 wants a point and a sign in the exponent of a number.
    ("drift: {tolerance: 1e-3}", "drift.tolerance: '1e-3' is read as a text; write 0.001, without quotes"),
    ("drift: {tolerance: '0.5'}", "drift.tolerance: '0.5' is read as a text; write 0.5, without quotes"),
    ("labels: {share_unsure: 0e0}", "labels.share_unsure: '0e0' is read as a text; write 0, without quotes"),
    ("drift: {tolerance: 1e-999999999}", "drift.tolerance: is not a number; write one"),
    (
        "gate: {metrics: {faithfulness: 1e-3}}",
        "gate.metrics.faithfulness.threshold: '1e-3' is read as a text; write 0.001, without quotes",
    ),
    # As a path, an empty text would be the working directory.
    ("audit: {file: '${RAGWATCH_NOT:-}'}", f"audit.file: {NO_PATH}"),
    ("audit: {file: /}", "audit.file: '/' is a directory; write the path of a file"),
    ("state: ''", f"state: {NO_PATH}"),
    ("anchors: {file: ''}", f"anchors.file: {NO_PATH}"),
    ("web: {config_file: ''}", f"web.config_file: {NO_PATH}"),
    ("export: {otlp: {endpoint: 'http://x', ca_file: ''}}", f"export.otlp.ca_file: {NO_PATH}"),
    (f"canaries: [{{suite: s, file: '', probe: {PROBE}}}]", "canaries[0].file: '' is not a path; write one"),
    # The operating system takes NUL for the end of a path.
    (r'sources: [{kind: tail, name: app, path: "/tmp/x\0"}]', f"c.yaml: sources[0].path: {NUL}"),
    (r'web: {"a\0b": 1}', rf"c.yaml: web.a\0b: {NUL}"),
    # Nothing is said of the program that reads the file.
    *((f"{key}:", f"{key}: {EMPTY}") for key in ("web", "state", "drain", "thresholds", "routes")),
    ("sources: [{kind: tail, name: app, path: }]", f"sources[0].path: {EMPTY}"),
    ("state: 5", "state: is not a path; write one"),
    ("segments: 5", "segments: is not a mapping; write its keys below it"),
    ("events: {metadata: release}", "events.metadata: is a text; write a list, such as [a, b]"),
    ("web: {hosts: 5}", "web.hosts: is not a list; write a list, such as [a, b]"),
    ("segments: {a: []}", "segments.a: is empty; give at least 1"),
    ("events: {metadata: [a,a,a,a,a,a,a,a,a,a,a]}", "events.metadata: has more than 10 items; leave some out"),
    ("yes: x", "[1]: the key true is not a text; write it in quotes"),
    ("log: {level: info, format: 5}", "log.format: 5 is not known; use 'json' or 'text'"),
    ("redaction: {enabled: []}", "redaction.enabled: is neither true nor false; write one of them"),
    ("judging: {batch: []}", "judging.batch: is not a whole number; write one"),
    # A list whose only item is wrong is not empty.
    (
        f"canaries: [{{suite: s, k: [0], items: [{{query: q, expected: [a]}}], probe: {PROBE}}}]",
        "canaries[0].k[0]: input should be greater than or equal to 1",
    ),
    # `yes` would be 1 where a number is wanted: texts would be deleted after a day.
    ("retention: {days: yes}", "retention.days: true is not a number; write one"),
    ("drift: {bridge: yes}", "drift.bridge: true is not a number; write one"),
    (
        "judges: [{name: j, kind: claude, model: m, api_key: k, concurrency: yes, max_claims: yes}]",
        "judges[0].concurrency: true is not a number; write one\njudges[0].max_claims: true is not a number; write one",
    ),
    ("store: {kind: postgres, url: x, connections: yes}", "store.connections: true is not a number; write one"),
    ("labels: {double: 'yes'}", "labels.double: is not a number; write one"),
    # Each section has a path of its own.
    ("routes: [faq]\nthresholds: {routes: 3}", "thresholds.routes: is not a mapping; write its keys below it"),
    ("routes: ['']", "routes[0]: '' does not look right; it must match ^[A-Za-z0-9_./:{}~-]{1,128}$"),
    ("routes: ['a''b']", 'routes[0]: "a\'b" does not look right; it must match ^[A-Za-z0-9_./:{}~-]{1,128}$'),
    ('routes: ["a\\nb"]', "routes[0]: 'a\\nb' does not look right; it must match ^[A-Za-z0-9_./:{}~-]{1,128}$"),
    ("store: {kind: sqlite, texts: some}", "store.texts: input should be 'all', 'failing' or 'none'"),
    ("store: x", "store: must be a mapping with a key `kind`"),
    ("export: {otlp: {}}", "export.otlp.endpoint: is missing; add it"),
    ("export: {otlp: {endpoint: http://x/, timeout: 1h}}", "export.otlp.timeout: is more than 120 s; write less"),
    ("export: {otlp: {endpoint: http://x/, quantities: []}}", "export.otlp.quantities: is empty; give at least 1"),
    ("labels: {minimum: 3}", "labels.minimum: input should be greater than or equal to 10"),
    ("labels: {share_unsure: 1.0}", "labels.share_unsure: input should be less than or equal to 0.9"),
    ("drift: {tolerance: 1.0}", "drift.tolerance: input should be less than 1"),
    ("drift: {reference: 10}", "drift.reference: input should be greater than or equal to 30"),
    ("labels: {fresh: 0}", "labels.fresh: input should be greater than 0"),
    ("drift: {detector: adwin}", "drift.detector: 'adwin' is not known; use 'betting', 'cusum' or 'page_hinkley'"),
    ("rollout: {a: vector, b: vector}", "rollout: `a` and `b` are both 'vector'; name two variants"),
    ("rollout: {a: x, b: y, live: {}}", "rollout.live.start: is missing; add it"),
    ("segments: {release: [v1, v1]}", "segments.release: 'v1' is named twice; name it once"),
    ("segments: {release: [' v1']}", "segments.release: ' v1' begins or ends with a space; leave it out"),
    ("web: {open: [page]}", "web.open[0]: 'page' is not known; use 'metrics', 'pages', 'write' or 'ingest'"),
    ("web: {tokens: [{name: ci, token: 0123456789abcdef}]}", "web.tokens[0].rights: is missing; add it"),
]
"""What is written, and all that is said about it."""
BEGINS = [
    # The path is that of the key that is to be changed, not of its section.
    ("anchors: {file: a, every: 100d}", "anchors.false_alarm_every: is not longer than `every`"),
    ("alerts: {window: 2h}", "alerts.window: is not one of `windows`, or the longest"),
    ("alerts: {windows: [1h, 15m]}", "alerts.windows: must rise, such as [15m, 1h, 1d]"),
    ("alerts: {slos: {faithfulness: {objective: 0.1}}}", "alerts.slos.faithfulness: burns[0] can never fire"),
    (f"alerts: {{{SLO}, burns: [{{long: 2h, short: 1h, budget: 0.1}}]}}", "alerts.burns: long and short must be of"),
    ("gate: {metrics: {mrr: {severity: warn}}}", "gate.metrics.mrr: has no threshold; give one"),
    # No encoding has half of a surrogate pair.
    (r'state: "\ud800"', "c.yaml: state: contains half of a surrogate pair; write"),
    ("routes: [faq]\nthresholds: {routes: {nowhere: {faithfulness: 0.6}}}", "thresholds.routes.nowhere: is not in"),
    ("routes: [faq]\nthresholds: {routes: {faq: {faith: 0.6}}}", "thresholds.routes.faq.faith: input should be"),
    ("routes: [faq]\nalerts: {slos: {routes: {nowhere: {}}}}", "alerts.slos.routes.nowhere: is not in"),
    (
        "routes: [faq]\nalerts: {slos: {routes: {faq: {faithfulness: {objective: 0.5}}}}}",
        "alerts.slos.routes.faq.faithfulness: burns[0] can never fire",
    ),
    (f"routes: [{'x' * 129}]", "routes[0]: 'xxx"),
    ("store: {url: postgresql://h/d}", "store.url: is not a known key; use one of: encryption, kind, min_free"),
    ("criteria: [{name: Polite, question: q}]", "criteria[0].name: 'Polite' is no name of a quantity; use"),
    ("criteria: [{name: faithfulness, question: q}]", "criteria[0].name: 'faithfulness' is a quantity of"),
    ("criteria: [{name: segment, question: q}]", "criteria[0].name: 'segment' would be exported as"),
    ("criteria: [{name: polite, question: ' '}]", "criteria[0]: question: must be one line of 1 to 500"),
    ("criteria: [{name: a, question: q, examples: [{text: '', answer: 'yes'}]}]", "criteria[0]: examples: must be one"),
    (f"criteria: [{{name: a, question: q, examples: [{'{text: a, answer: yes},' * 6}]}}]", "criteria[0].examples: has"),
    ("criteria: [{name: polite, question: q}, {name: polite, question: q}]", "criteria: 'polite' is the name of two"),
    (f"criteria: [{'{name: a, question: q},' * 21}]", "criteria: has more than 20 items; leave some out"),
    ("export: {otlp: {endpoint: otel:4318}}", "export.otlp.endpoint: 'otel:4318' is not a URL; write one such as"),
    ("export: {otlp: {endpoint: 'http://[::1'}}", "export.otlp.endpoint: 'http://[::1' is not a URL; write one"),
    ("export: {otlp: {endpoint: 'http://a/?key=1'}}", "export.otlp.endpoint: 'http://a/?key=1' is not a URL"),
    ("export: {otlp: {endpoint: 'http://u:p@a'}}", "export.otlp.endpoint: holds a user name, which logs would"),
    ("export: {otlp: {endpoint: http://x/v1/traces}}", "export.otlp.endpoint: ends with /v1/traces, which is"),
    ("export: {otlp: {endpoint: http://x/, logs: no, spans: no}}", "export.otlp: sends neither `logs` nor"),
    ("export: {otlp: {endpoint: http://x/, headers: {Content-Type: x}}}", "export.otlp.headers: 'Content-Type' cannot"),
    ('export: {otlp: {endpoint: http://x/, headers: {A: "s3cret\\r\\nB: c"}}}', "export.otlp.headers: A: is empty, or"),
    ("sources: [{kind: tail, name: app, path: a.jsonl, scan_seconds: no}]", "sources[0].scan_seconds: false is not a"),
    ("judges: [{name: j, kind: lexical, budget: {usd_per_day: yes}}]", "judges[0].budget.usd_per_day: true is not a"),
    (
        f"canaries: [{{suite: s, items: [{{query: q, expected: [a]}}], probe: {PROBE[:-1]}, timeout: yes}}}}]",
        "canaries[0].probe.timeout: true is not a",
    ),
    ("gate: {metrics: {fidelity: 0.5}}", "gate.metrics.fidelity: 'fidelity' is not a metric; use one of:"),
    ("gate: {metrics: {faithfulness: yes}}", "gate.metrics.faithfulness: is not a mapping; write its keys below"),
    ("gate: {metrics: {correctness: {severity: block}}}", "gate.metrics.correctness: has no threshold; give"),
    ("drift: {threshold: 3.0}", "drift.threshold: is for cusum and page_hinkley, which need one; betting has"),
    ("drift: {controls: {search: support, support: other}}", "drift.controls: 'support' is a control and has"),
    ("drift: {false_alarm_every: often}", "drift.false_alarm_every: 'often' is not a duration; write one such"),
    ("drift: {quantities: [quality]}", "drift.quantities[0]: input should be 'faithfulness', 'contradiction'"),
    ("rollout: {a: x, b: y, judged: {a: x}}", "rollout.judged: has one log only; give both `a` and"),
    ("rollout: {a: x, b: y, live: {start: 5}}", "rollout.live.start: 5 is not a time; write one such"),
    ("rollout: {a: x, b: y, live: {start: soon}}", "rollout.live.start: 'soon' is not a time; write"),
    (f"{FEEDBACK} thumbs}}}}", "rollout.live.feedback.field: 'thumbs' is"),
    (f"{FEEDBACK} {{field: metadata.x, best: 5}}}}}}", "rollout.live.feedback: has half a scale"),
    (f"{FEEDBACK} {{field: user_score, worst: 1, best: 5}}}}}}", "rollout.live.feedback: has a scale for"),
    ("rollout: {a: x, b: y, live: {start: '2026-01-31', share: 1.5}}", "rollout.live.share: input should be less"),
    ("gate: {metrics: {faithfulness: 1.5}}", "gate.metrics.faithfulness.threshold: input should be less than or"),
    ("criteria: [{name: correctness, question: q}]", "criteria[0].name: 'correctness' is no name of a quantity"),
    ("criteria: [{name: canary_recall, question: q}]", "criteria[0].name: 'canary_recall' would be exported as"),
    ("segments: {release: [other]}", "segments.release: 'other' is what all values that are not in the list"),
    ("segments: {release: [1.1]}", "segments.release[0]: 1.1 is read as a number, and 1.10 as 1.1; write it in"),
    ('segments: {release: ["a\\nb"]}', "segments.release[0]: 'a\\nb' does not look right; it must match"),
    ("segments: {a key: [v1]}", "segments.a key: 'a key' does not look right; it must match"),
    ("web: {users: {anna: [read]}}", "web.users.anna[0]: 'read' is not known; use 'metrics', 'pages', 'write'"),
    ("web: {hosts: [https://rag]}", "web.hosts[0]: 'https://rag' is not a host name; write the name alone"),
    ("web: {trace_url: 'https://{trace_id}/'}", "web.trace_url: is not an address with {trace_id} once after"),
    ("web: {trace_url: 'https://{trace_id}.example/{trace_id}'}", "web.trace_url: is not an address with"),
    ("web: {trace_url: 'javascript:alert(1)//{trace_id}'}", "web.trace_url: is not an address with {trace_id}"),
    ("web: {trace_url: 'https://t.example/{trace_id}/{span}'}", "web.trace_url: is not an address with"),
    ("web: {tokens: [{name: ci, token: s3cret, rights: []}]}", "web.tokens[0].token: is not a token of 16 to"),
    ("web: {tokens: [{name: ci, token: sha256:1, rights: []}]}", "web.tokens[0].token: a hash is sha256: and 64"),
]
"""What is written, and how that which is said about it begins."""


@pytest.mark.parametrize(("text", "message"), [*SAID, *BEGINS])
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Every error begins with the key as it stands in the file and says what to write instead; none shows a secret."""
    said = told(tmp_path, text)
    assert said == message if (text, message) in SAID else said.startswith(message)
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
