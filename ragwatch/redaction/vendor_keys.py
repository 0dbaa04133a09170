"""Keys of vendors that are known by their prefix or by a fixed part in them.

Those with a prefix are rows of `vendor_table`; the others are written here as an anchor and the characters around it.
Keys without a fixed part are found by the name they are assigned to (`credentials`).
"""

from __future__ import annotations

import re

from ragwatch.redaction.rule import RedactionRule, SensitiveKind, Span, Taken, TextView
from ragwatch.redaction.vendor_table import PREFIXED, UUID

_MIN_KEY_CHARS = 16  # of the shortest key, which has no white space
_GLUE = r"(?<![A-Za-z0-9_-])"
_PREFIX_PARTS = re.compile(r"[_-]")
_FIRST_PART = re.compile(r"[A-Za-z0-9]+")
_CASE_CHANGES = re.compile(r"[a-z0-9][A-Z]|[A-Z0-9][a-z]")
_NAMES_OF_SECRETS = frozenset({"sk", "rk", "pat", "api", "apikey", "secret", "oauth", "tok", "token", "auth"})
_NAMES_OF_KEYS = _NAMES_OF_SECRETS | frozenset(
    {
        "key",
        "live",
        "prod",
        "test",
        "access",
        "v1",
        "v2",
        "sa",
        "svc",
        "service",
        "org",
        "personal",
        "admin",
        "inference",
    }
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
    value = match["secret"] if "secret" in match.re.groupindex else match[0]
    span = match.span("secret") if "secret" in match.re.groupindex else match.span()
    return span if _VARIED.search(value) else None


def _prefixed_like_a_key(match: re.Match[str]) -> Span | None:
    """Accepts what begins as keys do, and goes on with characters that are no word, number, hash or UUID."""
    prefix = match[0][: match.start("secret") - match.start()]
    parts = _PREFIX_PARTS.split(prefix.lower())
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


def _prefixed(name: str, vendor: str, prefixes: str, rest: str) -> RedactionRule:
    anchors = tuple(prefixes.split())
    starts = "|".join(map(re.escape, anchors))
    return RedactionRule(
        name, SensitiveKind.KEY, re.compile(f"{_GLUE}(?:{starts}){rest}"), vendor, _varied, anchors=anchors
    )


def _inner(name: str, vendor: str, anchors: str, pattern: str, back: int = 0) -> RedactionRule:
    """A key with a fixed part inside it, `back` characters behind its start."""
    return RedactionRule(
        name, SensitiveKind.KEY, re.compile(pattern), vendor, _varied, anchors=tuple(anchors.split()), back=back
    )


VENDOR_RULES: tuple[RedactionRule, ...] = (
    _inner(
        "slack-webhook",
        "Slack",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/_-]{20,})",
    ),
    _inner(
        "discord-webhook",
        "Discord",
        "/api/webhooks/",
        r"/api/webhooks/(?P<secret>\d{16,20}/[A-Za-z0-9_-]{40,})",
    ),
    _inner(
        "teams-webhook",
        "Microsoft Teams",
        ".webhook.office.com/",
        r"\.webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{60,})",
    ),
    _inner(
        "azure-client-secret", "Azure (Entra ID)", "Q~", r"(?<![\w~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,}", 4
    ),
    _inner("azure-storage-key", "Azure", "==", r"(?<![A-Za-z0-9+/-])[A-Za-z0-9+/]{86}==", 86),
    _inner(
        "azure-key",
        "Azure (OpenAI, DevOps, AI services)",
        "JQQJ99",
        r"(?<![A-Za-z0-9])[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20,}",
        52,
    ),
    _inner("azure-devops-token", "Azure DevOps", "AZDO", r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", 76),
    _inner("azure-search-key", "Azure AI Search", "AzSe", r"(?<![A-Za-z0-9])[A-Za-z0-9]{42}AzSe[A-Za-z0-9]{6}", 42),
    _inner(
        "azure-sas",
        "Azure (shared access signature)",
        "sig=",
        r"(?<![A-Za-z0-9_])sig=(?P<secret>[A-Za-z0-9%/+_-]{40,}={0,2})",
    ),
    _inner(
        "azure-function-key",
        "Azure Functions",
        "code=",
        r"(?<![A-Za-z0-9_])code=(?P<secret>[A-Za-z0-9%/+_-]{50,}={0,2})",
    ),
    _inner(
        "google-key-id",
        "Google",
        "private_key_id",
        r"private_key_id\\?[\"']\s{0,4}:\s{0,4}\\?[\"'](?P<secret>[0-9a-f]{40})",
    ),
    RedactionRule(
        "azure-devops-old-token",
        SensitiveKind.KEY,
        re.compile(r"(?<![A-Za-z0-9+/_-])(?=[a-z]{0,51}[0-9])[a-z0-9]{52}(?![A-Za-z0-9+/=_-])"),
        "Azure DevOps (52 characters in a text that mentions it)",
        folded_hints=("devops", "visualstudio", "vsts"),
        min_digits=1,
    ),
    _inner(
        "terraform-token",
        "Terraform Cloud",
        ".atlasv1.",
        r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}",
        14,
    ),
    _inner("mailchimp-key", "Mailchimp", "-us", r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?!\d)", 32),
    _inner("maxmind-old-key", "MaxMind", "_mmk", r"(?<![A-Za-z0-9])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", 36),
    RedactionRule(
        "telegram-token",
        SensitiveKind.KEY,
        re.compile(r"(?<![\d.])(?:bot)?(?P<secret>\d{8,10}:A[A-Za-z0-9_-]{34})(?![A-Za-z0-9_-])"),
        "Telegram",
        hints=(":A",),
        min_digits=8,
    ),
    RedactionRule(
        "discord-token",
        SensitiveKind.KEY,
        re.compile(r"(?<![\w.-])[MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,45}(?![\w.-])"),
        "Discord",
        _varied,
        folded_hints=("discord", "bot", "token"),
        min_digits=1,
    ),
    RedactionRule(
        "aws-secret-key",
        SensitiveKind.KEY,
        re.compile(
            r"(?<![A-Za-z0-9/+=_.-])(?=[^\s]{0,39}\d)(?=[^A-Z\s]{0,39}[A-Z])(?=[^a-z\s]{0,39}[a-z])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])"
        ),
        "AWS (40 characters in a text that mentions AWS)",
        folded_hints=("aws", "akia", "asia", "s3"),
        min_digits=1,
    ),
    RedactionRule(
        "facebook-app-token",
        SensitiveKind.KEY,
        re.compile(r"(?<![\w.])\d{15,16}(?:\||%7C)[A-Za-z0-9_-]{27,40}"),
        "Facebook",
        hints=("|", "%7C"),
        min_digits=15,
    ),
    _inner("ngrok-token", "ngrok", "_", r"(?<![\w-])[123][A-Za-z0-9]{26}_[A-Za-z0-9]{20,24}(?![\w-])", 27),
    RedactionRule(
        "fal-key",
        SensitiveKind.KEY,
        re.compile(rf"(?<![\w-]){UUID}:[0-9a-f]{{32}}(?![\w-])"),
        "fal",
        hints=(":",),
        min_digits=4,
    ),
    RedactionRule(
        "ably-key",
        SensitiveKind.KEY,
        re.compile(r"(?<![\w.-])[\w-]{6}\.[\w-]{6}:[\w-]{43}(?![\w.-])"),
        "Ably",
        _varied,
        hints=(":",),
    ),
    RedactionRule(
        "zhipu-key",
        SensitiveKind.KEY,
        re.compile(r"(?<![\w.-])[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![\w.-])"),
        "Zhipu (Z.ai)",
        hints=(".",),
        min_digits=4,
    ),
    *(_prefixed(*row) for row in PREFIXED),
    RedactionRule(
        "key-like-prefix",
        SensitiveKind.KEY,
        re.compile(
            rf"{_GLUE}(?:[A-Za-z][A-Za-z0-9]{{0,15}}[_-]){{1,4}}(?P<secret>[A-Za-z0-9]{{20,}}(?:[_-][A-Za-z0-9_-]{{0,200}})?)"
        ),
        "Random characters behind a prefix such as `acme_live_` or `acme_sk_`",
        _prefixed_like_a_key,
        hints=("_", "-"),
        min_digits=2,
    ),
)


