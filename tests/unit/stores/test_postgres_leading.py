"""Leading over a real PostgreSQL: terms by the clock of the server, fenced writes, counters by worker."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.kit import AT, JUDGE, Clock, ListSource, a_batch, a_draw, a_line, a_verdict, an_admission
from support.patience import DEADLINE
from support.stores import sql

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.tally import Tallies, Tally
from ragwatch.errors import NotLeadingError, ReceivedMeanwhileError
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import Admission, Retention, StoredRun
from ragwatch.stores.postgres.connections import Target
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.telemetry import Telemetry

pytestmark = pytest.mark.costly
_OVER = "UPDATE leader SET until = clock_timestamp()"


def test_terms(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """One worker leads; another one when the time of the first is over, when it resigns, or by force."""
    one, two = worker(), worker()
    first = one.lead(60.0)
    assert (first, one.lead(60.0), two.lead(60.0)) == (first, first, None)
    sql(target, _OVER)
    assert first is not None
    second = two.lead(60.0)
    assert (second, one.lead(60.0)) == (first + 1, None)
    two.resign(second or 0)
    two.resign(first)  # a term that is over ends nothing
    assert (one.lead(60.0), two.lead(60.0, force=True), one.lead(60.0)) == (first + 2, first + 3, None)


def test_who_was_stopped_past_the_term_writes_nothing(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """Every write of the former leader is refused, whether or not another one leads by now; reading goes on."""
    one, two = worker(), worker()
    term = one.lead(60.0)
    led = one.fenced(lambda: term)
    led.remember("drift", {"seq": 1})
    sql(target, _OVER)
    run = StoredRun("drift", "x", AT, failing=True, body={})
    for write in (
        lambda: led.remember("drift", {"seq": 2}),
        lambda: led.record_run(run, Counter({(Tally.DRIFT_ALARMS, ("faithfulness", "search")): 1})),
        lambda: led.prune(Retention(30, 30, 1 << 40), now=AT),
    ):
        with pytest.raises(NotLeadingError):
            write()
    assert two.lead(60.0) is not None
    with pytest.raises(NotLeadingError):
        led.remember("drift", {"seq": 2})
    with pytest.raises(NotLeadingError):
        one.fenced(lambda: None).remember("drift", {"seq": 2})
    one.remember("own", {"seq": 3})
    assert (led.recall("drift"), two.runs("drift", "x", 9), two.tallies()) == ({"seq": 1}, [], {})


def test_no_term_begins_within_a_transaction_of_the_leader(
    target: Target, worker: Callable[..., PostgresStore]
) -> None:
    """A leader that is past its check, and slow, commits before the next one reads: nothing is missed."""
    one, two = worker(), worker()
    term = one.lead(60.0)
    led, began = one.fenced(lambda: term), list[int | None]()
    with led.engine.transaction() as writer:
        writer.execute("INSERT INTO states (name, body) VALUES ('drift', 'x')")
        thread = threading.Thread(target=lambda: began.append(two.lead(60.0, force=True)))
        thread.start()
        thread.join(0.2)
        assert began == []
    thread.join(DEADLINE)
    assert began == [(term or 0) + 1]
    assert sql(target, "SELECT 1 FROM states WHERE name = 'drift'") == [(1,)]


def test_counters_by_worker_add_up(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """What each has counted is its own, also after a restart; those of a worker that ended stay in the sum."""
    one, two = worker(name="one"), worker(name="two")
    draws = [a_draw(f"r{index}") for index in range(4)]
    one.admit(an_admission(*draws, tallies=Counter({(Tally.SEEN, ("app",)): 4})))
    two.settle([a_verdict(draw) for draw in draws[:3]])
    one.settle([a_verdict(draws[3])])
    parts: Tallies = Counter(one.own_tallies())
    parts.update(two.own_tallies())
    assert parts == one.tallies()
    assert (one.own_tallies()[Tally.SEEN, ("app",)], two.own_tallies()[Tally.JUDGED, ("search", JUDGE)]) == (4, 3)
    assert worker(name="two").own_tallies() == two.own_tallies()
    sql(target, "UPDATE workers SET seen = now() - interval '25 hours' WHERE name = 'two'")
    before = one.tallies()
    one.prune(Retention(1e6, 1e6, 1 << 40), now=AT)
    assert (two.own_tallies(), one.tallies()) == ({}, before)
    two.lead(1.0)  # it was only away: it counts under its number again
    two.settle([a_verdict(draws[0])])
    two.admit(an_admission(a_draw("later")))
    assert two.own_tallies()[Tally.DRAWN, ("search",)] == 1


class Receiving(ListSource):
    """A source of which two workers read the same records."""

    recognises_resent = True


class Slow(PostgresStore):
    """A worker that is overtaken by another one between its look-up of the ids and its admission."""

    overtaken: Callable[[], object] | None = None

    def admit(self, admission: Admission) -> int:
        """Be overtaken once, then admit."""
        if self.overtaken is not None:
            overtake, self.overtaken = self.overtaken, None
            overtake()
        return super().admit(admission)


async def test_records_that_two_workers_receive_count_once(
    target: Target, worker: Callable[..., PostgresStore], telemetry: Telemetry
) -> None:
    """Of the same records at two workers at once, one is seen and drawn, the other one is counted as resent."""
    slow, quick = Slow(target), worker()
    rules = IntakeRules(SamplingPlan(1.0, known_routes=frozenset({"search"})), {JUDGE: 1.0}, None, 1000)
    lines = [a_line("a"), a_line("b"), a_line("c")]
    intakes = [
        IntakeLoop(
            Receiving([a_batch(*some)]), canonical.read, rules, store=store, telemetry=telemetry, clock=Clock(AT)
        )
        for store, some in ((slow, lines), (quick, lines[:2]))
    ]
    slow.overtaken = intakes[1]._step
    assert await intakes[0].step()
    tallies = quick.tallies()
    assert [tallies[tally, ("app",)] for tally in (Tally.SEEN, Tally.RESENT)] == [3, 2]
    assert (tallies[Tally.DRAWN, ("search",)], tallies[Tally.REJECTED, ("app", "duplicate_id")]) == (3, 0)
    with pytest.raises(ReceivedMeanwhileError):
        quick.admit(replace(an_admission(), received=["c"]))
    slow.close()


def test_workers_learn_one_vocabulary(worker: Callable[..., PostgresStore]) -> None:
    """Questions of both count, a complete vocabulary is used by both, and one that is renewed is dropped by both."""
    one, two = (Vocabularies(10, ("search",), store=worker()) for _ in range(2))
    one.learn({"search": ["What do cats do?"] * 6})
    two.learn({"search": ["What do dogs do?"] * 6})
    assert (one.mark("search"), two.mark("search") is None) == (None, False)
    one.learn({"search": ["Why?"] * 6})
    assert one.mark("search") == two.mark("search")
    two.renew("search")
    one.resume()
    assert one.mark("search") is None
