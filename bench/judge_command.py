"""How fast `ragwatch judge --judge claude` reads: beside a bare httpx call per answer, in one run.

    python bench/judge_command.py [--answers N] [--rounds N]

Both have 16 calls in flight against the same loopback server, at a lognormal latency of 1 s. The command is a process
of its own, and its start is part of its time; the bare call starts from a warm client, with its pages at hand. Answers
in which a prompt injection is suspected are left out: we read those again, in five more calls each. Figures are medians
of interleaved rounds.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from judge_speed import samples

from ragwatch.judges.llm.reading import Reading
from ragwatch.judges.llm.rubric import parts_of
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Sample

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME / "tests"))
from loopback.process import LoopbackProcess  # noqa: E402 - it lives among the tests

KEY = "bench"
IN_FLIGHT = 16
LEAST_RATIO = 0.85


def command_seconds(server: LoopbackProcess, path: Path, count: int) -> float:
    """Wall time of the command on a file of samples."""
    command = [sys.executable, "-m", "ragwatch", "judge", "--judge", "claude", "--set", f"base_url={server.address}"]
    command += ["--set", f"api_key={KEY}", "--set", f"concurrency={IN_FLIGHT}", str(path)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    judged = sum(json.loads(line)["reason"] is None for line in done.stdout.splitlines())
    if judged != count:
        raise SystemExit(f"only {judged} of {count} answers were judged:\n{done.stderr[-2000:]}")
    return seconds


async def bare_seconds(server: LoopbackProcess, bodies: Sequence[dict[str, Any]]) -> float:
    """Wall time of one bare call per body."""
    slots = asyncio.Semaphore(IN_FLIGHT)
    headers = {"authorization": f"Bearer {KEY}", "anthropic-version": "2026-10-21"}
    async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=60.0) as client:

        async def call(body: dict[str, Any]) -> None:
            async with slots:
                reply = await client.post("/v1/messages", json=body)
                json.loads("".join(block.get("text", "") for block in reply.raise_for_status().json()["content"]))

        await call(bodies[0])  # the client is warm
        start = time.perf_counter()
        await asyncio.gather(*map(call, bodies))
        return time.perf_counter() - start


def reading_of(sample: Sample) -> Reading:
    """How we read a sample: every quantity in one call."""
    return Reading(sample, parts=parts_of(frozenset(Quantity), reference=False), reading="joint", seed=sample.id)


def plain(count: int) -> list[Sample]:
    """So many answers of which each is read once."""
    found = [sample for sample in samples(count + count // 10) if not reading_of(sample).instructions]
    return found[:count]


def bodies_of(answers: Sequence[Sample]) -> list[dict[str, Any]]:
    """The same page and schema as ours, without the rubric."""
    prompts = (reading_of(sample).prompts()[0] for sample in answers)
    return [
        {
            "model": "claude-haiku-5-5",
            "max_tokens": prompt.max_tokens,
            "messages": [{"role": "user", "content": prompt.user}],
            "output_config": {"format": {"type": "json_schema", "schema": dict(prompt.schema)}},
        }
        for prompt in prompts
    ]


def main() -> None:
    """Measure and print; fail where the bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--answers", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    answers = plain(options.answers)
    bodies = bodies_of(answers)
    ours, bare = [], []
    with LoopbackProcess(KEY) as server, tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(sample.to_record()) + "\n" for sample in answers)
        file.flush()
        for seed in range(options.rounds):
            server.control(latency={"mean": 1.0, "sigma": 0.4}, seed=seed)
            bare.append(asyncio.run(bare_seconds(server, bodies)))
            server.control(latency={"mean": 1.0, "sigma": 0.4}, seed=seed)
            ours.append(command_seconds(server, Path(file.name), len(answers)))
    rates = [len(answers) / statistics.median(seconds) for seconds in (bare, ours)]
    print(f"bare call {rates[0]:.1f}/s, ragwatch judge {rates[1]:.1f}/s, {len(answers)} answers, {IN_FLIGHT} in flight")
    ratio = rates[1] / rates[0]
    print(f"ragwatch judge / bare call {ratio:.3f} (at least {LEAST_RATIO:g})")
    if ratio < LEAST_RATIO:
        raise SystemExit("slower than allowed")


if __name__ == "__main__":
    main()
