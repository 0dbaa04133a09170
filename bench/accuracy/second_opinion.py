"""Do words and the model of kind `local` together see more in whole answers than words alone (issue 44, item 3)?

    python bench/accuracy/second_opinion.py [--answers 700]

Prints AUROC by family and design; what a design has to fit is fitted on the other families. Where people labelled
single claims, 500 answers of three to eight claims are drawn, half of them with one unsupported claim; of FActScore's
biographies, three to seven facts are read as one answer.
"""

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "training")]

import numpy as np  # noqa: E402
from fit import Vector, auroc, logistic  # noqa: E402
from local_sayings import Row, people  # noqa: E402
from scipy.stats import rankdata  # noqa: E402
from sets import SEED, load  # noqa: E402

from ragwatch.judges.claims.claims import claims_of  # noqa: E402
from ragwatch.judges.lexical.facts import capped, missing_weight  # noqa: E402
from ragwatch.judges.lexical.features import missing_run  # noqa: E402
from ragwatch.judges.lexical.passages import PreparedPassage  # noqa: E402
from ragwatch.judges.lexical.reader import read  # noqa: E402
from ragwatch.judges.lexical.rows import ClaimRow, ClaimRuling, Thresholds, lexical_ruling  # noqa: E402
from ragwatch.judges.lexical.tables import logit, shipped  # noqa: E402
from ragwatch.judges.local.artefact import (  # noqa: E402
    ModelSignals,
    numbers,
    released_folder,
)
from ragwatch.judges.local.artefact import load as load_artefact  # noqa: E402
from ragwatch.judges.local.cross_encoder import window  # noqa: E402
from ragwatch.judges.local.session import PairModel  # noqa: E402
from ragwatch.model.sample import Context, Sample  # noqa: E402

FILES = {
    "qags_cnndm": "judge/eval_only/qags_cnndm",
    "qags_xsum": "judge/eval_only/qags_xsum",
    "wikicite": "judge/eval_only/wikicite",
    "attributionbench": "judge/dev/attributionbench/test_id500",
    "wice": "judge/dev/wice/claim_test",
    "expertqa": "judge/train/expertqa/all",
}
FAMILIES = ("mtrag", "clapnq", "factscore_chatgpt", "factscore_instructgpt", *FILES)
UNSEEN = ("factscore_chatgpt", "factscore_instructgpt", "qags_cnndm", "qags_xsum", "wikicite")
DRAWN = ("attributionbench", "wice", "wikicite")
FACTS, CLAIMS, DRAWS, ROUNDS = (3, 7), (3, 8), 500, 400
NOT_READ = ModelSignals(-2.0, -2.0, 2.0, 1.0)
WORDS, MODEL, S, C, WORST, MEAN = range(6)
"""Columns of a sentence: the logit of words, that of the shipped judge, and the outputs of the model."""


def answers(family: str) -> Iterator[Row]:
    """The labelled answers of a family."""
    if family in ("mtrag", "clapnq"):
        yield from (row for row in people() if row.family == family)
    elif family.startswith("factscore"):
        yield from _biographies(family)
    else:
        for row in load(FILES[family]):
            if row["label"]["faithful"] is not None and row["meta"].get("src") not in ("BEGIN", "ExpertQA"):
                yield Row(family, row["question"], row["contexts"], row["answer"], not row["label"]["faithful"])


def _biographies(family: str) -> Iterator[Row]:
    rng = random.Random(SEED)
    for row in load(f"judge/eval_only/{family.replace('_', '/')}"):
        facts = [(place, one["text"], one["supported"]) for place, one in enumerate(row["label"]["claims"])]
        good, poor = ([one for one in facts if one[2] is flag] for flag in (True, False))
        for bad in (False, True):
            count = rng.randint(*FACTS)
            if len(good) >= count and (poor or not bad):
                some = sorted(rng.sample(good, count - bad) + ([rng.choice(poor)] if bad else []))
                yield Row(family, row["question"], row["contexts"], " ".join(one[1] for one in some), bad)


