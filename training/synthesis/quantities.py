"""Numbers, dates, units: finding them, changing them, and writing them otherwise without changing them."""

import random
import re

from .marked import Marked
from .scene import Change, Scene

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_MONTH = "|".join(MONTHS)
_NUMBER = re.compile(r"(?<![\w.,-])\$?\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|-\d|,\d|\.\d)")
_YEAR = re.compile(r"(?<![\w.,$-])(1[5-9]\d\d|20[0-2]\d)(?![\w%-]|,\d|\.\d)")
_SMALL = re.compile(rf"(?<![\w-])({'|'.join(WORDS[2:])})(?![\w-])")
_ORDINAL = re.compile(rf"(?<=the )({'|'.join(ORDINALS)})(?= [a-z])")
_NAMED = re.compile(rf"\b({_MONTH}|{'|'.join(DAYS)})\b")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}}) ?, (\d{{4}})\b")
_UNITS = (
    *(("million", "billion"), ("thousand", "million"), ("days", "weeks"), ("months", "years"), ("hours", "minutes")),
    *(("weeks", "months"), ("km", "mi"), ("miles", "kilometres"), ("feet", "metres"), ("kg", "tonnes")),
    *(("decades", "years"), ("percent", "percentage points"), ("minutes", "seconds"), ("acres", "hectares")),
)
_UNIT = {**dict(_UNITS), **{b: a for a, b in reversed(_UNITS)}}
_UNIT_AT = re.compile(rf"(?<=\d )({'|'.join(sorted(_UNIT, key=len, reverse=True))})\b")


def number(scene: Scene) -> Change | None:
    """A year, count, share, sum, ordinal, month or unit turned into another."""
    text, rng = scene.text, scene.rng
    found = [
        *((match, _other_year) for match in _YEAR.finditer(text)),
        *((match, _other_number) for match in _NUMBER.finditer(text) if not _YEAR.fullmatch(match.group())),
        *((match, _other_word) for match in _SMALL.finditer(text)),
        *((match, _other_ordinal) for match in _ORDINAL.finditer(text)),
        *((match, _other_name) for match in _NAMED.finditer(text) if _dated(text, match)),
        *((match, _other_unit) for match in _UNIT_AT.finditer(text)),
    ]
    rng.shuffle(found)
    for match, maker in found:
        old = match.group()
        if re.search(r"(?:\[|et al\. )$", text[: match.start()]):
            continue
        for _ in range(4):
            new = maker(old, rng)
            if new and new != old and new.lower() not in scene.passage.text.lower():
                sure = maker in (_other_year, _other_number)
                elsewhere = ((old, new),) if sure and len(old) > 2 else ()
                if not elsewhere and re.search(rf"(?<!\w){re.escape(old)}(?!\w)", scene.rest(), re.IGNORECASE):
                    back = None
                else:
                    back = "contradicted"
                return Change(((match.start(), match.end(), new),), maker.__name__.replace("_other_", "number-"), "contradicted", back, elsewhere)  # type: ignore[arg-type]  # noqa: E501  # fmt: skip
    return None


def _dated(text: str, match: re.Match[str]) -> bool:
    if match.group() not in ("March", "May", "August", "June", "April"):
        return True
    return bool(
        re.search(r"(?:\d|\b[Ii]n|\bof|\bfrom|\bto|\b[Oo]n|until|between|by) $", text[: match.start()])
    ) or bool(re.match(r" \d", text[match.end() :]))


def _other_year(old: str, rng: random.Random) -> str:
    step = rng.choice((1, 1, 2, 2, 3, 4, 5, 7, 10, 20, 30, 100))
    later = int(old) + step
    return str(later if later <= 2022 and rng.random() < 0.5 else int(old) - step)


def _other_number(old: str, rng: random.Random) -> str:
    money, digits = ("$", old[1:]) if old[0] == "$" else ("", old)
    plain = digits.replace(",", "")
    decimals = len(plain.partition(".")[2])
    value = float(plain)
    if decimals == 0 and value < 20:
        changed = max(0.0, value + rng.choice((-3, -2, -1, 1, 2, 3, 4, 5)))
    elif rng.random() < 0.3 and len(plain.replace(".", "")) > 1:
        return money + _one_digit(digits, rng)
    else:
        changed = value * rng.choice((0.1, 0.5, 0.6, 0.75, 0.8, 0.9, 1.1, 1.2, 1.5, 2, 3, 10))
        zeros = len(plain) - len(plain.rstrip("0")) if not decimals else 0
        changed = round(changed, decimals) if decimals else float(round(changed / 10**zeros) * 10**zeros)
    new = f"{changed:,.{decimals}f}" if "," in digits or changed >= 10000 else f"{changed:.{decimals}f}"
    return money + new


def _one_digit(digits: str, rng: random.Random) -> str:
    places = [index for index, character in enumerate(digits) if character.isdigit()]
    place = rng.choice(places)
    choices = [digit for digit in "123456789" if digit != digits[place]]
    return digits[:place] + rng.choice(choices) + digits[place + 1 :]


def _near(words: tuple[str, ...], old: str, rng: random.Random, low: int = 0) -> str:
    index = words.index(old) + rng.choice((-3, -2, -1, 1, 2, 3))
    return words[index] if low <= index < len(words) else ""


def _other_word(old: str, rng: random.Random) -> str:
    return _near(WORDS, old, rng, 2)


def _other_ordinal(old: str, rng: random.Random) -> str:
    return _near(ORDINALS, old, rng)


def _other_name(old: str, rng: random.Random) -> str:
    return rng.choice(MONTHS if old in MONTHS else DAYS)


def _other_unit(old: str, rng: random.Random) -> str:  # noqa: ARG001
    return _UNIT[old]


def rewritten(text: Marked, rng: random.Random) -> Marked:
    """The same numbers and dates, written otherwise: words for digits, day before month, per cent signs."""
    steps = [_words_for_digits, _digits_for_words, _dates, _percent]
    rng.shuffle(steps)
    for step in steps:
        new = step(text)
        if new.text != text.text:
            return new
    return text


def _words_for_digits(text: Marked) -> Marked:
    pattern = re.compile(r"(?<![\w.,$-])(\d|1\d|20)(?= [a-z]{4,})(?! (?:percent|million|billion|degrees))")
    return text.sub(pattern, lambda match: WORDS[int(match.group())] if int(match.group()) > 1 else match.group())


def _digits_for_words(text: Marked) -> Marked:
    pattern = re.compile(rf"(?<=[a-z] )({'|'.join(WORDS[2:])})(?= [a-z])")
    return text.sub(pattern, lambda match: str(WORDS.index(match.group())))


def _dates(text: Marked) -> Marked:
    new = text.sub(_DAY_FIRST, r"\2 \1, \3")
    return new if new.text != text.text else text.sub(_MONTH_FIRST, r"\2 \1 \3")


def _percent(text: Marked) -> Marked:
    new = text.sub(re.compile(r"(?<=\d)%"), " percent")
    return new if new.text != text.text else text.sub(re.compile(r"(?<=\d) (?:percent|per cent)\b"), "%")
