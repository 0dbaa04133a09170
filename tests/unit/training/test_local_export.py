"""Export of the local judge's reader: the graph says what the reader says, and the pieces keep their numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs training/pyproject.toml")
pytest.importorskip("onnx", reason="needs training/pyproject.toml")
pytest.importorskip("safetensors", reason="needs training/pyproject.toml")

import onnxruntime  # type: ignore[import-untyped]  # noqa: E402
from local_export import INPUTS, export, halved, joined, pruned, run  # noqa: E402
from local_model import Reader  # noqa: E402
from local_pairs import SUPPORTED, Pair  # noqa: E402
from local_split import SplitReader, shipped  # noqa: E402
from local_train import PIECES, Coded  # noqa: E402

WORDS = 50
PIECES_OF = ("[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", *(f"word{number}" for number in range(WORDS - 5)))


def a_reader() -> Reader:
    """A reader of few words that nobody taught."""
    torch.manual_seed(3)
    return Reader(WORDS).eval()


def a_tokenizer() -> dict[str, Any]:
    """What of a tokenizer.json holds numbers of pieces."""
    vocabulary = {word: number for number, word in enumerate(PIECES_OF)}
    return {
        "model": {"vocab": vocabulary},
        "truncation": {"max_length": 128},
        "padding": {},
        "added_tokens": [{"id": vocabulary["[SEP]"], "content": "[SEP]"}],
        "post_processor": {"sep": ["[SEP]", vocabulary["[SEP]"]], "cls": ["[CLS]", vocabulary["[CLS]"]]},
    }


def pairs(count: int = 12) -> list[Coded]:
    """Pairs of every length from the shortest to the longest."""
    rng = np.random.default_rng(5)
    pair = Pair("test", "row", "claim", "evidence", SUPPORTED, 0.0, None)
    lengths = np.linspace(4, PIECES, count).astype(int)
    return [Coded(rng.integers(0, WORDS - 1, n).tolist(), max(3, n // 4), [], pair) for n in lengths]


def test_the_graph_says_what_the_reader_says(tmp_path: Path) -> None:
    """Within the noise of int8, for short and for long pairs, once both have the same words."""
    small, _ = pruned(a_reader(), a_tokenizer())
    export(small, tmp_path / "reader.onnx")
    small.words.weight.data = torch.from_numpy(joined(*halved(small.words.weight.detach().numpy())))
    coded = pairs()
    for one, said in zip(coded, run(tmp_path / "reader.onnx", coded), strict=True):
        sides = torch.tensor([[0] * one.claim + [1] * (len(one.ids) - one.claim)])
        ids = torch.tensor([one.ids])
        with torch.inference_mode():
            verdict, marks = small(ids, torch.ones_like(ids), sides)
        words = marks[0, 1 : one.claim - 1]
        assert said.verdict == pytest.approx(verdict[0].tolist(), abs=0.03)
        assert said.most == pytest.approx(words.max().item(), abs=0.1)
        assert said.mean == pytest.approx(words.mean().item(), abs=0.05)


def test_the_graph_is_small(tmp_path: Path) -> None:
    """A byte for each weight of a matrix product, half of one for each of a word; it asks for what the judge gives."""
    reader = a_reader()
    export(reader, tmp_path / "reader.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "reader.onnx"), providers=["CPUExecutionProvider"])
    assert tuple(each.name for each in session.get_inputs()) == INPUTS
    assert [each.name for each in session.get_outputs()] == ["verdict", "tokens"]
    body = sum(value.numel() for name, value in reader.named_parameters() if name.split(".")[0] != "positions")
    words, places = reader.words.weight.numel(), reader.positions.weight.numel()
    assert (tmp_path / "reader.onnx").stat().st_size < 1.02 * (body - words) + words / 2 + 4 * places + 60_000


def test_pieces_keep_their_rows() -> None:
    """A piece that is kept reads as before under its new number; what no text has is gone."""
    reader = a_reader()
    small, fresh = pruned(reader, a_tokenizer())
    found = fresh["model"]["vocab"]
    assert set(found) == set(PIECES_OF) - {"[unused0]"}
    assert sorted(found.values()) == list(range(WORDS - 1))
    for word, number in found.items():
        assert torch.equal(small.words.weight[number], reader.words.weight[PIECES_OF.index(word)])
    assert fresh["added_tokens"][0]["id"] == found["[SEP]"]
    assert fresh["post_processor"] == {"sep": ["[SEP]", found["[SEP]"]], "cls": ["[CLS]", found["[CLS]"]]}
    assert fresh["truncation"] is fresh["padding"] is None
    assert json.loads(json.dumps(fresh)) == fresh


def test_four_bits_keep_a_row_whatever_its_size() -> None:
    """The error of a row is a share of that row, however small it is beside others; a row of nothing stays nothing."""
    rng = np.random.default_rng(2)
    table = (rng.normal(size=(40, 64)) * 10.0 ** rng.integers(-3, 3, size=(40, 1))).astype(np.float32)
    table[7] = 0.0
    codes, scale = halved(table)
    assert (codes.shape, codes.dtype, scale.shape) == ((40, 32), np.uint8, (40, 1))
    error = np.linalg.norm(joined(codes, scale) - table, axis=1)
    assert np.all(error <= 0.13 * np.linalg.norm(table, axis=1))
    assert np.all(joined(codes, scale)[7] == 0.0)


def test_two_heads_say_in_the_graph_what_they_say_in_training(tmp_path: Path) -> None:
    """And what comes back from the graph is the same reader, so that training can go on from what is shipped."""
    torch.manual_seed(4)
    reader = SplitReader(WORDS).eval()
    export(reader, tmp_path / "reader.onnx")
    again, coded = shipped(tmp_path).eval(), pairs(4)
    session = onnxruntime.InferenceSession(str(tmp_path / "reader.onnx"))
    for one in coded:
        sides = [0] * one.claim + [1] * (len(one.ids) - one.claim)
        feed = {"input_ids": np.array([one.ids]), "token_type_ids": np.array([sides])}
        with torch.inference_mode():
            verdict, _ = again(torch.tensor([one.ids]), torch.ones(1, len(one.ids)).long(), torch.tensor([sides]))
        assert session.run(["verdict"], feed)[0][0].tolist() == pytest.approx(verdict[0].tolist(), abs=0.03)
