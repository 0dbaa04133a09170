"""Intake from a message broker into PostgreSQL: CPU of the worker, the broker and the database for each record.

    python bench/broker_intake.py [--records N] [--probability P]

Records of about 4 KB, as in bench/intake.py. Seconds are of CPU time, which a busy machine stretches less than wall
time. Needs Debian's `redis-server`, `nats-server` and `postgresql`.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import nats
import redis

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME / "tests"))
from fleet.measured import DISK, open_store, server_seconds  # noqa: E402 - it needs what is among the tests
from intake import write_log  # noqa: E402 - beside this file
from support.brokers import BrokerProcess, nats_server, redis_server  # noqa: E402 - among the tests
from support.kit import JUDGE  # noqa: E402 - the same
from support.postgres import new_server  # noqa: E402 - the same

from ragwatch.formats.log_reader import LogReader, RecordRules  # noqa: E402 - the same
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules  # noqa: E402 - the same
from ragwatch.ports import LoopContext, Source, Store  # noqa: E402 - the same
from ragwatch.redaction.redactor import Redactor  # noqa: E402 - the same
from ragwatch.sources.brokers import nats as nats_source  # noqa: E402 - the same
from ragwatch.sources.brokers import redis_streams  # noqa: E402 - the same
from ragwatch.statistics.sampling import SamplingPlan  # noqa: E402 - the same
from ragwatch.telemetry import Telemetry  # noqa: E402 - the same


def filled_redis(folder: Path, lines: list[bytes]) -> tuple[BrokerProcess, Source]:
    """A Redis stream with these records, and a source that reads it."""
    server = redis_server(folder)
    with redis.Redis(port=server.port) as client:
        for start in range(0, len(lines), 500):
            with client.pipeline(transaction=False) as pipeline:
                for line in lines[start : start + 500]:
                    pipeline.xadd("rag", {"data": line})
                pipeline.execute()
    address = f"redis://127.0.0.1:{server.port}/0"
    return server, redis_streams.build(
        redis_streams.Options(name="app", url=address, stream="rag", start="beginning", consumer="bench")
    )


def filled_nats(folder: Path, lines: list[bytes]) -> tuple[BrokerProcess, Source]:
    """A NATS stream with these records, and a source that reads it."""
    server = nats_server(folder)
    address = f"nats://127.0.0.1:{server.port}"

    async def fill() -> None:
        client = await nats.connect(address)
        stream = client.jetstream(timeout=60)
        await stream.add_stream(name="rag", subjects=["rag"])
        for line in lines:
            await stream.publish("rag", line)
        await client.close()

    asyncio.run(fill())
    return server, nats_source.build(nats_source.Options(name="app", url=address, stream="rag", start="beginning"))


def drained(source: Source, store: Store, probability: float, count: int) -> float:
    """Read everything. Returns the CPU seconds of this process."""
    source.resume({})
    rules = IntakeRules(SamplingPlan(probability, known_routes=frozenset({"search"})), {JUDGE: 1.0}, Redactor(), 10**9)
    loop = IntakeLoop(source, LogReader(RecordRules()), rules, LoopContext(store, Telemetry(), time.time))

    async def drain() -> None:
        while sum(value for (tally, _), value in store.tallies().items() if tally == "seen") < count:
            for _ in range(20):
                await loop.step()

    begin = time.process_time()
    asyncio.run(drain())
    return time.process_time() - begin


def process_seconds(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--records", type=int, default=10_000)
    options.add_argument("--probability", type=float, default=0.1)
    chosen = options.parse_args()
    kinds: dict[str, Callable[[Path, list[bytes]], tuple[BrokerProcess, Source]]] = {
        "redis_streams": filled_redis,
        "nats": filled_nats,
    }
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder) / "log.jsonl", chosen.records)
        lines = (Path(folder) / "log.jsonl").read_bytes().splitlines()
        print(f"{chosen.records} records of {len(lines[0])} bytes, p = {chosen.probability:g}; CPU us for each record")
        for name, fill in kinds.items():
            place = Path(folder) / name
            place.mkdir()
            database = new_server(**DISK)
            broker, source = fill(place, lines)
            try:
                store = open_store(database.url, f"{folder}/{name}-state")
                before = process_seconds(broker.pid), server_seconds(database)
                worker = drained(source, store, chosen.probability, chosen.records)
                after = process_seconds(broker.pid), server_seconds(database)
                costs = worker, after[0] - before[0], after[1] - before[1]
                figures = [f"{1e6 * cost / chosen.records:7.1f}" for cost in costs]
                size = int(database.sql("SELECT pg_total_relation_size('ragwatch.received')")) / chosen.records
                print(f"  {name:<14} worker {figures[0]}  broker {figures[1]}  database {figures[2]}", end="")
                print(f"  remembered ids {size:.0f} bytes")
                source.close()
                store.close()
            finally:
                broker.kill()
                database.delete()


if __name__ == "__main__":
    main()
