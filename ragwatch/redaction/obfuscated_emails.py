"""Detects addresses of e-mail that are written for people: `jane [at] example [dot] com`, `jane&#64;example.com`.

The sign is looked for, then the domain behind it, then the name before it. A sign that prose has as well, such as
` at `, needs a dot that prose does not have, and a name of a domain that is in use.
"""

from __future__ import annotations

import re
from functools import partial

from ragwatch.redaction.rule import RedactionRule, SensitiveKind, Span

_WORDS_FOR_AT = "at|ät|arroba|arobase|chez|małpa|собака|chiocciola|snabel-a|kukac|zavináč"
_FOREIGN_DOT = re.compile(r"(?i)[ ](?:punkt|punto|point|ponto|punt|piste|pont)[ ]")
_WORDS_FOR_DOT = "dot|punkt|punto|point|ponto|punt|kropka|точка|nokta|tečka|piste|pont"
_HIDDEN_ONES = "\xad\u200b\u200c\u200d\u2060\ufeff"
_HIDDEN = "\xad\u200b-\u200d\u2060\ufeff"
_OPEN, _CLOSE = r"[\[({<*#|-]", r"[\])}>*#|-]"
_STRONG_AT = (
    rf"{_OPEN}[ ]?(?:{_WORDS_FOR_AT}|@)[ ]?{_CLOSE}[ ]?|_at_|[＠﹫]"
    rf"|&(?:#0{{0,4}}64|#x0{{0,4}}40|commat);[ ]?|%40|\\u0040"
    rf"|[{_HIDDEN}]{{1,3}}@[{_HIDDEN}]{{0,3}}"
)
_WEAK_AT = rf"[ ](?:{_WORDS_FOR_AT})[ ]|@[{_HIDDEN} ]?"
_STRONG_DOT = (
    rf"[ ]?[\[({{<*#][ ]?(?:{_WORDS_FOR_DOT}|\.)[ ]?[\])}}>*#][ ]?"
    rf"|[ ]-(?:{_WORDS_FOR_DOT})-[ ]|_dot_|[ ](?:{_WORDS_FOR_DOT})[ ]|[．。｡]"
    r"|&#0{0,4}46;|&#x0{0,4}2e;|&period;|[ ]\.[ ]"
)
_LABEL = rf"[^\W_](?:[^\W_]|[{_HIDDEN}-]){{0,62}}(?![^\W_]|-)"
_SIGN = re.compile(
    rf"(?i)[@%&\\_\[({{<*#-](?:(?<=@)(?:(?<=[ ]@)|(?<=[{_HIDDEN}]@)"
    rf"|(?=(?:[^\W_]|-){{0,63}}(?:[ \[({{<_&．。｡{_HIDDEN}]|\.(?!\w))))"
    rf"|(?<=%)40|(?<=&)(?:\#x?0{{0,4}}[46]|comm)|(?<=\\)u0040|(?<=_)at_|[ ]?(?:{_WORDS_FOR_AT}|@))"
)
_SPELLED = re.compile(r"(?:[\w.+-][ ]){2,64}\Z")
_ADDRESS = re.compile(
    rf"(?i)(?:(?P<strong>{_STRONG_AT})|(?P<weak>{_WEAK_AT}))"
    rf"(?P<domain>{_LABEL}(?:(?:{_STRONG_DOT}|\.){_LABEL}){{0,3}}(?:{_STRONG_DOT}|\.)(?P<top>[^\W\d_]{{2,24}}))(?![\w-]|\.\w)"
    r"|@(?P<spelled>(?:[ ][a-z0-9-]){2,40}[ ]\.(?:[ ][a-z.]){2,24})(?!\S)"
)
_DOT = re.compile(rf"(?i){_STRONG_DOT}")
_AT = re.compile(rf"(?i){_STRONG_AT}|{_WEAK_AT}")
_LOCAL = re.compile(rf"(?i)[\w.%+{_HIDDEN}-]{{1,64}}(?:[ ](?:{_WORDS_FOR_DOT})[ ][\w%+-]{{1,64}}){{0,2}}\Z")
_TOP = frozenset(
    """
    ai app at be biz br ca cc ch cn co com cz de dev dk edu es eu fi fr gov gr hu ie in info int io it jp kr me mil mx
    net nl no org pl pt ro ru se sk tech tr tv tw ua uk us xyz example test
    """.split()  # noqa: SIM905 - one a line would fill a page
)
_MAIL = re.compile(r"(?i)mail(?: address)?[ ]?[:=][ ]?\Z")
_NO_NAMES = frozenset(
    {"look", "is", "hosted", "available", "found", "us", "live", "here", "them", "site", "it", "running"}
)
_MAX_LOCAL = 150


