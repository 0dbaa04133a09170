"""Writes the int8 graph of a detector, and compares what both graphs say of built-in texts.

Weights of matrix products (MatMul, Gemm) become int8 with a scale for each column, tables of embeddings int8 with a
scale for each row; activations are quantised as a text is read. Codes of products have seven bits: with eight, sums of
two products overflow 16 bits on processors without VNNI, and the same graph would say other things there. Products with
few columns, which yield the classes, stay as they are: they cost nothing. The rest (norms, softmax, attention) stays
fp32.

The texts show whether a graph is damaged, as that of a DeBERTa may be. Its quality is measured with labels.
"""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ragwatch.judges.detector.artefact import (
    CONFIG,
    GRAPHS,
    MANIFEST,
    PIECES,
    TEXT_FILES,
    Detector,
    DetectorError,
    Name,
    Reads,
    data_of,
    digest_of,
    open_detector,
)
from ragwatch.judges.detector.session import DetectorModel
from ragwatch.judges.lexical.tables import logistic

_MOST_CLASSES = 8  # columns of a product that yields classes
_LEAST_NUMBERS = 4096  # of a table of embeddings; smaller ones gain nothing
_INTEGER_NODES = re.compile(r"MatMulInteger|QLinear|DynamicQuantize|ConvInteger|MatMulNBits|DequantizeLinear")
_NO_LIMIT = 1_000_000  # megabytes

_MUSEUM = (
    "The city museum opens at nine in summer and at ten in winter. Entry costs twelve euros for adults; children under "
    "six are free. It is closed on Mondays and on the first of January."
)
_RETURNS = (
    "Items may be returned within 30 days of delivery if they were not worn. Refunds go to the original card within "
    "five working days. Shipping is not refunded, unless the item was damaged."
)
_BRIDGE = (
    "Maria Keller led the inspection of the Harbour Bridge in 2019; Jonas Lind wrote the report. It found rust on four "
    "of the 22 cables and advised to replace them before 2023."
)
_BLOOD = (
    "Do not eat for eight hours before the test. Water is allowed. Tell the nurse if you take medicine that thins the "
    "blood, and do not stop taking it unless your doctor says so."
)
TEXTS: Sequence[tuple[str, str, str]] = (
    ("When can I visit the museum?", _MUSEUM, "The museum opens at nine in summer."),
    ("What is the entry fee?", _MUSEUM, "Entry costs fifteen euros for adults."),
    ("When can I visit the museum?", _MUSEUM, "It is open every day of the week."),
    ("Do children pay?", _MUSEUM, "Children under six pay nothing."),
    ("How do I return an order?", _RETURNS, "Unworn items can be sent back within 30 days of delivery."),
    ("When do I get my money?", _RETURNS, "Refunds take up to three months."),
    ("Is shipping refunded?", _RETURNS, "Shipping is always refunded."),
    ("How do I return an order?", _RETURNS, "The shop has branches in Oslo and Bergen, where you can leave it."),
    ("Who wrote the report?", _BRIDGE, "Jonas Lind wrote the report on the Harbour Bridge."),
    ("Who wrote the report?", _BRIDGE, "Maria Keller wrote the report after Jonas Lind had led the inspection."),
    ("What did it find?", _BRIDGE, "Four of the 22 cables had rust. The report advised to replace them."),
    ("What did it find?", _BRIDGE, "No rust was found on any cable."),
    ("May I eat before a blood test?", _BLOOD, "You may drink water but should not eat for eight hours."),
    ("What about my medicine?", _BLOOD, "Stop taking medicine that thins the blood a week before the test."),
    ("When do I get the results?", _BLOOD, "The results come by post after two weeks."),
    ("What about my medicine?", _BLOOD, "The nurse should know if you take medicine that thins the blood."),
)
"""Questions, contexts and claims: some follow, some change a value, a name or a negation, some are new."""


