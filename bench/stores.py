"""Stores beside those of an earlier commit: admissions, settlements, digests and searches, on both engines, in one run.

    python bench/stores.py COMMIT [--answers N] [--rounds N]

Prints milliseconds of CPU for an answer or a step, of the process and the server together, and how many times as fast
this checkout is: medians of rounds in which both take turns. Needs Debian's `postgresql`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from cpu import tree_seconds

HOME = Path(__file__).parents[1]
BATCH, LEASED, STEPS, ROWS = 500, 50, 20, 5000
NOW = 1.7e9
TEXT = " ".join(f"Cats purr when they are calm, and number {index} of them sleeps all day long." for index in range(24))


def costs(kind: str, answers: int, url: str, server: int) -> Iterator[tuple[str, float]]:
    """Milliseconds of each step of a store, which the package on the path of this process provides."""
    from support.kit import a_draw, a_verdict, an_admission  # noqa: PLC0415 - of the measured checkout

    from ragwatch.ports import Query  # noqa: PLC0415 - the same
    from ragwatch.stores import KINDS  # noqa: PLC0415 - the same

    searches = (
        Query(),
        Query(stage="none", route="search"),
        Query(quantity=cast("Any", "faithfulness"), worst=True),
        Query(metadata=(("release", "v1"),)),
        Query(words=(("cats", "purr"),)),
    )
    draws = [
        a_draw(f"r{number}", at=NOW + number, contexts=(TEXT, "Dogs bark."), metadata={"release": f"v{number % 3}"})
        for number in range(answers)
    ]
    settings = {"url": url, "database_schema": f"bench{os.getpid()}"} if kind == "postgres" else {}
    with (
        tempfile.TemporaryDirectory() as state,
        closing(KINDS[kind].build(KINDS[kind].Options.model_validate(settings), Path(state))) as store,
    ):

        def settle() -> None:
            while leased := store.lease("embedded", LEASED, now=NOW, seconds=300.0):
                store.settle([a_verdict(draw) for draw in leased])

        def digest() -> None:
            last = 0
            while rows := store.window(last, 0.0, ROWS):
                last = rows[-1].seq
            store.tallies_and_pending()
            store.overdue(NOW)

        def digests() -> None:
            for _ in range(STEPS):
                digest()

        steps: dict[str, tuple[Callable[[], object], int]] = {
            "admissions": (
                lambda: [store.admit(an_admission(*draws[at : at + BATCH])) for at in range(0, answers, BATCH)],
                answers,
            ),
            "settlements": (settle, answers),
            "digests": (digests, STEPS),
            "searches": (lambda: [store.summaries(one) for one in searches * STEPS], STEPS * len(searches)),
        }
        for name, (step, number) in steps.items():
            before = time.process_time() + tree_seconds(server)
            step()
            yield name, 1000.0 * (time.process_time() + tree_seconds(server) - before) / number


def measured(checkout: Path, *arguments: str) -> dict[str, float]:
    """The costs of a checkout, in a process of its own."""
    paths = {**os.environ, "PYTHONPATH": f"{checkout}:{checkout / 'tests'}"}
    command = (sys.executable, __file__, "--measure", *arguments)
    output = subprocess.run(command, env=paths, cwd=checkout, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(output))


def compare(commit: str, answers: int, rounds: int) -> None:
    """Print the figures of both checkouts."""
    sys.path.insert(0, str(HOME / "tests"))
    from support.postgres import new_server  # noqa: PLC0415 - the measured process has that of its checkout

    server = new_server(shared_buffers="256MB")
    try:
        pid = server.postmaster()
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(("git", "archive", commit), cwd=HOME, check=True, capture_output=True).stdout
            subprocess.run(("tar", "-x", "-C", folder), input=archive, check=True)
            for kind, place in (("sqlite", ("", "0")), ("postgres", (server.url, pid))):
                pairs = [
                    [measured(checkout, kind, str(answers), *place) for checkout in (Path(folder), HOME)]
                    for _ in range(rounds)
                ]
                for name in pairs[0][0]:
                    before, now = (statistics.median(pair[side][name] for pair in pairs) for side in (0, 1))
                    ratio = statistics.median(one[name] / other[name] for one, other in pairs)
                    print(f"{kind:8} {name:11} {before:8.3f} ms before, {now:8.3f} ms now: {ratio:.2f} times as fast")
    finally:
        server.delete()


def main() -> None:
    """Compare, or measure what the path of this process provides."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("commit", nargs="?", help="what this checkout is compared with")
    options.add_argument("--answers", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure is not None:
        kind, answers, url, server = given.measure
        print(json.dumps(list(costs(kind, int(answers), url, int(server)))))
    elif given.commit is None:
        options.error("give a commit")
    else:
        compare(given.commit, given.answers, given.rounds)


if __name__ == "__main__":
    main()
