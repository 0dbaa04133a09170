"""Writes tests/data/local: a model of a few kilobytes with the inputs and outputs of the real one, for tests.

Its weights are constructed, not trained: a token of a claim is supported if the evidence holds the same token, and a
negation on one side only is a contradiction. Tests can therefore predict its output. Needs the package `onnx`:

    pip install onnx && python tools/tiny_reader.py
"""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "local"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
DENIALS = ("not", "no", "never", "without", "nobody")
WORDS = """
a about above after again all also an and any are as at be because been before below but by can cannot could did do
does every few first for forty four from had has have he her his how i if in into is it its later less many may more
most much must near new nine of off old on one only open opens or our out over please she should since so some such
ten than that the their them then there these they this those three to too twelve two under until up use used was we
were what when where which while who why will with would year years you your zero
adults answer black boils bells bird birds book books born bridge bright brown builds built burns cat cats city
closes coffee cold costs cross dark day days director dog dogs door drinks dry early east eat eats eleven engine
entry euro euros farm ferry field fire fish five flat full garden gardens glass goes gold grass great green grow
grows harbour hill hills home hot hour hours house hundred hunt iron island kettle king lake lamp land lane large
late lawyer leaves light lion lions lisbon london long market mill minutes moon morning mountain moves museum museums
music name need night north northern owl paid painted paper parked people pier plane plant plants purr rain red
regular repair river road roof room rooms round school sea seven ship ships short shows six sky sleep small snow
south stands star stone street summer summers sun sun table tea tells thousand tickets tomato tomatoes town train
trains tree trees wall wants warm watch watches water watering weeks west wheel white wide wind winter wood word
words works yellow young zebra zebras
claim claims context contexts document documents every mark passage supported
0 1 2 3 4 5 6 7 8 9 10 12 100
. , : ; ! ? ' " ( ) [ ] - / % | * # `
"""
SIZE = 24  # dimensions of a vector: vectors of different tokens are nearly orthogonal


def vocabulary() -> list[str]:
    """All tokens; any other is unknown."""
    return list(dict.fromkeys((*SPECIAL, *DENIALS, *WORDS.split())))


def tokenizer(pieces: list[str]) -> dict[str, Any]:
    """Builds a tokenizer.json of these tokens that splits and lower-cases like the real one."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": name, "single_word": False, "lstrip": False, "rstrip": False}
            | {"normalized": False, "special": True}
            for number, name in enumerate(SPECIAL)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: number for number, piece in enumerate(pieces)},
        },
    }


def tables(pieces: list[str]) -> dict[str, Any]:
    """Constants of the graph: the vector of each token, whether it is a word, whether it is a negation."""
    rng = random.Random(20260101)
    vectors = []
    for _ in pieces:
        raw = [rng.choice((-1.0, 1.0)) for _ in range(SIZE)]
        vectors.append([x / SIZE**0.5 for x in raw])
    return {
        "vectors": vectors,
        "is_word": [float(piece.isalnum()) for piece in pieces],
        "is_denial": [float(piece in DENIALS) for piece in pieces],
        "one": 1.0,
        "tenth": 0.1,
        "far": 10.0,
        "half": 0.7,
        "slope": 12.0,
        "strong": 8.0,
        "negative": -1.0,
        "columns": [1],
    }


def nodes() -> list[onnx.NodeProto]:
    """Nodes of the graph: overlap of tokens, and negations on one side only."""

    def op(kind: str, ins: str, out: str, **attributes: int | list[int]) -> onnx.NodeProto:
        node = helper.make_node(kind, ins.split(), [out])
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        return node

    return [
        op("Cast", "attention_mask", "mask", to=TensorProto.FLOAT),
        op("Cast", "token_type_ids", "side", to=TensorProto.FLOAT),
        op("Sub", "one side", "first"),
        op("Mul", "mask first", "in_claim"),
        op("Mul", "mask side", "in_evidence"),
        op("Gather", "vectors input_ids", "read", axis=0),
        op("Transpose", "read", "turned", perm=[0, 2, 1]),
        op("MatMul", "read turned", "alike"),
        op("Sub", "in_evidence one", "absent_one"),
        op("Mul", "absent_one far", "penalty"),
        op("Unsqueeze", "penalty columns", "wide_penalty"),
        op("Add", "alike wide_penalty", "reachable"),
        op("ReduceMax", "reachable", "best", axes=[2], keepdims=0),
        op("Sub", "half best", "lacking"),
        op("Mul", "lacking slope", "tokens"),
        op("Gather", "is_word input_ids", "word", axis=0),
        op("Mul", "word in_claim", "claim_word"),
        op("Mul", "claim_word best", "held"),
        op("ReduceSum", "held columns", "held_sum", keepdims=1),
        op("ReduceSum", "claim_word columns", "words_sum", keepdims=1),
        op("Add", "words_sum tenth", "words_safe"),
        op("Div", "held_sum words_safe", "share"),
        op("Gather", "is_denial input_ids", "denial", axis=0),
        op("Mul", "denial in_claim", "denial_claim"),
        op("Mul", "denial in_evidence", "denial_evidence"),
        op("ReduceMax", "denial_claim", "denies", axes=[1], keepdims=1),
        op("ReduceMax", "denial_evidence", "denied", axes=[1], keepdims=1),
        op("Sub", "denies denied", "turn"),
        op("Abs", "turn", "turned_round"),
        op("Sub", "share half", "lead"),
        op("Mul", "lead slope", "overlap"),
        op("Mul", "turned_round strong", "against"),
        op("Sub", "overlap against", "supported"),
        op("Sub", "against strong", "against_less"),
        op("Add", "against_less overlap", "contradicted"),
        op("Mul", "overlap negative", "absent"),
        op("Concat", "supported contradicted absent", "verdict", axis=1),
    ]


def model(pieces: list[str]) -> onnx.ModelProto:
    """Builds the model, with the inputs and outputs of the real one."""
    initializers = []
    for name, value in tables(pieces).items():
        kind = np.int64 if name == "columns" else np.float32
        initializers.append(numpy_helper.from_array(np.array(value, dtype=kind), name))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "T"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    outputs = [
        helper.make_tensor_value_info("verdict", TensorProto.FLOAT, ["B", 3]),
        helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["B", "T"]),
    ]
    graph = helper.make_graph(nodes(), "tiny_reader", inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def local(digests: dict[str, str]) -> dict[str, Any]:
    """Builds local.json: lexical and model scores weigh the same."""
    knots = [[-8.0, 0.01], [0.0, 0.5], [8.0, 0.99]]
    nothing = dict.fromkeys(("lexical", "s", "c", "t_max", "t_mean", "run", "s_low", "c_high"), 0.0)
    support, against = {**nothing, "lexical": 0.5, "s": 0.5, "t_mean": -0.1}, {**nothing, "c": 1.0}
    return {
        "version": 2,
        "support": {"bias": 0.0, "weights": support, "knots": knots},
        "contradiction": {"bias": 0.0, "weights": against, "knots": knots},
        "thresholds": {"support": 0.5, "contradicted": 0.6},
        "max_pieces": 96,
        "budget": 60,
        "files": digests,
        "trained": {"on": "nothing; written down by tools/tiny_reader.py"},
    }


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    words = vocabulary()
    written = {
        "reader.onnx": model(words).SerializeToString(),
        "tokenizer.json": (json.dumps(tokenizer(words), indent=None) + "\n").encode(),
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in written.items()}
    written["local.json"] = (json.dumps(local(sums), indent=1) + "\n").encode()
    for name, content in written.items():
        (FOLDER / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")
