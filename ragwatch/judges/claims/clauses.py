"""Finds the parts of a sentence that can be read alone: clauses, list items, appositions, adjuncts of time and place.

There is no parser. A boundary is set where the form is plain (`Boundary` lists the forms), and only if the parts on
both sides say enough; otherwise they stay together. What a negation governs, and what stands in brackets, quotation
marks or code, is not divided. Every token is visited a bounded number of times, so the time is linear in the sentence.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from ragwatch.judges.claims.words import fold, term, word_set

_MIN_CLAUSE_TERMS = 2
_MIN_HEAD_TERMS = 3  # of a clause from which an adjunct or an item is split
_MAX_PHRASE = 8  # words of an adjunct or an apposition
_MAX_ITEM = 7  # words of an item
_MAX_SINGLE_ITEM = 4  # words of the item between the only comma and "and"
_MAX_SUBJECT = 7  # words of a coordinated clause up to its verb, with it
_NEAR = 4  # words after "and" in which a verb shows that a clause begins, not the last item

_TOKEN = re.compile(r"[^\W_]+(?:[-.,:/'’&+%][^\W_]+)*|[^\w\s]|_+")
_YEAR = re.compile(r"[12]\d{3}s?")
_JOINTS = re.compile(r"[-/&+:]")


_VERBS = word_set(
    "is are was were has have had can could will would may might must should does did do isn't aren't wasn't"
    " weren't hasn't can't cannot won't doesn't didn't don't became becomes began begins built brings brought buys"
    " bought came comes contains continues costs covers creates died dies drew drove earns fell felt finds found"
    " gave gets gives goes got grew grows held helps holds includes involves keeps kept knew knows lay lays leads"
    " led left lies lived lives lost made makes means meant met needs offers paid plays pays ran read reads receives"
    " remains represents requires rose runs said sang sat saw says sees sells sent serves shows sits sold speaks"
    " spent spoke stands stood starts stars stems supports takes taught teaches tells thought told took turns uses"
    " wants went wins won works writes wrote features refers provides produces allows consists occurs appears"
    " applies belongs causes describes depends"
)
_NO_VERBS = word_set("need seed speed breed indeed hundred weed exceed proceed united limited")
_NO_PARTICIPLES = word_set("including excluding according depending following using regarding concerning during")
_PREPOSITIONS = word_set("in on at by from since during near")
_SUBORDINATORS = word_set("while whereas although though because")
_RELATIVES = word_set("which who whose where whom")
_ARTICLES = word_set("the a an")
_OPENINGS = (
    _PREPOSITIONS
    | _SUBORDINATORS
    | word_set(
        "as for to with without when after before under despite through until upon however additionally also thus"
        " therefore finally overall moreover furthermore first second third yes no"
    )
)  # of a phrase before the subject, which a comma ends
_NEGATIONS = word_set(
    "not never no cannot neither nor without isn't aren't wasn't weren't can't won't doesn't didn't don't"
)
_OPENERS, _CLOSERS, _QUOTES = "([{“«", ")]}”»", '"`'


class Boundary(Enum):
    """What begins at the first word of a part."""

    START = auto()  # the sentence, or its main clause after an adjunct
    CLAUSE = auto()  # ", and the ...", "; ...", "... and published ..."
    SUBORDINATE = auto()  # "while ...", "because ..."
    RELATIVE = auto()  # ", which ..."
    APPOSITION = auto()  # ", the capital of ..."
    RESUMED = auto()  # the main clause, after a relative clause or an apposition
    PARTICIPLE = auto()  # ", making ..."
    ITEM = auto()  # from the second on, of a list of three or more
    ADJUNCT = auto()  # "in 1905", "at the Swiss patent office"


LOOSE = frozenset({Boundary.ITEM, Boundary.ADJUNCT})  # parts of a clause; the others are clauses, or like them
_ASIDES = frozenset({Boundary.RELATIVE, Boundary.APPOSITION})


class Token(NamedTuple):
    """A word or a sign of a sentence."""

    start: int  # offset of its first character in the sentence
    end: int
    low: str
    name: str  # its first content term; empty for function words and signs
    proper: bool  # whether it is capitalised, or a year
    inside: bool  # whether it stands in brackets, quotation marks or code

    @property
    def is_word(self) -> bool:
        """Whether it is no sign."""
        return self.low[0].isalnum()

    @property
    def is_verb(self) -> bool:
        """Whether it is a common verb, or ends like one in the past tense."""
        low = self.low
        return low in _VERBS or (low.endswith("ed") and len(low) > 4 and not self.proper and low not in _NO_VERBS)


class Part(NamedTuple):
    """The tokens `first` to `last` (exclusive) of a sentence."""

    first: int
    last: int
    why: Boundary


def tokens_of(sentence: str) -> list[Token]:
    """The words and signs of a sentence. After an opening sign without a closing one, everything is inside."""
    tokens = []
    depth, quoted = 0, False
    for place in _TOKEN.finditer(sentence):
        text = place.group()
        if text in _QUOTES:
            quoted = not quoted
        elif text in _OPENERS:
            depth += 1
        elif text in _CLOSERS:
            depth = max(0, depth - 1)
        names = filter(None, map(term, _JOINTS.split(fold(text)))) if text[0].isalnum() else iter(())
        proper = text[0].isupper() or _YEAR.fullmatch(text) is not None
        low = text.lower().replace("’", "'")
        tokens.append(Token(*place.span(), low, next(names, ""), proper, inside=depth > 0 or quoted))
    return tokens


def _parts(tokens: Sequence[Token]) -> Iterator[Part]:
    """Yield the parts between the boundaries, before it is checked whether they can be read alone."""
    main = _main_clause(tokens)
    items = _items(tokens, main)
    first, why = 0, Boundary.ADJUNCT if main else Boundary.START
    aside = False
    for index in range(max(1, main), len(tokens)):
        if tokens[index].inside or tokens[index - 1].inside:
            continue
        begins = (
            Boundary.START
            if index == main
            else Boundary.ITEM
            if index in items
            else _boundary(tokens, index, aside=aside)
        )
        if begins is None:
            continue
        yield Part(first, index, why)
        first, why = index, begins
        aside = begins in _ASIDES or (aside and begins is Boundary.ADJUNCT)
    yield Part(first, len(tokens), why)


def _main_clause(tokens: Sequence[Token]) -> int:
    """First token of the clause after an adjunct at the front ("In 1905, he ..."); 0 without one."""
    if tokens[0].low not in _PREPOSITIONS:
        return 0
    for index in range(1, min(_MAX_PHRASE + 2, len(tokens) - 2)):
        if tokens[index].is_verb or tokens[index].inside:
            return 0
        is_date = tokens[index + 1].low[0].isdigit() or tokens[index + 2].low in (",", "and")
        if tokens[index].low == "," and not is_date:
            return index + 1 if any(token.proper for token in tokens[1:index]) else 0
    return 0


def _boundary(tokens: Sequence[Token], index: int, *, aside: bool) -> Boundary | None:
    """What begins at a token, other than an item; None if nothing does.

    Aside: the part before is a relative clause or an apposition.
    """
    low, before = tokens[index].low, tokens[index - 1].low
    if before in (";", "—"):
        return Boundary.CLAUSE
    if low in _SUBORDINATORS:
        return Boundary.SUBORDINATE
    if before == ",":
        return _after_comma(tokens, index, aside=aside)
    if low in ("and", "but"):
        return Boundary.CLAUSE if _has_verb(tokens, index + 1, 1) else None
    return Boundary.ADJUNCT if low in _PREPOSITIONS and _is_adjunct(tokens, index) else None


def _after_comma(tokens: Sequence[Token], index: int, *, aside: bool) -> Boundary | None:
    token = tokens[index]
    if token.low in _RELATIVES:
        return Boundary.RELATIVE
    if token.low in ("and", "but", "so", "yet"):
        return Boundary.CLAUSE if _has_verb(tokens, index + 1, _MAX_SUBJECT) else None
    if aside and _has_verb(tokens, index, 2):
        return Boundary.RESUMED
    if token.low in _ARTICLES and _is_apposition(tokens, index):
        return Boundary.APPOSITION
    is_participle = token.low.endswith("ing") and len(token.low) > 5 and not token.proper
    return Boundary.PARTICIPLE if is_participle and token.low not in _NO_PARTICIPLES else None


def _has_verb(tokens: Sequence[Token], index: int, reach: int) -> bool:
    """Whether one of the next `reach` tokens is a verb, before any sign. "Affected by" follows a noun."""
    for place, token in enumerate(tokens[index : index + reach], start=index + 1):
        if not token.is_word:
            return False
        if token.is_verb and (token.low in _VERBS or place == len(tokens) or tokens[place].low != "by"):
            return True
    return False


def _is_apposition(tokens: Sequence[Token], index: int) -> bool:
    """Whether a short phrase without a verb follows, up to a sign or the end."""
    for token in tokens[index : index + _MAX_PHRASE]:
        if not token.is_word:
            return token.low in ",.;"
        if token.low in _VERBS:
            return False
    return len(tokens) - index <= _MAX_PHRASE


def _is_adjunct(tokens: Sequence[Token], index: int) -> bool:
    """Whether a short phrase with a name or a year follows, without a verb, up to the next one, a sign or the end."""
    named = False
    for token in tokens[index + 1 : index + 1 + _MAX_PHRASE]:
        if (
            not token.is_word
            or token.low in _PREPOSITIONS
            or token.low in _SUBORDINATORS
            or token.low in ("and", "but")
        ):
            return named
        if token.is_verb:
            return False
        named = named or token.proper
    return named and len(tokens) - index - 1 <= _MAX_PHRASE


def _items(tokens: Sequence[Token], main: int) -> set[int]:
    """First tokens of the items, from the second on, of lists "A, B and C" of short items."""
    starts: set[int] = set()
    run: list[int] = []  # first tokens after the commas of the list so far
    opened = tokens[0].low in _OPENINGS  # the first comma ends a phrase before the subject
    for index, token in enumerate(tokens):
        if token.inside or token.low in (";", ":", "—") or (run and index - run[-1] > _MAX_ITEM):
            run = []
        if token.inside:
            continue
        if token.low == ",":
            if opened or index + 1 == main:
                opened = False
            elif index + 1 < len(tokens) and tokens[index + 1].low != "and" and not tokens[index + 1].low[0].isdigit():
                run.append(index + 1)
        elif token.low == "and" and run:
            if _are_items(tokens, run, index):
                starts.update((*run, index))
            run = []
    return starts


def _are_items(tokens: Sequence[Token], run: Sequence[int], last: int) -> bool:
    """Whether the parts that begin at `run`, and the one after "and" at `last`, are items: alike, and no clauses."""
    if len(run) == 1 and last - run[0] > _MAX_SINGLE_ITEM + 1:
        return False
    if _has_verb(tokens, last + 1, _NEAR) or any(token.is_verb for token in tokens[run[0] : last]):
        return False
    firsts = [tokens[index].low for index in run] + [token.low for token in tokens[last + 1 : last + 2]]
    return len({low.endswith("ing") for low in firsts}) == 1 and _RELATIVES.isdisjoint(firsts)


def parts_of(tokens: Sequence[Token]) -> list[Part]:
    """Divide a sentence into parts that can be read alone. The others are joined with their neighbours."""
    clauses: list[Part] = []
    for part in _parts(tokens):
        if clauses and part.why in LOOSE and not _can_lose(tokens, clauses[-1]):
            clauses[-1] = clauses[-1]._replace(last=part.last)
        else:
            clauses.append(part)
    merged: list[Part] = []
    for part in clauses:
        if merged and not (_stands_alone(tokens, merged[-1]) and _stands_alone(tokens, part)):
            merged[-1] = merged[-1]._replace(last=part.last)
        else:
            merged.append(part)
    return merged


def _stands_alone(tokens: Sequence[Token], part: Part) -> bool:
    return _term_count(tokens, part) >= (1 if part.why in LOOSE else _MIN_CLAUSE_TERMS)


def _can_lose(tokens: Sequence[Token], part: Part) -> bool:
    """Whether an adjunct or an item after it can be split from it."""
    if part.why in LOOSE:
        return True
    is_negated = any(token.low in _NEGATIONS for token in tokens[part.first : part.last])
    return not is_negated and _term_count(tokens, part) >= _MIN_HEAD_TERMS


def _term_count(tokens: Sequence[Token], part: Part) -> int:
    return len({token.name for token in tokens[part.first : part.last]} - {""})


_NOT_IN_FRAGMENTS = word_set(
    "i you he she it its we they this that these those there who which what let please yes no yeah yep nope and or"
)
"""Words that a clause begins with, though its verb may be an uncommon one; the items of a list may stand apart."""
_OTHER_SCRIPT = re.compile("[\u0370-\u1fff\u2c00-\U0010ffff]")  # than Latin, which the embedded judges read
_MAX_FRAGMENT_CHARS = 200
_MAX_FRAGMENT_WORDS = 6


def is_fragment(text: str) -> bool:
    """Whether a text is a few words, none of which shows a clause.

    >>> is_fragment("Thirty days."), is_fragment("It takes thirty days."), is_fragment("Yes")
    (True, False, False)
    """
    if len(text) > _MAX_FRAGMENT_CHARS or _OTHER_SCRIPT.search(text):
        return False
    words = [token for token in tokens_of(text) if token.is_word]
    is_short = any(word.name for word in words) and len(words) <= _MAX_FRAGMENT_WORDS
    return is_short and not any(word.is_verb or word.low in _NOT_IN_FRAGMENTS or "'" in word.low for word in words)
