"""Words of numbers, units and months, for `amounts`."""

from __future__ import annotations

from types import MappingProxyType


def _numbered(words: str, start: int) -> dict[str, int]:
    """Words with their numbers, counted from `start`."""
    return {word: number for number, word in enumerate(words.split(), start=start)}


TENS = MappingProxyType(
    {word: 10 * place for word, place in _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 2).items()}
)
SMALL = MappingProxyType(
    _numbered(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen""",
        0,
    )
    | TENS
)
ORDINALS = MappingProxyType(
    _numbered(
        """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
        fifteenth sixteenth seventeenth eighteenth nineteenth twentieth""",
        1,
    )
    | {"thirtieth": 30}
)
SCALES = MappingProxyType(
    {
        "hundred": 100,
        "thousand": 1000,
        "million": 10**6,
        "billion": 10**9,
        "trillion": 10**12,
        "hundreds": 100,
        "thousands": 1000,
        "millions": 10**6,
        "billions": 10**9,
        "trillions": 10**12,
        "mn": 10**6,
        "mio": 10**6,
        "bn": 10**9,
        "tn": 10**12,
        "lakh": 10**5,
        "crore": 10**7,
        "dozen": 12,
    }
)
SUFFIXES = MappingProxyType({"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12})
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
UNITS = MappingProxyType(
    {
        word: (entry.split()[0], float(entry.split()[1]))
        for entry in _UNIT_FORMS.split(";")
        for word in entry.split()[2:]
    }
)
"""Units that have a base: its name, and how many of it they are."""

MEASURED = frozenset({"length", "mass", "area", "volume", "temperature"})
"""Bases in which people convert between systems of units, and round."""

FAHRENHEIT = MappingProxyType({"c": False, "celsius": False, "centigrade": False, "f": True, "fahrenheit": True})
"""Scales of temperature, by their names after a sign or a word for degrees: whether they are Fahrenheit's."""

COUNTED_UNITS = frozenset(
    _numbered(
        """pounds pound ounce ounces oz degree degrees mph points times bits cores threads seats floors rooms pages""",
        0,
    )
)
"""Units without a base."""

MONTHS = MappingProxyType(
    _numbered("january february march april may june july august september october november december", 1)
)
SHORT_MONTHS = MappingProxyType({name[:3]: month for name, month in MONTHS.items()} | {"sept": 9})
ROMAN = MappingProxyType(_numbered("ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi", 2))
OTHER_NAMES = MappingProxyType(
    {
        "half": ("0.5", "50", "2"),
        "halves": ("0.5", "50", "2"),
        "quarter": ("0.25", "25", "4", "3"),
        "quarterly": ("4", "3"),
        "twice": ("2",),
        "double": ("2",),
        "doubled": ("2",),
        "both": ("2",),
        "pair": ("2",),
        "couple": ("2",),
        "twin": ("2",),
        "thrice": ("3",),
        "triple": ("3",),
        "tripled": ("3",),
        "trio": ("3",),
        "dozen": ("12",),
        "fortnight": ("14", "2"),
        "decade": ("10",),
        "decades": ("10",),
        "century": ("100",),
        "quadruple": ("4",),
        "duo": ("2",),
        "quartet": ("4",),
        "weekly": ("7",),
        "week": ("7",),
        "noon": ("12",),
        "midnight": ("12", "0", "24"),
        "monthly": ("30", "12"),
        "annual": ("12", "365"),
        "year": ("12", "365"),
        "day": ("24",),
        "daily": ("24",),
        "hour": ("60",),
        "minute": ("60",),
        "all": ("100",),
        "third": ("33", "0.33"),
        "twins": ("2",),
        "triplets": ("3",),
        "single": ("1",),
        "bi": ("2",),
        "tri": ("3",),
        "biweekly": ("2", "14"),
    }
)
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
