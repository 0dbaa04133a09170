"""Detectors whose weights are run by torch; skipped where torch and transformers cannot be imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.detector_pairs import PAIRS

from ragwatch.judges.detector.artefact import open_detector
from ragwatch.judges.detector.families import FAMILIES, Classes, signals_of
from ragwatch.judges.detector.session import DetectorModel

DATA = Path(__file__).parents[2] / "data" / "detector"


def test_torch_reads_as_transformers_does(tmp_path: Path) -> None:
    """Where there is no graph, weights are run."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(1)
    (tmp_path / "tokenizer.json").write_bytes((DATA / "nli" / "tokenizer.json").read_bytes())
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.RobertaConfig(
        vocab_size=400, max_position_embeddings=600, type_vocab_size=1, id2label=labels, **sizes
    )
    model = transformers.RobertaForSequenceClassification(config).eval()
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.2)
    model.save_pretrained(tmp_path)
    read = DetectorModel(open_detector(tmp_path, max_megabytes=1))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for pair in PAIRS[:50]:
        with torch.no_grad():
            inputs = fast(pair.context, pair.claim, return_tensors="pt", return_token_type_ids=False)
            logits = model(**inputs).logits[0].tolist()
        wanted = signals_of(Classes((0, 2), 1, 0), logits)
        assert read.claim(pair.context, pair.claim) == pytest.approx(wanted, abs=1e-4)


def test_torch_reads_hhem(tmp_path: Path) -> None:
    """HHEM has no class in `transformers`: its weights are those of T5 below `t5.`."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    save = pytest.importorskip("safetensors.torch").save_file
    sizes = {"vocab_size": 300, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    config = transformers.T5Config(**sizes, feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_labels=2)
    model = transformers.T5ForTokenClassification(config).eval()
    shared = {"transformer.encoder.embed_tokens.weight"}
    state = {f"t5.{name}": value for name, value in model.state_dict().items() if name not in shared}
    save(state, str(tmp_path / "model.safetensors"))
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["HHEMv2ForSequenceClassification"], **sizes}))
    (tmp_path / "tokenizer.json").write_bytes((DATA / "hhem" / "tokenizer.json").read_bytes())
    read = DetectorModel(open_detector(tmp_path, max_megabytes=1))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for pair in PAIRS[:20]:
        text = FAMILIES["hhem"].template.format(context=pair.context, claim=pair.claim)
        with torch.no_grad():
            inputs = fast(text, return_tensors="pt", return_token_type_ids=False)
            wanted = signals_of(Classes((0,), 1), model(**inputs).logits[0, 0].tolist())
        assert read.claim(pair.context, pair.claim).support == pytest.approx(wanted.support, abs=1e-4)  # type: ignore[union-attr]
