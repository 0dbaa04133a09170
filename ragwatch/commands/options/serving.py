"""Options and help of the commands around the daemon: run, demo, check, map, rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from ragwatch.commands.options.finite import FiniteRange
from ragwatch.commands.options.lazy import CONFIG, CONFIG_FILE, Arguments, LazyCommand, argument, option

LLM_JUDGES = ("claude", "openai")


class RunArguments(Arguments):
    """Watch the configured sources and serve /metrics until SIGTERM.

    SIGTERM drains and exits with 0, a second one exits immediately; SIGHUP reloads the configuration.

    With --once, files are read from the beginning, whatever `start` says, and the state is a temporary directory that
    is removed at the end: the configured state is not used, and the budgets of the judges start unused. Exit code 1
    when no record of a source could be read or a directory is missing, 3 when there was nothing to read.
    """

    path: Path = CONFIG_FILE
    once: bool = option(help="Read and judge the existing records, print /metrics text and exit.")
    state: Path | None = option(
        type=CONFIG, help="With --once: keep the state in this directory, and continue from it next time."
    )


run = LazyCommand(RunArguments, "ragwatch.commands.run:run", "run")


class DemoArguments(Arguments):
    """Monitor a small RAG service over the docstrings of the Python library; judges every answer, without an API key.

    With --degrade-after the service gets three faults, one after another: documents disappear from its index, it
    invents facts, it ignores the top-ranked passage. Each is announced, and the stage at fault is shown.

    With --judge claude or openai an LLM also judges a part of the answers, mostly those that the embedded judge is
    unsure of, for at most one dollar per hour. The API key is read from ANTHROPIC_API_KEY or OPENAI_API_KEY.
    """

    port: int = option(default=10477, help="Port of ragwatch; 0 for any free port.")
    seconds: float | None = option(type=FiniteRange(min=1), help="Stop after this many seconds; default: on Ctrl-C.")
    degrade_after: float | None = option(
        type=FiniteRange(min=1), help="Break the service on purpose after this many seconds."
    )
    breakage_seconds: float = option(default=20.0, type=FiniteRange(min=1), help="Duration of each fault.")
    rate: float = option(default=8.0, type=FiniteRange(min=0.1, max=200), help="Questions per second.")
    chunk_words: int = option(
        default=110,
        type=click.IntRange(10, 1000),
        help="Size of the chunks that the service splits its documents into, in words.",
    )
    kind: str | None = option(
        "--judge", type=click.Choice(LLM_JUDGES), help="LLM judge to use besides the embedded judge."
    )
    base_url: str | None = option(help="Base URL of the API of that judge; default: that of its provider.")
    model: str | None = option(help="Model of that judge; required for openai.")


demo = LazyCommand(
    DemoArguments,
    "ragwatch.commands.demo:demo",
    "demo",
    first_line="starting the demo: a small RAG service, monitored by ragwatch ...",
)


class CheckArguments(Arguments):
    """Validate a configuration and test what it refers to: files, records, judges, canary endpoints, address.

    Nothing is stored and no cursor advances. The first samples of each source are shown as they are read. Exit code 1
    when a test failed, 2 when the configuration is invalid, 3 when records are read, but probably wrongly.
    """

    path: Path = CONFIG_FILE


check = LazyCommand(CheckArguments, "ragwatch.commands.check:check", "check")


class MapArguments(Arguments):
    """Guess the format of FILES (JSONL, gzip too; `-` is standard input) and print it as keys of a source.

    Several files may hold parts of the same requests, which share an id. Lines that are no answers, text before the
    JSON, and passages inside a prompt are recognised too.

    The printed keys have been tested on the records; the number of records they read, errors, and the first samples
    as they are read are shown. Exit code 1 when a part of the samples is missing or has to be decided: the output is
    then a draft, with the likely fields and a value of each. Exit code 3 when the records are probably read wrongly:
    contexts that are names of documents or a prompt, an id that repeats, and the like.
    """

    files: Sequence[BinaryIO] = argument(required=True, type=click.File("rb"))


map_log = LazyCommand(MapArguments, "ragwatch.commands.map:map_log", "map")


class RulesArguments(Arguments):
    """Write recording rules and alerts for the thresholds, windows and objectives of a configuration.

    With --dashboards also the Grafana dashboards: their links lead to `web.external_url`, and panels that the
    configured judges can never fill are left out.

    With --from-baseline, print a section `thresholds` for the configuration: for each route and quantity the lower
    bound of its baseline, less the tolerance. Comments say how often each threshold would have paged last week, and how
    often the present one. Exit code 3 when no baseline is learned yet.
    """

    path: Path = CONFIG_FILE
    shape: str = option(
        "--format",
        type=click.Choice(["prometheus", "operator"]),
        default="prometheus",
        help="Rule files, or a PrometheusRule resource.",
    )
    out: Path | None = option(
        type=click.Path(path_type=Path, file_okay=False), help="Directory to write to; default: stdout."
    )
    dashboards: Path | None = option(
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory to write the Grafana dashboards to; the rules are then written only with --out.",
    )
    from_baseline: bool = option(help="Instead, propose thresholds by route from the stored drift baselines.")


rules = LazyCommand(RulesArguments, "ragwatch.commands.rules:rules", "rules")


@click.group()
def store() -> None:
    """Work with the store (key `store`)."""


class StoreCopyArguments(Arguments):
    """Copy the SQLite state in the directory SOURCE to the empty PostgreSQL store that the file TARGET names, or back.

    The other way, SOURCE is the configuration and TARGET a new state directory. Stop ragwatch before. Everything is
    copied: counters, verdicts, labels, costs, saved states and the secret of sampling. SOURCE is not changed. A copy
    that was cut short goes on when the same command is run again; until then ragwatch does not start with TARGET.
    """

    source: Path = argument(type=CONFIG, metavar="SOURCE")
    target: Path = argument(type=CONFIG, metavar="TARGET")


copy = LazyCommand(StoreCopyArguments, "ragwatch.commands.store_copy:copy", "copy")


class StoreViewsArguments(Arguments):
    """Create read-only views of the PostgreSQL store that the file CONFIG names, for Grafana and other readers.

    They stand in a schema of their own (`ragwatch_views` beside `ragwatch`) and contain no texts. Existing ones are
    replaced; ragwatch may be running, and replaces them itself when an upgrade changes the tables. --reader may be
    given several times.
    """

    path: Path = argument(type=CONFIG, metavar="CONFIG")
    readers: Sequence[str] = option("--reader", metavar="ROLE", help="Role that may read the views; must exist.")
    only_print: bool = option("--print", help="Print the SQL statements instead of running them.")


views = LazyCommand(StoreViewsArguments, "ragwatch.commands.store_views:views", "views")


store.add_command(copy)
store.add_command(views)
