"""Alerts on the signals of all traffic, which need no judge. Texts say since when, and in how many answers."""

from collections.abc import Iterator

from ragwatch.model.signals import Signal
from ragwatch.rules import texts
from ragwatch.rules.alert import Alert, Area, Severity
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import span

_WARNED = "|".join(signal for signal in Signal if signal.row.warns)
_FIRING = 'ALERTS{{alertname="RagwatchTrafficDrift",severity="{}",alertstate="firing"}}'
_PLACE, _ARGUMENTS = "job='%s',route='%s',signal='%s'", "$labels.job $labels.route $labels.signal"
_MEAN = 'ragwatch_traffic_drift_ratio{{signal=~"{}",period="since"}}'
_LOW = 'ragwatch_traffic_drift_ratio_low{{signal=~"{}"}}'
_BEGIN = f"max(ragwatch_traffic_drift_start_timestamp_seconds{{{_PLACE}}})"
_SHARE = f"topk(1, 100 * ragwatch_traffic_drift_ratio{{{{{_PLACE},period='{{}}'}}}})"


def alerts(plan: RulePlan) -> Iterator[Alert]:
    """Alerts on signals: those that users feel at once warn, and page where far more answers than before have them."""
    warned, others = (_alarm(operator, _WARNED) for operator in ("=~", "!~"))
    held = "\n    or ".join((_follows(plan), *([undecided(plan)] if plan.rises else ())))
    held = f"({held})\n    unless on (job, route, signal) {_FIRING.format('warning')}"  # a ticket that there is stays
    # a ticket beside a page, or within the first window after it, would be new after the mend
    paged = f"max_over_time({_FIRING.format('critical')}[{span(plan.windows[0])}])"
    warned = f"{warned}\nunless on (job, route, signal) (\n  {paged}\n  or {held}\n)"
    gross = f"{_alarm('=~', '|'.join(plan.rises))}\nand on (job, route, signal) (\n  {_risen(plan, _LOW)}\n)"
    for severity, expr in (
        *([(Severity.CRITICAL, gross)] if plan.rises else ()),
        (Severity.WARNING, warned),
        (Severity.INFO, others),
    ):
        yield Alert(
            name="RagwatchTrafficDrift",
            meaning="A signal of all requests differs from its reference. Refusals, empty answers, other language, "
            "repeated answers, empty retrievals, citations and old documents warn; the first five page where they have "
            "risen by more than half of the answers (`alerts.rises`) with 98 % confidence; others inform. It ends when "
            "a test says that answers are back at the reference.",
            delay="see the table of delays in [statistics](statistics.md); no hold",
            promise="one in `drift.traffic.false_alarm_every` (30 d) over all signals, guaranteed",
            severity=severity,
            area=Area.RETRIEVAL,
            expr=expr,
            summary=f"{{{{ $labels.route }}}}: {{{{ $labels.signal }}}}{_change()}.",
            description=(
                "The distribution of {{ $labels.signal }} on route {{ $labels.route }} differs from its reference. "
                "This ends when answers are back at it. If the change is intended: "
                "ragwatch acknowledge --route '{{ $labels.route }}' --quantity {{ $labels.signal }} --renew."
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


def _follows(plan: RulePlan) -> str:
    """Signals that changed after another one of their route which entails it, until a window after that."""
    causes: dict[str, list[str]] = {}
    for signal in Signal:
        if signal.row.follows:
            causes.setdefault(signal.row.follows, []).append(signal)
    explains = "|".join(signal for signal in Signal if signal.row.explains)
    return "\n    or ".join(
        f'ragwatch_traffic_drift_alarm{{signal=~"{"|".join(signals)}"}} == 1 and on (job, route) '
        f'max_over_time(ragwatch_traffic_drift_alarm{{signal=~"{explains if cause == "explains" else cause}"}}'
        f"[{span(plan.window)}]) == 1"
        for cause, signals in causes.items()
    )


def undecided(plan: RulePlan) -> str:
    """Builds a condition on signals that may page after some more answers, for a window after their alarm began.

    Most of the few answers since the change have them.
    """
    began = f"max by (job, route, signal) (min_over_time(ragwatch_traffic_drift_alarm[{span(plan.window)}])) == 0"
    return f"({_risen(plan, _MEAN)})\n    and on (job, route, signal) {began}"


def _risen(plan: RulePlan, share: str) -> str:
    """Condition that a share of answers with a signal since its change is so much above its reference that it pages.

    At first that is the mean of eight answers, so a page compares its lower bound.
    """
    signals: dict[float, list[str]] = {}
    for signal, rise in plan.rises.items():
        signals.setdefault(rise, []).append(signal)
    place, before = "job, route, signal", 'ragwatch_traffic_drift_ratio{{signal=~"{}",period="before"}}'
    return "\n  or ".join(
        f"max by ({place}) ({share.format('|'.join(names))}) "
        f"- on ({place}) min by ({place}) ({before.format('|'.join(names))}) > {rise:g}"
        for rise, names in signals.items()
    )
