"""`ragwatch rejudge`: stored answers are read by another judge, by this process or by the ragwatch that runs."""

import asyncio
import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest
from click.testing import Result
from support.command_line import command, refused
from support.kit import AT, a_draw, a_reading, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE

from ragwatch.commands.rejudge import MAX_RETRIES, RejudgeTotals, read_answers
from ragwatch.commands.rejudge_plan import RejudgeCost, cost_of, plan_of
from ragwatch.config import load
from ragwatch.daemon import Daemon
from ragwatch.errors import RagwatchError
from ragwatch.offline.judge import build_judge, judge_named
from ragwatch.pipeline.reading import RejudgeOutcome, RejudgeRequest
from ragwatch.ports import Erasure, Query, RejudgeQuery
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.verdict import Usage
from ragwatch.stores.sqlite.store import SqliteStore

VERSION = judge_named(None, "lexical").version
PAID = (
    "{name: second, kind: openai, model: m, base_url: 'http://127.0.0.1:1/v1', api_key: '0', max_chars: 20000,"
    " prices: {input: 1.0, output: 1.0}, budget: {usd_per_day: 5}}"
)


def a_config(folder: Path, second: str = "{name: second, kind: lexical, probability: 0.1}", more: str = "") -> Path:
    """A configuration with two judges, and a state with four answers that the first one has read."""
    store = SqliteStore(folder / "state")
    draws = [a_draw(name, at=AT - place) for place, name in enumerate("abcd")]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    store.close()
    path = folder / "ragwatch.yaml"
    path.write_text(
        f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nroutes: [search]\n"
        f"sources: [{{kind: tail, name: other, path: '{folder}/*.jsonl'}}]\n"
        f"judges: [{{name: embedded, kind: lexical}}, {second}]\n{more}"
    )
    return path


def run(path: Path, *arguments: str) -> Result:
    """The command, over the whole time."""
    words = ["rejudge", "--config", str(path), "--judge", "second", "--since", "2023-01-01", *arguments]
    return command(*words)


def read_by(folder: Path, judge: str = "second") -> dict[str, float]:
    """Probability of each stored verdict of a judge, by id."""
    store = SqliteStore(folder / "state")
    try:
        return {row.verdict.id: row.verdict.probability for row in store.find(Query(judge=judge))}
    finally:
        store.close()


def test_all_answers_are_read_once(tmp_path: Path) -> None:
    """Nothing is asked, because nothing is paid; a second run finds nothing more to read."""
    path = a_config(tmp_path)
    result = run(path)
    assert (result.return_value, result.stdout) == (0, "4 answers read by second\n"), result.exception
    assert result.stderr.splitlines() == [
        "4 answers of judge embedded, from 2023-01-01 00:00 UTC to now",
        "  4 are to be read",
        "cost: nothing: the judge is not paid for",
    ]
    assert read_by(tmp_path) == dict.fromkeys("abcd", 1.0)
    again = run(path)
    assert (again.return_value, again.stdout) == (3, "")
    assert "4 were read in an earlier run (4 lexical-" in again.stderr
    assert "nothing to read; choose an earlier --since, or answers of another judge" in again.stderr


def test_a_sample_is_continued_with_its_probability(tmp_path: Path) -> None:
    """The same answers are chosen however many of them were read; each is drawn with the share of all."""
    path = a_config(tmp_path)
    store = SqliteStore(tmp_path / "state")
    query = RejudgeQuery("second", "embedded", 0.0, math.inf)
    first = plan_of(store, query, 2)
    wider = plan_of(store, query, 3)
    store.add_rejudged([a_verdict(a_draw(), reading=a_reading("second"))], charted_before=0.0)
    store.close()
    assert (len(first.keys), first.share) == (2, 0.5)
    assert wider.keys[:2] == first.keys
    assert run(path, "--sample", "2").stdout == "2 answers read by second\n"
    assert set(read_by(tmp_path).values()) == {0.5}
    again = run(path, "--sample", "3")
    assert again.stdout == "1 answers read by second\n"
    assert "1 are to be read, 75 % of those not assigned, chosen at random" in again.stderr
    assert sorted(read_by(tmp_path).values()) == [0.5, 0.5, 0.75]
    assert run(path, "--sample", "2").return_value == 3
    assert "0 answers of judge gone" in run(path, "--of", "gone").stderr  # it need not be configured any more


