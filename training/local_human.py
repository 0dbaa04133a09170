"""Pairs that people judged (`../shared/data/judge/nli`), as the reader sees evidence: among sentences of other texts.

The mixture follows the weights of the folder's SOURCES.md, cut to what two cores read in an hour. FEVER, FEVEROUS and
VitaminC are left out, so that FEVER-symmetric stays a set of a family that these pairs do not teach.
"""

import gzip
import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from local_pairs import ABSENT, CONTRADICTED, SUPPORTED, UNSUPPORTED, Pair, read
from sets import DATA, SEED

from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.local.artefact import BUDGET

VERDICTS = {"supported": SUPPORTED, "contradicted": CONTRADICTED, "not_enough": ABSENT}
SHORT, PADDED = 40, 0.6
"""Evidence with fewer words is padded in this share of the pairs, for every label alike."""
PADDING = (2, 6)
LONGEST = 30
"""Words of a sentence that pads."""
HELD_SHARE = 20
"""One group in so many is kept from training."""
DRAW = 7
"""Seed of the rows that are taken from a file, so that each run of stage three reads others."""


class Portion(NamedTuple):
    """How many rows of a file are taken, at which weight in the loss, and which views are left out."""

    rows: int
    weight: float = 1.0
    without: tuple[str, ...] = ()


MIXTURE: Mapping[str, Portion] = {
    "fm2": Portion(7_000, 1.5),
    "mnli": Portion(16_000),
    "snli_counterfactual": Portion(8_000),
    "snli": Portion(3_000, 0.5),
    "negation_nli": Portion(2_900),
    "conjnli": Portion(5_000),
    "breaking_nli": Portion(2_000, 0.7),
    "hans": Portion(1_500, 0.7),
    "scone": Portion(1_500, 0.7),
    "monotonicity_help_med": Portion(1_500, 0.7),
    "infotabs": Portion(7_000, 0.6),
    "folio": Portion(600, 0.5),
    "ambient": Portion(2_200),
    "scifact": Portion(530, 1.5),
    "entailment_bank": Portion(900),
    "faithdial_audit": Portion(500, 0.5),
}
OUTSIDE = ("fever", "feverous", "vitaminc_sample")
"""The FEVER family: read for figures, never taught."""


def rows(name: str) -> list[dict[str, Any]]:
    """Rows of a file."""
    with gzip.open(DATA / "judge" / "nli" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def is_kept(group: str) -> bool:
    """Whether a group is kept from training, for figures."""
    return hashlib.sha256(group.encode()).digest()[0] % HELD_SHARE == 0


def taught() -> list[Pair]:
    """The mixture, without the groups that are kept."""
    found: list[Pair] = []
    for name, portion in MIXTURE.items():
        part = [row for row in rows(name) if not is_kept(row["group"])]
        found += padded(name, balanced(part, portion.rows), portion.weight)
    return found


def kept(most: int = 400) -> list[Pair]:
    """Pairs of kept groups, and of the family that is left out, at most so many of a file."""
    found: list[Pair] = []
    for name in (*MIXTURE, *OUTSIDE):
        part = [row for row in rows(name) if name in OUTSIDE or is_kept(row["group"])]
        found += padded(name, random.Random(SEED).sample(part, min(most, len(part))))
    return found


def balanced(part: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """So many rows, as many of each label as there are."""
    rng = random.Random(DRAW)
    labels: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rng.sample(part, len(part)):
        labels[row["label"]].append(row)
    chosen = [row for some in zip(*(_cycled(one, count) for one in labels.values()), strict=False) for row in some]
    return [row for row in chosen if row is not None][:count]


def _cycled(some: list[dict[str, Any]], count: int) -> list[dict[str, Any] | None]:
    return [*some[:count], *([None] * max(0, count - len(some)))]


def padded(name: str, part: Sequence[dict[str, Any]], weight: float = 1.0) -> Iterator[Pair]:
    """Rows as pairs: evidence among sentences of other groups where it is short, cut to the window where it is long."""
    for row, evidence in zip(part, surrounded(name, part), strict=True):
        text, lexical = read(row["claim"], [evidence], BUDGET)
        if len(evidence.split()) <= BUDGET:
            text = " ".join(evidence.split())  # the window would leave out what shares no word with the claim
        verdict = VERDICTS[row["label"]]
        if verdict != SUPPORTED and row["meta"].get("binary"):
            verdict = UNSUPPORTED
        yield Pair(f"nli/{name}", row["id"], row["claim"], text, verdict, lexical, None, weight)


def surrounded(name: str, part: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Evidence of rows, most of the short ones among sentences of other groups."""
    rng = random.Random(f"{SEED}:{name}")
    for row in part:
        evidence = row["evidence"]
        is_short = len(evidence.split()) < SHORT and rng.random() < PADDED
        yield _among(evidence, row["group"], part, rng) if is_short else evidence


def _among(evidence: str, group: str, part: Sequence[dict[str, Any]], rng: random.Random) -> str:
    """Evidence as it stands, with sentences of other groups before and after it."""
    others: list[str] = []
    for row in rng.sample(part, min(len(part), 3 * PADDING[1])):
        text = row["evidence"]
        parts = [text[span.start : span.end] for span in spans(text)]
        short = [sentence for sentence in parts if len(sentence.split()) <= LONGEST]
        if row["group"] != group and short:
            others.append(rng.choice(short))
    others = others[: rng.randint(*PADDING)]
    place = rng.randint(0, len(others))
    ended = evidence if evidence.rstrip().endswith((".", "!", "?", '"')) else f"{evidence}."
    return " ".join([*others[:place], ended, *others[place:]])
