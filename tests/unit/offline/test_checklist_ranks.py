"""The checklist on scores and ranks: similar pairs, relevant against irrelevant chunks, recall at rising k."""

from dataclasses import replace
from random import Random

import pytest
from support.canaries import a_canary, a_chunk, a_failure, a_question, a_reply, a_report, some_questions, words

from ragwatch.offline.diagnosis import ranks
from ragwatch.offline.diagnosis.definition import Check, Question, RelevanceSource, Status
from ragwatch.offline.diagnosis.ranks import Pair, direction_of, overlap_of
from ragwatch.offline.diagnosis.report import diagnose, findings_line
from ragwatch.statistics.canary.definition import Category, Direction
from ragwatch.statistics.canary.report import CanaryReport, SuiteReport

MOSTLY_RANKING = "2 rank further down, 0 are not among the first 10 either, so the cause is mostly ranking"
TOP, SIXTH, NEVER = ["d1", "x"], ["a", "b", "c", "d", "e", "d1"], ["a", "b"]


def scored(count: int, *, gap: float, sign: float = 1.0, first: bool = True) -> list[Question]:
    """Questions with a relevant and an irrelevant chunk whose scores are `gap` apart."""
    rng = Random(1)
    questions = []
    for number in range(count):
        high = rng.uniform(0.5, 0.6)
        chunks = [a_chunk(f"r{number}", score=sign * high, relevant=first)]
        chunks += [a_chunk(f"i{number}", score=sign * (high - gap), relevant=not first)]
        questions.append(a_question(f"q{number}", *chunks))
    return questions


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scores_that_separate_are_fine(sign: float) -> None:
    """High scores or low ones: the direction follows from the order in the log."""
    finding = ranks.scores(scored(30, gap=0.3, sign=sign))
    assert (finding.status, finding.share, finding.figures["auc"]) == (Status.FINE, 0.0, 1.0)
    assert 0.5 <= sign * finding.figures["cutoff"] <= 0.6
    assert "relevance by the judge's verdict" in finding.summary


def test_scores_that_overlap() -> None:
    """Where irrelevant chunks score as high as relevant ones, even the best cut-off helps little."""
    finding = ranks.scores(scored(30, gap=0.001))
    assert (finding.status, finding.share > 0.8) == (Status.PROBLEM, True)
    assert "the best cut-off" in finding.evidence[0]
    assert overlap_of(Pair([1.0, 2.0], [1.0, 2.0]))[0] == 1.0
    assert overlap_of(Pair([3.0, 4.0], [1.0, 2.0])) == (0.0, 3.0)
    assert overlap_of(Pair([1.0], [2.0]))[0] == 1.0


@pytest.mark.parametrize(
    ("questions", "reason"),
    [
        (some_questions(12), "no `score` that follows their rank"),
        ([a_question("q", a_chunk("a"))], "nobody says which chunks are relevant"),
        (scored(5, gap=0.1), "5 scores of relevant chunks and 5 of irrelevant ones, fewer than 20"),
        ([*scored(15, gap=0.1), *scored(15, gap=-0.1)], "no `score` that follows their rank"),
    ],
)
def test_scores_that_say_nothing(questions: list[Question], reason: str) -> None:
    """The reason is given, and who was asked about relevance."""
    finding = ranks.scores(questions)
    assert finding.status is Status.NOT_MEASURABLE
    assert reason in finding.summary


def test_labels_come_before_canaries_before_the_judge() -> None:
    """The best source with enough chunks of both kinds is used, and named."""
    labelled = [
        a_question(q.id, *q.chunks, relevance=RelevanceSource.LABELS) for q in scored(20, gap=-0.1, first=False)
    ]
    assert direction_of(labelled) is Direction.DISTANCE
    finding = ranks.scores([*scored(30, gap=0.2), *labelled])
    assert "relevance by people" in finding.summary
    few = ranks.scores([*scored(30, gap=0.2), *labelled[:3]])
    assert "relevance by the judge's verdict" in few.summary


def test_irrelevant_chunks_that_rank_first() -> None:
    """Only questions with both kinds count: otherwise no order would be better."""
    wrong = scored(5, gap=0.1, first=False)
    finding = ranks.ranking([*scored(15, gap=0.1), *wrong, a_question("none", a_chunk("n", relevant=False))])
    assert (finding.status, finding.share, finding.figures["before_first"]) == (Status.PROBLEM, 0.25, 0.25)
    assert finding.examples == ("q0", "q1", "q2", "q3", "q4")
    assert ranks.ranking(scored(15, gap=0.1)).status is Status.FINE
    assert ranks.ranking(scored(9, gap=0.1)).status is Status.NOT_MEASURABLE
    assert ranks.ranking([]).status is Status.NOT_MEASURABLE


def pairs(gap: float, count: int = 6) -> list[Question]:
    """Questions with two near-duplicates whose scores are `gap` apart, and a third chunk far below."""
    text = "The refund of number {} is paid back within five working days of the request."
    return [
        a_question(
            f"q{number}",
            a_chunk(f"a{number}", text.format(number), score=0.9),
            a_chunk(f"b{number}", text.format(number + 1), score=0.9 - gap),
            a_chunk(f"c{number}", score=0.5),
        )
        for number in range(count)
    ]


