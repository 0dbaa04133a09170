"""Logs under other names, nested, wrapped and mixed: what `map` proposes without a question reads what was logged."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from support import logged
from support.command_line import command

from ragwatch.config import parse
from ragwatch.errors import FormatError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.names import NAMES, WEAK
from ragwatch.formats.selection import expanded, parse_one
from ragwatch.model.sample import Sample, SkipReason
from ragwatch.offline.input_files import PartFiles
from ragwatch.ports.capabilities import record_rules
from ragwatch.sources.join import Options as JoinOptions
from ragwatch.sources.tail.lines import detect, frame_of

NUMBER = 8
SEEDS = 12
THINGS = ("kettle", "jug", "lid", "base", "filter", "handle", "cord", "switch")
Shape = Callable[[random.Random, int], dict[str, Any]]


def question(number: int) -> str:
    """A question."""
    return f"How long does the {THINGS[number]} last?"


def passages(number: int) -> list[str]:
    """What was retrieved for it."""
    return [f"The {THINGS[number]} lasts {number + 2} years.", f"Wash the {THINGS[number]} by hand, and dry it well."]


def answer(number: int) -> str:
    """An answer."""
    return f"About {number + 2} years, the manual of the {THINGS[number]} says."


def named(pick: random.Random, part: str) -> str:
    """A name of a part, in one of the usual styles, with or without a word before it."""
    nouns = [noun for noun in NAMES[part].nouns if " ".join(noun) not in WEAK.get(part, ())]
    words = list(pick.choice(nouns))
    if part in ("question", "answer", "contexts"):
        words = [*pick.choice([[], [], ["rag"], ["my"]]), *words]
    style = pick.choice(["snake", "camel", "pascal", "kebab"])
    if style == "snake":
        return "_".join(words)
    if style == "kebab":
        return "-".join(words)
    titled = [word.title() for word in words]
    return "".join(titled if style == "pascal" else [words[0], *titled[1:]])


def listed(pick: random.Random, number: int) -> list[Any]:
    """Passages as objects, under other names."""
    text, name, score = (named(pick, part) for part in ("text", "context_id", "score"))
    return [
        {"title": "Manual", name: f"c{number}-{place}", text: one, score: 0.5}
        for place, one in enumerate(passages(number))
    ]


def flat(pick: random.Random, number: int) -> dict[str, Any]:
    """Question, passages and answer beside each other."""
    contexts = pick.choice([listed(pick, number), passages(number)])
    return {
        named(pick, "question"): question(number),
        named(pick, "contexts"): contexts,
        named(pick, "answer"): answer(number),
        named(pick, "at"): f"2026-05-01T10:00:{number:02}Z",
    }


def request_and_response(pick: random.Random, number: int) -> dict[str, Any]:
    """What was asked and what was answered in objects of their own."""
    return {
        pick.choice(["request", "inputs", "req"]): {named(pick, "question"): question(number)},
        pick.choice(["result", "output", "resp"]): {
            named(pick, "answer"): answer(number),
            named(pick, "contexts"): listed(pick, number),
        },
    }


def copies(line: str, replaced: Mapping[str, Callable[[int], str]]) -> Shape:
    """A logged line as a shape: the same with other texts and ids. Some of its names are exchanged for others."""

    def shape(pick: random.Random, number: int) -> dict[str, Any]:
        text = line
        for old, new in replaced.items():
            text = text.replace(old, new(number))
        record: dict[str, Any] = renamed(json.loads(text), random.Random(pick.random()), pick.choice([0.0, 0.0, 0.5]))
        return record

    return shape


def renamed(value: Any, pick: random.Random, share: float) -> Any:
    """A value in which keys that name a part have another name of that part; the same in every record."""
    if isinstance(value, list):
        state = pick.getstate()
        items = []
        for item in value:
            pick.setstate(state)  # all items of a list have the same names
            items.append(renamed(item, pick, share))
        return items
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, item in value.items():
        parts = [part for part in ("question", "answer", "contexts") if (key,) in NAMES[part].nouns]
        is_part = parts and pick.random() < share and (parts == ["contexts"]) == isinstance(item, list)
        name = named(pick, parts[0]) if is_part else key
        changed[name if name not in value else key] = renamed(item, pick, share)
    return changed


LOGS = Path(__file__).parents[2] / "data" / "outside" / "logs"
FIRST = {
    "How long is the kettle warranty?": question,
    "The kettle warranty lasts two years from purchase.": lambda number: passages(number)[0],
    "Warranty claims need the receipt of the kettle.": lambda number: passages(number)[1],
    "The kettle is covered for two years.": answer,
}
FIXTURE = {
    logged.QUESTION: question,
    logged.TEXTS[0]: lambda number: passages(number)[0],
    logged.TEXTS[1]: lambda number: passages(number)[1],
    logged.ANSWER: answer,
}
IDS: dict[str, Callable[[int], str]] = {'"r1"': '"r1-{}"'.format, '"t1"': '"t1-{}"'.format}


def logged_shapes() -> Iterator[tuple[str, Shape]]:
    """The lines of the fixtures that hold all parts of the answer."""
    for path in (*sorted(logged.DATA.glob("*.jsonl")), *sorted(LOGS.glob("*.jsonl"))):
        texts = FIRST if path.parent == LOGS else FIXTURE
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if all(one in text for one in list(texts)[1:]):
                yield f"{path.stem}-{number}", copies(text, {**texts, **IDS})
                if path.parent == LOGS:
                    break


GENERATED: Mapping[str, Shape] = {one.__name__: one for one in (flat, request_and_response)}
SHAPES: Mapping[str, Shape] = {**GENERATED, **dict(logged_shapes())}


def around(pick: random.Random, record: dict[str, Any], number: int) -> dict[str, Any]:
    """The record with other fields, which are none of its parts, and one level deeper or as JSON text."""
    others: dict[str, Any] = {
        "level": "INFO",
        "user_id": "u1",
        "latency_ms": 12 + number,
        "model": "m",
        "previous_question": question((number + 1) % NUMBER),
        "expected_answer": f"It lasts {number + 3} years, as they say.",
        "rewritten_query": f"{THINGS[number]} durability in years",
        "status": "ok",
        "traceId": f"trace-{number}",
    }
    keep = pick.sample(sorted(others), 4)
    record = record | {key: others[key] for key in keep if key not in record}
    wrap = pick.choice(["", "", "payload", "log", "text"])
    if not wrap:
        return record
    if wrap == "text":
        return {"severity": "INFO", "payload": json.dumps(record)}
    return {"severity": "INFO", wrap: record}


def line(pick: str, record: dict[str, Any], number: int) -> str:
    """A line of a log, framed as runtimes and collectors do."""
    text = json.dumps(record)
    moment = f"2026-05-01T10:00:{number:02}.123456789Z"
    return {
        "docker": json.dumps({"log": text + "\n", "stream": "stdout", "time": moment}),
        "cri": f"{moment} stdout F {text}",
        "loki": json.dumps({"labels": {"app": "rag"}, "timestamp": moment, "line": text}),
        "syslog": f"<14>1 {moment} host rag 17 - - {text}",
    }.get(pick, text)


def lines_of(name: str, seed: int) -> list[str]:
    """A log of one shape: all of its records have the same names."""
    framing = random.Random(f"{name}{seed}").choice(["", "", "", "", "docker", "cri", "loki", "syslog"])
    lines = []
    for number in range(NUMBER):
        pick = random.Random(f"{seed}{name if name not in GENERATED else ''}")
        record = around(pick, SHAPES[name](pick, number), number)
        lines.append(line(framing, record, number))
        if pick.random() < 0.3:
            lines.append(line(framing, {"level": "INFO", "message": "GET /healthz", "took": number}, number))
    return lines


KEYS = ("format", "mapping", "where", "prefix", "split", "records")


def read(source: dict[str, Any], lines: list[str]) -> list[Sample]:
    """What a proposed source reads; records that are no answers are rejected or skipped."""
    reader = LogReader(RecordRules(**{key: value for key, value in source.items() if key in KEYS}))
    framing = detect(lines[0].encode() + b"\n") or "plain"
    samples = []
    for number, text in enumerate(lines):
        frame = None if framing == "plain" else frame_of(text.encode(), framing)
        for _, record in expanded([(number, text.encode() if frame is None else frame.text)], reader.expand):
            try:
                parsed = parse_one(record, reader.parse)
                samples += [reader.read(parsed[0], str(number))] if isinstance(parsed, tuple) else []
            except FormatError:
                continue
    return samples


TRUTH = {answer(number): (question(number), passages(number)) for number in range(NUMBER)}


def is_right(name: str, seed: int) -> bool:
    """Whether `map` proposes a source without a question; what that reads must be what was logged."""
    lines = lines_of(name, seed)
    result = command("init", "--print", "-", said="\n".join(lines) + "\n")
    if result.return_value != 0 or "kind: join" in result.stdout:
        return False
    samples = read(yaml.safe_load(result.stdout), lines)
    for sample in samples:
        asked, texts = next((TRUTH[one] for one in TRUTH if sample.answer.startswith(one)), ("", []))
        told = (seed, lines[0], result.output, sample)
        assert [one.text for one in sample.contexts] == texts, told
        assert sample.question in (asked, None), told
    assert len(samples) == NUMBER, (seed, lines[0], result.output)
    return True


@pytest.mark.parametrize("name", GENERATED)
def test_a_renamed_log_is_read_rightly_or_asked_about(name: str) -> None:
    """Never a wrong sample with exit code 0, and most logs are read."""
    assert sum(is_right(name, seed) for seed in range(SEEDS)) > 0.6 * SEEDS


@pytest.mark.parametrize("name", SHAPES.keys() - GENERATED.keys())
def test_a_known_shape_is_read_rightly_or_asked_about(name: str) -> None:
    """The same for what libraries and services log."""
    is_right(name, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_many_logs_are_read_rightly_or_asked_about(name: str) -> None:
    """The same, many times."""
    for seed in range(1, 40):
        is_right(name, seed)


LOGGED = {
    "How long is the kettle warranty?": (
        ("The kettle warranty lasts two years from purchase.", "Warranty claims need the receipt of the kettle."),
        "The kettle is covered for two years.",
    ),
    "Which filter fits the X2 jug?": (
        ("Filter F9 fits the X2 and X3 jugs.", "Filters should be replaced every eight weeks."),
        "The X2 jug takes filter F9.",
    ),
    "Can I wash the lid in a dishwasher?": (
        ("The lid can be washed in the dishwasher.", "The base must never be put under water."),
        "Yes, the lid is dishwasher safe.",
    ),
}
"""Question, contexts and answer of every log."""
READ = ""
NO_TEXTS = "names of documents and no text; log the text of each passage"
ASK = "is this what was retrieved?"
HALF = "3 records would be rejected: if they are no answers, select the others with where"
EXPECTED = {path.stem: READ for path in sorted(LOGS.glob("*.jsonl"))} | {
    "file_names_as_contexts": NO_TEXTS,
    "librechat_messages": HALF,
    "phoenix_qa": ASK,  # a reference answer has the same name
    "titles_only": NO_TEXTS,
}
"""Every log is read but for these, each with the reason."""

TIMED = frozenset({
    "azure_oyd", "bedrock_question", "dify_messages", "file_search_question", "file_search_req_resp",
    "helicone_export", "id_constant", "java_camel", "litellm_standard_payload", "mlflow_trace", "openwebui_export",
})  # fmt: skip
"""Logs with the time of each answer."""


def _map(path: Path) -> Result:
    return command("init", "--print", path)


def samples_of(source: dict[str, Any], path: Path) -> list[Sample]:
    """What a proposed source reads of a file; a record that it rejects or skips is an error."""
    item = source if source.get("kind") else {"kind": "tail", "name": "app", "path": str(path), **source}
    options = parse({"state": "/s", "sources": [item]}, folder=Path()).sources[0].options
    reader = LogReader(record_rules(options))
    read_line = PartFiles(options).parser(str(path)).parse if isinstance(options, JoinOptions) else reader.parse
    samples = []
    for number, line in enumerate(path.read_bytes().splitlines()):
        parsed = read_line(line)
        if parsed is not None:
            assert not isinstance(parsed, SkipReason)
            samples.append(reader.read(parsed[0], str(number)))
    return samples


@pytest.mark.parametrize("name", EXPECTED)
def test_a_log_is_read_rightly_or_refused_with_the_reason(name: str) -> None:
    """What a proposal reads is true; the exit code is 0 only if it may be used as it is."""
    path = LOGS / f"{name}.jsonl"
    result, reason = _map(path), EXPECTED[name]
    assert (result.return_value == 0) == (reason == READ), result.output
    assert reason in result.stderr
    source = yaml.safe_load(result.stdout)
    if reason == HALF:
        return
    if reason not in (READ, ASK):
        assert not {"answer", "contexts"} <= source["mapping"].keys()
        return
    try:
        samples = samples_of(source, path)
    except FormatError as error:
        pytest.fail(f"{error}: {result.stdout}")
    for sample in samples:
        contexts, answer = LOGGED[str(sample.question)]
        assert (tuple(context.text for context in sample.contexts), sample.answer[: len(answer)]) == (contexts, answer)
        assert sample.at is not None or name not in TIMED
        assert sample.at is None or 1.7e9 < sample.at < 1.8e9
    assert len({sample.id for sample in samples}) == len(samples)
    assert samples or source["kind"] == "join"
    if source.get("format") != "custom" and "mapping" not in source:
        assert samples == samples_of(source | {"format": "auto"}, path)
