"""Artefact: the folder that `training/` ships for the local judge, checked before a byte of it is believed.

| file             | holds                                                                             |
|------------------|-----------------------------------------------------------------------------------|
| `local.json`     | curves, thresholds, what is skipped, and the SHA-256 digests of the other two     |
| `reader.onnx`    | the model                                                                         |
| `tokenizer.json` | its word pieces                                                                   |

No pickle, nothing that runs, nothing fetched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwatch.errors import RagwatchError
from ragwatch.judges.lexical.evidence import BUDGET, ROOM
from ragwatch.judges.local.fusion import NAMES, FittedCurve

FORMAT = 1
CLAIM_PIECES = 64
"""Word pieces of a claim that are read; the evidence gets the rest."""

TABLE, MODEL, PIECES = "local.json", "reader.onnx", "tokenizer.json"
PIECES_ALLOWED = range(CLAIM_PIECES + 16, 512 + 1)
SHIPPED = Path(__file__).parents[1] / "weights"


class ArtefactError(RagwatchError):
    """There is no model that can be trusted; the message says why, for a person."""


@dataclass(frozen=True, slots=True)
class ModelArtefact:
    """What training ships.

    Attributes:
        folder: Where its files lie.
        support: Probability that the evidence supports a claim.
        contradiction: Probability that it contradicts it.
        supported_from: Probability at which a claim counts as supported.
        contradicted_from: Probability at which a claim that is not supported counts as contradicted.
        skip_below: A context whose words support a claim with less than this is not read by the model: it does not.
        skip_above: With more than this it does, where all contexts together do.
        max_pieces: Word pieces of a pair at most.
        budget: Words of evidence at most: as many as the model was taught with.
        version: Eight hexadecimal digits that change with every byte of the artefact.
    """

    folder: Path
    support: FittedCurve
    contradiction: FittedCurve
    supported_from: float
    contradicted_from: float
    skip_below: float
    skip_above: float
    max_pieces: int
    budget: int
    version: str


def load(folder: Path) -> ModelArtefact:
    """The artefact in a folder, its digests compared.

    Raises:
        ArtefactError: A file is missing, is not the one that was shipped, or says what cannot be.
    """
    try:
        text = (folder / TABLE).read_bytes()
        table = json.loads(text)
        _compare(folder, table["files"])
        return _parsed(folder, table, hashlib.sha256(text).hexdigest()[:8])
    except OSError as error:
        raise ArtefactError(f"{Path(error.filename or folder).name} of its model cannot be read") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ArtefactError(f"{TABLE} of its model is not what training writes: {error!r}") from error


def _compare(folder: Path, digests: Mapping[str, str]) -> None:
    for name in (MODEL, PIECES):
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digests[name]:
            raise ArtefactError(f"{name} of its model is not the file that was shipped: its SHA-256 is {found}")


def _parsed(folder: Path, table: Mapping[str, Any], version: str) -> ModelArtefact:
    if table["version"] != FORMAT:
        raise ValueError(f"version {table['version']!r} instead of {FORMAT}")
    pieces = int(table["max_pieces"])
    if pieces not in PIECES_ALLOWED:
        raise ValueError(f"max_pieces {pieces}, which leaves no room for evidence or none for positions")
    budget = int(table.get("budget", BUDGET))
    if not ROOM <= budget <= pieces:
        raise ValueError(f"budget {budget}, which is no length of evidence")
    return ModelArtefact(
        folder=folder,
        support=_curve(table["support"]),
        contradiction=_curve(table["contradiction"]),
        supported_from=_ratio(table["thresholds"]["support"]),
        contradicted_from=_ratio(table["thresholds"]["contradicted"]),
        skip_below=_ratio(table["skip"]["below"]),
        skip_above=_ratio(table["skip"]["above"]),
        max_pieces=pieces,
        budget=budget,
        version=version,
    )


def _curve(part: Mapping[str, Any]) -> FittedCurve:
    unknown = part["weights"].keys() - set(NAMES)
    if unknown:
        raise ValueError(f"weights of {sorted(unknown)}, which nobody reads")
    return FittedCurve(
        bias=float(part["bias"]),
        weights=tuple(float(part["weights"][name]) for name in NAMES),
        knots=tuple((float(x), float(p)) for x, p in part["knots"]),
    )


def _ratio(value: object) -> float:
    found = float(value)  # type: ignore[arg-type]  # whatever is no number raises, which is what we want
    if not 0.0 <= found <= 1.0:
        raise ValueError(f"{value!r} is no probability")
    return found
