"""Writes ragwatch/judges/tables/{idf,lexical_weights}.json from the labelled sets in ../shared/data. Deterministic.

python training/lexical.py            # fits and writes
python training/lexical.py --figures  # prints the figures of training/README.md for the shipped tables
"""

import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fit import Vector, auroc, logistic  # noqa: E402
from sets import SEED, Row, load, training_rows  # noqa: E402

from ragwatch.judges.claims.claims import claims_of  # noqa: E402
from ragwatch.judges.claims.words import fold, term, terms  # noqa: E402
from ragwatch.judges.lexical import reader, relevance  # noqa: E402
from ragwatch.judges.lexical.features import NAMES, SIGNS, claim_words, features, match  # noqa: E402
from ragwatch.judges.lexical.passages import passage  # noqa: E402
from ragwatch.judges.lexical.tables import FittedTables, LogisticModel  # noqa: E402
from ragwatch.model.sample import Context, Sample  # noqa: E402
from ragwatch.statistics.text.phrases import without_leads  # noqa: E402

TABLES = HERE.parent / "ragwatch" / "judges" / "tables"
SUPPORT_FAMILY = "attributionbench"  # alone it travels best to real answers, and its licence is the plainest
SUPPORT_C = 0.01  # the strongest penalty that costs less than .005 of the mean over the sets it was not fitted on
RELEVANCE_C = 0.1
LIVE_UNSUPPORTED = 0.4  # between the training sets (over half) and live traffic (a tenth)
NAME_SHARE = 0.9
INSIDE = re.compile(r"(?<=[a-z,] )[A-Za-z]{2,}\b")
LISTED = 5  # a word of the table stands in at least so many passages
RELEVANCE_SETS = ("hotpotqa/sample100", "musique/sample100", "clapnq/dev")
TOP = 5  # every relevance question is fitted twice: with all its passages, and with five as a service retrieves


def idf_levels(rows: list[Row]) -> dict[str, float]:
    """Rarity of every listed word: log((N+1)/(df+1)) / log(N+1), in hundredths."""
    passages = {text for row in rows for text in row.contexts}
    counts = Counter(word for text in passages for word in set(terms(text)))
    total = math.log(len(passages) + 1)
    rarity = {
        word: max(0.01, round(1.0 - math.log(count + 1) / total, 2))
        for word, count in counts.items()
        if count >= LISTED and word.isascii() and len(word) <= 16 and not word.isdigit()
    }
    return dict(sorted(rarity.items()))


def proper_names(rows: list[Row], rarity: dict[str, float]) -> frozenset[str]:
    """Listed words that inside sentences of the passages are nearly always written with a capital."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in {text for row in rows for text in row.contexts}:
        for word in INSIDE.findall(text):
            (capital if word[0].isupper() else small)[term(fold(word))] += 1
    return frozenset(
        word for word in rarity if capital[word] >= max(LISTED, NAME_SHARE * (capital[word] + small[word]))
    )


def claim_features(row: Row, rarity: dict[str, float]) -> tuple[float, ...]:
    """The nine features of a row's whole text over all its passages."""
    words = claim_words(without_leads(row.answer), rarity)
    found = [match(words, passage(text)) for text in row.contexts]
    return features(words, found, frozenset(terms(row.question)))


def fit_support(x: Vector, rows: list[Row], keep: list[int], strength: float = SUPPORT_C) -> tuple[float, Vector]:
    """The claim model on some rows, its bias moved from the share of unsupported rows there to that of live traffic."""
    supported = np.array([not rows[index].unsupported for index in keep])
    weight = np.array([rows[index].weight for index in keep])
    bias, weights = logistic(x[keep], supported, weight, SIGNS, strength)
    share = float(weight[supported].sum() / weight.sum())
    return bias - math.log(share / (1 - share)) + math.log((1 - LIVE_UNSUPPORTED) / LIVE_UNSUPPORTED), weights


def sample_of(row: dict[str, Any]) -> Sample:
    """A row of a labelled set as a sample."""
    contexts = tuple(Context(text) for text in row["contexts"])
    return Sample(id=row["id"], question=row["question"] or None, contexts=contexts, answer=row["answer"] or "")


def top_five(row: dict[str, Any]) -> dict[str, Any]:
    """The same question with at most two relevant passages among five, in seeded order."""
    rng = random.Random(f"{SEED}:{row['id']}")
    labels = row["label"]["context_relevant"]
    order = rng.sample(range(len(labels)), len(labels))
    good = [index for index in order if labels[index]][:2]
    pick = (good + [index for index in order if not labels[index]])[:TOP]
    rng.shuffle(pick)
    label = {**row["label"], "context_relevant": [labels[index] for index in pick]}
    return {**row, "contexts": [row["contexts"][index] for index in pick], "label": label}


