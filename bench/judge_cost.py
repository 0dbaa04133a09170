"""What a judged sample costs: ragwatch and ragas on the same samples against the same loopback server, in one run.

Both have 16 calls in flight at a lognormal latency of 1 s (embeddings 0.1 s), are warmed up by two samples, and are
charged for their own process alone. Figures are medians of interleaved rounds, each with latencies of its own. Tokens
are characters / 4 of what came over the wire, schemas and tools included. Samples a second are the only figure that a
busy machine changes much: where the bare call does not come near its bound either, they mean little.
The floor beside them is one bare SDK call a sample with the same page and no rubric.

ragas has an environment of its own, `--ragas FOLDER`; `--install` makes it. Without it the floor is all there is to
compare with. The samples are those of ExpertQA with five contexts or more, cut to five; without the data nothing runs.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic

from ragwatch.judges import KINDS
from ragwatch.judges.llm.reading import Reading
from ragwatch.judges.llm.rubric import parts_of
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context, Sample
from ragwatch.pipeline.sampling_control import StoredBudgetAccount
from ragwatch.ports import Judge, JudgeContext
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME / "tests"))
from loopback.process import LoopbackProcess  # noqa: E402 - it lives among the tests

KEY = "bench"
WARMING = 2
CONTEXTS = 5
PACKAGES = ("ragas==0.4.3", "langchain-community<0.4", "langchain-openai", "openai", "anthropic<1")
PROMPT, COMPLETION, CPU, SPEED = 0.25, 1.0, 0.25, 6.0


@dataclass(frozen=True, slots=True)
class Figures:
    """One tool's costs, a sample."""

    calls: float  # calls of a model
    embeddings: float  # calls for embeddings
    prompt: float  # tokens in, cached ones included
    cached: float  # tokens in that were read from the cache
    completion: float  # tokens out
    cpu_ms: float  # CPU time of the client's process
    rate: float  # samples a second
    peak: int  # most requests in flight
    lost: int  # readings (scores, for ragas) that came to nothing, in all


def load(path: Path, count: int) -> list[dict[str, Any]]:
    """The first samples with enough contexts."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    texts: dict[str, Any] = {}
    for name in {row["docs"] for row in rows if "docs" in row}:
        texts |= json.loads((path.parent / name).read_text(encoding="utf-8"))
    found = []
    for row in rows:
        contexts = row.get("contexts") or [texts[name] for name in row["context_refs"]]
        if len(contexts) >= CONTEXTS and row["question"] and row["answer"]:
            found.append({"question": row["question"], "contexts": contexts[:CONTEXTS], "answer": row["answer"]})
    return found[:count]


def sample_of(number: int, row: dict[str, Any]) -> Sample:
    """A row as our own code has it."""
    return Sample(f"bench-{number}", row["question"], tuple(map(Context, row["contexts"])), row["answer"])


def figures(server: LoopbackProcess, samples: int, seconds: float, cpu_seconds: float, lost: int) -> Figures:
    """What the server counted and the client used."""
    record = server.record(bodies=False)
    usage, counts = record["usage"], record["counts"]
    embeddings = counts.get("POST /v1/embeddings", 0)
    cached = usage.get("cache_read", 0)
    return Figures(
        calls=(sum(counts.values()) - embeddings) / samples,
        embeddings=embeddings / samples,
        prompt=(usage["input"] + cached + usage.get("cache_write", 0)) / samples,
        cached=cached / samples,
        completion=usage["output"] / samples,
        cpu_ms=cpu_seconds / samples * 1000,
        rate=samples / seconds,
        peak=record["peak_in_flight"],
        lost=lost,
    )


async def through(
    server: LoopbackProcess, read: Callable[[Sample], Awaitable[object]], samples: Sequence[Sample], in_flight: int
) -> Figures:
    """Read all samples, so many at a time."""
    room = asyncio.Semaphore(in_flight)
    lost: list[Exception] = []

    async def one(sample: Sample) -> None:
        async with room:
            try:
                await read(sample)
            except Exception as error:  # noqa: BLE001 - what is lost is counted and shown
                lost.append(error)

    await asyncio.gather(*map(one, samples[:WARMING]))
    await asyncio.to_thread(server.forget)
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(one, samples))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for error in lost[:3]:
        print(f"lost: {error!r}", file=sys.stderr)
    return await asyncio.to_thread(figures, server, len(samples), wall, cpu, len(lost))


async def ragwatch(
    server: LoopbackProcess, samples: Sequence[Sample], in_flight: int, kind_name: str = "claude"
) -> Figures:
    """Our judge as the daemon has it, with accounts in a store."""
    with tempfile.TemporaryDirectory(prefix="ragwatch-bench-") as folder:
        store = SqliteStore(Path(folder) / "state")
        context = JudgeContext(Telemetry(), StoredBudgetAccount(kind_name, (), store, time.time), time.time)
        kind = KINDS[kind_name]
        place: dict[str, dict[str, Any]] = {"claude": {"base_url": server.address}}
        place["openai"] = {"base_url": f"{server.address}/v1", "model": "gpt-4o-mini", "allow_unknown_price": True}
        options = kind.Options.model_validate({**place[kind_name], "api_key": KEY, "concurrency": in_flight})
        judge: Judge = kind.build(options, name=kind_name, context=context)
        try:
            return await through(server, judge.read, samples, in_flight)
        finally:
            await judge.close()
            store.close()


async def floor(server: LoopbackProcess, samples: Sequence[Sample], in_flight: int) -> Figures:
    """One bare call a sample: the same page and schema, no rubric, and nothing is made of the reply."""
    parts = parts_of(frozenset(Quantity), reference=False)
    asks = {each.id: Reading(each, parts=parts, reading="joint", seed=each.id).prompts()[0] for each in samples}
    async with AsyncAnthropic(api_key=KEY, base_url=server.address, max_retries=0, open_telemetry=False) as client:

        async def read(sample: Sample) -> object:
            ask = asks[sample.id]
            message = await client.messages.create(
                model="claude-haiku-5-5",
                max_tokens=ask.max_tokens,
                messages=[{"role": "user", "content": ask.user}],
                output_config={"format": {"type": "json_schema", "schema": dict(ask.schema)}},
            )
            return json.loads("".join(block.text for block in message.content if block.type == "text"))

        return await through(server, read, samples, in_flight)


def ragas(server: LoopbackProcess, folder: Path, samples: Path, count: int, in_flight: int) -> Figures:
    """The peer, in a process of its own."""
    command = [folder / "bin" / "python", HOME / "bench" / "ragas_cost.py", server.address, KEY, samples, in_flight]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"ragas failed:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return figures(server, count, found["seconds"], found["cpu_seconds"], found["lost"])


def install(folder: Path) -> None:
    """Make ragas's environment."""
    print(f"installing ragas into {folder}; this takes minutes", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PACKAGES], check=True)


