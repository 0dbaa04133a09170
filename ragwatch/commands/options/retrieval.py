"""Options and help of the commands that explain and release retrieval: diagnose, causes, rollout."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.options.lazy import CONFIG, CONFIG_FILE, OUT, Arguments, LazyCommand, option

MAX_ANSWERS = 20_000
MAX_K = 1000


class DiagnoseArguments(Arguments):
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
        default=2000, type=click.IntRange(1, MAX_ANSWERS), help="Number of stored answers to read, newest first."
    )
    k: int | None = option(
        type=click.IntRange(1, MAX_K),
        help="Run the canaries now and ask for this many chunks; default: their last stored run.",
    )
    qrels: Path | None = option(type=OUT, help="Relevance judgements by the id of an answer (TREC or BEIR).")
    similar: Path | None = option(
        type=OUT, help="Similar chunks that you know: two ids in each line, with a tab between."
    )
    as_json: bool = option("--json", help="Print JSON instead of text.")


diagnose = LazyCommand(DiagnoseArguments, "ragwatch.commands.diagnose:diagnose", "diagnose")


class CausesArguments(Arguments):
    """Find what failing answers have in common: slices of stored answers that fail more than the rest.

    Slices are values of metadata (release, model, tier), documents (retrieved, ranked first, cited, no longer
    retrieved), numbers of contexts, top scores, lengths of answers, words of questions, hours and judges. Of the shown
    ones, at most 5 % are there by chance on average, however often you look. A slice that another one explains is
    named with it.

    Exit codes: 0 answers were compared, 1 an error occurred, 2 usage or configuration, 3 no judged answers.
    """

    path: Path = CONFIG_FILE
    route: str | None = option(metavar="ROUTE", help="Only answers of this route.")
    judge: str | None = option(metavar="JUDGE", help="Verdicts of this judge; default: the one with most of them.")
    quantity: str | None = option(
        metavar="QUANTITY", help="Failing is beyond its threshold; default: any stage at fault."
    )
    below: str | None = option(metavar="SCORE", help="Failing is below this score of --quantity.")
    above: str | None = option(metavar="SCORE", help="Failing is above this score of --quantity.")
    window: str | None = option(metavar="TIME", help="Such as 1h: the full hour before and this one; default: 24h.")
    since: str | None = option(metavar="TIME", help="Answers since then, such as 2026-01-31T12:00, or 3d.")
    until: str | None = option(metavar="TIME", help="Answers before then.")
    as_json: bool = option("--json", help="Print JSON instead of text.")


causes = LazyCommand(CausesArguments, "ragwatch.commands.causes:causes", "causes")


class RolloutArguments(Arguments):
    """Decide whether a variant may replace the current one, in three stages.

    1 offline: MRR, NDCG and recall of two suites or two recorded runs. 2 judged: faithfulness and answer relevancy on
    the same questions, from two logs or from live traffic. 3 live: a share of the traffic, looked at after every answer
    (confidence sequences), by the feedback of users where it is logged. A stage runs when the one before is passed.

    Exit codes: 0 all stages passed; 11, 12 or 13 the stage that stopped the variant; 21, 22 or 23 the stage that is
    undecided; 1 an error occurred, 2 usage or configuration.
    """

    path: Path = option("--config", type=CONFIG, help="Configuration file (YAML) with a section rollout.")
    as_json: bool = option("--json", help="Print JSON instead of text.")


rollout = LazyCommand(RolloutArguments, "ragwatch.commands.rollout:rollout", "rollout")
