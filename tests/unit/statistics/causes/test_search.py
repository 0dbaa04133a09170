"""The search for causes: planted ones are named first, proxies are folded, nothing is found where there is nothing."""

import math
import random
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import dropwhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.slices import BEGIN, an_answer, traffic

from ragwatch.model.estimate import Addends
from ragwatch.statistics.causes import search
from ragwatch.statistics.causes.slices import Answer, Slice


def named(findings: search.Findings) -> list[tuple[str, str]]:
    """Attributes and values of the causes."""
    return [(cause.slice.attribute, cause.slice.value) for cause in findings.causes]


def of_release(table: search.Table) -> Slice:
    """The answers of release v2."""
    releases = [answer.traits["metadata"]["release"] for answer in table.answers]
    return Slice("metadata.release", "v2", [place for place, one in enumerate(releases) if one == "v2"])


def test_a_planted_release_is_named_with_its_figures() -> None:
    """Shares inside and outside, an interval that holds the truth, its part of the failures, its answers."""
    answers = traffic(2000, 0.1, seed=4)
    findings = search.find_causes(answers)
    assert named(findings)[0] == ("metadata.release", "v2")
    cause = findings.causes[0]
    inside = [answer for answer in answers if answer.traits["metadata"]["release"] == "v2"]
    failing = [answer for answer in inside if answer.failing]
    assert cause.failing == pytest.approx(len(failing) / len(inside))
    assert cause.low < 0.4 < cause.high
    assert cause.of_failing == pytest.approx(len(failing) / findings.failing)
    assert cause.explains == pytest.approx(cause.of_failing * (1.0 - cause.others / cause.failing))
    assert cause.examples == tuple(answer.key for answer in failing[:-4:-1])
    assert (findings.answers, findings.begin, findings.end) == (2000, BEGIN, BEGIN + 1999)
    assert findings.looked_at > 50


def test_nothing_is_found_without_a_cause() -> None:
    """No answers, no failing one, only failing ones, or failing by chance."""
    assert search.find_causes([]) == search.Findings()
    for inside in (0.0, 0.1, 1.0):
        assert search.find_causes(traffic(600, 0.2, seed=1, inside=inside, outside=inside)).causes == ()


def test_failing_shares_respect_inclusion_probabilities() -> None:
    """Answers of a route that is sampled rarely weigh more, and a slice that is merely sampled otherwise is none."""
    rng = random.Random(2)
    answers = []
    for number in range(3000):
        rare = number % 3 == 0
        failing = rng.random() < (0.5 if rare else 0.1)
        metadata = {"tier": "gold" if rng.random() < (0.1 if rare else 0.9) else "free"}
        answers.append(an_answer(number, failing=failing, probability=0.1 if rare else 1.0, metadata=metadata))
    findings = search.find_causes(answers)
    assert named(findings) == []
    weights = [1.0 / answer.probability for answer in answers]
    share = sum(weight for weight, answer in zip(weights, answers, strict=True) if answer.failing) / sum(weights)
    assert findings.share == pytest.approx(share)


def test_evidence_of_several_cells_is_multiplied() -> None:
    """The evidence of four routes and probabilities is the product of theirs, and so may be enough where none is."""
    answers = [
        answer._replace(route=f"r{answer.seq % 4 // 2}", probability=(0.5, 1.0)[answer.seq % 2])
        for answer in traffic(800, 0.1, seed=8)
    ]

    def evidence(part: list[Answer]) -> float:
        table = search.Table(part)
        return table.log_e(of_release(table))

    cells = [evidence(answers[place::4]) for place in range(4)]
    assert evidence(answers) == pytest.approx(sum(cells))
    assert evidence(answers) > max(cells)


def test_a_proxy_is_folded_into_its_cause() -> None:
    """A document that only the new release retrieves, and the lengths of its answers, are explained by the release."""
    answers = []
    for answer in traffic(1500, 0.2, seed=3):
        new = answer.traits["metadata"]["release"] == "v2"
        contexts = ["doc-new", "doc-1"] if new and answer.seq % 10 else ["doc-1"]
        answers.append(answer._replace(traits={**answer.traits, "contexts": contexts, "chars": 40 if new else 400}))
    findings = search.find_causes(answers)
    assert named(findings) == [("metadata.release", "v2")]
    folded = {(slice_.attribute, slice_.value) for slice_ in findings.causes[0].folded}
    assert {("context", "doc-new"), ("answer_length", "40")} <= folded