def measured(chosen: argparse.Namespace, rows: list[dict[str, Any]], samples: list[Sample]) -> dict[str, list[Figures]]:
    """Figures of each round, by tool."""
    found: dict[str, list[Figures]] = defaultdict(list)
    with LoopbackProcess(KEY) as server, tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
        file.flush()
        for seed in range(chosen.rounds):
            script = {"latency": {"mean": 1.0, "sigma": 0.4}, "embedding_latency": {"mean": 0.1}, "seed": seed}
            if (chosen.ragas / "bin" / "python").exists():
                server.control(**script)
                found["ragas"].append(ragas(server, chosen.ragas, Path(file.name), len(rows), chosen.in_flight))
            for name, tool in (("bare call", floor), ("ragwatch", ragwatch)):
                server.control(**script)
                found[name].append(asyncio.run(tool(server, samples, chosen.in_flight)))
    return found


def median(rounds: Sequence[Figures]) -> Figures:
    """Of each figure; of what must not happen, the most."""
    middle = {each.name: statistics.median(getattr(one, each.name) for one in rounds) for each in fields(Figures)}
    worst = {name: max(getattr(one, name) for one in rounds) for name in ("calls", "peak", "lost")}
    return Figures(**middle | worst)


def show(name: str, found: Figures) -> None:
    """One line."""
    print(
        f"{name:<10}{found.calls:>6.2f}{found.embeddings:>7.1f}{found.prompt:>9,.0f}{found.cached:>8,.0f}"
        f"{found.completion:>8,.0f}{found.cpu_ms:>9.2f}{found.rate:>11.2f}{found.peak:>6}{found.lost:>6}"
    )


def judged(ours: Figures, peer: Figures | None) -> list[str]:
    """The bars that were missed, each printed with what was reached."""
    bars = [("calls a sample", ours.calls, 1.0, True), ("readings lost", float(ours.lost), 0.0, True)]
    if peer:
        bars += [
            ("prompt tokens / ragas", ours.prompt / peer.prompt, PROMPT, True),
            ("completion tokens / ragas", ours.completion / peer.completion, COMPLETION, True),
            ("client CPU / ragas", ours.cpu_ms / peer.cpu_ms, CPU, True),
            ("samples a second / ragas", ours.rate / peer.rate, SPEED, False),
        ]
    missed = []
    for name, value, bar, most in bars:
        good = value <= bar if most else value >= bar
        print(f"{name:<28}{value:>7.3f}  ({'at most' if most else 'at least'} {bar:g}){'' if good else '  MISSED'}")
        missed += [] if good else [name]
    return missed


def main() -> None:
    """Run and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=HOME.parent / "shared/data/judge/train/expertqa/all.jsonl")
    options.add_argument("--samples", type=int, default=48)
    options.add_argument("--in-flight", type=int, default=16)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--ragas", type=Path, default=HOME / ".venv-ragas", help="ragas's environment")
    options.add_argument("--install", action="store_true", help="make it where it is missing")
    chosen = options.parse_args()
    if not chosen.data.exists():
        print("no labelled data beside this repository: nothing measured")
        return
    if chosen.install and not chosen.ragas.exists():
        install(chosen.ragas)
    rows = load(chosen.data, chosen.samples)
    samples = [sample_of(number, row) for number, row in enumerate(rows)]
    found = measured(chosen, rows, samples)
    print(f"{len(rows)} samples of {CONTEXTS} contexts, {chosen.in_flight} in flight, a call takes 1 s (lognormal)")
    print("           calls  embed   prompt  cached   compl   CPU ms  samples/s  peak  lost")
    for name, rounds in found.items():
        show(name, median(rounds))
    ours, peer = median(found["ragwatch"]), median(found["ragas"]) if "ragas" in found else None
    if peer is None:
        print("ragas is not there to compare with; --install puts it into an environment of its own")
    bare = median(found["bare call"]).rate / chosen.in_flight
    print(f"{'bare call / its bound':<28}{bare:>7.3f}  (about 0.8 on a machine that has nothing else to do)")
    missed = judged(ours, peer)
    if missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
