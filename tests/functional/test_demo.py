"""`ragwatch demo --degrade-after`: each breakage moves the scores that ought to move, and names the right stage."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from functional.daemon import asked, parse_series
from support.patience import DEADLINE, SCALE, pauses

from ragwatch.demo.corpus import read_corpus
from ragwatch.demo.service import vanishes
from ragwatch.process import INTERRUPTED

HEALTHY, LASTING, RATE = 3, 5, 16
LAST = "v4-prompt"
NAMED_WITHIN = 60.0 * SCALE  # seconds, of a bad release


@dataclass(frozen=True)
class Release:
    """Verdicts on the answers of one release."""

    verdicts: list[dict[str, Any]]

    def share(self, stage: str) -> float:
        """Share of its answers with this stage."""
        return fmean(each["stage"] == stage for each in self.verdicts)

    def mean(self, quantity: str) -> float:
        """Mean of a quantity over the answers that have it."""
        scores = (each["scores"].get(quantity) for each in self.verdicts)
        return fmean(float(score) for score in scores if score is not None)


def _play() -> tuple[dict[str, Release], dict[str, dict[str, Any] | None]]:
    """Run the demo through its schedule, until all breakages are over and what was asked by then is judged.

    Returns the releases, and the cause that names each bad one.
    """
    command = [sys.executable, "-W", "error", "-m", "ragwatch", "demo", "--port", "0", "--rate", str(RATE)]
    command += ["--degrade-after", str(HEALTHY), "--breakage-seconds", str(LASTING)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            address, release, causes = "", "", dict[str, dict[str, Any] | None]()
            for line in process.stdout or ():
                if line.startswith("series"):
                    address = line.split()[1].removesuffix("/metrics")
                elif line.startswith("release"):
                    before, release = release, line.split()[1].rstrip(":")
                    if before == LAST:
                        break
                    if release in ("v2-index", "v3-model", LAST):
                        causes[release] = _cause(address, release)
            _wait_until_judged(address)
            samples = _samples(address)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=DEADLINE)
            assert process.returncode in (0, INTERRUPTED)
        finally:
            process.kill()
    releases = defaultdict(list)
    for each in samples:
        releases[each["sample"]["metadata"]["release"]].append(each["verdict"])
    return {name: Release(verdicts) for name, verdicts in releases.items()}, causes


def _cause(address: str, release: str) -> dict[str, Any] | None:
    """The cause that names a release, itself or folded into what it lost; None if there is none in time.

    The page is up to five seconds old, and a breakage lasts as long: what was broken before may stand above it.
    """
    end = time.monotonic() + NAMED_WITHIN
    while time.monotonic() < end:
        for cause in json.loads(asked(f"{address}/api/v1/causes?window=1h").body)["causes"]:
            if release in (cause["value"], *(one["value"] for one in cause["folded"])):
                return dict(cause)
        time.sleep(0.5)
    return None


def _wait_until_judged(address: str) -> None:
    """Wait until as many answers are judged as are seen now."""
    seen, judged = None, 0.0
    for _ in pauses():
        series = parse_series(asked(f"{address}/metrics").body.decode())
        seen = seen or series['ragwatch_requests_seen_total{source="demo"}']
        judged = sum(value for name, value in series.items() if name.startswith("ragwatch_samples_judged_total{"))
        if judged >= seen:
            return
    raise AssertionError(f"{judged} of {seen} judged")


def _samples(address: str) -> list[dict[str, Any]]:
    """All stored verdicts with their samples, page after page: the newest first, then what is older."""
    samples, until = list[dict[str, Any]](), ""
    while True:
        place = f"{address}/api/v1/samples?texts=true&limit=500&outcome=judged{until}"
        page = json.loads(asked(place).body)["samples"]
        if not page:
            return samples
        samples += page
        until = f"&until={page[-1]['verdict']['at']!r}"


def test_each_breakage_is_seen_and_named() -> None:
    """Vanished documents are retrieval, inventions generation, an ignored top passage alignment; health is none.

    The page of causes names each bad release, with the vanished documents.
    """
    releases, causes = _play()
    healthy, vanish, invent, ignore = (releases[name] for name in ("v1", "v2-index", "v3-model", LAST))
    assert healthy.share("none") > 0.8

    assert vanish.mean("context_precision") < healthy.mean("context_precision") - 0.3
    assert vanish.share("retrieval") > 0.5

    assert invent.mean("faithfulness") < healthy.mean("faithfulness") - 0.3
    assert invent.share("generation") > 0.5

    assert ignore.mean("top_ranked_ignored") > healthy.mean("top_ranked_ignored") + 0.3
    assert ignore.mean("faithfulness") > healthy.mean("faithfulness") - 0.1
    assert ignore.share("alignment") > 0.5

    for release in ("v2-index", "v3-model", LAST):
        cause = causes[release]
        assert cause is not None, release
        assert cause["others"] < cause["low"] < cause["failing"]
        assert {"missing_context", "metadata.release"} & {cause["attribute"]}
    lost = causes["v2-index"]
    assert lost is not None
    documents = [one for one in (lost, *lost["folded"]) if one["attribute"] == "missing_context"]
    modules = {passage.id: passage.module for passage in read_corpus()}
    assert all(vanishes(modules[name]) for one in documents for name in one["values"][:1])
