"""Checks of the chunks' texts: complete thoughts, lengths, duplicates, and facts split over chunk boundaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import permutations, repeat
from statistics import median, quantiles

from ragwatch.core.checklist.definition import (
    Check,
    Chunk,
    Finding,
    Question,
    distinct,
    measured,
    not_measurable,
    percent,
)
from ragwatch.core.chunks import begins_inside, ends_inside, linked, near_duplicates, splits_sentence

MIN_CHUNKS, MIN_CLAIMS = 10, 10
MAX_CUT = 0.2  # share of chunks that begin or end inside a sentence
SHORT_CHARS, LONG_CHARS = 80, 6000  # a chunk outside has hardly a fact, or many topics
MAX_ODD_LENGTHS, MAX_SPREAD = 0.1, 10.0
MAX_WASTED = 0.05  # share of retrieved places that a copy of a better-ranked chunk takes
MAX_SPLIT = 0.05  # share of supported claims
_MAX_PAIRED = 20  # chunks of a question that are compared with one another
MAX_COMPARED = 5000  # chunks that are compared with one another
_NO_TEXTS = "fewer than {minimum} different chunks with a text are stored"


def coherence(questions: Sequence[Question]) -> Finding:
    """Checks that chunks begin and end between sentences."""
    chunks = distinct(questions)
    if len(chunks) < MIN_CHUNKS:
        return not_measurable(Check.COHERENCE, _NO_TEXTS.format(minimum=MIN_CHUNKS))
    begin = {key for key, (chunk, _) in chunks.items() if begins_inside(chunk.text or "")}
    end = {key for key, (chunk, _) in chunks.items() if ends_inside(chunk.text or "")}
    cut = [key for key in chunks if key in begin or key in end]
    share = len(cut) / len(chunks)
    return measured(
        Check.COHERENCE,
        share,
        MAX_CUT,
        f"{len(cut)} of {len(chunks)} chunks ({percent(share)}) begin or end inside a sentence",
        evidence=[f"{len(begin)} begin inside a sentence, {len(end)} end inside one", *_excerpts(cut, chunks, end)],
        figures={"chunks": len(chunks), "begin_inside": len(begin), "end_inside": len(end)},
        examples=(chunks[key][1] for key in cut),
    )


def _excerpts(cut: Sequence[str], chunks: Mapping[str, tuple[Chunk, str]], end: set[str]) -> list[str]:
    """Returns the cut edges of the first two chunks."""
    lines = []
    for key in cut[:2]:
        text = " ".join((chunks[key][0].text or "").split())
        lines.append(f"for example ends with: ...{text[-60:]}" if key in end else f"for example begins: {text[:60]}...")
    return lines


def lengths(questions: Sequence[Question]) -> Finding:
    """Checks the distribution of the chunks' lengths."""
    chunks = distinct(questions)
    sizes = {key: len(chunk.text or "") for key, (chunk, _) in chunks.items()}
    if len(sizes) < MIN_CHUNKS:
        return not_measurable(Check.LENGTH, _NO_TEXTS.format(minimum=MIN_CHUNKS))
    deciles = quantiles(sizes.values(), n=10, method="inclusive")
    low, middle, high = deciles[0], median(sizes.values()), deciles[-1]
    short = [key for key, size in sizes.items() if size < SHORT_CHARS]
    long = [key for key, size in sizes.items() if size > LONG_CHARS]
    uneven = low > 0 and high / low > MAX_SPREAD
    share = max((len(short) + len(long)) / len(sizes), 0.2 if uneven else 0.0)  # beyond both deciles lie 20 %
    return measured(
        Check.LENGTH,
        share,
        MAX_ODD_LENGTHS,
        f"chunks have {middle:.0f} characters in the middle, 80 % have {low:.0f} to {high:.0f}",
        evidence=[
            (
                f"{len(short)} of {len(sizes)} are shorter than {SHORT_CHARS} characters, "
                f"{len(long)} longer than {LONG_CHARS}"
            ),
            *([f"the longest tenth is {high / low:.0f} times as long as the shortest"] if uneven else []),
        ],
        figures={"chunks": len(sizes), "p10": low, "p50": middle, "p90": high, "short": len(short), "long": len(long)},
        examples=(chunks[key][1] for key in (*short, *long)),
    )


