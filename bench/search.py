"""Measures searches over many stored answers in CPU time: page, JSON list and every filter; and what their index costs.

Usage: PYTHONPATH=. python bench/search.py [--store postgres] [--answers 100000] [--repeat 20]

For PostgreSQL (Debian's `postgresql`), the CPU time is that of this process and of the server's, and the answers are of
the last four days, each in a partition of its own.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ragwatch.model.evidence import Address, Cell, Claim, ClaimVerdict, ContextReading, Evidence
from ragwatch.model.sample import Context, Draw, Sample
from ragwatch.ports import Admission, Assignment
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.verdict import NO_USAGE, Reading, Verdict, judged
from ragwatch.stores.postgres.connections import connect
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.pages.samples_page import listing
from ragwatch.web.samples import query_of
from ragwatch.web.scope import PageScope

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.postgres import new_server
from support.stores import database

NOW = float(int(time.time()))
SPAN, STEP = 300_000.0, 3.0
LIMIT_SECONDS = 0.2
AT = NOW - SPAN - 1000.0
DAY = 86400.0
SCHEMA = "bench"
# As the server is installed, but with one process for each statement: its CPU time is measured.
SETTINGS = {"shared_buffers": "128MB", "autovacuum": "on", "max_parallel_workers_per_gather": "0", "jit": "on"}
Stores = SqliteStore | PostgresStore
Clock = Callable[[], float]
JUDGES = ("embedded",)
SEARCHES = {
    "none": "",
    "route, rare": "route=rare",
    "judge, unknown": "judge=none",
    "stage, rare": "stage=retrieval",
    "outcome, none": "outcome=unjudged",
    "below": "quantity=faithfulness&below=0.5",
    "above, none": "quantity=faithfulness&above=1",
    "worst first": "quantity=faithfulness&sort=worst",
    "worst first, low is good": "quantity=contradiction&sort=worst",
    "worst first, route rare": "quantity=faithfulness&sort=worst&route=rare",
    "worst first, never scored": "quantity=need_recall&sort=worst",
    "worst first, since": f"quantity=faithfulness&sort=worst&since={AT + 0.9 * SPAN}",
    "worst first, release": "quantity=faithfulness&sort=worst&metadata.release=v2",
    "worst first, words": "quantity=faithfulness&sort=worst&text=what",
    "since, until": f"since={AT + 40_000}&until={AT + 50_000}",
    "labelled": "labelled=yes",
    "disputed": "disputed=yes",
    "not disputed, stage rare": "disputed=no&stage=retrieval",
    "metadata, 60 %": "metadata.release=v2",
    "metadata, rare": "metadata.customer=c7",
    "metadata 60 %, stage rare": "metadata.release=v2&stage=retrieval",
    "context": "context=doc-42",
    "first context, release": "top_context=doc-42&metadata.release=v2",
    "word, rare": "text=zz777",
    "word, 1 %": "text=word77",
    "word, all": "text=what",
    "phrase, all": "text=%22what+is%22",
    "words": "text=word1+word2",
    "word all, release": "text=what&metadata.release=v2",
    "word all, stage rare": "text=what&stage=retrieval",
    "word all, route rare": "text=what&route=rare",
    "word all, disputed": "text=what&disputed=yes",
    "word all, labelled": "text=what&labelled=yes",
    "word all, metadata rare": "text=what&metadata.customer=c7",
    "word 1 %, stage rare": "text=word77&stage=retrieval",
}


def texts(number: int, generator: random.Random) -> tuple[str, str]:
    """Question and answer of some hundred characters, of 5,000 words of unequal frequency."""
    words = [f"word{int(5000 * generator.random() ** 3)}" for _ in range(110)]
    return f"What is {' '.join(words[:12])}?", f"zz{number} {' '.join(words[12:])}."


def a_draw(number: int, generator: random.Random) -> Draw:
    """An answer with five documents and five keys of metadata."""
    question, answer = texts(number, generator)
    documents = [int(3000 * generator.random() ** 2) for _ in range(5)]
    filler = " ".join(f"text{generator.randrange(9999)}" for _ in range(80))
    contexts = tuple(Context(f"{filler} {one}", f"doc-{one}", 0.5) for one in documents)
    metadata = {
        "release": "v2" if generator.random() < 0.6 else "v1",
        "customer": f"c{generator.randrange(1000)}",
        "tier": "free",
        "language": "en",
        "model": "m1",
    }
    at = AT + number * STEP
    sample = Sample(f"r{number}", question, contexts, answer, at=at, metadata=metadata)
    return Draw(key_of("app", sample.id), sample, "app", "rare" if number % 5000 == 0 else "search", 1.0, at)


def a_verdict(draw: Draw, number: int) -> Verdict:
    """Every tenth answer has a fault, every two thousandth in retrieval."""
    bad = number % 10 == 0
    row = (None if bad else Cell.ALONE, *[None] * 4)
    claim = Claim(draw.sample.answer[:60], 0, 60, ClaimVerdict("not_in_context" if bad else "supported"), row)
    relevant = number % 2000 != 0
    contexts = tuple(ContextReading(relevant and place == 0) for place in range(5))
    reading = Reading("embedded", "scripted", "1", 0.1, NO_USAGE)
    return judged(draw, reading, Evidence((claim,), contexts, Address("fully"), None))


def fill(store: Stores, answers: int, clock: Clock) -> tuple[float, float]:
    """Store answers; seconds of admission and of settling per thousand."""
    generator = random.Random(7)
    admitting = settling = 0.0
    for start in range(0, answers, 500):
        draws = [a_draw(number, generator) for number in range(start, min(start + 500, answers))]
        verdicts = [a_verdict(draw, start + place) for place, draw in enumerate(draws)]
        begin = clock()
        store.admit(
            Admission("app", "log", str(start), [(draw, (Assignment("embedded", 1.0),)) for draw in draws], Counter())
        )
        middle = clock()
        for place in range(0, len(verdicts), 50):
            store.settle(verdicts[place : place + 50])
        admitting += middle - begin
        settling += clock() - middle
    return 1000 * admitting / answers, 1000 * settling / answers


def seconds(store: Stores, search: str, repeat: int, clock: Clock) -> Iterator[tuple[str, list[float]]]:
    """CPU times of the page, and of the query behind the JSON list."""
    pairs = [tuple(pair.split("=", 1)) for pair in search.replace("+", " ").replace("%22", '"').split("&") if pair]
    query = query_of(pairs, now=NOW, criteria=PageScope().criteria)  # type: ignore[arg-type]
    searches: dict[str, Callable[[], object]] = {
        "page": lambda: listing(pairs, store, now=NOW),  # type: ignore[arg-type]
        "JSON": lambda: store.summaries(replace(query, limit=50)),
    }
    for kind, run in searches.items():
        times = list[float]()
        for _ in range(repeat):
            begin = clock()
            run()
            times.append(clock() - begin)
        yield kind, times


def measure(store: Stores, options: argparse.Namespace, clock: Clock, prepare: Callable[[], None]) -> None:
    """Fill a store, and print a row for each search.

    Args:
        store: An empty one.
        options: Of the command line.
        clock: Seconds of CPU time.
        prepare: Called once it is filled.
    """
    admit, settle = fill(store, options.answers, clock)
    print(f"{options.answers} answers; per answer: admit {1000 * admit:.0f} us, settle {1000 * settle:.0f} us")
    prepare()
    over = []
    for name, search in SEARCHES.items():
        if "text=" in search and options.no_text_search:
            continue
        for kind, times in seconds(store, search, options.repeat, clock):
            ordered = sorted(times)
            worst = ordered[int(0.95 * (len(ordered) - 1))]
            median = ordered[len(ordered) // 2]
            print(f"{name:28} {kind:5} median {1000 * median:7.1f} ms  p95 {1000 * worst:7.1f} ms", flush=True)
            over += [f"{name} ({kind})"] if worst > LIMIT_SECONDS else []
    print(f"p95 above {1000 * LIMIT_SECONDS:.0f} ms: {', '.join(over) or 'none'}")


def sqlite(options: argparse.Namespace) -> None:
    """Measure SQLite, and print the size of its tables."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder), text_search=not options.no_text_search)) as store,
    ):

        def sizes() -> None:
            print(f"{store.engine.size() / options.answers:.0f} bytes per answer")
            for name, size in store.engine._reader.rows(  # noqa: SLF001 - measured
                "SELECT name, SUM(pgsize) FROM dbstat GROUP BY name HAVING SUM(pgsize) > 1e6 ORDER BY 2 DESC"
            ):
                print(f"  {name}: {size / options.answers:.0f} bytes per answer")

        measure(store, options, time.process_time, sizes)


