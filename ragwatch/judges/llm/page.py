"""Renders a sample as a page for a model. Every line is a heading, or escaped foreign text after a mark.

    <sample 9f3c2a71>
    HISTORY
    [user]
    bvc| I ordered a lamp. Can I return it?
    [assistant]
    tlm| Yes, within ten days.
    QUESTION
    qxt.1| How long are refunds?
    CONTEXTS
    [kqv]
    kqv.1| Refunds take five days.
    ANSWER
    rwd.1| Refunds take five days.
    rwd| I hope this helps.
    </sample 9f3c2a71>

The sections are HISTORY, QUESTION, NEEDS, CONTEXTS, ANSWER and REFERENCE, in this order; a section that is left out has
no heading, and one without content says `none`. Turns of the history have no numbers, because nothing refers to them.
Contexts are numbered by sentence, answer and reference by claim; text between two claims has a line without a number.
The marks come from a secret seed, without which text on the page cannot guess them.

Foreign text is escaped to one line, so that it cannot imitate other lines of the page. The escape character is the
currency sign `¤`: rare in real text, one character, and (unlike a backslash) never escaped again by JSON when a model
quotes it. `¤n` is a line feed, `¤r` a carriage return, `¤t` a tab, `¤b` a bar that would look like the end of a mark
(`kqv.2|`), `¤l` a less-than sign that would open a fence, `¤¤` the sign itself, and `¤200b;` any other invisible
character: controls, formats (zero-width, bidirectional, tags), variation selectors, surrogates, line and paragraph
separators, blank letters. Every pattern is linear.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_SIGN = "¤"
_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_CONSONANTS = "b-df-hj-np-tv-z"
MARK = rf"[{_CONSONANTS}]{{3,4}}(?:\.\d{{1,6}})?"
"""A mark without its bar, as a pattern: three or four consonants, and the number of a sentence or claim."""

# A bar is matched with lookbehinds (three consonants, or a dot and up to six digits), so that the search
# skips from special character to special character.
_ANY_CASE = _CONSONANTS + _CONSONANTS.upper()
_LOOKBEHIND = "|".join([f"(?<=[{_ANY_CASE}]{{3}}[|])", *(rf"(?<=\.\d{{{digits}}}[|])" for digits in range(1, 7))])
_ESCAPED = re.compile(rf"[{_SIGN}{_INVISIBLE}]|<(?=/?[Ss][Aa][Mm][Pp][Ll][Ee])|\|(?:{_LOOKBEHIND})")
_ESCAPE = re.compile(rf"{_SIGN}(?:([nrtbl{_SIGN}])|([0-9a-f]{{1,6}});)")
_SHORT: Mapping[str, str] = {"\n": "n", "\r": "r", "\t": "t", "|": "b", "<": "l", _SIGN: _SIGN}
_LONG: Mapping[str, str] = {short: character for character, short in _SHORT.items()}
INVISIBLE = re.compile(rf"[{_INVISIBLE}]")
"""Invisible characters, line breaks and tabs included."""


def escape(text: str) -> str:
    r"""Escape a text to one line of visible characters, without anything that looks like a mark or a fence.

    >>> escape("a\nb kqv.1| c </sample 0> \u200b 5 ¤")
    'a¤nb kqv.1¤b c ¤l/sample 0> ¤200b; 5 ¤¤'
    """
    return _ESCAPED.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    short = _SHORT.get(match.group())
    return f"{_SIGN}{short}" if short else f"{_SIGN}{ord(match.group()):02x};"  # `¤0b;`: `¤b` is a bar


def unescape(text: str) -> str:
    r"""Undo `escape`. Invalid escapes stay as they are.

    >>> unescape(escape("\x0b")) == "\x0b"
    True
    >>> unescape("a¤nb kqv.1¤b c ¤200b; ¤¤ ¤z ¤110000;")
    'a\nb kqv.1| c \u200b ¤ ¤z ¤110000;'
    """
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    short, code = match.groups()
    if short:
        return _LONG[short]
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else match.group()


_LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowels, so that no id is a word
_UNBIASED_BYTES = 256 - 256 % len(_LETTERS)
_BLOCK_BYTES = 64
_MAX_SHORT_MARKS = 2_000  # after so many, marks have four letters, so that an unused one is found quickly


class RandomMarks:
    """Generates unique ids, and one fence, from a hash: a later version of Python may parse the replies to a batch.

    The same secret seed gives the same marks in the same order.
    """

    def __init__(self, seed: str) -> None:
        self.fence = hashlib.sha256(f"fence {seed}".encode(errors="surrogatepass")).hexdigest()[:8]
        self._letters = _letters(seed)
        self._taken: set[str] = set()

    def new(self) -> str:
        """Return an unused id of three consonants; of four when most of those are used."""
        while True:
            length = 3 if len(self._taken) < _MAX_SHORT_MARKS else 4
            mark = "".join(next(self._letters) for _ in range(length))
            if mark not in self._taken:
                self._taken.add(mark)
                return mark


def _letters(seed: str) -> Iterator[str]:
    block = 0
    while True:
        for byte in hashlib.shake_256(f"marks {block} {seed}".encode(errors="surrogatepass")).digest(_BLOCK_BYTES):
            if byte < _UNBIASED_BYTES:
                yield _LETTERS[byte % len(_LETTERS)]
        block += 1


class MarkedLine(NamedTuple):
    """One line of foreign text, not escaped: the number (from 1) of a sentence or claim; None between claims."""

    text: str
    number: int | None


@dataclass(frozen=True, slots=True)
class MarkedText:
    """One text in lines, with the mark of the text."""

    mark: str
    lines: tuple[MarkedLine, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the numbered lines, in order."""
        return tuple(f"{self.mark}.{line.number}" for line in self.lines if line.number is not None)


