"""Vocabularies: the words of questions by route, learnt from the first questions and unchanged from then on.

Intake learns from the questions it has admitted, and a vocabulary is stored before it is used. So one that was used is
the same after a kill, and one that is still being learnt has lost the words of one batch at most, which changes no
count. Where several workers share a store, they learn one vocabulary together.
"""

import threading
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
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
        self.meters: dict[str, NoveltyMeter] = {}

    def resume(self) -> None:
        """Continue with what an earlier process, or another worker, has stored."""
        for route in self._routes:
            with self._lock:
                state = self._store.recall(f"{KIND}/{route}")
                try:
                    vocabulary = Vocabulary() if state is None else _from_state(state)
                except (KeyError, TypeError, ValueError, zlib.error):  # stored by a version that counted differently
                    continue
                if state is None or not state.get("learnt"):
                    self.meters.pop(route, None)
                elif self.mark(route) != vocabulary.mark:
                    self.meters[route] = NoveltyMeter(vocabulary)

    def learn(self, questions: Mapping[str, Sequence[str]]) -> None:
        """Learn from the questions of one batch, by route. A complete vocabulary is used from the next batch on.

        Raises:
            StoreError: It could not be written; then nothing was learnt.
        """
        with self._lock:
            for route, texts in questions.items():
                if route not in self.meters:  # else another source was faster
                    state = self._revised(f"{KIND}/{route}", partial(self._with_questions, texts))
                    if state["learnt"]:
                        self.meters[route] = NoveltyMeter(_from_state(state))

    def _revised(self, name: str, change: Callable[[SavedState | None], SavedState | None]) -> SavedState:
        """Replace a stored state by what `change` makes of it; None leaves it. Returns what is stored now."""
        if isinstance(self._store, SharedStore):
            return self._store.revise(name, change)
        before = self._store.recall(name)
        after = change(before)
        if after is None:
            return before
        self._store.remember(name, after)
        return after

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
