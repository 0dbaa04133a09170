"""Vocabularies: what questions are made of, by route, learnt from the first of all requests and then left as it is.

Intake learns what it has admitted, and keeps it before it is used: a vocabulary that was used once is the same after a
kill, and one that is still being learnt has at most lost the words of one batch, which counts nobody wrongly.
"""

from __future__ import annotations

import threading
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from ragwatch.core.vocabulary import SLOTS, NoveltyMeter, Vocabulary, learn
from ragwatch.ports import NoteStore

KIND = "vocabulary"


class Vocabularies:
    """The vocabularies of all routes. Sources share them, each from a thread of its own.

    `meters` holds those that are learnt, by route.

    Args:
        questions: From how many one is learnt.
        routes: All values of the label `route`.
        store: Keeps them.
    """

    def __init__(self, questions: int, routes: Sequence[str], *, store: NoteStore) -> None:
        self._questions = questions
        self._routes = routes
        self._store = store
        self._turn = threading.Lock()
        self._learning: dict[str, Vocabulary] = {}
        self.meters: dict[str, NoveltyMeter] = {}

    def resume(self) -> None:
        """Continue where an earlier process stopped.

        Raises:
            StoreError: The store cannot be read.
        """
        for route in self._routes:
            kept = self._store.recall(f"{KIND}/{route}")
            try:
                found = Vocabulary() if kept is None else _unpacked(kept)
            except (KeyError, TypeError, ValueError, zlib.error):  # kept by a version that counted otherwise
                continue
            if kept is not None and kept.get("learnt"):
                self.meters[route] = NoveltyMeter(found)
            else:
                self._learning[route] = found

    def learn(self, questions: Mapping[str, Sequence[str]]) -> None:
        """Learn from the questions of one batch, by route. What is complete is kept, and used from the next batch on.

        Raises:
            StoreError: It could not be kept; then nothing was learnt.
        """
        with self._turn:
            for route, asked in questions.items():
                if route in self.meters:  # another source was faster
                    continue
                found = learn(self._learning.get(route, Vocabulary()), asked)
                complete = found.questions >= self._questions
                self._keep(route, found, learnt=complete)
                self._learning[route] = found
                if complete:
                    self.meters[route] = NoveltyMeter(self._learning.pop(route))

    def renew(self, route: str) -> None:
        """Learn anew what is ordinary on a route.

        Raises:
            StoreError: It could not be written; then all is as it was.
        """
        with self._turn:
            self._keep(route, Vocabulary(), learnt=False)
            self._learning[route] = Vocabulary()
            self.meters.pop(route, None)

    def mark(self, route: str) -> str | None:
        """Tells which vocabulary is in use on a route; None while one is learnt."""
        found = self.meters.get(route)
        return None if found is None else found.vocabulary.mark

    def _keep(self, route: str, found: Vocabulary, *, learnt: bool) -> None:
        packed = b64encode(zlib.compress(found.counts)).decode()
        state = {"counts": packed, "questions": found.questions, "learnt": learnt}
        self._store.remember(f"{KIND}/{route}", state)


def _unpacked(kept: Mapping[str, Any]) -> Vocabulary:
    counts = zlib.decompress(b64decode(kept["counts"]))
    if len(counts) != SLOTS:
        raise ValueError(f"{len(counts)} slots instead of {SLOTS}")
    return Vocabulary(counts, int(kept["questions"]))
