"""For tests of message batches: a provider that takes them, and a process around it that can die at any instant."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from ragwatch.judges.llm.batch_judge import BatchLLMJudge
from ragwatch.judges.llm.failures import CallError
from ragwatch.judges.llm.options import CallOptions
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.provider import Completion, SentBatch
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.batching import BatchJudgingLoop
from ragwatch.pipeline.judging import JudgingRules
from ragwatch.pipeline.reading import JudgeSelfTests
from ragwatch.pipeline.sampling_control import StoredBudgetAccount
from ragwatch.ports import JudgeContext, LoopContext, Query
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry
from support.callers import PRICES, HandClock, ScriptedProvider, failed, said
from support.kit import JUDGE, Clock, a_draw, an_admission
from support.mortal import Fate, MortalConnection

FULLY = '{"address":"fully"}'
PRICE = (100 * 1.0 + 10 * 10.0) / 1e6 / 2  # of one entry: `callers.USAGE` at half of `callers.PRICES`


class Provider(ScriptedProvider):
    """Takes batches; each ends at the second look at it. It outlives us.

    Attributes:
        taken: Entries by batch.
        billed: How often each draw was paid, by its page's question.
        outcomes: What becomes of an entry, by a word on its page; each but the last one once.
        refuses: What is raised in place of taking the next batches.
        fate: Every call is an instant, before and behind what it does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.taken: dict[str, Sequence[tuple[str, Prompt]]] = {}
        self.looks: Counter[str] = Counter()
        self.created: dict[str, float] = {}
        self.outcomes: dict[str, list[Completion | CallError]] = {}
        self.told: dict[str, list[tuple[str, Completion | CallError]]] = {}
        self.refuses: list[CallError] = []
        self.silent = False
        self.listed_after = 0.0
        self.breaks_at: int | None = None
        self.lists_fail = 0
        self.clock = Clock()
        self.fate = Fate()

    async def submit(self, entries: Sequence[tuple[str, Prompt]]) -> str:
        """Take a batch."""
        self.fate.tick()
        if self.refuses:
            raise self.refuses.pop(0)
        name = f"batch-{len(self.taken)}"
        self.taken[name], self.created[name] = list(entries), self.clock.now
        self.told[name] = [(custom_id, self._outcome(ask)) for custom_id, ask in entries]
        self.fate.tick()
        if self.silent:
            self.silent = False
            raise failed("unreachable", "the line went dead", usage=None)
        return name

    def _outcome(self, ask: Prompt) -> Completion | CallError:
        for word, outcomes in self.outcomes.items():
            if word in ask.user:
                return outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        return said(FULLY)

    async def ended(self, batch: str) -> bool:
        """At the second look."""
        self.fate.tick()
        if batch not in self.taken:
            raise failed("misconfigured", "HTTP 404", retry=False)
        self.looks[batch] += 1
        return self.looks[batch] > 1

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Completion | CallError]]:
        """In another order."""
        for index, (custom_id, outcome) in enumerate(reversed(self.told[batch])):
            self.fate.tick()
            if index == self.breaks_at:
                self.breaks_at = None
                raise failed("unreachable", "the line went dead")
            yield custom_id, outcome

    async def recent(self, since: float) -> list[SentBatch]:
        """All of them."""
        self.fate.tick()
        if self.lists_fail:
            self.lists_fail -= 1
            raise failed("server", "HTTP 500")
        own = [SentBatch(name, self.created[name], len(self.taken[name])) for name in self.taken]
        return [batch for batch in own if since <= batch.created <= self.clock.now - self.listed_after]

    @property
    def entries(self) -> int:
        """All entries taken, and so paid where they succeeded."""
        return sum(map(len, self.taken.values()))


class Life:
    """A process: a store, a judge and its loop, on one state directory."""

    def __init__(
        self,
        state: Path,
        provider: Provider,
        *,
        telemetry: Telemetry | None = None,
        caps: Sequence[SpendingCap] = (),
        trials: JudgeSelfTests | None = None,
        quantity: Quantity = Quantity.ANSWER_RELEVANCY,
        **rules: Any,
    ) -> None:
        self.provider, self.clock = provider, provider.clock
        self.store = SqliteStore(state)
        self.store.engine._writer = MortalConnection(self.store.engine._writer, provider.fate)  # type: ignore[assignment]
        self.telemetry = telemetry or Telemetry()
        purse = StoredBudgetAccount(JUDGE, caps, self.store, self.clock)
        context = JudgeContext(self.telemetry, purse, self.clock, frozenset({quantity}))
        given = CallOptions.model_validate({"model": "scripted", "base_url": "http://127.0.0.1:9", "prices": PRICES})
        self.judge = BatchLLMJudge(JUDGE, "claude", provider, given, context, clock=HandClock(), rng=random.Random(1))
        whole = JudgingRules(**{"batch": 4, "max_age_seconds": 90 * 86400.0, **rules})
        self.loop = BatchJudgingLoop(
            self.judge, whole, LoopContext(self.store, self.telemetry, self.clock), self_tests=trials
        )

    async def work(self, hours: float = 3.0) -> None:
        """Step for so many hours, every five minutes."""
        end = self.clock.now + 3600 * hours
        while self.clock.now < end:
            while await self.loop.step():
                pass
            self.clock.now += 300.0

    def admit(self, *names: str, **parts: Any) -> None:
        """New draws, waiting from now on."""
        draws = [a_draw(name, question=f"What of {name}?", **parts) for name in names]
        self.store.admit(an_admission(*draws, cursor=names[0]) if not parts else an_admission(*draws))

    def reasons(self) -> dict[str, str | None]:
        """What became of each draw: None for judged."""
        return {each.verdict.id: each.verdict.reason for each in self.store.find(Query(limit=1000))}

    def close(self) -> None:
        """Release the state directory."""
        self.store.close()

    def spent(self) -> Cost:
        """All money set aside or paid."""
        return self.store.spent(JUDGE, 0.0)


def names(count: int) -> list[str]:
    """So many names, none of which stands in another."""
    return [f"r{index:02d}x" for index in range(count)]
