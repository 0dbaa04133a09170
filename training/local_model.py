"""Network of the local judge: MiniLM read over (claim, evidence) pairs, with a verdict head and a token head.

Plain PyTorch, so that training needs no model library and the export is one graph. PyTorch is imported by training
alone; the judge runs the exported graph.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, INNER = 6, 384, 12, 1536
POSITIONS, SEGMENTS, EPSILON = 512, 2, 1e-12
SCALE = (WIDTH // HEADS) ** -0.5
SUPPORTED, CONTRADICTED, ABSENT = range(3)
"""Places in `verdict`: supported, contradicted, not in context."""


class Layer(nn.Module):
    """One transformer layer, post-norm as in BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm_attention, self.norm_out = nn.LayerNorm(WIDTH, EPSILON), nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, states: torch.Tensor, mask: torch.Tensor, drop: float) -> torch.Tensor:
        """States after attention and the inner layer; `mask` is added to the attention scores."""
        size, length, _ = states.shape

        def split(found: torch.Tensor) -> torch.Tensor:
            return found.view(size, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        scores = split(self.query(states)) @ split(self.key(states)).transpose(2, 3) * SCALE + mask
        read = functional.softmax(scores, dim=-1) @ split(self.value(states))
        read = self.out(read.transpose(1, 2).reshape(size, length, WIDTH))
        states = self.norm_attention(states + functional.dropout(read, drop, self.training))
        inner = self.down(functional.gelu(self.up(states)))
        return self.norm_out(states + functional.dropout(inner, drop, self.training))


class Reader(nn.Module):
    """The pair reader: `verdict` logits of a pair, and for every piece the logit that it is not supported.

    Args:
        vocabulary: Number of word pieces.
        drop: Dropout while training.
        places: Longest pair.
    """

    def __init__(self, vocabulary: int, drop: float = 0.0, places: int = POSITIONS) -> None:
        super().__init__()
        self.drop = drop
        self.words: nn.Module = nn.Embedding(vocabulary, WIDTH)
        self.positions, self.segments = nn.Embedding(places, WIDTH), nn.Embedding(SEGMENTS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.hidden, self.verdict = nn.Linear(3 * WIDTH, WIDTH), nn.Linear(WIDTH, 3)
        self.tokens = nn.Linear(WIDTH, 1)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(verdict [B, 3], tokens [B, T]) of pairs `[CLS] claim [SEP] evidence [SEP]`."""
        states = states_of(self, input_ids, attention_mask, token_type_ids)
        pooled = pooled_of(states, attention_mask, token_type_ids)
        marks = self.tokens(states).squeeze(-1)
        return self.verdict(functional.gelu(self.hidden(pooled))), marks


def states_of(
    reader: Reader, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
) -> torch.Tensor:
    """States of the pieces after the last layer."""
    place = torch.arange(input_ids.shape[1], device=input_ids.device)
    states = reader.norm(reader.words(input_ids) + reader.positions(place) + reader.segments(token_type_ids))
    states = functional.dropout(states, reader.drop, reader.training)
    mask = (1.0 - attention_mask[:, None, None, :].to(states.dtype)) * -1e4
    for layer in reader.layers:
        states = layer(states, mask, reader.drop)
    return states


def pooled_of(states: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor) -> torch.Tensor:
    """The first piece, and the means of claim and evidence, side by side."""
    claim = attention_mask * (1 - token_type_ids)
    return torch.cat((states[:, 0], _mean(states, claim), _mean(states, token_type_ids)), dim=1)


def _mean(states: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    weight = chosen[:, :, None].to(states.dtype)
    return (states * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1.0)


def from_base(weights: Path) -> Reader:
    """The reader with MiniLM's body (a `model.safetensors`) and fresh heads; word pieces stay as they are.

    The embedding of words is frozen: it is half of all weights, and words that training never shows must keep theirs.
    """
    found: dict[str, Any] = {name.removeprefix("bert."): value for name, value in load_file(weights).items()}
    reader = Reader(found["embeddings.word_embeddings.weight"].shape[0])
    names = {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "out": "attention.output.dense",
        "norm_attention": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "norm_out": "output.LayerNorm",
    }
    state = {
        "words.weight": found["embeddings.word_embeddings.weight"],
        "positions.weight": found["embeddings.position_embeddings.weight"],
        "segments.weight": found["embeddings.token_type_embeddings.weight"],
    }
    for part in ("weight", "bias"):
        state[f"norm.{part}"] = found[f"embeddings.LayerNorm.{part}"]
        for number in range(LAYERS):
            for ours, theirs in names.items():
                state[f"layers.{number}.{ours}.{part}"] = found[f"encoder.layer.{number}.{theirs}.{part}"]
    missing = reader.load_state_dict(state, strict=False)
    if missing.unexpected_keys or any(
        key.split(".")[0] not in ("hidden", "verdict", "tokens") for key in missing.missing_keys
    ):
        raise ValueError(f"{weights} is not MiniLM-L6: {missing}")
    reader.words.requires_grad_(requires_grad=False)
    return reader
