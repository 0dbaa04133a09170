"""Opens the folder of a detector: what its config.json says, which files it has, and the hash of what is run.

| file                                                        | content                                             |
|-------------------------------------------------------------|-----------------------------------------------------|
| `config.json`                                               | architecture and names of the outputs               |
| `tokenizer.json`                                            | the fast tokenizer                                  |
| `model.onnx` (or `onnx/model.onnx`), with external data     | the graph, for onnxruntime                          |
| `model.safetensors`                                         | the weights, for torch, where there is no graph     |
| `ragwatch.json`                                             | what `ragwatch detector fetch` wrote: the digests   |

Nothing is downloaded, and no code of the folder is run: no pickle, no modules of the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any

from ragwatch.errors import RagwatchError
from ragwatch.judges.detector.families import FAMILIES, Classes, Family, Name, classes_of, family_of

CONFIG, PIECES, WEIGHTS, MANIFEST = "config.json", "tokenizer.json", "model.safetensors", "ragwatch.json"
GRAPHS = ("model.onnx", "onnx/model.onnx")
MIN_TOKENS = 64
_MEGABYTE = 1_000_000
_MAX_CONFIG_BYTES = 1 << 20


class DetectorError(RagwatchError):
    """The model is missing or invalid; the message says why, for a person."""


@dataclass(frozen=True, slots=True)
class Detector:
    """The folder of a model.

    Attributes:
        family: What it reads; `max_tokens` and `window` are those of this model.
        graph: The ONNX graph; None where the weights are run by torch.
        version: Eight hexadecimal digits of the hash of family, tokenizer and model.
    """

    folder: Path
    config: Mapping[str, Any]
    name: Name
    family: Family
    classes: Classes
    graph: Path | None
    version: str


def open_detector(
    folder: Path,
    *,
    family: Name | None = None,
    graph: str | None = None,
    max_tokens: int | None = None,
    max_megabytes: int,
) -> Detector:
    """Open the folder of a model and verify the digests that `fetch` wrote.

    None stands for what config.json shows, the usual names of a graph, and the tokens of the family and the model.

    Raises:
        DetectorError: A file is missing, changed, too large or invalid.
    """
    try:
        config = json.loads(_small(folder / CONFIG))
        if not isinstance(config, dict):
            raise DetectorError(f"{CONFIG} is not a mapping")
        name = family or family_of(config)
        if name is None:
            raise DetectorError(f"{CONFIG} does not show its family; set `family` to one of: {', '.join(FAMILIES)}")
        model = _model_file(folder, graph)
        data = sorted(model.parent.glob(f"{escape(model.name)}[._]data*"))  # beside a graph
        files = [folder / CONFIG, folder / PIECES, model, *data]  # which decide what is read
        megabytes = sum(path.stat().st_size for path in files) / _MEGABYTE
        if megabytes > max_megabytes:
            raise DetectorError(f"its model has {megabytes:.0f} MB, more than max_model_mb ({max_megabytes})")
        digests = {path.relative_to(folder).as_posix(): digest_of(path) for path in files}
        _verify(folder, digests)
        made = _sized(FAMILIES[name], config, max_tokens)
        text = json.dumps([name, made.max_tokens, digests], sort_keys=True)
        return Detector(
            folder=folder,
            config=config,
            name=name,
            family=made,
            classes=classes_of(made, config),
            graph=None if model.name == WEIGHTS else model,
            version=hashlib.sha256(text.encode()).hexdigest()[:8],
        )
    except OSError as error:
        raise DetectorError(f"{Path(error.filename or folder).name} of its model cannot be read") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DetectorError(f"{CONFIG} or {MANIFEST} of its model is invalid: {str(error)[:200]}") from error


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _small(path: Path) -> bytes:
    with path.open("rb") as file:
        text = file.read(_MAX_CONFIG_BYTES + 1)
    if len(text) > _MAX_CONFIG_BYTES:
        raise DetectorError(f"{path.name} of its model has more than 1 MiB")
    return text


def _model_file(folder: Path, graph: str | None) -> Path:
    """The graph, else the weights."""
    if graph is not None and (Path(graph).is_absolute() or ".." in Path(graph).parts):
        raise DetectorError(f"{graph} is outside its folder; give the graph's name in it")
    names = GRAPHS if graph is None else (graph,)
    model = next((folder / name for name in names if (folder / name).is_file()), None)
    if model is None and graph is None and (folder / WEIGHTS).is_file():
        model = folder / WEIGHTS
    if model is None:
        raise DetectorError(f"{folder} has none of {', '.join((*names, WEIGHTS) if graph is None else names)}")
    return model


def _verify(folder: Path, digests: Mapping[str, str]) -> None:
    path = folder / MANIFEST
    fetched = json.loads(_small(path))["files"] if path.is_file() else {}
    for name, digest in digests.items():
        if fetched.get(name, digest) != digest:
            raise DetectorError(f"{name} of its model is not the file that was fetched: its SHA-256 is {digest}")


def _sized(family: Family, config: Mapping[str, Any], max_tokens: int | None) -> Family:
    """The family, with no more tokens than the model has positions; those of DeBERTa are relative, without a limit."""
    limit = max_tokens or family.max_tokens
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") != "deberta-v2":
        limit = min(limit, positions - 2)  # RoBERTa counts from 2
    if limit < MIN_TOKENS:
        raise ValueError(f"inputs of {limit} tokens are too short; the least is {MIN_TOKENS}")
    return replace(family, max_tokens=limit, window=min(family.window, limit * 3 // 4))
