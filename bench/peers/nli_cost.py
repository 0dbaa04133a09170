"""CPU time of a cross-encoder of the usual size with random weights, in an environment of its own.

The bench installs from PyPI alone, and weights of NLI models are published elsewhere. Cost does not depend on them:
the shape is that of the model, the numbers are random. Attention is the plain one; that of DeBERTa adds products for
positions, so its real models cost more. Reads {"layers", "width", "heads", "vocabulary", "int8", "lengths"} from the
first argument: lengths of the pairs of each answer, in tokens. Prints CPU milliseconds of each answer as JSON, on one
thread, one pair at a time.
"""

import json
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"


class Network:
    """A transformer encoder with one output, written node by node."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int) -> None:
        import numpy as np  # noqa: PLC0415 - this file is also opened where it is not
        from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

        self._np, self._helper, self._numpy_helper, self._proto = np, helper, numpy_helper, TensorProto
        self._rng = np.random.default_rng(1)
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._width, self._heads = width, heads
        state = self._node("Gather", self._weight(vocabulary, width), "ids")
        for _ in range(layers):
            state = self._layer(state)
        first = self._node("Gather", state, self._constant([0]), axis=1)
        self._nodes.append(helper.make_node("MatMul", [first, self._weight(width, 3)], ["logits"]))

    def save(self, path: Path) -> None:
        """Write the model."""
        helper, kind = self._helper, self._proto
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info("ids", kind.INT64, [1, "length"])],
            [helper.make_tensor_value_info("logits", kind.FLOAT, [1, 1, 3])],
            self._weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        path.write_bytes(model.SerializeToString())

    def _layer(self, state: str) -> str:
        width, size = self._width, self._width // self._heads
        split = self._constant([0, 0, self._heads, size])
        query, key, value = (
            self._node("Transpose", self._node("Reshape", self._linear(state, width, width), split), perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = self._node("Mul", self._node("MatMul", query, key), self._number(size**-0.5))
        mixed = self._node("MatMul", self._node("Softmax", scores, axis=-1), value)
        joined = self._node("Reshape", self._node("Transpose", mixed, perm=[0, 2, 1, 3]), self._constant([0, 0, width]))
        state = self._norm(self._node("Add", state, self._linear(joined, width, width)))
        inner = self._node("Gelu", self._linear(state, width, 4 * width))
        return self._norm(self._node("Add", state, self._linear(inner, 4 * width, width)))

    def _linear(self, state: str, inputs: int, outputs: int) -> str:
        return self._node("Add", self._node("MatMul", state, self._weight(inputs, outputs)), self._weight(outputs))

    def _norm(self, state: str) -> str:
        return self._node("LayerNormalization", state, self._weight(self._width), self._weight(self._width), axis=-1)

    def _node(self, kind: str, *inputs: str, **options: Any) -> str:  # noqa: ANN401 - attributes of any type
        name = f"n{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(kind, list(inputs), [name], **options))
        return name

    def _weight(self, *shape: int) -> str:
        return self._stored((self._rng.standard_normal(shape) * 0.02).astype(self._np.float32))

    def _constant(self, values: list[int]) -> str:
        return self._stored(self._np.array(values, self._np.int64))

    def _number(self, value: float) -> str:
        return self._stored(self._np.array(value, self._np.float32))

    def _stored(self, values: Any) -> str:  # noqa: ANN401 - an array of a library that is imported late
        name = f"w{len(self._weights)}"
        self._weights.append(self._numpy_helper.from_array(values, name))
        return name


def measure(asked: dict[str, Any]) -> list[float]:
    """CPU milliseconds of each answer."""
    import numpy as np  # noqa: PLC0415
    import onnxruntime  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        Network(asked["layers"], asked["width"], asked["heads"], asked["vocabulary"]).save(path)
        if asked["int8"]:
            from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415

            small = path.with_name("small.onnx")
            quantize_dynamic(path, small, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"])
            path = small
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(2)

    def read(length: int) -> None:
        session.run(None, {"ids": rng.integers(0, asked["vocabulary"], (1, length), dtype=np.int64)})

    read(asked["lengths"][0][0])
    took = []
    for lengths in asked["lengths"]:
        start = time.process_time()
        for length in lengths:
            read(length)
        took.append((time.process_time() - start) * 1e3)
    return took


if __name__ == "__main__":
    if find_spec("onnx"):
        print(json.dumps(measure(json.loads(sys.argv[1]))))
    else:
        print("onnx is not installed here; bench/peers/embedded.py runs this file where it is")
