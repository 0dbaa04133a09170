"""Fits how words and model are weighed, on whole answers, and writes `local.json` beside a reader.

    python training/local_answers.py fit --work FOLDER [--weights FOLDER]   # prints the figures
    python training/local_answers.py ship --work FOLDER [--weights FOLDER]  # and writes the table

An answer is as good as its least claim. Where a set labels claims alone, answers are drawn from its rows: three to
eight of them, of which none or one is not supported. The weights rank rows and drawn answers best, in the mean over
the families; each family is left out in turn for the figures. No row here was taught to the reader, but people's
answers of CLAPNQ and mtRAG, whose own claims it saw as supported.
"""

import argparse
import hashlib
import json
import pickle
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from fit import Vector, auroc, logistic  # noqa: E402
from local_fuse import knots  # noqa: E402
from local_sayings import Saying, rows, sayings  # noqa: E402
from local_ship import FITTED_ON, SUPPORTED_FROM  # noqa: E402
from local_train import PIECES  # noqa: E402

from ragwatch.judges.local.artefact import (  # noqa: E402
    NAMES,
    interpolate,
    released_folder,
)

SHARES = {
    "attributionbench": 2.0,
    "expertqa": 1.0,
    "wice": 1.0,
    "clapnq": 0.5,
    "mtrag": 1.5,
    "nli/fm2": 0.4,
    "nli/mnli": 0.2,
    "nli/negation_nli": 0.2,
    "nli/snli_counterfactual": 0.4,
    "planted_mtrag": 0.8,
}
"""Say of each family in the weights: real answers first, some contradictions so that `s_low` and `c_high` have theirs.

FEVER's family (with FEVER-symmetric, FEVEROUS and VitaminC) has none, so that its figures are of a family left out."""
FEVER = ("nli/fever", "nli/feverous", "nli/vitaminc_sample")
"""Its pairs choose the threshold of contradictions only."""
BEFORE = {"lexical": 1.0, "s": 0.123371, "c": -0.284063, "t_max": -0.284136, "t_mean": -0.259319}
"""Weights of version 1, fitted on claims, to compare with."""
CALIBRATED = {"attributionbench": 2.0, "expertqa": 1.0, "wice": 1.0, "mtrag": 1.0, "nli/fm2": 0.3, "nli/mnli": 0.2}
"""Say of each family in the table of probabilities."""
WEIGHED = ("t_mean", "run", "s_low", "c_high")
SIGNS = {"lexical": 1, "t_mean": -1, "run": -1, "s_low": 1, "c_high": -1}
START = {"lexical": 1.0, "t_mean": -0.6, "run": -0.3, "s_low": 0.3, "c_high": -1.0}
PENALTY = 0.0005
"""Of the size of a weight: families differ by chance, and small weights travel better."""
STEPS, DRAWN, CLAIMS = 400, 500, (3, 8)
AGAINST = {
    "nli/fm2": 1.0,
    "nli/scifact": 0.5,
    "nli/mnli": 1.0,
    "nli/negation_nli": 0.5,
    "nli/infotabs": 0.5,
    "mtrag": 1.0,
}
AGAINST_SIGNS = {"s": -1, "c": 1, "t_mean": 1}
FALSE_CONTRADICTIONS = 0.0375
"""Of supported claims at most this share may be called contradicted where the threshold is chosen; the bar is .05."""
RANKED_ON = ("judge/dev/attributionbench", "judge/dev/wice")
"""Beginnings of the names of sets whose rows the weights were chosen on, besides those that a reader was taught."""
RATES = (0.05, 0.2, 0.5)
LOTS, SEED = 200, 1
PLACES = {name: place for place, name in enumerate(NAMES)}