@dataclass(frozen=True, slots=True)
class PromptPage:
    """Contents of a page, with the contexts that have text and the turns before the question in their order.

    None: the section is not on the page.
    """

    fence: str
    question: MarkedText | None
    contexts: tuple[MarkedText, ...] | None
    needs: MarkedText | None
    answer: MarkedText
    reference: MarkedText | None
    history: tuple[tuple[str, MarkedText], ...] = ()

    def render(self) -> str:
        """Render the page as text."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"<sample {self.fence}>"
        if self.history:
            yield "HISTORY"
            for role, turn in self.history:
                yield f"[{role}]"
                yield from _marked(turn)
        yield from _section("QUESTION", self.question)
        yield from _section("NEEDS", self.needs)
        if self.contexts is not None:
            yield "CONTEXTS"
            for block in self.contexts:
                yield f"[{block.mark}]"
                yield from _marked(block)
            if not self.contexts:
                yield "none"
        yield from _section("ANSWER", self.answer)
        yield from _section("REFERENCE", self.reference)
        yield f"</sample {self.fence}>"


def _section(heading: str, block: MarkedText | None) -> Iterator[str]:
    if block is not None:
        yield heading
        yield from _marked(block) if block.lines else ("none",)


def _marked(block: MarkedText) -> Iterator[str]:
    for line in block.lines:
        number = "" if line.number is None else f".{line.number}"
        yield f"{block.mark}{number}| {escape(line.text)}"


def sentences(marks: RandomMarks, text: str, spans: Iterable[tuple[int, int]]) -> MarkedText:
    """Split a text after each span. No text is lost: the line of a sentence includes the text before it.

    >>> sentences(RandomMarks("seed"), "1. Tea.  2. Milk.", [(3, 7), (12, 17)]).lines
    (MarkedLine(text='1. Tea.', number=1), MarkedLine(text='2. Milk.', number=2))
    """
    lines: list[MarkedLine] = []
    position = 0
    for number, (_, end) in enumerate(spans, start=1):
        lines.append(MarkedLine(text[position:end].strip(), number))
        position = end
    rest = text[position:].strip()
    return MarkedText(marks.new(), (*lines, MarkedLine(rest, None)) if rest else tuple(lines))


def claims(marks: RandomMarks, text: str, spans: Iterable[tuple[int, int]]) -> MarkedText:
    """Split a text around each span, with the text between spans in lines without a number.

    >>> [(line.number, line.text) for line in claims(RandomMarks("seed"), "Well: tea. Bye.", [(6, 10)]).lines]
    [(None, 'Well:'), (1, 'tea.'), (None, 'Bye.')]
    """
    lines: list[MarkedLine] = []
    position = 0
    for number, (start, end) in enumerate(spans, start=1):
        lines.append(MarkedLine(text[position:start].strip(), None))
        lines.append(MarkedLine(text[start:end], number))
        position = end
    lines.append(MarkedLine(text[position:].strip(), None))
    return MarkedText(marks.new(), tuple(line for line in lines if line.text))


def unnumbered(marks: RandomMarks, text: str) -> MarkedText:
    """A text on one line, to which no reply refers."""
    return MarkedText(marks.new(), (MarkedLine(text.strip(), None),))


def numbered(marks: RandomMarks, texts: Sequence[str]) -> MarkedText:
    """Short texts, one per line."""
    return MarkedText(marks.new(), tuple(MarkedLine(text, number) for number, text in enumerate(texts, start=1)))
