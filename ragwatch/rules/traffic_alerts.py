"""Alerts on the signals of all traffic, which need no judge. Their texts say how many answers have a signal now."""

from __future__ import annotations

from collections.abc import Iterator

from ragwatch.model.signals import Signal
from ragwatch.rules import texts
from ragwatch.rules.alert import Alert, Area, Severity
from ragwatch.rules.plan import RulePlan

_WARNED = "|".join(signal for signal in Signal if signal.row.warns)
_ANSWERS = "ragwatch_traffic_contexts_count"  # each answer has a number of contexts
_RECENT, _BEFORE = "15m", "1d"
_RISE = 0.5
_PLACE, _ARGUMENTS = "job='%s',route='%s'", "$labels.job $labels.route $labels.job $labels.route"


def alerts(_: RulePlan) -> Iterator[Alert]:
    """Alerts on signals: those that users feel at once warn, and page where most answers have them."""
    warned, others = (
        f'max by (job, route, signal) (ragwatch_traffic_drift_alarm{{signal{operator}"{_WARNED}"}}) == 1'
        for operator in ("=~", "!~")
    )
    for severity, expr in (
        (Severity.CRITICAL, f"{warned}\nand on (job, route, signal) (\n  {_most_answers()}\n)"),
        (Severity.WARNING, warned),
        (Severity.INFO, others),
    ):
        yield Alert(
            name="RagwatchTrafficDrift",
            meaning="A signal of all requests differs from its reference: abstentions and empty retrievals warn, and "
            "page where they have risen by more than half of the answers; others inform.",
            delay="see the table of delays in [statistics](statistics.md); no hold",
            promise="one in `drift.traffic.false_alarm_every` (30 d) over all signals, guaranteed",
            severity=severity,
            area=Area.RETRIEVAL,
            expr=expr,
            summary=f"{{{{ $labels.route }}}}: {{{{ $labels.signal }}}} differ from their reference"
            f"{_figures(warns=severity is not Severity.INFO)}.",
            description=(
                "The distribution of {{ $labels.signal }} on route {{ $labels.route }} differs from its reference. "
                "After the mend: ragwatch acknowledge --route '{{ $labels.route }}' --quantity {{ $labels.signal }}."
            ),
            board="retrieval",
            labels=("job", "route", "signal"),
            samples="",
            hold=0.0,
        )


def _figures(*, warns: bool) -> str:
    """Template text with the share of answers that have a signal, before and now; empty for one that is a number."""
    percent = '{{ . | first | value | printf "%.0f" }} %'
    parts = []
    for signal in Signal:
        if signal.row.bounds is None and signal.row.warns is warns:
            before = texts.asked(_share(signal, _BEFORE, " offset 1h"), _ARGUMENTS, f", from {percent}")
            now = texts.asked(
                _share(signal, _RECENT, ""), _ARGUMENTS, f" to {percent} of answers in the last {_RECENT}"
            )
            parts.append(f'{{{{ if eq $labels.signal "{signal}" }}}}{before}{now}{{{{ end }}}}')
    return "".join(parts)


def _share(signal: Signal, window: str, offset: str) -> str:
    counted = f"sum(increase({signal.row.series}{{{_PLACE}}}[{window}]{offset}))"
    return f"100 * {counted} / (sum(increase({_ANSWERS}{{{_PLACE}}}[{window}]{offset})) > 0)"


def _most_answers() -> str:
    """Condition that a signal that warns has risen by more than half of the answers."""
    parts = []
    for signal in Signal:
        if signal.row.warns:
            now, before = (
                f"sum by (job, route) (increase({signal.row.series}[{window}]))"
                f" / (sum by (job, route) (increase({_ANSWERS}[{window}])) > 0)"
                for window in (_RECENT, _BEFORE)
            )
            parts.append(f'label_replace({now} - {before} > {_RISE}, "signal", "{signal}", "", "")')
    return "\n  or ".join(parts)
