"""Fits the classifier of sentences that are no claims, and writes `kinds.json` and `kind_names.json`.

`python training/kinds.py` fits and writes it; `--figures` prints what lines are read as that were not fitted on, and
`--read` the real sentences that it takes for no claims, to be read by people. Needs numpy and scipy. Lines of our own
are in `training/kinds/`; sentences of contexts in `../shared/data/judge/train` are claims.
"""

import gzip
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from text_classifier import DATA, HERE, Line, Model, Settings, fit, lines_of, logits, table_of, write

from ragwatch.judges.claims.kinds import MAX_WORDS, asks, parts_to_read, read_words
from ragwatch.judges.claims.sentences import spans
from ragwatch.statistics.text.phrases import abstains, is_meta

FITTED = ("attributionbench/dev", "factcheck_gpt/stance", "summedits/news", "summedits/scitldr", "wice/claim_dev")
ANSWERS = tuple(f"summedits/{name}" for name in ("ectsum", "news", "podcast", "qmsumm", "scitldr"))
CLAIM_SETS = ("fever", "fm2", "scifact", "vitaminc_sample", "infotabs", "snli")
READ = ("expertqa/all", "attributionbench/dev", "factcheck_gpt/stance")
SHARES = (0.35, 0.35, 0.3)
CLAIMS = Settings(stress=3, penalty=1e-5)
NAMES = Settings(buckets=1 << 12, penalty=1e-5)
LABEL_WEIGHT = 3.0
"""What a labelled sentence weighs; a line of our own weighs 1."""
FITTED_LABELS = ("judge/train/attributionbench", "judge/train/expertqa", "judge/train/halueval", "relevance")
"""Sets whose labels are fitted on. In the chat of BEGIN and Q2, small talk has the words of its subjects."""
UNREAD = ("question", "heading")
"""Kinds that marks tell."""
LEAST = 0.75
MOST_REAL = 8000
ROUNDS, HARDEST = 3, 4000
"""Times that it is fitted; each time with more of those real sentences that look least like claims."""
FOLDS = 3
_OTHER_LETTERS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "eftghwkliqmnrjuvpxzbysdaoc")


def sentences(names: tuple[str, ...], *fields: str) -> list[str]:
    """Real sentences; none where the data is absent. Those that patterns or marks tell are left out."""
    found: dict[str, None] = {}
    for name in names:
        path = DATA / f"{name}.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            for text in _texts(json.loads(line), fields):
                found |= dict.fromkeys(text[span.start : span.end] for span in spans(text[:4000]))
    return [text for text in found if 2 < len(read_words(text)) <= MAX_WORDS + 2 and not _is_told(text)]


def short_claims() -> list[str]:
    """Short claims that people wrote for sets of claims and evidence; none where the data is absent."""
    found: dict[str, None] = {}
    for name in CLAIM_SETS:
        path = DATA.parent / "nli" / f"{name}.jsonl.gz"
        if path.is_file():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                found |= dict.fromkeys(json.loads(line)["claim"] for line in lines)
    return [text for text in found if 2 < len(read_words(text)) <= MAX_WORDS + 2 and not _is_told(text)]


def _texts(row: dict[str, object], fields: tuple[str, ...]) -> Iterator[str]:
    for field in fields:
        value = row.get(field)
        for text in value if isinstance(value, list) else [value]:
            yield str(text["text"] if isinstance(text, dict) else text or "")


def _is_told(text: str) -> bool:
    return asks(text) or abstains(text) or is_meta(text)


def own_lines() -> list[Line]:
    """Lines of our own, and the sentences of real answers that people have labelled, where there are any.

    A sentence of words that are not known is a claim: lines of the other classifier in nineteen languages, and lines
    in which every letter is another one.
    """
    lines = [line for path in sorted((HERE / "kinds").glob("*.txt")) for line in lines_of(path)]
    others = [*lines_of(HERE / "injection" / "languages.txt"), *(_unknown(line) for line in lines[::3])]
    lines += [line._replace(kind="other", positive=False) for line in others]
    if (HERE / "kinds" / "labels.csv").is_file():
        labels = importlib.import_module("kinds_labels").labelled()
        lines += [
            Line("real", kind, kind != "claim", sentence.text, LABEL_WEIGHT)
            for sentence, kind in labels
            if kind not in UNREAD and sentence.name.startswith(FITTED_LABELS) and not _is_told(sentence.text)
        ]
    return lines


