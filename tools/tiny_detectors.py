"""Writes tests/data/detector: small models with random weights in the architectures of the detectors, for tests.

Each folder has what a real one has (config.json, tokenizer.json, model.onnx) and `reference.json`: the logits of
`transformers` for the pairs of `tests/support/detector_pairs.py`, tokenised by its own fast tokenizer, in the template
of the model's own code. Needs an environment of its own:

    pip install torch transformers onnx onnxscript && PYTHONPATH=.:tests python tools/tiny_detectors.py
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from support.detector_pairs import PAIRS, WORDS
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "detector"
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
QA = (
    "Briefly answer the following question:\n{question}\nBear in mind that your response should be strictly based on "
    "the following {count} passages:\n{context}\nIn case the passages do not contain the necessary information to "
    'answer the question, please reply with: "Unable to answer based on given passages."\noutput:'
)
HHEM = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {context}\n\nHypothesis: {claim}"


def corpus() -> list[str]:
    """Texts from which the vocabularies are made."""
    return [*WORDS, *(f"{pair.question} {pair.context} {pair.claim}" for pair in PAIRS), QA, HHEM]


def byte_pairs(start: str, end: str, others: tuple[str, ...]) -> Tokenizer:
    """A byte-level BPE tokenizer, as of RoBERTa and ModernBERT."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[start, *others, end], initial_alphabet=alphabet)
    made.train_from_iterator(corpus(), trainer)
    middle = [end, end] if start == "<s>" else [end]  # RoBERTa has two between the texts
    pair = f"{start} $A {' '.join(middle)} $B:{int(start != '<s>')} {end}" + (":1" if start != "<s>" else "")
    ids = [(name, made.token_to_id(name)) for name in (start, end)]
    made.post_processor = processors.TemplateProcessing(single=f"{start} $A {end}", pair=pair, special_tokens=ids)
    return made


