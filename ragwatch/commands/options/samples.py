"""Options and help of the commands that judge samples or run canaries without a daemon."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click

from ragwatch.commands.options.lazy import (
    CONFIG,
    CONFIG_FILE,
    OUT,
    Arguments,
    LazyCommand,
    argument,
    import_and_call,
    option,
)

# The same names as in the registries `judges.KINDS` and `formats.NAMES`, whose import is slow.
JUDGES = ("claude", "lexical", "local", "openai")
FORMATS = (
    *(
        "auto",
        "canonical",
        "ragas",
        "llamaindex",
        "haystack",
        "langfuse",
        "langsmith",
    ),
    *(
        "phoenix",
        "mlflow",
        "deepeval",
        "bedrock",
        "azure",
        "anthropic",
        "bedrock_log",
    ),
    *(
        "cohere",
        "litellm",
        "helicone",
        "dify",
        "flowise",
        "openwebui",
        "librechat",
    ),
    *(
        "ragflow",
        "trulens",
        "loguru",
        "serilog",
        "logstash",
        "haystack_chat",
        "langgraph",
    ),
    *(
        "vertex",
        "file_search",
        "openai",
        "langserve",
        "langchain",
        "custom",
    ),
)

RECORD_FORMAT = option(
    "--format",
    type=click.Choice(FORMATS),
    help="Format of the rows; default: that of the source in --config, else auto.",
)
SOURCE_NAME = option(metavar="NAME", help="Source in --config whose format and mapping apply to the files.")
JUDGE_NAME = option("--judge", help="A configured judge, or a kind; default: the first configured, else lexical.")
QRELS = option(
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Relevance judgements by row id: TREC (4 columns) or BEIR (3 columns below a header).",
)
CUT_OFFS = option(
    "--k",
    type=click.IntRange(1, 1000),
    help="Cut-off of recall, precision, F1 and NDCG; may be given several times; default: 1, 3, 5 and 10.",
)


class JudgeArguments(Arguments):
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict per line (JSON) on stdout.

    With --config they are read with the format of its source, redacted, and judged by its judges.
    Rows with relevance judgements have their ranking metrics, and need no answer. A summary goes to stderr. Exit code 1
    when a row could not be converted to a sample.
    """

    files: Sequence[BinaryIO] = argument(type=click.File("rb"))
    path: Path | None = option("--config", type=CONFIG, help="Configuration file (YAML): mapping, judges, routes.")
    name: str | None = JUDGE_NAME
    format_name: str | None = RECORD_FORMAT
    source: str | None = SOURCE_NAME
    settings: Sequence[str] = option("--set", metavar="KEY=VALUE", help="Set an option of the kind, as in YAML.")


judge = LazyCommand(JudgeArguments, "ragwatch.commands.judge:judge", "judge")


class RedactArguments(Arguments):
    """Show what redaction takes from FILE (any text; `-` is standard input): rule, line, column and a masked excerpt.

    Counts by rule go to stderr. Nothing is stored or changed; docs/redaction.md lists the rules.

    Exit code 0 when nothing would be redacted, 1 when something would be, 2 for usage or configuration.
    """

    file: BinaryIO = argument(type=click.File("rb"))
    path: Path | None = option(
        "--config", type=CONFIG, help="Configuration file (YAML): its own rules and keys are used too."
    )
    as_json: bool = option("--json", help="Print JSON instead of lines.")


redact = LazyCommand(RedactArguments, "ragwatch.commands.redact:redact", "redact")


class GateArguments(Arguments):
    """Judge the samples in FILES (JSONL; `-` or none is standard input) and compare them with thresholds.

    A metric is compared by its level, in people's terms: its interval contains the judge's own error, and where the
    threshold is inside, the metric is unknown, and the output says how many labels would decide. Where nothing is
    known of that error, and with --uncorrected, the mean of the judge decides, and the output says so.

    A metric fails when its whole interval, or, with enough samples, its mean is on the wrong side of the threshold. It
    is unknown with too few samples, or when too many could not be judged; then it does not pass.

    Rows with `relevant_ids`, `relevant_texts` or judgements in --qrels also give recall@k, precision@k, F1, NDCG@k,
    context precision and MRR, which thresholds may name. They need no answer: test cases of retrieval are reported
    apart from answers.

    With --baseline, metrics that block, faithfulness and recall must not fall; docs/ci.md has an example.

    Exit codes: 0 PASS, 1 FAIL, 2 usage or configuration, 3 not enough data.
    """

    files: Sequence[BinaryIO] = argument(type=click.File("rb"))
    path: Path | None = option("--config", type=CONFIG, help="Configuration file (YAML): mapping, judges, thresholds.")
    name: str | None = JUDGE_NAME
    format_name: str | None = RECORD_FORMAT
    source: str | None = SOURCE_NAME
    qrels: Path | None = QRELS
    ks: Sequence[int] = CUT_OFFS
    baseline: Path | None = option(
        type=OUT, help="Output of an earlier --json run: a significant fall since then fails, naming the questions."
    )
    labels: Path | None = option(type=OUT, help="What people say of these answers, as for `ragwatch estimate`.")
    uncorrected: bool = option(help="Compare the mean of the judge, whose own error is not in its interval.")
    as_json: bool = option("--json", help="Print JSON instead of a table.")
    junit_path: Path | None = option("--junit", type=OUT, help="Write JUnit XML to this file.")
    markdown_path: Path | None = option("--markdown", type=OUT, help="Write a summary in Markdown to this file.")


