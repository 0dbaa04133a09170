"""`ragwatch init`: writes a first configuration from a log, tests it, and prints how to start and scrape ragwatch."""

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import click

from ragwatch.commands.check import check
from ragwatch.commands.init_judges import JudgeRow, ask_for_judge, default_judge, judge_named
from ragwatch.commands.log_head import LogRoutes, log_routes, names_of, refused_lines
from ragwatch.commands.map import SourceProposal, print_source, propose_source
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.formats.guessing.candidates import Candidate
from ragwatch.model.sample import OTHER, Sample
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS
from ragwatch.terminal.given import write_new
from ragwatch.terminal.options import IntegerRange
from ragwatch.terminal.options.administration import CheckArguments, InitArguments
from ragwatch.terminal.output import printable, say

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
JUDGED_PER_DAY = 2000
"""Answers to judge in a day: the mean of a 0/1 score over them has an interval of about two points to each side."""
DEFAULT_PER_DAY = 20_000
SMALL_LOG_BYTES = 1_000_000
"""Size of all logs up to which a service is taken to give, in a day, as many answers as they hold."""
DAY_SECONDS = 86_400.0
SYSTEM_STATE = Path("/var/lib/ragwatch")
LISTEN = "127.0.0.1:10477"


def init(given: InitArguments) -> int:
    """Write a configuration for some logs or for answers that are sent, and test it.

    Returns the exit code: 0; 1 if the logs cannot be read or a test failed.
    """
    if given.only_print:
        return _print(given.logs)
    if Path("-") in given.logs:
        raise ConfigError("init: standard input has no path to write into a configuration; give files, or --print")
    if bool(given.logs) == (given.receive is not None):
        raise ConfigError("init: give the log files of the service, or --receive push or otlp without files")
    if str(given.out) != "-" and given.out.exists():
        raise ConfigError(f"--out {given.out}: already exists and is not overwritten; name another file")
    for log in given.logs:
        _check_name(str(log), log.resolve())
    try:
        with _opened(given.logs) as files:
            proposal = propose_source(files, None if given.yes else _choose) if files else None
        if given.logs and proposal is None:
            return 1
        samples = () if proposal is None else proposal.samples
        size = sum(log.stat().st_size for log in given.logs)
        state, per_day, judge = _ask(given, samples, is_small=0 < size <= SMALL_LOG_BYTES)
    except click.Abort as error:
        raise ConfigError("init: standard input ended before all questions were answered; or give --yes") from error
    _check_encoding("--state", state)
    source = list(_received(str(given.receive))) if proposal is None else list(_tailed(proposal, given.logs))
    text = "\n".join(_configuration(source, log_routes(samples), state, per_day, judge)) + "\n"
    if str(given.out) == "-":
        click.echo(text, nl=False)
        return 0
    write_new(given.out, text)
    click.echo(f"wrote {given.out}\n")
    if proposal is not None and not proposal.certain:
        click.echo(
            f"The keys of the source are a draft: complete them in {given.out}, then run the test below again.\n"
        )
    code = _check(given.out)
    click.echo("\n".join(_next_steps(given.out)))
    return code


def _print(logs: Sequence[Path]) -> int:
    if not logs:
        raise ConfigError("--print: shows what is recognised in log files; give these, or - for standard input")
    with _opened(logs) as files:
        return print_source(files)


@contextmanager
def _opened(logs: Sequence[Path]) -> Iterator[list[BinaryIO]]:
    """Open logs, of which `-` is standard input."""
    with ExitStack() as opened:
        yield [cast("BinaryIO", opened.enter_context(click.open_file(str(log), "rb"))) for log in logs]


def _check_name(shown: str, path: Path) -> None:
    """Refuse the name of a log that a configuration cannot hold."""
    _check_encoding(shown, path)
    if "${" in str(path):
        raise ConfigError(
            f"{shown}: the path {path} has ${{, which names environment variables in a configuration; rename the "
            "file or directory"
        )


def _check_encoding(shown: str, path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{printable(shown)}: the path {printable(str(path))} is not UTF-8, as a configuration must be; rename the "
            "file or directory"
        ) from error


def _choose(part: str, listed: Sequence[Candidate]) -> Candidate | None:
    click.echo(f"Which of these is the {part}?")
    for number, one in enumerate(listed, start=1):
        click.echo(f"  {number}  {printable(one.shown)}")
    number = click.prompt("Number, or 0 for none", type=IntegerRange(0, len(listed)))
    return listed[number - 1] if number else None


