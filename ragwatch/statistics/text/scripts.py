"""Whether an answer is in another script or language than its question, cheaply enough for every request.

Only the beginnings of both are read: the script of a sample of their letters, then, in Latin script, frequent small
words that belong to one language of the table. Where either says nothing (names, numbers, another language), the answer
is not called different. It is a signal with a baseline, not a verdict; judges have a slower and better reader.
"""

from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from types import MappingProxyType

_CHARS = 160  # of each text that are read
_SAMPLED = 12  # characters that show the script
_MIN_LETTERS, _MIN_WORDS = 3, 2
_MAX_MARKS = 10
_ASKING = frozenset(
    ("what", "how", "when", "where", "wie", "wann", "wo", "cómo", "qué", "dónde", "qual", "onde", "jak", "hoe", "hur")
)
_LATIN = "latin"
_SCRIPTS = (
    (0x0000, _LATIN),
    (0x0370, "greek"),
    (0x0400, "cyrillic"),
    (0x0530, "armenian"),
    (0x0590, "hebrew"),
    (0x0600, "arabic"),
    (0x0780, "other"),
    (0x0900, "devanagari"),
    (0x0980, "other"),
    (0x0E00, "thai"),
    (0x0E80, "other"),
    (0x10A0, "georgian"),
    (0x1100, "hangul"),
    (0x1200, "other"),
    (0x1E00, _LATIN),
    (0x1F00, "greek"),
    (0x2000, "other"),
    (0x2E80, "han and kana"),
    (0xA000, "other"),
    (0xAC00, "hangul"),
    (0xD7B0, "other"),
    (0xF900, "han and kana"),
    (0xFB00, "other"),
)
_FROM = [first for first, _ in _SCRIPTS]
_WORDS = {
    "en": "the what how of to and are does can you which for with this that when where your it from have be there do",
    "de": "der das wie ist und für ein ich nicht eine einen mit auf sie wird werden kann können oder bei nach zu von "
    "dem des im auch wann welche wo mein ihre",
    "fr": "le la les est et pour dans que vous une pas sur avec ce cette quel quelle être sont votre du au aux nous "
    "où comment mon",
    "es": "el los las es una para con por que del está son cómo qué su puede pero cuál dónde mi y",
    "it": "il lo gli di è per una che non sono della si può nel dove quale mio come",
    "pt": "os uma para com não é que do da em por são como seu você pode qual onde meu",
    "nl": "het een van en niet dat op voor met zijn wordt hoe naar uw ook kunt waar welke mijn",
    "pl": "nie jest się jak czy oraz przez dla są może że jaki gdzie mój",
    "tr": "bir ve için ile bu nasıl değil olarak nerede hangi",
    "sv": "och att är det som inte på hur var vilken min",
}
_OWNERS = Counter(word for words in _WORDS.values() for word in set(words.split()))
_LANGUAGES = MappingProxyType(
    {word: language for language, words in _WORDS.items() for word in words.split() if _OWNERS[word] == 1}
)
_language_of = _LANGUAGES.get
_MARKS = {
    language: tuple(
        mark
        for word in words.split()
        if _OWNERS[word] == 1
        for mark in ((f"{word.capitalize()} ",) if word in _ASKING else (f" {word} ",))
    )[:_MAX_MARKS]
    for language, words in _WORDS.items()
}
"""Words that show a language at a glance, as they stand within a text, or at the begin of a question."""


class LanguageCheck:
    """Compares answers with their questions. It tries the language of the latest pair first, which is fast."""

    def __init__(self) -> None:
        self._usual = _MARKS["en"]

    def differs(self, question: str, answer: str) -> bool:
        """Whether an answer is surely in another script, or another language of the table, than its question."""
        question, answer = question[:_CHARS], answer[:_CHARS]
        for mark in self._usual:
            if mark in question:
                for other in self._usual:
                    if other in answer:
                        return False
                break
        if not (question.isascii() and answer.isascii()):
            asked, answered = _script(question), _script(answer)
            if asked != _LATIN or answered != _LATIN:
                return asked is not None and answered is not None and asked != answered
        answered = _language(answer, _MIN_WORDS)
        if answered is None:
            return False
        asked = _language(question, 1) or answered
        self._usual = _MARKS[asked]
        return asked != answered


def _script(text: str) -> str | None:
    """The script of most letters; None where letters are few."""
    scripts = [_script_of(char) for char in text[:: max(1, len(text) // _SAMPLED)] if char.isalpha()]
    if len(scripts) < _MIN_LETTERS:
        return None
    script, times = Counter(scripts).most_common(1)[0]
    return script if 2 * times > len(scripts) else None


@lru_cache(4096)
def _script_of(char: str) -> str:
    return _SCRIPTS[bisect_right(_FROM, ord(char)) - 1][1]


def _language(text: str, least: int) -> str | None:
    """The language of at least so many small words, and of most of them; None where there is none."""
    known = [*filter(None, map(_language_of, text.lower().split()))]
    if len(known) < least:
        return None
    language, times = Counter(known).most_common(1)[0]
    return language if 4 * times >= 3 * len(known) else None
