"""Canary: a known question with the contexts that must be found, and what a probe brought back for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

NAME_CHARS = 60
KEPT_CHARS = 2000


class Grade(IntEnum):
    """How relevant an expected context is; the value is its gain in NDCG."""

    RELEVANT = 1
    HIGHLY_RELEVANT = 2


class Category(StrEnum):
    """What kind of question it is, and so how many contexts it takes."""

    SIMPLE_FACTUAL = "simple_factual"
    COMPLEX_FACTUAL = "complex_factual"
    PROCEDURAL = "procedural"
    ENTITY_CENTRIC = "entity_centric"
    COMPARATIVE = "comparative"
    NEGATIVE = "negative"


class Direction(StrEnum):
    """What a retriever's score means. It is declared, never guessed: only the order of a reply can be relied on."""

    SIMILARITY = "similarity"
    DISTANCE = "distance"


class Failure(StrEnum):
    """Why nothing can be said about a canary in one run. The values are label values of a series.

    The last three come from the reply's content: it lacks what the canary is compared by.
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


@dataclass(frozen=True, slots=True)
class Expected:
    """A context that must be found: by its id where it has one, else by similarity to its text.

    Attributes:
        id: The retriever's name for it.
        text: The passage; beside an id it is only what an oracle run hands to the generator.
        grade: How relevant it is.
    """

    id: str | None = None
    text: str | None = None
    grade: Grade = Grade.RELEVANT

    def __post_init__(self) -> None:
        if not self.id and not self.text:
            raise ValueError("an expected context needs an id or a text")

    @property
    def label(self) -> str:
        """What to call it: its id, else the beginning of its text."""
        return self.id or (self.text or "")[:NAME_CHARS]


@dataclass(frozen=True, slots=True)
class Canary:
    """A known question, and what a healthy retriever returns for it.

    Attributes:
        name: Unique in its suite; the label `canary`.
        query: What is asked.
        expected: What must be found; empty for a negative one, and only there.
        category: The kind of question.
        min_relevance_score: Least score of the first expected context found. Where the retriever's score is a
            distance, the largest one allowed. A negative canary ignores passages that do not reach it.
        min_recall: Share of the expected contexts that must be among the first k.
        reference: A known good answer.
        tags: For people.
    """

    name: str
    query: str
    expected: tuple[Expected, ...] = ()
    category: Category = Category.SIMPLE_FACTUAL
    min_relevance_score: float | None = None
    min_recall: float = 1.0
    reference: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.negative and self.expected:
            raise ValueError("a negative canary expects nothing; leave `expected` out, or give another category")
        if not self.negative and not self.expected:
            raise ValueError("expects nothing; give `expected`, or the category negative")
        keys = [each.id or each.text for each in self.expected]
        if len(set(keys)) < len(keys):
            raise ValueError("expects one context twice; leave one of them out")
        if not 0.0 < self.min_recall <= 1.0:
            raise ValueError(f"min_recall must be above 0 and at most 1, not {self.min_recall}")

    @property
    def negative(self) -> bool:
        """Whether nothing should be found."""
        return self.category is Category.NEGATIVE


def name_of(query: str, taken: Collection[str] = ()) -> str:
    """A name made of a question, for a canary that was given none.

    Where the question is too long for a label (or has no words), or the name is taken, a hash keeps the name its own.

    >>> name_of("What is the data-retention policy?")
    'what-is-the-data-retention-policy'
    """
    words = "-".join(re.findall(r"\w+", query.lower()))
    if words and len(words) <= NAME_CHARS and words not in taken:
        return words
    mark = hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{words[: NAME_CHARS - 9].strip('-') or 'canary'}-{mark}"


class Hit(NamedTuple):
    """One passage of a retriever's reply; None where the reply does not say."""

    id: str | None = None
    text: str | None = None
    score: float | None = None

    @property
    def key(self) -> str | None:
        """What tells it from other passages: its id, else as much of its text as a record keeps."""
        return self.id if self.id is not None else self.text and self.text[:KEPT_CHARS]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What one call of a probe brought.

    Attributes:
        hits: Passages in the order of the reply, best first; empty when it failed.
        direction: What their scores mean; None when that was not declared, and then they are compared with nothing.
        seconds: Wall time of the call.
        failure: Why there is no reply; None when there is one, be it empty.
        detail: What happened, for a person; holds no secret and no text of the reply.
        answer: What the whole service answered, where that was asked.
    """

    hits: tuple[Hit, ...] = ()
    direction: Direction | None = None
    seconds: float = 0.0
    failure: Failure | None = None
    detail: str = ""
    answer: str | None = None
