"""What the reader learns first, from no set that it is judged on: labelled talk, broken claims, broken sentences."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

from local_edits import edits
from local_pairs import ABSENT, CONTRADICTED, SUPPORTED, UNSUPPORTED, Pair, human_answers, parsed, read, said
from sets import DATA, load

TALK = (
    "judge/train/q2_wow/cross_annotation",
    "judge/train/begin/wow_test",
    "judge/train/begin/tc_dev",
    "judge/train/begin/cmu_dev",
)
PAGES = ("relevance/hotpotqa/sample100", "relevance/musique/sample100")
CORPORA = ("chunking_eval", "hotpotqa", "musique")
DENIES = frozenset({"number", "negation", "opposite"})
"""Edits that contradict; another name or word may as well be something nobody spoke of."""
_ASIDE = re.compile(r"\s*\([^)]*\)")


def broken(budget: int, rng: random.Random) -> Iterator[Pair]:
    """Claims that people made from passages, each with one small thing changed in up to four ways."""
    source = [(question, contexts, claim, 4) for _, question, contexts, claim in human_answers()]
    for name in TALK:
        for row in load(name):
            if row["label"]["faithful"]:
                source += [(row["question"] or "", row["contexts"], claim, 3) for claim in said(row["answer"])]
    for number, (question, contexts, claim, most) in enumerate(source):
        for edit in edits(claim, " ".join(contexts), rng, most):
            evidence, lexical = read(edit.text, contexts, budget, question)
            verdict = CONTRADICTED if edit.kind in DENIES else UNSUPPORTED
            yield Pair("edit", f"edit:{number}", edit.text, evidence, verdict, lexical, edit.spans)


def passages() -> list[str]:
    """Passages of sets that judge nothing, each once."""
    found: set[str] = set()
    for row in load("relevance/mtrag_answerability"):
        found.update(row["contexts"])
    found.update(" ".join(row["contexts"]) for row in load("relevance/clapnq/dev"))
    for name in PAGES:
        for row in load(name):
            found.update(row["contexts"])
    for name in CORPORA:
        for line in (DATA / "canary" / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            found.add(document.get("text") or document.get("contents"))
    return sorted(text for text in found if text)


def sentences(budget: int, rng: random.Random, count: int) -> Iterator[Pair]:
    """Sentences of passages, shortened; as they are, with an edit, or over a passage that lacks them."""
    texts = passages()
    made = 0
    while made < count:
        text = rng.choice(texts)
        offsets = parsed(text).offsets
        if len(offsets) < 2:
            continue
        start, end = rng.choice(offsets)
        claim = " ".join(text[start:end].split())
        if not 6 <= len(claim.split()) <= 45 or sum(letter.isalpha() for letter in claim) < 0.6 * len(claim):
            continue
        made += 1
        yield from _sentence(_shorter(claim, rng), text, (start, end), budget, rng)


def _shorter(claim: str, rng: random.Random) -> str:
    draw = rng.random()
    if draw < 0.25:
        claim = _ASIDE.sub("", claim)
    parts = claim.split(", ")
    head = ", ".join(parts[:-1])
    return f"{head.rstrip('.')}." if draw < 0.5 and len(parts) > 2 and len(head.split()) >= 5 else claim


def _sentence(claim: str, text: str, place: tuple[int, int], budget: int, rng: random.Random) -> Iterator[Pair]:
    draw = rng.random()
    if draw < 0.4:
        evidence, lexical = read(claim, [text], budget)
        yield Pair("sentence", "", claim, evidence, SUPPORTED, lexical, ())
    elif draw < 0.85:
        for edit in edits(claim, text, rng, 1):
            evidence, lexical = read(edit.text, [text], budget)
            verdict = CONTRADICTED if edit.kind in DENIES else UNSUPPORTED
            yield Pair("sentence", "", edit.text, evidence, verdict, lexical, edit.spans)
    else:
        evidence, lexical = read(claim, [text[: place[0]] + text[place[1] :]], budget)
        yield Pair("sentence", "", claim, evidence, ABSENT, lexical, None, 0.7)
