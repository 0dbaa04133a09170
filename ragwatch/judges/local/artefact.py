"""Loads and verifies the model artefact of the local judge: a folder that `training/` writes.

The package `ragwatch-reader` holds the one that is released.

| file             | content                                                                            |
|------------------|-----------------------------------------------------------------------------------|
| `local.json`     | curves, thresholds, and the SHA-256 digests of the other two                      |
| `reader.onnx`    | the model                                                                         |
| `tokenizer.json` | its WordPiece vocabulary                                                          |

There is no pickle and no executable code, and nothing is downloaded.

A curve combines the lexical probability and the outputs of the model to one calibrated probability. Its logit is a
weighted sum of the numbers of `NAMES`; a table of knots, fitted on labelled answers, maps the logit to the share of
claims that were supported (or contradicted). It is linear between knots and constant outside them, and its values are
strictly inside (0, 1), because no claim is certain. An answer is as good as its least claim, so a number that is a
little wrong on every claim spoils the least of many. Therefore two of the numbers speak only where the model is sure:
`s_low` and `c_high`.
"""

import hashlib
import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ragwatch.errors import RagwatchError

NAMES = ("lexical", "s", "c", "t_max", "t_mean", "run", "s_low", "c_high")
"""Names of the weights: the logit of the lexical probability, the fields of `ModelSignals` in their order, the weight
of the heaviest run of words that no context has (`features.missing_run`), and what `numbers` makes of them."""

STRONG = 0.5
"""From this logit on a contradiction counts against support."""


class ModelSignals(NamedTuple):
    """Logits of the model for one pair."""

    supported: float  # "Supported" against the two others
    contradicted: float  # "Contradicted" against the two others
    worst: float  # the highest, over the word pieces of the claim, that a piece is not supported by the evidence
    mean: float  # mean of these


def numbers(lexical: float, signals: ModelSignals, run: float) -> tuple[float, ...]:
    """The numbers that are weighed, in the order of `NAMES`.

    >>> numbers(1.0, ModelSignals(-2.0, 3.0, 0.5, 0.25), 4.0)
    (1.0, -2.0, 3.0, 0.5, 0.25, 4.0, -2.0, 2.5)
    """
    return (lexical, *signals, run, min(0.0, signals.supported), max(0.0, signals.contradicted - STRONG))


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """A fitted and calibrated probability; a ValueError if the numbers are invalid."""

    bias: float  # constant of the logit
    weights: tuple[float, ...]  # one for each of `NAMES`
    # (logit, probability); logits increase, probabilities never decrease and are inside (0, 1)
    knots: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        logits, values = [x for x, _ in self.knots], [p for _, p in self.knots]
        if not all(map(math.isfinite, (self.bias, *self.weights, *logits, *values))):
            raise ValueError("a bias, weight or knot is not finite")
        if not self.knots or sorted(set(logits)) != logits or sorted(values) != values:
            raise ValueError("the knots of a curve do not increase")
        if values[0] <= 0.0 or values[-1] >= 1.0:
            raise ValueError("a knot is outside (0, 1)")

    def logit(self, values: Sequence[float]) -> float:
        """The weighted sum of what `numbers` returns."""
        return math.fsum((self.bias, *(weight * x for weight, x in zip(self.weights, values, strict=True))))

    def probability(self, values: Sequence[float], less: float = 0.0) -> float:
        """The calibrated probability of a claim with these `numbers`, after `less` is taken from its logit.

        >>> half = FittedCurve(0.0, (1.0, *[0.0] * 7), ((-1.0, 0.25), (1.0, 0.75)))
        >>> [half.probability(numbers(x, ModelSignals(0.0, 0.0, 0.0, 0.0), 0.0)) for x in (-9.0, 0.0, 0.5, 9.0)]
        [0.25, 0.5, 0.625, 0.75]
        """
        return interpolate(self.knots, self.logit(values) - less)


def interpolate(knots: Sequence[tuple[float, float]], x: float) -> float:
    """Interpolate linearly between knots; constant before the first and after the last."""
    index = bisect_right(knots, x, key=lambda knot: knot[0])
    if index in (0, len(knots)):
        return knots[min(index, len(knots) - 1)][1]
    (start, low), (end, high) = knots[index - 1], knots[index]
    return low + (high - low) * (x - start) / (end - start)


