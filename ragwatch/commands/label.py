"""`ragwatch label`: lets a person label answers on the terminal, or imports and exports labels."""

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

from rich.console import Console
from rich.text import Text

from ragwatch.commands.api_client import LabelClient, label_client, require_utf8
from ragwatch.commands.label_relevance import SessionEnded, ask, label_relevance, read_line
from ragwatch.config import load
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.statistics.labels.label import CLAIM, Label, LabelTask, TaskClaim, label_questions, parse_label
from ragwatch.statistics.labels.selection import scores_of
from ragwatch.statistics.sampling import key_of
from ragwatch.terminal.options.people import LabelArguments
from ragwatch.terminal.output import file_name_in_errors, printable, say

Part = TypeVar("Part", dict[str, object], list[object])
FAILURE = 1
BATCH_SIZE = 200
BACKUP_FILE = Path("ragwatch-labels.jsonl")
HELP = (
    "Claims: [s]upported by the contexts, [c]ontradicted, [n]ot in them. Answers: [f]ully, [p]artly, [n]ot; [y]es, "
    "[n]o. Always: - to skip, q to quit. Each label is saved at once."
)


@dataclass(slots=True)
class _AnswerLabels:
    """The labels of one answer so far."""

    claims: list[ClaimVerdict | None] = field(default_factory=list)  # label of each claim; None for a skipped one
    scores: dict[Quantity, float] = field(default_factory=dict)  # scores of the answer as a whole
    note: str = ""
    started: bool = False  # whether the annotator has replied to a question


def label(given: LabelArguments) -> int:
    """Label answers, so that the estimates can be corrected for errors of the judges; or the relevance of contexts."""
    for option, value in (("--annotator", given.annotator), ("--revoke", given.revoke)):
        require_utf8(option, value or "")
    if given.annotator is None and given.revoke is None and given.out is None and given.rows is None:
        raise ConfigError("--annotator: is missing; give your name, labels are stored under it")
    elsewhere = given.revoke is not None or given.relevance is not None
    if given.out is not None and given.rows is not None and not elsewhere:
        raise ConfigError("--export and --import: give only one of them")
    config, annotator = load(given.path), given.annotator or ""
    if given.relevance is not None and given.revoke is None:
        return label_relevance(config, given.relevance, annotator, given)
    with label_client(config, given.url, given.token_file) as client:
        if given.revoke is not None:
            return _revoke(client, given.revoke, given.annotator)
        if given.out is not None:
            with file_name_in_errors(given.out.name):
                given.out.writelines(json.dumps(record) + "\n" for record in client.labels())
                given.out.flush()
            return 0
        if given.rows is not None:
            with file_name_in_errors(given.rows.name):
                return _import(client, given.rows, annotator, config.settings.quantities)
        return _session(client, annotator, given.count, whole=given.whole)


def _session(client: LabelClient, annotator: str, count: int, *, whole: bool) -> int:
    console = Console(soft_wrap=True, highlight=False)
    tasks = client.tasks(annotator, count)
    if not tasks:
        console.print("There is nothing to label: no judge has read any new answer.")
        return 0
    console.print(Text(HELP, style="dim"))
    saved = 0
    for number, task in enumerate(tasks, start=1):
        labels = _AnswerLabels()
        _show(console, task, f"{number} of {len(tasks)}")
        try:
            _ask_all(console, task, labels, whole=whole)
        except (SessionEnded, KeyboardInterrupt):
            if labels.started:
                saved += _save(client, task["key"], annotator, labels)
            break
        saved += _save(client, task["key"], annotator, labels)
    console.print(f"\n{saved} saved. Thank you.")
    return 0


def _revoke(client: LabelClient, key: str, annotator: str | None) -> int:
    revoked = client.revoke(key, annotator)
    whose = "" if annotator is None else f" of {annotator}"
    if not revoked:
        say(f"{key}: no label{whose} counts there")
        return FAILURE
    say(f"{revoked} {'label' if revoked == 1 else 'labels'} taken back")
    return 0


def _save(client: LabelClient, key: str, annotator: str, labels: _AnswerLabels) -> int:
    """Save a label; if that fails, append it to `BACKUP_FILE`, so that no label is lost."""
    label = Label(
        key=key,
        annotator=annotator,
        at=time.time(),
        scores=scores_of(labels.claims, labels.scores),
        claims=tuple(labels.claims),
        note=labels.note,
    )
    try:
        client.put([label.to_record()])
    except (RagwatchError, KeyboardInterrupt) as error:
        with BACKUP_FILE.open("a", encoding="utf-8") as file:
            file.write(json.dumps(label.to_record()) + "\n")
        reason = str(error) or "interrupted"
        raise RagwatchError(
            f"{reason}\nthe last label is in {BACKUP_FILE}; import it with --import {BACKUP_FILE}"
        ) from error
    return 1


def _ask_all(console: Console, task: LabelTask, labels: _AnswerLabels, *, whole: bool) -> None:
    claims = [] if whole else task["claims"]
    for index in range(len(claims)):
        labels.claims.append(ask(console, f"claim {index + 1}? [s/c/n/-]", CLAIM))
        labels.started = True
    criteria = [(one["name"], printable(one["question"])) for one in task.get("criteria", ())]
    contexts = bool(task["sample"]["contexts"])
    for question in label_questions(has_claims=bool(claims), has_contexts=contexts, criteria=criteria):
        score = ask(console, f"{question.text} [{'/'.join(question.replies)}]", question.replies)
        labels.started = True
        if score is not None:
            labels.scores[question.quantity] = score
    labels.note = printable(read_line(console, "a note, or nothing:"))


