"""The stages of a rollout: offline metrics, judged answers, live traffic looked at after every answer."""

from collections.abc import Iterator
from random import Random

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report

from ragwatch.offline.rollout_stages import (
    JUDGED_METRICS,
    USER_METRIC,
    Decision,
    LiveAnswer,
    LiveRules,
    Measured,
    Outcome,
    judged_stage,
    live_stage,
    offline_stage,
    pick_questions,
    rankings_of,
)
from ragwatch.statistics.canary.report import SuiteReport, suite_line
from ragwatch.statistics.compare_line import METRICS, ComparedAnswer, compare_answers
from ragwatch.statistics.ranking import Ranking

FIRST, SECOND = Ranking((1,), ((0,),)), Ranking((1,), ((), (0,)))
RULES = LiveRules((USER_METRIC, *JUDGED_METRICS), frozenset({USER_METRIC}))


def queries(count: int, ranking: Ranking) -> dict[str, Ranking]:
    """The same ranking for so many queries."""
    return {f"query {number}": ranking for number in range(count)}


def test_a_better_ranking_passes_and_a_worse_one_is_stopped() -> None:
    """By MRR, NDCG and recall together: a first hit that comes earlier at the cost of the others is no gain."""
    report = offline_stage(queries(40, SECOND), queries(40, FIRST))
    assert report.outcome is Outcome.PASSED
    assert [metric.name for metric in report.metrics] == ["mrr@10", "ndcg@10", "recall@10"]
    assert (report.metrics[0].a, report.metrics[0].b) == (0.5, 1.0)
    worse = offline_stage(queries(40, FIRST), queries(40, SECOND), k=1)
    assert (worse.outcome, worse.reason) == (Outcome.STOPPED, "B is worse in mrr@1, ndcg@1, recall@1")
    assert worse.metrics[0].change.high < 0.0
    early, all_of_them = Ranking((1, 1, 1), ((0,),)), Ranking((1, 1, 1), ((), (0,), (1,), (2,)))
    report = offline_stage(queries(40, all_of_them), queries(40, early))
    by_name = {metric.name: metric for metric in report.metrics}
    assert (by_name["mrr@10"].a, by_name["mrr@10"].b) == (0.5, 1.0)
    assert by_name["recall@10"].decision is Decision.WORSE
    assert report.outcome is Outcome.STOPPED


def test_few_queries_decide_nothing() -> None:
    """What is on one side only is counted; with no common query nothing is known."""
    report = offline_stage(queries(20, FIRST), queries(19, FIRST))
    assert report.outcome is Outcome.UNDECIDED
    assert report.notes == ("1 queries are known on one side only and are left out",)
    empty = offline_stage({"a": Ranking((), ())}, {"a": Ranking((), ())})
    assert (empty.outcome, empty.metrics[0].change) == (Outcome.UNDECIDED, None)


def answers(name: str, count: int, *, faithful: float, shared: bool = True) -> list[ComparedAnswer]:
    """Judged answers of a variant."""
    scores = dict.fromkeys(map(str, METRICS)) | dict.fromkeys(JUDGED_METRICS, 1.0) | {"faithfulness": faithful}
    asked = "question" if shared else name
    return [ComparedAnswer(f"{asked} {number}", "", scores) for number in range(count)]


def test_judged_answers() -> None:
    """Faithfulness and answer relevancy decide; unpaired means are said to be so; without scores nothing is known."""
    good, bad = answers("a", 50, faithful=1.0), answers("b", 50, faithful=0.5)
    assert judged_stage(compare_answers(good, good)).outcome is Outcome.PASSED
    worse = judged_stage(compare_answers(good, bad), ["a note"])
    assert (worse.outcome, worse.reason, worse.notes) == (Outcome.STOPPED, "B is worse in faithfulness", ("a note",))
    apart = judged_stage(compare_answers(good, answers("b", 50, faithful=1.0, shared=False)))
    assert apart.notes == ("too few questions are on both sides, so the means are not paired",)
    nothing = judged_stage(compare_answers([], good))
    assert (nothing.outcome, nothing.metrics[0].n_a) == (Outcome.UNDECIDED, 0)


def test_the_same_questions_are_picked_each_time() -> None:
    """A hash draws them, whatever the order; too few shared ones are drawn from each side."""
    names = [f"question {number}" for number in range(300)]
    first, second = pick_questions(names, names[100:], 100)
    assert first == second == pick_questions(names[::-1], names[100:], 100)[0]
    assert len(first) == 100
    one, other = pick_questions(names[:150], names[150:], 100)
    assert (len(one), len(other), one & other) == (100, 100, frozenset())


