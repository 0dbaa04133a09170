"""Keys that are known by their form: those of vendors, private keys and web tokens.

Those of vendors are rows of vendors.toml. Keys without a fixed part are found by the name they are assigned to
(`credentials`).
"""

import re
from collections.abc import Mapping
from typing import Any

from ragwatch.redaction.rule import (
    Accept,
    RedactionRule,
    SensitiveKind,
    Span,
    Taken,
    TextView,
    rules,
    table,
    whole_match,
    without_overlaps,
)

_PARTS = {
    "<uuid>": r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    "<mixed>": r"(?=[A-Za-z_-]{0,40}\d)(?=[a-z0-9_-]{0,40}[A-Z])(?=[A-Z0-9_-]{0,40}[a-z])",
}
_MIN_KEY_CHARS = 16  # of the shortest key, which has no white space
_FIRST_PART = re.compile(r"[A-Za-z0-9]+")
_CASE_CHANGES = re.compile(r"[a-z0-9][A-Z]|[A-Z0-9][a-z]")
_NAMES_OF_SECRETS = frozenset("sk rk pat api apikey secret oauth tok token auth".split())  # noqa: SIM905 - words
_NAMES_OF_KEYS = _NAMES_OF_SECRETS.union(
    "key live prod test access v1 v2 sa svc service org personal admin inference".split()  # noqa: SIM905 - the same
)
_OTHERS_WITH_PREFIXES = frozenset(
    """
    cache hash sha1 sha256 sha384 sha512 md5 model request req build commit chatcmpl cmpl msg resp call file run
    thread asst batch evt event trace span step item chunk doc node pod gen job task img image video ses session conv
    blob etag ref rev
    """.split()  # noqa: SIM905 - one a line would fill a page
)
_NOT_HEX = re.compile(r"[g-z].{0,60}[g-z]")
_VARIED = re.compile(r"[0-9]|[a-z][A-Z]|[A-Z]{8}")


def _varied(match: re.Match[str]) -> Span | None:
    """Accepts a key with a digit or a capital inside; hyphenated words (`sk-learn-compatible-models`) have none."""
    span = whole_match(match)
    return span if span and _VARIED.search(match.string, *span) else None


def _prefixed_like_a_key(match: re.Match[str]) -> Span | None:
    """Accepts what begins as keys do, and goes on with characters that are no word, number, hash or UUID."""
    prefix = match[0][: match.start("secret") - match.start()]
    parts = re.split("[_-]", prefix.lower())
    body = _FIRST_PART.findall(match["secret"])[0]
    digits = sum(map(str.isdigit, body))
    if digits < 2 or _OTHERS_WITH_PREFIXES.intersection(parts):
        return None
    mixed = len(_CASE_CHANGES.findall(body)) > 2 and not body.isupper() and not body.islower()
    if not _NAMES_OF_KEYS.intersection(parts):  # of a vendor that is not known
        named = prefix[:-1].isalpha() and prefix.islower() and len(prefix) < 9
        return match.span() if named and mixed and digits > 2 and len(body) >= 32 else None
    random = len(body) >= 32 and (_NAMES_OF_SECRETS.intersection(parts) or _NOT_HEX.search(body))
    return match.span() if mixed or random else None


_CHECKS: dict[str, Accept] = {"varied": _varied, "any": whole_match, "unknown vendor": _prefixed_like_a_key}
_ROWS = table("vendors")["keys"]


def _vendor_rule(row: Mapping[str, Any]) -> RedactionRule:
    pattern, prefixes = row["pattern"], row.get("prefixes", ())
    for part, meaning in _PARTS.items():
        pattern = pattern.replace(part, meaning)
    if prefixes:
        pattern = rf"(?<![A-Za-z0-9_-])(?:{'|'.join(map(re.escape, prefixes))}){pattern}"
    return RedactionRule(
        row["name"],
        SensitiveKind.KEY,
        row["vendor"],
        re.compile(pattern),
        _CHECKS[row.get("check", "varied")],
        hints=tuple(row.get("near", ())),
        words=tuple(row.get("words", ())),
        digits=row.get("digits", 0),
        anchors=tuple(prefixes or row.get("inside", ())),
        back=row.get("back", 0),
    )


VENDOR_RULES: tuple[RedactionRule, ...] = tuple(map(_vendor_rule, _ROWS))


class VendorKeys:
    """Tries the rules of all vendors, where a text has a word as long as a key that begins or is made as a key is."""

    def __init__(self) -> None:
        self._prefixes: dict[str, list[RedactionRule]] = {}  # by the first two or three characters of a key
        self._long: list[tuple[int, RedactionRule]] = []  # those that would be tried on most texts
        self._others: list[tuple[tuple[str, ...], RedactionRule]] = []
        for row, rule in zip(_ROWS, VENDOR_RULES, strict=True):
            if "prefixes" in row:
                for start in dict.fromkeys(anchor[:3] for anchor in rule.anchors):
                    self._prefixes.setdefault(start, []).append(rule)
            elif "least" in row:  # length of the shortest value
                self._long.append((row["least"], rule))
            else:
                self._others.append((rule.anchors or rule.hints, rule))

    def taken(self, view: TextView) -> list[Taken]:
        """All keys in the text, in order, without overlaps."""
        words = [word for word in view.text.split() if len(word) >= _MIN_KEY_CHARS]
        if not words:
            return []
        joined = " ".join(words)
        taken: list[Taken] = []
        for rule in self._rules_for(joined):
            taken += rule.taken(view)
        for least, rule in self._long:
            if any(len(word) >= least and rule.pattern.search(word) for word in words):
                taken += rule.taken(view)
        if len(taken) < 2:
            return taken
        ordered = sorted(taken, key=lambda one: (one[0], -one[1]))  # of two that start alike the longer one first
        return without_overlaps(ordered)

    def _rules_for(self, joined: str) -> list[RedactionRule]:
        """Rules that may match in the long words."""
        rules = [rule for hints, rule in self._others if not hints or any(hint in joined for hint in hints)]
        starts = set(_STARTS.findall(joined))
        for start in (starts | {one[:2] for one in starts}) & self._prefixes.keys():
            rules += self._prefixes[start]
        return list(dict.fromkeys(rules)) if len(rules) > 1 else rules


_STARTS = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9]\S\S")


_DASHES = "-----"
_PEM_END = re.compile(rf"{_DASHES}END [A-Z0-9 ]{{1,60}}{_DASHES}")
_PEM_BODY = re.compile(r"(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+")


def _private_key(match: re.Match[str]) -> Span | None:
    """Accepts a whole PEM block, or the start of a truncated one; the first line alone is not a key.

    A block ends at the next five dashes, which must be those of its last line, so that the text is read once however
    many first lines it contains.
    """
    start, begin = match.span()
    dashes = match.string.find(_DASHES, begin)
    last = _PEM_END.match(match.string, dashes) if dashes >= 0 else None
    body = last or _PEM_BODY.match(match.string, begin)
    return (start, body.end()) if body else None


KEY_RULES = rules("key", {"private key": _private_key})
