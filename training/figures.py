"""Prints the figures of training/README.md for the shipped tables: areas under the curve with bootstrap intervals."""

import time
from time import perf_counter

from fit import auroc, interval
from sets import load

from ragwatch.judges.lexical.judge import Options, build
from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Context, Sample
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.telemetry import Telemetry

FAITHFULNESS = (
    "judge/dev/attributionbench/test_id500",
    "judge/dev/wice/claim_test",
    "judge/dev/fever_symmetric/test",
    "judge/train/q2_wow/cross_annotation",
    "judge/train/begin/wow_dev",
    "judge/train/halueval_qa/sample",
    "judge/train/expertqa/all",
    "judge/train/summedits/news",
)
RELEVANCE = ("relevance/hotpotqa/sample100", "relevance/musique/sample100", "relevance/clapnq/dev")


def worst(evidence: Evidence) -> float:
    """How unsupported the worst claim is."""
    return max((1.0 - (claim.support or 0.0) for claim in evidence.claims), default=0.0)


def report() -> None:
    """Print one line a set."""
    judge = build(Options(), name="embedded", context=JudgeContext(Telemetry(), InMemoryBudget(), time.time))
    print(judge.version)
    for name in FAITHFULNESS:
        rows = [row for row in load(name) if row["label"]["faithful"] is not None]
        samples = [_sample(row) for row in rows]
        start = perf_counter()
        scores = [worst(judge.evidence(sample)) for sample in samples]
        seconds = perf_counter() - start
        _line(name, [not row["label"]["faithful"] for row in rows], scores, f"{len(rows) / seconds:.0f} answers/s")
    facts: list[tuple[bool, float]] = []
    for writer in ("chatgpt", "instructgpt"):
        for row in load(f"judge/eval_only/factscore/{writer}"):
            for claim in row["label"]["claims"]:
                if claim["supported"] is not None:
                    evidence = judge.evidence(_sample({**row, "answer": claim["text"]}))
                    facts.append((not claim["supported"], worst(evidence)))
    _line("judge/eval_only/factscore (facts)", [label for label, _ in facts], [score for _, score in facts], "")
    for name in RELEVANCE:
        labels: list[bool] = []
        scores = []
        for row in load(name):
            if row["answer"] and any(row["label"]["context_relevant"]):
                labels += [bool(label) for label in row["label"]["context_relevant"]]
                scores += [column.relevance or 0.0 for column in judge.evidence(_sample(row)).contexts]
        _line(name, labels, scores, "")


def _sample(row: dict[str, object]) -> Sample:
    texts, question = row["contexts"], row["question"]
    contexts = tuple(Context(str(text)) for text in texts) if isinstance(texts, list) else ()
    return Sample(str(row["id"]), str(question) if question else None, contexts, str(row["answer"] or ""))


def _line(name: str, labels: list[bool], scores: list[float], note: str) -> None:
    low, high = interval(labels, scores, rounds=500)
    print(f"{name:42s} n={len(labels):5d} AUROC {auroc(labels, scores):.3f} [{low:.3f}, {high:.3f}] {note}")