def _unknown(line: Line) -> Line:
    return line._replace(language="none", text=line.text.lower().translate(_OTHER_LETTERS), weight=0.5)


def fit_names(lines: list[Line]) -> dict[str, Model]:
    """A classifier for each kind, which tells it from the others."""
    told = [line for line in lines if line.positive]
    return {
        kind: fit(read_words, [line._replace(positive=line.kind == kind) for line in told], [], (0.5, 0.5, 0), NAMES)
        for kind in sorted({line.kind for line in told})
    }


def values_of(model: Model, lines: list[Line]) -> list[float]:
    """The logit of the part of each line that looks most like a claim; one that its form shows to be a claim is low."""
    parts = [parts_to_read(line.text) for line in lines]
    found = iter(logits(model, [read_words(part) for each in parts for part in each]))
    return [min([float(next(found)) for _ in each], default=-9.0) for each in parts]


class Reading(NamedTuple):
    """A line as classifiers read it that were fitted without it."""

    line: Line
    value: float
    name: str


def readings(lines: list[Line], real: list[str]) -> Iterator[Reading]:
    """Every line, read by classifiers that were fitted on the other folds."""
    for fold in range(FOLDS):
        rest = [line for number, line in enumerate(lines) if number * 7919 % FOLDS != fold]
        held = [line for number, line in enumerate(lines) if number * 7919 % FOLDS == fold]
        values = values_of(fit(read_words, rest, real, SHARES, CLAIMS), held)
        words = [read_words(line.text) for line in held]
        by_kind = {kind: logits(model, words) for kind, model in fit_names(rest).items()}
        for number, (line, value) in enumerate(zip(held, values, strict=True)):
            yield Reading(line, value, max(by_kind, key=lambda kind: by_kind[kind][number]))


def figures(lines: list[Line], real: list[str]) -> None:
    """Print how lines are read by classifiers that were fitted without them."""
    found = list(readings(lines, real))
    for least in (-1.5, -1.0, -0.5, 0.0, 0.5):
        print(least, "F1", _by("language", found, partial(_f1, least=least)))
        print("    taken for no claims", _by("kind", found, partial(_taken, least=least)))
    told = [one for one in found if one.line.positive]
    print("named right", _by("kind", told, _named))
    for one in sorted(found, key=lambda one: one.value):
        if (one.value > LEAST) is not one.line.positive:
            print(f"{one.value:.2f}", one.line.language, one.line.kind, one.line.text)


def _by(field: str, found: list[Reading], figure: Callable[[list[Reading]], float]) -> dict[str, float]:
    """A figure of all lines, and of those of each language or kind."""
    names = dict.fromkeys(getattr(one.line, field) for one in found)
    groups = {name: [one for one in found if getattr(one.line, field) == name] for name in names}
    return {name: round(figure(group), 3) for name, group in ({"all": found} | groups).items()}


def _taken(found: list[Reading], least: float) -> float:
    return sum(one.value > least for one in found) / len(found)


def _named(found: list[Reading]) -> float:
    return sum(one.name == one.line.kind for one in found) / len(found)


def _f1(found: list[Reading], least: float) -> float:
    hits = sum(one.value > least and one.line.positive for one in found)
    return 2 * hits / max(1, sum(one.value > least for one in found) + sum(one.line.positive for one in found))


def main() -> None:
    """Fit and write, or print figures."""
    lines = own_lines()
    real = sentences(FITTED, "contexts")[:MOST_REAL]
    if "--figures" in sys.argv:
        figures(lines, real)
        return
    model = fit(read_words, lines, real, SHARES, CLAIMS)
    everything = sentences(FITTED, "contexts") + sentences(ANSWERS, "answer") + short_claims()
    read = list(map(read_words, everything))
    for _ in range(ROUNDS - 1):
        order = np.argsort(-logits(model, read))[:HARDEST]
        real = list(dict.fromkeys([*real, *(everything[number] for number in order)]))
        model = fit(read_words, lines, real, SHARES, CLAIMS)
    if "--read" in sys.argv:
        texts = sentences(READ, "answer")
        values = logits(model, list(map(read_words, texts)))
        for index in np.argsort(-values)[: int(np.sum(values > LEAST - 0.5))]:
            print(f"{values[index]:.2f}", texts[index])
        print(len(texts))
        return
    write("kinds", table_of(model, least=LEAST))
    write("kind_names", {kind: table_of(one) for kind, one in fit_names(lines).items()})


if __name__ == "__main__":
    main()