FORMAT = 2
"""1 weighed five numbers instead of `NAMES`, and its model had one head of three verdicts."""
READING = b"2"
"""Changes when the same model gives other verdicts: 2 decides by words alone which contexts a claim uses."""
BUDGET = 95
"""Default number of words of evidence."""
MIN_PART_WORDS = 8
"""Minimum number of words of a truncated sentence of it."""
CLAIM_PIECES = 64
"""Maximum number of word pieces of a claim; the evidence gets the rest."""

TABLE, MODEL, PIECES = "local.json", "reader.onnx", "tokenizer.json"
PIECES_ALLOWED = range(CLAIM_PIECES + 16, 512 + 1)


class ArtefactError(RagwatchError):
    """The model is missing or invalid; the message says why, for a person."""


@dataclass(frozen=True, slots=True)
class ModelArtefact:
    """The verified artefact."""

    folder: Path
    support: FittedCurve
    contradiction: FittedCurve
    supported_from: float  # minimum probability at which a claim counts as supported
    contradicted_from: float  # minimum probability at which a claim that is not supported counts as contradicted
    max_pieces: int  # maximum number of word pieces of a pair
    budget: int  # maximum number of words of evidence, the same as in training
    version: str  # eight hexadecimal digits of the hash of the artefact and of how it is read


def released_folder() -> Path:
    """The folder of the model in the package `ragwatch-reader`; an ImportError without the package."""
    from ragwatch_reader import MODEL_FOLDER  # noqa: PLC0415 - an extra that only this kind needs

    return MODEL_FOLDER


def load(folder: Path) -> ModelArtefact:
    """Load the artefact in a folder, and verify its digests; an ArtefactError if a file is missing or invalid."""
    try:
        text = (folder / TABLE).read_bytes()
        table = json.loads(text)
        _verify(folder, table["files"])
        return _parsed(folder, table, hashlib.sha256(text + READING).hexdigest()[:8])
    except OSError as error:
        raise ArtefactError(f"{Path(error.filename or folder).name} of its model cannot be read") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ArtefactError(f"{TABLE} of its model is invalid: {error!r}") from error


def _verify(folder: Path, digests: Mapping[str, str]) -> None:
    for name in (MODEL, PIECES):
        with (folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != digests[name]:
            raise ArtefactError(f"{name} of its model is not the file that was released: its SHA-256 is {digest}")


def _parsed(folder: Path, table: Mapping[str, Any], version: str) -> ModelArtefact:
    if table["version"] != FORMAT:
        raise ValueError(
            f"format {table['version']!r} instead of {FORMAT}; install the ragwatch-reader of this release"
        )
    pieces = int(table["max_pieces"])
    if pieces not in PIECES_ALLOWED:
        raise ValueError(f"max_pieces {pieces} is not in {PIECES_ALLOWED.start} to {PIECES_ALLOWED.stop - 1}")
    budget = int(table.get("budget", BUDGET))
    if not MIN_PART_WORDS <= budget <= pieces:
        raise ValueError(f"budget {budget} is not in {MIN_PART_WORDS} to {pieces}")
    return ModelArtefact(
        folder=folder,
        support=_curve(table["support"]),
        contradiction=_curve(table["contradiction"]),
        supported_from=_ratio(table["thresholds"]["support"]),
        contradicted_from=_ratio(table["thresholds"]["contradicted"]),
        max_pieces=pieces,
        budget=budget,
        version=version,
    )


def _curve(part: Mapping[str, Any]) -> FittedCurve:
    unknown = part["weights"].keys() - set(NAMES)
    if unknown:
        raise ValueError(f"unknown weights {sorted(unknown)}")
    return FittedCurve(
        bias=float(part["bias"]),
        weights=tuple(float(part["weights"][name]) for name in NAMES),
        knots=tuple((float(x), float(p)) for x, p in part["knots"]),
    )


def _ratio(value: object) -> float:
    probability = float(value)  # type: ignore[arg-type]  # raises for what is not a number
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"{value!r} is not a probability")
    return probability
