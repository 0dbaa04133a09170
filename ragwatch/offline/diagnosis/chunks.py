"""Inspects chunks of documents: texts cut inside a sentence, near-duplicates, neighbours within one document.

Every function reads a bounded part of each text, so the time is linear in the number of chunks.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from zlib import crc32

from ragwatch.statistics.text.vocabulary import words_of

SIMILARITY = 0.8
"""Share of common word triples from which two chunks are near-duplicates."""
MIN_OVERLAP_WORDS = 5
_EDGE_CHARS = 400  # read at either end of a chunk
_MAX_OVERLAP_WORDS = 200
_MIN_PROSE_WORDS = 8  # a line without a stop and with fewer words may be a heading
_MAX_NUMBERS = 0.4  # share of words with a digit
_SKETCH, _INDEXED, _MAX_BUCKET = 64, 8, 20
_MARKER = re.compile(r"(?:[-*+•◦▪‣·–>#|]|\(?\d{1,3}[.)]|[A-Za-z][)])\s")
_OPENERS = "\"'“‘«([*_`¿¡"
_CLOSERS = "\"'”’»)]*_`"
_CONTINUATIONS = ("…", "...", ",", ";", ")")
_STOPS = ".!?。！？"
_INNER_STOP = re.compile(r"[.!?][\"'”’»)\]*_`]{0,3}\s|[。！？]")
_PART_WORDS = ("chunk", "part", "section", "page", "para")
_SEPARATORS = "#:/_.- "
_MAX_ID_CHARS = 300
_WORD = re.compile(r"\w+")
_SEAM_WORDS = 2  # on either side of a cut


def begins_inside(text: str) -> bool | None:
    """Returns whether a chunk begins inside a sentence; None if it has no letter case to tell it by."""
    head = text.lstrip()[:_EDGE_CHARS]
    first = head.lstrip(_OPENERS)
    if not first or head.startswith(_CONTINUATIONS) or _MARKER.match(head):
        return head.startswith(_CONTINUATIONS) if head else None
    if not first[0].islower():
        return None if first[0].isalpha() and not first[0].isupper() else False
    word = first.split(maxsplit=1)[0].rstrip(".,;:!?" + _CLOSERS)
    if not word.replace("-", "").replace("’", "").replace("'", "").isalpha() or word != word.lower():
        return False  # an identifier, a command, or a name such as iPhone
    return True if any(char.isupper() for char in head) else None


def ends_inside(text: str) -> bool | None:
    """Returns whether a chunk ends inside a sentence; None for an empty text.

    A list item, a heading, a table row and code have no stop at their end and count as complete.
    """
    tail = text.rstrip()[-_EDGE_CHARS:]
    if not tail:
        return None
    line = tail.rpartition("\n")[2].strip()
    if _MARKER.match(line) or line.endswith(("|", "```", "}", ">")):
        return False
    closed = line.rstrip(_CLOSERS)
    if closed.endswith(("…", "...", ",", ";", ":", "-", "(")):
        return True
    if not closed or closed[-1] in _STOPS:
        return False
    return len(line.split()) >= _MIN_PROSE_WORDS or _INNER_STOP.search(line) is not None


def near_duplicates(texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Returns groups of two or more texts of nearly the same words, as positions in order; digits count as equal.

    Texts are compared by the 64 smallest hashes of their word triples, an estimate of the Jaccard similarity. Only
    texts that share one of their 8 smallest hashes are compared.
    """
    sketches = [_sketch(text) for text in texts]
    parent = list(range(len(texts)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    buckets: defaultdict[int, list[int]] = defaultdict(list)
    for index, sketch in enumerate(sketches):
        for value in sketch[:_INDEXED]:
            bucket = buckets[value]
            for other in bucket:
                if root(index) != root(other) and _similarity(sketch, sketches[other]) >= SIMILARITY:
                    parent[max(root(index), root(other))] = min(root(index), root(other))
            if len(bucket) < _MAX_BUCKET:
                bucket.append(index)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for index in range(len(texts)):
        groups[root(index)].append(index)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _sketch(text: str) -> list[int]:
    """Returns the smallest hashes of the word triples of the beginning of a text, in ascending order.

    A table of numbers resembles every other one once digits count as equal, so it is hashed as a whole.
    """
    words = words_of(text)
    if sum(b"0" in word for word in words) > _MAX_NUMBERS * len(words):
        return [crc32(" ".join(text.split()).encode("utf-8", "surrogatepass"))]
    triples = {b" ".join(words[index : index + 3]) for index in range(max(1, len(words) - 2))} if words else set()
    return sorted({crc32(triple) for triple in triples})[:_SKETCH]


def _similarity(a: Sequence[int], b: Sequence[int]) -> float:
    smallest = sorted({*a, *b})[:_SKETCH]
    return len({*smallest} & {*a} & {*b}) / len(smallest)


def overlap_words(before: str, after: str) -> int:
    """Returns the number of words at the end of one text with which the other begins."""
    end, start = before.split()[-_MAX_OVERLAP_WORDS:], after.split(maxsplit=_MAX_OVERLAP_WORDS)[:_MAX_OVERLAP_WORDS]
    most = min(len(end), len(start))
    overlaps = (size for size in range(most, 0, -1) if end[-size] == start[0] and end[-size:] == start[:size])
    return next(overlaps, 0)


def document_place(name: str) -> tuple[str, int] | None:
    """Returns the document and the position that the id of a chunk names; None if it names no position.

    `doc-17` is a document of its own, `doc-17#2`, `guide.md_3` and `guide-chunk-3` are parts of one.
    """
    stem = name.rstrip("0123456789")
    number, document = name[len(stem) :], _without_separator(stem)
    separator = stem[len(document) :].lower()
    if not number or not document or not separator or len(name) > _MAX_ID_CHARS:
        return None
    names_part = not {*"#:/"}.isdisjoint(separator) or any(word in separator for word in _PART_WORDS)
    if not names_part and not any(char.isdigit() or char == "." for char in document):
        return None
    return document, int(number)


def _without_separator(stem: str) -> str:
    while True:
        shorter = stem.rstrip(_SEPARATORS)
        lower = shorter.lower()
        word = next((word for word in _PART_WORDS if lower.endswith(word)), "")
        shorter = shorter[: len(shorter) - len(word)]
        if shorter == stem:
            return stem
        stem = shorter


def are_neighbours(a: tuple[str | None, str], b: tuple[str | None, str]) -> bool:
    """Returns whether two chunks, each as id and text, are next to one another in one document, or overlap."""
    places = [None if name is None else document_place(name) for name in (a[0], b[0])]
    if places[0] is not None and places[1] is not None:
        return places[0][0] == places[1][0] and abs(places[0][1] - places[1][1]) == 1
    return max(overlap_words(a[1], b[1]), overlap_words(b[1], a[1])) >= MIN_OVERLAP_WORDS


def linked(chunks: Sequence[tuple[str | None, str]]) -> bool:
    """Returns whether any two of some chunks are neighbours; of many, only consecutive ones by id are compared."""
    few = sorted(chunks, key=lambda chunk: (chunk[0] or "", chunk[1]))
    pairs = (
        pairwise(few)
        if len(few) > _INDEXED
        else ((first, second) for index, first in enumerate(few) for second in few[index + 1 :])
    )
    return any(are_neighbours(first, second) for first, second in pairs)


def splits_sentence(claim: str, before: tuple[str | None, str], after: tuple[str | None, str]) -> bool:
    """Returns whether a claim tells a sentence that begins at the end of one chunk and ends at the start of another.

    Either the claim has the words on both sides of the cut in a row, or the ids place the chunks one after the other
    and the claim has half of the words of both parts. No chunk alone holds the words around the cut.
    """
    if not ends_inside(before[1]):
        return False
    left = _plain(_INNER_STOP.split(before[1][-_EDGE_CHARS:])[-1])
    right = _plain(_INNER_STOP.split(after[1][:_EDGE_CHARS], maxsplit=1)[0])
    seam = [*left[-_SEAM_WORDS:], *right[:_SEAM_WORDS]]
    if len(seam) < 2 * _SEAM_WORDS or any(_holds(_plain(text), seam) for _, text in (before, after)):
        return False
    stated = _plain(claim)
    if _holds(stated, seam):
        return True
    places = [None if name is None else document_place(name) for name in (before[0], after[0])]
    if places[0] is None or places[1] is None or (places[0][0], places[0][1] + 1) != places[1]:
        return False
    return all(2 * len({*part} & {*stated}) >= len({*part}) for part in (left, right))


def _plain(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _holds(words: Sequence[str], part: Sequence[str]) -> bool:
    return f" {' '.join(part)} " in f" {' '.join(words)} "
