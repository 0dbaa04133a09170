"""Measures a judge's own error on labelled families, and writes `ragwatch/judges/tables/error_rates.json`.

    python training/levels.py [--judge lexical] [--limit 900]

For each labelled set: of the answers that people call good, and of those that they call bad, how many the judge scores
with 1. Only these counts ship. Sets where all answers are called the same are left out.
"""

import argparse
import json
import random
import time
from collections import Counter
from pathlib import Path

from sets import DATA, SEED, load

from ragwatch.judges import KINDS
from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.model.sample import Context, Sample
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.statistics.scores import faithfulness
from ragwatch.telemetry import Telemetry

TABLE = Path(__file__).resolve().parents[1] / "ragwatch" / "judges" / "tables" / "error_rates.json"
FEWEST = 15
"""Good answers, and bad ones, that a family must have."""


def family_of(path: Path) -> str:
    """The name of a family: its set, and its part of the set where parts are other texts than each other."""
    place = path.relative_to(DATA / "judge").with_suffix("").parts[1:]
    return (
        "/".join(place)
        if place[0] == "summedits"
        else "/".join((place[0], *place[1:]) if place[0] == "begin" else place[:1])
    )


def counts_of(judge: LexicalJudge, path: Path, limit: int) -> Counter[tuple[bool, bool]]:
    """Answers of one file by whether people call them good, and whether the judge does."""
    rows = load(path.relative_to(DATA).with_suffix("").as_posix())
    random.Random(SEED).shuffle(rows)
    counts: Counter[tuple[bool, bool]] = Counter()
    for row in rows[:limit]:
        good = _good(row["label"])
        if good is None:
            continue
        contexts = tuple(Context(text["text"] if isinstance(text, dict) else text) for text in row["contexts"])
        score = faithfulness(judge.evidence(Sample(row["id"], row["question"] or None, contexts, row["answer"])))
        if score is not None:
            counts[good, score >= 1.0] += 1
    return counts


def _good(label: dict[str, object]) -> bool | None:
    """What people say of an answer as a whole; None if they do not."""
    if label.get("faithful") is not None:
        return bool(label["faithful"])
    claims = label.get("claims")
    said = (
        [claim["supported"] for claim in claims if claim["supported"] is not None] if isinstance(claims, list) else []
    )
    return all(said) if said else None


def main() -> None:
    """Measure one judge, and write what was measured beside the other judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default="lexical")
    parser.add_argument("--limit", type=int, default=900, help="answers of each file")
    arguments = parser.parse_args()
    kind = KINDS[arguments.judge]
    judge = kind.build(
        kind.Options(), name=arguments.judge, context=JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    )
    assert isinstance(judge, LexicalJudge)  # noqa: S101 - the embedded judges alone
    families: dict[str, Counter[tuple[bool, bool]]] = {}
    for part in ("dev", "train", "eval_only"):
        for path in sorted((DATA / "judge" / part).rglob("*.jsonl")):
            counts = counts_of(judge, path, arguments.limit)
            print(family_of(path), path.name, dict(counts), flush=True)
            families.setdefault(family_of(path), Counter()).update(counts)
    measured = {
        name: [counts[True, True], good, counts[False, True], bad]
        for name, counts in sorted(families.items())
        if (good := counts[True, True] + counts[True, False]) >= FEWEST
        and (bad := counts[False, True] + counts[False, False]) >= FEWEST
    }
    table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.is_file() else {}
    table[arguments.judge] = {"version": judge.version, "families": {"faithfulness": measured}}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
