"""Options and help of the commands that judge samples or run canaries without a daemon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from ragwatch.commands.options.lazy import CONFIG, OUT, import_and_call, lazy_command

# The same names as in the registries `judges.KINDS` and `formats.NAMES`, whose import is slow.
JUDGES = ("claude", "lexical", "local", "openai")
FORMATS = (
    *("auto", "canonical", "ragas", "deepeval", "llamaindex", "haystack", "langfuse", "langsmith", "bedrock", "vertex"),
    *("azure", "file_search", "openai", "langserve", "langchain", "custom"),
)

Declaration = TypeVar("Declaration", bound=Callable[..., object])


def _reading_options(declaration: Declaration) -> Declaration:
    """Add the options --format and --source, which select how the files are read."""
    source = click.option(
        "--source", metavar="NAME", help="Source in --config whose format and mapping apply to the files."
    )
    record_format = click.option(
        "--format",
        "format_name",
        type=click.Choice(FORMATS),
        help="Format of the rows; default: that of the source in --config, else auto.",
    )
    return record_format(source(declaration))


def _relevance_options(declaration: Declaration) -> Declaration:
    """Add the options --qrels and --k, for rows with relevance judgements."""
    qrels = click.option(
        "--qrels",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Relevance judgements by row id: TREC (4 columns) or BEIR (3 columns below a header).",
    )
    ks = click.option(
        "--k",
        "ks",
        type=click.IntRange(1, 1000),
        multiple=True,
        help="Cut-off of recall, precision, F1 and NDCG; may be given several times; default: 1, 3, 5 and 10.",
    )
    return qrels(ks(declaration))


@lazy_command("ragwatch.commands.judge:judge")
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option("--config", "path", type=CONFIG, help="Configuration file (YAML): mapping, judges, routes.")
@click.option("--judge", "name", help="A configured judge, or a kind; default: the first configured, else lexical.")
@_reading_options
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set an option of the kind, as in YAML.")
def judge() -> None:
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict per line (JSON) on stdout.

    With --config they are read with the format of its source, redacted, and judged by its judges.
    A summary goes to stderr. Exit code 1 when a row could not be converted to a sample.
    """


@lazy_command("ragwatch.commands.redact:redact")
@click.argument("file", type=click.File("rb"))
@click.option("--config", "path", type=CONFIG, help="Configuration file (YAML): its own rules and keys are used too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def redact() -> None:
    """Show what redaction takes from FILE (any text; `-` is standard input): rule, line, column and a masked excerpt.

    Counts by rule go to stderr. Nothing is stored or changed; docs/redaction.md lists the rules.

    Exit code 0 when nothing would be redacted, 1 when something would be, 2 for usage or configuration.
    """


@lazy_command("ragwatch.commands.gate:gate_command")
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option("--config", "path", type=CONFIG, help="Configuration file (YAML): mapping, judges, thresholds.")
@click.option("--judge", "name", help="A configured judge, or a kind; default: the first configured, else lexical.")
@_reading_options
@_relevance_options
@click.option("--baseline", type=OUT, help="Output of an earlier --json run: shows which stage has become worse since.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--junit", "junit_path", type=OUT, help="Write JUnit XML to this file.")
@click.option("--markdown", "markdown_path", type=OUT, help="Write a summary in Markdown to this file.")
def gate() -> None:
    """Judge the samples in FILES (JSONL; `-` or none is standard input) and compare them with thresholds.

    A metric fails when its whole interval, or, with enough samples, its mean is on the wrong side of the threshold. It
    is unknown with too few samples, or when too many could not be judged; then it does not pass.

    Rows with `relevant_ids`, `relevant_texts` or judgements in --qrels also give recall@k, precision@k, F1, NDCG@k and
    MRR, which thresholds may name. They need no answer: test cases of retrieval are reported apart from answers.

    Exit codes: 0 PASS, 1 FAIL, 2 usage or configuration, 3 not enough data.
    """


@lazy_command("ragwatch.commands.compare:compare")
@click.argument("a")
@click.argument("b")
@click.option("--config", "path", type=CONFIG, help="Configuration file (YAML): mapping, judges, suites.")
@click.option("--judge", "judge", help="A configured judge, or a kind; default: the first configured, else lexical.")
@_reading_options
@_relevance_options
@click.option(
    "--log",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="Log that contains both variants; A and B are then values of --label.",
)
@click.option(
    "--live",
    "on_live",
    is_flag=True,
    help="A and B are values of --label in the live traffic judged by the daemon.",
)
@click.option("--since", default="7d", show_default=True, help="Time range of --live, such as 12h or 7d.")
@click.option("--label", default="variant", show_default=True, help="Metadata key that names the variant of a sample.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def compare() -> None:
    """Compare B with A on the same questions.

    A and B are two logs of samples (JSONL), two variants in one log (--log) or in live traffic (--live), two suites of
    --config that run the same canaries against two retrievers, or two configuration files (YAML), all of whose
    canaries are run.

    Rows of logs with `relevant_ids`, `relevant_texts` or judgements in --qrels are compared in recall@k, precision@k,
    F1, NDCG@k and MRR too, with or without an answer.

    Questions on both sides are paired; if there are too few of them, the unpaired means are compared, and the output
    says so. Unpaired live answers are weighted by 1 / inclusion probability, so that each mean estimates all traffic
    of its variant. Each metric has its own interval: one metric in twenty may differ by chance.

    Exit code 1 when B is significantly worse in a metric, 3 when nothing can be compared.
    """


@click.group(invoke_without_command=True)
@click.option("--config", "path", type=CONFIG, help="Configuration file (YAML); required.")
@click.option("--suite", "names", multiple=True, help="Run only this suite; may be given several times.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.pass_context
def canary(context: click.Context, /, path: Path | None, **options: object) -> object:
    """Run every canary once, now. Nothing is stored. `ragwatch canary suggest` proposes new ones.

    Exit code 1 when a canary is degraded, 3 when none is degraded but some queries failed.
    """
    if context.invoked_subcommand is not None:
        return 0
    if path is None:
        raise click.UsageError("Missing option '--config'.", context)
    return import_and_call("ragwatch.commands.canary:canary", path=path, **options)


@lazy_command("ragwatch.commands.suggest:suggest_command")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number.")
@click.option("--out", type=OUT, help="Write the suite to this file; default: stdout.")
@click.option(
    "--indexed",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Last update of the index; default: the last event of kind index, else the newest date in the contexts.",
)
def suggest() -> None:
    """Propose canaries from judged traffic, with the contexts that people or the judge found right.

    Half of them are head questions, which make 80 % of the traffic. The others are odd or ambiguous, have no good
    answer, need several contexts, or ask about a time after the last update of the index. The file says why each was
    chosen, and how much of the vocabulary of the questions all of them hold.

    The daemon may be running; only the suite is written. An existing file is not overwritten. Questions that are
    already canaries are left out.

    Exit code 3 when there is nothing to propose yet.
    """


canary.add_command(suggest)