def pieces(specials: list[str], single: str, pair: str, unknown: str) -> Tokenizer:
    """A unigram tokenizer with a mark for spaces, as of DeBERTa-v3 and T5."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Replace(" {2,}", " ")
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=specials, unk_token=unknown)
    made.train_from_iterator(corpus(), trainer)
    ids = [(name, made.token_to_id(name)) for name in specials if name in f"{single} {pair}"]
    made.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)
    return made


class Export(torch.nn.Module):
    """A model whose only output is its logits."""

    def __init__(self, model: torch.nn.Module, pick: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.model, self.pick = model, pick

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """The logits."""
        return self.pick(self.model(input_ids=input_ids, attention_mask=attention_mask).logits)


def write(name: str, made: Tokenizer, model: torch.nn.Module, encode: Callable[..., Any], **extra: object) -> None:
    """Write one folder.

    Args:
        name: Of the folder, and of the family.
        made: The tokenizer.
        model: The model of `transformers`.
        encode: Encodes a pair with the fast tokenizer of `transformers`, in the template of the model's own code.
        extra: `pick`: what the graph returns of the logits; `config`: what config.json says in addition; `std`: of
            the weights. `neutral` has small ones: its logits are near 0.
    """
    pick = cast("Callable[[torch.Tensor], torch.Tensor]", extra.get("pick", lambda logits: logits))
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"), pretty=False)
    for weights in model.parameters():  # far from symmetric, so that logits differ between pairs
        torch.nn.init.normal_(weights, std=extra.get("std", 0.25)) if weights.dim() > 1 else None
    module = Export(model.eval(), pick)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    rows = []
    with torch.no_grad():
        for pair in PAIRS:
            encoded = encode(fast, pair)
            logits = module(encoded["input_ids"], encoded["attention_mask"])[0]
            if logits.dim() == 2:  # of tokens: of the answer alone, in the sum of their differences
                count = len(fast(pair.claim, add_special_tokens=False)["input_ids"])
                logits = (logits[-count - 1 : -1, 1] - logits[-count - 1 : -1, 0]).double()
                logits = torch.stack([logits.max(), logits.min(), logits.sum()])
            rows.append([round(float(value), 6) for value in logits])
    config = model.config.to_dict() | extra.get("config", {})
    kept = ("architectures", "model_type", "id2label", "vocab_size", "num_labels", "max_position_embeddings")
    small = {key: value for key, value in config.items() if key in kept and value is not None}
    (folder / "config.json").write_text(json.dumps(small, indent=1) + "\n", encoding="utf-8")
    (folder / "reference.json").write_text(json.dumps(rows).replace("], [", "],\n[") + "\n", encoding="utf-8")
    ids = torch.randint(5, 100, (1, 24))
    torch.onnx.export(
        module,
        (ids, torch.ones_like(ids)),
        str(folder / "model.onnx"),
        input_names=["input_ids", "attention_mask"],
        output_names=["logits"],
        dynamic_axes={"input_ids": {1: "T"}, "attention_mask": {1: "T"}},
        opset_version=17,
        dynamo=False,
    )
    print(name, (folder / "model.onnx").stat().st_size, rows[:2])


def texts(template: str) -> Callable[[Any, Any], Any]:
    """Encodes one text in a template."""
    return lambda fast, pair: fast(template.format(context=pair.context, claim=pair.claim), return_tensors="pt")


def main() -> None:
    """Write every folder."""
    torch.manual_seed(7)
    random.seed(7)
    labels = {"id2label": {0: "contradiction", 1: "entailment", 2: "neutral"}, "architectures": None}
    roberta = byte_pairs("<s>", "</s>", ("<pad>", "<unk>"))
    sizes = SIZES | {"vocab_size": roberta.get_vocab_size(), "max_position_embeddings": 600, "pad_token_id": 1}
    config = transformers.RobertaConfig(**sizes, num_labels=3, type_vocab_size=1, attn_implementation="eager")
    model = transformers.RobertaForSequenceClassification(config)
    write(
        "nli",
        roberta,
        model,
        lambda fast, pair: fast(pair.context, pair.claim, return_tensors="pt"),
        config=labels | {"architectures": ["RobertaForSequenceClassification"]},
    )
    write(
        "neutral",
        roberta,
        transformers.RobertaForSequenceClassification(config),
        lambda fast, pair: fast(pair.context, pair.claim, return_tensors="pt"),
        config=labels | {"architectures": ["RobertaForSequenceClassification"]},
        std=0.01,
    )
    modern = byte_pairs("[CLS]", "[SEP]", ("[PAD]", "[UNK]", "[MASK]"))
    sizes = SIZES | {"vocab_size": modern.get_vocab_size(), "max_position_embeddings": 1024}
    config = transformers.ModernBertConfig(
        **sizes, num_labels=2, pad_token_id=1, cls_token_id=0, sep_token_id=4, attn_implementation="eager"
    )
    write(
        "lettucedetect",
        modern,
        transformers.ModernBertForTokenClassification(config),
        lambda fast, pair: fast(
            QA.format(question=pair.question, count=1, context=f"passage 1: {pair.context}"),
            pair.claim,
            return_tensors="pt",
        ),
        config={"architectures": ["ModernBertForTokenClassification"]},
    )
    names = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    deberta = pieces(names, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", "[UNK]")
    sizes = SIZES | {"vocab_size": deberta.get_vocab_size(), "max_position_embeddings": 600, "type_vocab_size": 0}
    config = transformers.DebertaV2Config(
        **sizes,
        num_labels=2,
        relative_attention=True,
        position_buckets=32,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
    )
    write(
        "minicheck_deberta",
        deberta,
        transformers.DebertaV2ForSequenceClassification(config),
        texts("{context}[SEP]{claim}"),
        config={"architectures": ["DebertaV2ForSequenceClassification"]},
    )
    t5 = pieces(["<pad>", "</s>", "<unk>"], "$A </s>", "$A </s> $B </s>", "<unk>")
    config = transformers.T5Config(
        vocab_size=t5.get_vocab_size(), d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, num_labels=2
    )
    write(
        "hhem",
        t5,
        transformers.T5ForTokenClassification(config),
        texts(HHEM),
        pick=lambda logits: logits[:, 0, :],
        config={"architectures": ["HHEMv2ForSequenceClassification"], "model_type": "HHEMv2Config"},
    )


if __name__ == "__main__":
    main()