def balanced(some: Sequence[Row], count: int) -> list[Row]:
    """Good and bad ones in turn, drawn at random."""
    rng = random.Random(SEED)
    good, bad = ([one for one in some if one.bad is flag] for flag in (False, True))
    rng.shuffle(good)
    rng.shuffle(bad)
    return [one for pair in zip(good, bad, strict=False) for one in pair][:count]


class Reader:
    """Reads answers by words and by the model."""

    def __init__(self) -> None:
        self._artefact = load_artefact(released_folder())
        self._model = PairModel(self._artefact)

    def read(self, answer: Row) -> Vector:
        """The columns of each sentence."""
        rows: list[ClaimRow] = []
        pairs: list[tuple[str, str]] = []

        def ruled(
            some: Sequence[ClaimRow], passages: Sequence[PreparedPassage], texts: Sequence[str]
        ) -> list[ClaimRuling]:
            rows.extend(some)
            evidence = [window(row.words, passages, texts, budget=self._artefact.budget) for row in some]
            pairs.extend((" ".join(row.claim.words.split()), text) for row, text in zip(some, evidence, strict=True))
            return [lexical_ruling(row, Thresholds()) for row in some]

        sample = Sample("row", answer.question or None, tuple(map(Context, answer.contexts)), answer.answer)
        found = read(sample, claims_of(answer.answer, answer.question or None), shipped(), Thresholds(), ruled)
        signals = [self._model.read(self._model.pairs([pair]))[0] if pair[1] else NOT_READ for pair in pairs]
        claims = zip(rows, signals, found.claims, strict=True)
        return np.array([(logit(claim.support or 0.0), self._fused(row, one), *one) for row, one, claim in claims])

    def _fused(self, row: ClaimRow, signals: ModelSignals) -> float:
        values = numbers(logit(row.by_words), signals, missing_run(row.words, row.matches))
        support = self._artefact.support.probability(values, missing_weight(row.missing))
        return logit(capped(support, row.missing))


class Family:
    """Answers of a family: columns of all sentences, and the answer that each belongs to."""

    def __init__(self, name: str, some: Sequence[Row], reader: Reader) -> None:
        read_rows = [(reader.read(row), row.bad, row.question or row.contexts[0][:80]) for row in some]
        parts = [part for part in read_rows if len(part[0])]
        if name in DRAWN:
            rng = random.Random(5)
            good, poor = ([part for part in parts if part[1] is flag] for flag in (False, True))
            parts = [_drawn(good, poor, number, rng) for number in range(DRAWS)]
        self.x = np.concatenate([part[0] for part in parts])
        self.rows = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        self.bad = np.array([part[1] for part in parts])
        _, groups = np.unique([part[2] for part in parts], return_inverse=True)
        self.groups = [np.flatnonzero(groups == number) for number in range(groups.max() + 1)]

    def most(self, values: Vector) -> Vector:
        """The greatest value among the sentences of each answer."""
        found = np.full(len(self.bad), -np.inf)
        np.maximum.at(found, self.rows, values)
        return found

    @property
    def columns(self) -> Vector:
        """Doubt of each answer by words, by the model's verdict, and by its word pieces."""
        x = self.x
        return np.stack([self.most(one) for one in (-x[:, WORDS], -x[:, S], x[:, C], x[:, WORST], x[:, MEAN])], axis=1)


def _drawn(good: Sequence[Any], poor: Sequence[Any], number: int, rng: random.Random) -> tuple[Vector, bool, str]:
    some = rng.sample(good, rng.randint(*CLAIMS) - number % 2) + ([rng.choice(poor)] if number % 2 else [])
    return np.concatenate([part[0] for part in some]), number % 2 == 1, str(number)


def by_words(one: Family, _: Sequence[Family]) -> Vector:
    """(c) Words alone."""
    return one.most(-one.x[:, WORDS])