def _ask(given: InitArguments, samples: Sequence[Sample], *, is_small: bool) -> tuple[Path, int, JudgeRow]:
    """Ask for the state, the number of answers in a day, and the judge; the defaults are taken with `yes`."""
    measured, state = _per_day(samples), given.state
    judge = judge_named(given.judge or default_judge()) if given.judge or given.yes else None
    default_per_day = (len(samples) or JUDGED_PER_DAY) if is_small else DEFAULT_PER_DAY
    default_state = SYSTEM_STATE if os.access(SYSTEM_STATE.parent, os.W_OK) else Path.cwd() / "ragwatch-state"
    if given.yes and judge is not None:
        return state or default_state, measured or default_per_day, judge
    if state is None:
        state = Path(click.prompt("Directory for the state (a database; local disk)", default=str(default_state)))
    if measured is None:
        per_day = click.prompt("About how many answers does the service give in a day", default_per_day, type=int)
        measured = max(1, per_day)
    return state, measured, judge or ask_for_judge(samples, round(share_of(measured) * measured))


def _per_day(samples: Sequence[Sample]) -> int | None:
    """Answers in a day, by the times in the log; None if they do not tell."""
    times = [sample.at for sample in samples if sample.at is not None]
    span = max(times) - min(times) if len(times) > 1 else 0.0
    return round((len(times) - 1) / span * DAY_SECONDS) if span >= 1.0 else None


def share_of(per_day: int) -> float:
    """Return the share of answers to judge, so that about `JUDGED_PER_DAY` are judged in a day.

    >>> [share_of(count) for count in (500, 20_000, 3_000_000)]
    [1.0, 0.1, 0.001]
    """
    return next((share for share in SHARES if share * per_day <= JUDGED_PER_DAY), SHARES[-1])


def _tailed(proposal: SourceProposal, logs: Sequence[Path]) -> Iterator[str]:
    """Lines of one source per log, with the keys that read it; a proposal of several logs is one source."""
    if proposal.is_whole:
        yield from _item(proposal.lines)
        return
    for number, log in enumerate(logs, start=1):
        name = "app" if len(logs) == 1 else f"app{number}"
        yield from _item(["kind: tail", f"name: {name}", f"path: {_text(str(log.resolve()))}", *proposal.lines])


def _received(kind: str) -> Iterator[str]:
    where = {"push": "POST /v1/samples", "otlp": "POST /v1/traces (OTLP over HTTP)"}[kind]
    yield from _item([f"# answers are received at {where}", f"kind: {kind}", "name: app"])


def _item(lines: Sequence[str]) -> Iterator[str]:
    """Indent lines as one item of a list."""
    is_first = True
    for line in lines:
        if line.startswith("#"):
            yield f"    {line}"
        else:
            yield f"{'  - ' if is_first else '    '}{line}"
            is_first = False


def _configuration(
    source: Sequence[str], routes: LogRoutes, state: Path, per_day: int, judge: JudgeRow
) -> Iterator[str]:
    share = share_of(per_day)
    yield "# Configuration of ragwatch. docs/reference.md lists all keys. Editors complete them"
    yield "# after `ragwatch config schema > ragwatch.schema.json` if this file begins with the line"
    yield "# yaml-language-server: $schema=ragwatch.schema.json"
    yield ""
    yield "# Database and lock file. On a local disk, used by one process."
    yield f"state: {_text(str(state))}"
    yield ""
    yield f'# Values of the label `route`; any other route counts as "{OTHER}".'
    if routes.more:
        yield f"# The log has these routes too; list those that you want to see apart: {names_of(routes.more)}"
    yield from refused_lines(routes)
    yield f"routes: {json.dumps(routes.listed)}"
    yield ""
    yield "sources:"
    yield from source
    yield ""
    yield f"# Share of the answers that is judged: of about {per_day} a day, {round(share * per_day)}."
    yield "sampling:"
    yield f"  probability: {share:g}"
    yield ""
    yield "# The first judge is the one that gauges, alerts and drift detection refer to."
    yield "judges:"
    for lines in judge.items():
        yield from _item(lines)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _check(path: Path) -> int:
    try:
        return check(CheckArguments(path=path, every=False))
    except RagwatchError as error:
        say(str(error))
        return 1


def _next_steps(path: Path) -> Iterator[str]:
    name = shlex.quote(str(path))
    yield ""
    yield f"Test it again:  ragwatch check --config {name}"
    yield f"Try it once:    ragwatch run --once --config {name}"
    yield f"Start it:       ragwatch run --config {name}"
    label = f"ragwatch label --config {name} --annotator YOU --count {CALIBRATED_LABELS}"
    yield f"Calibrate it:   {label}    (or at /label?for=calibration)"
    yield f"Alerts:         ragwatch rules --config {name} --out rules/"
    yield "Scrape job for prometheus.yml:"
    yield ""
    yield "scrape_configs:"
    yield "  - job_name: ragwatch"
    yield f'    static_configs: [{{targets: ["{LISTEN}"]}}]'
