"""Export of the reader: PyTorch -> ONNX -> int8, and the word pieces beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from local_model import Reader
from local_train import PIECES, Coded, Output, tensors
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
UNUSED = "[unused"


class Rows(nn.Module):
    """An embedding in int8 with a scale for each row: one scale for the whole table would blur the small rows.

    Args:
        weight: The table in float32.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-6) / 127
        self.register_buffer("table", torch.round(weight / scale).to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids`, in float32."""
        return self.table[ids].float() * self.scale[ids]


def pruned(reader: Reader, tokenizer: dict[str, Any]) -> tuple[Reader, dict[str, Any]]:
    """Reader and word pieces, ready to export: without pieces that no text has and places that no pair reaches.

    Args:
        reader: As trained.
        tokenizer: The content of its `tokenizer.json`.
    """
    words: dict[str, int] = tokenizer["model"]["vocab"]
    kept = [word for word, _ in sorted(words.items(), key=lambda item: item[1]) if not word.startswith(UNUSED)]
    small = Reader(len(kept), places=PIECES)
    state = reader.state_dict()
    state["words.weight"] = state["words.weight"][[words[word] for word in kept]]
    state["positions.weight"] = state["positions.weight"][:PIECES]
    small.load_state_dict(state)
    small.words = Rows(small.words.weight.detach())
    places = {word: place for place, word in enumerate(kept)}
    fresh = json.loads(json.dumps(tokenizer))
    fresh["model"]["vocab"] = places
    fresh["truncation"] = fresh["padding"] = None
    for token in fresh["added_tokens"]:
        token["id"] = places[token["content"]]
    special = fresh.get("post_processor", {})
    for token in special.get("special_tokens", {}).values():
        token["ids"] = [places[word] for word in token["tokens"]]
    for name in ("sep", "cls"):
        if name in special:
            special[name][1] = places[special[name][0]]
    return small.eval(), fresh


def export(reader: Reader, path: Path) -> None:
    """Write the graph in float32, with batch and length left open."""
    sample = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in INPUTS)
    axes = {name: {0: "batch", 1: "length"} for name in (*INPUTS, "tokens")}
    torch.onnx.export(
        reader,
        sample,
        str(path),
        input_names=list(INPUTS),
        output_names=["verdict", "tokens"],
        dynamic_axes={**axes, "verdict": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )


def quantise(source: Path, target: Path) -> None:
    """Dynamic int8, weights by channel."""
    prepared = source.with_suffix(".prepared.onnx")
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    quantize_dynamic(str(prepared), str(target), weight_type=QuantType.QInt8, per_channel=True)


def run(path: Path, coded: Sequence[Coded], threads: int = 1) -> list[Output]:
    """Read pairs with an exported graph; the order is kept."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    order = sorted(range(len(coded)), key=lambda index: len(coded[index].ids))
    found: dict[int, Output] = {}
    for first in range(0, len(order), 8):
        part = order[first : first + 8]
        feed = dict(zip(INPUTS, (one.numpy() for one in tensors([coded[index] for index in part])), strict=True))
        verdict, marks = (np.asarray(one) for one in session.run(["verdict", "tokens"], feed))
        for place, index in enumerate(part):
            words = marks[place, 1 : coded[index].claim - 1].tolist() or [0.0]
            first_, second, third = (float(one) for one in verdict[place])
            found[index] = Output((first_, second, third), max(words), sum(words) / len(words))
    return [found[index] for index in range(len(coded))]
