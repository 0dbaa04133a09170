"""Follow-up questions of mtRAG, read as the last turn alone and with the turns before: does any figure get worse?

    python bench/conversations.py [--judge lexical|local] [--limit N]

Good: the answers of people over the passages that they were given. Beside them, made from the same tasks: the answer of
another conversation on the same subject, the answer to the turn before, and the passages of that conversation. Reads
../shared/data/relevance/mtrag_answerability.jsonl.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from accuracy.readings import LEXICAL, LOCAL, Bench
from accuracy.rows import DATA

from ragwatch.formats.messages import turns
from ragwatch.judges.claims.words import terms
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.scores import score_all

FILE = DATA / "relevance" / "mtrag_answerability.jsonl"
SHORT_TERMS = 3  # content words of a question that is told apart


def main() -> None:
    """Read each task twice in each variant, and print means and AUROC."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--judge", choices=(LEXICAL, LOCAL), default=LEXICAL)
    parser.add_argument("--limit", type=int, help="tasks at most")
    options = parser.parse_args()
    bench = Bench(None)
    judge = bench.local if options.judge == LOCAL else bench.lexical
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    tasks = [row for row in rows if row["label"]["answerability"] == "ANSWERABLE" and row["contexts"]]
    tasks = [row for row in tasks if row["meta"]["history"]][: options.limit]
    short = [row for row in tasks if len(set(terms(row["question"]))) <= SHORT_TERMS]
    for name, some in (("all follow-ups", tasks), (f"questions of up to {SHORT_TERMS} content words", short)):
        print(f"{name}: {len(some)} tasks, {judge.version}")
        for with_history in (False, True):
            print(
                "  with history  " if with_history else "  last turn only", _figures(some, judge.evidence, with_history)
            )


def _figures(rows: Sequence[dict[str, Any]], read: Callable[[Sample], Evidence], with_history: bool) -> str:  # noqa: FBT001
    rng = random.Random(5)
    others = [
        rng.choice([other for other in rows if other is not row and _topic(other) == _topic(row)]) for row in rows
    ]
    samples = [_sample(row, with_history=with_history) for row in rows]
    good = [read(sample) for sample in samples]
    pairs = list(zip(samples, rows, others, strict=True))
    elsewhere = [read(sample._replace(answer=other["answer"])) for sample, _, other in pairs]
    before = [read(sample._replace(answer=_answer_before(row))) for sample, row, _ in pairs]
    foreign = [read(sample._replace(contexts=tuple(map(Context, other["contexts"])))) for sample, _, other in pairs]
    figures = {str(quantity): _mean(score_all(evidence)[quantity] for evidence in good) for quantity in Quantity}
    relevancy = Quantity.ANSWER_RELEVANCY
    figures["relevancy: own / another answer"] = _auroc(_scores(good, relevancy), _scores(elsewhere, relevancy))
    figures["relevancy: own / answer before"] = _auroc(_scores(good, relevancy), _scores(before, relevancy))
    figures["support: own / foreign contexts"] = _auroc([*map(_least, good)], [*map(_least, foreign)])
    figures["precision of foreign contexts"] = _mean(_scores(foreign, Quantity.CONTEXT_PRECISION))
    return ", ".join(f"{name} {figure:.4f}" for name, figure in figures.items() if figure is not None)


def _sample(row: dict[str, Any], *, with_history: bool) -> Sample:
    history = turns(row["meta"]["history"]) if with_history else ()
    return Sample(row["id"], row["question"], tuple(map(Context, row["contexts"])), row["answer"], history=history)


def _topic(row: dict[str, Any]) -> str:
    return str(row["meta"]["collection"])


def _answer_before(row: dict[str, Any]) -> str:
    return str([turn["text"] for turn in row["meta"]["history"] if turn["speaker"] != "user"][-1])


def _scores(readings: Iterable[Evidence], quantity: Quantity) -> list[float]:
    return [score_all(evidence)[quantity] or 0.0 for evidence in readings]


def _least(evidence: Evidence) -> float:
    return min((claim.support or 0.0 for claim in evidence.counted), default=0.0)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _auroc(high: Sequence[float], low: Sequence[float]) -> float:
    """Probability that a value of the first is above one of the second; ties count half."""
    wins = sum((one > other) + 0.5 * (one == other) for one in high for other in low)
    return wins / (len(high) * len(low))


if __name__ == "__main__":
    main()
