"""Lists which alerts a configuration can never raise, for `ragwatch check` and the overview page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ragwatch.config import Config
from ragwatch.core.estimators.level import CALIBRATED_LABELS
from ragwatch.model.quantities import Quantity

_PAGES = ("QualityBad", "QualityDrift")


def unpaged(config: Config) -> tuple[str, ...]:
    """What cannot page under a configuration, each with the key that changes it."""
    settings, reasons = config.settings, []
    thresholds = {*settings.live_thresholds, *(name for own in settings.route_thresholds.values() for name in own)}
    if all(metric.row.own_alert for metric in thresholds):
        reasons.append("no threshold pages: `thresholds` is empty")
    else:
        watched = any(not quantity.row.own_alert for quantity in settings.drift.quantities)
        reasons += _without_levels({*thresholds, *settings.alerts.slos}, "; drift can page" if watched else "")
    if all(quantity.row.own_alert for quantity in settings.drift.quantities):
        reasons.append("no drift pages: `drift.quantities` is empty")
    else:
        reasons += _without_baseline(settings.drift.controls)
    if not config.canaries:
        reasons.append("no broken retriever pages before users notice: `canaries` is empty")
    elif not any(suite.place.judge for suite in config.canaries):
        reasons.append("no wrong canary answer pages: no suite in `canaries` has a `judge`")
    if not settings.alerts.slos and not settings.alerts.route_slos:
        reasons.append("no error budget pages: `alerts.slos` is empty")
    if not settings.routes:
        reasons.append("no single route pages: `routes` is empty, so all answers have the route `other`")
    for name in _PAGES:
        severity = settings.alerts.severity.get(f"Ragwatch{name}", "critical")
        if severity != "critical":
            reasons.append(f"{name} does not page: `alerts.severity` makes it {severity}")
    return tuple(reasons)


def _without_levels(limited: Iterable[Quantity], instead: str) -> Iterator[str]:
    """Thresholds and objectives are about levels, which are known as well as the judge is."""
    named = {quantity: quantity.row.question is not None for quantity in limited if not quantity.row.own_alert}
    labelled = [str(quantity) for quantity, has_question in named.items() if has_question]
    others = [str(quantity) for quantity, has_question in named.items() if not has_question]
    if labelled:
        yield (
            f"no threshold or objective of {', '.join(sorted(labelled))} pages on a route before about "
            f"{CALIBRATED_LABELS} of its answers are labelled (`ragwatch label`), unless nearly every answer is "
            f"bad{instead}"
        )
    if others:
        yield (
            f"no threshold or objective of {', '.join(sorted(others))} pages: its level is not known, because people "
            f"are not asked about it{instead}"
        )


def _without_baseline(controls: Mapping[str, str]) -> Iterator[str]:
    """Routes on which drift cannot page: a page compares the last hour with a baseline."""
    for route, control in controls.items():
        yield (
            f"no drift pages on {route}: `drift.controls` compares it with {control}, not with a baseline, so its "
            f"drift is a ticket; `thresholds.routes.{route}` can page"
        )
    for control in dict.fromkeys(controls.values()):
        yield (
            f"no drift pages on {control}: `drift.controls` makes it a control, which is not watched; "
            f"`thresholds.routes.{control}` can page"
        )
