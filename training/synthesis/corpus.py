"""Passages that pairs are made from: real texts of sets on which nothing is judged claim by claim.

Licences: HotpotQA and FanOutQA CC-BY-SA-4.0, MuSiQue CC-BY-4.0, CLAPNQ and mtRAG Apache-2.0, chunking_evaluation MIT.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwatch.judges.claims.sentences import spans

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
_SHORTEST, _LONGEST = 6, 60  # words of a sentence that is worth a claim
_PENN = (
    (re.compile(r" (?:-LRB-|\() "), " ("),
    (re.compile(r" (?:-RRB-|\))"), ")"),
    (re.compile(r"`` ?"), '"'),
    (re.compile(r" ?''"), '"'),
    (re.compile(r" ([,.;:!?%]|'s\b|n't\b|'re\b)"), r"\1"),
    (re.compile(r"\$ (?=\d)"), "$"),
    (re.compile(r"(?<=\w) [-–] (?=\w)"), "-"),
    (re.compile(r" @([-,.])@ "), r"\1"),
    (re.compile(r'"([^"]{1,80}?) ?"'), r'"\1"'),
)
_SPACE = re.compile(r"[ \t\r\f\v\u00a0]+|(?<=[a-z,]) ?\n ?(?=[a-z])")
_MARKUP = re.compile(r"<br>|\[([^\]]*)\]\([^)]*\)|https?://\S+|\*\*|^#+ ", re.MULTILINE)
_GLUED = re.compile(r"[a-z][.;:][A-Z]|[a-z][A-Z][a-z]+[A-Z]|[a-z]\d|\d[A-Z][a-z]|[A-Z]{2},|^\W")
_POINTER = re.compile(r"(?:For (?:more|further|additional) |See |Click|Note|Important|Possession limit|Figure|Table)")
_ODD = re.compile(r"\b20(?:1[39cd]|0[0-9a-f])[a-z ]|[|{}<>\\=_]|\.\.\.|\d \d \d|https?:")


@dataclass(frozen=True)
class Passage:
    """A passage and its sentences."""

    id: str  # source and number; the group of every pair made from it
    title: str  # title of the document, empty where it has none
    text: str  # the text
    sentences: tuple[tuple[int, int], ...]  # (start, end) of the sentences that may become claims
    # ids of passages on neighbouring matters (retrieved for the same question, or of the same document)
    near: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A sentence that a person wrote over passages."""

    group: str
    text: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class Corpus:
    """All passages, and the answers that people wrote over some of them."""

    passages: tuple[Passage, ...]
    answers: tuple[Answer, ...] = ()


def plain(text: str) -> str:
    """Text as people write it, where a treebank's spaces and quotes stood."""
    for pattern, new in _PENN:
        text = pattern.sub(new, text)
    return text


def passage(identifier: str, title: str, text: str, near: tuple[str, ...] = ()) -> Passage:
    """A passage with the sentences that may become claims."""
    text = _SPACE.sub(" ", text).strip()
    good = [(span.start, span.end) for span in spans(text) if not span.block and _usable(text[span.start : span.end])]
    return Passage(identifier, title, text, tuple(good), near)


def _usable(sentence: str) -> bool:
    words = sentence.split()
    if not _SHORTEST <= len(words) <= _LONGEST or sentence[-1] not in '."' or _ODD.search(sentence):
        return False
    if (
        _GLUED.search(sentence)
        or _POINTER.match(sentence)
        or not (sentence[0].isupper() or sentence[0] in '"0123456789')
    ):
        return False
    letters = sum(character.isalpha() or character == " " for character in sentence)
    return letters > 0.8 * len(sentence) and "?" not in sentence and sentence.count('"') % 2 == 0


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def shared(data: Path = DATA) -> Corpus:
    """The corpus of ../shared/data."""
    passages: dict[str, Passage] = {}
    answers: list[Answer] = []
    for item in (*_questions(data), *_canaries(data), *_clapnq(data, answers), *_tasks(data, answers)):
        passages.setdefault(_key(item.text), item)
    kept = tuple(item for item in passages.values() if item.sentences)
    return Corpus(kept, tuple(answers))


def _questions(data: Path) -> Iterator[Passage]:
    for name in ("hotpotqa", "musique"):
        for row in _rows(data / "relevance" / name / "sample100.jsonl"):
            near = tuple(f"{name}:{_key(text)}" for text in row["contexts"])
            titles = row["meta"].get("titles") or [""] * len(near)
            for identifier, title, text in zip(near, titles, row["contexts"], strict=True):
                others = tuple(other for other in near if other != identifier)
                yield passage(identifier, title, _quotes(text), others)


def _quotes(text: str) -> str:
    return text.replace("``", '"').replace(" ''", '"').replace("''", '"').replace(" - ", "-")


def _canaries(data: Path) -> Iterator[Passage]:
    for name in ("hotpotqa", "musique", "chunking_eval"):
        last = ""
        for row in _rows(data / "canary" / name / "corpus.jsonl"):
            title = "" if name == "chunking_eval" else row["title"]
            identifier = f"{name}:{_key(row['text'])}"
            near = (last,) if name == "chunking_eval" and last else ()
            text = plain(row["text"]) if row["title"] == "wikitexts" else _quotes(row["text"])
            yield passage(identifier, title, text, near)
            last = identifier


def _clapnq(data: Path, answers: list[Answer]) -> Iterator[Passage]:
    for row in _rows(data / "relevance" / "clapnq" / "dev.jsonl"):
        text = plain(" ".join(row["contexts"]))
        identifier = f"clapnq:{_key(text)}"
        yield passage(identifier, row["meta"].get("title") or "", text)
        if row["label"]["answerable"]:
            answers += _answers(identifier, row["answer"], (text,))


def _tasks(data: Path, answers: list[Answer]) -> Iterator[Passage]:
    for row in _rows(data / "relevance" / "mtrag_answerability.jsonl"):
        texts = tuple(plain(_MARKUP.sub(r" \1 ", text)) for text in row["contexts"])
        near = tuple(f"mtrag:{_key(text)}" for text in texts)
        for identifier, text in zip(near, texts, strict=True):
            yield passage(identifier, "", text, tuple(other for other in near if other != identifier))
        if row["label"]["answerability"] == "ANSWERABLE" and row["answer"] and texts:
            answers += _answers(f"mtrag:{row['id']}", row["answer"], texts)


def _answers(group: str, text: str, passages: tuple[str, ...]) -> Iterator[Answer]:
    clean = plain(_SPACE.sub(" ", text))
    for span in spans(clean):
        sentence = clean[span.start : span.end]
        if not span.block and _usable(sentence):
            yield Answer(group, sentence, passages)