def _show(console: Console, task: LabelTask, title: str) -> None:
    sample = task["sample"]
    console.rule(Text(title))
    for turn in sample.get("history") or ():
        console.print(Text.assemble((f"{turn['role']} before  ", "dim cyan"), printable(turn["text"])))
    console.print(Text.assemble(("question  ", "bold cyan"), printable(sample["question"] or "(not logged)")))
    for number, context in enumerate(sample["contexts"], start=1):
        console.print(Text.assemble((f"context {number}  ", "bold cyan"), printable(context["text"])))
    console.print(Text.assemble(("answer  ", "bold cyan"), printable(sample["answer"])))
    for number, text in enumerate(underlined_claims(sample["answer"], task["claims"]), start=1):
        console.print(Text.assemble((f"  claim {number}  ", "bold"), text))


def underlined_claims(answer: str, claims: Sequence[TaskClaim]) -> Iterator[Text]:
    """Each claim, underlined, with the text around it in the answer; alone if it is not a part of the answer."""
    for claim in claims:
        start, end = claim["start"], claim["end"]
        if start is None or end is None:
            yield Text(printable(claim["text"]), style="underline")
        else:
            before, after = printable(answer[max(0, start - 40) : start]), printable(answer[end : end + 40])
            yield Text.assemble((before, "dim"), (printable(answer[start:end]), "underline"), (after, "dim"))


def _import(client: LabelClient, rows: BinaryIO, annotator: str, quantities: Sequence[Quantity]) -> int:
    records, unreadable = [], 0
    for number, line in enumerate(rows, start=1):
        if line.strip():
            try:
                records.append(label_record(parse_row(line), annotator, time.time(), quantities))
            except ValueError as error:
                unreadable += 1
                say(f"{rows.name}:{number}: {error}")
    total = {"new": 0, "replaced": 0, "unmatched": 0}
    for start in range(0, len(records), BATCH_SIZE):
        for name, count in client.put(records[start : start + BATCH_SIZE]).items():
            total[name] += count
    say(", ".join(f"{count} {name}" for name, count in total.items()) + f", {unreadable} unreadable")
    return FAILURE if unreadable else 0


def parse_row(line: bytes) -> object:
    """Decode the JSON value in a line. Raises `ValueError` if it is not JSON; the message says why."""
    try:
        return json.loads(line.strip())
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg.removesuffix(' at')} at character {error.pos}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def label_record(row: object, annotator: str, now: float, quantities: Collection[Quantity]) -> dict[str, object]:
    """Convert a row of an imported file to the record of a label.

    It has `key`, or `source` and `id`; `scores`, `claims` or both; the other fields of a label are optional. The
    annotator and the time, in seconds since the epoch, are used where it has none. `ValueError` says why it is no
    label.
    """
    if not isinstance(row, dict):
        raise ValueError('is no JSON object; write {"key": ..., "scores": {...}}')  # noqa: TRY004 - as for all rows
    claims = tuple(_claims(row))
    probability, revoked, owner = (row.get(name) for name in ("probability", "revoked", "owner"))
    label = Label(
        key=_key(row),
        annotator=_text("annotator", row.get("annotator") or annotator or None),
        at=now if row.get("at") is None else _number("at", row["at"]),
        scores={**scores_of(claims, {}), **dict(_scores(row, quantities))},
        claims=claims,
        probability=None if probability is None else _number("probability", probability),
        note=str(row.get("note") or ""),
        owner=None if owner is None else _text("owner", owner),  # this and the others below are those of an export
        without={name: _number("without", value) for name, value in _part(row, "without", dict, "JSON object").items()},
        revoked=None if revoked is None else _number("revoked", revoked),
        earlier=tuple(_earlier(row)),
    )
    return parse_label(label.to_record(), now).to_record()


def _key(row: Mapping[str, object]) -> str:
    if "key" in row:
        return _text("key", row["key"])
    if "source" not in row or "id" not in row:
        raise ValueError("names no answer; give its `key`, or `source` and `id`")
    return key_of(_text("source", row["source"]), _text("id", row["id"]))


def _text(name: str, value: object) -> str:
    """A text, or a whole number as text: ids are logged as both."""
    if value is None:
        raise ValueError(f"{name}: is missing; add it")
    if (isinstance(value, str) and value) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise ValueError(f"{name}: {value!r:.60} is no text; write a text")


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: {value!r:.60} is no number; write a number") from error


def _part(row: Mapping[str, object], name: str, kind: type[Part], what: str) -> Part:
    """An object or a list, which is empty where the row has none."""
    value = row.get(name)
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"{name}: {value!r:.60} is no {what}")
    return value or kind()


def _scores(row: Mapping[str, object], quantities: Collection[Quantity]) -> Iterator[tuple[Quantity, float]]:
    for name, score in _part(row, "scores", dict, "JSON object").items():
        if name not in quantities:
            raise ValueError(f"scores: {name!r:.60} is no quantity; use one of: {', '.join(quantities)}")
        yield quantity_of(name), _number(f"scores.{name}", score)


def _claims(row: Mapping[str, object]) -> Iterator[ClaimVerdict | None]:
    for verdict in _part(row, "claims", list, "list"):
        if verdict is not None and verdict not in list(ClaimVerdict):
            raise ValueError(f"claims: {verdict!r:.60} is not known; use one of: {', '.join(ClaimVerdict)}, or null")
        yield None if verdict is None else ClaimVerdict(str(verdict))


def _earlier(row: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for record in _part(row, "earlier", list, "list"):
        if not isinstance(record, dict):
            raise ValueError(f"earlier: {record!r:.60} is no JSON object")  # noqa: TRY004 - the same
        yield record
