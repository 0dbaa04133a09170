"""Questions of the demo's users, written by hand or from templates over real names, and the canaries among them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from typing import Any

from ragwatch.demo import tokenizer
from ragwatch.demo.corpus import Passage
from ragwatch.demo.tokenizer import stable_hash

ROUTES = ("search", "support")
TEMPLATED = 160  # in addition to those written by hand
_UNANSWERABLE = "-"
_PLAIN = ("What does {} do?", "What is {} for?", "What is {}?")
_TASK = re.compile(
    r"^(?:add|change|check|close|compare|compute|convert|copy|create|decode|delete|encode|execute|extract|find|format"
    r"|generate|get|load|make|open|parse|print|read|register|remove|replace|run|save|send|set|sort|split|test|write)\b",
    re.IGNORECASE,
)
_TASK_QUESTION = re.compile(r"^how (?:do|can|could|should) (?:i|we)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a user."""

    text: str
    route: str  # route that it is sent to, one of `ROUTES`
    about: str | None  # qualified name of its subject; None if the documentation has no answer


def route_of(text: str) -> str:
    """Chooses the route of a question without one: `support` for questions about a task, else `search`.

    >>> route_of("How do I copy a file?"), route_of("What is a semaphore?")
    ('support', 'search')
    """
    return "support" if _TASK_QUESTION.match(text.strip()) else "search"


def handwritten() -> tuple[Question, ...]:
    """Reads the questions of `questions.txt`, in the order of the file."""
    lines = (files(__package__) / "questions.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return tuple(Question(text, route, None if about == _UNANSWERABLE else about) for route, about, text in rows)


def questions(passages: Iterable[Passage]) -> tuple[Question, ...]:
    """Returns all questions that these passages can answer, and a few unanswerable ones.

    Questions about objects that this Python version does not document (or names differently) are excluded: they would
    make healthy traffic look worse than it is.
    """
    corpus = tuple(passages)
    titles = {passage.title for passage in corpus}
    answerable = [question for question in handwritten() if question.about is None or question.about in titles]
    covered = {question.about for question in answerable}
    more = templated((passage for passage in corpus if passage.title not in covered), TEMPLATED)
    return tuple({question.text: question for question in (*more, *answerable)}.values())


def templated(passages: Iterable[Passage], count: int) -> tuple[Question, ...]:
    """Builds `count` questions from names and first sentences, half of them tasks; deterministic, by a hash."""
    selected: dict[str, list[Question]] = {route: [] for route in ROUTES}
    texts: set[str] = set()
    for passage in sorted(_askable(passages), key=lambda passage: stable_hash(passage.title)):
        plain = _PLAIN[stable_hash(passage.id) % len(_PLAIN)].format(passage.title)
        question = _task(passage) or Question(plain, ROUTES[0], passage.title)
        if question.text not in texts:  # such as close() of several classes
            selected[question.route].append(question)
            texts.add(question.text)
    half = count // len(ROUTES)
    return tuple(question for route in ROUTES for question in selected[route][:half])


def _askable(passages: Iterable[Passage]) -> Iterator[Passage]:
    for passage in passages:
        parts = passage.title.split(".")
        if passage.id.endswith("#0") and 2 <= len(parts) <= 3 and len(tokenizer.content(passage.body)) >= 4:
            yield passage


def _task(passage: Passage) -> Question | None:
    sentence = tokenizer.sentences(passage.body)[0].rstrip(".:").replace("`", "").replace("*", "")
    if not _TASK.match(sentence) or not 4 <= len(sentence.split()) <= 14:
        return None
    task = sentence[0].lower() + sentence[1:]
    ending = f" with {passage.title}" if stable_hash(task) % 2 else ""
    return Question(f"How do I {task}{ending}?", ROUTES[1], passage.title)


MAX_CANARIES = 20
KS = (1, 3, 5)


def canaries(asked: Iterable[Question], search: Callable[[str, int], Sequence[str]]) -> list[dict[str, Any]]:
    """Selects questions with the passage that answers each, in the format of the configuration; by a hash.

    `search` returns the ids of the k passages that the retriever finds. Questions that the healthy retriever misses are
    excluded, because a canary must detect a change.
    """
    selected = (
        question
        for question in sorted(asked, key=lambda question: stable_hash(f"canary {question.text}"))
        if question.about is not None and f"{question.about}#0" in search(question.text, KS[-1])
    )
    by_name = {question.about: question for question in islice(selected, MAX_CANARIES)}
    return [{"query": one.text, "expected": [f"{name}#0"], "name": name} for name, one in by_name.items()]
