"""Fits the classifier of instructions to a judge, and writes `ragwatch/judges/tables/injection.json`.

`python training/injection.py` fits and writes it; `--figures` prints what lines that were not fitted on are read as.
Needs numpy, scipy and django. Lines of our own are in `training/injection/`; sentences of `../shared/data/judge/train`
and what Django says to users in other languages are harmless.
"""

import gettext
import json
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from text_classifier import DATA, HERE, Line, Settings, fit, lines_of, logits, table_of, write

from ragwatch.judges.llm.concepts import concept_pairs, pair_count
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
LANGUAGES = (
    *("de", "fr", "es", "it", "pt", "nl", "pl", "cs", "ru", "uk", "tr", "ar", "he", "hi", "zh_Hans", "ja", "ko", "vi"),
    *("id", "sv", "ro", "hu", "fi", "da", "nb", "el", "fa", "bn", "th"),
)
MOST_REAL, HARDEST = 8000, 6000
"""Real windows that it is fitted on at first, and those of all that look most like instructions, which follow."""
SHARES = (0.30, 0.25, 0.45)
SETTINGS = Settings(buckets=3 << 14, penalty=1e-6, passes=15, named=concept_pairs, names=pair_count())
ALONE, WITH_PHRASE = 1.0, -4.0
FOLDS = 4
SHORTEST = 12
"""Letters of a text of Django that is read."""


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


def interface_texts() -> list[str]:
    """What Django says to users in other languages; nothing where it is not installed."""
    spec = find_spec("django")
    rooms = [Path(spec.origin).parent] if spec and spec.origin else []
    found: dict[str, None] = {}
    for path in (file for room in rooms for file in sorted(room.glob("co*/**/LC_MESSAGES/*.mo"))):
        if path.parts[-3] not in LANGUAGES:
            continue
        with path.open("rb") as file:
            texts = vars(gettext.GNUTranslations(file))["_catalog"]
        found |= dict.fromkeys(" ".join(text.split()) for key, text in texts.items() if key and text != key)
    return [text for text in found if len(text) >= SHORTEST]


def print_held_out(name: str, lines: Sequence[Line], real: Sequence[str], group: Callable[[Line], str]) -> None:
    """Fit without a quarter of the groups in turn, and print how each group is read that was left out."""
    groups = sorted({group(line) for line in lines})
    found: dict[str, list[bool]] = {}
    for fold in range(FOLDS):
        held = groups[fold::FOLDS]
        tested = [line for line in lines if group(line) in held]
        model = fit(read_words, [line for line in lines if group(line) not in held], real, SHARES, SETTINGS)
        for line, logit in zip(tested, logits(model, [read_words(line.text) for line in tested]), strict=True):
            for each in ("all", group(line)):
                found.setdefault(f"{each} {'-+'[line.positive]}", []).append(bool(logit > ALONE))
    print(name, {each: (round(float(np.mean(hits)), 3), len(hits)) for each, hits in sorted(found.items())})


def main() -> None:
    """Fit and write, or print figures."""
    lines = [line for path in sorted((HERE / "injection").glob("*.txt")) for line in lines_of(path)]
    everything, texts = real_sentences(FITTED), interface_texts()
    real = [*everything[:MOST_REAL], *texts]
    if "--figures" in sys.argv:
        print_held_out("language", lines, real, lambda line: line.language)
        print_held_out("idea", lines, real, lambda line: line.kind if line.positive else f"harmless {line.language}")
    model = fit(read_words, lines, real, SHARES, SETTINGS)
    order = np.argsort(-logits(model, list(map(read_words, everything))), kind="stable")[:HARDEST]
    real = list(dict.fromkeys([*real, *(everything[number] for number in order)]))
    model = fit(read_words, lines, real, SHARES, SETTINGS)
    for names in (FITTED, HELD_OUT):
        found = logits(model, list(map(read_words, real_sentences(names))))
        print(names, len(found), {cut: float(np.mean(found > cut)) for cut in (-2.5, -1, -0.5, 0, 0.5)})
    write("injection", table_of(model, alone=ALONE, with_phrase=WITH_PHRASE))


if __name__ == "__main__":
    main()
