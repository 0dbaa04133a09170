"""Runs weights with `transformers` and torch, where there is no ONNX graph; on one CPU thread.

The classes of `transformers` are used, and no code of the folder is run. HHEM has no class there: it is the encoder of
FLAN-T5-base with a head, whose first token is read.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from ragwatch.judges.detector.artefact import WEIGHTS, Detector
from ragwatch.judges.detector.families import Reads

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
    """A model of `transformers`. It is a `session.Runner`."""

    def __init__(self, detector: Detector) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read on import: nothing is looked up
        self._torch = import_module("torch")
        self._torch.set_num_threads(1)
        self._model = _model(detector).eval()
        self._takes_types = (detector.config.get("type_vocab_size") or 0) > 1
        self._decodes = detector.name == "minicheck_t5"

    def logits(self, inputs: dict[str, list[int]]) -> list[list[float]]:
        """See `session.Runner`. A decoder starts with token 0, as T5 does."""
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
