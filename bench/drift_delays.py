"""How many answers pass until a breakage is noticed, at the default settings of drift detection.

Run: python bench/drift_delays.py [--runs N] [--rows N] [--per-day N]. Real answers are judged once by the embedded
judge, healthy and broken in each way; traffic is then drawn from these readings, with a share of broken ones from some
answer on. Detectors, thresholds and budget are those of a configuration with three routes and nothing else set. The
answers: CLAPNQ of ../shared/data where it is, and the service of the demo. Signals of traffic need no judge: their
shares are drawn.

The delay is counted in judged answers of the route (for signals of traffic: in requests), from the first that may be
broken to the first alarm of any quantity. Fewer answers per day leave fewer to learn from, and lower the threshold.
"""

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import fmean

from ragwatch.config.drift import DriftOptions
from ragwatch.demo import endless
from ragwatch.demo.answerer import ABSTENTION
from ragwatch.demo.questions import questions
from ragwatch.demo.service import RagService
from ragwatch.judges.lexical.judge import LexicalJudge, Options, build
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER, Context, Sample
from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.statistics.drift.detect import DetectorState, Score, begin, step
from ragwatch.statistics.scores import score_all
from ragwatch.telemetry import Telemetry

CLAPNQ = Path(__file__).parents[2] / "shared/data/relevance/clapnq/dev.jsonl"
ROUTES = ("search", "support", "chat", OTHER)
DAY, LONGEST, BATCH = 86400.0, 10_000, 10
Scores = Mapping[Quantity, float | None]
Change = Callable[[Sample, Sample], Sample]
INVENTION = "Engineers in Tbilisi rewrote it last winter. A licence costs 48 euros per seat every quarter."
CHANGES: dict[str, Change] = {
    "inventions": lambda sample, _: sample._replace(answer=INVENTION),
    "unrelated contexts": lambda sample, other: sample._replace(contexts=other.contexts),
    "unrelated context on top": lambda sample, other: sample._replace(
        contexts=(other.contexts[0], *sample.contexts[:-1])
    ),
    "abstentions": lambda sample, _: sample._replace(answer=ABSTENTION),
    "empty retrievals": lambda sample, _: sample._replace(contexts=()),
}
SHARES = {
    "inventions": (0.15, 0.6),
    "unrelated contexts": (0.1, 0.6),
    "unrelated context on top": (0.1, 0.3),
    "abstentions": (0.2,),
    "empty retrievals": (0.05,),
}
RATES = (
    (Signal.ABSTENTIONS, 0.03, 0.2),
    (Signal.ABSTENTIONS, 0.10, 0.2),
    (Signal.EMPTY_RETRIEVALS, 0.0, 0.05),
    (Signal.EMPTY_RETRIEVALS, 0.01, 0.05),
    (Signal.DUPLICATE_CONTEXTS, 0.05, 0.2),
)


def clapnq(rows: int) -> list[Sample]:
    """Answers by people to real questions, with the sentences of the passage as contexts."""
    found = []
    for line in islice(CLAPNQ.open(encoding="utf-8"), 4 * rows):
        row = json.loads(line)
        if row["answer"] and row["contexts"]:
            contexts = tuple(Context(text) for text in row["contexts"])
            found.append(Sample(row["id"], row["question"], contexts, row["answer"]))
    return found[:rows]


def demo(rows: int) -> list[Sample]:
    """Answers of the demo's service."""
    with tempfile.TemporaryDirectory() as folder:
        service = RagService(Path(folder) / "log.jsonl")
        asked = [(each.text, service.ask(each.text)) for each in islice(endless(questions(service.passages), 1), rows)]
        service.close()
    return [
        Sample(reply["id"], text, tuple(Context(each["text"]) for each in reply["contexts"]), reply["answer"])
        for text, reply in asked
        if reply["contexts"]
    ]


def readings(judge: LexicalJudge, samples: Sequence[Sample]) -> list[Scores]:
    """Scores of each."""
    return [score_all(judge.evidence(sample)) for sample in samples]