def relevance_rows(name: str, *, few: bool) -> list[dict[str, Any]]:
    """Answered questions of a relevance set that have a relevant passage."""
    rows = [row for row in load(f"relevance/{name}") if row["answer"] and any(row["label"]["context_relevant"])]
    return [top_five(row) for row in rows] if few else rows


def relevance_features(rows: list[dict[str, Any]], tables: FittedTables) -> tuple[Vector, list[bool]]:
    """Features of every (question, passage) pair, and whether the passage is relevant."""
    found: list[tuple[float, ...]] = []
    labels: list[bool] = []
    for row in rows:
        sample = sample_of(row)
        found += reader.relevance_of(sample, claims_of(sample.answer, sample.question), tables)
        labels += [bool(label) for label in row["label"]["context_relevant"]]
    return np.array(found), labels


def fit_relevance(parts: list[tuple[Vector, list[bool]]]) -> tuple[float, Vector]:
    """The relevance model; every part counts alike."""
    x = np.vstack([part for part, _ in parts])
    y = np.concatenate([np.array(labels, dtype=bool) for _, labels in parts])
    weight = np.concatenate([np.full(len(labels), 1000.0 / len(labels)) for _, labels in parts])
    return logistic(x, y, weight, [1] * x.shape[1], RELEVANCE_C)


def named(names: tuple[str, ...], bias: float, weights: Vector) -> dict[str, Any]:
    """One model as it stands in the JSON file."""
    rounded = {name: round(float(weight), 4) + 0.0 for name, weight in zip(names, weights, strict=True)}
    return {"bias": round(bias, 4), "weights": rounded}


def linear(part: dict[str, Any]) -> LogisticModel:
    """The model as the judge uses it, rounded as it is written."""
    return LogisticModel(part["bias"], tuple(part["weights"].values()))


def main() -> None:
    """Fit everything and write the two files."""
    rows = training_rows()
    rarity = idf_levels(rows)
    x = np.array([claim_features(row, rarity) for row in rows])
    keep = [index for index, row in enumerate(rows) if row.family == SUPPORT_FAMILY]
    support = named(NAMES, *fit_support(x, rows, keep))
    compare(x, rows)
    tables = FittedTables(linear(support), LogisticModel(0.0, ()), rarity, "")
    parts = {(name, few): relevance_features(relevance_rows(name, few=few), tables) for name in RELEVANCE_SETS for few in (False, True)}  # noqa: E501  # fmt: skip
    leave_one_relevance_out(parts)
    useful = named(relevance.NAMES, *fit_relevance(list(parts.values())))
    TABLES.mkdir(exist_ok=True)
    weights = {"support": support, "relevance": useful}
    (TABLES / "lexical_weights.json").write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
    levels: dict[str, list[str]] = defaultdict(list)
    names = proper_names(rows, rarity)
    for word, value in rarity.items():
        levels[str(round(value * 100))].append(word.capitalize() if word in names else word)
    grouped = {level: " ".join(levels[level]) for level in sorted(levels, key=int)}
    (TABLES / "idf.json").write_text(
        json.dumps({"levels": grouped}, indent=0) + "\n",
        encoding="utf-8",
    )
    print(json.dumps(weights, indent=1), f"{len(rarity)} words")


def compare(x: Vector, rows: list[Row]) -> None:
    """Print how the claim model ranks each family: fitted on `SUPPORT_FAMILY` alone, and on all families but it."""
    for family in sorted({row.family for row in rows}):
        rest = [index for index, row in enumerate(rows) if row.family == family]
        for name, keep in (
            (SUPPORT_FAMILY, [index for index, row in enumerate(rows) if row.family == SUPPORT_FAMILY]),
            ("all others", [index for index, row in enumerate(rows) if row.family != family]),
        ):
            _, weights = fit_support(x, rows, keep)
            value = auroc([rows[index].unsupported for index in rest], (-(x[rest] @ weights)).tolist())
            print(f"support on {family}, fitted on {name}: {value:.3f}")


def leave_one_relevance_out(parts: dict[tuple[str, bool], tuple[Vector, list[bool]]]) -> None:
    """Print how the relevance model ranks each set when it is fitted on the others."""
    for (name, few), (x, labels) in parts.items():
        _, weights = fit_relevance([part for (other, _), part in parts.items() if other != name])
        print(f"relevance, {name}{' (five)' if few else ''} left out: {auroc(labels, (x @ weights).tolist()):.3f}")


if __name__ == "__main__":
    if "--figures" in sys.argv:
        from figures import report

        report()
    else:
        main()
