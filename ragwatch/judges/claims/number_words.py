"""Words of numbers, units and months, for `amounts`."""

from __future__ import annotations

from collections.abc import Mapping

MAX_DIGITS = 24
"""A longer run of digits is a name."""


def _numbered(words: str, start: int) -> dict[str, int]:
    """Words with their numbers, counted from `start`."""
    return {word: number for number, word in enumerate(words.split(), start=start)}


def _by_word(table: str) -> dict[str, tuple[str, ...]]:
    """The numbers before each colon, by each word after it."""
    rows = (entry.partition(":") for entry in table.split(";"))
    return {word: tuple(numbers.split()) for numbers, _, words in rows for word in words.split()}


_ROUND = _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 2)
TENS: Mapping[str, int] = {word: 10 * place for word, place in _ROUND.items()}
_CARDINALS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
SMALL: Mapping[str, int] = {**_numbered(_CARDINALS, 0), **TENS}
_ORDINALS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""
ORDINALS: Mapping[str, int] = {**_numbered(_ORDINALS, 1), "thirtieth": 30}
_SCALES = """
12: dozen; 100: hundred hundreds; 1000: thousand thousands; 100000: lakh; 1000000: million millions mn mio;
10000000: crore; 1000000000: billion billions bn; 1000000000000: trillion trillions tn
"""
SCALES: Mapping[str, int] = {word: int(value) for word, (value,) in _by_word(_SCALES).items()}
SUFFIXES: Mapping[str, int] = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
"""Scales only where they touch the number: `3.5M`."""

_UNIT_FORMS = """
mass 0.001 mg milligram milligrams; mass 1 g gram grams gramme grammes; mass 1000 kg kgs kilo kilos kilogram
kilograms; mass 1000000 tonne tonnes; length 0.001 mm millimetre millimetres millimeter millimeters; length 0.01 cm
centimetre centimetres centimeter centimeters; length 1 m metre metres meter meters; length 1000 km kms kilometre
kilometres kilometer kilometers; length 0.0254 inch inches; length 0.3048 foot feet ft; length 0.9144 yard yards;
length 1609.344 mile miles; mass 453.592 lb lbs; area 4046.86 acre acres; area 10000 hectare hectares; volume 3.78541
gallon gallons; volume 0.001 ml millilitre millilitres milliliter milliliters; volume 0.01 cl; volume 1 l litre litres
liter liters; time 0.001 ms millisecond milliseconds; time 1 s sec secs second seconds; time 60 min mins minute
minutes; time 3600 h hr hrs hour hours hourly; time 86400 day days daily; time 604800 week weeks weekly; months 1
month months monthly; months 12 year years yr yrs yearly annually; months 120 decade decades; months 1200 century
centuries; data 1 byte bytes; data 1000 kb kilobyte kilobytes; data 1000000 mb megabyte megabytes; data 1000000000 gb
gigabyte gigabytes; data 1000000000000 tb terabyte terabytes; money 0.01 cent cents; money 1 $ € £ ¥ ₹ euro euros eur
dollar dollars usd gbp chf franc francs yen rupee rupees; share 1 % percent; power 1 w watt watts; power 1000 kw
kilowatt kilowatts; power 1000000 mw megawatt megawatts; frequency 1 hz; frequency 1000 khz; frequency 1000000 mhz;
frequency 1000000000 ghz
"""
UNITS: Mapping[str, tuple[str, float]] = {
    word: (entry.split()[0], float(entry.split()[1])) for entry in _UNIT_FORMS.split(";") for word in entry.split()[2:]
}
"""Units that have a base: its name, and how many of it they are."""

MEASURED = frozenset({"length", "mass", "area", "volume", "temperature"})
"""Bases in which people convert between systems of units, and round."""

FAHRENHEIT: Mapping[str, bool] = {"c": False, "celsius": False, "centigrade": False, "f": True, "fahrenheit": True}
"""Scales of temperature, by their names after a sign or a word for degrees: whether they are Fahrenheit's."""

COUNTED_UNITS = frozenset(
    _numbered(
        "pounds pound ounce ounces oz degree degrees mph points times bits cores threads seats floors rooms pages", 0
    )
)
"""Units without a base."""

MONTHS: Mapping[str, int] = _numbered(
    "january february march april may june july august september october november december", 1
)
SHORT_MONTHS: Mapping[str, int] = {name[:3]: month for name, month in MONTHS.items()} | {"sept": 9}
ROMAN: Mapping[str, int] = _numbered("ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi", 2)
_OTHER_NAMES = """
0.25 25 4 3: quarter; 33 0.33: third; 0.5 50 2: half halves; 1: single; 2: twice double doubled both pair couple twin
twins duo bi; 2 14: biweekly; 14 2: fortnight; 3: thrice triple tripled trio triplets tri; 4: quadruple quartet;
4 3: quarterly; 7: week weekly; 10: decade decades; 12: dozen noon; 12 0 24: midnight; 24: day daily; 60: hour minute;
30 12: monthly; 12 365: annual year; 100: century all
"""
OTHER_NAMES: Mapping[str, tuple[str, ...]] = _by_word(_OTHER_NAMES)
"""Words of a source, and the numbers that a claim may write instead."""

APPROXIMATE = frozenset(
    _numbered(
        """about around approximately nearly almost over roughly some exceeding least most than under up circa ca close
        estimated""",
        0,
    )
)


def month_name(month: int) -> str:
    """The English name of a month, by its number from 1.

    >>> month_name(2)
    'february'
    """
    return list(MONTHS)[month - 1]
