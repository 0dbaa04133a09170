"""What the reader learns first, from no set that it is judged on: labelled talk, broken claims, broken sentences."""

import hashlib
import json
import random
import re
from collections.abc import Collection, Iterator

from local_edits import SWAPS, edits
from local_pairs import ABSENT, CONTRADICTED, SUPPORTED, UNSUPPORTED, Pair, human_answers, parsed, read, said
from sets import DATA, load

TALK = {
    "judge/train/q2_wow/cross_annotation": "q2",
    "judge/train/begin/wow_test": "begin",
    "judge/train/begin/tc_dev": "begin",
    "judge/train/begin/cmu_dev": "begin",
}
"""Sets of labelled talk, and their families."""
PAGES = ("relevance/hotpotqa/sample100", "relevance/musique/sample100")
CORPORA = ("chunking_eval", "hotpotqa", "musique")
DENIES = frozenset({"number", "negation", "opposite"})
"""Edits that contradict; another name or word may as well be something nobody spoke of."""
FEWEST_WORDS, MOST_WORDS, LETTERS = 6, 45, 0.6
"""Of a sentence that becomes a claim: words, and the share of its characters that are letters."""
OF_PEOPLE = 0.3
"""Share of the swaps that are made in claims that people wrote."""
_ASIDE = re.compile(r"\s*\([^)]*\)")


def broken(budget: int, rng: random.Random, without: Collection[str] = ()) -> Iterator[Pair]:
    """Claims that people made from passages, each with one small thing changed in up to four ways.

    Args:
        budget: Words of evidence.
        rng: Of the changes.
        without: Families of talk whose claims are left out.
    """
    people = [part for part in human_answers() if not is_planted(part[1])]
    source = [(question, contexts, claim, 4) for _, question, contexts, claim in people]
    for name, family in TALK.items():
        for row in load(name) if family not in without else ():
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
        if not FEWEST_WORDS <= len(claim.split()) <= MOST_WORDS or sum(map(str.isalpha, claim)) < LETTERS * len(claim):
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


def swapped(budget: int, rng: random.Random, count: int) -> Iterator[Pair]:
    """Claims as written, and with names or numbers swapped: people's (but of `is_planted`), sentences of passages."""
    people = [
        (question, contexts, claim)
        for _, question, contexts, claim in human_answers()
        if not is_planted(question) and len(claim.split()) >= FEWEST_WORDS
    ]
    texts = passages()
    made = 0
    while made < count:
        question, contexts, claim = rng.choice(people) if rng.random() < OF_PEOPLE else _quoted(rng.choice(texts), rng)
        changes = edits(claim, " ".join(contexts), rng, 2, SWAPS)
        if not claim or not changes:
            continue
        for text, verdict, spans in [
            (claim, SUPPORTED, ()),
            *((edit.text, CONTRADICTED if edit.kind in DENIES else UNSUPPORTED, edit.spans) for edit in changes),
        ]:
            evidence, lexical = read(text, contexts, budget, question)
            made += 1
            yield Pair("swap", f"swap:{made}", text, evidence, verdict, lexical, spans)


def is_planted(question: str) -> bool:
    """Whether edits of the claims of a question are kept for figures."""
    return hashlib.sha256(question.encode()).digest()[0] % 3 == 0


def _quoted(text: str, rng: random.Random) -> tuple[str, list[str], str]:
    """A sentence of a passage, shortened or begun elsewhere, over the whole passage; no claim where none fits."""
    start, end = rng.choice(parsed(text).offsets or ((0, 0),))
    claim = " ".join(text[start:end].split())
    if not FEWEST_WORDS <= len(claim.split()) <= MOST_WORDS or sum(map(str.isalpha, claim)) < LETTERS * len(claim):
        return "", [text], ""
    claim = _shorter(claim, rng)
    parts = claim.split(", ", 1)
    if len(parts) > 1 and len(parts[0].split()) <= 7 and len(parts[1].split()) >= FEWEST_WORDS and rng.random() < 0.5:
        claim = f"{parts[1].rstrip('.')}, {parts[0][:1].lower()}{parts[0][1:]}."  # "In 1905, he ..." said last
    return "", [text], claim


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