def broken(samples: Sequence[Sample], change: Change) -> list[Sample]:
    """Each broken in this way, with the help of another one."""
    shift = len(samples) // 2
    return [change(sample, samples[(index + shift) % len(samples)]) for index, sample in enumerate(samples)]


class Watch:
    """All detectors of one route, after they have learnt from healthy traffic."""

    def __init__(self, rules: DriftRules, healthy: Iterator[Scores], per_day: int) -> None:
        self._schemes = {quantity: rules.scheme(quantity, ROUTES[0]) for quantity in rules.quantities}
        self._states: dict[Quantity, DetectorState[Score]] = {
            quantity: begin(scheme) for quantity, scheme in self._schemes.items()
        }
        self._every = DAY / per_day
        self._count = 0
        while any(state.detector is None for state in self._states.values()) and self._count < 5 * rules.reference:
            self._take(next(healthy))

    def _take(self, scores: Scores) -> list[Quantity]:
        self._count += 1
        for quantity, scheme in self._schemes.items():
            value, state = scores[quantity], self._states[quantity]
            if value is not None:
                at = self._count * self._every
                self._states[quantity] = step(scheme, state, self._count, at, Score(value))
        return [quantity for quantity, state in self._states.items() if state.alarm is not None]

    def delay(self, traffic: Iterator[Scores]) -> tuple[int, Quantity] | None:
        """Answers until the first alarm, and its quantity. The watch itself is left as it is."""
        states, count = dict(self._states), self._count
        try:
            for answers, scores in enumerate(islice(traffic, LONGEST), start=1):
                if alarms := self._take(scores):
                    return answers, alarms[0]
            return None
        finally:
            self._states, self._count = states, count


def mixed(rng: random.Random, healthy: Sequence[Scores], bad: Sequence[Scores], share: float) -> Iterator[Scores]:
    """Traffic of which a share is broken."""
    while True:
        yield rng.choice(bad if rng.random() < share else healthy)


def mean_of(scores: Sequence[Scores], quantity: Quantity) -> float:
    """Mean over the answers that have the score."""
    return fmean(value for each in scores if (value := each[quantity]) is not None)


def print_row(what: str, moved: str, delays: Sequence[int | None], first: str) -> None:
    """Print a row of the table: mean and 90th percentile of those that were noticed."""
    noticed = sorted(delay for delay in delays if delay is not None)
    figures = f"{fmean(noticed):.0f} | {noticed[int(0.9 * (len(noticed) - 1))]}" if noticed else "- | -"
    print(f"| {what} | {moved} | {figures} | {len(noticed) / len(delays):.0%} | {first} |", flush=True)


def answers_table(name: str, samples: Sequence[Sample], runs: int, per_day: int) -> None:
    """Replay every breakage of judged answers."""
    context = JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    judge = build(Options(), name="embedded", context=context)
    healthy = readings(judge, samples)
    pools = {what: readings(judge, broken(samples, change)) for what, change in CHANGES.items()}
    rules = DriftOptions().rules("", "", ROUTES, {})
    means = ", ".join(f"{quantity} {mean_of(healthy, quantity):.3f}" for quantity in rules.quantities)
    print(f"\n{name}: {len(samples)} answers, {per_day} a day, threshold {rules.alarm_at:.0f} days; {means}\n")
    print("| breakage | mean of the first quantity told | delay, mean | p90 | noticed | first told |")
    print("|---|---|---|---|---|---|")
    watches = []
    for seed in range(runs):
        rng = random.Random(seed)
        watches.append((rng, Watch(rules, mixed(rng, healthy, healthy, 0.0), per_day)))
    faithful, unfaithful = (mean_of(pool, Quantity.FAITHFULNESS) for pool in (healthy, pools["inventions"]))
    shares = {what: SHARES[what] for what in CHANGES}
    shares["inventions"] = (0.05 / (faithful - unfaithful), *shares["inventions"])
    for what, bad in pools.items():
        for share in shares[what]:
            told = [watch.delay(mixed(rng, healthy, bad, share)) for rng, watch in watches]
            firsts = Counter(quantity for each in told if each is not None for quantity in each[1:])
            first = firsts.most_common(1)[0][0] if firsts else None
            moved = ""
            if first is not None:
                before, after = (mean_of(pool, first) for pool in (healthy, bad))
                moved = f"{before:.3f} -> {before + share * (after - before):.3f}"
            print_row(f"{share:.0%} {what}", moved, [None if each is None else each[0] for each in told], first or "")


