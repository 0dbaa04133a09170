"""Has a judge of the running daemon read stored answers: what is behind `POST /v1/rejudge`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from ragwatch.daemon.runtime import Runtime
from ragwatch.pipeline.rejudging import RejudgeRequest, Rejudging
from ragwatch.ports import Store
from ragwatch.telemetry import Telemetry
from ragwatch.web import ParameterError, Rejudge, RejudgeFields


def rejudge_with(
    in_force: Callable[[], AbstractAsyncContextManager[Runtime]], store: Store, telemetry: Telemetry
) -> Rejudge:
    """Build the handler. It reads with the budget and the circuit breaker of the judge in force.

    Args:
        in_force: Context manager that holds the active runtime.
        store: Holds the answers.
        telemetry: Counts what fails.
    """

    async def rejudge(fields: RejudgeFields) -> Mapping[str, object]:
        async with in_force() as runtime:
            config, judges = runtime.config, {judging.judge.name: judging.judge for judging in runtime.judgings}
        config.require_texts("rejudging")
        if fields["judge"] not in judges:
            raise ParameterError(f"judge: {fields['judge']!r} is not configured; use one of: {', '.join(judges)}")
        rejudging = Rejudging(
            judges[fields["judge"]],
            store=store,
            timeout_seconds=config.settings.judging.timeout,
            telemetry=telemetry,
        )
        request = RejudgeRequest(fields["of"], fields["share"], fields["keys"], fields["charted_before"])
        return (await rejudging.read(request)).to_dict()

    return rejudge
