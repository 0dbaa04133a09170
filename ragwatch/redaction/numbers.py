"""Detects numbers of bank accounts, cards and telephones, and excludes other numbers.

Accounts and cards are known by their checksums; telephones by their formatting, or by a word before them, unless they
are dates, versions, amounts or ids.

An IBAN is cut to the length of its country before it is checked, because words may follow it in groups of four; the
check of python-stdnum takes the end as known, and costs 55 ms of import.
"""

import re

from ragwatch.redaction.person_checks import luhn, mod97
from ragwatch.redaction.rule import Span, letters_and_digits, rules

# Length of an IBAN by country, from the registry of ISO 13616.
_IBAN_COUNTRIES = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
    "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
    "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
    "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 "
    "YE30 "
)
IBAN_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _IBAN_COUNTRIES.split()}
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11,16}|35\d{14,17}"
    r"|(?:6011|64[4-9]\d|65\d\d|62\d\d)\d{12,15}|(?:50|5[6-9]|6\d)\d{10,17}"
)
_OF_MACHINES = re.compile(
    r"(?i)(?:seed|entropy|random|rng|nonce|hash|checksum|offset|timestamp|epoch|array|uint64|int64|snowflake)"
    r"[^\W\d]{0,16}[^\d\n]{0,6}(?:\d{4,20}[, ]{1,3}){0,6}\Z"
)
_BEFORE_CHARS = 100


def _iban(match: re.Match[str]) -> Span | None:
    """Accepts an IBAN of the length of its country with a valid checksum (ISO 7064, mod 97-10)."""
    text, start = match[0], match.start()
    length = IBAN_LENGTHS.get(text[:2].upper(), len(text) + 1)
    end = start + length + ((length - 1) // 4 if not text[4].isalnum() else 0)
    if end > match.end() or match.string[end : end + 1].isalnum():
        return None
    value = letters_and_digits(match.string[start:end])
    return (start, end) if mod97(value[4:] + value[:4]) else None


def _card(match: re.Match[str]) -> Span | None:
    """Accepts a number with the prefix and length of an issuer and a valid Luhn checksum, unless it is of a machine.

    Three digits after it are either part of the number or the security code of the card; both readings are tried.
    """
    if not match["sign"] and _OF_MACHINES.search(match.string[max(0, match.start() - _BEFORE_CHARS) : match.start()]):
        return None
    for value in (match[0], match[0][:-4]) if match["tail"] else (match[0],):
        digits = value.replace(match["sign"] or " ", "")
        if _ISSUERS.fullmatch(digits) and luhn(digits):
            return match.start(), match.start() + len(value)
    return None


MONEY_RULES = rules("money", {"iban": _iban, "card": _card})

_NOT_PHONES = re.compile(
    r"(?i)\b(?:order|part|serial|model|version|build|ticket|invoice|id|issue|account|row|rows|line|port|sku|batch|tracking|case|imei|size"
    r"|sizes|total|bytes|ms|error|page|pages|isbn|ip|chapter|section|release|commit|of)\b"
)
_DATE = re.compile(r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})")
_GROUPED = re.compile(r"\d[ ./-]\d|\d\) ?\d")
_GROUPS = re.compile(r"\d+")
_FORMATTING = re.compile(r"\D")
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


def _phone(match: re.Match[str]) -> Span | None:
    """Accepts a number of 8 to 15 digits (9 to 12 with a trunk prefix) with the formatting of a telephone number."""
    if match["world"] or match["dialled"]:
        return _world_phone(match)
    if match["trunk"]:
        return _trunk_phone(match)
    return match.span()


def _world_phone(match: re.Match[str]) -> Span | None:
    value = match[0]
    decimal = value.count(".") == 1 and not set(value) & set(" ()/-")
    bare_id = value.startswith("00") and value.isdigit()
    enough = sum(map(str.isdigit, value)) >= 8
    return match.span() if enough and not decimal and not bare_id else None


def _trunk_phone(match: re.Match[str]) -> Span | None:
    """Accepts a number with a trunk prefix; groups after the twelfth digit belong to another number."""
    value = match[0]
    while (digits := len(value) - len(_FORMATTING.findall(value))) > 12:
        value = value[: max(map(value.rfind, " -"))]
    zip_code = len(value) == 10 and value[5] == "-"
    plausible = digits >= 9 and not zip_code and not _DATE.search(value)
    return (match.start(), match.start() + len(value)) if plausible else None


def _introduced_phone(match: re.Match[str]) -> Span | None:
    """Accepts a number that follows a word such as `phone` or `call`, unless it is a date, an amount or a decimal."""
    value, span = match["secret"], match.span("secret")
    return None if _DATE.match(value) or _decimal(value) or is_amount(match.string, *span) else span


def _reached_phone(match: re.Match[str]) -> Span | None:
    """Accepts a number in groups near a word such as `reach` or `number`, with nothing between that means an id."""
    value, span = match["secret"], match.span("secret")
    digits = sum(map(str.isdigit, value))
    before = match.string[max(0, match.start() - 12) : match.start("secret")]
    if digits < 8 or digits > 13 or _DATE.search(value) or _NOT_PHONES.search(before) or _decimal(value):
        return None
    if is_amount(match.string, *span):
        return None
    groups = _GROUPS.findall(value)
    mobile = digits in (10, 11) and len(groups) == 1 and value[0] in "01" and value[:3] != "170"
    grouped = len(groups) > 1 and _GROUPED.search(value) and max(map(len, groups)) <= 8
    return span if grouped or mobile else None


def _decimal(value: str) -> bool:
    return value.count(".") == 1 and not set(value) & set(" ()/-+")


def is_amount(text: str, start: int, end: int) -> bool:
    """Returns whether digits in groups count or measure something, or are years or decimal numbers."""
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


PHONE_RULES = rules("phone", {"phone": _phone, "introduced phone": _introduced_phone, "reached phone": _reached_phone})