def test_two_causes_are_both_named_what_goes_on_first() -> None:
    """A document and a release that fail apart from each other are two causes; what is over comes after what is not."""
    rng = random.Random(6)
    answers = []
    for number in range(2000):
        old, document = 300 <= number < 700, rng.random() < 0.08
        failing = rng.random() < (0.9 if old else 0.5 if document else 0.1)
        contexts = ["doc-1", "doc-42"] if document else ["doc-1"]
        answers.append(an_answer(number, failing=failing, metadata={"release": f"v{1 + old}"}, contexts=contexts))
    findings = search.find_causes(answers)
    assert named(findings) == [("context", "doc-42"), ("metadata.release", "v2")]
    end = findings.end
    assert end is not None
    assert [cause.is_over(end) for cause in findings.causes] == [False, True]
    assert [cause.is_new(BEGIN) for cause in findings.causes] == [False, True]


@pytest.mark.parametrize(("days", "since"), [([1], 1), ([0, 1], 0)])
def test_the_time_of_an_hour_is_that_of_the_days_on_which_it_failed(days: list[int], since: int) -> None:
    """An hour of the day comes back: that it was good yesterday is no part of what began today."""
    rng, hour = random.Random(7), BEGIN + 2800  # at 23:00
    failing_hours = [hour + day * 86_400 for day in days]
    answers = []
    for number in range(3200):
        at = BEGIN + 30 * number
        failing = rng.random() < (0.9 if any(start <= at < start + 3600 for start in failing_hours) else 0.05)
        answers.append(an_answer(number, at=at, failing=failing))
    (cause,) = search.find_causes(answers).causes
    assert (cause.slice.attribute, cause.slice.value) == ("hour", "23:00 to 00:00 UTC")
    assert 0.0 <= cause.since - (hour + since * 86_400) < 30.0


def test_every_shown_slice_passes_for_the_number_of_all_that_were_looked_at() -> None:
    """Evidence that is enough among ten slices is not enough among ten thousand."""
    answers = traffic(400, 0.2, seed=9)
    table = search.Table(answers)
    release = of_release(table)
    log = table.log_e(release)
    few = [Slice("term", str(number), range(number, 400, 40)) for number in range(9)]
    assert math.log(10 / 0.05) < log
    assert search.causes_of(table, [release, *few])[0].slice is release
    assert search.causes_of(table, [release, *few], rate=5.0 * math.exp(-log)) == ()


@settings(max_examples=draws(6), deadline=None)
@given(st.integers(0, 99), st.sampled_from([0.05, 0.3, 0.6]), st.randoms(use_true_random=False))
def test_laws_of_findings(seed: int, share: float, order: random.Random) -> None:
    """The order of answers and a common factor of probabilities change nothing; shares lie in their intervals."""
    answers = traffic(200, share, seed=seed, inside=0.8)
    findings = search.find_causes(answers)
    shuffled = list(answers)
    order.shuffle(shuffled)
    assert asdict(search.find_causes(shuffled)) == asdict(findings)
    halved = search.find_causes([answer._replace(probability=0.5) for answer in answers])
    assert named(halved) == named(findings)
    for cause, other in zip(findings.causes, halved.causes, strict=True):
        assert 0.0 <= cause.others < cause.failing <= 1.0
        assert 0.0 <= cause.low <= cause.failing <= cause.high <= 1.0
        assert 0.0 < cause.explains <= cause.of_failing <= 1.0
        assert (cause.failing, cause.others) == (pytest.approx(other.failing), pytest.approx(other.others))
        assert cause.log_e >= math.log(findings.looked_at)


def test_a_slice_that_fails_less_is_no_cause() -> None:
    """Good news is not shown."""
    answers = [answer._replace(failing=not answer.failing) for answer in traffic(1000, 0.2, seed=5)]
    assert ("metadata.release", "v2") not in named(search.find_causes(answers))


def test_answers_of_one_cell_are_ordered_by_their_verdicts() -> None:
    """Evidence does not depend on times of answers, which may arrive late: only on the order of verdicts."""
    answers: list[Answer] = traffic(500, 0.3, seed=7, inside=0.9)
    late = [answer._replace(at=BEGIN - answer.seq) for answer in answers]
    logs = [{cause.slice.value: cause.log_e for cause in search.find_causes(one).causes} for one in (answers, late)]
    assert logs[0]["v2"] == logs[1]["v2"]


def test_at_most_twenty_causes_are_shown() -> None:
    """Of more slices that fail apart from each other, those with the least evidence are left out."""
    slices = [
        Slice("context", f"doc-{number:02}", range(number * 30, number * 30 + 25 + number % 3)) for number in range(22)
    ]
    failing = {place for slice_ in slices for place in slice_.places}
    table = search.Table([an_answer(number, failing=number in failing) for number in range(3000)])
    assert len(search.causes_of(table, slices)) == search.MAX_SHOWN


def test_a_symptom_that_is_all_of_the_rest_is_folded() -> None:
    """Outside of a cause it leaves nothing to compare with."""
    answers = [an_answer(number, failing=40 <= number < 200 or number % 2 == 1) for number in range(400)]
    answers = [answer._replace(failing=answer.failing and answer.seq >= 40) for answer in answers]
    release = Slice("metadata.release", "v2", range(200))
    hour = Slice("hour", "14:00 to 15:00 UTC", range(40, 400))
    (cause,) = search.causes_of(search.Table(answers), [release, hour])
    assert (cause.slice, cause.folded) == (release, (hour,))


