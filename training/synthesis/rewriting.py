"""A sentence turned into a claim: cut, turned round, joined, put in the active voice, boiled down to one fact.

Every rewriting keeps what is left as true as it was, and keeps the marks of what was changed.
"""

import random
import re
from collections.abc import Callable

from .inflect import PARTICIPLE, PAST
from .marked import Marked, upper
from .reading import NAME
from .turning import TURNS

Rewriting = Callable[[Marked, random.Random], Marked]
_ONCE = {participle: PAST[base] for base, participle in PARTICIPLE.items()}
_LINKING = re.compile(
    r"^(?:However|Additionally|Furthermore|Moreover|In addition|Also|Therefore|Thus|Similarly|Meanwhile|Nevertheless"
    r"|For example|For instance|In fact|Instead|Finally|Eventually|Subsequently|Later|Today|Currently|Then|As a result"
    r"|On the other hand|Consequently|Historically|Traditionally) ?, "
)
_LEAD = re.compile(
    r"^((?:In|On|At|During|After|Before|Since|By|From|Between|Following|Upon)\b [^,;:()]{3,45}) ?, "
    r"(?=(?:the|a|an|he|she|it|they|his|her|its|this|these|[A-Z]\w+) )"
)
_PARENS = re.compile(r" ?\((?![^()]*\d{4} ?%)[^()]{1,140}\)")
_TAIL = re.compile(
    r" ?, (?:which|who|whose|where|with|including|such as|as well as|making|becoming|having|followed by|although"
    r"|while|and (?:was|is|has|had|later|also|then|is also|the) )[^;()]*(?=\.$)"
)
_INNER = re.compile(
    r" ?, (?:which|who|whose|where|also known as|formerly|formerly known as|better known as) [^,;()]{4,80} ?, ?"
)
_ADVERB = re.compile(
    r"(?<=[a-z] )(?:also|later|then|subsequently|eventually|officially|famously|widely|critically|actually|indeed"
    r"|very|quite) (?=[a-z])"
)
_DATE = r"(?:[A-Z][a-z]+ \d{1,2}, \d{4}|\d{1,2} [A-Z][a-z]+ \d{4})"
_TIME = rf"(?:in|since|until) (?:(?:early|late|mid) )?(?:[A-Z][a-z]+ )?\d{{4}}|on {_DATE}"
_END_TIME = re.compile(rf"^((?:The|A|An|He|She|It|They|His|Her|Its|{NAME}) [^,;:()]{{12,110}}) ({_TIME}) ?\.$")
_OPENING_TIME = rf"(?:In|Since|Until) (?:(?:early|late|mid) )?(?:[A-Z][a-z]+ )?\d{{4}}|On {_DATE}"
_START_TIME = re.compile(rf"^({_OPENING_TIME}) ?, ([^,;:]{{12,120}}) ?\.$")
_LOWERED = re.compile(r"^(?:The|A|An|He|She|It|They|His|Her|Its|This|These|There)\b")
_ITEM = re.compile(r"(?<=, )[A-Z][\w.'’-]+(?: [A-Z][\w.'’-]+){0,2} ?, (?=[A-Z][^,.]{2,40}(?:,|,? and ))")
_PASSIVE = re.compile(
    r"^([^,;:()]{3,70}?) (?:was|were) ([a-z]+(?:ed|en|wn|ng|de|ld|lt|ght|nt)) by "
    rf"((?:the )?{NAME})((?: in \d{{4}})?) ?\.$"
)
_OF = re.compile(
    r"\bthe (capital|population|headquarters|author|director|son|daughter|wife|husband|brother|sister|founder|home"
    rf"|death|president|career|members|creator|economy|history|coast|mayor|owner|father|mother) of ({NAME})(?=[ ,.])"
)
_POSSESSIVE = re.compile(rf"(?<=[a-z,] )({NAME})['’]s (capital|population|headquarters|son|daughter|wife|husband|brother|sister|founder|home|death|career|history|economy|father|mother)\b")  # noqa: E501  # fmt: skip
_PRONOUN = re.compile(r"^(He|She|It|They|His|Her|Its|Their) (?!is (?:\w+ )?(?:that|to)\b)")