class Family:
    """The rows of a family, and answers drawn from them.

    Args:
        some: Its rows.
        is_drawn: Whether answers are drawn; whole answers are ranked as they are.
    """

    def __init__(self, some: Sequence[Saying], *, is_drawn: bool) -> None:
        self.x = np.array([claim for one in some for claim in one.claims])
        self.costs = np.array([cost for one in some for cost in one.costs])
        self.rows = np.repeat(np.arange(len(some)), [len(one.claims) for one in some])
        self.bad = np.array([one.bad for one in some])
        self.drawn: list[list[int]] = []
        good, poor = np.flatnonzero(~self.bad).tolist(), np.flatnonzero(self.bad).tolist()
        rng = random.Random(5)
        for number in range(DRAWN if is_drawn and len(good) >= CLAIMS[1] and poor else 0):
            count, one = rng.randint(*CLAIMS), number % 2
            self.drawn.append(rng.sample(good, count - one) + ([rng.choice(poor)] if one else []))

    def least(self, weights: Vector) -> Vector:
        """Least logit among the claims of each row."""
        found = np.full(len(self.bad), np.inf)
        np.minimum.at(found, self.rows, self.x @ weights - self.costs)
        return found

    def ranks(self, weights: Vector) -> tuple[float, float]:
        """Area under the curve over rows, and over drawn answers (or rows, where none are drawn)."""
        least = self.least(weights)
        first = auroc(self.bad, -least)
        if not self.drawn:
            return first, first
        labels = [number % 2 == 1 for number in range(len(self.drawn))]
        return first, auroc(labels, [-min(least[row] for row in one) for one in self.drawn])


def families(said: Sequence[Saying]) -> dict[str, Family]:
    """Rows by family, where there are rows of both kinds."""
    names = dict.fromkeys(one.family for one in said)
    parts = {name: [one for one in said if one.family == name] for name in names}
    whole = ("clapnq", "mtrag", "expertqa_answers")
    return {
        name: Family(part, is_drawn=name not in whole)
        for name, part in parts.items()
        if len({one.bad for one in part}) == 2
    }


def climbed(some: Mapping[str, Family], left_out: Sequence[str] = ()) -> Vector:
    """The weights that small seeded steps find, each of its sign; the first stays what it is."""
    shares = {name: share for name, share in SHARES.items() if name not in left_out}

    def worth(weights: Vector) -> float:
        total = sum(share * sum(some[name].ranks(weights)) / 2 for name, share in shares.items())
        return total / sum(shares.values()) - PENALTY * float(np.abs(weights).sum())

    rng = np.random.default_rng(1)
    best = np.zeros(len(NAMES))
    for name, value in START.items():
        best[PLACES[name]] = value
    chosen, signs = [PLACES[name] for name in WEIGHED], np.array([SIGNS[name] for name in WEIGHED])
    most = worth(best)
    for step in range(STEPS):
        fresh = best.copy()
        move = rng.normal(size=len(chosen)) * (rng.random(len(chosen)) < 0.5) * 0.4 * (1 - step / STEPS)
        fresh[chosen] = signs * np.maximum(0.0, (fresh[chosen] + move) * signs)
        value = worth(fresh)
        if value > most:
            best, most = fresh, value
    return np.round(best, 4)


def table(some: Mapping[str, Family], weights: Vector) -> dict[str, Any]:
    """The support curve: weights, and the share of supported rows by their least logit, were it half of all."""
    parts = [(some[name], share) for name, share in CALIBRATED.items()]
    logits = np.concatenate([part.least(weights) for part, _ in parts])
    good = np.concatenate([~part.bad for part, _ in parts])
    halves = [np.where(part.bad, share / part.bad.sum(), share / (~part.bad).sum()) for part, share in parts]
    weight = np.concatenate(halves)
    return _curve(0.0, weights, knots(logits, good, weight / weight.mean()))


def _curve(bias: float, weights: Vector, points: list[list[float]]) -> dict[str, Any]:
    named = {name: round(float(value), 6) + 0.0 for name, value in zip(NAMES, weights, strict=True)}
    return {"bias": round(bias, 6), "weights": named, "knots": points}


