"""Detects numbers that states give to persons: social security, tax and identity numbers, and passports.

A number is found by its shape, and accepted by its checksum, its date of birth or the groups that are in use. Shapes
that ordinary numbers have as well need a word such as `SSN` or `Steuer-ID` near them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragwatch.redaction import european_checks as european
from ragwatch.redaction import person_checks as checks
from ragwatch.redaction.national_numbers import NATIONAL
from ragwatch.redaction.numbers import letters_and_digits
from ragwatch.redaction.person_shapes import (
    LETTERED,
    LETTERED_SHAPES,
    LETTERED_START,
    NUMBER_BY_DIGITS,
    NUMBER_START,
    SHAPES,
    SHAPES_BY_DIGITS,
)
from ragwatch.redaction.rule import SensitiveKind, Taken, TextView

_NEAR_PERSONS = ("id number", "id no", "citizen", "resident", "date of birth", "born", "patient")
_GENERIC = (
    *(
        "national id",
        "identity card",
        "identity number",
        "identity no",
        "id card",
        "social security",
    ),
    *("personal number", "personal no", "personal code", "personal id", "tax id", "tax number", "tax no", "taxpayer"),
    *("tax file", "national insurance", "insurance number", "passport", "personalausweis"),
    *_NEAR_PERSONS,
)
_OTHER_NUMBERS = re.compile(
    r"(?i)\b(?:part|order|sku|serial|s/n|version|build|commit|invoice|ticket|issue|model|ref|reference|batch|lot|row|port|page|isbn|tracking"
    r"|job|run|request|trace|offset|size|bytes|timestamp|epoch|error|code|revision|article|art|product|item|device|firmware|asset"
    r"|backup|snapshot|release|case|id|ids|key|hash|pn|p/n|component|shipment|container|node|host)\b[^\w]{0,4}(?:(?:no|nr|number|id|is|was)\b[^\w]{0,4})?\Z"
)
_BARE = frozenset({"gstin", "che", "npwp"})  # shapes that hardly anything else has
_RUNS = re.compile(r"[a-z]{2,}")
_START_CHARS = 4
_CONTEXT_BEFORE, _CONTEXT_AFTER = 60, 24
_MIN_DIGITS, _MIN_DIGITS_AND_LETTERS = 7, 4


@dataclass(frozen=True, slots=True)
class PersonIdRule:
    """Accepts the numbers of one country.

    Attributes:
        name: Name of the rule.
        about: What the number is.
        shapes: Names of its shapes; a number after `plain` is the number of its digits.
        check: Checks digits and letters without formatting.
        words: Words that stand near such a number, in lower case.
        bare: Shapes that need no word near them.
        kind: Kind of the values.
        normalize: Removes formatting.
    """

    name: str
    about: str
    shapes: tuple[str, ...]
    check: Callable[[str], bool]
    words: tuple[str, ...]
    bare: frozenset[str] = frozenset()
    kind: SensitiveKind = SensitiveKind.PERSON_ID
    normalize: Callable[[str], str] = letters_and_digits


def _id(
    name: str, about: str, shapes: str, check: Callable[[str], bool], words: str, *, bare: str = ""
) -> PersonIdRule:
    """A rule; shapes, words and the shapes in `bare`, which need no word near them, are separated by semicolons."""
    near = tuple(filter(None, words.split(";")))
    return PersonIdRule(
        name, about, tuple(shapes.split(";")), check, (*near, *_GENERIC), bare=frozenset(bare.split(";"))
    )


PERSON_RULES: tuple[PersonIdRule, ...] = (
    _id(
        "us-ssn",
        "US social security number (and ITIN)",
        "3-2-4;3 2 4;plain9",
        checks.ssn,
        "ssn;itin;social sec",
        bare="3-2-4",
    ),
    _id("uk-nino", "UK national insurance number", "nino", european.nino, "nino;ni number", bare="nino"),
    _id("uk-nhs", "UK NHS number", "3 3 4;plain10", european.nhs, "nhs"),
    _id(
        "fr-ni",
        "French social security number",
        "nir;plain15",
        european.nir,
        "nir;s\xe9curit\xe9 sociale;securite sociale",
        bare="nir;plain15",
    ),
    _id(
        "de-tax-id",
        "German tax number (Steuer-ID)",
        "2 3 3 3;plain11",
        european.steuer_id,
        "steuer;idnr;tin",
        bare="2 3 3 3",
    ),
    _id("es-dni", "Spanish DNI", "dni", european.dni, "dni;nif;documento", bare="dni"),
    _id("es-nie", "Spanish NIE", "nie", european.nie, "nie", bare="nie"),
    _id(
        "it-codice-fiscale",
        "Italian codice fiscale",
        "codice",
        european.codice_fiscale,
        "codice fiscale",
        bare="codice",
    ),
    _id("nl-bsn", "Dutch BSN", "plain9;4.2.3;3 3 3", european.bsn, "bsn;burgerservice;sofinummer"),
    _id(
        "be-national-number",
        "Belgian national number",
        "belgian;plain11",
        european.belgian,
        "rijksregister;registre national;national number;nn;niss;insz",
        bare="belgian",
    ),
    _id("pl-pesel", "Polish PESEL", "plain11", european.pesel, "pesel"),
    _id(
        "se-personnummer",
        "Swedish personal number",
        "6-4;8-4;plain10;plain12",
        european.personnummer,
        "personnummer;swedish",
        bare="6-4",
    ),
    _id("dk-cpr", "Danish CPR number", "6-4;plain10", european.cpr, "cpr;personnummer;danish"),
    _id(
        "no-fodselsnummer",
        "Norwegian birth number",
        "6 5;plain11",
        european.fodselsnummer,
        "f\xf8dselsnummer;fodselsnummer;personnummer;norwegian",
        bare="6 5;plain11",
    ),
    _id("fi-hetu", "Finnish personal identity code", "hetu", european.hetu, "hetu;henkil\xf6tunnus", bare="hetu"),
    _id("pt-nif", "Portuguese NIF", "plain9;3 3 3", european.nif, "nif;contribuinte"),
    _id("ie-pps", "Irish PPS number", "pps", european.pps, "pps"),
    _id(
        "at-svn",
        "Austrian social insurance number",
        "4 6;plain10",
        european.svnr,
        "svnr;sv-nummer;sozialversicherung",
    ),
    _id("ch-ahv", "Swiss AHV number", "ahv;plain13", european.ahv, "ahv;avs", bare="ahv"),
    _id(
        "cz-birth-number",
        "Czech and Slovak birth number",
        "6/4;plain10",
        european.rodne_cislo,
        "rodn\xe9;rodne;birth number",
        bare="6/4",
    ),
    _id("br-cpf", "Brazilian CPF", "cpf;plain11", checks.cpf, "cpf", bare="cpf"),
    _id("br-cnpj", "Brazilian CNPJ", "cnpj;plain14", checks.cnpj, "cnpj", bare="cnpj"),
    _id("mx-curp", "Mexican CURP", "curp", checks.curp, "curp", bare="curp"),
    _id("ar-cuit", "Argentinian CUIT and CUIL", "2-8-1;plain11", checks.cuit, "cuit;cuil", bare="2-8-1"),
    _id("cl-rut", "Chilean RUT", "rut", checks.rut, "rut;run", bare="rut"),
    _id("in-aadhaa", "Indian Aadhaa", "4 4 4;plain12", checks.aadhaar, "aadhaar;aadhar;uidai"),
    _id("in-pan", "Indian PAN", "pan", checks.anything, "pan", bare="pan"),
    _id("cn-resident-id", "Chinese resident identity number", "18", checks.resident, "\u8eab\u4efd\u8bc1", bare="18"),
    _id(
        "kr-rrn",
        "Korean resident registration number",
        "6-7;plain13",
        checks.rrn,
        "rrn;resident reg;\uc8fc\ubbfc",
        bare="6-7",
    ),
    _id(
        "jp-my-number",
        "Japanese My Numbe",
        "4 4 4;plain12",
        checks.my_number,
        "my number;mynumber;individual number;\u30de\u30a4\u30ca\u30f3\u30d0\u30fc",
    ),
    _id("au-tfn", "Australian tax file number", "3 3 3;plain9;plain8", checks.tfn, "tfn;tax file"),
    _id("au-medicare", "Australian Medicare number", "4 5 1;plain10;plain11", checks.medicare, "medicare"),
    _id("ca-sin", "Canadian social insurance number", "3 3 3;plain9", checks.sin, "sin;social insurance"),
    _id(
        "za-id",
        "South African identity number",
        "6 4 2 1;plain13",
        checks.south_african,
        "sa id;south african;rsa id",
        bare="6 4 2 1;plain13",
    ),
    _id(
        "tr-kimlik",
        "Turkish identity number",
        "plain11",
        checks.kimlik,
        "kimlik;tckn;turkish",
    ),
    _id("sg-nric", "Singapore NRIC and FIN", "nric", checks.nric, "nric;fin", bare="nric"),
    _id("hk-id", "Hong Kong identity card", "hkid", checks.hkid, "hkid", bare="hkid"),
    _id("tw-id", "Taiwanese identity number", "taiwan", checks.taiwanese, "taiwan;\u8eab\u5206\u8b49", bare=""),
    _id("th-id", "Thai identity number", "thai;plain13", checks.thai, "thai", bare="thai"),
    _id(
        "il-id",
        "Israeli identity number",
        "plain9",
        checks.israeli,
        "teudat;israeli?;\u05ea\u05e2\u05d5\u05d3\u05ea",
    ),
    _id("ro-cnp", "Romanian CNP", "plain13", european.cnp, "cnp"),
    _id("bg-egn", "Bulgarian EGN", "plain10", european.egn, "egn;\u0435\u0433\u043d"),
    _id("hr-oib", "Croatian OIB", "plain11", european.oib, "oib"),
    _id("ee-isikukood", "Estonian and Lithuanian personal code", "plain11", european.isikukood, "isikukood;asmens kod"),
    _id("gr-amka", "Greek AMKA", "plain11", european.amka, "amka;\u03b1\u03bc\u03ba\u03b1"),
    _id("nz-ird", "New Zealand IRD number", "3 3 3;plain9;plain8", checks.ird, "ird"),
    *(
        PersonIdRule(
            name=name,
            about=about,
            shapes=tuple(shapes.split(";")),
            check=check,
            words=tuple(words.split(";")),
            bare=_BARE & {*shapes.split(";")},
        )
        for name, about, shapes, check, words in NATIONAL
    ),
)
NAMES_OF_NUMBERS = frozenset(word for rule in PERSON_RULES for word in rule.words) - set(_NEAR_PERSONS)
"""Words that stand near such numbers and are names of them."""


class PersonIds:
    """Finds candidates once for all countries, and asks the rules for their shape.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: tuple[PersonIdRule, ...]) -> None:
        self._by_shape: dict[str, list[PersonIdRule]] = {}
        self._words = _Words(rules)
        for rule in rules:
            for shape in rule.shapes:
                self._by_shape.setdefault(shape, []).append(rule)

    def taken(self, view: TextView) -> list[Taken]:
        """All numbers in the text, in order, without overlaps."""
        if view.digits < _MIN_DIGITS_AND_LETTERS:
            return []
        scan = _Scan(view, self._by_shape, self._words)
        taken = scan.lettered()
        if view.digits >= _MIN_DIGITS:
            taken += scan.numbers()
            taken.sort(key=lambda one: one[:2])
        return taken


