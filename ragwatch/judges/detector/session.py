"""Runs a graph with onnxruntime, or weights with torch, on one CPU thread; tokenises as the models' own tokenizers do.

Each input is a batch of its own: on one thread larger batches are not faster, need padding, and change the results of
int8 graphs, whose scale depends on the whole batch.
"""

import os
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

# Otherwise onnxruntime sends telemetry and stores a device id in the home folder; it reads this when it is imported.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from tokenizers import Encoding, Tokenizer

from ragwatch.judges.detector.artefact import PIECES, WEIGHTS, Detector, DetectorError, Reads, Signals, signals_of

_MAX_CHARS_PER_TOKEN = 32  # a text is truncated to this for each token that may be read, before it is tokenised
_MAX_QUESTION_CHARS = 1000


class Runner(Protocol):
    """Computes the logits of one input."""

    def logits(self, inputs: dict[str, list[int]]) -> list[list[float]]:
        """The logits of each token, or a single row for the whole input."""


class TokenSignal(NamedTuple):
    """What a model says of one token of the answer.

    Its offsets are those of the answer, its logit says that it is supported.
    """

    start: int
    end: int
    support: float


class OnnxRunner:
    """A graph with an input `input_ids` and logits as its first output."""

    def __init__(self, path: str) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415 - torch needs none; ships no types

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_mem_pattern = False  # lengths vary
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._output = self._session.get_outputs()[0].name

    def logits(self, inputs: dict[str, list[int]]) -> list[list[float]]:
        """See `Runner`. A decoder starts with token 0, as T5 does."""
        rows = inputs | {"decoder_input_ids": [0]}
        feeds = {name: np.array([row], dtype=np.int64) for name, row in rows.items() if name in self._inputs}
        (logits,) = self._session.run([self._output], feeds)
        return np.atleast_2d(np.asarray(logits, dtype=np.float64)[0]).tolist()  # type: ignore[no-any-return]


_FLAN_T5_BASE = {
    "vocab_size": 32128,
    "d_model": 768,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 12,
    "num_heads": 12,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
}


class TorchRunner:
    """A model of `transformers`, with its own classes, where there is no graph; no code of the folder is run.

    HHEM has no class there: it is the encoder of FLAN-T5-base with a head, whose first token is read.
    """

    def __init__(self, detector: Detector) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read on import: nothing is looked up
        self._torch = import_module("torch")
        self._torch.set_num_threads(1)
        self._model = _model(detector).eval()
        self._takes_types = (detector.config.get("type_vocab_size") or 0) > 1
        self._decodes = detector.name == "minicheck_t5"

    def logits(self, inputs: dict[str, list[int]]) -> list[list[float]]:
        """See `Runner`. A decoder starts with token 0, as T5 does."""
        left_out = () if self._takes_types else ("token_type_ids",)
        feeds = {name: self._torch.tensor([row]) for name, row in inputs.items() if name not in left_out}
        if self._decodes:
            feeds["decoder_input_ids"] = self._torch.zeros((1, 1), dtype=self._torch.long)
        with self._torch.inference_mode():
            logits = self._model(**feeds).logits[0].double()
        return logits.reshape(-1, logits.shape[-1]).tolist()  # type: ignore[no-any-return]


def _model(detector: Detector) -> Any:  # noqa: ANN401 - the library's classes are chosen at run time
    transformers = import_module("transformers")
    if detector.name == "hhem":
        return _hhem(detector, transformers)
    loads = {
        "minicheck_t5": transformers.AutoModelForSeq2SeqLM,
        Reads.ANSWER: transformers.AutoModelForTokenClassification,
    }
    kind = (
        loads.get(detector.name) or loads.get(detector.family.reads) or transformers.AutoModelForSequenceClassification
    )
    return kind.from_pretrained(detector.folder, local_files_only=True, use_safetensors=True)


