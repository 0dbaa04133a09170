"""Who plays on the stage of the on-call kit: two services, an LLM on loopback, and every ragwatch.

Jobs: `ragwatch` watches a demo with canaries; `paid` watches another one through an LLM judge; `fleet` are two replicas
that read half of a recorded log each, and `single` reads all of it.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from functional.asking import an_llm
from functional.daemon import RagwatchProcess, write_config
from loopback.process import LoopbackProcess

from ragwatch.daemon.process import KEY_FILE
from ragwatch.demo import Demo
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.rules import BurnRate, Limits, Links, RulePlan
from ragwatch.rules.plan import PERIOD
from support.oncall_stage import Stage
from support.programs import free_port

JUDGE = "reader"  # whatever its kind: one plan calls for all
JOB, PAID, FLEET, SINGLE = "ragwatch", "paid", "fleet", "single"
SHORT, WINDOW, LONG = 8.0, 10.0, 600.0
RATE = 12.0
QUICK = "{reference: 30, reference_time: 1s, traffic: {requests: 100, reference: 1s}}"
UNPAGED = {quantity: float(quantity in LOW_IS_GOOD) for quantity in Quantity}
"""Thresholds that no mean can be beyond: panels draw a line, nobody is paged."""


def plan_at(stage: Stage, port: int) -> RulePlan:
    """Rules with windows of seconds, whose links lead to a port."""
    burnt = 14.4 * WINDOW / PERIOD  # the factor of the fastest pair of the SRE Workbook
    return RulePlan(
        judge=JUDGE,
        job=JOB,
        links=Links(f"http://127.0.0.1:{stage.hook}", "https://grafana.example.com", f"http://127.0.0.1:{port}"),
        thresholds={**UNPAGED, Quantity.CONTEXT_PRECISION: 0.7, Quantity.FAITHFULNESS: 0.7},
        objectives={Quantity.CONTEXT_PRECISION: 0.95},
        burns=(BurnRate(WINDOW, SHORT, burnt, "critical"),),
        windows=(SHORT, WINDOW, LONG),
        window=WINDOW,
        kept=5.0,  # several scrapes: one that comes late on a busy machine must not end a page
        limits=Limits(samples=20, hold=1.0, failures=0.2),
    )


class Fleet:
    """Everything that is watched, and everything that watches.

    Args:
        folder: Where logs, states and configurations go.

    Attributes:
        jobs: Ports by the label `job`, chosen at once: Prometheus is told of them before anybody listens there.
        folder: As given.
        replicas: By part of the recorded log: `one`, `two`, `all`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own, self._paid, *others = (free_port() for _ in range(5))
        self._ports = dict(zip(("one", "two", "all"), others, strict=True))
        self.jobs = {
            JOB: [self.own],
            PAID: [self._paid],
            FLEET: [self._ports["one"], self._ports["two"]],
            SINGLE: [self._ports["all"]],
        }
        self._stack = ExitStack()
        self._processes: list[RagwatchProcess] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.llm = stack.enter_context(LoopbackProcess())
            self._processes = [*(self._replica(name) for name in self._ports), self._paying()]
            self.replicas = dict(zip(self._ports, self._processes, strict=False))
            self.demo = stack.enter_context(Demo(self.folder / "free.jsonl", rate=RATE))
            self._processes.append(self._watching())
            self.other = stack.enter_context(Demo(self.folder / "paid.jsonl", rate=RATE))
            for each in self._processes:
                stack.enter_context(each).wait_until_serving()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Everything ends, the services as well."""
        for each in self._processes:
            each.process.terminate()
        self._stack.close()

    def record(self, lines: Sequence[str]) -> None:
        """Write the recorded log: half for each replica, all for the one that stands alone."""
        for name, part in {"one": lines[::2], "two": lines[1::2], "all": lines}.items():
            (self.folder / name / "log" / "rag.jsonl").write_text("".join(f"{line}\n" for line in part))

    def _watching(self) -> RagwatchProcess:
        return self._process(
            "free", self.own, canaries=json.dumps([self.demo.suite() | {"schedule": "2s"}]), drift=QUICK
        )

    def _paying(self) -> RagwatchProcess:
        judge = an_llm(self.llm, repeat=0.3, known_bad=0.3, budget={"usd_per_day": 5000.0}) | {"name": JUDGE}
        return self._process("paid", self._paid, judges=json.dumps([judge]), drift=QUICK)

    def _replica(self, name: str) -> RagwatchProcess:
        folder = self.folder / name
        (folder / "log").mkdir(parents=True)
        (folder / "state").mkdir(mode=0o700)
        (folder / "state" / KEY_FILE).write_text(f"{bytes(range(32)).hex()}\n")  # all draw the same answers
        (folder / "state" / KEY_FILE).chmod(0o600)
        (folder / "anchors.jsonl").write_text("\n".join(json.dumps(_anchor(number)) for number in range(5)))
        return self._process(
            name,
            self._ports[name],
            sources=f"[{{kind: tail, name: app, path: '{folder}/log/*', start: beginning}}]",
            sampling="{probability: 0.9, stratum: tier, strata: {slow: 0.4}}",
            anchors="{file: anchors.jsonl, every: 100ms}",
            labels="{minimum: 10}",
        )

    def _process(self, name: str, port: int, **sections: str) -> RagwatchProcess:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        parts = {
            "routes": "[]",
            "web": f"{{listen: '127.0.0.1:{port}'}}",
            "sources": f"[{{kind: tail, name: app, path: '{self.folder / name}.jsonl', start: beginning}}]",
            "judges": f"[{{name: {JUDGE}, kind: lexical}}]",
            "estimates": "{windows: [15m], every: 500ms}",
        }
        return RagwatchProcess(write_config(folder, **{**parts, **sections}))


def _anchor(number: int) -> dict[str, Any]:
    return {
        "id": f"anchor-{number}",
        "question": "Where does the old mill stand?",
        "contexts": ["The old mill stands by the river since 1820."],
        "answer": "The old mill stands by the river.",
        "good": True,
    }