class _Words:
    """Which rules have one of their words in a text: each word is looked for once, and few of them at all.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: tuple[PersonIdRule, ...]) -> None:
        self._rules: dict[str, set[str]] = {}
        for rule in rules:
            for word in rule.words:
                self._rules.setdefault(word, set()).add(rule.name)
        self._by_start: dict[str, list[str]] = {}
        self._anywhere = [word for word in self._rules if not word.isascii()]
        for word in self._rules:
            for start in _RUNS.findall(word)[:1] if word.isascii() else ():
                self._by_start.setdefault(start[:_START_CHARS], []).append(word)

    def mentioned(self, folded: str) -> set[str]:
        """Names of the rules of which the text has a word."""
        starts = {run[:_START_CHARS] for run in _RUNS.findall(folded)} & self._by_start.keys()
        words = [word for start in starts for word in self._by_start[start] if word in folded]
        if not folded.isascii():
            words += [word for word in self._anywhere if word in folded]
        return set().union(*(self._rules[word] for word in words))


class _Scan:
    """One reading of one text. What the words of a rule and the check of a value say is asked once each."""

    def __init__(self, view: TextView, by_shape: Mapping[str, list[PersonIdRule]], words: _Words) -> None:
        self._view, self._by_shape, self._words = view, by_shape, words
        self._eligible: dict[tuple[str, int], tuple[str, list[PersonIdRule]]] = {}
        self._valid: dict[tuple[str, str], list[PersonIdRule]] = {}
        self._mentioned: set[str] | None = None

    def lettered(self) -> list[Taken]:
        """Values that begin with letters."""
        taken: list[Taken] = []
        text, position = self._view.text, 0
        while start := LETTERED_START.search(text, position):
            match = LETTERED.match(text, start.start())
            span = self._take(match, LETTERED_SHAPES, taken) if match else None
            position = span or start.end()
        return taken

    def numbers(self) -> list[Taken]:
        """Values that begin with a digit."""
        taken: list[Taken] = []
        text, position = self._view.text, 0
        search = NUMBER_START.search
        tried: dict[int, Callable[[str, int], re.Match[str] | None] | None] = {}
        while start := search(text, position):
            begin, position = start.span()
            digits = position - begin
            if digits not in tried:
                tried[digits] = NUMBER_BY_DIGITS[digits].match if self._any_rule(digits) else None
            match_at = tried[digits]
            match = match_at(text, begin) if match_at else None
            if match:
                position = self._take(match, SHAPES, taken) or position
        return taken

    def _any_rule(self, digits: int) -> bool:
        """Whether any rule may take a value that begins with so many digits."""
        shapes = SHAPES_BY_DIGITS.get(digits, ())
        return any(self._rules_of(shape, digits if shape == "plain" else 0)[1] for shape in shapes)

    def _take(self, match: re.Match[str], shapes: Sequence[tuple[str, str]], taken: list[Taken]) -> int | None:
        """Take a value if a rule accepts it. Returns its end."""
        begin, end = match.span()
        shape = shapes[int(str(match.lastgroup)[1:])][0]
        eligible = self._rules_of(shape, end - begin if shape == "plain" else 0)
        rule = self._rule(match, eligible) if eligible[1] else None
        if rule is None:
            return None
        taken.append((begin, end, rule))
        return end

    def _rules_of(self, shape: str, length: int) -> tuple[str, list[PersonIdRule]]:
        """Name of a shape, with the length of a plain number, and the rules that may take such a value in this text."""
        eligible = self._eligible.get((shape, length))
        if eligible is None:
            name = f"{shape}{length or ''}"
            rules = [rule for rule in self._by_shape.get(name, ()) if name in rule.bare or self._mentions(rule)]
            eligible = self._eligible[shape, length] = (name, rules)
        return eligible

    def _rule(self, match: re.Match[str], eligible: tuple[str, list[PersonIdRule]]) -> PersonIdRule | None:
        shape, candidates = eligible
        key = (shape, match[0])
        rules = self._valid.get(key)
        if rules is None:
            value = letters_and_digits(match[0])
            rules = self._valid[key] = [rule for rule in candidates if rule.check(value)]
        return _told_apart(rules, shape, match) if rules else None

    def _mentions(self, rule: PersonIdRule) -> bool:
        if self._mentioned is None:
            self._mentioned = self._words.mentioned(self._view.folded)
        return rule.name in self._mentioned


def _told_apart(rules: list[PersonIdRule], shape: str, match: re.Match[str]) -> PersonIdRule | None:
    """The rule whose words stand near the number, else the first that needs none, unless it is another number."""
    start, end = match.span()
    before = match.string[max(0, start - _CONTEXT_BEFORE) : start].lower()
    near = f"{before} | {match.string[end : end + _CONTEXT_AFTER].lower()}"
    for rule in rules:
        if any(word in near and _stands_alone(word, near) for word in rule.words):
            return rule
    bare = next((rule for rule in rules if shape in rule.bare), None)
    return None if bare is None or _OTHER_NUMBERS.search(before) else bare


def _stands_alone(word: str, near: str) -> bool:
    """Whether a word of up to four letters is no part of a longer one; longer ones, and those of East Asia, may be."""
    return (
        len(word) > 4
        or word[0] >= "\u1100"
        or re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W\d_])", near) is not None
    )
