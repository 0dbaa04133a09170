"""Actions: what a POST makes the daemon do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

from ragwatch.core.canary.report import SuiteReport
from ragwatch.daemon.runtime import Runtime
from ragwatch.daemon.watchers import Watchers
from ragwatch.web import Action, ParameterError


def actions(
    reload: Callable[[], Awaitable[None]], in_force: Callable[[], AbstractAsyncContextManager[Runtime]]
) -> Mapping[str, Action]:
    """By path.

    Args:
        reload: Reads the configuration again.
        in_force: The rooms in force, held for as long as something short is done to them.
    """

    async def load_again(_: Mapping[str, str]) -> str:
        await reload()
        return "configuration loaded"

    async def run_canaries(wanted: Mapping[str, str]) -> str:
        """For a hook behind a deploy or an index update: the suite that is named, or all of them."""
        if unknown := set(wanted) - {"suite"}:
            raise ParameterError(f"{min(unknown)}: is not known; use suite, or nothing for all of them")
        async with in_force() as rooms:
            canaries = rooms.canaries
        name = wanted.get("suite")
        if name is not None and name not in canaries.suites:
            known = ", ".join(sorted(canaries.suites)) or "none is configured"
            raise ParameterError(f"suite: {name!r} is not known; use one of: {known}")
        found = await canaries.run_all() if name is None else {name: await canaries.run(name)}
        return "\n".join(f"{suite}: {_told(report)}" for suite, report in found.items()) or "no canaries are configured"

    async def acknowledge(wanted: Mapping[str, str]) -> str:
        """Take alarms down; with `renew=true` also learn anew what is ordinary."""
        async with in_force() as rooms:  # rooms that begin meanwhile would not know of it
            return await _acknowledge(rooms.watchers, wanted)

    return {"/-/reload": load_again, "/-/canaries/run": run_canaries, "/-/drift/acknowledge": acknowledge}


def _told(found: SuiteReport | None) -> str:
    if found is None:
        return "is running already, here or elsewhere"
    failed = sum(found.failures.values())
    return f"{len(found.reports)} asked, {len(found.degraded)} degraded, {failed} failed"


async def _acknowledge(watchers: Watchers, wanted: Mapping[str, str]) -> str:
    if unknown := set(wanted) - {"quantity", "route", "judge", "renew"}:
        raise ParameterError(f"{min(unknown)}: is not known; use quantity, route, judge, renew")
    if wanted.get("renew", "false") not in ("true", "false"):
        raise ParameterError(f"renew: {wanted['renew']!r} is neither true nor false")
    judge = wanted.get("judge")
    if judge is not None:
        if watchers.anchors is None or watchers.anchors.name != judge:
            raise ParameterError(f"judge: {judge!r} reads no anchors; see `anchors` in the configuration")
        return f"judge {judge}: {'measured anew' if await watchers.anchors.renew() else 'nothing to renew'}"
    quantity, route, anew = wanted.get("quantity"), wanted.get("route"), wanted.get("renew") == "true"
    watched = {*watchers.drift.rules.cells, *watchers.traffic.rules.cells}
    if not any(quantity in (None, str(one)) and route in (None, other) for one, other in watched):
        named = {"quantity": quantity, "route": route}
        told = " with ".join(f"{key} {value!r}" for key, value in named.items() if value is not None)
        raise ParameterError(f"nothing is watched for {told}; /drift shows what is")
    done = [
        *await watchers.drift.acknowledge(quantity, route, renew=anew),
        *await watchers.traffic.acknowledge(quantity, route, renew=anew),
    ]
    return "\n".join(f"{one} on {other}" for one, other in done) or "no alarm stood"
