"""The recording rules over workers that share one database: what they export adds up to one process's figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence
from support.postgres import shared_server
from support.promtool import expects, must_hold
from support.stores import WORKERS_SCHEMA, emptied

from ragwatch.core.snapshot import Snapshot
from ragwatch.core.tally import Tallies
from ragwatch.exporter import AllowedLabels
from ragwatch.exporter.families import of_snapshot
from ragwatch.ports import Store
from ragwatch.rules import Links, RulePlan, prometheus
from ragwatch.stores.postgres.connections import Target
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.sqlite.store import SqliteStore

PLAN = RulePlan(JUDGE, "fleet", Links(None, None, None), windows=(900.0, 3600.0), window=900.0)
NAMES = AllowedLabels(sources=["app"], routes=["search", "support"], judges=[JUDGE])
STEPS = 10
FIGURES = [
    *(f"all:ragwatch_quality:{name}15m" for name in ("mean", "stderr", "low", "high", "effective_samples")),
    *(f"route:ragwatch_quality:{name}15m" for name in ("mean", "low", "high")),
    "route:ragwatch_samples_judged:increase15m",
    "route:ragwatch_stage:ratio15m",
]


class Scrapes:
    """Samples of one instance, a minute apart."""

    def __init__(self, job: str, instance: str, tallies: Callable[[], Tallies]) -> None:
        self.place, self.tallies = {"job": job, "instance": instance}, tallies
        self.values: dict[str, list[str]] = {}

    def scrape(self, minute: int) -> None:
        """Take what the instance exports now."""
        for family in of_snapshot(Snapshot(at=AT, exported=self.tallies()), NAMES):
            if family.type != "counter" or not family.name.startswith(("ragwatch_faith", "ragwatch_s")):
                continue
            for sample in family.samples:
                labels = ",".join(f'{name}="{value}"' for name, value in (sample.labels | self.place).items())
                row = self.values.setdefault(f"{sample.name}{{{labels}}}", ["0"] * minute)
                row.append(repr(float(sample.value)))

    def series(self) -> list[dict[str, str]]:
        """As promtool reads them."""
        return [{"series": name, "values": " ".join(values)} for name, values in self.values.items()]


@pytest.mark.costly
def test_workers_add_up_to_one_process(tmp_path: Path) -> None:
    """Mean, interval, coverage and stages to 1e-9, whichever worker admits and judges, and after a restart of one."""
    server = shared_server()
    emptied(server.url, WORKERS_SCHEMA)
    target, rng = Target(server.url, WORKERS_SCHEMA), Random(5)
    workers = {name: PostgresStore(target, name=name) for name in ("w0", "w1", "w2")}
    alone = SqliteStore(tmp_path / "state")
    scrapes = [Scrapes("fleet", name, lambda name=name: workers[name].own_tallies()) for name in workers]  # type: ignore[misc]  # of this moment
    scrapes.append(Scrapes("alone", "alone", alone.tallies))
    for minute in range(STEPS):
        for one in scrapes:
            one.scrape(minute)
        if minute == STEPS // 2:
            workers["w1"].close()
            workers["w1"] = PostgresStore(target, name="w1")
        for number in range(8):
            draw = a_draw(
                f"r{minute}-{number}",
                probability=rng.choice((0.1, 0.5, 1.0)),
                route=rng.choice(("search", "support")),
            )
            verdict = a_verdict(draw, an_evidence((rng.randrange(2), 0), (1, 0)))
            stores: tuple[Store, ...] = (rng.choice(list(workers.values())), alone)
            for store in stores:
                store.admit(an_admission(draw))
            rng.choice(list(workers.values())).settle([verdict])
            alone.settle([verdict])
    for one in scrapes:
        one.scrape(STEPS)
    for store in (*workers.values(), alone):
        store.close()
    asked = [
        expects(
            f'count(abs({name}{{job="fleet"}} - ignoring (job) {name}{{job="alone"}}) < 1e-9)'
            f' == bool count({name}{{job="alone"}})',
            f"{STEPS}m",
        )
        for name in FIGURES
    ]
    test = {
        "interval": "1m",
        "input_series": [series for one in scrapes for series in one.series()],
        "promql_expr_test": asked,
    }
    must_hold(tmp_path, prometheus(PLAN)["ragwatch-recording.yaml"], test)
