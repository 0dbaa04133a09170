"""What a rule of redaction is, and how it finds values in a text, in time linear in the length of the text.

To keep patterns linear, a match can only start at an anchor (a string that every such value contains) or where a run of
characters starts (enforced by a lookbehind), a repetition is bounded or followed by a character that it cannot match
(so that backtracking fails at once), and what a pattern cannot decide (a checksum, a country) is decided by a function
on the match. No pattern has possessive quantifiers or atomic groups: Python before 3.11.5 reads them wrongly.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ragwatch.redaction.plain_text import PlainText

Span = tuple[int, int]
Accept = Callable[[re.Match[str]], "Span | None"]
"""Returns the span of the value in the text; None if the match is a false positive."""
MAX_STARTS = 16
"""Places where a value is looked for within a false positive."""


class SensitiveKind(StrEnum):
    """Kind of a redacted value. The values are label values of a series and part of the tokens: `[EMAIL:3f2a9c]`.

    No value may be a word that a rule matches (such as `api_key`), because the token would then be redacted again.
    """

    PRIVATE_KEY = "PRIVATE_KEY"
    JWT = "JWT"
    KEY = "KEY"
    CREDENTIAL = "CREDENTIAL"
    EMAIL = "EMAIL"
    IBAN = "IBAN"
    CARD = "CARD"
    PERSON_ID = "PERSON_ID"
    IP = "IP"
    PHONE = "PHONE"
    CUSTOM = "CUSTOM"


class TextView:
    """A text as it is `written`, with what the rules look at before they search it; `digits` is the number of these."""

    __slots__ = ("_plain", "digits", "folded", "text", "written")

    def __init__(self, text: str, *, plain: bool = True) -> None:
        self._plain = PlainText(text) if plain else None
        self.written = text
        self.text = self._plain.text if self._plain else text  # as rules read it
        self.folded = self.text.lower()
        encoded = self.text.encode("utf-8", "surrogatepass")
        self.digits = len(encoded) - len(encoded.translate(None, b"0123456789"))

    def place(self, start: int, end: int) -> Span:
        """Where what rules read from `start` to `end` is written."""
        return self._plain.place(start, end) if self._plain else (start, end)


def unchanged(value: str) -> str:
    """The value itself: it has no formatting that two spellings could differ in."""
    return value


def letters_and_digits(value: str) -> str:
    """Returns the value without its formatting, in upper case."""
    return "".join(filter(str.isalnum, value)).upper()


@dataclass(frozen=True, slots=True)
class NamedRule:
    """What is known of the rule that took a value."""

    name: str  # name of the rule, as `ragwatch redact` shows it
    kind: SensitiveKind
    about: str  # what the rule takes, for its row in docs/redaction.md
    normalize: Callable[[str], str] = field(default=unchanged, kw_only=True)  # two spellings, one token


Taken = tuple[int, int, NamedRule]
"""Start and end of a value in a text, and the rule that takes it."""
_Placed = TypeVar("_Placed", Span, Taken)


class Detector(Protocol):
    """A rule, or several that are tried together."""

    def taken(self, view: TextView) -> list[Taken]:
        """All values in the text, in order, without overlaps."""


@cache
def table(name: str) -> Any:  # noqa: ANN401 - whatever the table holds
    """Returns a table of this package, by the name of its file without `.toml`."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def whole_match(match: re.Match[str]) -> Span | None:
    """Accepts every match: the group `secret`, or the whole match if there is no such group."""
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


@dataclass(frozen=True, slots=True)
class RedactionRule(NamedRule):
    """Detects values of one kind."""

    pattern: re.Pattern[str]  # finds candidates; its group `secret`, or the whole match, is redacted
    accept: Accept = whole_match  # returns the span of the value in the text; None if the match is a false positive
    hints: tuple[str, ...] = ()  # of which every text with such a value contains at least one
    words: tuple[str, ...] = ()  # like `hints`, in lower case, for patterns that ignore case
    digits: int = 0  # minimum number of digits in a text with such a value
    anchors: tuple[str, ...] = ()  # where the pattern is tried, and nowhere else; empty for a search
    any_case: bool = False  # whether the anchors are in lower case, and stand in the text in any case
    back: int = 0  # number of characters of the pattern before the anchor
    # finds the places where the pattern is tried; None for a search with the pattern itself. A pattern that begins with
    # a set of characters is searched several times as fast as one that begins with a condition
    starts: re.Pattern[str] | None = None
    # returns whether the pattern is tried at an anchor, by what stands before it; None for always. It takes the text,
    # the place of the anchor, and the anchor
    admits: Callable[[str, int, str], bool] | None = None

    def taken(self, view: TextView) -> list[Taken]:
        """All values in the text, in order, without overlaps."""
        if view.digits < self.digits:
            return []
        if not contains_any(view.text, self.hints) or not contains_any(view.folded, self.words):
            return []  # mostly; it costs about a hundredth of a search
        return [(start, end, self) for start, end in self.spans(view)]

    def spans(self, view: TextView) -> list[Span]:
        """Spans of all values in the text, in order, without overlaps."""
        if self.starts is not None:
            return self._tried(view.text, self.starts)
        if not self.anchors:
            return self._searched(view.text)
        spans = self._anchored(view.text, _aligned(view) if self.any_case else view.text)
        return without_overlaps(sorted(spans)) if len(spans) > 1 else spans

    def _searched(self, text: str) -> list[Span]:
        spans: list[Span] = []
        search, accept, rejected = self.pattern.search, self.accept, _Rejected()
        position = 0
        while match := search(text, position):
            span = accept(match)
            if span is None:
                position = rejected.next_start(match)
            else:
                spans.append(span)
                position = max(span[1], match.start() + 1)  # a value can end before what it is known by
        return spans

    def _tried(self, text: str, starts: re.Pattern[str]) -> list[Span]:
        spans: list[Span] = []
        search, match_at, accept = starts.search, self.pattern.match, self.accept
        position = 0
        while start := search(text, position):
            match = match_at(text, start.start())
            span = accept(match) if match else None
            if span:
                spans.append(span)
            position = max(span[1], start.end()) if span else start.end()
        return spans

    def _anchored(self, text: str, source: str) -> list[Span]:
        spans: list[Span] = []
        match_at, accept, back, admits = self.pattern.match, self.accept, self.back, self.admits
        for anchor in self.anchors:
            start = source.find(anchor)
            if start < 0:  # mostly
                continue
            rejected = _Rejected()
            while start >= 0:
                tried = start >= back and (admits is None or admits(text, start, anchor))
                match = match_at(text, start - back) if tried else None
                span = accept(match) if match else None
                after = start + 1
                if span:
                    spans.append(span)
                    after = max(span[1], after)
                elif match:
                    after = max(rejected.next_start(match), after)
                start = source.find(anchor, after)
        return spans


