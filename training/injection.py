"""Fits the classifier of instructions to a judge, and writes `ragwatch/judges/tables/injection.json`.

`python training/injection.py` fits and writes it; `--figures` prints what lines that were not fitted on are read as.
Needs numpy and scipy. Lines of our own are in `training/injection/`; sentences of `../shared/data/judge/train` are
harmless.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

import numpy as np
from text_classifier import DATA, HERE, Line, Settings, fit, lines_of, logits, table_of, write

from ragwatch.judges.llm.injection import windows
from ragwatch.judges.text_classifier import words_of

FITTED = (
    "attributionbench/dev",
    "factcheck_gpt/stance",
    *(
        f"summedits/{name}"
        for name in ("ectsum", "news", "podcast", "qmsumm", "sales_call", "sales_email", "samsum", "scitldr")
    ),
    *(f"begin/{name}" for name in ("cmu_dev", "tc_dev", "wow_dev", "wow_test")),
    "q2_wow/cross_annotation",
)
HELD_OUT = ("expertqa/all",)
ROUNDS, HARDEST = 4, 6000
"""Times that it is fitted; each time with more of those real windows that look most like instructions."""
SHARES = (0.30, 0.25, 0.45)
SETTINGS = Settings(penalty=5e-5)
ALONE, WITH_PHRASE = 0.0, -2.25
MOST_REAL = 8000


def read_words(text: str) -> list[str]:
    """The words of a text that are read."""
    return words_of(text)[:60]


def real_sentences(names: Sequence[str]) -> list[str]:
    """Windows of real answers and contexts; none where the data is absent."""
    sentences: dict[str, None] = {}
    for name in names:
        path = DATA / f"{name}.jsonl"
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.is_file() else ()
        for row in rows:
            contexts = (one if isinstance(one, str) else one["text"] for one in row.get("contexts") or ())
            for text in (row.get("answer") or "", row.get("question") or "", *contexts):
                sentences |= dict.fromkeys(" ".join(words) for words in windows(text[:6000]))
    return list(sentences)


def print_held_out(name: str, lines: Sequence[Line], real: Sequence[str], group: Callable[[int, Line], str]) -> None:
    """Fit without each group in turn, and print how that group is read."""
    hit, false = [], []
    by_group = {}
    for held in sorted({group(number, line) for number, line in enumerate(lines)}):
        rest = [line for number, line in enumerate(lines) if group(number, line) != held]
        tested = [line for number, line in enumerate(lines) if group(number, line) == held]
        found = logits(fit(read_words, rest, real[:2000], SHARES, SETTINGS), [read_words(line.text) for line in tested])
        ours = [float(logit) for logit, line in zip(found, tested, strict=True) if line.positive]
        theirs = [float(logit) for logit, line in zip(found, tested, strict=True) if not line.positive]
        by_group[held] = (
            f"{sum(one > ALONE for one in ours)}/{len(ours)} ({sum(one > ALONE for one in theirs)}/{len(theirs)})"
        )
        hit += ours
        false += theirs
    print(
        name,
        {
            cut: (round(np.mean(np.array(hit) > cut), 3), round(np.mean(np.array(false) > cut), 3))
            for cut in (-1, -0.5, 0, 0.5, 1)
        },
        by_group,
    )


def main() -> None:
    """Fit and write, or print figures."""
    lines = [line for path in sorted((HERE / "injection").glob("*.txt")) for line in lines_of(path)]
    real = real_sentences(FITTED)[:MOST_REAL]
    if "--figures" in sys.argv:
        print_held_out("a tenth of the lines", lines, real, lambda number, _: str(number * 7919 % 10))
        print_held_out("a language", lines, real, lambda _, line: line.language if line.language != "en" else "")
        print_held_out(
            "a kind (en)", [line for line in lines if line.language == "en"], real, lambda _, line: line.kind
        )
    model = fit(read_words, lines, real, SHARES, SETTINGS)
    everything = real_sentences(FITTED)
    read = list(map(read_words, everything))
    for _ in range(ROUNDS - 1):
        order = np.argsort(-logits(model, read))[:HARDEST]
        real = list(dict.fromkeys([*real, *(everything[number] for number in order)]))
        model = fit(read_words, lines, real, SHARES, SETTINGS)
    for names in (FITTED, HELD_OUT):
        found = logits(model, list(map(read_words, real_sentences(names))))
        print(names, len(found), {cut: float(np.mean(found > cut)) for cut in (-2.5, -1, -0.5, 0, 0.5)})
    write("injection", table_of(model, alone=ALONE, with_phrase=WITH_PHRASE))


if __name__ == "__main__":
    main()
