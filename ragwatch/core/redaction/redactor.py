"""Redaction: personal data and secrets out of a text before it is stored or sent on.

The same value becomes the same token, `[EMAIL:3f2a9c]`, so that a claim of the answer still matches the context it
came from. A token is a keyed hash: without the salt nobody can try all telephone numbers against a store of tokens.
With the salt left at its default, anybody can: it is printed here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from ragwatch.core.redaction.rules import RULES, RedactionRule, SensitiveKind, names_secret
from ragwatch.core.sample import Context, Sample

DEFAULT_SALT = b"ragwatch"
IDENTITIES = frozenset({"trace_id", "span_id"})
"""Metadata that names the request, like the sample's own id: an exemplar must still find its trace."""

_DEEPEST = 64
_SHORTEST = 4  # of a value that is a secret by its key, as in a text
_CARDS = range(10**13, 10**16)  # longer numbers are ids of databases and times in ns: one in ten has a valid checksum
_HIDDEN = re.compile(
    r"(?i)(?:(?:bearer|basic) )?\[[A-Z_]+:[0-9a-f]{6}\]"
    # Behind the first run nothing else is tried where that run could have been longer: it would take ten times as long.
    r"|\W*(?!\W)(?:(?:true|false|none|null|redacted|masked)\W*)?"
)
_NAMED = next(rule for rule in RULES if rule.kind is SensitiveKind.CREDENTIAL)
# Taking a secret out can lay the next one bare ("a@b.com_c@d.com"), so reading goes on until nothing is found. Two
# rounds are the rule; a text made to need more than these keeps its rest, because a round reads the whole text.
_ROUNDS = 8


def _digits(text: str) -> int:
    """How many of 0 to 9 it holds: one walk through it, where counting each by itself takes ten."""
    plain = text.encode("utf-8", "surrogatepass")
    return len(plain) - len(plain.translate(None, b"0123456789"))


class Redactor:
    """Takes out what `secret.RULES` finds. Redacting twice changes nothing, unless many secrets are glued together.

    Args:
        salt: Key of the tokens' hash. Tokens of different salts cannot be compared.
    """

    def __init__(self, salt: bytes = DEFAULT_SALT) -> None:
        self._key = blake2b(salt, digest_size=32).digest()

    def redact(self, text: str) -> str:
        """The text with a token in place of every secret.

        >>> Redactor().redact("write to ann@example.org or Ann@example.org")
        'write to [EMAIL:72c98b] or [EMAIL:72c98b]'
        """
        return self.redact_counted(text)[0]

    def redact_counted(self, text: str) -> tuple[str, Counter[SensitiveKind]]:
        """The text with tokens, and how many secrets of each kind they replaced."""
        found: Counter[SensitiveKind] = Counter()
        for _ in range(_ROUNDS):
            before, folded, digits = text, text.lower(), _digits(text)
            for rule in RULES:
                if rule.may_be_in(text, folded, digits):
                    text = self._replaced(text, rule, found)
            if text == before:
                break
        return text, found

    def redact_sample(self, sample: Sample) -> tuple[Sample, Counter[SensitiveKind]]:
        """The sample with tokens in question, contexts, answer, route, reference and metadata; ids stay as they are."""
        found: Counter[SensitiveKind] = Counter()
        clean = sample._replace(
            question=self._optional(sample.question, found),
            contexts=tuple(self._context(context, found) for context in sample.contexts),
            answer=self._counting(sample.answer, found),
            route=self._counting(sample.route, found),
            reference=self._optional(sample.reference, found),
            metadata=self._metadata(sample.metadata, found, _DEEPEST),
        )
        return clean, found

    def _replaced(self, text: str, rule: RedactionRule, found: Counter[SensitiveKind]) -> str:
        parts: list[str] = []
        done = place = 0
        while match := rule.pattern.search(text, place):
            span = rule.accept(match)
            if span is None:
                place = match.start() + 1  # what only looks like a secret must not hide one that begins inside it
                continue
            start, end = span
            parts += (text[done:start], self._token(rule, text[start:end]))
            found[rule.kind] += 1
            done = place = end
        return "".join((*parts, text[done:])) if parts else text

    def _token(self, rule: RedactionRule, value: str) -> str:
        plain = rule.same(value).encode("utf-8", "surrogatepass")
        digest = blake2b(plain, digest_size=3, key=self._key, person=rule.kind.encode()).hexdigest()
        return f"[{rule.kind}:{digest}]"

    def _counting(self, text: str, found: Counter[SensitiveKind]) -> str:
        clean, here = self.redact_counted(text)
        found.update(here)
        return clean

    def _optional(self, text: str | None, found: Counter[SensitiveKind]) -> str | None:
        return None if text is None else self._counting(text, found)

    def _context(self, context: Context, found: Counter[SensitiveKind]) -> Context:
        return context._replace(text=self._counting(context.text, found))

    def _metadata(
        self, values: Mapping[str, Any], found: Counter[SensitiveKind], room: int, *, named: bool = False
    ) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for key, value in values.items():
            name = self._counting(key, found)
            if name in clean:  # the same secret, written in two ways
                name = f"{name}#{len(clean)}"
            if key in IDENTITIES and not isinstance(value, (Mapping, list, tuple)):
                clean[name] = value
            else:
                clean[name] = self._value(value, found, room, named=named or names_secret(key))
        return clean

    def _value(self, value: Any, found: Counter[SensitiveKind], room: int, *, named: bool) -> Any:  # noqa: ANN401  any JSON
        """The value with its texts redacted; None in place of what is nested too deeply to be looked at.

        What stands under the name of a secret is one, as in a text; and a number may be that of a card.
        """
        if isinstance(value, str):
            return self._named(value, found) if named else self._counting(value, found)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._number(value, found, named=named)
        if not isinstance(value, (Mapping, list, tuple)):
            return value
        if not room:
            return None
        if isinstance(value, Mapping):
            return self._metadata(value, found, room - 1, named=named)
        return [self._value(item, found, room - 1, named=named) for item in value]

    def _named(self, text: str, found: Counter[SensitiveKind]) -> str:
        """A token for all of a text that is a secret by its key: what rules find in it may be a part of it."""
        clean, here = self.redact_counted(text)
        if len(text) < _SHORTEST or _HIDDEN.fullmatch(clean):
            found.update(here)
            return clean
        found[SensitiveKind.CREDENTIAL] += 1
        return self._token(_NAMED, text)

    def _number(self, value: int, found: Counter[SensitiveKind], *, named: bool) -> int | str:
        if value not in _CARDS and not (named and abs(value) < _CARDS.stop):
            return value
        plain = str(value)
        clean = self._named(plain, found) if named else self._counting(plain, found)
        return value if clean == plain else clean
