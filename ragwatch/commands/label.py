"""`ragwatch label`: a person reads answers and says what is true of them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TextIO, TypeVar

import click
from rich.console import Console
from rich.text import Text

from ragwatch.commands.client import LabelClient, label_client
from ragwatch.commands.terminal import naming, plain
from ragwatch.config import load
from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.labels.label import Label, parse_label
from ragwatch.core.labels.selection import scores_of
from ragwatch.core.sampling import key_of
from ragwatch.core.scores import Quantity
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.telemetry import configure_logging

Meaning = TypeVar("Meaning")
BAD = 1
AT_ONCE = 200
QUIT, SKIP = "q", "-"
SPARE = Path("ragwatch-labels.jsonl")
CLAIM = MappingProxyType(
    {"s": ClaimVerdict.SUPPORTED, "c": ClaimVerdict.CONTRADICTED, "n": ClaimVerdict.NOT_IN_CONTEXT, SKIP: None}
)
DEGREE = MappingProxyType({"f": 1.0, "p": 0.5, "n": 0.0, SKIP: None})
IGNORED = MappingProxyType({"y": 0.0, "n": 1.0, SKIP: None})
HELP = (
    "Claims: [s]upported by the contexts, [c]ontradicted, [n]ot in them. Answers: [f]ully, [p]artly, [n]ot; [y]es, "
    "[n]o. Always: - to pass over, q to end. What was said is kept at once."
)


class _LabellingEnded(Exception):  # noqa: N818 - no error: the person has had enough
    """No more is said."""


@dataclass(slots=True)
class _AnswerLabels:
    """What a person has said of one answer so far."""

    claims: list[ClaimVerdict | None] = field(default_factory=list)
    whole: dict[Quantity, float] = field(default_factory=dict)
    note: str = ""
    begun: bool = False


def label(
    path: Path, annotator: str, *, count: int, whole: bool, out: TextIO | None, rows: BinaryIO | None, url: str | None
) -> int:
    """Read answers and say what is true of them, so that judges can be corrected."""
    configure_logging("error")
    if out is not None and rows is not None:
        raise ConfigError("--export and --import: give one of them")
    with label_client(load(path), url) as way:
        if out is not None:
            with naming(out.name):
                out.writelines(json.dumps(record) + "\n" for record in way.labels())
                out.flush()
            return 0
        if rows is not None:
            with naming(rows.name):
                return _import(way, rows, annotator)
        return _session(way, annotator, count, whole=whole)


def _session(way: LabelClient, annotator: str, count: int, *, whole: bool) -> int:
    console = Console(soft_wrap=True, highlight=False)
    tasks = way.tasks(annotator, count)
    if not tasks:
        console.print("There is nothing to label: no judge has read anything new.")
        return 0
    console.print(Text(HELP, style="dim"))
    done = 0
    for number, task in enumerate(tasks, start=1):
        said = _AnswerLabels()
        _show(console, task, f"{number} of {len(tasks)}")
        try:
            _ask_all(console, task, said, whole=whole)
        except (_LabellingEnded, KeyboardInterrupt):
            if said.begun:
                done += _keep(way, task, annotator, said)
            break
        done += _keep(way, task, annotator, said)
    console.print(f"\n{done} kept. Thank you.")
    return 0


def _keep(way: LabelClient, task: Mapping[str, Any], annotator: str, said: _AnswerLabels) -> int:
    """Keep a word; where it cannot be kept there, in a file, so that nothing said is lost."""
    word = Label(
        task["key"], annotator, time.time(), scores_of(said.claims, said.whole), tuple(said.claims), note=said.note
    )
    try:
        way.put([word.to_record()])
    except (RagwatchError, KeyboardInterrupt) as error:
        with SPARE.open("a", encoding="utf-8") as file:
            file.write(json.dumps(word.to_record()) + "\n")
        why = str(error) or "interrupted"
        raise RagwatchError(f"{why}\nthe last word is in {SPARE}; bring it in with --import {SPARE}") from error
    return 1


def _ask_all(console: Console, task: Mapping[str, Any], said: _AnswerLabels, *, whole: bool) -> None:
    claims = [] if whole else task["claims"]
    for index in range(len(claims)):
        said.claims.append(_ask(console, said, f"claim {index + 1}? [s/c/n/-]", CLAIM))
    if not claims:
        _put(said, Quantity.FAITHFULNESS, _ask(console, said, "do the contexts support it? [f/p/n/-]", DEGREE))
    _put(said, Quantity.ANSWER_RELEVANCY, _ask(console, said, "does it address the question? [f/p/n/-]", DEGREE))
    if task["sample"]["contexts"]:
        used = _ask(console, said, "does it make use of context 1? [y/n/-]", IGNORED)
        _put(said, Quantity.TOP_RANKED_IGNORED, used)
    said.note = plain(_read(console, "a note, or nothing:"))


def _put(said: _AnswerLabels, quantity: Quantity, score: float | None) -> None:
    if score is not None:
        said.whole[quantity] = score


def _ask(console: Console, said: _AnswerLabels, question: str, meanings: Mapping[str, Meaning]) -> Meaning:
    while True:
        answer = _read(console, question).lower()
        if answer == QUIT:
            raise _LabellingEnded
        if answer in meanings:
            said.begun = True
            return meanings[answer]
        console.print(f"{answer or 'nothing'!r} is none of {', '.join(meanings)}, {QUIT}", style="red", markup=False)


def _read(console: Console, question: str) -> str:
    console.print(Text(f"{question} ", style="bold"), end="")
    line = sys.stdin.readline()
    if not line:
        raise _LabellingEnded
    return line.strip()


def _show(console: Console, task: Mapping[str, Any], title: str) -> None:
    sample = task["sample"]
    console.rule(Text(title))
    console.print(Text.assemble(("question  ", "bold cyan"), plain(sample["question"] or "(not logged)")))
    for number, context in enumerate(sample["contexts"], start=1):
        console.print(Text.assemble((f"context {number}  ", "bold cyan"), plain(context["text"])))
    console.print(Text.assemble(("answer  ", "bold cyan"), plain(sample["answer"])))
    for number, text in enumerate(marked(sample["answer"], task["claims"]), start=1):
        console.print(Text.assemble((f"  claim {number}  ", "bold"), text))


def marked(answer: str, claims: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """Each claim within the words around it, or by itself where it is no part of the answer."""
    for claim in claims:
        start, end = claim["start"], claim["end"]
        if start is None:
            yield Text(plain(claim["text"]), style="underline")
        else:
            before, after = plain(answer[max(0, start - 40) : start]), plain(answer[end : end + 40])
            yield Text.assemble((before, "dim"), (plain(answer[start:end]), "underline"), (after, "dim"))


def _import(way: LabelClient, rows: BinaryIO, annotator: str) -> int:
    records, wrong = [], 0
    for number, line in enumerate(rows, start=1):
        if line.strip():
            try:
                records.append(imported(json.loads(line), annotator, time.time()))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                wrong += 1
                click.echo(plain(f"{rows.name}:{number}: {type(error).__name__}: {error}"), err=True)
    total = {"new": 0, "replaced": 0, "unmatched": 0}
    for first in range(0, len(records), AT_ONCE):
        for name, found in way.put(records[first : first + AT_ONCE]).items():
            total[name] += found
    click.echo(", ".join(f"{found} {name}" for name, found in total.items()) + f", {wrong} unreadable", err=True)
    return BAD if wrong else 0


def imported(record: Mapping[str, Any], annotator: str, now: float) -> dict[str, Any]:
    """A row of a file as a label: `key`, or `source` and `id`; `scores`, `claims` or both; the rest as it is known.

    Raises:
        KeyError, ValueError, TypeError, AttributeError: It is not one.
    """
    key = record["key"] if "key" in record else key_of(str(record["source"]), str(record["id"]))
    claims = tuple(None if each is None else ClaimVerdict(each) for each in record.get("claims") or ())
    said = {Quantity(name): float(score) for name, score in (record.get("scores") or {}).items()}
    probability = record.get("probability")
    label = Label(
        str(key),
        str(record.get("annotator", annotator)),
        float(record.get("at", now)),
        {**scores_of(claims, {}), **said},
        claims,
        None if probability is None else float(probability),
        str(record.get("note", "")),
    )
    return parse_label(label.to_record(), now).to_record()