gate = LazyCommand(GateArguments, "ragwatch.commands.gate:gate_command", "gate")


class CompareArguments(Arguments):
    """Compare B with A on the same questions.

    A and B are two logs of samples (JSONL), two variants in one log (--log) or in live traffic (--live), two suites of
    --config that run the same canaries against two retrievers, or two configuration files (YAML), all of whose
    canaries are run.

    Rows of logs with `relevant_ids`, `relevant_texts` or judgements in --qrels are compared in recall@k, precision@k,
    F1, NDCG@k and MRR too, with or without an answer.

    Questions on both sides are paired; if there are too few of them, the unpaired means are compared, and the output
    says so. Unpaired live answers are weighted by 1 / inclusion probability, so that each mean estimates all traffic
    of its variant. Each metric has its own interval: one metric in twenty may differ by chance. Where the judge's own
    error is known, the level of each side in people's terms is shown; the conclusion is about the judge's means.

    Exit code 1 when B is significantly worse in a metric, 3 when nothing can be compared.
    """

    a: str = argument()
    b: str = argument()
    path: Path | None = option("--config", type=CONFIG, help="Configuration file (YAML): mapping, judges, suites.")
    judge: str | None = JUDGE_NAME
    format_name: str | None = RECORD_FORMAT
    source: str | None = SOURCE_NAME
    qrels: Path | None = QRELS
    ks: Sequence[int] = CUT_OFFS
    log: Sequence[Path] = option(
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Log that contains both variants; A and B are then values of --label.",
    )
    on_live: bool = option("--live", help="A and B are values of --label in the live traffic judged by the daemon.")
    since: str = option(default="7d", help="Time range of --live, such as 12h or 7d.")
    label: str = option(default="variant", help="Metadata key that names the variant of a sample.")
    as_json: bool = option("--json", help="Print JSON instead of a table.")


compare = LazyCommand(CompareArguments, "ragwatch.commands.compare:compare", "compare")


class CanaryArguments(Arguments):
    """Run every canary once, now. Nothing is stored. `ragwatch canary suggest` proposes new ones.

    Exit code 1 when a canary is degraded or its answer is wrong (suites with a `judge`), else 3 when some queries
    failed or some answers could not be judged.
    """

    path: Path = option("--config", type=CONFIG, required=False, help="Configuration file (YAML); required.")
    names: Sequence[str] = option("--suite", help="Run only this suite; may be given several times.")
    as_json: bool = option("--json", help="Print JSON instead of tables.")


@click.pass_context
def _run_canaries(context: click.Context, /, **values: object) -> object:
    if context.invoked_subcommand is not None:
        return 0
    if values["path"] is None:
        raise click.UsageError("Missing option '--config'.", context)
    return import_and_call("ragwatch.commands.canary:canary", CanaryArguments, values)


canary = click.Group(
    "canary",
    callback=_run_canaries,
    params=CanaryArguments.parameters(),
    help=CanaryArguments.__doc__,
    invoke_without_command=True,
)


class SuggestArguments(Arguments):
    """Propose canaries from judged traffic, with the contexts that people or the judge found right.

    Half of them are head questions, which make 80 % of the traffic. The others are odd or ambiguous, have no good
    answer, need several contexts, or ask about a time after the last update of the index. The file says why each was
    chosen, and how much of the vocabulary of the questions all of them hold.

    The daemon may be running; only the suite is written. An existing file is not overwritten. Questions that are
    already canaries are left out.

    Exit code 3 when there is nothing to propose yet.
    """

    path: Path = CONFIG_FILE
    limit: int = option(type=click.IntRange(1, 1000), default=50, help="Maximum number.")
    out: Path | None = option(type=OUT, help="Write the suite to this file; default: stdout.")
    indexed: datetime | None = option(
        type=click.DateTime(["%Y-%m-%d"]),
        help="Last update of the index; default: the last event of kind index, else the newest date in the contexts.",
    )


suggest = LazyCommand(SuggestArguments, "ragwatch.commands.suggest:suggest_command", "suggest")


canary.add_command(suggest)
