"""What a judged sample costs: ragwatch, ragas, deepeval, TruLens and phoenix-evals against the same loopback server.

The samples are the same for all, and so is the server, whose every call takes a fixed time. Each tool has an
environment of its own, a process of its own, and 16 as its own limit of parallel work; what that limits differs
(samples, metrics, or calls), so the most calls in flight stand beside it. Every tool is warmed up by two samples.
"""

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import judge_cost
from judge_cost import Figures
from loopback.process import LoopbackProcess
from peers.page import Bar, Chart, Part, figure

HOME = Path(__file__).resolve().parents[2]
SILENT = {
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "TRULENS_OTEL_TRACING": "0",
    "PHOENIX_TELEMETRY_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "ANONYMIZED_TELEMETRY": "false",
}
"""Telemetry of the tools, off."""
PEERS = {
    "ragas": ("ragas 0.4.3", "bench/ragas_cost.py"),
    "deepeval": ("deepeval 4.3.1", "bench/peers/deepeval_cost.py"),
    "trulens": ("TruLens 2.16.0", "bench/peers/trulens_cost.py"),
    "phoenix": ("phoenix-evals 3.9.4", "bench/peers/phoenix_cost.py"),
}
METRICS = {
    "ragwatch": "faithfulness, context precision and use, answer relevance, and all others, in one call",
    "ragas": "Faithfulness, LLMContextPrecisionWithoutReference, ResponseRelevancy",
    "deepeval": "Faithfulness, ContextualRelevancy, AnswerRelevancy, with reasons",
    "TruLens": "groundedness, context relevance of each context, relevance, with reasons",
    "phoenix-evals": "Faithfulness, RetrievalRelevance of each context, Correctness (it has no answer relevance)",
    "one bare call": "no rubric, nothing is made of the reply",
}
Runner = Callable[[LoopbackProcess], Figures]


def peer(name: str, samples: Path, count: int, in_flight: int, server: LoopbackProcess) -> Figures:
    """Another tool, in its own environment."""
    python = HOME / ".venv" / f"peers-{name}" / "bin" / "python"
    command = [python, HOME / PEERS[name][1], server.address, judge_cost.KEY, samples, in_flight]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        cwd=samples.parent,
        env=os.environ | SILENT,
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    took = json.loads(done.stdout.splitlines()[-1])
    print(name, took["scores"], flush=True)
    return judge_cost.figures(server, count, took["seconds"], took["cpu_seconds"], took["lost"])


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """All tools, in interleaved rounds."""
    if not chosen.data.exists():
        raise SystemExit(f"no labelled data at {chosen.data}; name a file of samples with --data")
    rows = judge_cost.load(chosen.data, chosen.samples)
    samples = [judge_cost.sample_of(number, row) for number, row in enumerate(rows)]
    results: dict[str, list[Figures]] = defaultdict(list)
    with LoopbackProcess(judge_cost.KEY) as server, tempfile.TemporaryDirectory(prefix="ragwatch-bench-") as folder:
        file = Path(folder) / "samples.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))

        def ours(kind: str, server: LoopbackProcess) -> Figures:
            return asyncio.run(judge_cost.ragwatch(server, samples, chosen.in_flight, kind))

        def bare(server: LoopbackProcess) -> Figures:
            return asyncio.run(judge_cost.floor(server, samples, chosen.in_flight))

        tools: dict[str, Runner] = {
            "ragwatch, OpenAI judge": partial(ours, "openai"),
            "ragwatch, Claude judge": partial(ours, "claude"),
            "one bare call": bare,
        }
        for name, (title, _) in PEERS.items():
            if (HOME / ".venv" / f"peers-{name}.stamp").exists():
                tools[title] = partial(peer, name, file, len(rows), chosen.in_flight)
            else:
                print(f"{title} is not installed: make .venv/peers-{name}.stamp")
        for _ in range(chosen.rounds):
            for title, run in tools.items():
                server.control(latency={"mean": chosen.latency}, embedding_latency={"mean": chosen.latency / 10})
                results[title].append(run(server))
                print(title, results[title][-1], flush=True)
    return {
        "samples": len(rows),
        "latency": chosen.latency,
        "in_flight": chosen.in_flight,
        "rows": {title: asdict(judge_cost.median(rounds)) for title, rounds in results.items()},
    }


def part(results: dict[str, Any]) -> Part:
    """The table, and bars of four costs as multiples of ours."""
    rows = results["rows"]
    base = rows["ragwatch, OpenAI judge"]
    lines = [
        (
            "| tool | calls | prompt tokens | completion tokens | CPU | samples a second | most calls in flight | "
            "scores lost |"
        ),
        "|---" * 8 + "|",
    ]
    for title, row in rows.items():
        calls = figure(row["calls"]) + (f" + {row['embeddings']:g} embeddings" if row["embeddings"] else "")
        lines.append(
            f"| {title} | {calls} | {_times(row, base, 'prompt')} | {_times(row, base, 'completion')} | "
            f"{_times(row, base, 'cpu_ms', ' ms')} | {_times(row, base, 'rate')} | "
            f"{row['peak']:.0f} | {row['lost']:.0f} |"
        )
    lines += ["", "| tool | metrics |", "|---|---|"]
    lines += [f"| {tool} | {metrics} |" for tool, metrics in METRICS.items()]
    groups = [
        (what, [Bar(title, row[key] / base[key]) for title, row in rows.items()])
        for key, what in (
            ("calls", "calls of a model"),
            ("prompt", "prompt tokens"),
            ("completion", "completion tokens"),
            ("cpu_ms", "CPU time of the client"),
            ("rate", "samples a second (more is better)"),
        )
    ]
    return Part(
        "\n".join(lines), Chart("Cost of a judged sample, as a multiple of ragwatch's OpenAI judge", groups, "×")
    )


def _times(row: dict[str, float], base: dict[str, float], key: str, unit: str = "") -> str:
    return f"{figure(row[key] / base[key])}× ({figure(row[key])}{unit})"
