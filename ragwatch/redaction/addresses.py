"""Detects addresses of e-mail and of the Internet protocol.

Of an address that is written for people (`jane [at] example [dot] com`) the sign is looked
for, then the domain behind it, then the name before it. A sign that prose has as well, such as ` at `, needs a dot that
prose does not have, and a name of a domain that is in use.
"""

import re
from ipaddress import AddressValueError, IPv6Address

from ragwatch.redaction.rule import Accept, Span, rules

_OCTETS = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|\Z)){4}")
_MIN_IPV6_CHARS = 5  # fewer have neither three groups, nor two with a long one: ignored at once, since texts have many
_LINE_START = re.compile(r"(?:\A|[\r\n])[ \t#*>-]{0,8}\Z")
_NAME_BEFORE = re.compile(r"\b[A-Z][\w+-]{0,24} \Z")
_HEADING = re.compile(r"[ \t]{1,4}[A-Z]")
_SECTION = re.compile(
    r"(?i)(?:\b(?:sections?|sect?|subsections?|chapters?|clauses?|paragraphs?|para|appendix|annex|figures?|fig|tables?|items?"
    r"|steps?|articles?|rules?|requirements?|abschnitte?|kapitel|secci\xf3n|punkt)\b|\xa7)[.: \t]{0,3}"
    r"(?:\d{1,3}(?:\.\d{1,3}){1,4}(?:,? (?:and|or|to|through) |, ?| ?[-\u2013] ?)){0,4}\Z"
)
_REFERRED = re.compile(r"(?i)\b(?:see|see also|cf\.?|in|of|per|under|from|to)[ (]{1,2}\Z")
_OF_MACHINES = re.compile(
    r"(?i)\b(?:ips?|ipv4|address|addr|host|server|client|peer|node|gateway|dns|from|to|at|via|on|by|is|and|or) \Z"
)
_MAX_SECTION = 40
_VERSION = re.compile(r"(?i)\b(?:version|release|build|ver|rev)\b[.:=# ]{0,3}\Z")


def _ipv4(match: re.Match[str]) -> Span | None:
    """Accepts an IPv4 address, but no version (`v1.2.3.4`), number of a section, or address that is nobody's.

    Nobody's are those of loopback, of no host, of a link, and netmasks. Four digits, such as 3.2.4.1, are the number of
    a section before a heading, or a version behind a capitalised word that is not one of machines.
    """
    value = match[0]
    if not _OCTETS.fullmatch(value) or value.startswith(("0.", "127.", "169.254.", "255.")):
        return None
    before = match.string[max(0, match.start() - 60) : match.start()]
    named = len(value) == 7 and _NAME_BEFORE.search(before) and not _OF_MACHINES.search(before)
    small = all(0 < int(part) <= _MAX_SECTION for part in value.split("."))  # as in the number of a section
    numbered = named or _VERSION.search(before) or (small and _is_section(match, before))
    return None if numbered else match.span()


def _is_section(match: re.Match[str], before: str) -> bool:
    """Whether a number of four parts stands where that of a section does, or the text names the section it is in."""
    if _SECTION.search(before) or (_LINE_START.search(before) and _HEADING.match(match.string, match.end())):
        return True
    parent = match[0].rpartition(".")[0]
    return _REFERRED.search(before) is not None and re.search(rf"(?<![\d.]){parent}(?!\.?\d)", match.string) is not None


def _ipv6(match: re.Match[str]) -> Span | None:
    """Accepts an IPv6 address, but no slice (`x[1::2]`), scope (`a::b`) or time of day."""
    value = match[0]
    if len(value) < _MIN_IPV6_CHARS:
        return None
    groups = [group for group in value.split(":") if group]
    plausible = len(groups) > 2 or any(len(group) > 2 and not group.isdigit() for group in groups)
    if not plausible or len(groups) < 2:
        return None
    try:
        IPv6Address(value)
    except AddressValueError:
        return None
    return match.span()


