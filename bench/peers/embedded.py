"""Embedded judges: what an answer costs beside NLI cross-encoders, and how far they agree with people, set by set.

Cost is CPU time on one thread for the answers of `bench/judge_speed.py`: five sentences over five contexts of 150
words. The cross-encoders read every sentence with every context, which is what a groundedness metric with an NLI
model does; our local judge reads every claim with the most similar sentences. Agreement is not measured again: our
figures are those of the model card, and those of other tools are as they were published.
"""

import argparse
import json
import re
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import judge_speed
from peers.page import Bar, Chart, Part, figure
from ragwatch_reader import MODEL_FOLDER
from tokenizers import Tokenizer

from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.judges.local import judge as local
from ragwatch.model.sample import Sample
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.telemetry import Telemetry

HOME = Path(__file__).resolve().parents[2]
CARD = HOME / "training" / "LOCAL.md"
SHAPES = {
    "MiniLM-L6 (6 × 384)": (6, 384, 12),
    "deberta-v3-xsmall (12 × 384)": (12, 384, 6),
    "deberta-v3-small (6 × 768)": (6, 768, 12),
    "deberta-v3-base (12 × 768)": (12, 768, 12),
}
VOCABULARY = 30_522
MOST_TOKENS = 512
SETS = re.compile(r"(?m)^\| ([^|]+) \| (\.\d{3}) \| \.\d{3} \| (\.\d{3}) \| [^|]+ \| [^|]+ \|$")
"""Rows of the model card's table of `make bench-judge`: set, AUROC of words, before, now."""


def pair_lengths(samples: Sequence[Sample]) -> list[list[int]]:
    """Tokens of every sentence with every context, by answer."""
    tokenizer = Tokenizer.from_file(str(MODEL_FOLDER / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokens(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    answers = []
    for sample in samples:
        contexts = [tokens(context.text) for context in sample.contexts]
        said = [tokens(sample.answer[span.start : span.end]) for span in spans(sample.answer)]
        answers.append([min(MOST_TOKENS, one + other + 3) for one in said for other in contexts])
    return answers


def peer_ms(python: Path, shape: tuple[int, int, int], lengths: list[list[int]], *, int8: bool) -> list[float]:
    """CPU milliseconds of each answer, by a cross-encoder with random weights."""
    layers, width, heads = shape
    asked = {"layers": layers, "width": width, "heads": heads, "vocabulary": VOCABULARY, "int8": int8}
    script = HOME / "bench" / "peers" / "nli_cost.py"
    command = [str(python), str(script), json.dumps(asked | {"lengths": lengths})]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the cross-encoder failed:\n{done.stderr[-2000:]}")
    milliseconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return milliseconds


def ours_ms(judge: LexicalJudge, samples: Sequence[Sample]) -> list[float]:
    """CPU milliseconds of each answer."""
    _, milliseconds, _ = judge_speed.rate(judge, samples)
    return milliseconds


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Cost of ours and of the cross-encoders."""
    samples = judge_speed.samples(chosen.answers)
    context = JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    reader = local.build(local.Options(), name="reader", context=context)
    words = lexical.build(lexical.Options(), name="words", context=context)
    rows = [{"judge": "ragwatch lexical", "ms": statistics.median(ours_ms(words, samples)), "pairs": None}]
    if reader.fallback is None:
        rows.append({"judge": "ragwatch local, int8", "ms": statistics.median(ours_ms(reader, samples)), "pairs": None})
    python = HOME / ".venv" / "peers-nli" / "bin" / "python"
    if not python.exists():
        print("no environment for the cross-encoders: make .venv/peers-nli.stamp")
        return {"rows": rows}
    lengths = pair_lengths(samples[: chosen.nli_answers])
    pairs = statistics.fmean(map(len, lengths))
    tokens = statistics.fmean(length for answer in lengths for length in answer)
    for name, shape in SHAPES.items():
        for int8 in (False, True):
            cost = statistics.median(peer_ms(python, shape, lengths, int8=int8))
            kind = "int8" if int8 else "fp32"
            rows.append({"judge": f"{name}, {kind}", "ms": cost, "pairs": pairs, "tokens": tokens})
            print(rows[-1], flush=True)
    return {"rows": rows}


def agreement() -> str:
    """The table of the model card, as far as it is about AUROC."""
    rows = SETS.findall(CARD.read_text(encoding="utf-8"))
    if not rows:
        raise SystemExit(f"{CARD.name}: the table of `make bench-judge` has another shape; change SETS to fit it")
    lines = ["| set | ragwatch lexical, AUROC | ragwatch local, AUROC |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {words} | {now} |" for name, words, now in rows)])


def part(results: dict[str, Any]) -> Part:
    """The tables, and bars of the costs as multiples of the lexical judge's."""
    rows = results["rows"]
    base = rows[0]["ms"]
    beside = next((row["ms"] for row in rows if row["judge"].startswith("ragwatch local")), base)
    lines = ["| judge | × lexical | × local | CPU ms an answer | pairs × tokens an answer |", "|---|---|---|---|---|"]
    for row in rows:
        read = f"{row['pairs']:.0f} × {row['tokens']:.0f}" if row["pairs"] else ""
        lines.append(
            f"| {row['judge']} | {figure(row['ms'] / base)}× | {figure(row['ms'] / beside)}× | "
            f"{figure(row['ms'])} | {read} |"
        )
    bars = [Bar(row["judge"], row["ms"] / base) for row in rows]
    title = "CPU time of an answer, as a multiple of the lexical judge's"
    return Part(
        "\n".join(lines) + "\n\n" + agreement(), Chart(title, [("five sentences over five contexts", bars)], "×")
    )
