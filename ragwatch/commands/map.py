"""`ragwatch init --print`: guesses the format of a log and prints it as YAML."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import click

from ragwatch.commands.log_head import MAX_SHOWN, FormatTrial, LogHead, as_read, log_routes, read_head, refused_lines
from ragwatch.commands.map_join import JoinGuess, guess_join, join_yaml
from ragwatch.formats import CUSTOM, FORMATS
from ragwatch.formats.custom import REQUIRED, MappingReader
from ragwatch.formats.expressions import predicate
from ragwatch.formats.guessing.candidates import Candidate
from ragwatch.formats.guessing.guess import PARTS, FormatGuess, guess, holds_answer, known_formats, propose
from ragwatch.formats.guessing.guess_options import EVERY_OBJECT, guess_prompt, prompts_of, propose_split, propose_where
from ragwatch.formats.guessing.suspicion import MIN_DISTINCT, has_prompt, suspicions
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.split import Splitter
from ragwatch.model.sample import Sample
from ragwatch.offline.input_files import Rejects
from ragwatch.terminal.options.administration import MapArguments
from ragwatch.terminal.output import file_name_in_errors, printable, say

_SEPARATE = "# no answer is proposed: log an answer and its contexts in one record"
_NOTHING = "# no field looks like a question, contexts or an answer: write a mapping by hand"
DRAFT, SUSPECT = 1, 3  # exit codes
_OTHER_LOGS = {  # what lines without a JSON object look like
    "dicts as Python prints them, which json.dumps would write as JSON": re.compile(r"\{'[^']{1,60}': "),
    "logfmt": re.compile(r"(?:^|\s)\w+=\S.*?\s\w+=\S"),
    "CSV": re.compile(r'^[\w "]*(?:[,;\t][\w "]*){2,}\s*$'),
}


_MOST_REJECTED = 0.2
"""Share of the records of a log above which rejected ones are a question."""


@dataclass(frozen=True, slots=True)
class _Proposal:
    """What is proposed for a log, and what it reads."""

    guess: FormatGuess  # format and mapping
    splitter: Splitter | None  # how passages are cut out of a prompt; None to take contexts as they are
    trial: FormatTrial  # what the format reads of the log
    problems: Sequence[str] = ()  # what is suspected of the samples
    where: str | None = None  # condition that tells answers from other records; None if none is needed, or found
    unread: int = 0  # number of records that look like answers and are not read

    @property
    def rejected(self) -> Rejects:
        """The records that cannot be read and would not be skipped."""
        rejects = Rejects()
        selects = None if self.where is None else predicate("where", self.where)
        for number, record, error in self.trial.others:
            if selects is None or selects(record):
                rejects.add(number, error)
        return rejects

    @property
    def questions(self) -> list[str]:
        """What a person has to decide, or to add."""
        asked = [
            f"no field looks like {part}" + (" in some records" if part in self.guess.mapping else "")
            for part in self.guess.missing
            if self.guess.missing[part] and self.guess.share
        ]
        asked += [_question(part, listed) for part, listed in self.guess.decisions.items()]
        if self.unread:
            asked.append(f"{self.unread} more records look like answers and are not read: map the names that they use")
        samples, rejected = self.trial.samples, self.rejected.counts.total()
        if samples and not self.unread and rejected > _MOST_REJECTED * (rejected + len(samples)):
            asked.append(f"{rejected} records would be rejected: if they are no answers, select the others with where")
        if self.guess.format == CUSTOM and len({(one.question, one.answer) for one in samples}) < MIN_DISTINCT:
            asked.append(f"fewer than {MIN_DISTINCT} different answers are in the log, so nothing could be compared")
        return asked

    @property
    def code(self) -> int:
        """Exit code: 0 if all checks passed, on enough records to check."""
        if self.problems:
            return SUSPECT
        return DRAFT if self.questions or not self.trial.samples else 0


def _question(part: str, listed: Sequence[Candidate]) -> str:
    if listed[-1].expression.startswith("reverse("):
        first, last = (one.shown for one in listed)
        return f"scores improve from the first passage to the last; which one is the top-ranked: {first}; or {last}?"
    alone = "is this what was retrieved?" if part == "contexts" else f"is this the {part}?"
    asked = f"which of these is the {part}?" if len(listed) > 1 else alone
    return f"{asked} {'; '.join(one.shown for one in listed)}"


def map_log(given: MapArguments) -> int:
    """The former name of `ragwatch init --print`."""
    say("ragwatch: `ragwatch map` is `ragwatch init --print` now; the next release drops `map`")
    return print_source(given.files)


def print_source(files: Sequence[BinaryIO]) -> int:
    """Guess the format of some logs and print it as keys of a source. Returns the exit code."""
    logs = _read_heads(files)
    join = _join_of(logs)
    if join is not None:
        click.echo("\n".join(join_yaml(join, logs)))
        return DRAFT if join.guess.is_doubtful else 0
    codes = []
    for name, log in logs:
        if len(logs) > 1:
            click.echo(f"# {printable(name)}")
        proposal = _proposal(name, log)
        if proposal is not None:
            click.echo("\n".join(_yaml(proposal, log)))
        codes.append(DRAFT if proposal is None else proposal.code)
    return max(codes)


@dataclass(frozen=True, slots=True)
class SourceProposal:
    """What is proposed for some logs, for a configuration."""

    lines: Sequence[str]  # keys of a source, as lines of YAML
    is_whole: bool  # they are a whole source, with kind, name and path; else only how records are read
    certain: bool  # they read the logs; else they are a draft to complete
    samples: Sequence[Sample]  # the samples that they read


Choose = Callable[[str, Sequence[Candidate]], "Candidate | None"]


def propose_source(files: Sequence[BinaryIO], choose: Choose | None = None) -> SourceProposal | None:
    """Return what reads some logs as one source; None if they hold no record, which standard error then explains.

    `choose` asks which field is a part, where that is not clear.
    """
    logs = _read_heads(files)
    join = _join_of(logs)
    if join is not None:
        return SourceProposal(
            tuple(join_yaml(join, logs)), is_whole=True, certain=not join.guess.is_doubtful, samples=()
        )
    name, log = max(logs, key=lambda entry: len(entry[1].records))
    proposal = _proposal(name, log)
    if proposal is None:
        return None
    if choose is not None:
        proposal = _decided(proposal, log, choose)
    samples = proposal.trial.samples
    certain = not proposal.code
    return SourceProposal(tuple(_yaml(proposal, log, brief=True)), is_whole=False, certain=certain, samples=samples)


def _decided(proposal: _Proposal, log: LogHead, choose: Choose) -> _Proposal:
    """The proposal with the fields that a person chooses; as it is where none is chosen."""
    best = proposal.guess
    asked = {part: listed for part, listed in {**best.missing, **best.decisions}.items() if listed}
    chosen: dict[str, str] = {}
    for part, listed in asked.items():
        left = [one for one in listed if one.expression not in chosen.values()]
        if left and (one := choose(part, left)) is not None:
            chosen[part] = one.expression
    mapping = {**best.mapping, **chosen}
    if not chosen or not {*REQUIRED} <= mapping.keys() or best.format not in (None, CUSTOM):
        return proposal
    missing = {part: listed for part, listed in best.missing.items() if part not in chosen}
    decided = replace(best, format=CUSTOM, mapping=mapping, missing=missing, decisions={}, apart=False)
    return _try(decided, log)


def _read_heads(files: Sequence[BinaryIO]) -> list[tuple[str, LogHead]]:
    """Read the first records of each file; torn records are printed."""
    logs: list[tuple[str, LogHead]] = []
    for file in files:
        name = getattr(file, "name", "<stdin>")
        with file_name_in_errors(name):
            logs.append((name, read_head(file)))
        _print_errors(logs[-1][1].rejects.lines(name))
    return logs


def _join_of(logs: Sequence[tuple[str, LogHead]]) -> JoinGuess | None:
    heads = [log for _, log in logs]
    return None if any(guess(log.bare).share for log in heads) else guess_join(heads)


def _proposal(name: str, log: LogHead) -> _Proposal | None:
    """What is proposed for one log, and what is wrong with it on standard error; None if it has no records."""
    if not log.records:
        _print_errors(log.texts.lines(name))
        kind = next((kind for kind, pattern in _OTHER_LOGS.items() if pattern.search(log.begin)), "no JSON object")
        advice = "ragwatch reads one JSON object per line; docs/logs.md has the line that converts"
        say(f"{name}: holds {kind}; {advice} CSV, SQLite, logfmt and Python's dicts")
        return None
    proposal = _propose(log)
    if proposal.guess.format is None:
        _print_errors(f"{name}: {error}" for error in proposal.guess.errors)
    else:
        _print_errors(proposal.rejected.lines(name))
    _print_errors(f"{name}: {text}" for text in (*proposal.problems, *proposal.questions))
    return proposal


def _print_errors(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def _propose(log: LogHead) -> _Proposal:
    """What reads most of a log without a suspicion: a known format, likely fields, or passages cut out of a prompt."""
    listed = [*known_formats(log.bare), propose(log.bare)]
    tried = [_try(one, log) for one in listed if one.share]
    if all(one.problems or one.guess.decisions for one in tried):
        prompt = guess_prompt(log.bare)
        tried += [_try(prompt, log)] if prompt is not None else []
    if not tried:
        return _Proposal(guess(log.bare), None, FormatTrial([], [], []))
    return min(tried, key=lambda one: (bool(one.problems), bool(one.guess.decisions), -len(one.trial.samples)))


def _try(best: FormatGuess, log: LogHead) -> _Proposal:
    splitter = best.split
    trial = log.read_with(_reader(best, splitter))
    if splitter is None and 2 * sum(map(has_prompt, trial.samples)) > len(trial.samples):
        splitter = propose_split(prompts_of(trial.samples))
        trial = trial if splitter is None else log.read_with(_reader(best, splitter))
    problems = suspicions(trial.samples)
    unread = [record for _, record, _ in trial.others if holds_answer(record)]
    others = [record for _, record, _ in trial.others if record not in unread]
    where = propose_where(trial.answers, others, log.texts.counts.total())
    if where is not None and not all(map(predicate("where", where), unread)):
        where = None  # it would skip answers
    return _Proposal(best, splitter, trial, problems=problems, where=where, unread=len(unread))


def _reader(best: FormatGuess, splitter: Splitter | None) -> LogReader:
    mapping = best.mapping if best.format == CUSTOM else best.added
    return LogReader(RecordRules(str(best.format), mapping, split=None if splitter is None else splitter.option))


def _yaml(proposal: _Proposal, log: LogHead, *, brief: bool = False) -> list[str]:
    """Lines of YAML for a source. Strings are written as JSON strings, which are valid YAML.

    With `brief` without what is only to be known: the mapping that a format is the same as, and the routes.
    """
    best, trial = proposal.guess, proposal.trial
    if best.format is None:
        return [*_draft(best)]
    total = len(log.records) + log.rejects.counts.total()
    share = f"reads {len(trial.samples)} of {total} records ({len(trial.samples) / total:.0%})"
    lines = [f"# {share}", f"format: {best.format}"]
    bias = "" if best.format == CUSTOM else FORMATS[str(best.format)].KNOWN_BIAS
    if bias:
        lines.insert(1, f"# known bias: {bias}")
    lines[1:1] = [f"# {text}" for text in (*proposal.problems, *proposal.questions)]
    if best.format == CUSTOM:
        lines[0] += "; the fields were chosen by their names and values: look at what is read"
        lines += ["mapping:", *_mapping(best.mapping, "  "), *_missing(best)]
    elif best.added:
        lines += [f"mapping:  # added to what {best.format} reads", *_mapping(best.added, "  ")]
    elif best.mapping and not brief and len(log.read_with(MappingReader(best.mapping)).samples) == len(trial.samples):
        lines += ["# the same as a mapping:", "# mapping:", *_mapping(best.mapping, "#   ")]
    lines += _selection(proposal, log)
    if trial.samples and all(one.at is None for one in trial.samples):
        lines.append("# no field was recognised as the time of the answer: the time of reading is used")
    if proposal.splitter is not None:
        passages = sum(len(sample.contexts) for sample in trial.samples) / max(1, len(trial.samples))
        logged = "stand in a prompt" if best.split is None else "are one text"
        lines.append(f"# the contexts {logged}, of which split cuts {passages:.1f} passages on average:")
        lines.append(f"split: {json.dumps(proposal.splitter.option, ensure_ascii=False)}")
    elif 2 * sum(map(has_prompt, trial.samples)) > len(trial.samples):
        lines.append("# the contexts look like whole prompts, which split cannot cut: log the passages as a list")
    if brief:
        return lines
    shown = list(zip(trial.answers, trial.samples, strict=True))[:MAX_SHOWN]
    return [*lines, *_route_lines(trial.samples), *(f"#| {line}" for pair in shown for line in as_read(*pair))]


def _draft(best: FormatGuess) -> Iterator[str]:
    """A mapping to complete: what was found, and the likely fields for what is missing."""
    if best.apart:
        yield _SEPARATE
    if not best.mapping and not any(best.missing.values()):
        yield _NOTHING
    yield "format: custom"
    yield "mapping:"
    yield from _mapping(best.mapping, "  ")
    yield from _missing(best)


def _missing(best: FormatGuess) -> Iterator[str]:
    for part in PARTS:
        if part in best.missing:
            yield f"  # {part} is missing: " + ("is it one of these?" if best.missing[part] else "no field fits")
            yield from (f"  #   {printable(one.shown)}" for one in best.missing[part])


def _route_lines(samples: Sequence[Sample]) -> Iterator[str]:
    """Comments that name the routes for the configuration, and those that it would refuse."""
    routes = log_routes(samples)
    if routes.listed:
        more = f" and {len(routes.more)} more" if routes.more else ""
        yield f"# routes to list at the top level of the configuration: {json.dumps(routes.listed)}{more}"
    yield from refused_lines(routes)


def _selection(proposal: _Proposal, log: LogHead) -> list[str]:
    lines = []
    if log.prefixed:
        lines += [f"# {log.prefixed} lines have text before the JSON, which prefix strips", "prefix: auto"]
    if log.several is not None:
        lines += [
            "# a line or document holds several records, which records finds",
            f"records: {json.dumps(log.several)}",
        ]
    others, texts = len(proposal.trial.others), log.texts.counts.total()
    if proposal.where is None or (log.prefixed and proposal.where == EVERY_OBJECT):
        return lines
    skipped = others - proposal.rejected.counts.total()
    counts = [f"{skipped} records", f"{texts} lines without JSON"]
    which = " and ".join(count for count in counts if not count.startswith("0 "))
    lines.append(f"# {which} are no answers: where skips them, so that they are not rejected")
    lines.append(f"where: {json.dumps(proposal.where, ensure_ascii=False)}")
    return lines


def _mapping(mapping: Mapping[str, str], indent: str) -> list[str]:
    return [f"{indent}{key}: {json.dumps(expression)}" for key, expression in mapping.items()]
