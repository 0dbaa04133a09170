"""`ragwatch detector quantise`: the int8 graph says what the fp32 graph says, and a folder is whole or not there."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.detector_pairs import PAIRS
from support.kit import a_judge_context

from ragwatch.commands import cli
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.judges.detector.artefact import Name, digest_of, open_detector
from ragwatch.judges.detector.judge import Options, build
from ragwatch.judges.detector.quantise import quantise_folder
from ragwatch.judges.detector.session import DetectorModel
from ragwatch.judges.lexical.tables import logistic

DATA = Path(__file__).parents[2] / "data" / "detector"
MODELS: tuple[Name, ...] = ("nli", "lettucedetect", "minicheck_deberta", "hhem")


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["detector", "quantise", *map(str, arguments)])


def test_without_the_extra_the_command_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The judge's own extra does not bring `onnx`."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    error = run(DATA / "nli", tmp_path / "out").exception
    assert isinstance(error, ConfigError)
    assert "pip install 'ragwatch-exporter[quantise]'" in str(error)


def probabilities(folder: Path, name: Name) -> list[float]:
    """What a model says of texts that are none of those built in."""
    model = DetectorModel(open_detector(folder, family=name, max_megabytes=1))
    if name == "lettucedetect":
        read = [model.answer(pair.question, [pair.context], pair.claim) or [] for pair in PAIRS[:20]]
        return [logistic(token.support) for tokens in read for token in tokens]
    claims = [model.claim(pair.context, pair.claim) for pair in PAIRS[:60]]
    return [logistic(signals.support) for signals in claims if signals is not None]


@pytest.mark.costly
@pytest.mark.parametrize("name", MODELS)
def test_an_int8_graph_says_what_its_original_says(name: Name, tmp_path: Path) -> None:
    """Of every architecture, on other texts too: RoBERTa, ModernBERT, DeBERTa-v3, T5."""
    onnx = pytest.importorskip("onnx", reason="needs the extra quantise")
    made = quantise_folder(DATA / name, tmp_path / "out", family=name, most=0.05, replace=False)
    pairs = list(zip(probabilities(DATA / name, name), probabilities(tmp_path / "out", name), strict=True))
    assert max(abs(one - other) for one, other in pairs) < 0.1
    assert 0.0 < made.difference.mean < 0.02
    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    assert made.products == sum(node.op_type == "MatMulInteger" for node in graph.node) >= 9
    # The classes are fp32; of the weights of layers and of the words, none is.
    floats = [each for each in graph.initializer if each.data_type == onnx.TensorProto.FLOAT and len(each.dims) == 2]
    assert all(min(each.dims) <= 3 or each.dims[0] == 64 for each in floats), [each.dims for each in floats]


def test_a_folder_has_what_a_judge_and_a_person_need(tmp_path: Path) -> None:
    """Tokenizer, licence, card and origin come along; the digests are those of the new files; a judge runs it."""
    pytest.importorskip("onnx", reason="needs the extra quantise")
    source, out = shutil.copytree(DATA / "nli", tmp_path / "model"), tmp_path / "deep" / "out"
    (source / "LICENSE").write_text("MIT", encoding="utf-8")
    (source / "pytorch_model.bin").write_bytes(b"pickle")
    files = {path.name: digest_of(path) for path in source.iterdir()}
    manifest = {"model": "a/b", "commit": "c" * 40, "licence": "mit", "files": files}
    (source / "ragwatch.json").write_text(json.dumps(manifest), encoding="utf-8")
    before = {path.name: path.read_bytes() for path in source.iterdir()}
    done = run(source, out)
    assert done.exit_code == 0, done.output
    for words in ("graph: 0.1 MB, as int8 0.1 MB (13 matrix products, 2 tables)", "other verdicts on 0 of", "estimate"):
        assert words in done.stderr
    assert {path.name: path.read_bytes() for path in source.iterdir()} == before
    assert {path.name for path in out.iterdir()} == {
        *("LICENSE", "config.json", "model.onnx", "ragwatch.json", "tokenizer.json")
    }
    written = json.loads((out / "ragwatch.json").read_bytes())
    assert (written["model"], written["commit"], written["licence"]) == ("a/b", "c" * 40, "mit")
    assert written["quantised"]["from"] == files["model.onnx"]
    assert written["files"] == {path.name: digest_of(path) for path in out.iterdir() if path.name != "ragwatch.json"}
    judge = build(Options(model=out), name="reader", context=a_judge_context())
    assert judge.fallback is None
    (out / "model.onnx").write_bytes(b"other")
    assert "is not the file" in str(build(Options(model=out), name="reader", context=a_judge_context()).fallback)


def test_a_folder_is_replaced_only_if_the_command_wrote_it(tmp_path: Path) -> None:
    """--force does not delete the folder of something else."""
    pytest.importorskip("onnx", reason="needs the extra quantise")
    out = tmp_path / "out"
    assert run(DATA / "nli", out).exit_code == 0
    assert "out exists" in str(run(DATA / "nli", out).exception)
    (out / "notes.txt").touch()
    assert run(DATA / "nli", out, "--force").exit_code == 0
    assert not (out / "notes.txt").exists()
    (out / "ragwatch.json").unlink()
    assert "was not written by this command" in str(run(DATA / "nli", out, "--force").exception)
    assert (out / "model.onnx").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def without_graph(folder: Path) -> None:
    """Leave weights alone."""
    (folder / "model.onnx").rename(folder / "model.safetensors")


def without_matrices(folder: Path) -> None:
    """Write a graph that returns numbers of the input."""
    onnx = pytest.importorskip("onnx", reason="needs the extra quantise")
    helper, kind = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["floats"], to=kind.FLOAT),
        helper.make_node("Slice", ["floats", "from", "to", "axis"], ["logits"]),
    ]
    values = {"from": 0, "to": 3, "axis": 1}
    numbers = [onnx.numpy_helper.from_array(np.array([value]), name) for name, value in values.items()]
    shapes = [("input_ids", kind.INT64), ("logits", kind.FLOAT)]
    first, last = (helper.make_tensor_value_info(name, of, [1, None]) for name, of in shapes)
    graph = helper.make_graph(nodes, "g", [first], [last], numbers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())


REFUSED = {
    "weights alone": (without_graph, (), "has weights and no ONNX graph; export one first"),
    "a damaged graph": (lambda folder: (folder / "model.onnx").write_bytes(b"?"), (), "its model cannot be run"),
    "no matrices": (without_matrices, (), "no matrix products with fp32 weights"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), (), "tokenizer.json of its model cannot be"),
    "too different": (Path.stat, ("--tolerance", "0"), "differs too much: probabilities by 0.00"),
    "a family": (Path.stat, ("--family", "other"), "--family: 'other' is unknown; write one of: lettuce"),
    "a graph that is not there": (Path.stat, ("--graph", "x.onnx"), "has none of x.onnx"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_refused_leaves_nothing(fault: str, tmp_path: Path) -> None:
    """One line says why; no folder is half there."""
    pytest.importorskip("onnx", reason="needs the extra quantise")
    source = shutil.copytree(DATA / "nli", tmp_path / "model")
    change, options, why = REFUSED[fault]
    change(source)
    error = run(source, tmp_path / "out", *options).exception
    assert isinstance(error, RagwatchError), error
    assert why in str(error)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_int8_graph_is_not_quantised_again(tmp_path: Path) -> None:
    """Nor is the folder of a model its own target."""
    pytest.importorskip("onnx", reason="needs the extra quantise")
    assert run(DATA / "nli", tmp_path / "out").exit_code == 0
    assert "has integer weights already" in str(run(tmp_path / "out", tmp_path / "again").exception)
    for inside in ("", "int8"):
        error = run(tmp_path / "out", tmp_path / "out" / inside, "--force").exception
        assert "is the folder of the model or in it" in str(error)


def test_a_graph_becomes_a_quarter(tmp_path: Path) -> None:
    """Layers and table of words alike, where both are large beside the nodes; weights in a file of their own too."""
    onnx = pytest.importorskip("onnx", reason="needs the extra quantise")
    source = shutil.copytree(DATA / "nli", tmp_path / "model")
    chance = np.random.default_rng(7)
    kind, helper = onnx.TensorProto, onnx.helper

    def weight(name: str, *shape: int) -> object:
        values = chance.standard_normal(shape).astype(np.float32) * 0.1
        return onnx.numpy_helper.from_array(values, name)

    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["states"]),
        helper.make_node("MatMul", ["states", "wide"], ["inner"]),
        helper.make_node("Tanh", ["inner"], ["bent"]),
        helper.make_node("ReduceMean", ["bent"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("Gemm", ["mean", "classes"], ["logits"]),
    ]
    weights = [weight("words", 4000, 128), weight("wide", 128, 1024), weight("classes", 1024, 3)]
    ends = [("input_ids", kind.INT64, [1, None]), ("logits", kind.FLOAT, [1, 3])]
    first, last = (helper.make_tensor_value_info(*end) for end in ends)
    graph = helper.make_graph(nodes, "g", [first], [last], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(
        model, source / "model.onnx", save_as_external_data=True, location="model.onnx_data", size_threshold=100
    )
    made = quantise_folder(source, tmp_path / "out", most=0.02, replace=False)
    assert (made.products, made.tables) == (1, 1)
    assert 0.25 < made.sizes[1] / made.sizes[0] < 0.28
    assert made.sizes[0] > 2_000_000