def against(said: Sequence[Saying]) -> dict[str, Any]:
    """The contradiction curve."""
    kept = [one for one in said if one.family in AGAINST and not (one.bad and one.refuted is None)]
    counts = {name: sum(len(one.claims) for one in kept if one.family == name) for name in AGAINST}
    x = np.array([claim for one in kept for claim in one.claims])
    positive = np.array([bool(one.refuted) for one in kept for _ in one.claims])
    weight = np.array([AGAINST[one.family] / counts[one.family] for one in kept for _ in one.claims])
    weight /= weight.mean()
    chosen = [PLACES[name] for name in AGAINST_SIGNS]
    bias, found = logistic(x[:, chosen], positive, weight, list(AGAINST_SIGNS.values()), 1.0)
    weights = np.zeros(len(NAMES))
    weights[chosen] = found
    logits = x @ weights + bias
    return _curve(bias, weights, knots(logits, positive, weight))


def contradicted_from(said: Sequence[Saying], content: dict[str, Any]) -> float:
    """Least threshold at which few supported claims of FEVER's family, but FEVER-symmetric, are called contradicted."""
    some = [one for one in said if one.family in FEVER]
    for step in range(30, 100):
        content["thresholds"]["contradicted"] = step / 100
        if false_alarms(some, content) <= FALSE_CONTRADICTIONS:
            break
    return float(content["thresholds"]["contradicted"])


def figures(said: Sequence[Saying], some: Mapping[str, Family]) -> dict[str, Any]:
    """Print how families rank, each by weights that were fitted without it, and return the content of the table."""
    weights = climbed(some)
    words, before = _weights({"lexical": 1.0}), _weights(BEFORE)
    print("weights", dict(zip(NAMES, weights.tolist(), strict=True)))
    content = {"support": table(some, weights)}
    without = {name: climbed(some, (name,)) for name in SHARES}
    for name, part in some.items():
        own = without.get(name, weights)
        level = np.array([interpolate(table(some, own)["knots"], one) for one in part.least(own)])
        ranks = "  ".join("{:.3f} {:.3f}".format(*part.ranks(some)) for some in (words, before, own, weights))
        shifted = " ".join(f"{rate:.0%}: {shifted_error(level, part.bad, rate):.3f} ({chance_error(level, part.bad, rate):.3f}) {100 * gap(level, part.bad, rate):+.1f}" for rate in RATES)  # noqa: E501  # fmt: skip
        called = level < SUPPORTED_FROM
        print(f"{name:24s} {len(part.bad):4d} words, before, left out, all: {ranks}  called {called[~part.bad].mean():.2f} {called[part.bad].mean():.2f} {shifted}", flush=True)  # noqa: E501  # fmt: skip
    content["contradiction"] = against(said)
    content["thresholds"] = {"support": SUPPORTED_FROM, "contradicted": 1.0}
    print("contradicted from", contradicted_from(said, content))
    for name in ("fever_symmetric", "nli/fever", "nli/feverous", "nli/fm2"):
        print(name, contradictions([one for one in said if one.family == name], content))
    return content


def _weights(values: Mapping[str, float]) -> Vector:
    return np.array([values.get(name, 0.0) for name in NAMES])


def gap(level: Vector, bad: Vector, rate: float) -> float:
    """Mean probability of being unsupported less `rate`, were that share unsupported and the table told so."""
    doubt = 1.0 - _told(level, rate)
    return float(rate * doubt[bad].mean() + (1 - rate) * doubt[~bad].mean() - rate)


def shifted_error(level: Vector, bad: Vector, rate: float) -> float:
    """Calibration error in ten bins, were `rate` of the rows unsupported and the table told so."""
    told = _told(level, rate)
    weight = np.where(bad, rate / bad.sum(), (1 - rate) / (~bad).sum())
    places = np.minimum((told * 10).astype(int), 9)
    parts = [(weight[places == one], told[places == one], ~bad[places == one]) for one in range(10)]
    return float(sum(abs((share * (value - good)).sum()) for share, value, good in parts))


