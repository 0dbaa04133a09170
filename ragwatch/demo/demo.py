"""Combines the service, the load generator and the schedule of faults, in threads of this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Self

from ragwatch.demo import canaries
from ragwatch.demo.breakage import RECOVERED, Breakage, Schedule
from ragwatch.demo.corpus import CHUNK_WORDS
from ragwatch.demo.driver import Driver
from ragwatch.demo.endpoint import Endpoint
from ragwatch.demo.questions import ROUTES, handwritten, questions
from ragwatch.demo.service import RagService


class Demo:
    """Runs a RAG service under load, for ragwatch to monitor.

    Args:
        log_path: Log file of the service, one canonical JSONL record per answer.
        rate: Questions per second.
        degrade_after: Seconds of the first healthy phase; None for no faults.
        breakage_seconds: Duration of each fault, and of the healthy phase after it.
        chunk_words: Size of the chunks that documents are split into, in words.
        may_break: Whether faults may begin; until then the first healthy phase goes on.
        on_event: Called with a message when the release changes, from the thread of the driver.

    Raises:
        RagwatchError: This Python has no docstrings or no full-text search.
    """

    routes = ROUTES

    def __init__(
        self,
        log_path: Path,
        *,
        rate: float = 8.0,
        degrade_after: float | None = None,
        breakage_seconds: float = 20.0,
        chunk_words: int = CHUNK_WORDS,
        may_break: Callable[[], bool] = lambda: True,
        on_event: Callable[[str], None] = lambda _: None,
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

    def suite(self) -> dict[str, object]:
        """Builds the canary suite in the format of the configuration; call it while the service is healthy."""
        titles = {passage.title for passage in self.service.passages}
        answerable = (question for question in handwritten() if question.about in titles)
        items = canaries.canaries(answerable, lambda text, k: [hit.id for hit in self.service.search(text, k)])
        return canaries.suite(self.address, items)

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
