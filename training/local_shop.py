"""Workshop: the steps of training, each made once and kept in the work folder."""

import pickle
import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import torch
from local_export import coarsen
from local_first import broken, sentences
from local_fuse import Heard, heard
from local_model import Reader, from_base
from local_pairs import ABSENT, Pair, dev, judged, others, read, summedits
from local_team import Team, together
from local_train import Recipe, code, outputs, train
from synthesis import pairs as synthetic
from tokenizers import Tokenizer

from ragwatch.judges.local.artefact import BUDGET

SEED = 7
SHORT = 60
BUDGETS = (25, 35, 45, 60, BUDGET)
"""Words of evidence of a synthetic pair: the judge reads single sentences and whole windows."""
PARTS, PART = 12, 40_000
SENTENCES, SENTENCE = 30_000, 45
TALK_TIMES, BROKEN_TIMES = 4, 2
"""How often each labelled pair and each broken claim of people is shown in stage one."""
TEAM_BATCHES = 8
"""Batches of a step of stage one, over all processes: the rate below was chosen for it."""
FIRST = Recipe(rate=2e-4, epochs=0.7, warm=0.11, average=True, seed=11)
LAST = Recipe(rate=5e-5, epochs=1.0, micro=2, residual=0.4)
REPLAYED, KNOWN = 3000, 2000
FOLDS = {
    "expertqa": ("expertqa", "attributionbench"),
    "summedits": ("summedits",),
    "wice": ("wice",),
    "fever_symmetric": ("fever_symmetric",),
}
"""Families held out together; AttributionBench shares answers with ExpertQA, so the two are never on both sides."""
FINAL = "final"
RUNS = {**dict.fromkeys(FOLDS, (1, 2)), FINAL: (1, 2, 3, 4)}
"""Seeds of a reader's runs of stage two; the mean of their weights is kept, and ranks better than any of them."""
FACTS, SHARES = "fever_symmetric", 6
"""Each final run is taught all facts but a sixth, another one each; what it says of that sixth sets the thresholds."""
ABSENT_KEPT = 300
VERDICTS = {"supported": 0, "contradicted": 1, "not_in_context": 2}


