"""Answers of megabytes: no request, and no number of requests at once, takes much memory or holds up a scrape."""

import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, asked, write_config
from support.kit import a_claim, a_draw, a_verdict, an_admission, an_evidence
from support.patience import SCALE

from ragwatch.model.quantities import Quantity
from ragwatch.statistics.labels.label import Label
from ragwatch.stores.sqlite.store import SqliteStore

MIB = 1 << 20
ANSWERS, ANSWER_CHARS = 16, 3_900_000  # 62 MB, several times as much once unpacked: more than may be resident
LABELS = 30  # of an answer; together more than the list of labels holds on one page
RESIDENT = 256 * MIB
A_RESPONSE = 8 * MIB
A_SCRAPE = 2.0 * SCALE  # seconds, beside other tests; 0.25 is measured on a quiet machine


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with 16 answers of 3.9 MB, judged, with hundreds of claims each, and labels with long notes."""
    folder = tmp_path_factory.mktemp("large")
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(5000)]
    text = " ".join(rng.choices(words, k=620_000))[:ANSWER_CHARS]
    with closing(SqliteStore(folder / "state")) as store:
        for number in range(ANSWERS):
            answer = text[number * 50_000 :] + text[: number * 50_000]
            claims = [a_claim((number % 2, 0), text=answer[at : at + 180]) for at in range(0, 100_000, 200)]
            draw = a_draw(f"r{number}", answer=answer, question=answer[:3000], at=time.time() - number)
            store.admit(an_admission(draw))
            store.settle([a_verdict(draw, an_evidence(*claims))])
            note = answer[:9000]
            store.add_labels(
                [
                    Label(draw.key, f"a{each}", time.time(), {Quantity.FAITHFULNESS: 1.0}, note=note)
                    for each in range(LABELS)
                ]
            )
    return write_config(folder, sources=f"[{{kind: tail, name: other, path: '{folder}/log/*'}}]")


@pytest.fixture(scope="module")
def ragwatch(config: Path) -> Iterator[RagwatchProcess]:
    """The daemon on that state."""
    with RagwatchProcess(config, forked=False).wait_until_serving() as daemon:
        yield daemon


def a_key(ragwatch: RagwatchProcess) -> str:
    """Key of one of the answers."""
    found: str = json.loads(ragwatch.get("/api/v1/samples?limit=1")[1])["samples"][0]["verdict"]["key"]
    return found


def paths(key: str) -> list[str]:
    """Everything that can be asked for, with the greatest limits."""
    both = ("canaries", "drift", "causes?since=2023-01-01", "samples?limit=500", f"samples/{key}")
    pages = ("", *both, "samples?limit=500&quantity=faithfulness&below=0.5")
    replies = (*both, "snapshot", "samples?limit=500&texts=true", "labels")
    return [*(f"/{page}" for page in pages), *(f"/api/v1/{reply}" for reply in replies)]


@contextmanager
def scraping(ragwatch: RagwatchProcess) -> Iterator[list[float]]:
    """Scrapes all the time; the seconds of each."""
    seconds: list[float] = []
    stop = threading.Event()

    def scrape() -> None:
        while not stop.wait(0.05):
            start = time.monotonic()
            assert ragwatch.get("/metrics")[0] == 200
            seconds.append(time.monotonic() - start)

    with ThreadPoolExecutor(1) as pool:
        scraper = pool.submit(scrape)
        try:
            yield seconds
        finally:
            stop.set()
        scraper.result()
    print(f"slowest of {len(seconds)} scrapes: {max(seconds):.3f} s")


def test_every_list_is_short_and_light(ragwatch: RagwatchProcess) -> None:
    """Each page, list and API with its greatest limit: at most 8 MiB, below 256 MiB resident, scrapes go on."""
    every = paths(a_key(ragwatch))
    with scraping(ragwatch) as seconds:
        for path in every:
            reply = asked(ragwatch.address + path)
            assert (path, reply.status) == (path, 200)
            assert len(reply.body) <= A_RESPONSE, path
            assert ragwatch.memory() < RESIDENT, path
    assert max(seconds) < A_SCRAPE


def test_all_at_once_is_light_too(ragwatch: RagwatchProcess) -> None:
    """Sixteen clients ask for all of it at once: each is answered, or told when to ask again, in the same memory."""
    every = paths(a_key(ragwatch)) * 3
    random.Random(1).shuffle(every)
    with scraping(ragwatch) as seconds, ThreadPoolExecutor(16) as clients:
        statuses = {status for status, _ in clients.map(ragwatch.get, every)}
    assert statuses <= {200, 503}
    assert 200 in statuses
    assert ragwatch.memory() < RESIDENT
    assert max(seconds) < A_SCRAPE


def test_whole_texts_come_page_by_page(ragwatch: RagwatchProcess) -> None:
    """With `texts=true` every whole text is had, each once, by following `next`."""
    path: str | None = f"/api/v1/samples?limit={ANSWERS}&texts=true&since=1h"
    lengths: list[tuple[str, int]] = []
    while path is not None:
        page = json.loads(ragwatch.get(path)[1])
        lengths += [(each["verdict"]["key"], len(each["sample"]["answer"])) for each in page["samples"]]
        path = page.get("next")
    assert len({key for key, _ in lengths}) == len(lengths) == ANSWERS
    assert {length for _, length in lengths} == {ANSWER_CHARS}
