"""Detects addresses of e-mail and of the Internet protocol."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

from ragwatch.redaction.rule import RedactionRule, SensitiveKind, Span

_EMAIL = re.compile(
    r"(?<![\w.%+-])[\w.%+-]+(?:'[\w.%+-]+){0,2}@[^\W_](?:[\w-]{0,62}(?:\.[\w-]{1,63}){0,8})\.[^\W\d_]{2,24}"
)
_IPV4 = re.compile(r"\d(?<![\w.]\d)\d{0,2}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!\w|\.\d)")
_OCTETS = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|\Z)){4}")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f:]{2,})(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4})(?![\w:])"
)
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
    numbered = named or _VERSION.search(before) or (_of_sections(value) and _is_section(match, before))
    return None if numbered else match.span()


def _of_sections(value: str) -> bool:
    """Whether the parts are as small as those of the number of a section, and none is 0."""
    return all(0 < int(part) <= _MAX_SECTION for part in value.split("."))


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


ADDRESS_RULES: tuple[RedactionRule, ...] = (
    RedactionRule("email", SensitiveKind.EMAIL, _EMAIL, "E-mail address", normalize=str.lower, hints=("@",)),
    RedactionRule("ipv6", SensitiveKind.IP, _IPV6, "IPv6 address", _ipv6, normalize=str.lower, hints=(":",)),
    RedactionRule("ipv4", SensitiveKind.IP, _IPV4, "IPv4 address", _ipv4, hints=(".",), min_digits=4),
)
