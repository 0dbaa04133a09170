"""Export of the reader: PyTorch -> an int8 graph of ONNX, and the word pieces beside it.

The graph is written node by node in the operators that onnxruntime fuses to, so that what runs is what is written here,
whatever the version: one matrix product for queries, keys and values, and normalisation after a plain addition (the
fused operator of onnxruntime 1.31 takes four times as long). It reads one pair, not several: then nothing is padded,
nothing masked, and the scale of int8 is each pair's own. Weights of matrix products are int8 by column, embeddings of
words four bits by row: half of all weights, and the heads rank as well with them.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read while onnxruntime is imported; else it reports to its maker

import numpy as np
import onnx
import onnxruntime
import torch
from local_model import EPSILON, HEADS, LAYERS, WIDTH, Reader
from local_train import PIECES, Coded, Output
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

INPUTS = ("input_ids", "token_type_ids")
UNUSED = "[unused"
FUSED = "com.microsoft"
OPSET, IR = 17, 8
MIDDLE, SHRUNK = 8, (1.0, 0.95, 0.9, 7 / 8, 0.85, 0.8, 0.75)
"""Code of zero in four bits; parts of a row's range that are tried as the range of its codes.

With 7 / 8 among them a table that was in four bits before stays as it is.
"""

Array = NDArray[Any]


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


def halved(table: Array) -> tuple[Array, Array]:
    """A table in four bits: (two codes a byte, the left half of a row in the low bits; a scale for each row).

    A row's range is cut a little where that brings the whole row nearer.
    """
    whole = np.abs(table).max(axis=1, keepdims=True).clip(min=1e-6) / (MIDDLE - 1)
    scale, least = whole, np.full_like(whole, np.inf)
    for part in SHRUNK:
        codes = np.rint(table / (whole * part)).clip(-MIDDLE, MIDDLE - 1)
        error = ((codes * whole * part - table) ** 2).sum(axis=1, keepdims=True)
        scale, least = np.where(error < least, whole * part, scale), np.minimum(error, least)
    codes = (np.rint(table / scale).clip(-MIDDLE, MIDDLE - 1) + MIDDLE).astype(np.uint8)
    left, right = np.split(codes, 2, axis=1)
    return left + 16 * right, scale.astype(np.float32)


def joined(codes: Array, scale: Array) -> Array:
    """The table that `halved` made small, as the graph reads it."""
    found: Array = (np.concatenate((codes % 16, codes // 16), axis=1).astype(np.float32) - MIDDLE) * scale
    return found


def coarsen(reader: Reader) -> None:
    """Give a reader the words that its exported graph will have, so that what it learns next fits them."""
    with torch.no_grad():
        table = reader.get_parameter("words.weight")
        table.copy_(torch.from_numpy(joined(*halved(table.numpy()))))


class _Graph:
    """Nodes and constants, written one after the other.

    Args:
        state: Weights of the reader, by their names.
    """

    def __init__(self, state: Mapping[str, Array]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.state = state

    def op(self, kind: str, *inputs: str, out: str = "", domain: str = "", outputs: int = 1, **attributes: Any) -> str:  # noqa: ANN401 - as ONNX
        """Write a node; the name of its (first) output."""
        name = out or f"{kind}_{len(self.nodes)}"
        names = [name, *(f"{name}.{number}" for number in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, inputs, names, name=name, domain=domain, **attributes))
        return name

    def constant(self, name: str, value: Array) -> str:
        """Name of a constant; it is kept once."""
        self.constants.setdefault(name, numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def number(self, value: float) -> str:
        """A number in float32."""
        return self.constant(f"number {value:g}", np.array(value, dtype=np.float32))

    def places(self, *values: int) -> str:
        """Whole numbers: places, axes, a shape."""
        return self.constant(f"places {values}", np.array(values, dtype=np.int64))

    def weight(self, *names: str) -> tuple[str, str, str]:
        """(int8 weight, scale of each column, bias) of linear layers that read the same, side by side."""
        value = np.concatenate([self.state[f"{name}.weight"].T for name in names], axis=1)
        bias = np.concatenate([self.state[f"{name}.bias"] for name in names])
        scale = np.abs(value).max(axis=0).clip(min=1e-9) / 127
        codes = np.rint(value / scale).astype(np.int8)
        base = names[0]
        return (
            self.constant(f"{base}.codes", codes),
            self.constant(f"{base}.scale", scale.astype(np.float32)),
            self.constant(f"{base}.bias", bias),
        )

    def linear(self, name: str, states: str) -> str:
        """A linear layer in int8."""
        codes, scale, bias = self.weight(name)
        return self.op("DynamicQuantizeMatMul", states, codes, scale, "", bias, domain=FUSED)

    def norm(self, name: str, states: str) -> str:
        """Layer normalisation."""
        parts = [self.constant(f"{name}.{part}", self.state[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self.op("LayerNormalization", states, *parts, axis=-1, epsilon=EPSILON)

    def embedded(self) -> str:
        """States of words, places and sides, before the first layer."""
        codes, scale = halved(self.state["words.weight"])
        table, scales = self.constant("words.codes", codes), self.constant("words.scale", scale)
        both = self.op("Cast", self.op("Gather", table, "input_ids"), to=TensorProto.FLOAT)
        right = self.op("Floor", self.op("Mul", both, self.number(1 / 16)))
        left = self.op("Sub", both, self.op("Mul", right, self.number(16)))
        centred = self.op("Sub", self.op("Concat", left, right, axis=2), self.number(MIDDLE))
        words = self.op("Mul", centred, self.op("Gather", scales, "input_ids"))
        length = self.op("Shape", "input_ids", start=1, end=2)
        table = self.constant("positions", self.state["positions.weight"])
        places = self.op("Slice", table, self.places(0), length)
        sides = self.op("Gather", self.constant("segments", self.state["segments.weight"]), "token_type_ids")
        return self.norm("norm", self.op("Add", self.op("Add", words, places), sides))

    def layer(self, name: str, states: str) -> str:
        """A transformer layer."""
        codes, scale, bias = self.weight(*(f"{name}.{part}" for part in ("query", "key", "value")))
        zero = self.constant("no shift", np.zeros(3 * WIDTH, dtype=np.int8))
        read = self.op("DynamicQuantizeLinear", states, outputs=3)
        given = (read, codes, bias, f"{read}.1", scale, "", f"{read}.2", zero)
        read = self.op("QAttention", *given, domain=FUSED, num_heads=HEADS)
        states = self.norm(f"{name}.norm_attention", self.op("Add", states, self.linear(f"{name}.out", read)))
        inner = self.op("Gelu", self.linear(f"{name}.up", states), domain=FUSED)
        return self.norm(f"{name}.norm_out", self.op("Add", states, self.linear(f"{name}.down", inner)))

    def heads(self, states: str) -> None:
        """Logits of the verdict, from the first piece and the means of claim and evidence; logits of the pieces."""
        column = self.constant("tokens.weight", self.state["tokens.weight"][0])
        bias = self.constant("tokens.bias", self.state["tokens.bias"])
        self.op("Add", self.op("MatMul", states, column), bias, out="tokens")
        sides = self.op("Cast", self.op("Unsqueeze", "token_type_ids", self.places(1)), to=TensorProto.FLOAT)
        both = self.op("Concat", self.op("Sub", self.number(1), sides), sides, axis=1)
        count = self.op("Max", self.op("ReduceSum", both, self.places(2), keepdims=1), self.number(1))
        means = self.op("Div", self.op("MatMul", both, states), count)
        first = self.op("Gather", states, self.places(0), axis=1)
        pooled = self.op("Reshape", self.op("Concat", first, means, axis=1), self.places(0, 3 * WIDTH))
        hidden = self.op("Gelu", self.linear("hidden", pooled), domain=FUSED)
        bias = self.constant("verdict.bias", self.state["verdict.bias"])
        rows = self.state["verdict.weight"]
        if len(rows) == 3:
            logits = self.op("MatMul", hidden, self.constant("verdict.weight", rows.T))
        else:  # each logit has a part of the hidden layer to itself
            parts = self.op("Reshape", hidden, self.places(0, len(rows), WIDTH))
            shares = self.op("Mul", parts, self.constant("verdict.weight", rows))
            logits = self.op("ReduceSum", shares, self.places(2), keepdims=0)
        self.op("Add", logits, bias, out="verdict")


def export(reader: Reader, path: Path) -> None:
    """Write the graph: a pair `[CLS] claim [SEP] evidence [SEP]` in, `verdict` [1, 3] and `tokens` [1, length] out.

    A reader with two heads (`local_split.SplitReader`) has two logits of a verdict: of support, and of contradiction.
    """
    graph = _Graph({name: value.detach().float().numpy() for name, value in reader.state_dict().items()})
    states = graph.embedded()
    for number in range(LAYERS):
        states = graph.layer(f"layers.{number}", states)
    graph.heads(states)
    ins = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "length"]) for name in INPUTS]
    outs = [
        helper.make_tensor_value_info("verdict", TensorProto.FLOAT, [1, len(reader.get_parameter("verdict.bias"))]),
        helper.make_tensor_value_info("tokens", TensorProto.FLOAT, [1, "length"]),
    ]
    made = helper.make_graph(graph.nodes, "reader", ins, outs, list(graph.constants.values()))
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)]
    onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=IR, producer_name="ragwatch"), str(path))


def run(path: Path, coded: Sequence[Coded], threads: int = 1) -> list[Output]:
    """Read pairs with an exported graph; the order is kept."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    found = []
    for one in coded:
        sides = [0] * one.claim + [1] * (len(one.ids) - one.claim)
        feed = {name: np.array([each], dtype=np.int64) for name, each in zip(INPUTS, (one.ids, sides), strict=True)}
        verdict, marks = session.run(["verdict", "tokens"], feed)
        words = marks[0, 1 : one.claim - 1].tolist() or [0.0]
        first, second, third = verdict[0].tolist()
        found.append(Output((first, second, third), max(words), sum(words) / len(words)))
    return found
