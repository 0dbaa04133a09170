"""Detects passwords and one-time codes behind the words that introduce them, in many languages.

A word must be followed by a sign (`:`, `=`), by a verb (`is`, `lautet`), or by a value that cannot be a word. Guards
keep prose out: `password is required`, `password: 12 characters`, `second pass: 2048 tokens`.
"""

import re

from ragwatch.redaction.credentials import REFERENCE, WORDY
from ragwatch.redaction.rule import Accept, Span, rules, table

WORDS: dict[str, tuple[str, ...]] = {name: tuple(words) for name, words in table("rules")["password_words"].items()}
"""Words that introduce passwords and one-time codes, as rules.toml has them."""
_PASSWORDS, _FOREIGN_PASSWORDS = WORDS["passwords"], WORDS["foreign_passwords"]
_CODES, _FOREIGN_CODES = WORDS["codes"], WORDS["foreign_codes"]
_SHORT = ("pass", "clave", "pw")  # may mean much else or be part of another: alone, or behind `_`, `-` or a dot
_VERBS = frozenset("is was are ist lautet war es est era é è to jest är er on je это был была".split())  # noqa: SIM905
_JOINED_VERBS = "是为為は는은가이"
_IS = "|".join((*sorted(_VERBS, key=len, reverse=True), *_JOINED_VERBS))
_SIGN = r":=|=>|==?|[:：＝]|[-–—](?=[ ])"
_LETTER = r"[^\W\d_\u3040-\u9fff\uac00-\ud7af]"
_INFLECTED = rf"{_LETTER}{{0,6}}(?!{_LETTER})"
_BETWEEN = r"(?P<between>(?:[ ][^\W\d_]{1,12}(?=[ :=：＝])){0,4})"
_VALUE = (
    r"(?:(?P<quote>\\?[\"'`«„“「])(?P<quoted>[^\"'`»”“」\[\]\r\n\\]{4,80})(?=\\?[\"'`»”“」])"
    r"|(?P<plain>[^\s\"'`,;<>()\[\]{}\\\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]{4,80}))"
)


def _any_of(words: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def _stated(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        rf"(?i)(?:{_any_of(words)}){_INFLECTED}(?:[_-][a-z]{{1,10}})?\\?[\"'`]?"
        rf"{_BETWEEN}(?P<joined>[{_JOINED_VERBS}])?(?:[ ]{{0,3}}(?P<sign>{_SIGN})[ \t]{{0,3}}|[ ]{{1,3}}"
        rf"|(?<=[{_JOINED_VERBS}])|(?=[「“„«])){_VALUE}"
    )


_ALONE = re.compile(
    rf"(?i)(?<![^\W_])(?P<short>{_any_of(_SHORT)}|(?<=_)auth)\\?[\"']?"
    rf"(?:[ ]{{0,3}}(?P<sign>{_SIGN}|>)|[ ](?P<is>is|es)(?=[ ])|(?P<bare>[ ]))[ \t]{{0,3}}{_VALUE}"
)
_CODE_VALUE = (
    r"(?P<secret>\d{3}[ -]\d{3}|\d{4}-\d{4}|\d{3,8}|[A-Z0-9]{2,4}-[A-Z0-9]{2,4}(?:-[A-Z0-9]{2,4})?"
    r"|(?=[A-Z]{0,7}\d)[A-Z0-9]{6,8})"
    r"(?![A-Za-z0-9_%]|[.,-]\d|[ ]?(?:ms|s|rows|tokens|bytes|characters|digits|times)\b)"
)
_QUALIFIED = (
    "code|codes|kod|kode|number|nr|nummer|pin|sms|verificación|seguridad|acceso|acesso|verificação|confirmação"
    "|confirmación|segurança|password|passcode|код|пароль"
)


def _coded(words: tuple[str, ...], inflected: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![A-Za-zÀ-ʯ0-9])(?i:(?P<word>{_any_of(words)}){inflected}(?:[ -](?:{_QUALIFIED})){{0,2}})"
        rf"(?P<sign>(?:[ ][^\W\d_]{{1,12}}(?=[ :=])){{0,3}}[ ]{{0,3}}[:=：＝#]"
        rf"|[ ]{{0,3}}(?i:{_IS})|)[ ]{{0,3}}[\"'`「]?{_CODE_VALUE}"
    )


_NUMBERS = re.compile(r"[\d.:/-]+\Z")
_TECHNICAL = re.compile(
    r"(?i)(?:sha-?\d|md5|base\d\d|utf-?\d|argon2|bcrypt|pbkdf2|scrypt|aes|rsa|v\d|x\d|http|[<>=!]=|->"
    r"|\d+(?:st|nd|rd|th|x|ms|s|min|h|d|kb|mb|gb|px|bits?|chars?|times)?(?:[-–]\d|\Z))"
)
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+\Z|(?i:[a-z_]*(?:passw|pwd|secret|token)[a-z_]*)\Z|[A-Z]+_[A-Z0-9_]*\Z"
)
_MARKS = re.compile(r"[0-9!@#$%^&*+=~|]")
_INNER_MARKS = re.compile(r"[0-9!#$%^&+~]")
_CAPITAL_OR_SIGN = re.compile(r"[A-Z!@#$%^&*+=~]")
_ENGLISH = ("passw", "passc", "passp", "pwd")
_PREPOSITIONS = frozenset({"to", "on", "er"})  # of which an English word is no verb
_OF_CARDS = frozenset({"cvv", "cvc"})
_SHORT_CODES = frozenset({"pin", "tan", "otp", "totp", "cvv", "cvc"})