def test_sums_of_a_slice_are_those_of_its_answers() -> None:
    """The sums for the interval are those of the estimates."""
    rng = random.Random(3)
    answers = [
        an_answer(number, failing=rng.random() < 0.3, probability=rng.choice((0.1, 0.5, 1.0))) for number in range(50)
    ]
    table = search.Table(answers)
    pairs = [(float(answer.failing), answer.probability) for answer in table.answers[10:40]]
    sums, expected = asdict(table.addends(range(10, 40))), asdict(Addends.of(pairs))
    assert sums == {name: pytest.approx(value) for name, value in expected.items()}


ANSWERS = 10
Cells = Sequence[tuple[int, bool]]
"""Of each answer in turn, its cell and whether it is in the slice."""


def log_e(cells: Cells, failing: Sequence[int]) -> float:
    """Logarithm of the e-value after the first answers, over two cells."""
    total = 0.0
    for cell in (0, 1):
        marks: tuple[list[int], list[int]] = ([], [])
        for (own, within), fails in zip(cells, failing, strict=False):
            if own == cell:
                marks[within].append(fails)
        total += search.log_e_value(len(marks[1]), sum(marks[1]), len(marks[0]), sum(marks[0]))
    return total


def best_stop(cells: Cells, shares: Sequence[tuple[float, float]]) -> float:
    """The greatest mean that any rule of when to stop looking can reach, over all outcomes: exact.

    Args:
        cells: Of all answers.
        shares: Failing shares outside and inside, by cell.
    """

    @lru_cache(None)
    def value(failing: tuple[int, ...]) -> float:
        now = math.exp(log_e(cells, failing))
        if len(failing) == len(cells):
            return now
        cell, within = cells[len(failing)]
        share = shares[cell][within]
        return max(now, share * value((*failing, 1)) + (1.0 - share) * value((*failing, 0)))

    return value(())


@settings(max_examples=draws(10), deadline=None)
@given(
    cells=st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=2, max_size=ANSWERS),
    outside=st.lists(st.floats(0.01, 0.99), min_size=2, max_size=2),
    ratio=st.sampled_from([1.0, 1.0, 0.5]),
)
def test_no_rule_of_stopping_gains(cells: list[tuple[int, bool]], outside: list[float], ratio: float) -> None:
    """A slice that fails no more than the rest: the best rule of when to look gains nothing from its bets."""
    assert best_stop(cells, [(share, ratio * share) for share in outside]) <= 1.0 + 1e-9


def test_bets_on_a_failing_slice_pay() -> None:
    """The bound above is not one that any bet keeps: where the slice fails more, the mean is above 1."""
    assert best_stop([(0, place % 2 == 0) for place in range(ANSWERS)], [(0.05, 0.95)] * 2) > 2.0


def test_a_release_that_replaces_another_is_seen() -> None:
    """No answer of the one is beside one of the other: the totals tell them apart."""
    assert search.log_e_value(100, 40, 500, 25) > 10.0


@given(st.integers(1, 200), st.integers(1, 2000), st.data())
def test_evidence_grows_with_what_fails_inside(inside: int, outside: int, data: st.DataObject) -> None:
    """Beyond the share outside, one more failing answer inside is never less evidence, once there is any."""
    outside_failing = data.draw(st.integers(0, outside))
    least = min(inside, inside * outside_failing // outside + 1)
    logs = [search.log_e_value(inside, failing, outside, outside_failing) for failing in range(least, inside + 1)]
    evidence = list(dropwhile(lambda log: log <= 0.0, logs))
    assert evidence == sorted(evidence)


@given(st.integers(0, 300), st.integers(0, 300), st.data())
def test_a_cell_never_costs_more_than_half_of_the_stake(inside: int, outside: int, data: st.DataObject) -> None:
    """Cells without the slice, or in which it fails less, cost at most the half that is bet."""
    failing = data.draw(st.integers(0, inside)), data.draw(st.integers(0, outside))
    assert search.log_e_value(inside, failing[0], outside, failing[1]) >= -math.log(2.0) - 1e-9


@given(st.lists(st.floats(-5.0, 30.0), max_size=20), st.integers(20, 5000), st.floats(0.001, 0.5))
def test_every_selected_slice_has_enough_evidence(logs: list[float], looked_at: int, rate: float) -> None:
    """What e-BH selects is self-consistent, and one more would not be."""
    logs.sort(reverse=True)
    count = search.selected(logs, looked_at, rate)
    assert all(log >= math.log(looked_at / (rate * count)) for log in logs[:count])
    assert all(logs[more - 1] < math.log(looked_at / (rate * more)) for more in range(count + 1, len(logs) + 1))
