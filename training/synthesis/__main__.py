"""Prints a sample of the pairs, by recipe: `python -m synthesis --sample 30` in training/."""

import argparse
import random
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import terms
from synthesis import Pair, pairs


def main() -> None:
    """Read the options and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=5, help="pairs of each recipe")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20_000, help="pairs made, from which the sample is drawn")
    parser.add_argument("--recipe", default="", help="only recipes that start so")
    parser.add_argument(
        "--context", type=int, default=300, help="characters shown of each of the two nearest sentences"
    )
    options = parser.parse_args()
    by_recipe: dict[str, list[Pair]] = defaultdict(list)
    for item in pairs(options.seed, options.count):
        by_recipe[item.recipe].append(item)
    rng = random.Random(options.seed)
    for recipe in sorted(by_recipe):
        if recipe.startswith(options.recipe):
            found = by_recipe[recipe]
            print(f"== {recipe}: {len(found)}")
            for item in rng.sample(found, min(options.sample, len(found))):
                show(item, options.context)


def show(item: Pair, context: int) -> None:
    """One pair; unsupported spans in double brackets."""
    claim = item.claim
    for start, end in reversed(item.spans):
        claim = f"{claim[:start]}[[{claim[start:end]}]]{claim[end:]}"
    print(f"{item.verdict[:4].upper()} {claim}")
    wanted = set(terms(item.claim))
    parts = [text[span.start : span.end] for text in item.passages for span in spans(text)]
    parts.sort(key=lambda part: -len(wanted & set(terms(part))))
    print("     | " + " || ".join(part.replace("\n", " ")[:context] for part in parts[:2]))


if __name__ == "__main__":
    main()
