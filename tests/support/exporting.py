"""An export of scores to a backend, from a real store, with clocks that are wound by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.export.evaluation import ExportRules, ExportTarget, Signal
from ragwatch.pipeline.export.loop import ExportLoop
from ragwatch.pipeline.export.otlp import OtlpClient
from ragwatch.ports import LoopContext
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import EventCount, Telemetry
from support.kit import AT, Clock, a_draw, a_verdict, an_admission, an_unjudged
from support.otlp_backend import OtlpBackend

TRACE, SPAN, ANSWER = "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7", "b7ad6b7169203331"
ONE = ExportRules(default=(Quantity.FAITHFULNESS,))


class Exporting:
    """An export loop on a store, with clocks that are wound by hand."""

    def __init__(self, backend: OtlpBackend | str, store: SqliteStore, telemetry: Telemetry) -> None:
        self.url = backend if isinstance(backend, str) else backend.url
        self.store, self.telemetry = store, telemetry
        self.clock, self.timer = Clock(AT + 60), Clock(1000.0)

    def loop(self, signal: Signal = Signal.LOGS, rules: ExportRules = ONE, **target: Any) -> ExportLoop:
        """A new loop: that of a new process."""
        client = OtlpClient(ExportTarget(self.url, **target), self.clock)
        return ExportLoop(
            signal, rules, LoopContext(self.store, self.telemetry, self.clock), client=client, timer=self.timer
        )

    def settle(self, *verdicts: Verdict) -> None:
        """Store verdicts."""
        self.store.admit(an_admission(*(verdict.draw for verdict in verdicts)))
        assert self.store.settle(verdicts) == len(verdicts)

    async def run(self, *signals: Signal, rules: ExportRules = ONE) -> None:
        """Send all that is there."""
        for signal in signals or (Signal.LOGS,):
            loop = self.loop(signal, rules)
            while await loop.step():
                pass
            await loop.close()

    def counts(self, count: EventCount) -> dict[str, float]:
        """Counters above 0, summed over signals, by the other label."""
        counts: Counter[str] = Counter()
        for (name, labels), n in self.telemetry.counts().items():
            counts[str(labels[-1])] += int(n) if name is count else 0
        return dict(+counts)


def traced(name: str = "r1", verdict: str = "judged", **metadata: Any) -> Verdict:
    """A verdict on an answer with a trace."""
    metadata = {"trace_id": TRACE, "span_id": SPAN} | metadata
    draw = a_draw(name, metadata=metadata)
    return a_verdict(draw) if verdict == "judged" else an_unjudged(draw, verdict)
