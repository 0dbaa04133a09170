"""Alerts on the signals of all traffic, which need no judge. Texts say since when, and in how many answers."""

from __future__ import annotations

from collections.abc import Iterator

from ragwatch.model.signals import Signal
from ragwatch.rules import texts
from ragwatch.rules.alert import Alert, Area, Severity
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import span

_WARNED = "|".join(signal for signal in Signal if signal.row.warns)
_ANSWERS = "ragwatch_traffic_contexts_count"  # each answer has a number of contexts
_PLACE, _ARGUMENTS = "job='%s',route='%s',signal='%s'", "$labels.job $labels.route $labels.signal"
_BEGIN = f"max(ragwatch_traffic_drift_start_timestamp_seconds{{{_PLACE}}})"
_SHARE = f"topk(1, 100 * ragwatch_traffic_drift_ratio{{{{{_PLACE},period='{{}}'}}}})"


def alerts(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on signals: those that users feel at once warn, and page where far more answers than before have them."""
    warned, others = (_alarm(operator, _WARNED) for operator in ("=~", "!~"))
    gross = f"{_alarm('=~', '|'.join(plan.rises))}\nand on (job, route, signal) (\n  {_gross(plan)}\n)"
    for severity, expr in (
        *([(Severity.CRITICAL, gross)] if plan.rises else ()),
        (Severity.WARNING, warned),
        (Severity.INFO, others),
    ):
        yield Alert(
            name="RagwatchTrafficDrift",
            meaning="A signal of all requests differs from its reference. Refusals, empty answers, other language, "
            "repeated answers, empty retrievals, citations and old documents warn; the first five page where they have "
            "risen by more than half of the answers (`alerts.rises`); others inform.",
            delay="see the table of delays in [statistics](statistics.md); no hold",
            promise="one in `drift.traffic.false_alarm_every` (30 d) over all signals, guaranteed",
            severity=severity,
            area=Area.RETRIEVAL,
            expr=expr,
            summary=f"{{{{ $labels.route }}}}: {{{{ $labels.signal }}}}{_change()}.",
            description=(
                "The distribution of {{ $labels.signal }} on route {{ $labels.route }} differs from its reference. "
                "After the mend: ragwatch acknowledge --route '{{ $labels.route }}' --quantity {{ $labels.signal }}."
            ),
            board="retrieval",
            labels=("job", "route", "signal"),
            samples=texts.asked(_BEGIN, _ARGUMENTS, '&since={{ . | first | value | printf "%.0f" }}'),
            origin=(f"ragwatch_traffic_drift_alarm{{{_PLACE}}} == 1", _ARGUMENTS),
            hold=0.0,
        )


def _alarm(operator: str, signals: str) -> str:
    return f'max by (job, route, signal) (ragwatch_traffic_drift_alarm{{signal{operator}"{signals}"}}) == 1'


def _change() -> str:
    """Template text such as ` rose from 3.0 % to 60 % of answers since 14:08 UTC`; of a number, those above a value."""
    percent = '{{ .Value | printf "%.1f" }} %'
    clock = texts.clock(_BEGIN, _ARGUMENTS)
    moved = "{{ if gt $since .Value }} rose{{ else }} fell{{ end }}"
    shares = f'from {percent} to {{{{ $since | printf "%.1f" }}}} %'
    text = f"{{{{ with . | first }}}}{moved} {shares}{{{{ end }}}} of answers{clock}"
    before = texts.asked(_SHARE.format("before"), _ARGUMENTS, text)
    above = "{{ if .Labels.above }} above {{ .Labels.above }}{{ end }}"
    since = f"{{{{ with . | first }}}}{{{{ $since := .Value }}}}{above}{before}{{{{ end }}}}"
    return texts.asked(_SHARE.format("since"), _ARGUMENTS, since, " differ from their reference")


def _gross(plan: RulePlan) -> str:
    """Condition that the share of answers with a signal has risen so much over its reference, and still is so high.

    Since the change, as the daemon counts it; from the end of the first window on, in the newest window as well.
    """
    parts, recent = [], span(plan.windows[0])
    for signal, rise in plan.rises.items():
        place = f'signal="{signal}"'
        before, since = (
            f'{operator} by (job, route) (ragwatch_traffic_drift_ratio{{{place},period="{period}"}})'
            for operator, period in (("min", "before"), ("max", "since"))
        )
        now = (
            f"sum by (job, route) (increase({signal.row.series}[{recent}]))"
            f" / (sum by (job, route) (increase({_ANSWERS}[{recent}])) > 0)"
        )
        began = f"max by (job, route) (ragwatch_traffic_drift_start_timestamp_seconds{{{place}}})"
        lasts = f"{now} - on (job, route) {before} > {rise:g} or {began} > time() - {plan.windows[0]:g}"
        risen = f"{since} - on (job, route) {before} > {rise:g} and on (job, route) ({lasts})"
        parts.append(f'label_replace({risen}, "signal", "{signal}", "", "")')
    return "\n  or ".join(parts)
