"""What decoders of a request return."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ragwatch.formats.traces.span import Span
from ragwatch.sources.requests.refusal import RefusedError

MAX_VALUE_DEPTH = 24
MAX_SPANS = 50_000
"""Spans of one request; each takes about a kilobyte until it is stored, whatever it says."""
MAX_NUMBERS = 64
HAS_REMOTE, IS_REMOTE = 0x100, 0x200
FAILED = 2
_BULKY = ("embedding.embeddings.", "llm.tools.", "gen_ai.tool.definitions", "ai.prompt.tools", "exception.stacktrace",
          "db.query.embeddings", "ai.embedding", "ai.values")  # fmt: skip


@dataclass(slots=True)
class Received:
    """The spans of one request.

    Attributes:
        spans: Valid spans.
        rejected: How many spans are invalid.
        problem: What is wrong with the first of those.
    """

    spans: list[Span] = field(default_factory=list)
    rejected: int = 0
    problem: str = ""

    def reject(self, problem: str) -> None:
        """Count an invalid span."""
        self.rejected += 1
        self.problem = self.problem or problem


def too_many_spans() -> RefusedError:
    """The answer to a request with more than `MAX_SPANS`."""
    return RefusedError(413, f"the request has more than {MAX_SPANS} spans; send fewer at a time")


def is_wanted(key: str) -> bool:
    """Whether an attribute is kept: vectors, definitions of tools and stack traces never say what was asked."""
    return not key.startswith(_BULKY)


def without_vectors(values: list[object]) -> list[object] | None:
    """Return a list, or None for a long one of numbers: an embedding."""
    return None if len(values) > MAX_NUMBERS and isinstance(values[0], (int, float)) else values


def remote_of(flags: int) -> bool | None:
    """Return whether the parent is in another process; None if the flags do not say.

    >>> [remote_of(flags) for flags in (0x000, 0x101, 0x300)]
    [None, False, True]
    """
    return bool(flags & IS_REMOTE) if flags & HAS_REMOTE else None


def is_id(digits: str, length: int) -> bool:
    """Return whether a text is a valid id: `length` hexadecimal digits, not all of them 0."""
    if len(digits) != length or digits.strip("0") == "":
        return False
    return all(digit in "0123456789abcdef" for digit in digits)


def merged(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return attributes as a dictionary, without those that are not wanted and without null."""
    return {key: value for key, value in pairs if value is not None and is_wanted(key)}
