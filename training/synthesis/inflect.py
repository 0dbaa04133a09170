"""English word forms: from a form to its base, and from a base to the form that another word has."""

from .lists import bars, words

_IRREGULAR = """
be was been|become became become|begin began begun|bear bore borne|break broke broken|bring brought brought
build built built|buy bought bought|catch caught caught|choose chose chosen|come came come|cost cost cost
cut cut cut|deal dealt dealt|do did done|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten
fall fell fallen|feed fed fed|feel felt felt|fight fought fought|find found found|fly flew flown
forget forgot forgotten|get got got|give gave given|go went gone|grow grew grown|have had had|hear heard heard
hide hid hidden|hit hit hit|hold held held|keep kept kept|know knew known|lay laid laid|lead led led
learn learned learned|leave left left|lend lent lent|let let let|lie lay lain|lose lost lost|make made made
mean meant meant|meet met met|pay paid paid|put put put|read read read|ride rode ridden|ring rang rung
rise rose risen|run ran run|say said said|see saw seen|seek sought sought|sell sold sold|send sent sent
set set set|shake shook shaken|shoot shot shot|show showed shown|shrink shrank shrunk|shut shut shut
sing sang sung|sink sank sunk|sit sat sat|sleep slept slept|speak spoke spoken|spend spent spent
split split split|spread spread spread|stand stood stood|steal stole stolen|strike struck struck|swim swam swum
take took taken|teach taught taught|tell told told|think thought thought|throw threw thrown
understand understood understood|wear wore worn|win won won|withdraw withdrew withdrawn|write wrote written
overcome overcame overcome|oversee oversaw overseen|undergo underwent undergone|undertake undertook undertaken
beat beat beaten|slay slew slain|flee fled fled|bind bound bound|dig dug dug|hang hung hung|hurt hurt hurt
quit quit quit|sweep swept swept|tear tore torn|wake woke woken|broadcast broadcast broadcast|swing swung swung
forecast forecast forecast|shine shone shone|creep crept crept|rebuild rebuilt rebuilt|retell retold retold
rewrite rewrote rewritten|forbid forbade forbidden|freeze froze frozen
"""
PAST: dict[str, str] = {}
PARTICIPLE: dict[str, str] = {}
_BASE: dict[str, tuple[str, str]] = {}
for _entry in bars(_IRREGULAR):
    _stem, _past, _participle = _entry.split()
    PAST[_stem], PARTICIPLE[_stem] = _past, _participle
    _BASE[_participle] = (_stem, "VN")
    _BASE[_past] = (_stem, "VD")
_PLURALS = {
    pair.split()[0]: pair.split()[1]
    for pair in bars(
        """
man men|woman women|child children|person people|foot feet|tooth teeth|mouse mice|wife wives|life lives|half halves
leaf leaves|knife knives|wolf wolves|series series|species species|sheep sheep|fish fish|aircraft aircraft
analysis analyses|basis bases|crisis crises|hero heroes
"""
    )
}
_SINGULARS = {plural: single for single, plural in _PLURALS.items()}
_DOUBLED = words(
    """
stop plan drop ban cut run win get set put begin refer occur commit admit permit control rob rub ship trap slip step
star stun shut sit swim wrap chat grab beg regret submit omit transfer prefer travel cancel label
"""
)
_VOWELS = "aeiou"


def plural(noun: str) -> str:
    """The plural of a singular noun."""
    if noun in _PLURALS:
        return _PLURALS[noun]
    if noun.endswith("man") and len(noun) > 4 and noun not in ("human", "german", "roman", "woman"):
        return noun[:-2] + "en"
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return noun[:-1] + "ies"
    return noun + "s"


def singulars(word: str) -> list[str]:
    """What a plural noun may be the plural of, likeliest first; empty for a form that is no plural."""
    if word in _SINGULARS:
        return [_SINGULARS[word]]
    if word.endswith("men") and len(word) > 5:
        return [word[:-2] + "an"]
    if not word.endswith("s") or word.endswith(("ss", "us", "is")) or len(word) < 4:
        return []
    if word.endswith("ies") and len(word) > 4:
        return [word[:-3] + "y", word[:-1]]
    return [word[:-1], word[:-2]] if word.endswith(("ses", "xes", "zes", "ches", "shes")) else [word[:-1]]


def verb(base: str, form: str) -> str:
    """A verb's form: V base, VZ third person, VG -ing, VD past, VN participle."""
    if form == "VZ":
        return {"have": "has", "be": "is", "do": "does", "go": "goes"}.get(base) or plural(base)
    if form == "VG":
        return _stemmed(base) + "ing"
    if form in ("VD", "VN"):
        return (PAST if form == "VD" else PARTICIPLE).get(base) or _regular(base)
    return base


def _regular(base: str) -> str:
    """The regular past."""
    if base.endswith("e"):
        return base + "d"
    return base[:-1] + "ied" if base.endswith("y") and base[-2:-1] not in _VOWELS else _stemmed(base) + "ed"


def _stemmed(base: str) -> str:
    if base in _DOUBLED:
        return base + base[-1]
    if base.endswith("ie"):
        return base[:-2] + "y"
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
        return base[:-1]
    return base


def verbs(word: str) -> list[tuple[str, str]]:
    """(base, form) that a word may be as a verb, likeliest first; VD stands for VN as well where they look alike."""
    if word in _BASE:
        return [_BASE[word]]
    if word.endswith("ied") and len(word) > 4:
        return [(word[:-3] + "y", "VD"), (word[:-1], "VD")]
    if word.endswith("ed") and len(word) > 4:
        return [(base, "VD") for base in _bases(word[:-2], word[:-1])]
    if word.endswith("ing") and len(word) > 5:
        return [(base, "VG") for base in _bases(word[:-3], word[:-3] + "e")]
    if word.endswith("s"):
        return [(base, "VZ") for base in singulars(word)]
    return []


def _bases(bare: str, with_e: str) -> list[str]:
    if len(bare) > 3 and bare[-1] == bare[-2] and bare[-1] not in "lsz":
        return [bare[:-1], bare, with_e]
    if len(bare) > 3 and bare[-1] == bare[-2]:
        return [bare, bare[:-1], with_e]
    return [with_e, bare]


def article(word: str) -> str:
    """`a` or `an` before a word."""
    low = word.lower()
    if low.startswith(("uni", "use", "usu", "euro", "one", "once", "ut")) and not low.startswith(
        ("unim", "unin", "utt")
    ):
        return "a"
    if low.startswith(("hour", "honor", "honest", "heir")):
        return "an"
    return "an" if low[:1] in _VOWELS or (low[:1] == "8") or low in ("11", "18") else "a"


def like(model: str, word: str) -> str:
    """`word` with the capitals of `model`."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
