"""Options and help of the tools that work on files and on the state, without a daemon."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click

from ragwatch.model.quantities import Quantity
from ragwatch.terminal.options import (
    CONFIG,
    CONFIG_FILE,
    FOLDER,
    INPUT,
    OUT,
    Arguments,
    FiniteRange,
    IntegerRange,
    argument,
    option,
)

# The same names as in the registries `judges.KINDS` and `formats.NAMES`, whose import is slow.
JUDGES = ("claude", "detector", "lexical", "local", "openai")
FORMATS = tuple(
    """
    auto canonical ragas llamaindex haystack langfuse langsmith phoenix mlflow deepeval bedrock azure anthropic
    bedrock_log cohere litellm helicone dify flowise openwebui librechat ragflow trulens loguru serilog logstash
    haystack_chat langgraph vertex file_search openai langserve langchain custom
    """.split()  # noqa: SIM905 - a list would be 33 lines
)
MAX_QUESTIONS, MAX_ANSWERS, MAX_K = 10_000, 20_000, 1000

RECORD_FORMAT = option(
    "--format",
    type=click.Choice(FORMATS),
    help="Format of the rows; default: that of the source in --config, else auto.",
)
SOURCE_NAME = option(metavar="NAME", help="Source in --config whose format and mapping apply to the files.")
JUDGE_NAME = option("--judge", help="A configured judge, or a kind; default: the first configured, else lexical.")
QRELS = option(type=INPUT, help="Relevance judgements by row id: TREC (4 columns) or BEIR (3 columns below a header).")
CUT_OFFS = option(
    "--k",
    type=IntegerRange(1, MAX_K),
    help="Cut-off of recall, precision, F1 and NDCG; may be given several times; default: 1, 3, 5 and 10.",
)


class JudgeArguments(Arguments, work="ragwatch.offline.judge:judge"):
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


class EstimateArguments(Arguments, work="ragwatch.offline.estimate:estimate"):
    """Print the mean of each quantity over FILES (verdicts of `ragwatch judge`), and its level in people's terms.

    `-` or none is standard input. The level's interval contains the judge's own error, which labels make smaller. A
    label line is {"id": ..., "faithfulness": 0 to 1, "top_ranked_ignored": 0 or 1, "probability": that the answer was
    selected for labelling}. Exit code 3 when no answer has a score.
    """

    files: Sequence[BinaryIO] = argument(type=click.File("rb"))
    labels: Path | None = option(help="What people say of answers: JSONL with `id`, scores and `probability`.")
    as_json: bool = option("--json", help="Print JSON instead of a table.")


class GateArguments(Arguments, work="ragwatch.offline.gate:gate_command"):
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
        help="Output of an earlier --json run: a significant fall since then fails, naming the questions."
    )
    labels: Path | None = option(help="What people say of these answers, as for `ragwatch estimate`.")
    uncorrected: bool = option(help="Compare the mean of the judge, whose own error is not in its interval.")
    as_json: bool = option("--json", help="Print JSON instead of a table.")
    junit_path: Path | None = option("--junit", help="Write JUnit XML to this file.")
    markdown_path: Path | None = option("--markdown", help="Write a summary in Markdown to this file.")


class CompareArguments(Arguments, work="ragwatch.offline.compare:compare"):
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
        type=INPUT, help="Log that contains both variants; A and B are then values of --label."
    )
    on_live: bool = option("--live", help="A and B are values of --label in the live traffic judged by the daemon.")
    since: str = option(default="7d", help="Time range of --live, such as 12h or 7d.")
    label: str = option(default="variant", help="Metadata key that names the variant of a sample.")
    as_json: bool = option("--json", help="Print JSON instead of a table.")


class RolloutArguments(Arguments, work="ragwatch.offline.rollout:rollout"):
    """Decide whether a variant may replace the current one, in three stages.

    1 offline: MRR, NDCG and recall of two suites or two recorded runs. 2 judged: faithfulness and answer relevancy on
    the same questions, from two logs or from live traffic. 3 live: a share of the traffic, looked at after every answer
    (confidence sequences), by the feedback of users where it is logged. A stage runs when the one before is passed.

    Exit codes: 0 all stages passed; 11, 12 or 13 the stage that stopped the variant; 21, 22 or 23 the stage that is
    undecided; 1 an error occurred, 2 usage or configuration.
    """

    path: Path = CONFIG_FILE
    as_json: bool = option("--json", help="Print JSON instead of text.")


class PlanArguments(Arguments, work="ragwatch.offline.plan:plan"):
    """Show, per sampling rate: judged samples and cost per day, detection delay for a drop, interval width.

    Simulates the drift detector on these scores, with a baseline learned as in the daemon. Exit code 1 when no rate
    detects the drop --within the time.
    """

    per_day: float = option(type=FiniteRange(min=0, min_open=True), help="Requests per day.")
    price: float = option(type=FiniteRange(min=0), default=0.0, help="US dollars per judged sample.")
    drop: float = option(
        type=FiniteRange(0, 1, min_open=True), default=0.1, help="Drop of the mean that must be detected."
    )
    within: str | None = option(help="Find the lowest rate that detects the drop within this time, such as 4h.")
    rates: Sequence[float] = option(
        "--probability",
        type=FiniteRange(0, 1, min_open=True),
        help="Sampling rate to evaluate; may be given several times.",
    )
    path: Path | None = option("--config", type=CONFIG, help="Configuration file; its key `drift` is used.")
    scores: Path | None = option(
        type=click.Path(path_type=Path), help="File of past scores, as for backtest; else simulated scores."
    )
    quantity: str = option(
        type=click.Choice([str(quantity) for quantity in Quantity]),
        default=str(Quantity.FAITHFULNESS),
        help="Quantity to take from --scores.",
    )
    mean: float = option(type=FiniteRange(0.05, 0.99), default=0.9, help="Mean of the simulated scores.")
    as_json: bool = option("--json", help="Print JSON instead of a table.")


class BacktestArguments(Arguments, work="ragwatch.offline.backtest:backtest"):
    """Replay the scores in FILE (CSV or JSONL: `at`, a column per quantity), or in a store, through the detectors.

    Optional columns: `route`, and `probability`, the inclusion probability of the answer. Exit code 3 when no detector
    had enough scores to learn its baseline.
    """

    file: Path | None = argument(type=OUT)
    path: Path | None = option(
        "--config", type=CONFIG, help="Configuration file; without FILE, its store holds the scores."
    )
    settings: Sequence[str] = option("--set", metavar="KEY=VALUE", help="Override a key of `drift`, as in YAML.")
    acknowledge_after: str = option(default="1d", help="Time after which an alarm is acknowledged.")
    quiet_until: str | None = option(
        metavar="TIME", help="There was no drift before this time: earlier alarms are false alarms."
    )
    as_json: bool = option("--json", help="Print JSON instead of a table.")
    svg: Path | None = option(help="Write a chart of mean, evidence and alarms to this file.")


class DiagnoseArguments(Arguments, work="ragwatch.offline.diagnosis.diagnose:diagnose"):
    """Make the checklist for debugging retrieval, over stored answers and runs of the canaries.

    Checks whether chunks hold complete thoughts, their lengths, duplicates, scores of similar chunks, recall at rising
    k (is it ranking or indexing?), scores of relevant against irrelevant chunks, irrelevant chunks that rank first,
    question terms that no chunk holds, facts split over chunk boundaries, and stale documents. Findings are ordered by
    importance, each with evidence and remedy; a check without data says why.

    Exit codes: 0 no problem, 1 a problem, 2 usage or configuration, 3 nothing could be measured.
    """

    path: Path = CONFIG_FILE
    route: str | None = option(metavar="ROUTE", help="Only answers of this route; canaries belong to no route.")
    answers: int = option(
        default=2000, type=IntegerRange(1, MAX_ANSWERS), help="Number of stored answers to read, newest first."
    )
    k: int | None = option(
        type=IntegerRange(1, MAX_K),
        help="Run the canaries now and ask for this many chunks; default: their last stored run.",
    )
    qrels: Path | None = option(help="Relevance judgements by the id of an answer (TREC or BEIR).")
    similar: Path | None = option(help="Similar chunks that you know: two ids in each line, with a tab between.")
    as_json: bool = option("--json", help="Print JSON instead of text.")


class CanaryArguments(Arguments, work="ragwatch.offline.canary:canary"):
    """Run every canary once, now. Nothing is stored. `ragwatch canary suggest` proposes new ones.

    Exit code 1 when a canary is degraded or its answer is wrong (suites with a `judge`), else 3 when some queries
    failed or some answers could not be judged.
    """

    path: Path = option(
        "--config", type=CONFIG, required=False, help="Configuration file (YAML); default: as for check."
    )
    names: Sequence[str] = option("--suite", help="Run only this suite; may be given several times.")
    as_json: bool = option("--json", help="Print JSON instead of tables.")


class SuggestArguments(Arguments, work="ragwatch.offline.canary:suggest"):
    """Propose canaries from judged traffic, with the contexts that people or the judge found right.

    Half of them are head questions, which make 80 % of the traffic. The others are odd or ambiguous, have no good
    answer, need several contexts, or ask about a time after the last update of the index. The file says why each was
    chosen, and how much of the vocabulary of the questions all of them hold.

    The daemon may be running; only the suite is written. An existing file is not overwritten. Questions that are
    already canaries are left out.

    Exit code 3 when there is nothing to propose yet.
    """

    path: Path = CONFIG_FILE
    limit: int = option(type=IntegerRange(1, 1000), default=50, help="Maximum number.")
    out: Path | None = option(help="Write the suite to this file; default: stdout.")
    indexed: datetime | None = option(
        type=click.DateTime(["%Y-%m-%d"]),
        help="Last update of the index; default: the last event of kind index, else the newest date in the contexts.",
    )


class ExportArguments(Arguments, work="ragwatch.offline.export:export"):
    """Write stored verdicts to files for other programs, or failing answers as a test set; ragwatch may be running.

    --parquet is for DuckDB, Spark, BigQuery and others. There is one Parquet file for each day (UTC) and route. A
    repeated run adds the verdicts that are new, and changes nothing if none is; what retention deletes from the store
    remains in the files. --metadata, --route and --since narrow what is exported; --metadata and --route may be given
    several times. docs/parquet.md lists the columns.

    --failing writes the newest failing answer to each question, sorted by question, to run against the next release:
    ask its questions again, and judge the new answers with `ragwatch gate`. Texts are redacted; times and metadata are
    left out. Canaries expect the contexts that people or, without relevance judgements, the judge found relevant.
    Answers that people have labelled as right are left out. No file is overwritten.

    Exit code 3 when no verdict, or no failing answer, is stored.
    """

    path: Path = CONFIG_FILE
    parquet: Path | None = option(
        type=FOLDER,
        metavar="DIR",
        help="Directory of Parquet files to write, or to add to; needs the extra `parquet`.",
    )
    texts: str = option(
        type=click.Choice(["none", "redacted"]),
        default="none",
        help="Whether questions, answers, passages and claims are exported, as far as store.texts keeps them.",
    )
    metadata: Sequence[str] = option(metavar="KEY", help="Metadata to export, such as release or user.tier.")
    routes: Sequence[str] = option("--route", metavar="ROUTE", help="Export only this route.")
    since: str | None = option(
        metavar="TIME", help="Export only what is newer, such as 7d (whole days in files); default: all."
    )
    failing: bool = option(help="Write failing answers as a regression set instead; needs --as.")
    kind: str | None = option(
        "--as",
        type=click.Choice(["gate", "ragas", "deepeval", "canaries"]),
        help="--failing: rows for `ragwatch gate`, RAGAS or DeepEval, or a canary suite.",
    )
    judge: str | None = option(metavar="JUDGE", help="--failing: verdicts of this judge; default: the first one.")
    quantity: str | None = option(
        metavar="QUANTITY", help="--failing: beyond the threshold of this quantity; default: a stage at fault."
    )
    limit: int = option(
        default=200, type=IntegerRange(1, MAX_QUESTIONS), help="--failing: number of questions, the newest."
    )
    out: Path | None = option(help="--failing: file to write; default: standard output.")
