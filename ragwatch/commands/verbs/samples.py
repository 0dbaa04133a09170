"""Samples: the commands that read answers or ask canaries without a daemon: judge, gate, compare, canary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ragwatch.commands.verbs.deferred import CONFIG, OUT, lazy_command, perform

# What these commands offer. The registries name the same, but they bring along everything that they name.
JUDGES = ("claude", "lexical", "local", "openai")
FORMATS = ("auto", "canonical", "ragas", "deepeval", "llamaindex", "haystack", "openai", "langchain", "custom")

Declared = TypeVar("Declared", bound=Callable[..., Any])


def _reading_options(declared: Declared) -> Declared:
    """The options --format and --source of commands that read samples, as the source of a configuration would."""
    source = click.option(
        "--source", metavar="NAME", help="Source of --config whose format and mapping the files have."
    )
    shape = click.option(
        "--format",
        "format_name",
        type=click.Choice(FORMATS),
        help="Shape of the rows; that of the source in --config, else auto.",
    )
    return shape(source(declared))


@lazy_command("ragwatch.commands.judge:judge")
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option("--config", "path", type=CONFIG, help="Configuration (YAML): mapping, judges, routes.")
@click.option("--judge", "name", help="A configured judge, or a kind; the first configured one, else lexical.")
@_reading_options
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of a kind, as in YAML.")
def judge() -> None:
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict JSON a line on stdout.

    With --config they are read as its source would read them, redacted, and judged by its judges.
    A summary goes to stderr. Exit code 1 when a row could not be read as a sample.
    """


@lazy_command("ragwatch.commands.gate:gate_command")
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option("--config", "path", type=CONFIG, help="Configuration (YAML): mapping, judges, thresholds.")
@click.option("--judge", "name", help="A configured judge, or a kind; the first configured one, else lexical.")
@_reading_options
@click.option("--baseline", type=OUT, help="An earlier --json output: says which stage became worse since.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of a table.")
@click.option("--junit", "junit_path", type=OUT, help="Write JUnit XML there.")
@click.option("--markdown", "markdown_path", type=OUT, help="Write a summary in Markdown there.")
def gate() -> None:
    """Judge the samples in FILES (JSONL; `-` or none is standard input) and hold them against thresholds.

    A metric fails when its whole interval, or, with enough samples, its mean is on the wrong side. It is unknown with
    too few samples, or when too many could not be read; then it does not pass.

    Exit codes: 0 PASS, 1 FAIL, 2 usage or configuration, 3 not enough data.
    """


@lazy_command("ragwatch.commands.compare:compare")
@click.argument("a")
@click.argument("b")
@click.option("--config", "path", type=CONFIG, help="Configuration (YAML): mapping, judges, suites.")
@click.option("--judge", "judge", help="A configured judge, or a kind; the first configured one, else lexical.")
@_reading_options
@click.option(
    "--log",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="Log of both variants: A and B are then values of --label.",
)
@click.option(
    "--live", "on_live", is_flag=True, help="A and B are values of --label in what the daemon of --config has judged."
)
@click.option("--since", default="7d", show_default=True, help="How far back --live looks, such as 12h or 7d.")
@click.option("--label", default="variant", show_default=True, help="Metadata that names a sample's variant.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of a table.")
def compare() -> None:
    """Compare B with A over the same questions.

    A and B are two logs of samples (JSONL), two variants in one log (--log) or in live traffic (--live), two suites of
    --config that ask two retrievers the same canaries, or two configuration files (YAML), all of whose canaries are
    asked.

    Questions that both sides share are paired; where they share too few, the means are compared, and that is said.
    Live answers weigh 1 / sampling probability there, so that each mean is the one of all traffic of its variant.
    Each metric has an interval of its own, so of twenty metrics one may look different by chance.

    Exit code 1 when B is worse in a metric beyond noise, 3 when nothing can be compared.
    """


@click.group(invoke_without_command=True)
@click.option("--config", "path", type=CONFIG, help="Configuration file (YAML); required.")
@click.option("--suite", "wanted", multiple=True, help="Only this suite; may be given several times.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of tables.")
@click.pass_context
def canary(context: click.Context, /, path: Path | None, **options: object) -> object:
    """Run every canary once, now. Nothing is stored. `ragwatch canary suggest` proposes new ones.

    Exit code 1 when a canary is degraded, 3 when none is but some could not be asked.
    """
    if context.invoked_subcommand is not None:
        return 0
    if path is None:
        raise click.UsageError("Missing option '--config'.", context)
    return perform("ragwatch.commands.canary:canary", path=path, **options)


@lazy_command("ragwatch.commands.suggest:suggest_command")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Most that are proposed.")
@click.option("--out", type=OUT, help="Write the suite there; else stdout.")
def suggest() -> None:
    """Propose canaries out of judged traffic: frequent questions, with the contexts that supported good answers.

    The daemon may run meanwhile; nothing is written but the suite. An existing file is left alone. Questions that are
    canaries already are left out.

    Exit code 3 when there is nothing to propose yet.
    """


canary.add_command(suggest)
