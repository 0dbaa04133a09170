"""Defines a canary (a known query with the contexts that retrieval must return) and the reply of a probe to it.

Services log marks of canary queries, so that their answers are not taken for traffic. A mark is a secret of the day:
`<suite>.<day>.<hash>`. Whoever does not know the secret of the state cannot write one, and one that was seen in a log
hides nothing but answers of that day.
"""

import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import blake2b
from typing import NamedTuple, Self

MAX_NAME_CHARS = 60
MAX_STORED_CHARS = 2000
"""Characters of a passage that the record of a run keeps."""


class Grade(IntEnum):
    """Relevance of an expected context; the value is its gain in NDCG."""

    RELEVANT = 1
    HIGHLY_RELEVANT = 2


class Category(StrEnum):
    """Kind of query, with the least and the largest number of contexts that an answer usually needs.

    A temporal one is not indexed yet.
    """

    least: int
    most: int

    def __new__(cls, name: str, least: int, most: int) -> Self:
        """Make a member from its name and these numbers."""
        member = str.__new__(cls, name)
        member._value_, member.least, member.most = name, least, most
        return member

    SIMPLE_FACTUAL = "simple_factual", 1, 2
    COMPLEX_FACTUAL = "complex_factual", 3, 5
    PROCEDURAL = "procedural", 5, 10
    ENTITY_CENTRIC = "entity_centric", 3, 5
    COMPARATIVE = "comparative", 2, 4
    NEGATIVE = "negative", 0, 0
    TEMPORAL = "temporal", 0, 0


NOTHING_EXPECTED = frozenset(category for category in Category if not category.most)
"""Categories whose canaries may expect no context."""


class Direction(StrEnum):
    """Meaning of a retriever's score. It is configured, not inferred: a reply only shows the order of the passages."""

    SIMILARITY = "similarity"
    DISTANCE = "distance"


class Failure(StrEnum):
    """Reason why a run has no result for a canary. The values are label values of a series.

    `NO_IDS`, `NO_TEXTS` and `NO_SCORES` mean that the reply lacks the field that the canary is compared by, and
    `UNSENDABLE` that no request can be made of its query.
    """

    CONNECT = "connect"
    TIMEOUT = "timeout"
    STATUS = "status"
    REDIRECT = "redirect"
    NOT_JSON = "not_json"
    SHAPE = "shape"
    TOO_LARGE = "too_large"
    FORBIDDEN_ADDRESS = "forbidden_address"
    NO_IDS = "no_ids"
    NO_TEXTS = "no_texts"
    NO_SCORES = "no_scores"
    UNSENDABLE = "unsendable"


@dataclass(frozen=True, slots=True)
class Expected:
    """A context that must be retrieved, matched by its id or else by its text, which oracle runs use as well."""

    id: str | None = None
    text: str | None = None
    grade: Grade = Grade.RELEVANT

    def __post_init__(self) -> None:
        if not self.id and not self.text:
            raise ValueError("an expected context needs an id or a text")

    @property
    def label(self) -> str:
        """Display name: the id, or the beginning of the text if there is no id."""
        return self.id or (self.text or "")[:MAX_NAME_CHARS]


@dataclass(frozen=True, slots=True)
class Canary:
    """A known query and the contexts that a healthy retriever returns for it."""

    name: str  # unique in its suite; the value of the label `canary`
    query: str
    expected: tuple[Expected, ...] = ()  # empty if `NEGATIVE`, and if `TEMPORAL` until the answer is indexed
    category: Category = Category.SIMPLE_FACTUAL
    # minimum score of the highest-ranked expected context, or the maximum if the retriever's scores are distances. A
    # negative canary ignores passages that do not reach it (`max_relevance_score` in the configuration): without one,
    # any passage is wrong
    min_relevance_score: float | None = None
    min_recall: float = 1.0  # share of the expected contexts that must be among the first k, in (0, 1]
    reference: str | None = None  # a known good answer
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.category is Category.NEGATIVE and self.expected:
            raise ValueError("a negative canary expects nothing; leave `expected` out, or give another category")
        if not self.negative and not self.expected:
            raise ValueError("expects nothing; give `expected`, or the category negative or temporal")
        keys = [context.id or context.text for context in self.expected]
        if len(set(keys)) < len(keys):
            raise ValueError("expects one context twice; leave one of them out")
        if not 0.0 < self.min_recall <= 1.0:
            raise ValueError(f"min_recall must be above 0 and at most 1, not {self.min_recall}")

    @property
    def unusual_number(self) -> str | None:
        """Why the number of expected contexts is unusual for the category, as text for people; None if it is not."""
        least, most = self.category.least, self.category.most
        number = len(self.expected)
        if least <= number <= most:
            return None
        if not most:
            return f"expects {number}, {self.category} queries none: their answers are not indexed yet"
        return f"expects {number}, {self.category} queries {least} to {most}"

    @property
    def negative(self) -> bool:
        """Whether the retriever must return nothing relevant."""
        return self.category in NOTHING_EXPECTED and not self.expected


