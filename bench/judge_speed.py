"""The local judge on one core: answers a second, latency, time to load, and memory of the whole daemon that runs it.

    python bench/judge_speed.py [--answers N] [--weights FOLDER]

An answer has five sentences over five contexts of 150 words, cut from Python's own documentation: two sentences as they
stand, two shortened, one of a document that was not retrieved. The lexical judge's rate stands beside as the floor. A
table has both by the length of the answer and the number of passages. Seconds are of CPU time, which a busy machine
stretches less than wall time. Without the model nothing runs.
"""

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from ragwatch.demo.corpus import read_corpus
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.judges.local import judge as local
from ragwatch.model.sample import Context, Sample
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.telemetry import Telemetry

LEAST_RATE, MOST_P95_MS, MOST_RSS_MB, MOST_LOAD_SECONDS = 8.0, 300.0, 230.0, 1.0
CONTEXTS, WORDS, SENTENCES = 5, 150, 5
LENGTHS, PASSAGES = (130, 700, 2000), (3, 10, 20)
LOAD = (
    "import sys, time; from pathlib import Path; begin = time.perf_counter()\n"
    "from ragwatch.judges.local.judge import Options, build\n"
    "from ragwatch.pipeline.sampling_control import InMemoryBudget; from ragwatch.ports import JudgeContext\n"
    "from ragwatch.telemetry import Telemetry\n"
    "context, half = JudgeContext(Telemetry(), InMemoryBudget(), time.time), time.perf_counter()\n"
    "weights = Path(sys.argv[1]) if len(sys.argv) > 1 else None\n"
    "judge = build(Options(weights=weights), name='x', context=context)\n"
    "assert judge.fallback is None, judge.fallback\n"
    "print(time.perf_counter() - half)"
)


def samples(count: int, chars: int | None = None, passages: int = CONTEXTS) -> list[Sample]:
    """Answers over so many contexts, alike each time; of five sentences, or cut at so many characters."""
    rng = random.Random(11)
    texts = [each.body for each in read_corpus() if len(each.body.split()) >= 40]
    found = []
    for number in range(count):
        contexts = [_cut(rng.sample(texts, 12)) for _ in range(passages)]
        sources = rng.sample(contexts, SENTENCES - 1) if chars is None else rng.choices(contexts, k=1 + chars // 60)
        said = [rng.choice(_sentences(text)) for text in sources]
        said[2:] = [" ".join(each.rstrip(".").split()[: rng.randint(6, 14)]) + "." for each in said[2:]]
        said.append(rng.choice(_sentences(_cut(rng.sample(texts, 12)))))
        answer = "\n".join(f"- {each}" for each in said)[:chars]
        question = f"What is to be known of {said[0].split()[0]}?"
        found.append(Sample(f"r{number}", question, tuple(map(Context, contexts)), answer))
    return found


def _cut(texts: Sequence[str]) -> str:
    return " ".join(" ".join(texts).split()[:WORDS])


def _sentences(text: str) -> list[str]:
    found = [text[span.start : span.end] for span in spans(text)]
    return [each for each in found if 6 <= len(each.split()) <= 40] or found


def rate(judge: LexicalJudge, found: Sequence[Sample]) -> tuple[float, list[float], float]:
    """Answers a second of CPU; milliseconds of CPU of each; share of wall time that was CPU."""
    judge.evidence(found[0])
    took, begin = [], time.perf_counter()
    for sample in found:
        start = time.process_time()
        judge.evidence(sample)
        took.append((time.process_time() - start) * 1000.0)
    wall = time.perf_counter() - begin
    return len(found) / (sum(took) / 1000.0), took, sum(took) / 1000.0 / wall


def by_length(words: LexicalJudge, reader: LexicalJudge) -> None:
    """Prints CPU milliseconds of both judges by the length of the answer and the number of passages."""
    print("characters  passages  lexical ms  local ms  (median of 12 answers)")
    for chars, passages in itertools.product(LENGTHS, PASSAGES):
        found = samples(12, chars, passages)
        by_words, by_reader = (statistics.median(rate(judge, found)[1]) for judge in (words, reader))
        print(f"{chars:10}  {passages:8}  {by_words:10.1f}  {by_reader:8.1f}")


def load_seconds(weights: Path | None) -> float:
    """Seconds to make the judge in a fresh process, its libraries included; the best of three."""
    command = [sys.executable, "-c", LOAD, *([str(weights)] if weights else [])]
    return min(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(3))


def daemon_rss(weights: Path | None, found: Sequence[Sample]) -> tuple[float, float]:
    """Resident memory of a daemon after it has read these answers, now and at its highest, in MB."""
    with tempfile.TemporaryDirectory(prefix="ragwatch-bench-") as name:
        folder = Path(name)
        (folder / "rag.jsonl").write_text("".join(json.dumps(sample.to_record()) + "\n" for sample in found))
        more = f", weights: '{weights.resolve()}'" if weights else ""
        config = folder / "ragwatch.yaml"
        config.write_text(
            f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nsampling: {{probability: 1.0}}\n"
            f"judges: [{{name: reader, kind: local{more}}}]\n"
            f"sources: [{{kind: tail, name: app, path: '{folder}/rag.jsonl', start: beginning}}]\n"
        )
        command = [sys.executable, "-m", "ragwatch", "run", "--config", str(config)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            address = next(line.split()[2] for line in process.stderr or () if line.startswith("ragwatch serves "))
            _await_judged(address, len(found))
            return _memory(process.pid, "VmRSS"), _memory(process.pid, "VmHWM")
        finally:
            process.terminate()
            process.communicate()


def _await_judged(address: str, count: int) -> None:
    deadline = time.monotonic() + 300.0
    while time.monotonic() < deadline:
        with urllib.request.urlopen(address, timeout=30) as reply:  # noqa: S310 - our own address
            lines = reply.read().decode().splitlines()
        judged = sum(
            float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("ragwatch_samples_judged_total{")
        )
        if judged >= count:
            return
        time.sleep(0.25)
    raise SystemExit("the daemon did not judge in time")


def _memory(pid: int, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def main() -> None:
    """Measure and print; fail where a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--answers", type=int, default=150)
    parser.add_argument("--weights", type=Path, help="folder of another model")
    options = parser.parse_args()
    context = JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    judge = local.build(local.Options(weights=options.weights), name="reader", context=context)
    if judge.fallback is not None:
        print(f"skipped: {judge.fallback}")
        return
    found = samples(options.answers)
    words = lexical.build(lexical.Options(), name="words", context=context)
    floor, _, _ = rate(words, found)
    speed, took, share = rate(judge, found)
    p95 = statistics.quantiles(took, n=20)[-1]
    load = load_seconds(options.weights)
    now, peak = daemon_rss(options.weights, found)
    print(f"{judge.version}; {share:.0%} of the wall time was ours")
    print(f"answers a second  {speed:7.1f}     of a core (at least {LEAST_RATE:g}; lexical judge {floor:.0f})")
    print(f"latency           {statistics.median(took):7.1f} ms  median, p95 {p95:.1f} ms (at most {MOST_P95_MS:g} ms)")
    print(f"load              {load:7.2f} s   (at most {MOST_LOAD_SECONDS:g} s)")
    print(f"daemon            {now:7.1f} MB  resident, {peak:.1f} MB at most (bar {MOST_RSS_MB:g} MB)")
    by_length(words, judge)
    if speed < LEAST_RATE or p95 > MOST_P95_MS or peak > MOST_RSS_MB or load > MOST_LOAD_SECONDS:
        raise SystemExit("slower or heavier than allowed")


if __name__ == "__main__":
    main()
