"""Training loop of the local judge's reader: pairs in, weights out, on a CPU."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from local_model import Reader
from local_pairs import UNSUPPORTED, Pair
from tokenizers import Encoding, Tokenizer
from torch.nn import functional

CLAIM_PIECES, PIECES = 64, 192
BATCH_PIECES = 5120
"""Word pieces of a batch, padding included: short pairs come many at a time."""
IGNORED = -1.0


@dataclass(frozen=True, slots=True)
class Coded:
    """A pair in word pieces: ids, length of the claim's part, and a target for each piece (-1: none)."""

    ids: list[int]
    claim: int
    targets: list[float]
    pair: Pair


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a run goes: learning rate of the body (heads get five times it), epochs, weight of the token loss."""

    rate: float = 8e-5
    epochs: float = 1.0
    tokens: float = 0.5
    warm: float = 0.06
    smoothing: float = 0.03
    residual: float = 0.0
    seed: int = 7


def code(pairs: Sequence[Pair], tokenizer: Tokenizer) -> list[Coded]:
    """`[CLS] claim [SEP] evidence [SEP]`, at most 64 pieces of claim and 192 in all."""
    claims = tokenizer.encode_batch([pair.claim for pair in pairs], add_special_tokens=False)
    texts = tokenizer.encode_batch([pair.evidence for pair in pairs], add_special_tokens=False)
    return [_coded(pair, claim, text.ids, tokenizer) for pair, claim, text in zip(pairs, claims, texts, strict=True)]


def _coded(pair: Pair, claim: Encoding, evidence: list[int], tokenizer: Tokenizer) -> Coded:
    opening, closing = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    head = claim.ids[:CLAIM_PIECES]
    tail = evidence[: PIECES - 3 - len(head)]
    targets = [IGNORED] * (len(head) + 2)
    if pair.spans is not None:
        for place, (start, end) in enumerate(claim.offsets[:CLAIM_PIECES]):
            targets[place + 1] = float(any(start < last and end > first for first, last in pair.spans))
    return Coded([opening, *head, closing, *tail, closing], len(head) + 2, targets, pair)


def batches(coded: Sequence[Coded], rng: random.Random) -> Iterator[list[Coded]]:
    """Batches of like length in random order, all of it once."""
    order = sorted(rng.sample(range(len(coded)), len(coded)), key=lambda index: len(coded[index].ids) // 4)
    found: list[list[Coded]] = [[]]
    for index in order:
        one = coded[index]
        if found[-1] and (len(found[-1]) + 1) * len(one.ids) > BATCH_PIECES:
            found.append([])
        found[-1].append(one)
    rng.shuffle(found)
    yield from found


def tensors(batch: Sequence[Coded]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """input_ids, attention_mask, token_type_ids."""
    length = max(len(one.ids) for one in batch)
    ids, mask, kinds = (np.zeros((len(batch), length), dtype=np.int64) for _ in range(3))
    for place, one in enumerate(batch):
        ids[place, : len(one.ids)] = one.ids
        mask[place, : len(one.ids)] = 1
        kinds[place, one.claim : len(one.ids)] = 1
    return torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(kinds)


def loss_of(
    verdict: torch.Tensor, marks: torch.Tensor, batch: Sequence[Coded], recipe: Recipe
) -> tuple[torch.Tensor, torch.Tensor]:
    """(verdict loss, token loss): a pair known to be unsupported only counts by its probability of support."""
    lexical = torch.tensor([one.pair.lexical for one in batch])
    verdict = verdict.float() + functional.pad(recipe.residual * lexical[:, None], (0, 2))
    labels = torch.tensor([one.pair.verdict for one in batch])
    weight = torch.tensor([one.pair.weight for one in batch])
    logs = functional.log_softmax(verdict, dim=1)
    refused = torch.logsumexp(logs[:, 1:], dim=1)
    exact = functional.nll_loss(logs, labels.clamp(max=2), reduction="none")
    each = torch.where(labels == UNSUPPORTED, -refused, exact)
    blurred = -(logs[:, 0] + refused) / 2
    each = (1 - recipe.smoothing) * each + recipe.smoothing * blurred
    targets = torch.full(marks.shape, IGNORED)
    for place, one in enumerate(batch):
        targets[place, : len(one.targets)] = torch.tensor(one.targets)
    known = (targets >= 0).float() * weight[:, None]
    odd = 1.0 + 2.0 * (targets > 0.5).float()  # few words of a claim are wrong
    marked = functional.binary_cross_entropy_with_logits(marks.float(), targets.clamp(min=0), reduction="none")
    return (each * weight).sum() / weight.sum(), (marked * known * odd).sum() / known.sum().clamp(min=1.0)


def train(reader: Reader, coded: Sequence[Coded], recipe: Recipe, *, until: float | None = None) -> Reader:
    """Train in place.

    Args:
        reader: Where to begin.
        coded: What to learn from.
        recipe: How.
        until: Wall-clock limit in seconds since the epoch; the learning rate falls to nothing by then.
    """
    rng = random.Random(recipe.seed)
    torch.manual_seed(recipe.seed)
    heads = [
        value for name, value in reader.named_parameters() if name.split(".")[0] in ("hidden", "verdict", "tokens")
    ]
    body = [
        value
        for name, value in reader.named_parameters()
        if name.split(".")[0] not in ("hidden", "verdict", "tokens") and value.requires_grad
    ]
    groups = [{"params": body, "lr": recipe.rate}, {"params": heads, "lr": 5 * recipe.rate}]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
    rates = [group["lr"] for group in optimiser.param_groups]
    plan: list[list[Coded]] = []
    whole = int(recipe.epochs)
    for _ in range(whole):
        plan += batches(coded, rng)
    if recipe.epochs > whole:
        last = list(batches(coded, rng))
        plan += last[: int(len(last) * (recipe.epochs - whole))]
    reader.train()
    start, shown, sums = time.time(), 0, np.zeros(3)
    for step, batch in enumerate(plan):
        done = step / len(plan)
        if until is not None:
            done = max(done, (time.time() - start) / max(1.0, until - start))
            if done >= 1.0:
                break
        factor = min(1.0, (step + 1) / max(1.0, recipe.warm * len(plan))) * (1.0 - done)
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        with torch.autocast("cpu", torch.bfloat16):
            verdict, marks = reader(*tensors(batch))
        first, second = loss_of(verdict, marks, batch, recipe)
        (first + recipe.tokens * second).backward()
        torch.nn.utils.clip_grad_norm_(body + heads, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        shown += len(batch)
        sums += (first.item(), second.item(), 1.0)
        if step % 50 == 49 or step == len(plan) - 1:
            pace = shown / (time.time() - start)
            print(f"step {step + 1}/{len(plan)} {shown} pairs {pace:.0f}/s loss {sums[0] / sums[2]:.3f} {sums[1] / sums[2]:.3f}", flush=True)  # noqa: E501  # fmt: skip
            sums[:] = 0
    return reader.eval()


@dataclass(frozen=True, slots=True)
class Output:
    """What the reader gives a pair: (supported, contradicted, absent) logits, greatest and mean token logit."""

    verdict: tuple[float, float, float]
    most: float
    mean: float


def outputs(reader: Reader, coded: Sequence[Coded]) -> list[Output]:
    """Read pairs; the order is kept."""
    order = sorted(range(len(coded)), key=lambda index: len(coded[index].ids))
    found: dict[int, Output] = {}
    reader.eval()
    with torch.inference_mode():
        for first in range(0, len(order), 64):
            part = order[first : first + 64]
            with torch.autocast("cpu", torch.bfloat16):
                verdict, marks = reader(*tensors([coded[index] for index in part]))
            for index, row, line in zip(part, verdict.float().tolist(), marks.float().tolist(), strict=True):
                words = line[1 : coded[index].claim - 1] or [0.0]
                found[index] = Output((row[0], row[1], row[2]), max(words), sum(words) / len(words))
    return [found[index] for index in range(len(coded))]
