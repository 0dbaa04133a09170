"""The training scripts are no package: their folder goes on the path, and a small corpus and thesaurus stand in."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "training"))

from synthesis.corpus import Answer, Corpus, passage
from synthesis.lexicon import Lexicon
from synthesis.scene import World

TEXTS = {
    "Mill Lane": (
        "Mill Lane is a 1987 British drama film directed by James Porter and written by Anna Reed. It was filmed in"
        " Norway because the old harbour had burned down. The film was released on 4 May 1987, and the critics praised"
        " the music. It sold 412,000 tickets before the cinema closed. Most visitors may have seen it twice."
    ),
    "James Porter": (
        "James Porter (12 March 1941 – 9 June 2003) was a British director and painter from Leeds. He married the"
        " singer Susan Hale in 1966. James Porter taught Peter Lund in Sweden. He was not a member of the guild."
    ),
    "Tarn Bridge": (
        "Tarn Bridge is a wooden bridge in Scotland. The bridge was built by Thomas Grey in 1822. It is longer than"
        " the old bridge, and about 300 people cross it every day. It was closed after the flood of 1954."
    ),
    "Brack": (
        "Brack is a village in Finland. The village has 900 inhabitants, three shops and a small school. Brack was"
        " founded in 1740 by Karl Brand, who came from Poland. The school won a large prize in 2011."
    ),
}
WORDS = {
    "N": "film cinema ticket critic music harbour director painter singer member guild bridge flood people village"
    " inhabitant shop school prize day visitor drama actor nurse hotel",
    "V": "direct write film burn release praise sell close see marry teach build cross found come win open",
    "J": "old wooden small large long british young tiny",
    "R": "twice soon",
}


class Book:
    """A thesaurus of a few words: every listed word is met often, and nothing is known of their meanings."""

    def known(self, word: str, pos: str) -> bool:
        """Whether it is listed."""
        return word in WORDS[pos].split()

    def count(self, word: str, pos: str) -> int:
        """Often, when it is listed."""
        return 50 if self.known(word, pos) else 0

    def synonyms(self, word: str, pos: str) -> tuple[str, ...]:
        """One pair."""
        return ("tiny",) if (word, pos) == ("small", "J") else ()

    def antonyms(self, word: str, pos: str) -> tuple[str, ...]:
        """One pair."""
        return ("young",) if (word, pos) == ("old", "J") else ()

    def above(self, word: str, pos: str) -> tuple[str, ...]:  # noqa: ARG002
        """Nothing."""
        return ()

    def cousins(self, word: str, pos: str) -> tuple[str, ...]:  # noqa: ARG002
        """Nothing."""
        return ()


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Four passages on neighbouring matters and an answer over two of them."""
    ids = {title: f"own:{number}" for number, title in enumerate(TEXTS)}
    passages = tuple(
        passage(ids[title], title, text, tuple(other for other in ids.values() if other != ids[title]))
        for title, text in TEXTS.items()
    )
    answer = "Tarn Bridge is a wooden bridge in Scotland that was built by Thomas Grey in 1822."
    return Corpus(passages, (Answer("own:answer", answer, (TEXTS["Tarn Bridge"], TEXTS["Brack"])),))


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """Our own word lists before a small thesaurus."""
    return Lexicon(Book())


@pytest.fixture(scope="session")
def world(corpus: Corpus, lexicon: Lexicon) -> World:
    """The corpus, read."""
    return World(corpus, lexicon)
