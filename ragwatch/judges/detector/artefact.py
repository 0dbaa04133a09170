"""Opens the folder of a detector: what its config.json says, which files it has, and the hash of what is run.

| file                                                        | content                                             |
|-------------------------------------------------------------|-----------------------------------------------------|
| `config.json`                                               | architecture and names of the outputs               |
| `tokenizer.json`                                            | the fast tokenizer                                  |
| `model.onnx` (or `onnx/model.onnx`), with external data     | the graph, for onnxruntime                          |
| `model.safetensors`                                         | the weights, for torch, where there is no graph     |
| `ragwatch.json`                                             | what `ragwatch detector` wrote: origin and digests  |

Nothing is downloaded, and no code of the folder is run: no pickle, no modules of the model.

A family says what a model reads, in which words, and what its outputs mean. Sources of the templates and classes: the
models' own code at KRLabsOrg/LettuceDetect (`detectors/transformer.py`, `prompts/`, `scripts/canonicalize_prompts.py`),
Liyan06/MiniCheck (`inference.py`), and `modeling_hhem_v2.py` of vectara/hallucination_evaluation_model. NLI
cross-encoders read (premise, hypothesis); `id2label` names their classes.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from glob import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ragwatch.errors import JudgeError, RagwatchError
from ragwatch.statistics.verdict import UnjudgedReason

Name = Literal[
    "lettucedetect", "lettucedetect_v2", "minicheck_roberta", "minicheck_deberta", "minicheck_t5", "hhem", "nli"
]

_QA = (
    "Briefly answer the following question:\n{question}\nBear in mind that your response should be strictly based on "
    "the following {count} passages:\n{context}\nIn case the passages do not contain the necessary information to "
    'answer the question, please reply with: "Unable to answer based on given passages."\noutput:'
)
_SUMMARY = "Summarize the following text:\n{context}\noutput:"
_HHEM = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {context}\n\nHypothesis: {claim}"


class Reads(StrEnum):
    """What a model reads at once."""

    ANSWER = "answer"
    """The contexts and the question in a template, and the whole answer; it labels the tokens of the answer."""
    PAIR = "pair"
    """A context and a claim, as two texts."""
    TEXT = "text"
    """A context and a claim in a template, as one text."""


@dataclass(frozen=True, slots=True)
class Family:
    """Models with the same input and output."""

    reads: Reads
    max_tokens: int
    window: int  # maximum number of tokens of contexts in an input
    # template of the input, with `{context}`, and `{claim}` or `{question}` and `{count}`; "" for a pair
    template: str = ""
    without_question: str = ""  # template of an answer without a question
    passage: str = "{text}"  # template of one context among several
    # indexes of the outputs "not supported" and "supported"; None where config.json names them
    classes: tuple[int, int] | None = (0, 1)


FAMILIES: Mapping[Name, Family] = {
    "lettucedetect": Family(
        Reads.ANSWER, 4096, 2048, _QA, _SUMMARY, passage="passage {number}: {text}", classes=(1, 0)
    ),
    "lettucedetect_v2": Family(
        Reads.ANSWER, 8192, 2048, "User request: {question}\n\n{context}", "{context}", classes=(1, 0)
    ),
    "minicheck_roberta": Family(Reads.TEXT, 512, 400, "{context}</s>{claim}"),
    "minicheck_deberta": Family(Reads.TEXT, 2048, 400, "{context}[SEP]{claim}"),
    "minicheck_t5": Family(Reads.TEXT, 2048, 700, "predict: {context}</s>{claim}", classes=(3, 209)),
    "hhem": Family(Reads.TEXT, 2048, 700, _HHEM),
    "nli": Family(Reads.PAIR, 512, 400, classes=None),
}
"""MiniCheck-Flan-T5 answers with a word: 3 and 209 are its tokens for no and yes; its window is 500 words."""


class Classes(NamedTuple):
    """Indexes of the outputs."""

    others: tuple[int, ...]  # those that are not "supported"
    supported: int
    contradicted: int | None = None  # None where the model does not tell it from "not in the context"


class Signals(NamedTuple):
    """Logits of "supported" and of "contradicted", each against all others, for one claim.

    `against` is None where the model does not read contradictions.
    """

    support: float
    against: float | None = None


def family_of(config: Mapping[str, object]) -> Name | None:
    """The family of a model by its config.json; None where that does not show it.

    >>> family_of({"architectures": ["ModernBertForTokenClassification"]})
    'lettucedetect'
    >>> family_of({"id2label": {"0": "entailment", "1": "not_entailment"}})
    'nli'
    """
    architectures = config.get("architectures")
    (name,) = map(str, architectures[:1]) if isinstance(architectures, list) and architectures else ("",)
    if name.startswith("HHEM"):
        return "hhem"
    if name.endswith("ForTokenClassification"):
        return "lettucedetect"
    return "nli" if "entailment" in labels_of(config) else None


def labels_of(config: Mapping[str, object]) -> dict[str, int]:
    """The outputs by their names in config.json, in lower case."""
    named = config.get("id2label")
    return {str(label).lower(): int(index) for index, label in named.items()} if isinstance(named, dict) else {}


def classes_of(family: Family, config: Mapping[str, object]) -> Classes:
    """The outputs of a model; a ValueError if config.json does not name those of an NLI model."""
    if family.classes is not None:
        return Classes(family.classes[:1], family.classes[1])
    labels = labels_of(config)
    if "entailment" not in labels or len(labels) < 2:
        raise ValueError("id2label in config.json has no label `entailment` beside others")
    supported = labels["entailment"]
    others = tuple(sorted(index for index in labels.values() if index != supported))
    return Classes(others, supported, labels.get("contradiction"))


def signals_of(classes: Classes, logits: Sequence[float]) -> Signals:
    """Read the logits of one claim, or of one token.

    >>> signals_of(Classes((0,), 1), [1.0, 3.0])
    Signals(support=2.0, against=None)

    Raises:
        JudgeError: An output is not finite, or missing.
    """
    every = (*classes.others, classes.supported)
    if max(every) >= len(logits) or not all(math.isfinite(logits[index]) for index in every):
        raise JudgeError(UnjudgedReason.UNREADABLE, "an output of the model is not finite, or missing")
    support = logits[classes.supported] - _log_sum_exp([logits[index] for index in classes.others])
    if classes.contradicted is None:
        return Signals(support)
    rest = [logits[index] for index in every if index != classes.contradicted]
    return Signals(support, logits[classes.contradicted] - _log_sum_exp(rest))


def _log_sum_exp(values: Sequence[float]) -> float:
    """Logarithm of the sum of exponentials."""
    high = max(values)
    return high + math.log(math.fsum(math.exp(value - high) for value in values))


CONFIG, PIECES, WEIGHTS, MANIFEST = "config.json", "tokenizer.json", "model.safetensors", "ragwatch.json"
GRAPHS = ("model.onnx", "onnx/model.onnx")
TEXT_FILES = re.compile(r"README\.md|LICEN[CS]E[\w.-]*|NOTICE[\w.-]*|tokenizer_config\.json|special_tokens_map\.json")
"""Names of files that no judge reads: the licence, the card, and settings for other programs."""
MIN_TOKENS = 64
_MEGABYTE = 1_000_000
_MAX_CONFIG_BYTES = 1 << 20


class DetectorError(RagwatchError):
    """The model is missing or invalid; the message says why, for a person."""


@dataclass(frozen=True, slots=True)
class Detector:
    """The folder of a model."""

    folder: Path
    config: Mapping[str, Any]
    name: Name
    family: Family  # what it reads; `max_tokens` and `window` are those of this model
    classes: Classes
    graph: Path | None  # the ONNX graph; None where the weights are run by torch
    version: str  # eight hexadecimal digits of the hash of family, tokenizer and model


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
        files = [folder / CONFIG, folder / PIECES, model, *data_of(model)]  # which decide what is read
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


def data_of(graph: Path) -> list[Path]:
    """The files beside a graph that hold its weights."""
    return sorted(graph.parent.glob(f"{escape(graph.name)}[._]data*"))


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