_WORDS_FOR_AT = "at|ät|arroba|arobase|chez|małpa|собака|chiocciola|snabel-a|kukac|zavináč"
_FOREIGN_DOT = re.compile(r"(?i)[ ](?:punkt|punto|point|ponto|punt|piste|pont)[ ]")
_WORDS_FOR_DOT = "dot|punkt|punto|point|ponto|punt|kropka|точка|nokta|tečka|piste|pont"
_OPEN, _CLOSE = r"[\[({<*#|-]", r"[\])}>*#|-]"
_STRONG_AT = rf"{_OPEN}[ ]?(?:{_WORDS_FOR_AT}|@)[ ]?{_CLOSE}[ ]?|_at_|%40|\\u0040"
_WEAK_AT = rf"[ ](?:{_WORDS_FOR_AT})[ ]|@[ ]?"
_STRONG_DOT = (
    rf"[ ]?[\[({{<*#][ ]?(?:{_WORDS_FOR_DOT}|\.)[ ]?[\])}}>*#][ ]?"
    rf"|[ ]-(?:{_WORDS_FOR_DOT})-[ ]|_dot_|[ ](?:{_WORDS_FOR_DOT})[ ]|[．。｡]|[ ]\.[ ]"
)
_LABEL = r"[^\W_](?:[^\W_]|-){0,62}(?![^\W_]|-)"
_SIGN = re.compile(
    rf"(?i)[@%\\_\[({{<*#-](?:(?<=@)(?:(?<=[ ]@)"
    rf"|(?=(?:[^\W_]|-){{0,63}}(?:[ \[({{<_．。｡]|\.(?!\w))))"
    rf"|(?<=%)40|(?<=\\)u0040|(?<=_)at_|[ ]?(?:{_WORDS_FOR_AT}|@))"
)
_SPELLED = re.compile(r"(?:[\w.+-][ ]){2,64}\Z")
_ADDRESS = re.compile(
    rf"(?i)(?:(?P<strong>{_STRONG_AT})|(?P<weak>{_WEAK_AT}))"
    rf"(?P<domain>{_LABEL}(?:(?:{_STRONG_DOT}|\.){_LABEL}){{0,3}}(?:{_STRONG_DOT}|\.)(?P<top>[^\W\d_]{{2,24}}))(?![\w-]|\.\w)"
    r"|@(?P<spelled>(?:[ ][a-z0-9-]){2,40}[ ]\.(?:[ ][a-z.]){2,24})(?!\S)"
)
_DOT = re.compile(rf"(?i){_STRONG_DOT}")
_AT = re.compile(rf"(?i){_STRONG_AT}|{_WEAK_AT}")
_LOCAL = re.compile(rf"(?i)[\w.%+-]{{1,64}}(?:[ ](?:{_WORDS_FOR_DOT})[ ][\w%+-]{{1,64}}){{0,2}}\Z")
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
        return weak != "@" or match.string[max(0, match.start() - 1) : match.start()] == " "
    return (weak == " AT " and not name.isupper()) or _MAIL.search(before) is not None


def plain_address(value: str) -> str:
    """The address as it is typed, in lower case.

    >>> plain_address("Jane (at) example [dot] com"), plain_address("j a n e @ x . o r g")
    ('jane@example.com', 'jane@x.org')
    """
    value = _AT.sub("@", value, count=1) if " @ " not in value else value
    return _DOT.sub(".", value).replace(" ", "").lower()


_CHECKS: dict[str, Accept] = {"address": _address, "ipv4": _ipv4, "ipv6": _ipv6}
_SPELLED_OUT = {"pattern": _ADDRESS, "normalize": plain_address}
(EMAIL_RULE,) = rules("email")
OBFUSCATED_EMAIL_RULES = rules(
    "obfuscated email",
    _CHECKS,
    {"obfuscated-email": {**_SPELLED_OUT, "starts": _SIGN}, "dictated-email": _SPELLED_OUT},
)
FOREIGN_EMAIL_RULES = rules("foreign email", _CHECKS, {"foreign-email": _SPELLED_OUT})
IP_RULES = rules("ip", _CHECKS)
