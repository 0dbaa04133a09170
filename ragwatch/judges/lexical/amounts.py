"""Reads numbers, dates and quantities of a text in a form in which equal ones are equal.

A number has keys: its value in digits ("3.5 million", "3,500,000" and "3.5M" have the key `3500000`), and the value in
a base unit ("5 kg" and "5,000 g"). Two numbers are the same where they share a key. Numbers of a source have more keys
than those of a claim: what they are called otherwise ("half" is 50 %), what they are about (1971 is in the 1970s), and
what they are rounded to.

What a claim is held to are its numbers that a source would have to state: not list numbers, citation marks, names
(`GPT-4`), 0 and 1, counts up to twelve without a unit (people count what is listed), or words like "second".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from ragwatch.judges.claims.words import (
    APPROXIMATE,
    COUNTED_UNITS,
    FAHRENHEIT,
    MAX_DIGITS,
    MEASURED,
    ORDINALS,
    SCALES,
    SMALL,
    SUFFIXES,
    TENS,
    UNITS,
    fold,
)

_COUNTED = 12  # people count listed things up to this
_HOURS = 24
_BEFORE = 3  # tokens before a number that may say that it is approximate
_CURRENCIES = frozenset("$€£¥₹")

TOKEN = re.compile(
    r"(?<!\d)\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|(?<!\d)\d{1,3}(?:[ \u00a0\u202f]\d{3}){2,}(?!\d)"
    r"|\d{1,3}(?:\.\d{3})+,\d+|\d+(?:,\d+)*(?:\.\d+)*|[^\W\d_]+|[%$€£¥₹‰]"
)
_CLOCK = re.compile(r"(?<![:.,])(\d{1,2})(?:[:h](\d\d)(?![\d:])(?: ?([ap])\.?m\b)?|(?:\.(\d\d))? ?([ap])\.?m\b)")
_DEGREES = re.compile(r" ?(?:°|º| degrees?) ?(?P<scale>celsius|centigrade|fahrenheit|[cf])\b")
_INSIDE_NAME = re.compile(r"[^\W\d_][-_.]?$")
_NUMBER = re.compile(rf"\d|\b(?:{'|'.join((*SMALL, *ORDINALS))})\b")
_MARKS = re.compile(
    r"\[\^?\d{1,3}(?:[,;–-] ?\d{1,3}){0,8}\]"
    r"|\b(?:passage|document|doc|source|context|reference|ref|citation|chunk|excerpt|snippet|result)s?"
    r"(?: (?:no\.? )?|#|: ?)\d{1,3}(?:(?:, | and |, and | ?& ?|-)\d{1,3}){0,8}\b"
)
_LIST_NUMBER = re.compile(r"(?:^|(?<=[\n;:]))\s*\(?\d{1,2}[.)](?=\s)|\(\d{1,2}\)|\bsteps? \d{1,2}\b")


class Kind(StrEnum):
    """What a number is."""

    NAME = "name"
    COUNT = "count"
    YEAR = "year"
    DECADE = "decade"
    QUANTITY = "quantity"


class _Digits(NamedTuple):
    """A number before its unit is read: its tokens `first` to `after`, its possible values, scale and suffix."""

    first: int
    after: int
    values: Sequence[float]
    scale: float = 1.0
    suffix: str = ""
    is_name: bool = False


class Measure(NamedTuple):
    """A quantity that people convert: its base, such as length, how many base units its unit is, and how many it is."""

    base: str
    unit: float
    value: float


@dataclass(frozen=True, slots=True)
class Amount:
    """One number of a text."""

    start: int  # offset in the folded text
    end: int
    value: float
    keys: frozenset[str]  # forms in which it equals another number
    kind: Kind
    approximate: bool = False  # whether it is said to be approximate
    years: bool = False  # whether it counts years
    # its unit and its value in the base unit, where people convert between units; None elsewhere
    measure: Measure | None = None

    @property
    def units(self) -> frozenset[str]:
        """Its keys with a unit; empty for a number without a unit that has a base."""
        return frozenset(key for key in self.keys if ":" in key)

    @property
    def size(self) -> tuple[str, float]:
        """The base of its unit, empty without one, and how many base units it is."""
        base, _, value = min(self.units, default=f":{self.value}").partition(":")
        return base, float(value.partition(":")[0])

    @property
    def strict(self) -> bool:
        """Whether a source would have to state it."""
        return self.kind not in (Kind.NAME, Kind.COUNT) and self.value not in (0, 1)


def number_text(value: float) -> str:
    """A number in digits, the same for equal numbers."""
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def _values(token: str) -> list[float]:
    """Values that a token of digits may have, the most likely first. None of a number that is too long."""
    if len(token) > MAX_DIGITS:
        return []
    plain = token.translate(_SPACES)
    if plain.isdigit():
        return [float(plain)]
    whole, *groups = re.split("[.,]", plain)
    is_grouped = len(groups[-1]) == 3 and all(len(group) in (2, 3) for group in groups)
    joined = float("".join((whole, *groups)))
    if "," in plain and "." in plain:
        separator = max(plain.rfind(","), plain.rfind("."))
        return [float(re.sub("[.,]", "", plain[:separator]) + "." + plain[separator + 1 :])]
    if len(groups) > 1:
        return [joined] if is_grouped else []
    point = float(f"{whole}.{groups[0]}")
    if is_grouped and whole != "0":
        return [joined] if "," in plain else [point, joined]
    return [] if "," in plain and len(groups[0]) > 2 else [point]


_SPACES = str.maketrans("", "", " \u00a0\u202f")


@lru_cache(maxsize=16)  # a claim is read twice: to write it as its sources do, and to compare it with them
def amounts(text: str) -> tuple[Amount, ...]:
    """The numbers of a text, in order.

    >>> [sorted(amount.keys) for amount in amounts("5 kg cost $3 million")]
    [['5', 'mass:5000'], ['3000000', 'money:3000000']]
    """
    folded = fold(text)
    return tuple(amounts_in(_blanked(folded))) if _NUMBER.search(folded) else ()


def _blanked(text: str) -> str:
    for marks in (_MARKS, _LIST_NUMBER):
        text = marks.sub(lambda mark: " " * len(mark.group()), text)
    return text


def amounts_in(text: str) -> Iterator[Amount]:
    """Yield the numbers of a folded text in which marks and list numbers count as numbers."""
    tokens = list(TOKEN.finditer(text))
    position = 0
    while position < len(tokens):
        token = tokens[position].group()
        if token[0].isdigit():
            amount, position = _in_digits(text, tokens, position)
        elif token in SMALL or (token in ORDINALS):
            amount, position = _in_words(text, tokens, position)
        else:
            amount, position = None, position + 1
        if amount is not None:
            yield amount


def _touches(tokens: Sequence[re.Match[str]], position: int) -> bool:
    """Whether a token begins where the one before it ends."""
    return position < len(tokens) and tokens[position].start() == tokens[position - 1].end()


def _word(tokens: Sequence[re.Match[str]], position: int, text: str) -> str:
    """The word after a number, at most one space, hyphen or bracket further on; empty if there is none."""
    if position >= len(tokens) or position < 1:
        return ""
    gap = text[tokens[position - 1].end() : tokens[position].start()]
    return tokens[position].group() if gap in ("", " ", "-", "\u00a0", "\u202f", " (") else ""


def _in_digits(text: str, tokens: Sequence[re.Match[str]], position: int) -> tuple[Amount | None, int]:
    match = tokens[position]
    clock = _CLOCK.match(text, match.start())
    if clock and int(clock[1]) < _HOURS:
        return _time_of_day(clock, tokens, position)
    values = _values(match.group())
    start, after = match.start(), position + 1
    if not values:
        return None, after
    is_name = _INSIDE_NAME.search(text[max(0, start - 2) : start]) is not None
    scale, suffix = 1.0, ""
    if _touches(tokens, after) and tokens[after].group() in SUFFIXES:
        suffix = tokens[after].group()
    elif (word := _word(tokens, after, text)) in SCALES:
        scale, after = float(SCALES[word]), after + 1
    elif word in ("st", "nd", "rd", "th") and _touches(tokens, after):
        after += 1
    elif word == "s" and _touches(tokens, after):
        after, suffix = after + 1, "s"
    elif _touches(tokens, after) and word not in UNITS and word not in ("am", "pm", "x", "p", "a"):
        is_name = True  # 3D, 5G
    digits = _Digits(position, after, values, scale=scale, suffix=suffix, is_name=is_name)
    return _amount(text, tokens, digits)


def _time_of_day(clock: re.Match[str], tokens: Sequence[re.Match[str]], position: int) -> tuple[Amount, int]:
    """A time of day, whose key is that of the 24-hour clock; one without "am" or "pm" may be of either half."""
    hour, minutes, half = int(clock[1]), int(clock[2] or clock[4] or 0), clock[3] or clock[5]
    other = (hour + 12) % _HOURS
    hours = [hour % 12 + 12 * (half == "p")] if half and hour <= 12 else [hour, *[other] * (hour <= 12)]
    keys = {str(hour), str(other), *(f"clock:{one}:{minutes}" for one in hours)}
    while position < len(tokens) and tokens[position].start() < clock.end():
        position += 1
    return Amount(clock.start(), clock.end(), float(hour), frozenset(keys), Kind.QUANTITY), position


def _in_words(text: str, tokens: Sequence[re.Match[str]], position: int) -> tuple[Amount | None, int]:
    total, current, after, is_ordinal = 0, 0, position, False
    last = ""
    while after < len(tokens):
        word = tokens[after].group()
        if after > position and not _word(tokens, after, text):
            break
        if word == "and" and last in SCALES and _word(tokens, after + 1, text) in SMALL:
            after += 1
            continue
        if word in SMALL and not (last in SMALL and not (last in TENS and 0 < SMALL[word] < 10)):
            current += SMALL[word]
        elif word in ORDINALS and (not last or last in TENS):
            current += ORDINALS[word]
            is_ordinal, after = True, after + 1
            break
        elif word in SCALES and last and word != "dozen":
            if SCALES[word] == 100:
                current = max(1, current) * 100
            else:
                total, current = total + max(1, current) * SCALES[word], 0
        else:
            break
        last = word
        after += 1
    value = float(total + current)
    after = max(after, position + 1)
    is_name = is_ordinal and (text[tokens[after - 1].end() :][:1] != " " or _word(tokens, after, text) not in UNITS)
    return _amount(text, tokens, _Digits(position, after, [value], is_name=is_name))


def _amount(text: str, tokens: Sequence[re.Match[str]], digits: _Digits) -> tuple[Amount, int]:
    """The amount with its unit, and the position of the token after it."""
    first, after, values, scale, suffix, _ = digits
    before = tokens[first - 1].group() if first else ""
    value = values[0] * scale * SUFFIXES.get(suffix, 1)
    after += suffix in SUFFIXES
    unit = _word(tokens, after, text)
    if unit == "per" and _word(tokens, after + 1, text) == "cent":
        unit, after = "percent", after + 1
    known = ("money", 1.0) if before in _CURRENCIES else UNITS.get(unit) or UNITS.get(suffix)
    after += unit in UNITS and before not in _CURRENCIES
    keys, measure = _keys(digits, value, unit), None
    if known:
        in_base = (values[0] if known == UNITS.get(suffix) else value) * known[1]
        keys.add(f"{known[0]}:{number_text(in_base)}")
        measure = Measure(*known, in_base) if known[0] in MEASURED else None
    elif (heat := _DEGREES.match(text, tokens[after - 1].end())) is not None:
        is_fahrenheit = FAHRENHEIT[heat["scale"]]
        measure = Measure(
            "temperature", 5 / 9 if is_fahrenheit else 1.0, (value - 32) * 5 / 9 if is_fahrenheit else value
        )
        keys.add(f"temperature:{number_text(round(measure.value, 1))}")
        while after < len(tokens) and tokens[after].end() <= heat.end():
            after += 1
    nearby = {token.group() for token in tokens[max(0, first - _BEFORE) : first]}
    has_unit = known is not None or measure is not None or unit in COUNTED_UNITS
    amount = Amount(
        start=tokens[first].start(),
        end=tokens[min(after, len(tokens)) - 1].end(),
        value=value,
        keys=frozenset(keys),
        kind=_kind(digits, tokens[first].group(), value, has_unit=has_unit),
        approximate=not APPROXIMATE.isdisjoint(nearby),
        years=known == UNITS["years"] or "aged" in nearby or unit == "old",
        measure=measure,
    )
    return amount, after


def _keys(digits: _Digits, value: float, unit: str) -> set[str]:
    if digits.suffix == "s":  # 1990s
        return {f"{number_text(value)}s"}
    if unit == "century":
        return {f"century:{number_text(value)}"}
    return {number_text(value), *(number_text(number * digits.scale) for number in digits.values)}


def _kind(digits: _Digits, token: str, value: float, *, has_unit: bool) -> Kind:
    if digits.is_name:
        return Kind.NAME
    if digits.suffix == "s":
        return Kind.DECADE
    if has_unit or digits.scale != 1.0 or digits.suffix:
        return Kind.QUANTITY
    if token.isdigit() and len(token) == len("2000") and "1000" <= token <= "2100":
        return Kind.YEAR
    return Kind.COUNT if value <= _COUNTED and value == int(value) else Kind.QUANTITY
