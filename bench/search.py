"""Measures searches over many stored answers in CPU time: page, JSON list and every filter; and what their index costs.

Usage: PYTHONPATH=. python bench/search.py [--answers 100000] [--repeat 20]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ragwatch.core.evidence import Address, Claim, ClaimVerdict, ContextReading, Evidence
from ragwatch.core.sample import Context, Draw, Sample
from ragwatch.core.sampling import key_of
from ragwatch.core.verdict import NO_USAGE, Reading, Verdict, judged
from ragwatch.ports import Admission, Assignment
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.samples_page import listing
from ragwatch.web.scope import PageScope

AT = 1_700_000_000.0
NOW = AT + 400_000.0
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
    "since, until": "since=1700040000&until=1700050000",
    "labelled": "labelled=yes",
    "disputed": "disputed=yes",
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
    at = AT + 3.0 * number
    sample = Sample(f"r{number}", question, contexts, answer, at=at, metadata=metadata)
    return Draw(key_of("app", sample.id), sample, "app", "rare" if number % 5000 == 0 else "search", 1.0, at)


def a_verdict(draw: Draw, number: int) -> Verdict:
    """Every tenth answer has a fault, every two thousandth in retrieval."""
    bad = number % 10 == 0
    row = (not bad, *[False] * 4)
    claim = Claim(draw.sample.answer[:60], 0, 60, ClaimVerdict("not_in_context" if bad else "supported"), row)
    relevant = number % 2000 != 0
    contexts = tuple(ContextReading(relevant and place == 0) for place in range(5))
    reading = Reading("embedded", "scripted", "1", 0.1, NO_USAGE)
    return judged(draw, reading, Evidence((claim,), contexts, Address("fully"), None))


def fill(store: SqliteStore, answers: int) -> tuple[float, float]:
    """Store answers; seconds of admission and of settling per thousand."""
    generator = random.Random(7)
    admitting = settling = 0.0
    for start in range(0, answers, 500):
        draws = [a_draw(number, generator) for number in range(start, min(start + 500, answers))]
        verdicts = [a_verdict(draw, start + place) for place, draw in enumerate(draws)]
        begin = time.process_time()
        store.admit(
            Admission("app", "log", str(start), [(draw, (Assignment("embedded", 1.0),)) for draw in draws], Counter())
        )
        middle = time.process_time()
        for place in range(0, len(verdicts), 50):
            store.settle(verdicts[place : place + 50])
        admitting += middle - begin
        settling += time.process_time() - middle
    return 1000 * admitting / answers, 1000 * settling / answers


def seconds(store: SqliteStore, search: str, repeat: int) -> Iterator[tuple[str, list[float]]]:
    """CPU times of the page, and of the query behind the JSON list."""
    pairs = [tuple(pair.split("=", 1)) for pair in search.replace("+", " ").replace("%22", '"').split("&") if pair]
    page, listed = list[float](), list[float]()
    for _ in range(repeat):
        begin = time.process_time()
        listing(pairs, store, now=NOW)  # type: ignore[arg-type]
        page.append(time.process_time() - begin)
    yield "page", page
    from ragwatch.web.samples import query_of  # noqa: PLC0415 - beside its use

    query = query_of(pairs, now=NOW, criteria=PageScope().criteria)  # type: ignore[arg-type]
    for _ in range(repeat):
        begin = time.process_time()
        store.summaries(replace(query, limit=50))
        listed.append(time.process_time() - begin)
    yield "JSON", listed


def main() -> None:
    """Fill a store, and print a row for each search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--no-text-search", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder), text_search=not options.no_text_search)) as store,
    ):
        admit, settle = fill(store, options.answers)
        print(f"{options.answers} answers; per answer: admit {1000 * admit:.0f} us, settle {1000 * settle:.0f} us")
        print(f"{store._size() / options.answers:.0f} bytes per answer")  # noqa: SLF001 - measured
        for name, size in store._reader.rows(  # noqa: SLF001 - measured
            "SELECT name, SUM(pgsize) FROM dbstat GROUP BY name HAVING SUM(pgsize) > 1e6 ORDER BY 2 DESC"
        ):
            print(f"  {name}: {size / options.answers:.0f} bytes per answer")
        for name, search in SEARCHES.items():
            if "text=" in search and options.no_text_search:
                continue
            for kind, times in seconds(store, search, options.repeat):
                ordered = sorted(times)
                worst = ordered[int(0.95 * (len(ordered) - 1))]
                print(
                    f"{name:28} {kind:5} median {1000 * ordered[len(ordered) // 2]:7.1f} ms  p95 {1000 * worst:7.1f} ms"
                )


if __name__ == "__main__":
    main()