class _Said(NamedTuple):
    """What a model says of a text."""

    probabilities: list[float]  # of support for each token of an answer, or of each class; empty if it is too long
    verdict: list[bool]  # whether each class is at least .5; of an answer, whether every token is


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two graphs differ on the texts: probabilities of classes, and verdicts."""

    texts: int  # that the model can read
    most: float
    mean: float
    flips: int  # texts with another verdict
    seconds: tuple[float, float]  # of CPU, before and after


@dataclass(frozen=True, slots=True)
class Quantised:
    """What was made of a graph."""

    sizes: tuple[int, int]  # bytes of the graph with its data, before and after
    products: int  # with int8 weights
    tables: int  # of embeddings in int8
    difference: Difference


def quantise_folder(
    source: Path, target: Path, *, family: Name | None = None, graph: str | None = None, most: float, replace: bool
) -> Quantised:
    """Write the folder `target` with the int8 graph of the detector in `source`, whole or not at all.

    Args:
        source: Folder of a detector with an ONNX graph.
        target: The folder to write.
        family: What the model reads; None to take it from its config.json.
        graph: Name of the graph in `source`; None for the usual ones.
        most: A mean difference of probabilities above it is an error.
        replace: Whether `target` may exist, if this function wrote it.

    Raises:
        DetectorError: The folder has no graph of floating-point numbers that can be run, the graphs differ too much, or
            `target` cannot be written.
    """
    _check_target(source, target, replace=replace)
    before = open_detector(source, family=family, graph=graph, max_megabytes=_NO_LIMIT)
    if before.graph is None:
        raise DetectorError(f"{source} has weights and no ONNX graph; export one first (docs/judges.md)")
    said, seconds = _read(before)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.", suffix=".part") as name:
            folder = Path(name) / target.name
            folder.mkdir()
            counts = _write_graph(before.graph, folder / GRAPHS[0])
            for path in source.iterdir():
                if path.name in (CONFIG, PIECES) or TEXT_FILES.fullmatch(path.name):
                    shutil.copyfile(path, folder / path.name)
            said_after, seconds_after = _read(open_detector(folder, family=before.name, max_megabytes=_NO_LIMIT))
            difference = _difference(said, said_after, (seconds, seconds_after))
            sizes = (_graph_bytes(before.graph), _graph_bytes(folder / GRAPHS[0]))
            made = Quantised(sizes, counts["MatMul"], counts["Gather"], difference)
            if difference.mean > most:
                raise DetectorError(_too_different(difference, most))
            _write_manifest(before, folder, difference)
            if target.exists():
                target.replace(Path(name) / "former")
            folder.replace(target)
    except OSError as error:
        raise DetectorError(f"{error.filename or target}: {error.strerror or error}") from error
    return made


def _check_target(source: Path, target: Path, *, replace: bool) -> None:
    if source.resolve() in (target.resolve(), *target.resolve().parents):
        raise DetectorError(f"{target} is the folder of the model or in it; give a folder of its own")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not replace:
        raise DetectorError(f"{target} exists; give another folder, or replace it with --force")
    try:
        written = json.loads((target / MANIFEST).read_bytes())["quantised"]
    except (OSError, ValueError, KeyError, TypeError):
        written = None
    if written is None:
        raise DetectorError(f"{target} was not written by this command, so that --force does not replace it")


def _read(detector: Detector) -> tuple[list[_Said], float]:
    """What a detector says of each text, and the seconds of CPU that this takes."""
    model = DetectorModel(detector)
    every = list(dict.fromkeys(context for _, context, _ in TEXTS))
    began, said = time.process_time(), []
    for number, (question, context, claim) in enumerate(TEXTS):
        contexts = every if number % 2 else [context]  # short and long inputs
        if detector.family.reads is Reads.ANSWER:
            tokens = [logistic(token.support) for token in model.answer(question, contexts, claim) or ()]
            said.append(_Said(tokens, [min(tokens, default=0.0) >= 0.5]))
        else:
            signals = model.claim("\n".join(contexts), claim) or ()
            classes = [logistic(logit) for logit in signals if logit is not None]
            said.append(_Said(classes, [probability >= 0.5 for probability in classes]))
    return said, time.process_time() - began


def _difference(before: Sequence[_Said], after: Sequence[_Said], seconds: tuple[float, float]) -> Difference:
    pairs = [pair for pair in zip(before, after, strict=True) if pair[0].probabilities]  # else too long for the model
    apart = [
        abs(one - other) for was, now in pairs for one, other in zip(was.probabilities, now.probabilities, strict=True)
    ]
    flips = sum(was.verdict != now.verdict for was, now in pairs)
    return Difference(len(pairs), max(apart), fmean(apart), flips, seconds)


def _too_different(difference: Difference, most: float) -> str:
    return (
        f"the int8 graph differs too much: probabilities by {difference.mean:.3f} in the mean (more than {most:g}), "
        f"{difference.most:.3f} at most; other verdicts on {difference.flips} of {difference.texts} texts. Nothing was "
        "written; run the fp32 graph"
    )


def _write_graph(source: Path, target: Path) -> Counter[str]:
    """Write the int8 graph; returns how many nodes were changed, by their type in `source`."""
    onnx, tools = import_module("onnx"), import_module("onnxruntime.quantization")
    try:
        model = onnx.load(source)
        done = {node.op_type for node in model.graph.node if _INTEGER_NODES.match(node.op_type)}
        counts = Counter() if done else _quantise(onnx, tools, model, target)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # the libraries' errors share no class but this
        raise DetectorError(f"{source.name} cannot be quantised: {str(error)[:200]}") from error
    if done:
        raise DetectorError(f"{source.name} has integer weights already ({min(done)}); give the fp32 graph")
    if not counts["MatMul"]:
        raise DetectorError(f"{source.name} has no matrix products with fp32 weights; export the graph in fp32")
    return counts


def _quantise(onnx: Any, tools: Any, model: Any, target: Path) -> Counter[str]:  # noqa: ANN401 - modules of an extra
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"node_{number}"
    floats = {one.name: one for one in model.graph.initializer if one.data_type == onnx.TensorProto.FLOAT}
    _name_shared_weights(model.graph, floats)
    heads = [node.name for node in model.graph.node if _is_head(node, floats)]
    tables = _quantise_tables(onnx, model.graph, floats)
    # Otherwise it recommends to optimise the graph, which dynamic quantisation does not need.
    model.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    tools.quantize_dynamic(
        model,
        target,
        op_types_to_quantize=["MatMul"],  # and Gemm, which is rewritten as MatMul and Add
        per_channel=True,
        reduce_range=True,
        weight_type=tools.QuantType.QInt8,
        nodes_to_exclude=[*heads, *(f"{name}_MatMul" for name in heads)],
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},  # where a node is not of ONNX itself
    )
    nodes = onnx.load(target, load_external_data=False).graph.node
    return Counter({"Gather": tables, "MatMul": sum(node.op_type == "MatMulInteger" for node in nodes)})


def _name_shared_weights(graph: Any, floats: dict[str, Any]) -> None:  # noqa: ANN401 - a graph of an extra
    """Give products and look-ups the weights themselves, where an Identity stands for weights that layers share.

    They would be quantised as activations are, each time. A Gemm is not changed: its weights are transposed in place.
    """
    transposed = {node.input[1] for node in graph.node if node.op_type == "Gemm"}
    identities = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    shared = {name: of for name, of in identities.items() if of in floats and not transposed & {name, of}}
    for node in graph.node:
        if node.op_type in ("MatMul", "Gather"):
            node.input[:] = [shared.get(name, name) for name in node.input]
    used = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
    for node in [node for node in graph.node if node.output[0] in shared and node.output[0] not in used]:
        graph.node.remove(node)


def _is_head(node: Any, floats: dict[str, Any]) -> bool:  # noqa: ANN401 - nodes of an extra
    """Whether a node is the product that yields the classes."""
    weight = floats.get(node.input[1]) if node.op_type in ("MatMul", "Gemm") else None
    if weight is None or len(weight.dims) != 2:
        return False
    is_transposed = any(field.name == "transB" and field.i for field in node.attribute)
    return bool(weight.dims[0 if is_transposed else 1] <= _MOST_CLASSES)


def _quantise_tables(onnx: Any, graph: Any, floats: dict[str, Any]) -> int:  # noqa: ANN401 - the same
    """Replace each look-up of rows of a large table by one of int8 rows, times their scales; returns their number."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    nodes, count = [], 0
    uses = Counter(name for node in graph.node for name in node.input)
    for node in list(graph.node):
        table = floats.get(node.input[0]) if node.op_type == "Gather" else None
        along_rows = not any(field.name == "axis" and field.i for field in node.attribute)
        if table is None or not along_rows or len(table.dims) != 2 or np.prod(table.dims) < _LEAST_NUMBERS:
            nodes.append(node)
            continue
        values = numpy_helper.to_array(table)
        scales = (np.abs(values).max(axis=1, keepdims=True) / 127).clip(min=1e-12).astype(np.float32)
        codes = np.rint(values / scales).astype(np.int8)
        base, rows = node.output[0], node.input[1]
        for name, array in ((f"{base}_codes", codes), (f"{base}_scales", scales)):
            graph.initializer.append(numpy_helper.from_array(array, name))
            nodes.append(helper.make_node("Gather", [name, rows], [f"{name}_read"], name=f"{name}_read"))
        cast = helper.make_node("Cast", [f"{base}_codes_read"], [f"{base}_floats"], f"{base}_floats", to=1)
        nodes += [cast, helper.make_node("Mul", [f"{base}_floats", f"{base}_scales_read"], [base], name=f"{base}_made")]
        count += 1
        uses[table.name] -= 1
        if not uses[table.name]:
            graph.initializer.remove(table)
    del graph.node[:]
    graph.node.extend(nodes)
    return count


def _graph_bytes(path: Path) -> int:
    """Of a graph, with the data beside it."""
    return sum(file.stat().st_size for file in (path, *data_of(path)))


def _write_manifest(before: Detector, folder: Path, difference: Difference) -> None:
    """Write what the folder holds, and what it was made of; model, commit and licence are those of the source."""
    try:
        former = json.loads((before.folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        former = {}
    assert before.graph is not None  # noqa: S101 - for the type checker
    manifest = {key: former[key] for key in ("model", "commit", "licence") if key in former} | {
        "quantised": {
            "from": digest_of(before.graph),
            "onnxruntime": import_module("onnxruntime").__version__,
            "mean_difference": round(difference.mean, 6),
            "greatest_difference": round(difference.most, 6),
            "other_verdicts": difference.flips,
            "texts": difference.texts,
        },
        "files": {path.name: digest_of(path) for path in sorted(folder.iterdir())},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
