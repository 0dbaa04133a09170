"""Runs the model on one CPU thread. The only module that imports onnxruntime, tokenizers and numpy.

Each pair is a batch of its own, `[CLS] claim [SEP] evidence [SEP]`. On one thread larger batches are not faster, need
padding, and change the results, because the int8 scale depends on the whole batch.
"""

import math
import os
from collections.abc import Sequence
from typing import NamedTuple

# Otherwise onnxruntime sends telemetry over the network and stores a device id in the home folder. It reads the
# variable when it is imported; `disable_telemetry_events()` is too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from tokenizers import Tokenizer

from ragwatch.errors import JudgeError
from ragwatch.judges.local.artefact import CLAIM_PIECES, MODEL, PIECES, ArtefactError, ModelArtefact, ModelSignals
from ragwatch.statistics.verdict import UnjudgedReason

_MAX_CHARS_PER_PIECE = 32  # a text is truncated to this for each piece that is read, before it is tokenized
_SPECIAL = ("[CLS]", "[SEP]", "[UNK]")


class TextPair(NamedTuple):
    """Token ids of a claim and of its evidence, and the share of unknown tokens in both, 0 to 1."""

    claim: tuple[int, ...]
    evidence: tuple[int, ...]
    unknown: float

    @property
    def length(self) -> int:
        """Number of tokens, with the three special ones."""
        return len(self.claim) + len(self.evidence) + 3


class PairModel:
    """A model of (claim, evidence) pairs; an ArtefactError if it cannot be loaded, or has unexpected outputs."""

    def __init__(self, artefact: ModelArtefact) -> None:
        self._max_pieces = artefact.max_pieces
        try:
            self._tokenizer = Tokenizer.from_file(str(artefact.folder / PIECES))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            self._session = _open_session(str(artefact.folder / MODEL))
            self._inputs = {node.name for node in self._session.get_inputs()}  # some models have no attention mask
        except Exception as error:  # the libraries' errors share no class but this
            raise ArtefactError(f"its model cannot be opened: {str(error)[:200]}") from error
        ids = [self._tokenizer.token_to_id(name) for name in _SPECIAL]
        if None in ids:
            raise ArtefactError(f"{PIECES} of its model lacks one of {', '.join(_SPECIAL)}")
        self._cls, self._sep, self._unk = (token_id or 0 for token_id in ids)
        try:  # to detect a model with other inputs or outputs
            self.read(self.pairs([("Tea is green.", "Green tea."), ("Tea.", "Tea is green, they say.")]))
        except Exception as error:
            raise ArtefactError(f"its model has unexpected outputs: {str(error)[:200]}") from error

    def pairs(self, texts: Sequence[tuple[str, str]]) -> list[TextPair]:
        """Tokenize claims, each with its evidence."""
        max_chars = self._max_pieces * _MAX_CHARS_PER_PIECE
        # The library rejects lone surrogates, which JSON can hold.
        flat = [text[:max_chars].encode("utf-8", "replace").decode() for pair in texts for text in pair]
        # One by one: `encode_batch` would start a thread for every core of the machine.
        encoded = [self._tokenizer.encode(text, add_special_tokens=False).ids for text in flat]
        return [self._pair(claim, evidence) for claim, evidence in zip(encoded[::2], encoded[1::2], strict=True)]

    def _pair(self, claim: list[int], evidence: list[int]) -> TextPair:
        head = tuple(claim[:CLAIM_PIECES])
        tail = tuple(evidence[: self._max_pieces - len(head) - 3])
        return TextPair(head, tail, (head + tail).count(self._unk) / max(1, len(head) + len(tail)))

    def read(self, pairs: Sequence[TextPair]) -> list[ModelSignals]:
        """Run the model on each pair; a JudgeError if an output is not finite."""
        return [self._run(pair) for pair in pairs]

    def _run(self, pair: TextPair) -> ModelSignals:
        ids = [self._cls, *pair.claim, self._sep, *pair.evidence, self._sep]
        sides = [0] * (len(pair.claim) + 2) + [1] * (len(pair.evidence) + 1)
        rows = {"input_ids": ids, "token_type_ids": sides, "attention_mask": [1] * len(ids)}
        feeds = {name: np.array([row], dtype=np.int64) for name, row in rows.items() if name in self._inputs}
        verdict, tokens = self._session.run(["verdict", "tokens"], feeds)
        return _signals(pair, verdict[0].tolist(), tokens[0].tolist())


def _open_session(path: str) -> onnxruntime.InferenceSession:
    """Open a session on one thread, without spinning and without memory patterns, because lengths vary.

    Graph optimizations are basic: with more fusion, normalisation takes four times as long.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _signals(pair: TextPair, verdict: list[float], tokens: list[float]) -> ModelSignals:
    """Read the outputs: the logits of two verdicts, or of three (the last is "not in context") that exclude another."""
    supported, contradicted, *absent = verdict
    if absent:
        supported, contradicted = (
            supported - _log_add_exp(contradicted, *absent),
            contradicted - _log_add_exp(supported, *absent),
        )
    claim = tokens[1 : len(pair.claim) + 1] or [0.0]
    signals = ModelSignals(
        supported=supported, contradicted=contradicted, worst=max(claim), mean=math.fsum(claim) / len(claim)
    )
    if not all(map(math.isfinite, signals)):
        raise JudgeError(UnjudgedReason.UNREADABLE, "an output of the model is not finite")
    return signals


def _log_add_exp(a: float, b: float) -> float:
    """Logarithm of the sum of two exponentials."""
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high))
