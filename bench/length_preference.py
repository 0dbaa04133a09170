"""Whether the embedded judges prefer long answers, on labelled sets: rank correlation at equal label, and padding.

    python bench/length_preference.py [FILES] [--limit N]

A line for each set and judge: the rank correlation of faithfulness with answer length at equal human label (the figure
of `ragwatch calibrate`), and the share of the answers that score higher when padded to three times their length.
"""

import argparse
from pathlib import Path

from accuracy.readings import LEXICAL, LOCAL, Bench
from accuracy.rows import DATA, read

from ragwatch.model.quantities import Quantity
from ragwatch.statistics.labels.agreement import LengthScore, TooFewLabels, length_preference, share
from ragwatch.statistics.scores import score_all
from ragwatch.statistics.self_tests import padded, scores_higher

HUMAN = (
    "judge/dev/attributionbench/test_id500",
    "judge/dev/wice/claim_test",
    "judge/dev/fever_symmetric/test",
    "judge/train/expertqa/all",
    "judge/train/begin/wow_dev",
    "judge/train/q2_wow/cross_annotation",
    "judge/train/factcheck_gpt/stance",
    "judge/train/summedits/news",
)
"""Sets with labels by people."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "files", nargs="*", type=Path, help="labelled JSONL files; none for the sets labelled by people"
    )
    parser.add_argument("--limit", type=int, help="rows of a set at most, drawn at random but alike each time")
    options = parser.parse_args()
    bench = Bench()
    judges = {LEXICAL: bench.lexical} if bench.local.fallback else {LEXICAL: bench.lexical, LOCAL: bench.local}
    print("| set | judge | answers | correlation at equal label | scored higher when padded |\n|---|---|---|---|---|")
    for path in options.files or [DATA / f"{name}.jsonl" for name in HUMAN]:
        of = read(path, options.limit)
        for name, judge in judges.items():
            rows, higher = [], []
            for row in of.rows:
                short = score_all(judge.evidence(row.sample))
                long = score_all(judge.evidence(padded(row.sample, row.name)))
                score = short[Quantity.FAITHFULNESS]
                if score is not None:
                    rows.append(LengthScore(score, float(not row.unfaithful), len(row.answer)))
                if (prefers := scores_higher(short, long)) is not None:
                    higher.append(prefers)
            found, preferred = length_preference(rows), share(sum(higher), len(higher))
            figure = "unknown" if isinstance(found, TooFewLabels) else _figure(found.correlation, found.matters)
            padding = "unknown" if preferred is None else f"{preferred.value:.3f} of {preferred.n}"
            print(f"| {of.name} | {name} | {len(rows)} | {figure} | {padding} |", flush=True)


def _figure(correlation: object, matters: bool) -> str:  # noqa: FBT001 - shown, not switched on
    value, low, high = (getattr(correlation, part) for part in ("value", "low", "high"))
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]{' (matters)' if matters else ''}"


if __name__ == "__main__":
    main()