def duplicates(questions: Sequence[Question]) -> Finding:
    """Checks that copies of one text do not take the places of other chunks."""
    chunks = dict(list(distinct(questions).items())[:MAX_COMPARED])
    if len(chunks) < MIN_CHUNKS:
        return not_measurable(Check.DUPLICATES, _NO_TEXTS.format(minimum=MIN_CHUNKS))
    keys, texts = list(chunks), [chunk.text or "" for chunk, _ in chunks.values()]
    groups = near_duplicates(texts)
    group_of = {keys[index]: number for number, group in enumerate(groups) for index in group}
    copies = {question.id: _copies(question, group_of) for question in questions}
    places = sum(len(question.chunks) for question in questions)
    wasted = sum(copies.values())
    share = wasted / places
    exact = sum(len({" ".join(texts[index].split()) for index in group}) == 1 for group in groups)
    inside = sum(map(len, groups))
    return measured(
        Check.DUPLICATES,
        share,
        MAX_WASTED,
        f"{wasted} of {places} retrieved places ({percent(share)}) hold a copy of a better-ranked chunk",
        evidence=[
            (
                f"{inside} of {len(chunks)} chunks are near-duplicates of another one, in {len(groups)} groups; "
                f"{exact} groups are exact copies"
            ),
            *(f"for example: {', '.join(keys[index][:40] for index in group[:4])}" for group in groups[:2]),
        ],
        figures={"places": places, "wasted": wasted, "groups": len(groups), "exact": exact, "chunks": inside},
        examples=(name for name, count in copies.items() if count),
    )


def _copies(question: Question, group_of: dict[str, int]) -> int:
    """Returns the number of chunks of a question that copy a better-ranked one, by text or by id."""
    counts = Counter(group_of.get(chunk.key, chunk.key) for chunk in question.chunks if chunk.key)
    return sum(counts.values()) - len(counts)


def boundaries(questions: Sequence[Question]) -> Finding:
    """Checks whether claims need neighbouring chunks together, so that a fact or a sentence is split between them."""
    claims = sum(len(question.together) for question in questions)
    if claims < MIN_CLAIMS:
        return not_measurable(
            Check.BOUNDARIES, f"fewer than {MIN_CLAIMS} supported claims are stored (no judge has read enough answers)"
        )
    counts: Counter[str] = Counter()
    examples = []
    for question in questions:
        for positions, claim in zip(question.together, question.claims or repeat(""), strict=False):
            parts = [question.chunks[position] for position in positions if position < len(question.chunks)]
            facts = linked([(chunk.id, chunk.text or "") for chunk in parts])
            sentence = _is_cut(claim, question.chunks)
            counts.update({"joint": bool(positions), "facts": facts, "sentences": sentence, "split": facts or sentence})
            if facts or sentence:
                examples.append(question.id)
    share = counts["split"] / claims
    return measured(
        Check.BOUNDARIES,
        share,
        MAX_SPLIT,
        f"{counts['split']} of {claims} supported claims ({percent(share)}) need neighbouring chunks of one document "
        "together",
        evidence=[
            f"{counts['joint']} claims need several chunks together; {counts['facts']} of these chunks are neighbours",
            f"{counts['sentences']} claims tell a sentence that is cut between two chunks",
        ],
        figures={"claims": claims, **{name: counts[name] for name in ("joint", "split", "sentences")}},
        examples=examples,
    )


def _is_cut(claim: str, chunks: Sequence[Chunk]) -> bool:
    """Returns whether a claim tells a sentence that is split over two of the chunks."""
    texts = [(chunk.id, chunk.text) for chunk in chunks[:_MAX_PAIRED] if chunk.text]
    return bool(claim) and any(splits_sentence(claim, before, after) for before, after in permutations(texts, 2))