def test_similar_chunks_have_similar_scores() -> None:
    """Else the embedding is at fault; pairs that people know need no common words, nor that both were retrieved."""
    assert ranks.embedding(pairs(0.01)).status is Status.FINE
    finding = ranks.embedding(pairs(0.3))
    assert (finding.check, finding.status, finding.share) == (Check.EMBEDDING, Status.PROBLEM, 1.0)
    assert finding.examples == ("q0", "q1", "q2", "q3", "q4")
    assert ranks.embedding(pairs(0.3, 2)).status is Status.NOT_MEASURABLE
    questions = [
        a_question(f"q{number}", *(a_chunk(f"{name}{number}", score=score) for name, score in (("a", 0.9), ("b", 0.5))))
        for number in range(8)
    ]
    questions += [replace(question, id=f"{question.id}x") for question in questions]
    assert ranks.embedding(questions).status is Status.NOT_MEASURABLE
    half = [frozenset({f"a{number}", f"b{number}"}) for number in range(4)]
    finding = ranks.embedding(questions, frozenset(half))
    assert (finding.status, finding.figures["pairs"], finding.figures["apart"]) == (Status.PROBLEM, 8, 8)
    lone = ranks.embedding(questions, frozenset({frozenset({f"a{number}", f"z{number}"}) for number in range(8)}))
    assert (lone.status, lone.figures["pairs"]) == (Status.PROBLEM, 16)


def runs(*replies: list[str], cutoff: int = 10) -> SuiteReport:
    """A run in which each canary expects d1 and gets these ids."""
    reports: list[CanaryReport] = [
        a_report(a_canary("d1", name=f"c{number}"), a_reply(*ids), cutoff) for number, ids in enumerate(replies)
    ]
    return SuiteReport("docs", (1, cutoff), tuple(reports))


@pytest.mark.parametrize(
    ("replies", "cause"),
    [
        ([TOP] * 5, "nothing is missed"),
        (
            [TOP] * 3 + [SIXTH] * 2,
            MOSTLY_RANKING,
        ),
        ([TOP] * 3 + [SIXTH, NEVER, NEVER], "so the cause is mostly indexing, chunking or embedding"),
    ],
)
def test_ranking_or_indexing(replies: list[list[str]], cause: str) -> None:
    """Expected chunks that come at a larger k are indexed; those that never come are not, or are not similar."""
    finding = ranks.recall([], [runs(*replies)])
    assert cause in finding.summary
    assert finding.figures["used_k"] == 5
    assert finding.figures["recall@10"] == pytest.approx(1 - replies.count(NEVER) / len(replies))


def test_recall_that_is_not_told() -> None:
    """Too few were asked for, only a judge has read, or queries failed: each is told, with what to do."""
    ten = [a_question(str(number), *(a_chunk(str(rank)) for rank in range(10))) for number in range(3)]
    finding = ranks.recall(ten, [runs(*[NEVER] * 5)])
    assert finding.figures["used_k"] == 10
    assert "no more were asked for; give a larger --k" in finding.summary
    assert (finding.status, finding.importance, finding.examples[0]) == (Status.PROBLEM, 1.0, "c0")
    poor = [a_question(f"p{number}", a_chunk("x", relevant=False)) for number in range(3)]
    finding = ranks.recall([*some_questions(), *poor, a_question("empty")], [runs(TOP)])
    assert (finding.status, finding.examples) == (Status.PROBLEM, ("p0", "p1", "p2", "empty"))
    assert finding.summary.startswith("no retrieved chunk is relevant to 4 of 16 questions (25 %")
    nothing = ranks.recall(some_questions(3), [])
    assert (nothing.status, nothing.share) == (Status.NOT_MEASURABLE, None)
    down = SuiteReport("down", (10,), tuple(a_report(a_canary("d1", name=f"f{n}"), a_failure(), 10) for n in range(5)))
    unknown = ranks.recall([], [down])
    assert unknown.summary == (
        "not measurable here because 5 of 5 queries of canaries failed (timeout 5), and no judge has read enough"
        " answers; `ragwatch canary` shows why; repair that, and run them again"
    )
    poor = ranks.recall(some_questions(), [down])
    assert poor.evidence[0].startswith("5 of 5 queries of canaries failed (timeout 5): `ragwatch canary` shows why")
    known = ranks.recall(some_questions(), [runs(*[TOP] * 5), down])
    assert known.evidence[1] == "5 of 10 queries of canaries failed (timeout 5), and are left out"


def test_findings_are_ordered_by_importance() -> None:
    """Problems first, the most important one first, then what is fine, then what is unknown; all in the line."""
    lost = runs(*[NEVER] * 8)
    questions = [*scored(15, gap=0.1), *scored(5, gap=0.1, first=False)]
    findings = diagnose(questions, [lost], terms=words)
    assert {finding.check for finding in findings} == set(Check)
    assert findings[0].check is Check.RECALL
    statuses = [finding.status for finding in findings]
    assert statuses == sorted(statuses, key=list(Status).index)
    importance = [finding.importance for finding in findings]
    assert importance == sorted(importance, reverse=True)
    line = findings_line(findings, questions)
    assert (line["answers"], line["relevance"]) == (20, {"judge": 20})
    assert line["findings"][0]["remedy"]
    assert line["findings"][-1]["remedy"] is None


def test_runs_of_canaries_are_questions_too() -> None:
    """With their chunks, scores and relevance; negative and failed ones have no relevance, and nothing breaks."""
    negative = a_report(a_canary(name="n", category=Category.NEGATIVE), a_reply("x"), 10)
    failed = a_report(a_canary("d1", name="f"), a_failure(), 10)
    found = runs(*[[f"x{n}", "d1", f"y{n}"] for n in range(20)])
    suite = SuiteReport("docs", (10,), (*found.reports, negative, failed))
    findings = {finding.check: finding for finding in diagnose([], [suite], terms=words)}
    assert "relevance by canaries" in findings[Check.SCORES].summary
    assert findings[Check.RANKING].share == 1.0