def traffic(a: float, b: float, *, count: int = 4000, share: float = 0.05, **others: float) -> Iterator[LiveAnswer]:
    """Answers with feedback that is good at these rates; every twentieth is of B. Other metrics are constant."""
    rng = Random(5)
    for number in range(count):
        is_b = number % round(1 / share) == 0
        yield LiveAnswer(float(number), is_b, {USER_METRIC: float(rng.random() < (b if is_b else a)), **others})


def test_live_traffic_is_decided_early() -> None:
    """As soon as a loss above the margin is excluded; a guard that need not be decided still stops it."""
    live = live_stage(traffic(0.2, 1.0, count=600, share=0.25), RULES._replace(share=0.25))
    assert (live.outcome, live.metrics[0].decision) == (Outcome.PASSED, Decision.PASSED)
    assert live.metrics[1] == Measured("faithfulness", None, None, None, 0, 0, Decision.OPEN, decides=False)
    scores = [{USER_METRIC: 1.0, "faithfulness": float(number % 2)} for number in range(60)]
    rows = [LiveAnswer(float(number), number % 2 == 0, each) for number, each in enumerate(scores)]
    live = live_stage(rows, RULES._replace(share=0.5, margin=0.0))
    assert (live.outcome, live.reason) == (Outcome.STOPPED, "B is worse in faithfulness")


def test_equal_variants_stay_undecided_for_long() -> None:
    """Sequences are wide at first; a sample ratio mismatch is said before anything is believed."""
    nothing = live_stage([], RULES, ["a note"])
    assert nothing.outcome is Outcome.UNDECIDED
    assert nothing.notes == ("a note", "no answer names its variant since the start")
    little = live_stage(traffic(0.9, 0.9, count=200), RULES)
    assert (little.outcome, little.reason) == (Outcome.UNDECIDED, "not enough data to decide on user")
    none = live_stage(traffic(0.9, 0.9, count=20), RULES._replace(deciding=frozenset()))
    assert none.reason == "not enough data to decide on any metric"
    live = live_stage(traffic(0.9, 0.9, count=400, share=0.5), RULES)
    assert live.notes[0].startswith("B has 50.0 % of the answers; ")
    assert live.notes[1].startswith("the split is not 5 % as configured")


@pytest.mark.slow
def test_equal_variants_are_rarely_stopped_at_any_look() -> None:
    """Anytime-valid: of 100 rollouts without a difference, looked at after every answer, at most 5 % are stopped."""
    stopped = 0
    for seed in range(100):
        rng = Random(seed)
        rows = [
            LiveAnswer(float(number), rng.random() < 0.3, {USER_METRIC: float(rng.random() < 0.8)})
            for number in range(1000)
        ]
        rules = LiveRules((USER_METRIC,), frozenset({USER_METRIC}), margin=0.0, share=0.3)
        stopped += live_stage(rows, rules).outcome is not Outcome.UNDECIDED
    assert stopped <= 5


def test_recorded_runs() -> None:
    """The output of `ragwatch canary --json` holds ranks and grades, so all three metrics follow from it."""
    reports = (
        a_report(a_canary("d1", "d2", name="one"), a_reply("x", "d2"), 10),
        a_report(a_canary("d1", name="again", query="What about one?"), a_reply("d1"), 10),
        a_report(a_canary("d1", name="down"), a_failure(), 10),
    )
    line = {"suites": [suite_line(SuiteReport("docs", (1, 10), reports))]}
    assert rankings_of(line, 10) == {
        "what about one?": Ranking((1, 1), ((), (1,))),
        "what about one?\n2": Ranking((1,), ((0,),)),
    }
    with pytest.raises(ValueError, match="holds the first 10 chunks only, not 20"):
        rankings_of(line, 20)
    del line["suites"][0]["items"][0]["grades"]
    place = {"query": "q", "ranks": [-5], "grades": [1]}  # no list has it
    for wrong in (line, {}, {"suites": []}, {"suites": [3]}, {"suites": [{"recall": {"10": 1}, "items": [place]}]}):
        with pytest.raises(ValueError, match="is not what `ragwatch canary --json` of this version prints"):
            rankings_of(wrong, 10)
