"""Which stage the judge names on real answers that were broken on purpose: mtRAG tasks that the documents answer.

python training/stages.py    # prints the shares of training/README.md
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from sets import load  # noqa: E402

from ragwatch.judges.lexical.judge import Options, build  # noqa: E402
from ragwatch.model.sample import Context, Sample  # noqa: E402
from ragwatch.pipeline.sampling_control import InMemoryBudget  # noqa: E402
from ragwatch.ports import JudgeContext  # noqa: E402
from ragwatch.statistics.stage import stage  # noqa: E402
from ragwatch.telemetry import Telemetry  # noqa: E402

ABSTENTION = "I could not find that in the documents."


def tasks() -> list[dict[str, Any]]:
    """Answerable tasks with an answer and documents, in a fixed order."""
    rows = [row for row in load("relevance/mtrag_answerability") if row["answer"] and row["contexts"]]
    return [row for row in rows if row["label"]["answerability"] == "ANSWERABLE" and row["question"]]


def broken(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, Sample]]:
    """(case, the stage it ought to be, sample); the foreign task is the one halfway round the list."""
    for index, row in enumerate(rows):
        foreign = rows[(index + len(rows) // 2) % len(rows)]
        for case, wanted, answer, contexts in (
            ("left as people answered", "none", row["answer"], row["contexts"]),
            ("abstains, right documents", "generation", ABSTENTION, row["contexts"]),
            ("abstains, wrong documents", "retrieval", ABSTENTION, foreign["contexts"]),
            ("invents, right documents", "generation", foreign["answer"], row["contexts"]),
            ("invents, wrong documents", "retrieval", row["answer"], foreign["contexts"]),
            (
                "copies an answer to another question from its documents",
                "retrieval",
                foreign["answer"],
                foreign["contexts"],
            ),
        ):
            texts = tuple(Context(text) for text in contexts)
            yield case, wanted, Sample(id=row["id"], question=row["question"], contexts=texts, answer=answer)


def main() -> None:
    """Print the shares."""
    judge = build(Options(), name="lexical", context=JudgeContext(Telemetry(), InMemoryBudget(), time.time))
    counts: dict[tuple[str, str], Counter[str]] = {}
    rows = tasks()
    for case, wanted, sample in broken(rows):
        counts.setdefault((case, wanted), Counter())[str(stage(judge.evidence(sample)))] += 1
    print(f"{judge.version}, {len(rows)} tasks")
    for (case, wanted), found in counts.items():
        shares = ", ".join(f"{name} {count / found.total():.0%}" for name, count in found.most_common())
        print(f"{case:58} ought to be {wanted:11} {shares}")


if __name__ == "__main__":
    main()