def claims(rng: random.Random, mean: float) -> Iterator[Scores]:
    """Supported of two to eight claims, alike within an answer: a standard deviation of .22 at a mean of .9."""
    while True:
        count, of_answer = rng.randint(2, 8), rng.betavariate(1.5 * mean, 1.5 * (1.0 - mean))
        yield {Quantity.FAITHFULNESS: sum(rng.random() < of_answer for _ in range(count)) / count}


def synthetic_table(runs: int, per_day: int) -> None:
    """Replay falls by .05 of scores that vary more than those of a good service."""
    options = DriftOptions()
    rules = replace(
        options.rules("", "", ROUTES, {}),
        quantities=(Quantity.FAITHFULNESS,),
        false_alarm_days=len(options.quantities) * 30.0,
    )
    print(f"\nsynthetic claim ratios, {per_day} a day, threshold {rules.alarm_at:.0f} days\n")
    print("| breakage | mean | delay, mean | p90 | noticed | first told |")
    print("|---|---|---|---|---|---|")
    for mean in (0.97, 0.95, 0.9, 0.85):
        told = []
        for seed in range(runs):
            rng = random.Random(seed)
            told.append(Watch(rules, claims(rng, mean), per_day).delay(claims(rng, mean - 0.05)))
        delays = [None if each is None else each[0] for each in told]
        print_row("a fall by .05", f"{mean:.2f} -> {mean - 0.05:.2f}", delays, "faithfulness")


def traffic_table(runs: int, per_day: int) -> None:
    """Replay rises of shares of all traffic."""
    rules = DriftOptions().traffic_rules(ROUTES)
    print(f"\nrequests, {per_day} a day, threshold {len(rules.cells) * rules.false_alarm_days:.0f} days\n")
    print("| breakage | share | delay, mean | p90 | noticed | first told |")
    print("|---|---|---|---|---|---|")
    for signal, before, more in RATES:
        delays = [rise(signal, before, more, random.Random(seed), per_day) for seed in range(runs)]
        after = before + more * (1.0 - before)
        print_row(f"{more:.0%} {signal.replace('_', ' ')}", f"{before:.2f} -> {after:.3f}", delays, signal)


def rise(signal: Signal, before: float, more: float, rng: random.Random, per_day: int) -> int | None:
    """Requests until the rise of a share is noticed."""
    scheme, at = DriftOptions().traffic_rules(ROUTES).scheme(signal), 0.0
    state, requests = begin(scheme), 0
    while requests < LONGEST:
        share = before if state.detector is None else before + more * (1.0 - before)
        requests += 0 if state.detector is None else BATCH
        at += BATCH * DAY / per_day
        hits = sum(rng.random() < share for _ in range(BATCH))
        state = step(scheme, state, state.seq + BATCH, at, (BATCH - hits, hits))
        if state.alarm is not None:
            return requests
    return None


def main() -> None:
    """Measure and print the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=40)
    options.add_argument("--rows", type=int, default=600)
    options.add_argument("--per-day", type=int, default=2000)
    chosen = options.parse_args()
    if CLAPNQ.exists():
        answers_table("CLAPNQ", clapnq(chosen.rows), chosen.runs, chosen.per_day)
    else:
        print("skipped: CLAPNQ (needs ../shared/data)")
    answers_table("the demo's service", demo(chosen.rows), chosen.runs, chosen.per_day)
    synthetic_table(chosen.runs, chosen.per_day)
    traffic_table(chosen.runs, 5 * chosen.per_day)


if __name__ == "__main__":
    main()