def chance_error(level: Vector, bad: Vector, rate: float) -> float:
    """What `shifted_error` would be in the mean of `LOTS` lots, were every probability exactly right.

    A bin of few rows is off its mean by chance, so few rows never give an error of nothing.
    """
    told, rng = _told(level, rate), np.random.default_rng(SEED)
    weight = np.where(bad, rate / bad.sum(), (1 - rate) / (~bad).sum())
    places, found = np.minimum((told * 10).astype(int), 9), 0.0
    for _ in range(LOTS):
        chosen = rng.choice(len(told), len(told), p=weight)
        off = told[chosen] - (rng.random(len(told)) < told[chosen])
        found += float(np.abs(np.bincount(places[chosen], off, minlength=10)).sum()) / len(told)
    return found / LOTS


def _told(level: Vector, rate: float) -> Vector:
    """Probabilities of a table of which half of the rows were unsupported, for a share `rate`."""
    odds = level / (1 - level) * (1 - rate) / rate
    found: Vector = odds / (1 + odds)
    return found


def called(part: Sequence[Saying], content: Mapping[str, Any]) -> list[bool]:
    """Whether a claim of each row is called contradicted."""
    support, doubt, bars = content["support"], content["contradiction"], content["thresholds"]

    def level(curve: Mapping[str, Any], claim: tuple[float, ...], cost: float = 0.0) -> float:
        logit = curve["bias"] + sum(w * one for w, one in zip(curve["weights"].values(), claim, strict=True))
        return interpolate(curve["knots"], logit - cost)

    return [
        any(
            level(support, claim, cost) < bars["support"] and level(doubt, claim) >= bars["contradicted"]
            for claim, cost in zip(one.claims, one.costs, strict=True)
        )
        for one in part
    ]


def false_alarms(part: Sequence[Saying], content: Mapping[str, Any]) -> float:
    """Share of the supported rows that are called contradicted."""
    good = [one for one in part if not one.bad]
    return sum(called(good, content)) / max(1, len(good))


def contradictions(part: Sequence[Saying], content: Mapping[str, Any]) -> str:
    """F1 of "contradicted", and the share of supported rows that get it."""
    found = called(part, content)
    truth = [bool(one.refuted) for one in part]
    hits = sum(one and other for one, other in zip(found, truth, strict=True))
    precision, recall = hits / max(1, sum(found)), hits / max(1, sum(truth))
    score = 2 * precision * recall / max(1e-9, precision + recall)
    ranked = auroc(truth, [max(claim[2] for claim in one.claims) for one in part])
    return f"c AUROC {ranked:.3f} F1 {score:.3f} (P {precision:.2f}, R {recall:.2f}), of the supported {false_alarms(part, content):.3f}"  # noqa: E501  # fmt: skip


def ship(content: Mapping[str, Any], folder: Path, added: Sequence[str]) -> None:
    """Write `local.json` beside a reader."""
    names = ("reader.onnx", "tokenizer.json")
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    whole = {
        "version": 2,
        **content,
        "max_pieces": PIECES,
        "trained": {"base": "all-MiniLM-L6-v2", "fitted_on": [*FITTED_ON, *added]},
        "files": digests,
    }
    (folder / "local.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Read the command line and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("fit", "ship"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=released_folder())
    parser.add_argument("--human", action="store_true", help="the reader was taught the pairs of judge/nli")
    options = parser.parse_args()
    path = options.work / f"{options.weights.name}.sayings"
    if not path.exists():
        path.write_bytes(pickle.dumps(sayings(options.weights, list(rows()))))
    said = pickle.loads(path.read_bytes())  # noqa: S301  # written a line above, by us
    content = figures(said, families(said))
    if options.step == "ship":
        ship(content, options.weights, RANKED_ON + (("judge/nli",) if options.human else ()))


if __name__ == "__main__":
    main()
