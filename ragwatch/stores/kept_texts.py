"""Which texts are kept and indexed, as the options of a store say, and what remains of a verdict without texts."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from ragwatch.stores.encryption import TextCipher

TEXT_SEARCH = "Whether words of questions and answers are indexed for searches; never with `encryption`."


class Texts(StrEnum):
    """Texts of which answers are kept after judging."""

    ALL = "all"
    FAILING = "failing"
    NONE = "none"


class Rules(NamedTuple):
    """What is kept and indexed."""

    texts: Texts
    cipher: TextCipher | None
    words_off: str | None = None
    """Why the words of texts are not indexed; None if they are."""

    def keeps_words(self, *, fails: bool) -> bool:
        """Whether the words of an answer are indexed: its texts are kept for good, and in the clear."""
        return self.words_off is None and (self.texts is Texts.ALL or fails)


def rules_of(texts: Texts, cipher: TextCipher | None, *, text_search: bool) -> Rules:
    """Return what is indexed under a configuration.

    >>> rules_of(Texts.NONE, None, text_search=True).words_off
    'no texts are kept (store.texts: none)'
    """
    off = None
    if not text_search:
        off = "words are not indexed (store.text_search: false)"
    elif texts is Texts.NONE:
        off = "no texts are kept (store.texts: none)"
    elif cipher is not None:
        off = "texts are encrypted (store.encryption), and an index would contain their words"
    return Rules(texts, cipher, off)


def without_texts(line: Mapping[str, object], identity: str | None = None) -> dict[str, object]:
    """Return a verdict line without texts, and with an identity, without ids: the key stands for that of the sample.

    >>> line = {"id": "r1", "claims": [{"text": "Cats purr.", "evidence": "purr", "start": 0}], "missing": ["why"]}
    >>> without_texts(line)["claims"], without_texts(line, "key")["id"]
    ([{'text': '', 'evidence': None, 'start': 0}], 'key')
    """
    kept = dict(line)
    kept["claims"] = _each(line.get("claims"), text="", evidence=None)
    kept["missing"] = []
    if criteria := line.get("criteria"):
        kept["criteria"] = _each(criteria, quote=None)
    if isinstance(reference := line.get("reference"), Mapping):
        statements = _each(reference.get("statements"), text="", quotes=[], missing=[])
        kept["reference"] = {**reference, "missing": [], **({"statements": statements} if statements else {})}
    if identity is not None:
        kept["id"] = identity
        kept["contexts"] = _each(line.get("contexts"), id=None)
    return kept


def _each(items: object, **instead: str | list[str] | None) -> list[dict[str, object]]:
    """The objects of a list, with other values for some of their fields."""
    return [{**item, **instead} for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