class _Rejected:
    """Decides where to go on behind a match that is a false positive.

    A value can start inside it. But if every such start were tried, a text that repeats the beginning of a value, as
    long as the text, would take quadratic time: `dp.pt.dp.pt.dp.pt.`.
    """

    __slots__ = ("_end", "_times")

    def __init__(self) -> None:
        self._end, self._times = -1, 0

    def next_start(self, match: re.Match[str]) -> int:
        """The next place in the match, or its end after several false positives that end there."""
        self._times = self._times + 1 if match.end() == self._end else 1
        self._end = match.end()
        return self._end if self._times >= MAX_STARTS else match.start() + 1


_TABLE = table("rules")
_NORMALIZED = {"letters and digits": letters_and_digits, "lower case": str.lower}


def rules(
    group: str, checks: Mapping[str, Accept] | None = None, built: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[RedactionRule, ...]:
    """Returns the rules of a group of rules.toml.

    `checks` are the functions that accept a match, by the name that `check` has in a row; `built` are the arguments of
    `RedactionRule` that are no part of the table, by the name of the rule.
    """
    made = []
    for listed in _TABLE[group]:
        row: dict[str, Any] = {**listed, **(built or {}).get(listed["name"], {})}
        for name in ("pattern", "starts"):
            if isinstance(row.get(name), (str, list)):
                row[name] = re.compile("".join(row[name]))
        for name in ("hints", "words", "anchors"):
            row[name] = tuple(row.get(name, ()))
        row["kind"] = SensitiveKind(row["kind"])
        if "check" in row:
            row["accept"] = (checks or {})[row.pop("check")]
        if row.get("normalize") in _NORMALIZED:
            row["normalize"] = _NORMALIZED[row["normalize"]]
        made.append(RedactionRule(**row))
    return tuple(made)


class RuleGroup:
    """Tries several rules where `admits` says that a text may have a value of one of them.

    Of two values that overlap it takes the one of the earlier rule.
    """

    def __init__(self, rules: tuple[RedactionRule, ...], admits: Callable[[TextView], bool]) -> None:
        self._rules, self._admits = rules, admits

    def taken(self, view: TextView) -> list[Taken]:
        """All values in the text, in order, without overlaps."""
        taken: list[Taken] = []
        for rule in self._rules if self._admits(view) else ():
            more = rule.taken(view)
            taken = _merged(taken, more) if taken and more else taken or more
        return taken


def _merged(first: list[Taken], second: list[Taken]) -> list[Taken]:
    """Both in order, without those of the second that overlap one of the first."""
    kept = list(first)
    place = 0
    for one in second:
        while place < len(first) and first[place][1] <= one[0]:
            place += 1
        if place == len(first) or one[1] <= first[place][0]:
            kept.append(one)
    kept.sort(key=lambda one: one[:2])
    return kept


def _aligned(view: TextView) -> str:
    """The text in lower case, with every character at its place: `lower` makes two characters of a few."""
    if len(view.folded) == len(view.text):
        return view.folded
    return "".join([char.lower() if len(char.lower()) == 1 else char for char in view.text])


def without_overlaps(ordered: list[_Placed]) -> list[_Placed]:
    """Returns values or spans, given in order, without those that overlap an earlier one."""
    kept = ordered[:1]
    for one in ordered[1:]:
        if one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


def contains_any(text: str, hints: tuple[str, ...]) -> bool:
    """Returns whether a text contains one of the strings, or there are none; `any` would be slower than the search."""
    for hint in hints:
        if hint in text:
            return True
    return not hints
