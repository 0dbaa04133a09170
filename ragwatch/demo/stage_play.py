"""Stage play: service, users and misfortunes together, in threads of this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ragwatch.demo import canaries
from ragwatch.demo.breakage import MENDED, Breakage, Schedule
from ragwatch.demo.driver import Driver
from ragwatch.demo.endpoint import Endpoint
from ragwatch.demo.questions import ROUTES, handwritten, questions
from ragwatch.demo.service import RagService
from ragwatch.errors import RagwatchError


class Demo:
    """A RAG service that answers real questions, for ragwatch to watch.

    Args:
        log_path: The log it writes, one canonical JSONL record an answer.
        port: Port of the service on the loopback interface; 0 lets the system choose.
        rate: Questions a second.
        seed: Decides the order of the questions.
        degrade_after: Seconds of health before the breakages follow one another; None for none.
        breakage_seconds: How long each lasts, and the healthy time after each.
        on_event: Told, in words, whenever a release changes; called from the driver's thread.

    Raises:
        RagwatchError: The port is taken, or this Python lacks documentation strings or full-text search.
    """

    routes = ROUTES

    def __init__(
        self,
        log_path: Path,
        *,
        port: int = 0,
        rate: float = 8.0,
        seed: int = 7,
        degrade_after: float | None = None,
        breakage_seconds: float = 20.0,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.log_path = log_path
        self.service = RagService(log_path)
        self._schedule = Schedule(degrade_after, breakage_seconds)
        self._on_event = on_event
        try:
            self._endpoint = Endpoint(self.service, port)
        except RagwatchError:
            self.service.close()
            raise
        self._driver = Driver(
            self.address, questions(self.service.passages), rate=rate, seed=seed, before=self.follow_schedule
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """URL of the service."""
        return self._endpoint.address

    @property
    def asked(self) -> int:
        """Questions asked so far."""
        return self._driver.asked

    @property
    def failed(self) -> int:
        """Questions that got no answer."""
        return self._driver.failed

    @property
    def breakage(self) -> Breakage | None:
        """What is broken now; None while healthy."""
        return self.service.breakage

    def start(self) -> None:
        """Begin to serve, and to ask."""
        self._endpoint.start()
        self._driver.start()

    def stop(self) -> None:
        """Stop asking, then serving. The log stays."""
        self._driver.stop()
        self._endpoint.stop()
        self.service.close()

    def suite(self) -> dict[str, Any]:
        """Canaries for its retriever, as they stand in a configuration; to be had while it is healthy."""
        titles = {passage.title for passage in self.service.passages}
        known = (question for question in handwritten() if question.about in titles)
        found = canaries.canaries(known, lambda text, k: [hit.id for hit in self.service.search(text, k)])
        return canaries.suite(self.address, found)

    def ask(self, question: str) -> dict[str, Any]:
        """Answer and log one question without HTTP: `id`, `answer`, `contexts`, `trace_id`."""
        return self.service.ask(question)

    def break_it(self, kind: Breakage) -> None:
        """Deploy a bad release by hand, and announce it."""
        self.service.break_it(kind)
        self._on_event(kind.announcement)

    def mend(self) -> None:
        """Deploy the healthy release by hand, and announce it."""
        self.service.mend()
        self._on_event(MENDED)

    def follow_schedule(self, elapsed: float) -> None:
        """Deploy what the schedule holds for this moment, if it is not there yet."""
        due = self._schedule.at(elapsed)
        if due is self.breakage or self._schedule.degrade_after is None:
            return
        if due is None:
            self.mend()
        else:
            self.break_it(due)
