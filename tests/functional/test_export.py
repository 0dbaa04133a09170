"""Export of scores by the real daemon: each verdict arrives whatever is killed, and judging does not wait for it."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from support.otlp_backend import Fault, OtlpBackend
from support.patience import DEADLINE

JUDGED = 'ragwatch_samples_judged_total{judge="embedded",route="search"}'
ROUNDS, EACH, BATCH = 2, 30, 10


@pytest.mark.costly
def test_every_verdict_arrives(tmp_path: Path) -> None:
    """Killed in the middle of requests: each answer has its event and its span, and few are sent twice."""
    backend = OtlpBackend()
    export = f"{{otlp: {{endpoint: '{backend.url}', quantities: [faithfulness], batch: {BATCH}, timeout: 60s}}}}"
    config = write_config(tmp_path, export=export)
    log = tmp_path / "log" / "app.jsonl"
    wanted: set[str] = set()
    for turn in range(ROUNDS):
        backend.faults = [Fault(), Fault(hangs=True), Fault(hangs=True)] if turn < ROUNDS - 1 else []
        numbers = range(turn * EACH + 1, (turn + 1) * EACH + 1)
        wanted |= {f"{number:032x}" for number in numbers}
        with RagwatchProcess(config) as daemon:
            daemon.wait_until_serving()
            with log.open("a") as file:
                file.writelines(
                    record(number, metadata={"trace_id": f"{number:032x}", "span_id": f"{number:016x}"}) + "\n"
                    for number in numbers
                )
            daemon.wait_for(JUDGED, float((turn + 1) * EACH))  # while requests hang
            end = time.monotonic() + DEADLINE
            while backend.faults or (turn == ROUNDS - 1 and not wanted <= _arrived(backend)):
                assert time.monotonic() < end, len(_arrived(backend))
                time.sleep(0.05)
            daemon.kill()
    events = Counter(one.trace_id.hex() for one in backend.logs())
    spans = Counter(one.links[0].trace_id.hex() for one in backend.spans())
    backend.close()
    assert set(events) == set(spans) == wanted
    assert (events + spans).total() <= 2 * len(wanted) + ROUNDS * 2 * BATCH
    assert len({one.span_id for one in backend.spans()}) == len(wanted)


def _arrived(backend: OtlpBackend) -> set[str]:
    """Traces that have an event and a span."""
    return {one.trace_id.hex() for one in backend.logs()} & {one.links[0].trace_id.hex() for one in backend.spans()}