def no_parens(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """Without what stands in parentheses."""
    return text.sub(_PARENS, "", count=5)


def no_linking(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """Without a word that links it to the sentence before."""
    return upper(text.sub(_LINKING, ""))


def no_lead(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """Without the time or place that opens it."""
    return upper(text.sub(_LEAD, ""))


def no_tail(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """Without the clause that ends it."""
    return text.sub(_TAIL, "")


def no_inner(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """Without a clause between commas."""
    return text.sub(_INNER, " ")


def no_adverb(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """Without an adverb that its truth does not hang on."""
    return text.sub(_ADVERB, "")


def fewer_items(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """A list of names made shorter."""
    return text.sub(_ITEM, "") if ("," in text.text and " and " in text.text) else text


def time_first(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """The time at the end put first."""
    match = _END_TIME.match(text.text)
    if not match or re.search(r"\d{4}| and ", match.group(1)):
        return text
    head, time = text.cut(*match.span(1)), text.cut(*match.span(2))
    return Marked.join((upper(time), ", ", _lower(head), "."))


def time_last(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """The time at the front put last."""
    match = _START_TIME.match(text.text)
    if not match or re.search(r"\b(?:in|on) (?:\w+ )?\d{4}", match.group(2)):
        return text
    time, rest = text.cut(*match.span(1)), text.cut(*match.span(2))
    return Marked.join((upper(rest), " ", Marked(time.text[:1].lower() + time.text[1:], time.marks), "."))


def _lower(text: Marked) -> Marked:
    return Marked(text.text[:1].lower() + text.text[1:], text.marks) if _LOWERED.match(text.text) else text


def active(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """A plain passive with a named agent, in the active voice."""
    match = _PASSIVE.match(text.text)
    if not match:
        return text
    verb = match.group(2)
    past = _ONCE.get(verb) or (verb if verb.endswith("ed") else "")
    if not past or match.group(1)[:2] in ("He", "It") or "not" in match.group(1).split():
        return text
    agent, patient, time = (text.cut(*match.span(number)) for number in (3, 1, 4))
    middle = Marked.of(f" {past} ", changed="1" in text.marks[match.start(2) : match.end(2)])
    if text.marks[match.end(1) : match.start(2)].count("1"):
        return text
    return Marked.join((upper(agent), middle, _lower(patient), time, "."))


def genitive(text: Marked, rng: random.Random) -> Marked:
    """`the capital of X` as `X's capital`, or the other way round."""
    order = [(_OF, (2, 1), "'s "), (_POSSESSIVE, (2, 1), " of ")]
    rng.shuffle(order)
    for pattern, (first, second), link in order:
        match = pattern.search(text.text)
        if match:
            parts = (text.cut(*match.span(first)), link, text.cut(*match.span(second)))
            head = "the " if link == " of " else ""
            return upper(Marked.join((text.cut(0, match.start()), head, *parts, text.cut(match.end()))))
    return text


def named(title: str) -> Rewriting:
    """The title in the place of a pronoun that opens the sentence."""

    def rewriting(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
        match = _PRONOUN.match(text.text)
        if not match or not title:
            return text
        own = "'s" if match.group(1) in ("His", "Her", "Its", "Their") else ""
        if own and re.match(r"(?:Her|His) (?:was|is|and)\b", text.text):
            return text
        return text.put(0, match.end(1), f"{title}{own}")

    return rewriting


def short_name(title: str) -> Rewriting:
    """A person's last name alone, where the sentence opens with the whole name."""

    def rewriting(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
        words = title.split()
        if 1 < len(words) < 4 and text.text.startswith(title + " ") and not text.marks[: len(title)].count("1"):
            return text.put(0, len(title), words[-1])
        return text

    return rewriting


def rewritings(title: str, *, person: bool) -> list[Rewriting]:
    """The rewritings that may be tried on a sentence of a passage with this title."""
    steps: list[Rewriting] = [
        *(no_parens, no_linking, no_lead, no_tail, no_inner, no_adverb, fewer_items, time_first, time_last, active),
        *(genitive, *TURNS),
    ]
    return [*steps, short_name(title)] if person else steps
