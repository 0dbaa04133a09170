"""One short fact out of a sentence: what something is, where it lies, who made it, when somebody was born."""

import random
import re

from .marked import Marked, upper
from .reading import NAME

_MAKERS = {
    "directed": "directed", "written": "wrote", "produced": "produced", "composed": "composed",
    "performed": "performed", "recorded": "recorded", "designed": "designed", "published": "published",
    "founded": "founded", "created": "created", "developed": "developed", "built": "built", "sung": "sang",
    "released": "released", "owned": "owned", "led": "led", "discovered": "discovered",
}  # fmt: skip
_SUBJECT = r"^([^,;:()]{2,60}?)(?: ?\([^()]*\))?(?: ?, [^,;:()]{3,40} ?,)?"
_IS = re.compile(
    rf"{_SUBJECT} ((?:is|was|are|were)(?: not| no longer| never)?) ((?:a|an|the|one of the) [^,;:()]+?)"
    r"(?=[,;:.(]| who | which | that | where | whose | and (?:was|is|has|the|a|an|had) |$)"
)
_SIMPLER = re.compile(
    r" (?:from|by|for|located|based|situated|starring|featuring|written|directed|produced|released|published|with"
    r"|during|between|at|on) .*$"
)
_ADJECTIVES = re.compile(r"^(an?|the) ((?:[A-Za-z-]+ ){1,3})([a-z]+)$")
_LIES = re.compile(rf"{_SUBJECT} (is|was|are|were) [^;:()]*?\b(?:located|situated|based|headquartered|lies) in ((?:[a-z]+ )*{NAME})")  # noqa: E501  # fmt: skip
_TOWN = re.compile(rf"{_SUBJECT} (is|was) (?:an?|the) [^,;:()]*?\b(?:in|of) ((?:the )?{NAME})((?: ?, {NAME})?)")
_MADE = re.compile(rf"{_SUBJECT} (?:is|was) [^;:()]*?\b({'|'.join(_MAKERS)}) by ((?:[a-z]+ )*?)({NAME})")
_DATE = r"(?:\d{1,2} [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d{1,2} ?, \d{4}|\d{4})"
_BORN = re.compile(rf"^([^,;:()]{{3,60}}?) ?\([^()]*?\b[Bb]orn (?:on |in )?({_DATE})")
_LIVED = re.compile(rf"^([^,;:()]{{3,60}}?) ?\([^()]*?({_DATE}) ?[–-]{{1,2}} ?({_DATE})\)")
_APPOSED = re.compile(rf"^({NAME}) ?, ((?:a|an|the) [^,;:()]{{6,70}}) ?, (?:is|was|has|had|were|[a-z]+ed)\b")
_YEAR_OF = re.compile(
    rf"{_SUBJECT} (?:is|was) an? (?:[A-Za-z-]+ )?(\d{{4}})((?: [A-Za-z-]+){{0,4}}? "
    r"(?:film|album|novel|song|single|series|book|comedy|drama|documentary|game))\b"
)


def fact(text: Marked, rng: random.Random) -> Marked | None:
    """One short claim that follows from the sentence; None when it has no such form."""
    makers = [_kind, _kind, _place, _town, _maker, _born, _lived, _year, _apposed]
    rng.shuffle(makers)
    for maker in makers:
        found = maker(text, rng)
        if found:
            return upper(found.strip())
    return None


def _parts(text: Marked, match: re.Match[str], *groups: int) -> list[Marked]:
    return [text.cut(*match.span(group)) for group in groups]


def _good_subject(subject: str) -> bool:
    return not re.match(
        r"(?:There|The following|This|That|These|Those|It|What|Here|One|In|On|At|As|For|While|If|When|Although)\b",
        subject,
    )


def _kind(text: Marked, rng: random.Random) -> Marked | None:
    match = _IS.match(text.text)
    if not match or not _good_subject(match.group(1)):
        return None
    subject, verb, what = _parts(text, match, 1, 2, 3)
    if rng.random() < 0.7 and not match.group(3).startswith("one of"):
        shorter = what.sub(_SIMPLER, "")
        what = shorter if len(shorter.text.split()) > 1 else what
    plain = _ADJECTIVES.match(what.text)
    if plain and rng.random() < 0.5 and "1" not in what.marks[: plain.end(2)]:
        noun = what.cut(*plain.span(3))
        an = "an" if noun.text[0] in "aeio" else "a"
        what = Marked.join((an if plain.group(1) != "the" else "the", " ", noun))
    if re.search(r"\b(?:of|the|a|an|most|first|same|one|only|kind|type|number|part|in|to|and|U|[A-Z])$", what.text):
        return None
    return Marked.join((subject, " ", verb, " ", what, "."))


