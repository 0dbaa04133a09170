"""Builds the tables "your log looks like this" of README.md and docs/logs.md, and the cookbook of presets.

The cookbook shows for each preset the first line of its fixture, the mapping that says the same, and what is read.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ragwatch.formats import FORMATS, TRACES
from ragwatch.formats.expressions import extractor

FIXTURES = Path(__file__).parent.parent / "tests" / "data" / "formats"


class Shape(NamedTuple):
    """A shape of logs, and what to write for it; `common` ones are in README.md too."""

    log: str
    write: str
    common: bool = False


SHAPES = (
    Shape('`{"question": ..., "contexts": [...], "answer": ...}`', "`format: auto` (the default)"),
    Shape(
        "records of ragas, deepeval, LangChain, LlamaIndex, Haystack, OpenAI, Bedrock, Vertex, Azure, Anthropic, or of"
        " another service [below](#presets)",
        "`format: auto`; mind their [known bias](docs/logs.md#presets)", common=True,
    ),
    Shape("other names, other nesting, JSON inside a text", "`format: custom` with `mapping`", common=True),
    Shape('`2026-05-01 10:00:00 INFO [rag] {"question": ...}`', "`prefix: auto`, or a pattern", common=True),
    Shape("answers among health checks, 502s, tracebacks", "`where: \"event == 'answer'\"`", common=True),
    Shape(
        "a prompt that contains the contexts: `[1] ... [2] ...`, `<doc>...</doc>`, headings, bullets",
        "`split: numbered`, `split: xml` ...", common=True,
    ),
    Shape(
        "retrieval and answer (or request and response) in two records with one id", "`kind: join`, `by: request_id`",
        common=True,
    ),
    Shape("several answers in one line or file: a page of an API, an array, JSON in a field", "`records: data`"),
    Shape("conversations with several answers", "`records: answers(messages)`"),
    Shape(
        "one JSON document over many lines",
        "nothing for `run --once`, `check`, `judge`, `map` and `init`; `documents: true` for the daemon",
    ),
    Shape("answers in pieces: streamed deltas with one id", "`kind: join` with `concat: {answer: delta}`", common=True),
    Shape("contexts that are ids", "`resolve: {file: corpus.jsonl}`", common=True),
    Shape("times without an offset", "`timezone: Europe/Berlin`"),
    Shape("UTF-16, Windows or other encodings", "`encoding: utf-16`"),
    Shape("CSV, SQLite", "[one line](docs/logs.md#csv-and-sqlite) that makes JSONL of it"),
    Shape("a row a span: an export of Langfuse or LangSmith", '`kind: join`, `by: trace_id`, ``complete: "`false`"``'),
    Shape("lines wrapped by Docker or CRI", "nothing; `framing: auto` removes that"),
    Shape("`app.log`, `app.log.1`, `app.log.2.gz`", "`path: /var/log/rag/app.log*`; rotation is followed"),
)  # fmt: skip
HEAD = ("| your log looks like this | write that |", "|---|---|")


def table(*, brief: bool = False) -> str:
    """The table for docs/logs.md; the common rows of it for docs/setup.md if it is `brief`."""
    rows = [f"| {shape.log} | {shape.write} |" for shape in SHAPES if shape.common or not brief]
    text = "\n".join((*HEAD, *rows)).replace("(docs/logs.md#", "(#")
    return "\n".join(f"   {line}" for line in text.replace("(#", "(logs.md#").split("\n")) if brief else text


def cookbook() -> str:
    """A log line of each preset, its mapping and what is read."""
    return "\n\n".join("\n".join(_recipe(name)) for name in FORMATS if name != "canonical")


def _recipe(name: str) -> Iterator[str]:
    line = (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[0]
    record = json.loads(line)
    yield f"### {name}\n\n    {line}\n"
    mapping = {
        key: expression
        for key, expression in FORMATS[name].MAPPING.items()
        if extractor(key, expression)(record) not in (None, [])
    }
    if mapping:
        yield "    format: custom\n    mapping:"
        yield from (f"      {key}: {json.dumps(expression)}" for key, expression in mapping.items())
    elif name in TRACES:
        yield f"    format: {name}"
    sample = FORMATS[name].read(record, "its place in the log")
    contexts = ", ".join(f'"{one.text}"' + _named(one.id, one.score) for one in sample.contexts)
    told = (
        f"question {json.dumps(sample.question)}, answer {json.dumps(sample.answer)}, {len(sample.contexts)} contexts"
    )
    yield f"\nRead: {told}: {contexts}." + (f" Id {sample.id}." if sample.id != "its place in the log" else "")


def _named(name: str | None, score: float | None) -> str:
    known = [f"id {name}"] * (name is not None) + [f"score {score}"] * (score is not None)
    return f" ({', '.join(known)})" if known else ""


def filled_in(text: str, mark: str, content: str) -> str:
    """A page with content between the markers of a name."""
    before, start, rest = text.partition(f"<!-- {mark} -->")
    _, end, after = rest.partition(f"<!-- /{mark} -->")
    return f"{before}{start}\n{content}\n{end}{after}" if start and end else text
