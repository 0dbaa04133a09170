"""Tells amounts, years and decimal numbers from telephone numbers, which are written in such groups as well."""

from __future__ import annotations

import re

_AMOUNT = re.compile(r"[1-9]\d{0,2}(?P<sign>[ .])\d{3}(?:(?P=sign)\d{3})*")
_ROUND = re.compile(r"(?P<sign>[ .])000(?P=sign)000\Z")
_CENTS = re.compile(r"[1-9]\d{0,2}(?: \d{3})+\.\d\d?")
_NATIONAL = re.compile(r"[1-9]\d\d(?P<sign>[ .])\d{3}(?P=sign)(?!000)\d{3}")  # 600 123 456 is a number in Spain
_CURRENCIES = (
    r"[$\xa3\xa5\u20a9\u20ac\u20b9\u20ba\u20bd]|(?:AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|RUB|SEK|TRY"
    r"|USD)\b"
)
_CURRENCY_BEFORE = re.compile(rf"(?:{_CURRENCIES}) ?\Z")
_MEASURED = re.compile(  # no single letters: `600 123 456 h` is a number at home
    rf",\d\d?(?! ?\d)| ?(?:{_CURRENCIES}|[%\xb0]"
    r"|(?:[ckmn\xb5\u03bc]m[\xb2\xb3]?|m[23\xb2\xb3]|k[gW]|m[glsW]|[MG]W|ft|[kMGTP]i?B|[kMG]?(?:Wh|Hz))(?!\w)"
    r"|(?i:euros?|dollars?|pounds?|francs?|franken|kronor|kroner|zloty|yen|rupees|pesos|reais)\b)"
)
_COUNTED = re.compile(r" (?P<word>[^\W\d_]{3,24})(?!\w| [(+]?\d)")  # before a number it is a word such as `or`
_NOT_COUNTED = frozenset(  # words that go on behind a telephone number
    """
    after again also and any anytime asap ask avoid before between both but daily directly during either ext extension
    first for free from here immediately instead just later not now only otherwise please press rather since straight
    then this today toll tomorrow tonight until using via weekdays when whenever while who with within
    aber bitte bis durchwahl heute jederzeit jetzt morgen und von werktags
    avec dans demain depuis jusqu maintenant mais pendant poste pour puis
    ahora con cuando desde entre gratis hasta hoy para pero por
    ate com das durante hoje quando ramal dalle dopo oggi ora per solo subito
    albo aby dla lub oraz
    """.split()  # noqa: SIM905 - one word a line would fill a page
)
_DECIMAL = re.compile(r"(?<![\d.])\d{1,3}\.\d\d?(?![\d.])")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def is_amount(text: str, start: int, end: int) -> bool:
    """Returns whether digits in groups count or measure something, or are years or decimal numbers.

    >>> [is_amount(text, 0, 10) for text in ("10 000 000", "1 234 5678", "12 345 678 users", "12 345 678 or later")]
    [True, False, True, False]
    >>> is_amount("2019-2020", 0, 9), is_amount("1.5-2.0 10", 0, 10)
    (True, True)
    """
    value = text[start:end]
    if len(_DECIMAL.findall(value)) > 1 or len(_YEAR.findall(value)) > 1 or _CENTS.fullmatch(value):
        return True
    if not _AMOUNT.fullmatch(value):
        return False
    if _ROUND.search(value) or _MEASURED.match(text, end) or _CURRENCY_BEFORE.search(text[max(0, start - 5) : start]):
        return True
    counted = _COUNTED.match(text, end)
    word = counted["word"] if counted else ""
    return word.islower() and word not in _NOT_COUNTED and not _NATIONAL.fullmatch(value)
