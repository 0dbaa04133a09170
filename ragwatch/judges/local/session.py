"""Session: the model itself, on one CPU thread. The only module that imports onnxruntime, tokenizers and numpy.

A pair goes in as `[CLS] claim [SEP] evidence [SEP]`, alone: on one thread several together are no faster and would have
to be padded, and int8 has its scale from all that is read at once: what is said of a pair would hang on its company.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

# Else onnxruntime reports to its maker over the network and keeps a device id in the home folder. It looks once, while
# it is imported; `disable_telemetry_events()` comes too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from tokenizers import Tokenizer

from ragwatch.core.verdict import UnjudgedReason
from ragwatch.errors import JudgeError
from ragwatch.judges.local.artefact import CLAIM_PIECES, MODEL, PIECES, ArtefactError, ModelArtefact
from ragwatch.judges.local.fusion import ModelSignals

_CHARS_A_PIECE = 32  # of a text, no more than this for each piece that is read is cut into pieces at all
_SPECIAL = ("[CLS]", "[SEP]", "[UNK]")


class TextPair(NamedTuple):
    """A claim and its evidence in word pieces.

    Attributes:
        claim: Numbers of the claim's pieces.
        evidence: Those of the evidence.
        unknown: Share of all these pieces that stand for words which the vocabulary does not know, 0 to 1.
    """

    claim: tuple[int, ...]
    evidence: tuple[int, ...]
    unknown: float

    @property
    def length(self) -> int:
        """Pieces in all, with the three that are ours."""
        return len(self.claim) + len(self.evidence) + 3


class PairModel:
    """A model over (claim, evidence) pairs.

    Args:
        artefact: What training ships.

    Raises:
        ArtefactError: It cannot be run, or does not answer as it should.
    """

    def __init__(self, artefact: ModelArtefact) -> None:
        self._most = artefact.max_pieces
        try:
            self._pieces = Tokenizer.from_file(str(artefact.folder / PIECES))
            self._pieces.no_truncation()
            self._pieces.no_padding()
            self._session = _opened(str(artefact.folder / MODEL))
            self._asked = {each.name for each in self._session.get_inputs()}  # some want a mask, with nothing to mask
        except Exception as error:  # the libraries' errors share no class but this
            raise ArtefactError(f"its model cannot be opened: {str(error)[:200]}") from error
        numbers = [self._pieces.token_to_id(name) for name in _SPECIAL]
        if None in numbers:
            raise ArtefactError(f"{PIECES} of its model lacks one of {', '.join(_SPECIAL)}")
        self._cls, self._sep, self._unk = (number or 0 for number in numbers)
        self._try()

    def _try(self) -> None:
        """Read something, so that a model of another shape is found out before it is relied upon."""
        try:
            self.read(self.pairs([("Tea is green.", "Green tea."), ("Tea.", "Tea is green, they say.")]))
        except Exception as error:
            raise ArtefactError(f"its model does not answer as it should: {str(error)[:200]}") from error

    def pairs(self, texts: Sequence[tuple[str, str]]) -> list[TextPair]:
        """Claims, each with its evidence, in word pieces."""
        most = self._most * _CHARS_A_PIECE
        # Half a character (a lone surrogate, which JSON can hold) is no text to the library.
        flat = [text[:most].encode("utf-8", "replace").decode() for both in texts for text in both]
        # One by one: `encode_batch` would start a thread for every core of the machine.
        found = [self._pieces.encode(text, add_special_tokens=False).ids for text in flat]
        return [self._pair(claim, evidence) for claim, evidence in zip(found[::2], found[1::2], strict=True)]

    def _pair(self, claim: list[int], evidence: list[int]) -> TextPair:
        head = tuple(claim[:CLAIM_PIECES])
        tail = tuple(evidence[: self._most - len(head) - 3])
        return TextPair(head, tail, (head + tail).count(self._unk) / max(1, len(head) + len(tail)))

    def read(self, pairs: Sequence[TextPair]) -> list[ModelSignals]:
        """What the model says of each pair.

        Raises:
            JudgeError: It says what is no number.
        """
        return [self._run(pair) for pair in pairs]

    def _run(self, pair: TextPair) -> ModelSignals:
        ids = [self._cls, *pair.claim, self._sep, *pair.evidence, self._sep]
        sides = [0] * (len(pair.claim) + 2) + [1] * (len(pair.evidence) + 1)
        rows = {"input_ids": ids, "token_type_ids": sides, "attention_mask": [1] * len(ids)}
        feeds = {name: np.array([row], dtype=np.int64) for name, row in rows.items() if name in self._asked}
        verdict, tokens = self._session.run(["verdict", "tokens"], feeds)
        return _signals(pair, verdict[0].tolist(), tokens[0].tolist())


def _opened(path: str) -> Any:  # noqa: ANN401 - the library ships no types
    """A session on one thread that waits without spinning, and plans no memory for lengths that may not come again.

    The graph runs as it was written: where onnxruntime fuses more of it, normalisation takes four times as long.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _signals(pair: TextPair, verdict: list[float], tokens: list[float]) -> ModelSignals:
    supported, contradicted, absent = verdict
    claim = tokens[1 : len(pair.claim) + 1] or [0.0]
    found = ModelSignals(
        supported=supported - _either(contradicted, absent),
        contradicted=contradicted - _either(supported, absent),
        worst=max(claim),
        mean=math.fsum(claim) / len(claim),
    )
    if not all(map(math.isfinite, found)):
        raise JudgeError(UnjudgedReason.UNREADABLE, "the model says what is no number")
    return found


def _either(one: float, other: float) -> float:
    """Logarithm of the sum of two exponentials."""
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high))