class VendorKeys:
    """Tries the rules of all vendors, where a text has a word as long as a key that begins or is made as a key is.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: tuple[RedactionRule, ...]) -> None:
        prefixed = [rule for rule in rules if rule.name in _NAMES_OF_PREFIXED]
        self._prefixes = {
            anchor[:3]: [rule for rule in prefixed if any(one[:3] == anchor[:3] for one in rule.anchors)]
            for rule in prefixed
            for anchor in rule.anchors
        }
        self._short = {start: one for start, one in self._prefixes.items() if len(start) == 2}
        self._long = tuple((_LEAST_CHARS[rule.name], rule) for rule in rules if rule.name in _LEAST_CHARS)
        self._others = tuple(
            (rule.anchors or rule.hints, rule)
            for rule in rules
            if rule.name not in _NAMES_OF_PREFIXED and rule.name not in _LEAST_CHARS
        )

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
        return _first_of_overlapping(taken) if len(taken) > 1 else taken

    def _rules_for(self, joined: str) -> list[RedactionRule]:
        """Rules that may match in the long words."""
        rules = [rule for hints, rule in self._others if not hints or any(hint in joined for hint in hints)]
        starts = set(_STARTS.findall(joined))
        for start in starts & self._prefixes.keys():
            rules += self._prefixes[start]
        for start in {one[:2] for one in starts} & self._short.keys():
            rules += self._short[start]
        return list(dict.fromkeys(rules)) if len(rules) > 1 else rules


def _first_of_overlapping(taken: list[Taken]) -> list[Taken]:
    """Values in order; of two that overlap the one that starts first, or the longer one."""
    taken.sort(key=lambda one: (one[0], -one[1]))
    kept = taken[:1]
    for one in taken[1:]:
        if one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


_STARTS = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9]\S\S")
_LEAST_CHARS = {"ngrok-token": 48, "fal-key": 69, "ably-key": 57, "zhipu-key": 49, "key-like-prefix": 23}
"""Length of the shortest value of rules that would be tried on most texts."""
_NAMES_OF_PREFIXED = frozenset(row[0] for row in PREFIXED)
