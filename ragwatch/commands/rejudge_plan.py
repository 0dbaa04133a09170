"""Which stored answers another judge is to read, and what that costs."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from ragwatch.config import Config, JudgeConfig
from ragwatch.errors import ConfigError
from ragwatch.model.budget import SpendingCap
from ragwatch.model.sample import Draw
from ragwatch.offline.judge import build_judge
from ragwatch.offline.state_reader import verdicts
from ragwatch.ports import Query, RejudgeQuery, RejudgeReader
from ragwatch.ports.capabilities import EstimatesCost, HasDeadline
from ragwatch.statistics.sampling import key_of
from ragwatch.terminal.output import moment

EXAMPLES = 20  # answers of which the cost is computed
PAST_READINGS = 100  # of which the mean cost is taken
_HOURS = 3600.0


@dataclass(frozen=True, slots=True)
class RejudgePlan:
    """Answers that a judge is to read."""

    query: RejudgeQuery  # the answers in question
    keys: tuple[str, ...] = ()  # those that are to be read, in this order
    share: float = 1.0  # of the answers, chosen at random; 1 without a sample
    charted_before: float = math.inf  # charts gain the scores of answers before this instant
    total: int = 0  # number of answers in question
    assigned: Counter[str] = field(default_factory=Counter)  # when drawn, by version of its verdict; empty: unread
    read: Counter[str] = field(default_factory=Counter)  # of the chosen ones in an earlier run, by version
    without_texts: int = 0  # left out, because their texts are deleted


def plan_of(reader: RejudgeReader, query: RejudgeQuery, size: int | None) -> RejudgePlan:
    """Choose the answers to read.

    With a sample size, the same answers are chosen in each run, as long as the query selects the same: those with the
    lowest hashes of their keys, whatever was read before. So a run continues an earlier one, and the share is right
    for both. They are read in the order of these hashes, so that also a part of them is a random sample; without a
    size, the newest answers are read first.
    """
    candidates = reader.rejudge_candidates(query)
    assigned: Counter[str] = Counter()
    open_ones = []
    without_texts = 0
    for one in candidates:
        if one.waiting or (one.version is not None and not one.rejudged):
            assigned[one.version or ""] += 1
        elif one.has_texts or one.rejudged:
            open_ones.append(one)
        else:
            without_texts += 1
    if size is None:
        chosen = sorted(open_ones, key=lambda one: (-one.at, one.key))
    else:
        chosen = sorted(open_ones, key=lambda one: key_of(f"rejudge {query.judge}", one.key))[:size]
    return RejudgePlan(
        query,
        keys=tuple(one.key for one in chosen if not one.rejudged),
        share=len(chosen) / len(open_ones) if open_ones else 1.0,
        charted_before=reader.first_reading(query.judge),
        total=len(candidates),
        assigned=assigned,
        read=Counter(str(one.version) for one in chosen if one.rejudged),
        without_texts=without_texts,
    )


@dataclass(frozen=True, slots=True)
class RejudgeCost:
    """What it costs to read some answers."""

    is_paid: bool = False  # whether readings cost money
    expected: float | None = None  # in US dollars, from past readings; None without these
    highest: float | None = None  # from prompts of some answers and the longest replies; None without prices

    def __str__(self) -> str:
        if not self.is_paid:
            return "nothing: the judge is not paid for"
        parts = [] if self.expected is None else [f"about {self.expected:.2f} USD, as its last readings"]
        parts += [] if self.highest is None else [f"at most about {self.highest:.2f} USD, from the prompts of some"]
        return "; ".join(parts) or "unknown, because the prices of the model are not configured"


def cost_of(config: Config, judge: JudgeConfig, examples: Sequence[Draw], answers: int) -> RejudgeCost:
    """Estimate what it costs to have so many answers read, from past readings and from examples of the answers."""
    if not isinstance(judge.options, HasDeadline):  # called over no network; a model need not be loaded to know that
        return RejudgeCost()
    built = build_judge(judge, config.settings.criterion_rules)
    if not isinstance(built, EstimatesCost):
        return RejudgeCost()
    past = [
        stored.verdict.read_by.cost_usd
        for stored in verdicts(config, Query(judge=built.name, outcome="judged", limit=PAST_READINGS, texts=False))
        if stored.verdict.judge_version == built.version
    ]
    dollars = [cost for cost in past if cost is not None]
    highest = [built.highest_cost(draw.sample).usd for draw in examples if draw.damage is None]
    return RejudgeCost(
        is_paid=True,
        expected=answers * fmean(dollars) if dollars else None,
        highest=answers * fmean(highest) if any(highest) else None,
    )


def describe(plan: RejudgePlan, cost: RejudgeCost, caps: Sequence[SpendingCap], now: float) -> Iterator[str]:
    """Yield what is planned, one line at a time, for people."""
    query = plan.query
    route = "" if query.route is None else f" on route {query.route}"
    until = "now" if query.until >= now else moment(query.until)
    yield f"{plan.total} answers of judge {query.of}{route}, from {moment(query.since)} to {until}"
    if plan.assigned:
        yield f"  {plan.assigned.total()} were assigned to {query.judge} when they were drawn{_versions(plan.assigned)}"
    if plan.read:
        yield f"  {plan.read.total()} were read in an earlier run{_versions(plan.read)}"
    if plan.without_texts:
        yield f"  {plan.without_texts} have no texts any more"
    share = "" if plan.share >= 1.0 else f", {100 * plan.share:.3g} % of those not assigned, chosen at random"
    yield f"  {len(plan.keys)} are to be read{share}"
    yield f"cost: {cost}"
    limits = []
    for cap in caps:
        amounts = ((cap.usd, "g", "USD"), (cap.tokens, "", "tokens"))
        texts = (f"{amount:{form}} {unit}" for amount, form, unit in amounts if amount is not None)
        limits.append(f"{' and '.join(texts)} in {cap.seconds / _HOURS:g} h")
    if limits and plan.keys:
        yield f"budget of the judge, for this and its other readings: {', '.join(limits)}"


def require_other(config: Config, name: str, of: str | None) -> tuple[JudgeConfig, str]:
    """Return the judge that is to read, and the name of the judge whose answers it is to read.

    The latter need not be configured any more. `ConfigError` if the judge is not configured, or they are the same.
    """
    judges = {judge.place.name: judge for judge in config.judges}
    if name not in judges:
        raise ConfigError(f"--judge {name}: is not a judge of the configuration; use one of: {', '.join(judges)}")
    others = [judge.place.name for judge in config.judges if judge.place.follows is None and judge.place.name != name]
    if of == name or (of is None and not others):
        raise ConfigError(
            f"--judge {name}: has read its own answers already, and keeps one verdict on each; to have them read by "
            "another model or version, configure that as a judge with another name; for answers of a judge that is not "
            "configured any more, name it with --of"
        )
    return judges[name], of or others[0]


def _versions(counts: Counter[str]) -> str:
    parts = (f"{number} {version or 'not read yet'}" for version, number in sorted(counts.items()))
    return f" ({', '.join(parts)})"