def _password(match: re.Match[str]) -> Span | None:
    """Accepts a value that is no word of prose, no code and no technical term."""
    groups = match.groupdict()
    group = "quoted" if groups.get("quoted") else "plain"
    start, end = match.span(group)
    value = match[group].rstrip(".:?。!") or match[group]
    if len(value) < 4 or _stands_for_none(value) or match.string[end : end + 1] in ("(", "[", "{"):
        return None
    accepted = _alone(match, value) if "short" in groups else _introduced(match, value, quoted=group == "quoted")
    return (start, start + len(value)) if accepted else None


def _stands_for_none(value: str) -> bool:
    """Whether a value is a reference, an address, code, a number or a technical term."""
    if "://" in value or REFERENCE.match(value) or _CODE.match(value):
        return True
    return _TECHNICAL.match(value) is not None or _NUMBERS.match(value) is not None


def _introduced(match: re.Match[str], value: str, *, quoted: bool) -> bool:
    """Whether a value is a password behind a word that means nothing else."""
    if match["sign"] and not quoted:
        return bool(_MARKS.search(value))
    between = match["between"].lower().removesuffix(" now").split()
    verb = match["joined"] or (between[-1] if between and between[-1] in _VERBS else "")
    if verb in _PREPOSITIONS and match[0].lower().startswith(_ENGLISH):
        return False
    if quoted and (verb or match["sign"]):
        return bool(match["sign"]) or bool(_MARKS.search(value)) or value.count(" ") > 1
    if not verb and between:
        return False
    return _random(value, digit=not verb) and (bool(verb) or _CAPITAL_OR_SIGN.search(value) is not None)


def _alone(match: re.Match[str], value: str) -> bool:
    """Whether a value is a password behind a short word: in a name (`smtp_pass=`), or hardly anything else."""
    named = match.string[max(0, match.start() - 1) : match.start()] in ("_", ".", "<", "-")
    if match["sign"] == ">":
        return named and match.string.startswith("</", match.end())
    if match["short"].lower() == "auth" or (named and match["sign"]):
        return match["sign"] == "=" or (bool(match["sign"]) and _mixed(value))
    random = len(value) > 5 and _random(value, digit=True)
    return random and (not match["bare"] or _CAPITAL_OR_SIGN.search(value) is not None)


def _mixed(value: str) -> bool:
    """Whether a value has a sign or a digit as well as letters."""
    return bool(_MARKS.search(value)) and any(map(str.isalpha, value))


def _random(value: str, *, digit: bool) -> bool:
    """Whether a value is no words joined by signs, and no emphasis of Markdown."""
    marks = any(map(str.isdigit, value)) if digit else _INNER_MARKS.search(value) is not None
    return marks and _mixed(value) and not WORDY.match(value)


def _option(match: re.Match[str]) -> Span | None:
    """Accepts the value of an option of a command line, unless it stands for one."""
    value = match["plain"]
    return None if value.isalpha() or _stands_for_none(value) else match.span("plain")


def _code(match: re.Match[str]) -> Span | None:
    """Accepts digits behind the name of a code; a name of three letters needs a sign and no words between."""
    word, value = match["word"], match["secret"]
    if (len(value) == 3 and word.lower() not in _OF_CARDS) or word == "tan":
        return None
    if word.islower() and word in _SHORT_CODES and match["sign"].count(" ") > 2:
        return None  # a pin of a board
    introduced = match.string[match.end("word") : match.start("secret")]
    if word.lower() in _SHORT_CODES and not match["sign"] and len(introduced.split()) == 0:
        return None
    return match.span("secret")


_CHECKS: dict[str, Accept] = {"password": _password, "option": _option, "code": _code}
PASSWORD_RULES = rules(
    "password",
    _CHECKS,
    {
        "stated-password": {
            "pattern": _stated(_PASSWORDS),
            "anchors": _PASSWORDS,
            "words": WORDS["parts_of_passwords"],
        },
        "short-name-password": {"pattern": _ALONE, "anchors": (*_SHORT, "auth")},
        "one-time-code": {
            "pattern": _coded(_CODES, r"s?(?![^\W\d_])"),
            "anchors": _CODES,
            "words": WORDS["parts_of_codes"],
        },
    },
)
FOREIGN_PASSWORD_RULES = rules(
    "foreign password",
    _CHECKS,
    {
        "foreign-password": {"pattern": _stated(_FOREIGN_PASSWORDS), "anchors": _FOREIGN_PASSWORDS},
        "foreign-code": {"pattern": _coded(_FOREIGN_CODES, _INFLECTED), "anchors": _FOREIGN_CODES},
    },
)
