"""Checks of texts: thoughts, lengths and copies of chunks, facts split at boundaries, terms, and dates."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations, repeat
from statistics import median, quantiles

from ragwatch.offline.diagnosis.chunks import begins_inside, ends_inside, linked, near_duplicates, splits_sentence
from ragwatch.offline.diagnosis.definition import (
    Check,
    Chunk,
    Finding,
    Question,
    distinct,
    measured,
    not_measurable,
    percent,
)

MIN_QUESTIONS, MIN_CHUNKS, MIN_CLAIMS = 10, 10, 10
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
    copies = {}  # by question: chunks that copy a better-ranked one, by text or by id
    for question in questions:
        own = Counter(group_of.get(chunk.key, chunk.key) for chunk in question.chunks if chunk.key)
        copies[question.id] = own.total() - len(own)
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
    texts = [(chunk.id, chunk.text) for chunk in chunks[:_MAX_PAIRED] if chunk.text]
    return bool(claim) and any(splits_sentence(claim, before, after) for before, after in permutations(texts, 2))


Terms = Callable[[str], Iterable[str]]
"""Splits a text into content terms; function words are left out."""

MAX_UNKNOWN = 0.2  # share of questions with a term that no chunk holds
MAX_STALE = 0.05
MAX_TERMS = 10
_EDGES = ".,;:!?\"'()[]“”‘’«»"
_REQUESTS = (
    "happen tell explain describe list show give please help find know want need mean say look anyone possible way"
)
_TOKEN = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")
_DAY = re.compile(r"(?<!\d)(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)")
_YEAR = re.compile(r"(?<![\d.,$€£-])(?:19|20)\d\d(?![\d-]|[.,]\d)")
_MAX_CHARS = 20_000


def vocabulary(questions: Sequence[Question], terms: Terms) -> Finding:
    """Checks whether questions use terms that no retrieved chunk holds, of any question."""
    asked = [(question, question.text) for question in questions if question.text]
    chunks = distinct(questions)
    if len(asked) < MIN_QUESTIONS or len(chunks) < MIN_CHUNKS:
        return not_measurable(
            Check.VOCABULARY, f"fewer than {MIN_QUESTIONS} questions with a text, or {MIN_CHUNKS} chunks, are stored"
        )
    held = {term for chunk, _ in chunks.values() for term in terms((chunk.text or "")[:_MAX_CHARS])}
    held |= {*terms(_REQUESTS)}
    missing = {question.id: _missing(text, held, terms) for question, text in asked}
    affected = [question for question, _ in asked if missing[question.id]]
    counts = Counter(term for names in missing.values() for term in names)
    words = {term: word for names in reversed(missing.values()) for term, word in names.items()}
    share = len(affected) / len(asked)
    often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_TERMS]
    return measured(
        Check.VOCABULARY,
        share,
        MAX_UNKNOWN,
        f"{len(affected)} of {len(asked)} questions ({percent(share)}) have a term that no retrieved chunk holds",
        evidence=[
            *([f"most frequent: {', '.join(f'{words[term]} ({count})' for term, count in often)}"] if often else []),
            *_failures(affected, [question for question, _ in asked if not missing[question.id]]),
        ],
        figures={"questions": len(asked), "affected": len(affected), "terms": len(counts)},
        examples=(question.id for question in affected),
    )


def _missing(text: str, held: set[str], terms: Terms) -> dict[str, str]:
    """Returns the terms of a question that are not held, each with the word that it comes from."""
    words = [word.strip(_EDGES) for word in _TOKEN.sub(" ", text[:_MAX_CHARS]).casefold().split()]
    pairs = ((name, word) for word in words for name in terms(word) if not any(char.isdigit() for char in name))
    return {name: word for name, word in pairs if name not in held}


def _failures(with_term: Sequence[Question], without: Sequence[Question]) -> list[str]:
    """Returns how often retrieval failed on either side, which tells whether the terms matter."""
    shares = []
    for side in (with_term, without):
        known = [question.retrieval_failed for question in side if question.retrieval_failed is not None]
        if not known:
            return []
        shares.append(percent(sum(known) / len(known)))
    return [f"the judge names retrieval at fault for {shares[0]} of these questions, and for {shares[1]} of the others"]


def freshness(questions: Sequence[Question]) -> Finding:
    """Checks whether questions name a date after the newest one in the chunks, and whether old versions remain.

    Dates after the newest answer are ignored in chunks, because they are numbers or lie in the future.
    """
    chunks = distinct(questions)
    last = max((question.day for question in questions), default="") or "9999"
    dates = [_newest(f"{chunk.id or ''} {chunk.text}", last) for chunk, _ in chunks.values()]
    newest = max([*dates, *(date for question in questions for date in question.dates)], default="")
    if not newest:
        return not_measurable(
            Check.FRESHNESS,
            "no chunk, id, `updated_at` of a context or metadata of a sample (`indexed_at`) names a date",
        )
    asked = [question for question in questions if question.text]
    late = [question for question in asked if _newest(question.text or "", f"{last[:4]}-99")[: len(newest)] > newest]
    old = _old_versions(list(chunks), [chunk.text or "" for chunk, _ in chunks.values()], dates)
    outdated = [question for question in questions if any(chunk.key in old for chunk in question.chunks)]
    affected = dict.fromkeys(question.id for question in (*late, *outdated))
    return measured(
        Check.FRESHNESS,
        len(affected) / len(questions),
        MAX_STALE,
        f"{len(late)} of {len(asked)} questions name a date after the newest one in the documents ({newest}), and "
        f"{len(outdated)} retrieved an old version of a text",
        evidence=[
            *([] if last == "9999" else [f"the newest answer is of {last}"]),
            *([f"old versions, for example: {', '.join(sorted(old)[:3])[:200]}"] if old else []),
        ],
        figures={"questions": len(questions), "late": len(late), "outdated": len(outdated), "old_versions": len(old)},
        examples=affected,
    )


def _newest(text: str, last: str) -> str:
    """Returns the newest date up to `last` in a text, as `YYYY-MM-DD` or, without a day, `YYYY`; empty for none."""
    text = text[:_MAX_CHARS]
    return max((date for date in (*_DAY.findall(text), *_YEAR.findall(text)) if date <= last), default="")


def _old_versions(keys: Sequence[str], texts: Sequence[str], dates: Sequence[str]) -> set[str]:
    """Returns the keys of texts of which a near-duplicate has a newer date."""
    return {
        keys[index]
        for group in near_duplicates(texts)
        for index in group
        if dates[index] and dates[index] < max(dates[other] for other in group)[: len(dates[index])]
    }