def as_shipped(one: Family, _: Sequence[Family]) -> Vector:
    """(a) The fusion of the shipped judge."""
    return one.most(-one.x[:, MODEL])


def by_logistic(one: Family, others: Sequence[Family]) -> Vector:
    """(a) Logistic regression on answers."""
    x, bad = np.concatenate([other.columns for other in others]), np.concatenate([other.bad for other in others])
    weight = np.concatenate([np.full(len(other.bad), 1.0 / len(other.bad)) for other in others])
    _, weights = logistic(x, bad, weight / weight.mean(), [1] * x.shape[1], 0.05)
    scores: Vector = one.columns @ weights
    return scores


def ranks(one: Family, share: float) -> Vector:
    """Mean of the ranks by words and by the shipped judge."""
    mean: Vector = (1 - share) * rankdata(by_words(one, ())) + share * rankdata(as_shipped(one, ()))
    return mean


def by_rank(one: Family, others: Sequence[Family]) -> Vector:
    """(a) Rank mean; the share is fitted."""
    return ranks(one, _best(others, ranks, [step / 10 for step in range(11)]))


def lowered(one: Family, bars: tuple[float, float, float]) -> Vector:
    """Claims that words support, lowered where the model is sure against them."""
    weight, support, contradiction = bars
    words, against = one.x[:, WORDS], np.maximum(-one.x[:, S] - support, one.x[:, C] - contradiction)
    return one.most(-np.where(words >= 0.0, words - weight * np.maximum(0.0, against), words))


def by_veto(one: Family, others: Sequence[Family]) -> Vector:
    """(b) Veto; weight and bars are fitted."""
    bars = [(w, s, c) for w in (0.25, 0.5, 1.0, 4.0) for s in (0.0, 1.0, 2.0, 3.0) for c in (0.5, 1.0, 2.0, 9.0)]
    return lowered(one, _best(others, lowered, bars))


def _best(others: Sequence[Family], score: Callable[[Family, Any], Vector], choices: Sequence[Any]) -> Any:  # noqa: ANN401
    return max(choices, key=lambda choice: sum(auroc(one.bad, score(one, choice)) for one in others))


DESIGNS = {"words": by_words, "shipped": as_shipped, "logistic": by_logistic, "rank": by_rank, "veto": by_veto}


def main() -> None:
    """Read, fit with each family left out, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=700, help="of a family at most")
    options = parser.parse_args()
    reader = Reader()
    known = {name: Family(name, balanced(list(answers(name)), options.answers), reader) for name in FAMILIES}
    scores: dict[str, dict[str, Vector]] = defaultdict(dict)
    for name, one in known.items():
        others = [other for other in known if other.split("_")[0] != name.split("_")[0]]
        for design, score in DESIGNS.items():
            scores[design][name] = score(one, [known[other] for other in others])
        print(f"{name:24s}{len(one.bad):5d}", *(f"{auroc(one.bad, part[name]):9.3f}" for part in scores.values()))
    for label, names in (("all", FAMILIES), ("unseen", UNSEEN)):
        for design, part in scores.items():
            print(label, design, gain(known, part, scores["words"], names))


def gain(known: Mapping[str, Family], part: Mapping[str, Vector], words: Mapping[str, Vector], names: Sequence[str]) -> str:  # noqa: E501  # fmt: skip
    """Mean AUROC less that of words, with its 95 % bootstrap interval over answers of one question."""
    rng, found = np.random.default_rng(3), []
    for number in range(ROUNDS + 1):
        total = 0.0
        for name in names:
            groups, bad = known[name].groups, known[name].bad
            drawn = rng.integers(0, len(groups), len(groups)) if number else np.arange(len(groups))
            pick = np.concatenate([groups[one] for one in drawn])
            total += auroc(bad[pick], part[name][pick]) - auroc(bad[pick], words[name][pick])
        found.append(total / len(names))
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return f"{found[0]:+.4f} [{low:+.4f}, {high:+.4f}]"


if __name__ == "__main__":
    main()
