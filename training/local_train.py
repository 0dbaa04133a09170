"""Training loop of the local judge's reader: pairs in, weights out, on a CPU."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from local_model import Reader
from local_pairs import UNSUPPORTED, Pair
from local_team import ALONE, Team
from tokenizers import Encoding, Tokenizer
from torch.nn import functional

CLAIM_PIECES, PIECES = 64, 192
BATCH_PIECES = 2048
"""Word pieces of a batch, padding included: short pairs come many at a time. More at once are slower a pair."""
IGNORED = -1.0
HEADS_FASTER = 3
KEPT = 0.998
"""Of the mean of weights, what the next step leaves."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A pair in word pieces: ids, length of the claim's part, and a target for each piece (-1: none)."""

    ids: list[int]
    claim: int
    targets: list[float]
    pair: Pair


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a run goes."""

    rate: float = 5e-5  # highest learning rate of the body; the heads get `HEADS_FASTER` times it
    epochs: float = 1.0  # how often every pair is shown
    tokens: float = 0.5  # weight of the token loss
    warm: float = 0.06  # share of the run in which the rate rises; then it falls to nothing
    smoothing: float = 0.03  # share of each target that says nothing
    residual: float = 0.0  # share of the lexical logit that is added to the logit of "supported" in the loss
    micro: int = 1  # batches of a step, in each process
    average: bool = False  # whether the mean of the last weights is kept instead of the last
    seed: int = 7  # of the order of the pairs


def code(pairs: Sequence[Pair], tokenizer: Tokenizer) -> list[Coded]:
    """`[CLS] claim [SEP] evidence [SEP]`, at most 64 pieces of claim and 192 in all."""
    claims = tokenizer.encode_batch([pair.claim for pair in pairs], add_special_tokens=False)
    texts = tokenizer.encode_batch([pair.evidence for pair in pairs], add_special_tokens=False)
    return [_coded(pair, claim, text.ids, tokenizer) for pair, claim, text in zip(pairs, claims, texts, strict=True)]


def _coded(pair: Pair, claim: Encoding, evidence: list[int], tokenizer: Tokenizer) -> Coded:
    opening, closing = (cast("int", tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]"))
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


class Average:
    """Mean of the weights over the last steps, each counting a little less than the next: it ranks better than they do.

    Args:
        weights: What is trained.
    """

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        self._weights, self._steps = weights, 0
        self._means = [weight.detach().clone() for weight in weights]

    def take(self) -> None:
        """Count the weights as they are now."""
        self._steps += 1
        kept = min(KEPT, (1 + self._steps) / (10 + self._steps))
        torch._foreach_mul_(self._means, kept)
        torch._foreach_add_(self._means, [weight.detach() for weight in self._weights], alpha=1 - kept)

    def state(self) -> tuple[list[torch.Tensor], int]:
        """The means, and the number of steps, to be restored."""
        return [mean.clone() for mean in self._means], self._steps

    def restore(self, means: Sequence[torch.Tensor], steps: int) -> None:
        """Go on from what `state` gave."""
        self._means, self._steps = [mean.clone() for mean in means], steps

    def put(self) -> None:
        """Put the mean where the weights are."""
        with torch.no_grad():
            for weight, mean in zip(self._weights, self._means, strict=True):
                weight.copy_(mean)


def train(reader: Reader, coded: Sequence[Coded], recipe: Recipe, team: Team = ALONE) -> Reader:
    """Train in place.

    Args:
        reader: Where to begin; the same in every process of a team.
        coded: What to learn from: the share of this process.
        recipe: How.
        team: The processes that train together.
    """
    rng = random.Random(recipe.seed + team.rank)
    torch.manual_seed(recipe.seed)
    heads = [value for name, value in reader.named_parameters() if _is_head(name)]
    body = [value for name, value in reader.named_parameters() if not _is_head(name) and value.requires_grad]
    weights = [*body, *heads]
    groups = [{"params": body, "lr": recipe.rate}, {"params": heads, "lr": HEADS_FASTER * recipe.rate}]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
    rates = [group["lr"] for group in optimiser.param_groups]
    mean = Average(weights) if recipe.average else None
    log = Log(team)
    goal, shown = recipe.epochs * team.sum(len(coded)), 0.0
    reader.train()
    stream = _stream(coded, rng)
    while shown < goal:
        count = 0
        for _ in range(recipe.micro):
            batch = next(stream)
            with torch.autocast("cpu", torch.bfloat16):
                verdict, marks = reader(*tensors(batch))
            first, second = loss_of(verdict, marks, batch, recipe)
            ((first + recipe.tokens * second) / recipe.micro).backward()
            count += len(batch)
            log.add(first.item(), second.item())
        rate = min(1.0, shown / (recipe.warm * goal) + 0.01) * (1.0 - shown / goal)
        for group, most in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = most * rate
        shown += team.share(weights, count)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if mean:
            mean.take()
        log.step(shown, goal)
    if mean:
        mean.put()
    return reader.eval()


def _is_head(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] in ("hidden", "verdict", "tokens")


def _stream(coded: Sequence[Coded], rng: random.Random) -> Iterator[list[Coded]]:
    """Batches, over and over."""
    while True:
        yield from batches(coded, rng)


class Log:
    """Prints a line now and then.

    Args:
        team: Only its first process prints.
    """

    def __init__(self, team: Team) -> None:
        self._loud, self._start, self._steps = team.rank == 0, time.time(), 0
        self._sums = np.zeros(3)

    def add(self, verdict: float, tokens: float) -> None:
        """Losses of a batch."""
        self._sums += (verdict, tokens, 1.0)

    def step(self, shown: float, goal: float) -> None:
        """A step is done, after which `shown` of `goal` pairs were seen."""
        self._steps += 1
        if self._loud and (self._steps % 50 == 0 or shown >= goal):
            pace, (verdict, tokens, count) = shown / (time.time() - self._start), self._sums
            print(f"{shown:.0f}/{goal:.0f} pairs {pace:.0f}/s loss {verdict / count:.3f} {tokens / count:.3f}", flush=True)  # noqa: E501  # fmt: skip
            self._sums[:] = 0


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