def _place(text: Marked, rng: random.Random) -> Marked | None:
    match = _LIES.match(text.text)
    if not match or not _good_subject(match.group(1)) or "not" in match.group().split():
        return None
    subject, verb, where = _parts(text, match, 1, 2, 3)
    link = rng.choice((" in ", " located in ", " situated in "))
    return Marked.join((subject, " ", verb, link, where, "."))


def _town(text: Marked, rng: random.Random) -> Marked | None:  # noqa: ARG001
    match = _TOWN.match(text.text)
    if not match or not re.search(r"\b(?:city|town|village|county|river|lake|municipality|community|township|island|university|school|airport|district|suburb|museum|park|hospital|stadium|mountain) (?:in|of)\b|\b(?:city|town|village|county|municipality|community|township|district|suburb|census-designated place) [^,;:()]*\bin ", match.group()):  # noqa: E501  # fmt: skip
        return None
    if not _good_subject(match.group(1)) or "not" in match.group().split() or " of the " in match.group():
        return None
    if not re.search(r"\bin (?:the )?[A-Z]", match.group()):
        return None
    subject, verb, where, more = _parts(text, match, 1, 2, 3, 4)
    return Marked.join((subject, " ", verb, " in ", where, more, "."))


def _maker(text: Marked, rng: random.Random) -> Marked | None:
    match = _MADE.match(text.text)
    if not match or not _good_subject(match.group(1)) or re.search(r"\bnot\b|\bnever\b", match.group()):
        return None
    subject, verb, _, who = _parts(text, match, 1, 2, 3, 4)
    past = Marked.of(_MAKERS[match.group(2)], changed=verb.changed)
    subject = Marked(re.sub(r"^The ", "the ", subject.text), subject.marks)
    if rng.random() < 0.5:
        return Marked.join((who, " ", past, " ", subject, "."))
    return Marked.join((subject, " was ", verb, " by ", who, "."))


def _when(date: Marked) -> Marked:
    return Marked.join(("in " if re.fullmatch(r"\d{4}", date.text) else "on ", date))


def _born(text: Marked, rng: random.Random) -> Marked | None:  # noqa: ARG001
    match = _BORN.match(text.text)
    if not match:
        return None
    subject, date = _parts(text, match, 1, 2)
    return Marked.join((subject, " was born ", _when(date), "."))


def _lived(text: Marked, rng: random.Random) -> Marked | None:
    match = _LIVED.match(text.text)
    if not match or not re.search(r"\b(?:was|he|she|his|her)\b", text.text):
        return None
    subject, birth, death = _parts(text, match, 1, 2, 3)
    if rng.random() < 0.5:
        return Marked.join((subject, " was born ", _when(birth), "."))
    return Marked.join((subject, " died ", _when(death), "."))


def _apposed(text: Marked, rng: random.Random) -> Marked | None:  # noqa: ARG001
    match = _APPOSED.match(text.text)
    if not match or re.search(r"\b(?:and|or)$|^the (?:\w+ )?(?:same|latter|former)\b", match.group(2)):
        return None
    subject, what = _parts(text, match, 1, 2)
    return Marked.join((subject, " was " if re.search(r"\b(?:was|had|were)\b", text.text) else " is ", what, "."))


def _year(text: Marked, rng: random.Random) -> Marked | None:
    match = _YEAR_OF.match(text.text)
    if not match or not _good_subject(match.group(1)):
        return None
    subject, year, what = _parts(text, match, 1, 2, 3)
    if rng.random() < 0.5:
        return Marked.join((subject, " came out in ", year, "."))
    an = "an" if what.text[1:2] in "AEIOaeio" else "a"
    return Marked.join((subject, f" is {an}", what, " from ", year, "."))


def is_a(sentence: str) -> tuple[str, str, str] | None:
    """(subject, verb, what it is) of a sentence that says what something is."""
    match = _IS.match(sentence)
    if not match or not _good_subject(match.group(1)) or match.group(2) not in ("is", "was"):
        return None
    return match.group(1), match.group(2), match.group(3)
