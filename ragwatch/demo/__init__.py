"""Runs a small RAG service with live traffic and injected faults, which `ragwatch demo` monitors.

`corpus`, `index` and `answerer` are the parts of `service`; `endpoint` serves it over HTTP; `questions` are asked.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self
from urllib.parse import urlsplit

from ragwatch.demo.corpus import CHUNK_WORDS
from ragwatch.demo.endpoint import Endpoint
from ragwatch.demo.questions import KS, ROUTES, Question, canaries, handwritten, questions
from ragwatch.demo.service import RECOVERED, Breakage, RagService
from ragwatch.demo.tokenizer import stable_hash

SEED = 7  # of the order of the questions
_TIMEOUT = 10.0


class Driver:
    """Asks a service the questions in shuffled order, repeatedly, in a background thread.

    `rate` is the number of questions per second; `before` is called with the seconds since the start before each one.
    """

    def __init__(
        self, address: str, questions: Sequence[Question], *, rate: float, before: Callable[[float], None]
    ) -> None:
        self.asked = 0
        self._connection = HTTPConnection(urlsplit(address).netloc, timeout=_TIMEOUT)
        self._questions = endless(questions, SEED)
        self._pause = 1.0 / rate
        self._before = before
        self._began = time.monotonic()
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

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            self._before(time.monotonic() - self._began)
            self.asked += 1
            self._post(next(self._questions))
            # A delay (a suspended laptop) is not caught up: a burst would not be a constant rate.
            due = max(due + self._pause, time.monotonic() - 1.0)

    def _post(self, question: Question) -> None:
        body = json.dumps({"question": question.text, "route": question.route})
        try:
            self._connection.request("POST", "/ask", body, {"Content-Type": "application/json"})
            self._connection.getresponse().read()
        except (OSError, HTTPException):
            self._connection.close()  # the next question opens a new one


def endless(questions: Sequence[Question], seed: int) -> Iterator[Question]:
    """Yields every question once per round, in an order determined by a hash of seed and round."""
    round_number = 0
    while True:
        yield from sorted(questions, key=lambda question: stable_hash(f"{seed} {round_number} {question.text}"))
        round_number += 1


class Schedule:
    """Schedule of the faults: a healthy phase, then each fault followed by a healthy phase of the same length.

    No fault is left out: one that begins late, because the machine was busy, delays those after it.

    >>> schedule = Schedule(10, 5)
    >>> [schedule.at(seconds) for seconds in (9, 10, 16, 40, 44, 45)]
    [None, <Breakage.VANISH: 'vanish'>, None, <Breakage.INVENT: 'invent'>, <Breakage.INVENT: 'invent'>, None]
    """

    def __init__(self, degrade_after: float, seconds: float) -> None:
        self._seconds = seconds  # of each fault, and of each healthy phase but the first
        self._phases: list[Breakage | None] = [phase for kind in Breakage for phase in (kind, None)]
        self._current: Breakage | None = None
        self._next: float | None = degrade_after  # time of the next change; None if there is none

    def at(self, elapsed: float, may_break: Callable[[], bool] = lambda: True) -> Breakage | None:
        """Fault `elapsed` seconds after the start; None while healthy. Ask for later and later times.

        `may_break` says whether the first fault may begin, once it is due; until then the first healthy phase goes on.
        """
        if self._next is None or elapsed < self._next:
            return self._current
        if len(self._phases) == 2 * len(Breakage) and not may_break():
            return None
        self._current = self._phases.pop(0)
        self._next = elapsed + self._seconds if self._phases else None
        return self._current


class Demo:
    """Runs a RAG service under load, for ragwatch to monitor; see `RagService` for its log and its errors."""

    routes = ROUTES

    def __init__(
        self,
        log_path: Path,
        *,
        rate: float = 8.0,  # questions per second
        degrade_after: float | None = None,  # seconds of the first healthy phase; None for no faults
        breakage_seconds: float = 20.0,  # of each fault, and of the healthy phase after it
        chunk_words: int = CHUNK_WORDS,
        may_break: Callable[[], bool] = lambda: True,  # until then the first healthy phase goes on
        on_event: Callable[[str], None] = lambda _: None,  # when the release changes, from the thread of the driver
    ) -> None:
        self.service = RagService(log_path, chunk_words=chunk_words)
        self._schedule = None if degrade_after is None else Schedule(degrade_after, breakage_seconds)
        self._may_break = may_break
        self._on_event = on_event
        self._endpoint = Endpoint(self.service)
        asked = questions(self.service.passages)
        self._driver = Driver(self.address, asked, rate=rate, before=self.follow_schedule)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """URL of the service."""
        return self._endpoint.address

    @property
    def asked(self) -> int:
        """Number of questions asked."""
        return self._driver.asked

    @property
    def breakage(self) -> Breakage | None:
        """Current fault; None while healthy."""
        return self.service.breakage

    def start(self) -> None:
        """Starts the server and the load."""
        self._endpoint.start()
        self._driver.start()

    def stop(self) -> None:
        """Stops the load, then the server. Keeps the log."""
        self._driver.stop()
        self._endpoint.stop()
        self.service.close()

    def suite(self) -> dict[str, Any]:
        """Builds the canary suite in the format of the configuration; call it while the service is healthy."""
        titles = {passage.title for passage in self.service.passages}
        answerable = (question for question in handwritten() if question.about in titles)
        items = canaries(answerable, lambda text, k: [hit.id for hit in self.service.search(text, k)])
        return {
            "suite": "docs",
            "schedule": "15s",
            "jitter": 1,
            "k": list(KS),
            "items": items,
            "probe": {
                "kind": "http",
                "url": f"{self.address}/search",
                "body": {"query": "{{ query }}", "k": "{{ k }}"},
                "contexts": "hits",
                "score": "similarity",
            },
        }

    def break_it(self, kind: Breakage) -> None:
        """Deploys a bad release and announces it."""
        self.service.break_it(kind)
        self._on_event(kind.announcement)

    def mend(self) -> None:
        """Deploys the healthy release and announces it."""
        self.service.mend()
        self._on_event(RECOVERED)

    def follow_schedule(self, elapsed: float) -> None:
        """Deploys the release that is due by the schedule, unless it is deployed already."""
        if self._schedule is None:
            return
        due = self._schedule.at(elapsed, self._may_break)
        if due is self.breakage:
            return
        if due is None:
            self.mend()
        else:
            self.break_it(due)
