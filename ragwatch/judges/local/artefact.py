"""Loads and verifies the model artefact of the local judge: a folder that `training/` writes.

The package `ragwatch-reader` holds the one that is released.

| file             | content                                                                            |
|------------------|-----------------------------------------------------------------------------------|
| `local.json`     | curves, thresholds, and the SHA-256 digests of the other two                      |
| `reader.onnx`    | the model                                                                         |
| `tokenizer.json` | its WordPiece vocabulary                                                          |

There is no pickle and no executable code, and nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwatch.errors import RagwatchError
from ragwatch.judges.lexical.evidence import BUDGET, MIN_PART_WORDS
from ragwatch.judges.local.fusion import NAMES, FittedCurve

FORMAT = 2
"""1 weighed five numbers instead of `fusion.NAMES`, and its model had one head of three verdicts."""
READING = b"2"
"""Changes when the same model gives other verdicts: 2 decides by words alone which contexts a claim uses."""
CLAIM_PIECES = 64
"""Maximum number of word pieces of a claim; the evidence gets the rest."""

TABLE, MODEL, PIECES = "local.json", "reader.onnx", "tokenizer.json"
PIECES_ALLOWED = range(CLAIM_PIECES + 16, 512 + 1)


class ArtefactError(RagwatchError):
    """The model is missing or invalid; the message says why, for a person."""


@dataclass(frozen=True, slots=True)
class ModelArtefact:
    """The verified artefact.

    Attributes:
        support: Probability that the evidence supports a claim.
        contradiction: Probability that it contradicts it.
        supported_from: Minimum probability at which a claim counts as supported.
        contradicted_from: Minimum probability at which a claim that is not supported counts as contradicted.
        max_pieces: Maximum number of word pieces of a pair.
        budget: Maximum number of words of evidence, the same as in training.
        version: Eight hexadecimal digits of the hash of the artefact and of how it is read.
    """

    folder: Path
    support: FittedCurve
    contradiction: FittedCurve
    supported_from: float
    contradicted_from: float
    max_pieces: int
    budget: int
    version: str


def released_folder() -> Path:
    """Return the folder of the model in the package `ragwatch-reader`.

    Raises:
        ImportError: The package is not installed.
    """
    from ragwatch_reader import MODEL_FOLDER  # noqa: PLC0415 - an extra that only this kind needs

    return MODEL_FOLDER


def load(folder: Path) -> ModelArtefact:
    """Load the artefact in a folder, and verify its digests.

    Raises:
        ArtefactError: A file is missing, has another digest, or holds invalid values.
    """
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