@dataclass(frozen=True)
class Workshop:
    """Where steps are made once."""

    folder: Path  # the work folder
    base: Path  # MiniLM's folder
    workers: int  # processes of one thread each
    quick: int = 0  # few pairs, for a smoke test; 0 for all

    def tokenizer(self) -> Tokenizer:
        """MiniLM's word pieces, of texts of any length."""
        found = Tokenizer.from_file(str(self.base / "tokenizer.json"))
        found.no_padding()
        found.no_truncation()
        return found

    def pairs(self, name: str) -> list[Pair]:
        """`judged`, `summaries`, `dev`, `others`, `broken`, `sentences`, or `synthetic.N` for a part."""
        path = self.folder / f"{name}.pairs"
        if not path.exists():
            found = list(_made(name, self.quick or PART))
            if self.quick:
                found = random.Random(SEED).sample(found, min(self.quick, len(found)))
            path.write_bytes(pickle.dumps(found))
        return list(pickle.loads(path.read_bytes()))  # noqa: S301  # written a line above, by us

    def make(self) -> None:
        """All pairs, then stage one, then all runs of stage two, as many at a time as there are workers."""
        names = ("judged", "summaries", "dev", "others", "broken", "sentences")
        parts = range(1 if self.quick else PARTS)
        with ProcessPoolExecutor(self.workers, get_context("spawn")) as pool:
            list(pool.map(self._count, [*(f"synthetic.{part}" for part in parts), *names]))
        if not (self.folder / "first.pt").exists():
            together(self.workers, _first, self)
        with ProcessPoolExecutor(self.workers, get_context("spawn")) as pool:
            list(pool.map(self._run, *zip(*((name, seed) for name, seeds in RUNS.items() for seed in seeds))))  # noqa: B905 - a list of pairs turned into a pair of lists

    def _count(self, name: str) -> int:
        return len(self.pairs(name))

    def _run(self, name: str, seed: int) -> None:
        torch.set_num_threads(1)
        if not self._path(name, seed).exists():
            reader = self._loaded(self.folder / "first.pt")
            coarsen(reader)
            pairs = self.second(name, seed)
            train(reader, code(pairs, self.tokenizer()), replace(LAST, seed=seed))
            torch.save(reader.state_dict(), self._path(name, seed))

    def _path(self, name: str, seed: int) -> Path:
        return self.folder / f"{name}.{seed}.pt"

    def _loaded(self, path: Path) -> Reader:
        reader = from_base(self.base / "model.safetensors")
        reader.load_state_dict(torch.load(path, weights_only=True))
        return reader.eval()

    def first(self, team: Team) -> list[Pair]:
        """Pairs of stage one that a member of a team is shown."""
        found = self.pairs("others") * TALK_TIMES + self.pairs("broken") * BROKEN_TIMES + self.pairs("sentences")
        for part in range(1 if self.quick else PARTS):
            found += self.pairs(f"synthetic.{part}")
        random.Random(SEED).shuffle(found)
        return found[team.rank :: team.size]

    def second(self, name: str, seed: int) -> list[Pair]:
        """Pairs of a run of stage two: the labelled sets but what is held out, and some of stage one again."""
        rng = random.Random(seed)
        known, held = self._known(), FOLDS.get(name, ())
        kept = _facts_of(known, seed) if name == FINAL else set()
        taught = [pair for pair in known if pair.family not in held and pair.row not in kept and _is_taught(pair, rng)]
        facts = [pair for pair in taught if pair.family == FACTS]  # the only contradictions that people wrote
        again = [pair for pair in self.pairs("others") if pair.row not in self._absent_kept()]
        replayed = self.pairs("synthetic.0")
        return [
            *(replace(pair, weight=1.0) for pair in taught),
            *facts,
            *rng.sample(again, min(KNOWN, len(again))),
            *rng.sample(replayed, min(REPLAYED, len(replayed))),
        ]

    def _known(self) -> list[Pair]:
        return [pair for pair in self.pairs("judged") if pair.family != "summedits"] + self.pairs("summaries")

    def _absent_kept(self) -> set[str]:
        return {pair.row for pair in self.pairs("others") if pair.verdict == ABSENT and pair.family == "clapnq"}

    def reader(self, name: str) -> Reader:
        """A fold's reader or the final one: the mean of its runs."""
        runs = [self._loaded(self._path(name, seed)).state_dict() for seed in RUNS[name]]
        reader = from_base(self.base / "model.safetensors")
        reader.load_state_dict({key: sum(run[key] for run in runs) / len(runs) for key in runs[0]})
        return reader.eval()

    def heard(self, name: str) -> list[Heard]:
        """What a fold says of the claims that it holds out.

        Of `final`: what each run says of the facts kept from it, and what the mean of the runs says of the test parts.
        """
        path = self.folder / f"{name}.heard"
        if not path.exists():
            known = self.pairs("judged") + self.pairs("dev")
            if name == FINAL:
                found = [one for seed in RUNS[name] for one in self._kept(known, seed)]
                found += self._said(self.reader(name), self.pairs("dev"))
            else:
                kept = [pair for pair in known if pair.family.removeprefix("dev/") in FOLDS[name]]
                found = self._said(self.reader(name), kept)
            path.write_bytes(pickle.dumps(found))
        return list(pickle.loads(path.read_bytes()))  # noqa: S301  # written a line above, by us

    def _kept(self, known: Sequence[Pair], seed: int) -> list[Heard]:
        rows, absent = _facts_of(known, seed), self._absent_kept()
        facts = [replace(pair, family=f"kept/{FACTS}") for pair in known if pair.row in rows]
        others = [replace(pair, family="kept/absent") for pair in self.pairs("others") if pair.row in absent]
        part = others[seed :: len(RUNS[FINAL])]
        return self._said(self._loaded(self._path(FINAL, seed)), facts + part[:ABSENT_KEPT])

    def _said(self, reader: Reader, pairs: Sequence[Pair]) -> list[Heard]:
        said = outputs(reader, code(pairs, self.tokenizer()))
        return [heard(pair, one) for pair, one in zip(pairs, said, strict=True)]


def _first(team: Team, shop: Workshop) -> None:
    """Stage one, in one process of a team."""
    torch.manual_seed(SEED)
    reader = from_base(shop.base / "model.safetensors")
    recipe = replace(FIRST, micro=max(1, TEAM_BATCHES // team.size))
    train(reader, code(shop.first(team), shop.tokenizer()), recipe, team)
    if team.rank == 0:
        torch.save(reader.state_dict(), shop.folder / "first.pt")


def _is_taught(pair: Pair, rng: random.Random) -> bool:
    """SummEdits says its few seeds over and over, so a part of it is enough."""
    return pair.family != "summedits" or rng.random() < (0.7 if pair.weight == 1.0 else 0.2)


def _facts_of(pairs: Sequence[Pair], seed: int) -> set[str]:
    """Rows of `FACTS` that a final run is not taught: no text of theirs is among the rest."""
    facts = [pair for pair in pairs if pair.family == FACTS]
    pages = sorted({pair.evidence for pair in facts})
    random.Random(SEED).shuffle(pages)
    chosen = set(pages[seed % SHARES :: SHARES])
    claims = {pair.claim for pair in facts if pair.evidence in chosen}
    return {pair.row for pair in facts if pair.evidence in chosen or pair.claim in claims}


def _made(name: str, count: int) -> Iterable[Pair]:
    kind, _, part = name.partition(".")
    rng = random.Random(SEED)
    match kind:
        case "synthetic":
            return _synthetic(SEED + 1 + int(part), count)
        case "broken":
            return broken(SHORT, rng)
        case "sentences":
            return sentences(SENTENCE, rng, SENTENCES)
        case "summaries":
            return summedits(SHORT)
        case _:
            return {"judged": judged, "dev": dev, "others": others}[kind](BUDGET)


def _synthetic(seed: int, count: int) -> Iterator[Pair]:
    rng = random.Random(seed)
    for item in synthetic(seed, count):
        evidence, lexical = read(item.claim, item.passages, rng.choice(BUDGETS))
        yield Pair("synthetic", item.group, item.claim, evidence, VERDICTS[item.verdict], lexical, item.spans)
