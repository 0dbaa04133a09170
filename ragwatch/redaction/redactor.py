"""Redacts PII and secrets from texts and samples before they are stored or sent.

Equal values become equal tokens, `[EMAIL:3f2a9c]`, so that a claim of an answer still matches the context it came from.
A token is a keyed hash: without the salt, a store of tokens cannot be searched by hashing all telephone numbers. The
default salt is public and gives no such protection.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from ragwatch.model.sample import Sample
from ragwatch.redaction.credentials import is_secret_name
from ragwatch.redaction.person_ids import NAMES_OF_NUMBERS
from ragwatch.redaction.rule import Detector, NamedRule, SensitiveKind, Taken, TextView
from ragwatch.redaction.rules import DETECTORS

DEFAULT_SALT = b"ragwatch"
TRACE_KEYS = frozenset({"trace_id", "span_id", "answer_span_id"})
"""Metadata keys that are not redacted, like the id of the sample: exemplars link to traces by them."""

_MAX_DEPTH = 64
_TOKEN_CHARS = len("[:3f2a9c]")
_MIN_SECRET_CHARS = 4  # of a value that is a secret by its key; the patterns of assignments have the same minimum
# Longer numbers are ids of databases and times in ns, of which one in ten has a valid checksum.
_CARD_NUMBERS = range(10**13, 10**16)
_NAMED_NUMBERS = range(10**6, 10**15)  # of telephones and persons, where the key says that it is one
_NOT_SECRET = re.compile(
    r"(?i)(?:(?:bearer|basic) )?\[[A-Z_]+:[0-9a-f]{6}\]"
    # The negative lookahead prevents backtracking into the first run, which would take ten times as long.
    r"|\W*(?!\W)(?:(?:true|false|none|null|redacted|masked)\W*)?"
)
# Redacting one value can expose the next one ("a@b.com_c@d.com"), so rounds go on until nothing is replaced. Two rounds
# are typical; the maximum bounds the time for hostile texts, because each round reads the whole text.
_MAX_ROUNDS = 8
_LONG_TEXT = 64 * 1024
_MAX_ROUNDS_OF_LONG_TEXT = 2
_GLUE = re.compile(r"[\w@.+%-]")
MAX_PATH_CHARS = 60
_BETWEEN_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_PERSONS = "|".join(map(re.escape, sorted(NAMES_OF_NUMBERS)))
_NAMED = re.compile(  # at the end: `phone_verified_at` and `call_id` are no telephone numbers
    r" (?:(?P<phone>(?:tele|cell|mobile|home|work)?phones?|tel|telefono?|t[e\xe9]l[e\xe9]phone|tel[e\xe9]fono|t\xe9l"
    r"|mobiles?|mobil|m[o\xf3]vil|cell|cellular|cellulare|celular|fax|handy|hotline|landline|whatsapp|msisdn)"
    rf"|(?P<person>{_PERSONS})(?: ?id)?)"
    r"(?: ?(?:number|numero|nummer|num|no|nr|value|home|work|private|office|main|primary|raw)){0,3}(?: ?\d{1,2})?\Z"
)
_Replaced = tuple[int, int, int, int, NamedRule]
"""Start and end of a token in the present text, of the value in the original text, and the rule."""


class OriginalPlaces:
    """Keeps, for a text in which values are replaced by tokens, where the values stood in the original text."""

    def __init__(self) -> None:
        self._replaced: list[_Replaced] = []

    def replace(self, values: list[tuple[int, int, NamedRule, int]]) -> None:
        """Notes replacements: start and end in the present text, the rule, and the length of the token; in order."""
        merged: list[_Replaced] = []
        old = iter([*self._replaced, None])
        at = next(old)
        shift = moved = 0  # original less present place; new less present place
        for start, end, rule, length in values:
            while at is not None and at[1] <= start:
                merged.append((at[0] + moved, at[1] + moved, *at[2:]))
                shift = at[3] - at[1]
                at = next(old)
            first = start + shift
            while at is not None and at[0] < end:  # a value that contains tokens takes their place
                first = min(first, at[2])
                shift = at[3] - at[1]
                at = next(old)
            merged.append((start + moved, start + moved + length, first, end + shift, rule))
            moved += length - (end - start)
        while at is not None:
            merged.append((at[0] + moved, at[1] + moved, *at[2:]))
            at = next(old)
        self._replaced = merged

    def values(self) -> list[tuple[int, int, NamedRule]]:
        """Start, end and rule of every value in the original text, in order."""
        return [(start, end, rule) for _, _, start, end, rule in self._replaced]


class Finding(NamedTuple):
    """A value that redaction takes from a text."""

    rule: str
    kind: SensitiveKind
    start: int  # place of its first character in the text
    end: int  # place behind its last character


def _any_glued(text: str, taken: list[Taken]) -> bool:
    """Whether a value stands beside a character that other values may have, and may so have hidden one."""
    return any(_GLUE.match(text, end) or (start and _GLUE.match(text, start - 1)) for start, end, _ in taken)


class Redactor:
    """Replaces the values that the rules detect with tokens.

    Redacting twice changes nothing, unless many values follow each other without a separator. The salt is the key of
    the tokens' hash: tokens of different salts cannot be compared. `custom` rules are those of the configuration, tried
    before the others; with `ids`, those of samples, contexts and traces are redacted as well.
    """

    def __init__(self, salt: bytes = DEFAULT_SALT, custom: tuple[Detector, ...] = (), *, ids: bool = False) -> None:
        self._key = blake2b(salt, digest_size=32).digest()
        # Own rules search the text as it is written first, then as it is shown, as all others do.
        self._searches = (*([(False, custom)] if custom else []), (True, (*custom, *DETECTORS)))
        self._ids = ids

    def redact(self, text: str) -> str:
        """Returns the text with a token in place of every detected value.

        >>> Redactor().redact("write to ann@example.org or Ann@example.org")
        'write to [EMAIL:72c98b] or [EMAIL:72c98b]'
        """
        return self.redact_counted(text)[0]

    def redact_counted(self, text: str) -> tuple[str, Counter[SensitiveKind]]:
        """Returns the redacted text, and the number of replaced values by kind."""
        counts: Counter[SensitiveKind] = Counter()
        for taken, replaced in self._steps(text):
            text = replaced
            for kind, times in Counter([rule.kind for _, _, rule in taken]).items():
                counts[kind] += times
        return text, counts

    def findings(self, text: str) -> list[Finding]:
        """Returns what would be taken from a text, by place."""
        places = OriginalPlaces()
        for taken, _ in self._steps(text):
            places.replace([(start, end, rule, _TOKEN_CHARS + len(rule.kind)) for start, end, rule in taken])
        return [Finding(rule.name, rule.kind, start, end) for start, end, rule in places.values()]

    def _steps(self, text: str) -> Iterator[tuple[list[Taken], str]]:
        """Every set of values that a detector takes, with the text in which tokens replace them."""
        rounds = _MAX_ROUNDS if len(text) <= _LONG_TEXT else _MAX_ROUNDS_OF_LONG_TEXT
        while rounds:
            rounds -= 1
            exposed = False
            for plain, detectors in self._searches:
                view = TextView(text, plain=plain)
                for detector in detectors:
                    if taken := detector.taken(view):
                        exposed = exposed or rounds > _MAX_ROUNDS_OF_LONG_TEXT or _any_glued(view.text, taken)
                        places, text = self._replace(view, taken)
                        view = TextView(text, plain=plain)
                        yield places, text
            if not exposed:
                break

    def redact_sample(self, sample: Sample) -> tuple[Sample, Counter[SensitiveKind]]:
        """Redacts all texts, the route and the metadata of a sample, and ids if the redactor does."""
        counts: Counter[SensitiveKind] = Counter()
        redacted = sample._replace(
            id=self._redact_id(sample.id, counts),
            question=self._redact_optional(sample.question, counts),
            contexts=tuple(
                context._replace(
                    id=None if context.id is None else self._redact_id(context.id, counts),
                    text=self._redact_text(context.text, counts),
                )
                for context in sample.contexts
            ),
            answer=self._redact_text(sample.answer, counts),
            route=self._redact_text(sample.route, counts),
            reference=self._redact_optional(sample.reference, counts),
            metadata=self._redact_metadata(sample.metadata, counts, _MAX_DEPTH),
            history=tuple(turn._replace(text=self._redact_text(turn.text, counts)) for turn in sample.history),
            relevant=None
            if sample.relevant is None
            else tuple(one._replace(text=self._redact_optional(one.text, counts)) for one in sample.relevant),
        )
        return redacted, counts

    def _replace(self, view: TextView, taken: list[Taken]) -> tuple[list[Taken], str]:
        """Where the values are written, and the text with tokens in their place."""
        text = view.written
        places = [(*view.place(start, end), rule) for start, end, rule in taken]
        parts: list[str] = []
        tokens: dict[tuple[SensitiveKind, str], str] = {}
        copied = 0
        for (first, last, rule), (start, end, _) in zip(taken, places, strict=True):
            value = view.text[first:last]
            token = tokens.get((rule.kind, value))
            if token is None:
                token = tokens[rule.kind, value] = self._token(rule.kind, rule.normalize(value))
            parts.append(text[copied:start])
            parts.append(token)
            copied = end
        parts.append(text[copied:])
        return places, "".join(parts)

    def _token(self, kind: SensitiveKind, value: str) -> str:
        encoded = value.encode("utf-8", "surrogatepass")
        digest = blake2b(encoded, digest_size=3, key=self._key, person=kind.encode()).hexdigest()
        return f"[{kind.value}:{digest}]"

    def _redact_text(self, text: str, counts: Counter[SensitiveKind]) -> str:
        redacted, text_counts = self.redact_counted(text)
        counts.update(text_counts)
        return redacted

    def _redact_optional(self, text: str | None, counts: Counter[SensitiveKind]) -> str | None:
        return None if text is None else self._redact_text(text, counts)

    def _redact_id(self, value: str, counts: Counter[SensitiveKind]) -> str:
        return self._redact_text(value, counts) if self._ids else value

    def _redact_metadata(
        self,
        values: Mapping[str, object],
        counts: Counter[SensitiveKind],
        depth: int,
        *,
        secret: bool = False,
        path: str = "",
    ) -> dict[str, object]:
        redacted: dict[str, object] = {}
        for key, value in values.items():
            name = self._redact_text(key, counts)
            if name in redacted:  # two spellings of the same value
                name = f"{name}#{len(redacted)}"
            if key in TRACE_KEYS and not self._ids and not isinstance(value, (Mapping, list, tuple)):
                redacted[name] = value
            else:
                place = f"{path}.{key[-MAX_PATH_CHARS:]}"[-MAX_PATH_CHARS:]
                redacted[name] = self._redact_value(
                    value, counts, depth, secret=secret or is_secret_name(key), path=place
                )
        return redacted

    def _redact_value(
        self, value: object, counts: Counter[SensitiveKind], depth: int, *, secret: bool, path: str
    ) -> object:
        """Redacts a JSON value down to `depth`; it is `secret` by a key above it, and `path` the end of these keys."""
        if isinstance(value, str):
            return self._redact_credential(value, counts) if secret else self._redact_introduced(value, counts, path)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._redact_number(value, counts, secret=secret, path=path)
        if not isinstance(value, (Mapping, list, tuple)):
            return value
        if not depth:
            return None
        if isinstance(value, Mapping):
            return self._redact_metadata(value, counts, depth - 1, secret=secret, path=path)
        return [self._redact_value(item, counts, depth - 1, secret=secret, path=path) for item in value]

    def _redact_introduced(self, text: str, counts: Counter[SensitiveKind], path: str) -> str:
        """Redacts a value as in a text in which what its key says stands before it: `phone 4155552671`."""
        if words := introduction(path):
            return self._redact_text(f"{words} {text}", counts).removeprefix(f"{words} ")
        return self._redact_text(text, counts)

    def _redact_credential(self, text: str, counts: Counter[SensitiveKind]) -> str:
        """Replaces the whole text, a secret by its key, with one token: the rules might replace a part of it only."""
        redacted, text_counts = self.redact_counted(text)
        if len(text) < _MIN_SECRET_CHARS or _NOT_SECRET.fullmatch(redacted):
            counts.update(text_counts)
            return redacted
        counts[SensitiveKind.CREDENTIAL] += 1
        return self._token(SensitiveKind.CREDENTIAL, text)

    def _redact_number(self, value: int, counts: Counter[SensitiveKind], *, secret: bool, path: str) -> int | str:
        named = value in _NAMED_NUMBERS and introduction(path)
        if value not in _CARD_NUMBERS and not named and not (secret and abs(value) < _CARD_NUMBERS.stop):
            return value
        text = str(value)
        redacted = self._redact_credential(text, counts) if secret else self._redact_introduced(text, counts, path)
        return value if redacted == text else redacted


@lru_cache(maxsize=1024)
def introduction(path: str) -> str:
    """Returns the words that introduce a number of a telephone or of a person; empty if the key names neither.

    Of the keys that lead to the value, the last `MAX_PATH_CHARS` characters are looked at.
    """
    named = _NAMED.search(" " + " ".join(_BETWEEN_WORDS.split(path)).lower().strip())
    return (named["person"] or "phone") if named else ""
