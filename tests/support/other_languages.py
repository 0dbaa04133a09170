"""Questions, contexts and answers in nine languages, written for the tests: the same construction in each.

Thirty devices have four documents of two sentences each; a question asks for one of these eight facts, its contexts are
the document with the fact and those of other devices, and its answer says the fact in other words. Nobody asked these
questions: they show that a language is read as English is, and nothing of how good a judge is on real answers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from ragwatch.model.sample import Context, Sample

THINGS = tuple(" ".join(pair) for pair in product(("Orka", "Vela", "Tulsa", "Nordo", "Pixa"), "ABCDEF"))
DOCUMENTS = 4
PER_DOCUMENT = 2

_TABLE = Path(__file__).parents[1] / "data" / "languages" / "facts.tsv"
_ROWS = [line.split("\t") for line in _TABLE.read_text(encoding="utf-8").splitlines()[1:]]
FACTS = {
    language: [row for name, *row in _ROWS if name == language] for language in dict.fromkeys(row[0] for row in _ROWS)
}
"""By language, for each fact: question, sentence of a document, answer."""


def records(language: str) -> list[Sample]:
    """240 right answers in a language, in an order that is the same in every language."""
    facts = FACTS[language]
    rng = random.Random(44)
    numbers = {(thing, fact): rng.randint(2, 97) for thing in THINGS for fact in range(len(facts))}

    def said(part: int, thing: str, fact: int) -> str:
        text = facts[fact][part].replace("{n}", str(numbers[thing, fact])).replace("{}", thing)
        return text[0].upper() + text[1:]

    def document(thing: str, place: int) -> str:
        first = place * PER_DOCUMENT
        return " ".join(said(1, thing, fact) for fact in range(first, first + PER_DOCUMENT))

    samples = []
    for thing, fact in rng.sample(list(numbers), len(numbers)):
        others = [document(rng.choice(THINGS), rng.randrange(DOCUMENTS)) for _ in range(2)]
        contexts = [document(thing, fact // PER_DOCUMENT), *others]
        rng.shuffle(contexts)
        name = f"{language}-{thing}-{fact}"
        samples.append(Sample(name, said(0, thing, fact), tuple(map(Context, contexts)), said(2, thing, fact)))
    return samples


def swapped(samples: list[Sample], rng: random.Random, share: float = 1.0) -> Iterator[Sample]:
    """Give so many of the samples, drawn by chance, the answer of another question."""
    for sample in samples:
        other = rng.choice(samples)
        yield sample._replace(answer=other.answer) if rng.random() < share else sample
