"""Repeated answers: the same answer of a route to different questions, in a table of bounded size."""

from __future__ import annotations

SLOTS = 1 << 12


class RepeatedAnswers:
    """Remembers the newest answers by hash, so that one that comes again for another question is noticed.

    A later answer in the same slot replaces an earlier one, so of answers that are far apart only some are noticed. The
    table belongs to a process: after a start it is empty.
    """

    def __init__(self) -> None:
        self._answers = [0] * SLOTS
        self._questions = [0] * SLOTS

    def add(self, route: str, question: str, answer: str) -> bool:
        """Remember an answer. Returns whether the same route gave the same one to another question.

        >>> known = RepeatedAnswers()
        >>> known.add("a", "Why?", "So."), known.add("a", "When?", "So."), known.add("b", "How?", "So.")
        (False, True, False)
        """
        given, asked = hash((route, answer)), hash(question)
        slot = given % SLOTS
        repeated = self._answers[slot] == given and self._questions[slot] != asked
        self._answers[slot], self._questions[slot] = given, asked
        return repeated
