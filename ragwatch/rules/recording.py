"""Recording rules: estimates over all replicas, computed from counters that can be summed.

The prefix of a name gives its labels: `route:` has job, cluster, namespace (where the scrape configuration sets them),
route, judge (and quantity, window); `all:` the same without route; `segment:` with segment and value instead of route,
where segments are configured. Its end is the window, as in `mean1h`. All rules of a window form one group, because the
rules of a group are evaluated at the same instant.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import gain, of_window, pick, span
from ragwatch.rules.yaml_writer import JsonValue


@dataclass(frozen=True, slots=True)
class RecordingRule:
    """One recording rule."""

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def rule(self) -> dict[str, JsonValue]:
        """Renders the recording rule as Prometheus reads it."""
        labels: dict[str, JsonValue] = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.name, "expr": self.expr, **labels}


SUMS = ("weight", "weighted_score", "squared_weight", "squared_weight_score", "squared_weight_squared_score")
DAY = 86400.0
_LONG = 6 * 3600.0


def groups(plan: RulePlan) -> Iterator[dict[str, JsonValue]]:
    """Builds the groups of recording rules, dependencies first."""
    for seconds in plan.windows:
        window = span(seconds)
        group: dict[str, JsonValue] = {"name": f"ragwatch-estimates-{window}"}
        if seconds >= _LONG:  # costly and slow to change; an interval above 5m would exceed Prometheus' lookback
            group["interval"] = "2m"
        every = (*_sums(plan, window), *_estimates(plan, window), *_rates(window))
        records = [replace(record, name=of_window(record.name, window)) for record in every]
        if seconds == plan.window:
            records += comparisons(plan)
        yield {
            **group,
            "rules": [replace(record, labels={**record.labels, "window": window}).rule() for record in records],
        }
    limits = [record.rule() for record in _limits(plan)]
    if limits:
        yield {"name": "ragwatch-thresholds", "rules": limits}


def _sums(plan: RulePlan, window: str) -> Iterator[RecordingRule]:
    for addend in SUMS:
        for quantity in (*Quantity, *plan.criteria):
            counter = f"ragwatch_{quantity}_{addend}_total"
            yield RecordingRule(
                f"route:ragwatch_quality_{addend}:increase",
                f"sum by (job, cluster, namespace, route, judge) (\n  {gain(counter, window)}\n)",
                {"quantity": str(quantity)},
            )
        yield RecordingRule(
            f"all:ragwatch_quality_{addend}:increase",
            f"sum without (route) ({pick(f'route:ragwatch_quality_{addend}:increase', window=window)})",
        )
    for addend in SUMS if plan.segments else ():  # of each segment, over replicas and routes
        grown = gain(f"ragwatch_segment_{addend}_total", window)
        yield RecordingRule(
            f"segment:ragwatch_quality_{addend}:increase",
            f"sum by (job, cluster, namespace, quantity, segment, value, judge) (\n  {grown}\n)",
        )


def _estimates(plan: RulePlan, window: str) -> Iterator[RecordingRule]:
    """Mean, standard error and Wilson score interval at the observed variance, with z instead of t.

    PromQL has no root finding, so this approximates the interval of `ragwatch.statistics.estimators.score`: they agree
    if failures are many, and this one is slightly too narrow if failures are few and weights differ. If all scores are
    equal the standard error is 0, and the interval takes its width from the effective sample size.
    """
    z = NormalDist().inv_cdf(0.5 + plan.confidence / 2)
    for level in ("route", "all", *(("segment",) if plan.segments else ())):
        quality = f"{level}:ragwatch_quality"
        w, wx, w2, w2x, w2x2 = (pick(f"{quality}_{addend}:increase", window=window) for addend in SUMS)
        mean, error, trial = (pick(f"{quality}:{name}", window=window) for name in ("mean", "stderr", "inverse_trials"))
        centre = f"{mean} + {z * z / 2:.6f} * {trial}"
        half = f"{z:.6f} * sqrt({mean} * (1 - {mean}) * {trial} + {z * z / 4:.6f} * {trial} ^ 2)"
        yield RecordingRule(f"{quality}:mean", f"clamp({wx} / ({w} > 0), 0, 1)")
        yield RecordingRule(
            f"{quality}:stderr",
            f"sqrt(clamp_min({w2x2} - 2 * {mean} * {w2x} + {mean} ^ 2 * {w2}, 0))\n  / ({w} > 0)",
        )
        yield RecordingRule(f"{quality}:effective_samples", f"{w} ^ 2 / ({w2} > 0)")
        yield RecordingRule(
            f"{quality}:inverse_trials",
            f"({error} > 1e-7) ^ 2 / ({mean} * (1 - {mean}) > 0)\n  or {w2} / ({w} ^ 2 > 0)",
        )
        yield RecordingRule(
            f"{quality}:low", f"clamp_min((\n  {centre}\n  - {half}\n) / (1 + {z * z:.6f} * {trial}), 0)"
        )
        yield RecordingRule(
            f"{quality}:high", f"clamp_max((\n  {centre}\n  + {half}\n) / (1 + {z * z:.6f} * {trial}), 1)"
        )


def _rates(window: str) -> Iterator[RecordingRule]:
    """Coverage, stages, canaries and cost, summed over replicas."""
    at = {"window": window}
    judged, unjudged, settled = (
        f"route:ragwatch_samples_{outcome}:increase" for outcome in ("judged", "unjudged", "settled")
    )
    for name, counter in ((judged, "judged"), (unjudged, "unjudged")):
        series = f"ragwatch_samples_{counter}_total"
        yield RecordingRule(name, f"sum by (job, cluster, namespace, route, judge) (\n  {gain(series, window)}\n)")
    yield RecordingRule(settled, f"{pick(judged, **at)} + {pick(unjudged, **at)}")
    yield RecordingRule("route:ragwatch_coverage:ratio", f"{pick(judged, **at)} / ({pick(settled, **at)} > 0)")
    yield RecordingRule(
        "all:ragwatch_coverage:ratio",
        f"sum without (route) ({pick(judged, **at)})\n  / (sum without (route) ({pick(settled, **at)}) > 0)",
    )
    stages = "route:ragwatch_stage_samples:increase"
    grown = gain("ragwatch_stage_samples_total", window)
    yield RecordingRule(stages, f"sum by (job, cluster, namespace, route, stage) (\n  {grown}\n)")
    yield RecordingRule(
        "route:ragwatch_stage:ratio",
        f"{pick(stages, **at)}\n  / on (job, cluster, namespace, route, window) group_left ()\n"
        f"    (sum by (job, cluster, namespace, route, window) ({pick(stages, **at)}) > 0)",
    )
    for name in ("runs", "failures"):
        series = f"ragwatch_canary_{name}_total"
        yield RecordingRule(
            f"suite:ragwatch_canary_{name}:rate", f"sum by (job, cluster, namespace, suite) (rate({series}[{window}]))"
        )
    yield RecordingRule(
        "suite:ragwatch_canary_health:mean",
        f"avg by (job, cluster, namespace, suite) (avg_over_time(ragwatch_canary_health_ratio[{window}]))",
    )
    yield RecordingRule(
        "judge:ragwatch_judge_cost_dollars_per_day:rate",
        f"{DAY:.0f} * sum by (job, cluster, namespace, judge) (rate(ragwatch_judge_cost_dollars_total[{window}]))",
    )


def _limits(plan: RulePlan) -> Iterator[RecordingRule]:
    """Thresholds of all routes as series for the dashboards, and what remains of the error budgets."""
    for quantity, threshold in plan.thresholds.items():
        about = {"job": plan.job, "quantity": str(quantity)}
        yield RecordingRule("ragwatch:quality_threshold", f"vector({threshold:g})", about)
    for quantity, route, objective in plan.objectives_by_route:
        yield RecordingRule(
            "route:ragwatch_quality:error_budget_remaining",
            f"1 - ({_mean_error(quantity, plan.judge, plan.window, route)}) / {1 - objective:.6g}",
            {"quantity": str(quantity), "objective": f"{objective:g}"},
        )


def _mean_error(quantity: Quantity, judge: str, seconds: float, route: str) -> str:
    """PromQL for the mean error over 30 days, from the recorded sums of consecutive windows."""
    chosen = {"quantity": str(quantity), "judge": judge, "window": span(seconds)}
    steps = f"[30d:{span(seconds)}]"
    scores, weights = (
        f"sum_over_time({pick(f'route:ragwatch_quality_{addend}:increase', route, **chosen)}{steps})"
        for addend in ("weighted_score", "weight")
    )
    mean = f"{scores} / ({weights} > 0)"
    return mean if quantity in LOW_IS_GOOD else f"1 - {mean}"


LABELS = "job, cluster, namespace, route, judge"
LOOKBACK = "5m"
"""A missed scrape, or a restart, leaves no gap that is shorter."""


def level(plan: RulePlan, quantity: Quantity, route: str, end: str) -> str:
    """Builds the level of a quantity on the routes that a matcher selects: of several replicas the widest interval.

    `end` is empty for the value, or the end of the interval: `_low` or `_high`.
    """
    chosen = {"judge": plan.judge, "window": plan.level_window, "corrected": "yes"}
    gauge = pick(f"ragwatch_{quantity}_ratio{end}", route, **chosen)
    over = {"": "avg", "_low": "min", "_high": "max"}[end]
    return f"{over} by ({LABELS}) (last_over_time({gauge}[{LOOKBACK}]))"


def comparisons(plan: RulePlan) -> Iterator[RecordingRule]:
    """The rules of the group of `plan.window`.

    Thresholds by route, levels, and the distance of the whole interval of the level beyond its threshold.
    """
    for quantity, route, threshold in plan.limits_by_route:
        about = {"quantity": str(quantity)}
        chosen = {**about, "judge": plan.judge, "window": span(plan.window)}
        mean, enough = (
            pick(f"route:ragwatch_quality:{figure}", route, **chosen) for figure in ("mean", "effective_samples")
        )
        value, low, high = (level(plan, quantity, route, end) for end in ("", "_low", "_high"))
        beyond = f"{low} - {threshold:g}" if quantity in LOW_IS_GOOD else f"{threshold:g} - {high}"
        yield RecordingRule("route:ragwatch_quality:threshold", f"0 * {mean} + {threshold:g}", about)
        yield RecordingRule("route:ragwatch_quality:level", value, about)
        yield RecordingRule(
            "route:ragwatch_quality:shortfall",
            f"{beyond}\n  and on ({LABELS}) {enough} >= {plan.limits.samples}",
            about,
        )
