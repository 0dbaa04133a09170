"""Splits a text into content terms, and lists the words of numbers, units and months.

A term is a lower-cased, lightly stemmed word that is not a function word; numbers lose their commas and per cent
signs, and small number words become digits, so that "three" matches "3" and "2,000" matches "2000". An
identifier such as `textwrap.dedent` or `max_len` yields its parts and, once, itself. The time is linear in the text.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

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


_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_NUMBER = r"\d{1,3}(?:\.\d{3})+,\d+|\d+(?=[.,]\d)(?:,\d+)*(?:\.\d+)*"  # "41.2,44.9" of a table are two
TOKEN = re.compile(rf"[{_CJK}]|{_NUMBER}|[^\W_]+(?:['’][^\W_{_CJK}]+)?")
_MARKS = re.compile("[\u0300-\u036f]+")
_IDENTIFIER = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[a-z_]\w*)*")


def word_set(text: str) -> frozenset[str]:
    """The words of a table that is written as text."""
    return frozenset(text.split())


STOP_WORDS = word_set(
    """a about after again all also although am an and any are as at be because been before being both but by can
    cannot could did do does doing done down during each either else etc even ever for from further had has have having
    he her here hers him his how however i if in into is it its itself just like many may me might more most much must
    my neither no nor not now of off on once one only onto or other our ours out over own per quite rather same shall
    she should since so some such than that the their theirs them then there therefore these they this those though
    through thus to too under until up upon us very was we were what when where whether which while who whom whose why
    will with within without would yes yet you your yours don doesn didn isn aren wasn weren won ll ve re"""
)

_NUMBERS = {word: str(value) for word, value in SMALL.items() if value > 1}
_VOWELS = frozenset("aeiouy")
_SYLLABLES = re.compile("[aeiouy]+")
_SHORT = re.compile("(?:[^aeiou][^aeiouy]*)?[aeiouy][^aeiouywx]")
"""A syllable that doubles its last letter before -ing: `hoping` comes from `hope`, `hopping` from `hop`."""

_PLY = ("pply", "mply", "reply", "tiply")

_FAMILIES = """
agree agreed; alias; api apis; atlas; bad badly; bias; bus buses; canvas; cpu cpus; die dying; disagree disagreed;
embed; finale; free freed; full fully; gas gases; go goes going; gpu gpus; guarantee guaranteed; hindu hindus;
humane; lens; lie lying; maine; marie; menu menus; nazi nazis; new newly; news; owe owed owing; paste pasted
pasting; program programme; quiz quizzes quizzed; simple simply; sue sued suing; suite; tie tying; true truly;
united unite unites uniting
"""
_EXCEPTIONS = {form: entry.split()[0] for entry in _FAMILIES.split(";") for form in entry.split()}
"""Stems of words that the rules would get wrong."""


def fold(text: str) -> str:
    """Lower case without accents: `São` -> `sao`. The length may change, so offsets become invalid."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text)))
    return text.lower()


@lru_cache(maxsize=1 << 12)  # words recur; a larger cache would fill with numbers, which do not
def term(token: str) -> str:
    """The term of one folded token; empty for a function word.

    >>> [term(word) for word in ("the", "studies", "running", "2,000", "three", "john's")]
    ['', 'study', 'run', '2000', '3', 'john']
    """
    token = token.replace("’", "'")
    head, _, tail = token.partition("'")
    if tail in ("s", "re", "ve", "ll", "d", "m", "t"):
        token = head[:-1] if tail == "t" and head.endswith("n") else head
    if token in STOP_WORDS:
        return ""
    if token[:1].isdigit():
        plain = token.replace(",", "")
        return plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain
    if len(token) == 1 and token.isascii():
        return ""
    return _NUMBERS.get(token) or _stem(token)


def _stem(word: str) -> str:
    """Stem a word lightly: plurals, -ly, -ed, -ing, in this order, each on the result of the one before.

    It never leaves fewer than three letters. Words of one syllable keep their e, because their forms show it (`planing`
    comes from `plane`, `planning` from `plan`); longer words lose it, because theirs do not (`creating`, `visiting`).
    """
    if len(word) <= 3 or not word.isalpha():
        return word
    single = _EXCEPTIONS.get(word) or _singular(word)
    return _EXCEPTIONS.get(single) or _without_final_e(_without_suffix(_without_ly(single)))


def _singular(word: str) -> str:
    """Remove the ending of a plural, or of the third person: `boxe`, `study`, `class`."""
    if word.endswith("sis") and len(word) > 5:
        return f"{word[:-2]}e"  # crises
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    # `studie` and `studied` -> `study`; `tie` and `tied` -> `tie`
    if word.endswith("ied"):
        word = word[:-1]
    return f"{word[:-2]}y" if word.endswith("ie") and len(word) > 3 else word


def _without_ly(word: str) -> str:
    """Remove -ly from an adverb. Verbs and nouns with it (`apply`, `reply`, `rally`) keep it."""
    if not word.endswith("ly") or len(word) < 6 or word.endswith(_PLY):
        return word
    if word.endswith("ily"):
        return f"{word[:-3]}y"
    return f"{word[:-1]}e" if word.endswith("bly") else word[:-2]


def _without_suffix(word: str) -> str:
    """Remove -ed or -ing from a verb, and restore its e. Words in -eed are left as they are: few of them are forms."""
    for suffix in () if word.endswith("eed") else ("ing", "ed"):
        stem = word.removesuffix(suffix)
        if stem == word:
            continue
        if _SHORT.fullmatch(stem):
            return f"{stem}e"
        if len(stem) >= 3 and not _VOWELS.isdisjoint(stem):
            return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "aeioufszl" else stem
    return word


def _without_final_e(stem: str) -> str:
    """Remove a silent e and, in longer words, the second l of a doubled one."""
    if stem.endswith("ll") and len(_SYLLABLES.findall(stem)) > 1:
        return stem[:-1]
    if len(stem) > 3 and stem[-1] == "e" and stem[-2] != "e" and not _SHORT.fullmatch(stem[:-1]):
        return stem[:-1]
    return stem


def terms(text: str) -> list[str]:
    """Split a text into content terms, in order, with duplicates, identifiers by their parts.

    >>> terms("It doesn't trim textwrap.dedent lines.")
    ['trim', 'textwrap', 'dedent', 'line']
    """
    return [name for name in map(term, TOKEN.findall(fold(text))) if name]


def identifiers(text: str) -> set[str]:
    """Identifiers with a dot or an underscore, in lower case; the end of a sentence is not one.

    >>> sorted(identifiers("Use textwrap.dedent or max_len. Then U.S. law."))
    ['max_len', 'textwrap.dedent']
    """
    if "_" not in text and "." not in text:
        return set()
    names = (name.strip("._") for name in _IDENTIFIER.findall(text) if "." in name or "_" in name)
    return {name.lower() for name in names if "." in name or "_" in name}


def is_number(name: str) -> bool:
    """Whether a term is a number, in digits or in words."""
    return name[0].isdigit()
