"""Vocabularies: the words of questions by route, learnt from the first questions and unchanged from then on.

Intake learns from the questions it has admitted, and a vocabulary is stored before it is used. So one that was used is
the same after a kill, and one that is still being learnt has lost the words of one batch at most, which changes no
count.
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
    """The vocabularies of all routes. Thread-safe: sources share them.

    Args:
        questions: Number of questions after which a vocabulary is complete.
        routes: All values of the label `route`.
        store: Keeps them.

    Attributes:
        meters: Those that are complete, by route.
    """

    def __init__(self, questions: int, routes: Sequence[str], *, store: NoteStore) -> None:
        self._questions = questions
        self._routes = routes
        self._store = store
        self._lock = threading.Lock()
        self._learning: dict[str, Vocabulary] = {}
        self.meters: dict[str, NoveltyMeter] = {}

    def resume(self) -> None:
        """Continue with what an earlier process stored.

        Raises:
            StoreError: The store cannot be read.
        """
        for route in self._routes:
            state = self._store.recall(f"{KIND}/{route}")
            try:
                vocabulary = Vocabulary() if state is None else _from_state(state)
            except (KeyError, TypeError, ValueError, zlib.error):  # stored by a version that counted differently
                continue
            if state is not None and state.get("learnt"):
                self.meters[route] = NoveltyMeter(vocabulary)
            else:
                self._learning[route] = vocabulary

    def learn(self, questions: Mapping[str, Sequence[str]]) -> None:
        """Learn from the questions of one batch, by route. A complete vocabulary is used from the next batch on.

        Raises:
            StoreError: It could not be written; then nothing was learnt.
        """
        with self._lock:
            for route, texts in questions.items():
                if route in self.meters:  # another source was faster
                    continue
                vocabulary = learn(self._learning.get(route, Vocabulary()), texts)
                complete = vocabulary.questions >= self._questions
                self._save(route, vocabulary, learnt=complete)
                self._learning[route] = vocabulary
                if complete:
                    self.meters[route] = NoveltyMeter(self._learning.pop(route))

    def renew(self, route: str) -> None:
        """Drop the vocabulary of a route and learn another one.

        Raises:
            StoreError: It could not be written; then nothing has changed.
        """
        with self._lock:
            self._save(route, Vocabulary(), learnt=False)
            self._learning[route] = Vocabulary()
            self.meters.pop(route, None)

    def mark(self, route: str) -> str | None:
        """Fingerprint of the vocabulary in use on a route; None while one is being learnt."""
        meter = self.meters.get(route)
        return None if meter is None else meter.vocabulary.mark

    def _save(self, route: str, vocabulary: Vocabulary, *, learnt: bool) -> None:
        counts = b64encode(zlib.compress(vocabulary.counts)).decode()
        state = {"counts": counts, "questions": vocabulary.questions, "learnt": learnt}
        self._store.remember(f"{KIND}/{route}", state)


def _from_state(state: Mapping[str, Any]) -> Vocabulary:
    counts = zlib.decompress(b64decode(state["counts"]))
    if len(counts) != SLOTS:
        raise ValueError(f"{len(counts)} slots instead of {SLOTS}")
    return Vocabulary(counts, int(state["questions"]))
