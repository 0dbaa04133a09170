"""Driver: the demo's users. It asks question after question over HTTP, at an even rate."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from http.client import HTTPConnection, HTTPException
from threading import Event, Thread
from urllib.parse import urlsplit

from ragwatch.demo.questions import Question

_TIMEOUT = 10.0


class Driver:
    """Asks the questions in a shuffled order, over and over, from a thread of its own.

    Args:
        address: URL of the service.
        questions: What is asked.
        rate: Questions a second.
        seed: Two drivers with the same seed ask in the same order.
        before: Called with the seconds since the start before each question.
        clock: Seconds that never go backward.
    """

    def __init__(
        self,
        address: str,
        questions: Sequence[Question],
        *,
        rate: float = 8.0,
        seed: int = 7,
        before: Callable[[float], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asked = 0
        self.failed = 0
        self._connection = HTTPConnection(urlsplit(address).netloc, timeout=_TIMEOUT)
        self._questions = endless(questions, seed)
        self._pause = 1.0 / rate
        self._before = before
        self._clock = clock
        self._began = clock()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="demo-driver", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the question under way and ask no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._connection.close()

    def step(self) -> None:
        """Ask the next question, and count how it went."""
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
        self._connection.close()  # the next question opens a fresh one
        return False

    def _run(self) -> None:
        due = self._clock()
        while not self._stopping.wait(max(0.0, due - self._clock())):
            self.step()
            # Falling behind (a laptop that slept) is not caught up: a burst would be no even rate.
            due = max(due + self._pause, self._clock() - 1.0)


def endless(questions: Sequence[Question], seed: int) -> Iterator[Question]:
    """Every question once in an order that a hash of seed and round decides, then all again in another order."""
    turn = 0
    while True:
        yield from sorted(questions, key=lambda question: _place(f"{seed} {turn} {question.text}"))
        turn += 1


def _place(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
