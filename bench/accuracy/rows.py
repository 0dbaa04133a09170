"""Rows of labelled sets, in the format of ../shared/data (its README says what a label means)."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ragwatch.model.sample import Context, Sample

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
RELEVANCE = ("relevance/hotpotqa/sample100", "relevance/musique/sample100", "relevance/clapnq/dev")
Item = TypeVar("Item")
SEED = 20260101


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A claim that cites contexts: its offsets in the answer, and their ranks."""

    start: int
    end: int
    ranks: frozenset[int]


@dataclass(frozen=True, slots=True)
class Row:
    """One answer, or one claim, and what people say of it."""

    name: str  # its id
    question: str | None  # what was asked; None where unknown
    contexts: tuple[str, ...]  # their texts
    answer: str  # what is judged
    unfaithful: bool = False  # whether something in it is not supported
    raw: str = ""  # the label as the source wrote it
    relevant: tuple[bool, ...] = ()  # for each context, whether people call it relevant; empty where nobody said
    first_used: bool | None = None  # whether the answer used the first context; None where nobody said
    cited: tuple[CitedClaim, ...] = ()  # claims that cite contexts, if these support them

    @property
    def group(self) -> str:
        """Rows of one group share text, and are drawn together when an interval is made."""
        return self.question or (self.contexts[0][:80] if self.contexts else self.name)

    @property
    def sample(self) -> Sample:
        """What a judge reads."""
        return Sample(self.name, self.question, tuple(map(Context, self.contexts)), self.answer)


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Rows of one file."""

    name: str  # its path in the data, without the ending
    rows: Sequence[Row] = field(repr=False)
    bar: float | None = None  # what issue 8 asks of its AUROC; None for no less than words


BARS = {
    "judge/dev/attributionbench": 0.80,
    "judge/dev/wice": 0.80,
    "judge/dev/fever_symmetric": 0.82,
    "judge/train/summedits": 0.68,
    "judge/train/expertqa": 0.66,
}


def defaults() -> list[Path]:
    """Every labelled file of judge/dev, then of judge/train."""
    return [path for part in ("dev", "train") for path in sorted((DATA / "judge" / part).rglob("*.jsonl"))]


def read(path: Path, limit: int | None = None) -> LabelledSet:
    """The rows of a file that have a verdict; where all answers have the same, or none, each labelled claim is a row.

    Args:
        path: A JSONL file.
        limit: At most so many rows, drawn at random but the same each time.
    """
    name = name_of(path)
    objects = [(record, record.get("label") or {}) for record in records(path)]
    found = [
        replace(row_of(record), unfaithful=not label["faithful"], raw=str(label.get("raw") or ""))
        for record, label in objects
        if label.get("faithful") is not None
    ]
    if len({row.unfaithful for row in found}) < 2:
        found = [row for record, _ in objects for row in _claims(record)] or found
    bar = next((bar for prefix, bar in BARS.items() if name.startswith(prefix)), None)
    return LabelledSet(name, thinned(found, limit), bar)


def name_of(path: Path) -> str:
    """How a set is called: its path in the data, or its file's name."""
    path = path.resolve().with_suffix("")
    return path.relative_to(DATA).as_posix() if path.is_relative_to(DATA) else path.name


def thinned(rows: Sequence[Item], limit: int | None) -> Sequence[Item]:
    """All rows, or so many of them."""
    if limit is None or len(rows) <= limit:
        return rows
    return random.Random(SEED).sample(rows, limit)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, contexts filled in."""
    documents: dict[str, dict[str, str]] = {}
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        record: dict[str, Any] = json.loads(line)
        if "context_refs" in record:
            name = record["docs"]
            if name not in documents:
                documents[name] = json.loads((path.parent / name).read_text(encoding="utf-8"))
            record["contexts"] = [documents[name][key] for key in record["context_refs"]]
        yield record


def _claims(record: dict[str, Any]) -> Iterator[Row]:
    whole = row_of(record)
    for number, claim in enumerate((record.get("label") or {}).get("claims") or ()):
        if claim.get("supported") is not None:
            name = f"{whole.name}-{number}"
            yield replace(whole, name=name, answer=str(claim["text"]), unfaithful=not claim["supported"])


def row_of(record: dict[str, Any]) -> Row:
    """A record as a row without a label."""
    texts = (each["text"] if isinstance(each, dict) else each for each in record.get("contexts") or ())
    contexts = tuple(str(text or "") for text in texts)
    question = record.get("question") or None
    return Row(str(record.get("id", "")), question, contexts, str(record.get("answer") or ""))


def related(name: str, limit: int | None = None) -> LabelledSet:
    """Answers with contexts of which people said whether they are relevant, and whether the first was used."""
    found = []
    for record in records(DATA / f"{name}.jsonl"):
        label = record["label"]
        relevant = tuple(map(bool, label.get("context_relevant") or ()))
        if record["answer"] and any(relevant):
            used = label.get("used_contexts")
            first_used = None if used is None else 0 in used
            found.append(replace(row_of(record), relevant=relevant, first_used=first_used))
    return LabelledSet(name, thinned(found, limit))


def derived(limit: int | None = None) -> LabelledSet:
    """CLAPNQ's answers over their own passage (faithful), and over the passage of another question (not)."""
    found = [each for each in records(DATA / f"{RELEVANCE[2]}.jsonl") if each["label"]["answerable"]]
    other = list(found)
    random.Random(SEED).shuffle(other)
    rows = []
    for own, foreign in zip(found, other, strict=True):
        rows.append(row_of({**own, "contexts": [" ".join(own["contexts"])]}))
        if foreign is not own:
            rows.append(replace(row_of({**own, "contexts": [" ".join(foreign["contexts"])]}), unfaithful=True))
    return LabelledSet("clapnq answers, own and foreign passages", thinned(rows, limit))
