"""Fits the classifier of sentences that are no claims, and writes `ragwatch/judges/tables/kinds.json`.

`python training/kinds.py` fits and writes it; `--figures` prints what lines are read as that were not fitted on, and
`--read` the real sentences that it takes for no claims, to be read by people. Needs numpy and scipy. Lines of our own
are in `training/kinds/`; sentences of contexts in `../shared/data/judge/train` are claims.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import numpy as np
from text_classifier import DATA, HERE, Line, fit, lines_of, logits, write

from ragwatch.core.phrases import abstains, is_meta
from ragwatch.judges.lexical.kinds import MAX_WORDS, asks, read_words
from ragwatch.judges.lexical.sentences import spans

FITTED = ("attributionbench/dev", "factcheck_gpt/stance", "summedits/news", "summedits/scitldr", "wice/claim_dev")
ANSWERS = tuple(f"summedits/{name}" for name in ("ectsum", "news", "podcast", "qmsumm", "scitldr"))
READ = ("expertqa/all", "attributionbench/dev", "factcheck_gpt/stance")
SHARES = (0.35, 0.30, 0.35)
LEAST = 0.3
MOST_REAL = 8000
ROUNDS, HARDEST = 3, 4000
"""Times that it is fitted; each time with more of those real sentences that look least like claims."""
FOLDS = 10


def sentences(names: tuple[str, ...], *fields: str) -> list[str]:
    """Real sentences; none where the data is absent. Those that patterns or marks tell are left out."""
    found: dict[str, None] = {}
    for name in names:
        path = DATA / f"{name}.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            for text in _texts(json.loads(line), fields):
                found |= dict.fromkeys(text[span.start : span.end] for span in spans(text[:4000]))
    return [text for text in found if 2 < len(read_words(text)) <= MAX_WORDS + 2 and not _is_told(text)]


def _texts(row: dict[str, object], fields: tuple[str, ...]) -> Iterator[str]:
    for field in fields:
        value = row.get(field)
        for text in value if isinstance(value, list) else [value]:
            yield text["text"] if isinstance(text, dict) else text or ""


def _is_told(text: str) -> bool:
    return asks(text) or abstains(text) or is_meta(text)


def figures(lines: list[Line], real: list[str]) -> None:
    """Print how lines are read by classifiers that were fitted without them."""
    found: list[tuple[Line, float]] = []
    for fold in range(FOLDS):
        rest = [line for number, line in enumerate(lines) if number * 7919 % FOLDS != fold]
        held = [line for number, line in enumerate(lines) if number * 7919 % FOLDS == fold]
        values = logits(fit(read_words, rest, real, SHARES), [read_words(line.text) for line in held])
        found += zip(held, map(float, values), strict=True)
    for least in (-0.5, 0.0, 0.5, 1.0):
        hits = [value > least for line, value in found if line.positive]
        false = [value > least for line, value in found if not line.positive]
        share = {
            kind: round(float(np.mean([value > least for line, value in found if line.kind == kind])), 3)
            for kind in dict.fromkeys(line.kind for line, _ in found)
        }
        precision = sum(hits) / max(1, sum(hits) + sum(false))
        recall = float(np.mean(hits))
        print(least, f"F1 {2 * precision * recall / (precision + recall):.3f}", share)
    for line, value in sorted(found, key=lambda item: item[1]):
        if (value > LEAST) is not line.positive:
            print(f"{value:.2f}", line.kind, line.text)


def main() -> None:
    """Fit and write, or print figures."""
    lines = lines_of(HERE / "kinds" / "english.txt")
    real = sentences(FITTED, "contexts")[:MOST_REAL]
    if "--figures" in sys.argv:
        figures(lines, real)
        return
    model = fit(read_words, lines, real, SHARES)
    everything = sentences(FITTED, "contexts") + sentences(ANSWERS, "answer")
    read = list(map(read_words, everything))
    for _ in range(ROUNDS - 1):
        order = np.argsort(-logits(model, read))[:HARDEST]
        real = list(dict.fromkeys([*real, *(everything[number] for number in order)]))
        model = fit(read_words, lines, real, SHARES)
    if "--read" in sys.argv:
        texts = sentences(READ, "answer")
        values = logits(model, list(map(read_words, texts)))
        for index in np.argsort(-values)[: int(np.sum(values > LEAST - 0.5))]:
            print(f"{values[index]:.2f}", texts[index])
        print(len(texts))
        return
    write("kinds", model, {"least": LEAST})


if __name__ == "__main__":
    main()
