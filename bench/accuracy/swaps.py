"""A set of single-fact swaps: claims that are right but for one name or number, beside the same claims unswapped.

Half of the claims are sentences of passages, half are claims that people found supported by theirs, in other words than
the passage. One name or number that claim and passage share is replaced by another one of its kind: in the claim, or
(the other direction) wherever it stands in the passage. Deterministic: the same data give the same set.
"""

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from accuracy.rows import DATA, LabelledSet, Row, records, row_of

SWAPS = 1000
BAR = 0.90
SEED = 20260214
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b(?!')")
_NUMBER = re.compile(r"(?<![\w.,:/$£€\[-])\d{1,4}(?![\w%:/-]|[.,]\d)")
_COMMON = re.compile(r"\b[a-z]{4,}\b")
_SENTENCE = re.compile(r"[A-Z][^.!?\n|]{40,220}[.](?=\s|$)")
_COPIED = ("canary/hotpotqa/corpus.jsonl", "canary/musique/corpus.jsonl", "canary/chunking_eval/corpus.jsonl")
_CLAIMED = ("judge/train/attributionbench/dev", "judge/train/wice/claim_dev", "judge/dev/wice/claim_test")


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim that its passage supports."""

    claim: str
    passage: str
    question: str | None = None


def swaps(count: int = SWAPS) -> LabelledSet:
    """So many swapped claims (unfaithful), each beside its unswapped one."""
    rng = random.Random(SEED)
    half = (count + 1) // 2
    rows = [*_swapped(_copies(rng), half, rng, "copied"), *_swapped(_claims(rng), count - half, rng, "claimed")]
    return LabelledSet("single-fact swaps", rows, BAR)


def _copies(rng: random.Random) -> list[Pair]:
    """Sentences of passages, each beside its passage."""
    pairs = []
    for name in _COPIED:
        texts = [json.loads(line)["text"] for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
        pairs += [Pair(found[0], text) for text in texts if (found := _SENTENCE.findall(text))]
    rng.shuffle(pairs)
    return pairs


def _claims(rng: random.Random) -> list[Pair]:
    """Claims that people found supported, each beside its evidence."""
    pairs = []
    for name in _CLAIMED:
        for record in records(DATA / f"{name}.jsonl"):
            if record["label"]["faithful"] and len(record["answer"]) < 400:
                row = row_of(record)
                pairs.append(Pair(row.answer, "\n".join(row.contexts), row.question))
    with gzip.open(DATA / "judge/nli/fever.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [record for record in map(json.loads, lines) if record["label"] == "supported"]
    pairs += [Pair(record["claim"], record["evidence"]) for record in rng.sample(found, 1500)]
    rng.shuffle(pairs)
    return pairs


def _swapped(pairs: list[Pair], count: int, rng: random.Random, name: str) -> Iterator[Row]:
    """Two rows for each of the first pairs with a fact to swap: names and numbers, claim and passage in turn."""
    seen = Counter(name for pair in pairs for name in set(_NAME.findall(pair.passage)))
    common = {word for pair in pairs for word in _COMMON.findall(pair.passage)}
    names = sorted(name for name, times in seen.items() if times > 3 and name.lower() not in common)
    done = 0
    for pair in pairs:
        if done == count:
            return
        is_number, in_claim = bool(done % 2), done % 4 < 2
        facts = [fact for fact in _facts(pair, is_number=is_number) if is_number or fact.lower() not in common]
        if not facts:
            continue
        fact = rng.choice(facts)
        other = _number(fact, pair, rng) if is_number else _other_name(names, pair, rng)
        whole = re.compile(rf"(?<!\w){re.escape(fact)}(?!\w)")
        row = Row(f"{name}-{done}", pair.question, (pair.passage,), pair.claim)
        raw = f"{'number' if is_number else 'name'} in the {'claim' if in_claim else 'passage'}"
        wrong = (
            replace(row, answer=whole.sub(other, row.answer))
            if in_claim
            else replace(row, contexts=(whole.sub(other, pair.passage),))
        )
        yield replace(row, raw=raw)
        yield replace(wrong, name=f"{row.name}-swapped", unfaithful=True, raw=raw)
        done += 1


def _facts(pair: Pair, *, is_number: bool) -> list[str]:
    """Names, or numbers, of a claim that its passage holds too and its question does not."""
    pattern = _NUMBER if is_number else _NAME
    asked = pair.question or ""
    return [
        fact for fact in pattern.findall(pair.claim) if re.search(rf"\b{fact}\b", pair.passage) and fact not in asked
    ]


def _number(fact: str, pair: Pair, rng: random.Random) -> str:
    value, spread = int(fact), max(3, int(fact) // 10) if len(fact) < 4 else 9
    while True:
        other = str(max(2, value + rng.choice((-1, 1)) * rng.randint(1, spread)))
        if other != fact and other not in pair.passage + pair.claim:
            return other
        spread += 1


def _other_name(names: list[str], pair: Pair, rng: random.Random) -> str:
    while True:
        other = rng.choice(names)
        if other.lower() not in (pair.passage + pair.claim).lower():
            return other
