"""Detects passwords and one-time codes behind the words that introduce them, in many languages.

A word must be followed by a sign (`:`, `=`), by a verb (`is`, `lautet`), or by a value that cannot be a word. Guards
keep prose out: `password is required`, `password: 12 characters`, `second pass: 2048 tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ragwatch.redaction.headers import REFERENCE, WORDY
from ragwatch.redaction.password_words import (
    CODES,
    FOREIGN_CODES,
    FOREIGN_PASSWORDS,
    PARTS_OF_CODES,
    PARTS_OF_PASSWORDS,
    PASSWORDS,
    SHORT,
)
from ragwatch.redaction.rule import RedactionRule, SensitiveKind, Span

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
    rf"(?i)(?<![^\W_])(?P<short>{_any_of(SHORT)}|(?<=_)auth)\\?[\"']?"
    rf"(?:[ ]{{0,3}}(?P<sign>{_SIGN}|>)|[ ](?P<is>is|es)(?=[ ])|(?P<bare>[ ]))[ \t]{{0,3}}{_VALUE}"
)
_PAIR = re.compile(
    r"(?i)(?:credentials?|zugangsdaten)(?P<between>)(?P<joined>)[ ]?(?P<sign>[:=])[ ]?[\w.@+-]{1,64}[ ]?[/|:][ ]?"
    r"(?P<plain>[^\s\"'`,;<>()\[\]{}/]{6,64})"
)
_OPTION = re.compile(
    r"(?<!\S)--?(?:[a-z]{1,12}-)?pass(?:word|wd|phrase)?(?:[ ]|=)[\"']?"
    r"(?P<plain>[^\s\"'`\[\](){}<>,;-][^\s\"'`\[\](){}<>,;]{3,80})"
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


_ANNOUNCED = re.compile(
    r"(?<![\w.,:/-])(?P<secret>\d{4,8}|\d{3}[ -]\d{3})[ ](?:is|as|ist|als|es|est|como|comme|é|è|to|jest|är|[-–—])[ ]"
    r"(?:[^\W\d_]{1,12}[ ]){0,2}?(?i:(?:one-time|verification|security|login|access|confirmation|auth[a-z]{0,12})[ ]"
    r"(?:code|passcode|pin)|otp|pin|[a-z]{4,14}code|code de v|código de v|codice di v|ваш код)"
)
_ANNOUNCING = (
    *("verification code", "security code", "login code", "access code", "confirmation code", "auth", "one-time"),
    *(" passcode", " otp", " pin", "scode", "lcode", "code de v", "código de v", "codice di v", "ваш код"),
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


def _rule(
    name: str,
    about: str,
    pattern: re.Pattern[str],
    anchors: tuple[str, ...],
    accept: Callable[[re.Match[str]], Span | None] = _password,
    *,
    parts: tuple[str, ...] = (),
) -> RedactionRule:
    return RedactionRule(
        name,
        SensitiveKind.CREDENTIAL,
        pattern,
        about,
        accept,
        anchors=anchors,
        folded_anchors=True,
        folded_hints=parts,
        min_digits=4 if accept is _code else 0,
    )


PASSWORD_RULES: tuple[RedactionRule, ...] = (
    _rule(
        "stated-password",
        "Password behind a word that means one",
        _stated(PASSWORDS),
        PASSWORDS,
        parts=PARTS_OF_PASSWORDS,
    ),
    _rule("short-name-password", "Password behind `pass`, `_pass`, `_pw`, `_auth`, `clave`", _ALONE, (*SHORT, "auth")),
    _rule("password-option", "Password behind `--password`, `-pass`", _OPTION, ("--", " -pass"), _option),
    _rule(
        "login-pair", "Password behind a user in `credentials: user / password`", _PAIR, ("credential", "zugangsdaten")
    ),
    _rule(
        "one-time-code",
        "Digits behind `OTP`, `PIN:`, `verification code` ...",
        _coded(CODES, r"s?(?![^\W\d_])"),
        CODES,
        _code,
        parts=PARTS_OF_CODES,
    ),
    RedactionRule(
        "announced-code",
        SensitiveKind.CREDENTIAL,
        _ANNOUNCED,
        "Digits before `is your verification code`",
        min_digits=4,
        starts=re.compile(r"\d(?<![\w.,:/-]\d)"),
        folded_hints=_ANNOUNCING,
    ),
)
FOREIGN_PASSWORD_RULES: tuple[RedactionRule, ...] = (
    _rule(
        "foreign-password",
        "The same behind words with letters that are not ASCII",
        _stated(FOREIGN_PASSWORDS),
        FOREIGN_PASSWORDS,
    ),
    _rule(
        "foreign-code", "Digits behind such words for a code", _coded(FOREIGN_CODES, _INFLECTED), FOREIGN_CODES, _code
    ),
)