def _hhem(detector: Detector, transformers: Any) -> Any:  # noqa: ANN401 - as above
    sizes = {key: detector.config[key] for key in _FLAN_T5_BASE if key in detector.config}
    model = transformers.T5ForTokenClassification(transformers.T5Config(**_FLAN_T5_BASE | sizes, num_labels=2))
    weights = import_module("safetensors.torch").load_file(detector.folder / WEIGHTS)
    state = {name.removeprefix("t5."): value for name, value in weights.items()}
    tied = ("transformer.shared.weight", "transformer.encoder.embed_tokens.weight")  # a file may hold one of both
    words = next(state[name] for name in tied if name in state)
    model.load_state_dict(dict.fromkeys(tied, words) | state)
    return model


class DetectorModel:
    """A detector that reads claims, or answers; a DetectorError if it cannot be opened, or has unexpected outputs."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._family = detector.family
        try:
            self._tokenizer = Tokenizer.from_file(str(detector.folder / PIECES))
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            specials = [token.content for token in self._tokenizer.get_added_tokens_decoder().values() if token.special]
            # A text that holds one of these would speak as the template does.
            self._specials = re.compile("|".join(map(re.escape, specials)) or r"(?!)")
            self._runner = _runner(detector)
            self._try()
        except ImportError:
            raise
        except Exception as error:  # the libraries' errors share no class but this
            raise DetectorError(f"its model cannot be run: {str(error)[:200]}") from error

    def _try(self) -> None:
        """Read once, to detect a model with other inputs or outputs."""
        if self._family.reads is Reads.ANSWER:
            self.answer("Which?", ["Tea is green."], "Tea.")
        else:
            self.claim("Tea is green.", "Tea is green, they say.")

    def ends(self, text: str) -> list[int]:
        """Offsets after each token of a text."""
        return [end for _, end in self._tokenizer.encode(self._plain(text), add_special_tokens=False).offsets]

    def claim(self, context: str, claim: str) -> Signals | None:
        """Read a claim against a window of the contexts; None if it is too long for the model."""
        family, (context, claim) = self._family, (self._plain(context), self._plain(claim))
        if family.reads is Reads.PAIR:
            encoding = self._tokenizer.encode(context, claim)
        else:
            encoding = self._tokenizer.encode(family.template.format(context=context, claim=claim))
        if len(encoding) > family.max_tokens:
            return None
        return signals_of(self._detector.classes, self._logits(encoding)[0])

    def answer(self, question: str | None, contexts: Sequence[str], answer: str) -> list[TokenSignal] | None:
        """Read an answer against a window of the contexts: its tokens; None if it is too long for the model."""
        family = self._family
        if len(answer) > family.max_tokens * _MAX_CHARS_PER_TOKEN:
            return None
        passages = [
            family.passage.format(number=number, text=self._plain(text)) for number, text in enumerate(contexts, 1)
        ]
        asked = self._plain(question or "")[:_MAX_QUESTION_CHARS]
        template = family.template if asked else family.without_question
        prompt = template.format(question=asked, count=len(passages), context="\n".join(passages))
        encoding = self._tokenizer.encode(prompt, self._plain(answer))
        if len(encoding) > family.max_tokens:
            return None
        logits = self._logits(encoding)
        if len(logits) != len(encoding):
            raise ValueError(f"{len(logits)} rows of logits instead of one for each of {len(encoding)} tokens")
        return [
            TokenSignal(start, end, signals_of(self._detector.classes, row).support)
            for (start, end), side, row in zip(encoding.offsets, encoding.sequence_ids, logits, strict=True)
            if side == 1 and end > start
        ]

    def _logits(self, encoding: Encoding) -> list[list[float]]:
        return self._runner.logits(
            {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
        )

    def _plain(self, text: str) -> str:
        """A text of the same length without special tokens, and without lone surrogates, which the library rejects."""
        text = text.encode("utf-8", "replace").decode()
        return self._specials.sub(lambda match: " " * len(match[0]), text)


def _runner(detector: Detector) -> Runner:
    if detector.graph is not None:
        return OnnxRunner(str(detector.graph))
    return TorchRunner(detector)
