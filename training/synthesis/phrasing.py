"""Other words for the same: a table of phrases, synonyms, wider words."""

import random
import re

from .lexicon import Lexicon
from .lists import bars
from .marked import Marked
from .reading import read
from .wording import CLASSES, denied, formed, with_article

_PHRASES = """
located in = situated in|based in = headquartered in|was born in = is a native of
was founded in = was established in|because of = due to = owing to|in order to = so as to|as well as = and
a number of = several|a variety of = various|prior to = before|such as = like|in addition = additionally
took place = was held|makes up = constitutes|was killed = lost his life|known for = famous for = noted for
known as = called|began his career = started his career|was released on = came out on
was released in = came out in|is home to = houses|consists of = is made up of
was named after = takes its name from|most of = the majority of|more than = over = in excess of
less than = under|at least = no fewer than|at the age of = aged|for example = for instance
as a result of = because of|even though = although|despite = in spite of|in the course of = during
the whole of = all of|plays a role in = is involved in|is able to = can|are able to = can|has to = must
have to = must|a great deal of = much|a lot of = much|was awarded = received|set up = established
took part in = participated in|takes part in = participates in|carried out = conducted|pointed out = noted
went on to = later|was part of = belonged to|is part of = belongs to|was married to = was the spouse of
was the first = became the first|was forced to = had to|in collaboration with = together with = along with
was written by = was penned by|was directed by = had as its director|was born on = has as birthday
close to = near|next to = beside|each year = every year|per year = a year|annually = every year
per cent = percent|the United States = the US = the USA|United Kingdom = UK
in the early = at the beginning of the|in the late = towards the end of the|all over = throughout
regarding = concerning|is used to = serves to|are used to = serve to|was replaced by = gave way to
led by = headed by|a couple of = two|refers to = denotes|which is = that is|is considered = is regarded as
was considered = was regarded as|depends on = hinges on|is responsible for = takes care of
was responsible for = took care of|on top of = above|has been = was|according to = as stated by|plus = and
although = though|however = but|therefore = thus|while = whereas|upon = on|towards = toward|does not = doesn't
did not = didn't|is not = isn't|was not = wasn't|are not = aren't|were not = weren't|do not = don't
has not = hasn't|have not = haven't|cannot = can't|will not = won't|would not = wouldn't|could not = couldn't
"""
_SKIP = frozenset(
    {"has been", "plus", "while", "however", "which is", "a couple of", "in the early", "in the late", "went on to"}
)
_TABLE: dict[str, tuple[str, ...]] = {}
for _line in bars(_PHRASES):
    _words = [_part.strip() for _part in _line.split(" = ")]
    for _index, _word in enumerate(_words):
        if _word not in _SKIP:
            _TABLE[_word] = tuple(other for other in _words if other != _word and other not in _SKIP)
_ONE_WAY = frozenset(
    bars("on|but|thus|two|later|whereas|can|must|like|and|much|before|under|over|is a native of|called|all of")
)
_KEYS = sorted((key for key in _TABLE if key not in _ONE_WAY and _TABLE[key]), key=len, reverse=True)
_FIND = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, _KEYS))})(?![\w-])")
_ONLY_BEFORE_NUMBER = frozenset(
    {"over", "in excess of", "under", "less than", "more than", "at least", "no fewer than"}
)


def phrases(text: Marked, rng: random.Random) -> Marked:
    """One phrase said otherwise."""
    found = list(_FIND.finditer(text.text))
    rng.shuffle(found)
    for match in found:
        old = match.group()
        if old in _ONLY_BEFORE_NUMBER and not re.match(r" [\d$]", text.text[match.end() :]):
            continue
        return text.put(match.start(), match.end(), rng.choice(_TABLE[old]))
    return text


def synonyms(text: Marked, rng: random.Random, lexicon: Lexicon, passage: str, *, most: int = 2) -> Marked:
    """Up to `most` words said otherwise; `passage` is what the claim is read against."""
    return _replaced(text, rng, lexicon, passage, most=most, wider=False)


def wider(text: Marked, rng: random.Random, lexicon: Lexicon, passage: str) -> Marked:
    """One noun said by what it is a kind of; never a changed one, never below a denial."""
    return _replaced(text, rng, lexicon, passage, most=1, wider=True)


def _replaced(text: Marked, rng: random.Random, lexicon: Lexicon, passage: str, *, most: int, wider: bool) -> Marked:
    sentence = read(text.text, lexicon)
    tags = ("N", "NS") if wider else tuple(CLASSES)
    order = [
        index
        for index, token in enumerate(sentence.tokens)
        if token.tag in tags and token.sure > 0.8 and token.text.islower() and len(token.text) > 2
    ]
    rng.shuffle(order)
    done: list[tuple[int, int, str]] = []
    for index in order:
        token = sentence.tokens[index]
        if len(done) == most:
            break
        touched = "1" in text.marks[token.start : token.end]
        pos = CLASSES[token.tag]
        found = lexicon.above(token.base, pos) if wider else lexicon.synonyms(token.base, pos)
        if not found or (wider and (touched or denied(sentence, index))):
            continue
        word = rng.choice(found)
        if wider and re.search(rf"\b{re.escape(word)}", passage):
            continue
        done.append(with_article(sentence, index, formed(sentence, index, word.replace("_", " "), pos)))
    for start, end, new in sorted(done, reverse=True):
        text = text.put(start, end, new)
    return text