def postgres(options: argparse.Namespace) -> None:
    """Measure PostgreSQL, with partitions of the days of the answers."""
    server = new_server(**SETTINGS)
    try:
        target = database(server.url, SCHEMA, text_search=not options.no_text_search)
        with closing(PostgresStore(target)) as store:
            for day in range(int(AT // DAY), int(NOW // DAY) + 1):
                store._make_partitions(day * DAY)  # noqa: SLF001 - of days that are over
            store.engine.parts.refresh(changed=True)  # it knows of none of these

            def clock() -> float:
                return time.process_time() + sum(map(_cpu_seconds, backends))

            store.engine.rows("SELECT 1")
            backends = [pid for (pid,) in store.engine.rows("SELECT pg_backend_pid()")]

            def analyse() -> None:
                with connect(target) as connection:
                    connection.execute("VACUUM ANALYZE")
                    for name, size in connection.execute(_SIZES, (SCHEMA,)).fetchall():
                        print(f"  {name}: {size / options.answers:.0f} bytes per answer")

            measure(store, options, clock, analyse)
    finally:
        server.delete()


def _cpu_seconds(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | 2)  # the clock that clock_getcpuclockid(3) names


_SIZES = (
    "SELECT regexp_replace(relname, '_(d[0-9]+|[0-9]+|rest)', ''), sum(pg_relation_size(c.oid))::float8 FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = %s AND relkind IN ('r', 'i')"
    " GROUP BY 1 HAVING sum(pg_relation_size(c.oid)) > 1e6 ORDER BY 2 DESC"
)


def main() -> None:
    """Measure one kind of store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--no-text-search", action="store_true")
    options = parser.parse_args()
    (sqlite if options.store == "sqlite" else postgres)(options)


if __name__ == "__main__":
    main()