def test_what_is_left_out_and_what_fails_is_counted(tmp_path: Path) -> None:
    """With reasons; what could not be read is tried again, and the exit code is 1."""
    path = a_config(tmp_path)
    store = SqliteStore(tmp_path / "state")
    done, queued, empty = a_draw("done"), a_draw("queued"), a_draw("empty", answer=" ")
    store.admit(an_admission(done, queued, judges=("embedded", "second")))
    store.admit(an_admission(empty))
    store.settle([a_verdict(draw) for draw in (done, queued)])
    store.settle([a_verdict(empty, an_evidence()), a_verdict(done, reading=a_reading("second", "old"))])
    store.forget(Erasure(ids=frozenset({"a"})))
    store.close()
    for read in (3, 0):
        result = run(path)
        assert result.return_value == 1, result.exception
        assert result.stdout == (
            f"{read} answers read by second\n1 could not be read: empty_answer 1; the last one: the answer is empty\n"
        )
    assert result.stderr.splitlines()[:5] == [
        "7 answers of judge embedded, from 2023-01-01 00:00 UTC to now",
        "  2 were assigned to second when they were drawn (1 not read yet, 1 old)",
        f"  3 were read in an earlier run (3 {VERSION})",
        "  1 have no texts any more",
        "  1 are to be read",
    ]


def test_the_cost_says_what_it_comes_from(tmp_path: Path) -> None:
    """Past readings of the same version give what to expect; without prices, it is unknown."""
    path = a_config(tmp_path, PAID)
    store = SqliteStore(tmp_path / "state")
    for name, version, usd in (("x", "old", 9.0), ("y", "new", 0.25)):
        store.admit(an_admission(a_draw(name), judges=("second",)))
        store.settle([a_verdict(a_draw(name), reading=a_reading("second", version, Usage(10, 5, usd)))])
    store.close()
    config = load(path)
    judge = config.judges[1]
    version = build_judge(judge).version
    with closing(SqliteStore(tmp_path / "state")) as store:
        store.admit(an_admission(a_draw("z"), judges=("second",)))
        store.settle([a_verdict(a_draw("z"), reading=a_reading("second", version, Usage(10, 5, 0.25)))])
    assert cost_of(config, judge, [], 8).expected == 2.0
    assert str(RejudgeCost(is_paid=True, expected=2.0, highest=12.0)) == (
        "about 2.00 USD, as its last readings; at most about 12.00 USD, from the prompts of some"
    )
    assert str(RejudgeCost(is_paid=True)).startswith("unknown")


def test_a_dry_run_reads_nothing(tmp_path: Path) -> None:
    """With route and time as filters; what it would cost is told, and the budget."""
    path = a_config(tmp_path, PAID)
    result = run(path, "--dry-run", "--route", "search", "--until", "2023-11-14T22:13:20")
    assert result.return_value == 0, result.exception
    assert (
        "3 answers of judge embedded on route search, from 2023-01-01 00:00 UTC to 2023-11-14 22:13 UTC"
        in result.stderr
    )
    assert "cost: at most about 0." in result.stderr
    assert "budget of the judge, for this and its other readings: 5 USD in 24 h" in result.stderr
    assert read_by(tmp_path) == {}