def _address(match: re.Match[str]) -> Span | None:
    """Accepts an address with a name before it."""
    text, at = match.string, match.start()
    if match["spelled"]:
        name = _SPELLED.search(text, max(0, at - 129), at)
        return (name.start(), match.end()) if name else None
    before = text[max(0, at - _MAX_LOCAL) : at]
    name = _LOCAL.search(before.rstrip(" ")) if len(before) - len(before.rstrip(" ")) < 3 else None
    if name is None or not any(map(str.isalnum, name[0])) or name[0].lower() in _NO_NAMES:
        return None
    start = max(0, at - _MAX_LOCAL) + name.start()
    accepted = match["strong"] is not None or _plainly_written(match, name[0], text[max(0, start - 20) : start])
    return (start, match.end()) if accepted else None


def _plainly_written(match: re.Match[str], name: str, before: str) -> bool:
    """Whether a name, a word such as `at` and a domain are an address."""
    weak, domain = match["weak"], match["domain"]
    if match["top"].lower() not in _TOP or (weak.strip().lower() == "at" and _FOREIGN_DOT.search(domain)):
        return False
    if _DOT.search(domain):
        return weak != "@" or "://" not in before
    if "@" in weak:
        hidden = any(char in domain for char in _HIDDEN_ONES)
        return hidden or weak != "@" or match.string[max(0, match.start() - 1) : match.start()] == " "
    return (weak == " AT " and not name.isupper()) or _MAIL.search(before) is not None


def plain_address(value: str) -> str:
    """The address as it is typed, in lower case.

    >>> plain_address("Jane (at) example [dot] com"), plain_address("j a n e @ x . o r g")
    ('jane@example.com', 'jane@x.org')
    """
    value = _AT.sub("@", value, count=1) if " @ " not in value else value
    return re.sub(rf"[ {_HIDDEN}]", "", _DOT.sub(".", value)).lower()


_RULE = partial(RedactionRule, kind=SensitiveKind.EMAIL, pattern=_ADDRESS, accept=_address, normalize=plain_address)
OBFUSCATED_EMAIL_RULES: tuple[RedactionRule, ...] = (
    _RULE(
        "obfuscated-email",
        about="E-mail address with another sign for `@` or `.`, such as `jane [at] example.com`",
        starts=_SIGN,
    ),
    _RULE(
        "dictated-email",
        about="The same in words, such as `jane at example dot com`",
        anchors=(" at ", " arroba ", " arobase ", " chez ", " chiocciola "),
        folded_anchors=True,
        hints=(
            *(" dot ", " DOT ", " Dot ", "dot)", "dot]", " AT ", "mail:", "mail :"),
            *(" punto ", " point ", " ponto "),
        ),
    ),
)
FOREIGN_EMAIL_RULES: tuple[RedactionRule, ...] = (
    _RULE(
        "foreign-email",
        about="The same with signs or words that are not ASCII",
        anchors=("＠", "﹫", *(f"{hidden}@" for hidden in _HIDDEN_ONES), " ät ", " małpa ", " собака ", " zavináč "),
        folded_anchors=True,
    ),
)
