"""Vocabularies: the words of questions by route, learnt from the first questions and unchanged from then on.

Intake learns from the questions it has admitted, and a vocabulary is stored before it is used. So one that was used is
the same after a kill, and one that is still being learnt has lost the words of one batch at most, which changes no
count. Where several workers share a store, they learn one vocabulary together.
"""

from __future__ import annotations

import threading
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from ragwatch.ports import NoteStore, SavedState
from ragwatch.ports.capabilities import SharedStore
from ragwatch.statistics.text.vocabulary import SLOTS, NoveltyMeter, Vocabulary, learn

KIND = "vocabulary"


class Vocabularies:
    """The vocabularies of all routes, each complete after so many questions. Thread-safe: sources share them.

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
        """Continue with what an earlier process, or another worker, has stored."""
        for route in self._routes:
            with self._lock:
                self._load(route, self._store.recall(f"{KIND}/{route}"))

    def _load(self, route: str, state: SavedState | None) -> None:
        try:
            vocabulary = Vocabulary() if state is None else _from_state(state)
        except (KeyError, TypeError, ValueError, zlib.error):  # stored by a version that counted differently
            return
        if state is None or not state.get("learnt"):
            self.meters.pop(route, None)
            self._learning[route] = vocabulary
        elif self.mark(route) != vocabulary.mark:
            self.meters[route] = NoveltyMeter(vocabulary)
            self._learning.pop(route, None)

    def learn(self, questions: Mapping[str, Sequence[str]]) -> None:
        """Learn from the questions of one batch, by route. A complete vocabulary is used from the next batch on.

        Raises:
            StoreError: It could not be written; then nothing was learnt.
        """
        with self._lock:
            for route, texts in questions.items():
                if route in self.meters:  # another source was faster
                    continue
                vocabulary, complete = self._learn(route, texts)
                self._learning[route] = vocabulary
                if complete:
                    self.meters[route] = NoveltyMeter(self._learning.pop(route))

    def _learn(self, route: str, texts: Sequence[str]) -> tuple[Vocabulary, bool]:
        """Return the vocabulary of a route after further questions, which is stored, and whether it is complete."""
        if not isinstance(self._store, SharedStore):
            vocabulary = learn(self._learning.get(route, Vocabulary()), texts)
            complete = vocabulary.questions >= self._questions
            self._store.remember(f"{KIND}/{route}", _to_state(vocabulary, learnt=complete))
            return vocabulary, complete
        state = self._store.revise(f"{KIND}/{route}", partial(self._with_questions, texts))
        return _from_state(state), state["learnt"]

    def _with_questions(self, texts: Sequence[str], state: SavedState | None) -> SavedState | None:
        """A stored state after further questions; None for one that is complete, and stays."""
        before = Vocabulary()
        with suppress(KeyError, TypeError, ValueError, zlib.error):  # as in `resume`
            before = Vocabulary() if state is None else _from_state(state)
            if state is not None and state.get("learnt"):
                return None
        vocabulary = learn(before, texts)
        return _to_state(vocabulary, learnt=vocabulary.questions >= self._questions)

    def renew(self, route: str) -> None:
        """Drop the vocabulary of a route and learn another one.

        Raises:
            StoreError: It could not be written; then nothing has changed.
        """
        with self._lock:
            self._store.remember(f"{KIND}/{route}", _to_state(Vocabulary(), learnt=False))
            self._learning[route] = Vocabulary()
            self.meters.pop(route, None)

    def mark(self, route: str) -> str | None:
        """Fingerprint of the vocabulary in use on a route; None while one is being learnt."""
        meter = self.meters.get(route)
        return None if meter is None else meter.vocabulary.mark


def _to_state(vocabulary: Vocabulary, *, learnt: bool) -> SavedState:
    counts = b64encode(zlib.compress(vocabulary.counts)).decode()
    return {"counts": counts, "questions": vocabulary.questions, "learnt": learnt}


def _from_state(state: SavedState) -> Vocabulary:
    counts = zlib.decompress(b64decode(state["counts"]))
    if len(counts) != SLOTS:
        raise ValueError(f"{len(counts)} slots instead of {SLOTS}")
    return Vocabulary(counts, int(state["questions"]))