def test_what_is_refused_is_told(tmp_path: Path) -> None:
    """A wrong word by name, with the value; money is not spent unasked; texts of failing answers alone are too few."""
    path = a_config(tmp_path)
    for words, named in (
        (["--judge", "other"], "--judge other: is not a judge"),
        (["--of", "second"], "--judge second: has read its own answers already"),
        (["--route", "unknown"], "--route unknown: is not configured"),
        (["--since", "soon"], "--since: not a time"),
        (["--since", "800000d"], "--since 800000d: is not in the years 1 to 9999"),
        (["--until", "1e300"], "--until 1e300: is not in the years 1 to 9999"),
        (["--until", "2000d"], "--until 2000d: is not later than --since"),
    ):
        assert refused(run(path, *words)).startswith(named)
    assert refused(run(a_config(tmp_path, PAID))).startswith("--yes: is missing")
    failing = a_config(tmp_path, more="store: {kind: sqlite, texts: failing}\n")
    assert refused(run(failing)).startswith("store.texts: is failing, and rejudging needs")


@contextmanager
def running(path: Path) -> Iterator[tuple[Daemon, str]]:
    """A daemon in another thread, and its address."""
    started: SimpleQueue[tuple[Daemon, str, asyncio.AbstractEventLoop]] = SimpleQueue()

    async def serve() -> None:
        daemon, loop = Daemon(load(path), path=path), asyncio.get_running_loop()
        await daemon.run(lambda address: started.put((daemon, address, loop)))

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    daemon, address, loop = started.get(timeout=DEADLINE)
    try:
        yield daemon, address
    finally:
        loop.call_soon_threadsafe(daemon.stop)
        thread.join(DEADLINE)


@pytest.mark.costly
def test_the_running_ragwatch_reads_them(tmp_path: Path) -> None:
    """With its own judge and budget; its gauges and counters stay as they are."""
    path = a_config(tmp_path)
    with running(path) as (daemon, address):
        result = run(path, "--url", address)
        assert (result.return_value, result.stdout) == (0, "4 answers read by second\n"), result.exception
        tallies = daemon.store.tallies()
        assert tallies[Tally.REJUDGED, ("second",)] == 4
        assert (tallies[Tally.JUDGED, ("search", "second")], tallies[Tally.ASSIGNED, ("second",)]) == (0, 0)
        result = run(path, "--url", f"{address}/elsewhere", "--sample", "1")
        assert result.return_value == 3
    assert len(read_by(tmp_path)) == 4


def test_an_address_of_something_else_is_told(tmp_path: Path) -> None:
    """Where nobody listens, nothing was read."""
    result = run(a_config(tmp_path), "--url", "http://127.0.0.1:1")
    assert "no response" in refused(result, RagwatchError)
    assert result.stdout == "0 answers read by second\n"


async def test_what_is_left_is_tried_again_or_told() -> None:
    """An outage is waited for; a judge without budget ends the run at once, and one that never comes back, too."""
    asked: list[tuple[str, ...]] = []
    replies: list[RejudgeOutcome] = []

    async def read(request: RejudgeRequest, _: RejudgeOutcome) -> RejudgeOutcome:
        asked.append(request.keys)
        return replies.pop(0)

    async def totals_of(*outcomes: RejudgeOutcome) -> RejudgeTotals:
        replies[:], asked[:] = outcomes, []
        totals, steps = RejudgeTotals(), list[int]()
        await read_answers(list("abc"), RejudgeRequest("x", 1.0, ()), read, totals, steps.append, pause=no_pause)
        assert steps[-1] == totals.done
        return totals

    async def no_pause(_: float) -> None:
        return None

    def left(reason: str, *keys: str, stored: int = 0) -> RejudgeOutcome:
        outcome = RejudgeOutcome(stored=stored, left=keys, why=f"because {reason}")
        outcome.deferred[reason] = len(keys)
        return outcome

    back = await totals_of(left("unavailable", "b", "c", stored=1), RejudgeOutcome(stored=2))
    assert (back.stored, back.ended, asked) == (3, "", [("a", "b", "c"), ("b", "c")])
    broke = await totals_of(left("over_budget", "c", stored=2))
    assert (broke.stored, broke.ended) == (2, "because over_budget")
    gone = await totals_of(*(left("unavailable", "a", "b", "c") for _ in range(MAX_RETRIES + 1)))
    assert (gone.stored, gone.ended, len(asked)) == (0, "because unavailable", MAX_RETRIES + 1)
