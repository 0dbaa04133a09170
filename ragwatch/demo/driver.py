"""Generates load: asks questions over HTTP at a constant rate."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from threading import Event, Thread
from urllib.parse import urlsplit

from ragwatch.demo.questions import Question
from ragwatch.demo.stable_hash import stable_hash

SEED = 7  # of the order of the questions
_TIMEOUT = 10.0


class Driver:
    """Asks the questions in shuffled order, repeatedly, in a background thread.

    Args:
        address: URL of the service.
        questions: Questions to ask.
        rate: Questions per second.
        before: Called with the seconds since the start before each question.
        clock: Monotonic clock in seconds.
    """

    def __init__(
        self,
        address: str,
        questions: Sequence[Question],
        *,
        rate: float = 8.0,
        before: Callable[[float], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asked = 0
        self.failed = 0
        self._connection = HTTPConnection(urlsplit(address).netloc, timeout=_TIMEOUT)
        self._questions = endless(questions, SEED)
        self._pause = 1.0 / rate
        self._before = before
        self._clock = clock
        self._began = clock()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="demo-driver", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stops after the current question."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._connection.close()

    def step(self) -> None:
        """Asks the next question and counts the result."""
        self._before(self._clock() - self._began)
        question = next(self._questions)
        self.asked += 1
        if not self._post({"question": question.text, "route": question.route}):
            self.failed += 1

    def _post(self, body: dict[str, str]) -> bool:
        with suppress(OSError, HTTPException):
            self._connection.request("POST", "/ask", json.dumps(body), {"Content-Type": "application/json"})
            reply = self._connection.getresponse()
            reply.read()
            return reply.status == 200
        self._connection.close()  # the next question opens a new one
        return False

    def _run(self) -> None:
        due = self._clock()
        while not self._stopping.wait(max(0.0, due - self._clock())):
            self.step()
            # A delay (a suspended laptop) is not caught up: a burst would not be a constant rate.
            due = max(due + self._pause, self._clock() - 1.0)


def endless(questions: Sequence[Question], seed: int) -> Iterator[Question]:
    """Yields every question once per round, in an order determined by a hash of seed and round."""
    round_number = 0
    while True:
        yield from sorted(questions, key=lambda question: stable_hash(f"{seed} {round_number} {question.text}"))
        round_number += 1