def name_of(query: str, taken: Collection[str] = ()) -> str:
    """Derives the name of a canary from its query, with a hash if that is too long, has no words, or is `taken`."""
    slug = "-".join(re.findall(r"\w+", query.lower()))
    if slug and len(slug) <= MAX_NAME_CHARS and slug not in taken:
        return slug
    digest = hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[: MAX_NAME_CHARS - 9].strip('-') or 'canary'}-{digest}"


class Hit(NamedTuple):
    """One passage of a retriever's reply; a field that the reply lacks is None."""

    id: str | None = None
    text: str | None = None
    score: float | None = None

    @property
    def key(self) -> str | None:
        """Identity of the passage: its id, or the first `MAX_STORED_CHARS` characters of its text if it has no id."""
        return self.id if self.id is not None else self.text and self.text[:MAX_STORED_CHARS]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Result of one call of a probe."""

    hits: tuple[Hit, ...] = ()  # passages in the order of the reply, best first; empty if the call failed
    direction: Direction | None = None  # of the scores, which are not compared if it is not configured
    seconds: float = 0.0
    failure: Failure | None = None  # why there is no reply; None if there is one, even an empty one
    detail: str = ""  # human-readable description; contains no secret and no text of the reply
    answer: str | None = None  # answer of the whole service, if the probe requests one


REDACTED = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")
"""What redaction leaves of a value. A text with it differs from the original one, and finds nothing."""


def canary_lines(canary: Canary) -> Iterator[str]:
    """Yields the lines of one canary, as an item of `items`."""
    yield f"  - query: {_quoted(canary.query)}"
    yield f"    name: {_quoted(canary.name)}"
    yield f"    category: {canary.category}"
    yield f"    tags: [{', '.join(map(_quoted, canary.tags))}]"
    if canary.reference:
        yield f"    reference: {_quoted(canary.reference)}"
    if canary.expected:
        yield "    expected:"
    for context in canary.expected:
        yield f"      - id: {_quoted(context.id)}" if context.id else f"      - text: {_quoted(context.text or '')}"
        if context.grade is Grade.HIGHLY_RELEVANT:
            yield "        grade: highly_relevant"


def comment_line(text: str) -> str:
    """Returns a comment; what could end its line is replaced, as texts in it may be quoted from questions."""
    return f"  # {''.join(char if char.isprintable() else '?' for char in text)}"


def _quoted(text: str) -> str:
    """Returns a double-quoted YAML scalar, in which quotes, backslashes and non-printable characters are escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped)
    return f'"{shown}"'


_DAY_SECONDS = 86400.0
_MAX_DAYS_APART = 1  # between the mark and its answer: clocks differ, and an answer may be logged after midnight
_HASH_BYTES = 16
_MAX_CHARS = 300


class CanaryMarks:
    """Writes and checks marks; without the secret of the state no mark is valid."""

    def __init__(self, secret: bytes = b"") -> None:
        self._key = blake2b(secret, digest_size=32, person=b"canary mark").digest() if secret else None

    def mark(self, suite: str, now: float) -> str:
        """Return the mark of a suite for an instant; without a secret the name of the suite, which is no valid mark."""
        if self._key is None:
            return suite
        text = f"{suite}.{int(now // _DAY_SECONDS)}"
        return f"{text}.{self._hash(self._key, text)}"

    def is_valid(self, value: object, at: float | None) -> bool:
        """Return whether a value from a log is a mark of ours for an answer of that time, if one was logged."""
        if self._key is None or not isinstance(value, str) or len(value) > _MAX_CHARS:
            return False
        text, _, given = value.strip().rpartition(".")
        day = text.rpartition(".")[2]
        expected = self._hash(self._key, text)
        if given != expected:  # in whatever time: it is read from a log, and nobody waits for the result
            return False
        return at is None or abs(at // _DAY_SECONDS - int(day)) <= _MAX_DAYS_APART

    @staticmethod
    def _hash(key: bytes, text: str) -> str:
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES, key=key).hexdigest()
