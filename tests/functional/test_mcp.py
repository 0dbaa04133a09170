"""Assistants ask a real ragwatch: over standard streams and HTTP, and about twelve breakages of its traffic."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from support.assistants import Assistant, asking, words
from support.oncall_replay import LEARNT, QUANTITIES, Scenario, sections
from support.oncall_traffic import Breakage, Traffic
from support.patience import DEADLINE, pauses

from ragwatch.web.mcp.server import TOOLS

TOKEN = "assistant-token-of-the-tests"  # noqa: S105 - of this test
MAX_CALLS, MAX_TOKENS = 6, 8000
RELEASE = "v2"
"""The release that breaks: planted in the metadata of broken answers, and as an event."""


def streams(address: str, **environment: str) -> Client:
    """A client that starts `ragwatch mcp`, as an assistant does."""
    command = ["-W", "error", "-m", "ragwatch", "mcp", "--url", address]
    kept = {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    server = StdioServerParameters(command=sys.executable, args=command, env=kept)
    return Client(stdio_client(server, errlog=sys.__stderr__ or sys.stderr))


@pytest.mark.servers
async def test_both_ways_to_ask_a_real_daemon(tmp_path: Path) -> None:
    """Every tool answers over standard streams and over HTTP with a token, and none without."""
    web = f"{{listen: '127.0.0.1:0', mcp: true, tokens: [{{name: me, token: {TOKEN}, rights: [pages, metrics]}}]}}"
    config = write_config(tmp_path, web=web)
    (tmp_path / "log" / "app.jsonl").write_text(f"{record(1, answer='The new mill sells bread in Paris.')}\n")
    with RagwatchProcess(config) as ragwatch:
        address = ragwatch.wait_until_serving().address
        assert ragwatch.get("/mcp", method="POST")[0] == 401
        for client in (streams(address, RAGWATCH_TOKEN=TOKEN), asking(address, TOKEN)):
            async with client as asked:
                assistant = Assistant(asked)
                assert {tool.name for tool in (await asked.list_tools()).tools} == set(TOOLS)
                rows: list[Any] = []
                for _ in pauses():
                    if rows := (await assistant.call("worst_answers"))["answers"]:
                        break
                needed = {"answer": {"key": rows[0]["key"]}, "compare_windows": {"route": "search", "at": "1m"}}
                for name in TOOLS:
                    reply = await assistant.call(name, **needed.get(name, {}))
                    assert "error" not in reply, (name, reply)
        async with streams(address) as nobody:
            why = await Assistant(nobody).call("status")
    assert "401" in why["error"]
    assert "--token-file" in why["error"]


@dataclass(frozen=True, slots=True)
class Case:
    """A breakage, and what an assistant has to find out."""

    route: str  # the route that breaks
    breakage: Breakage  # what is wrong with its answers
    alarm: str  # what alarms
    stage: str | None = None  # the stage that the alarm names; None where a signal of traffic alarms
    # whether the release is what failing answers have in common; where a judge reads none of the broken answers, or
    # finds no stage at fault, the signal and the event are the cause
    is_slice: bool = True


CASES = (
    Case("inventions", Breakage.INVENTION, "faithfulness", "generation"),
    Case("irrelevant", Breakage.IRRELEVANT, "context_precision", "retrieval"),
    Case("numbers", Breakage.SWAPPED_NUMBER, "faithfulness", "generation"),
    Case("negated", Breakage.NEGATED, "faithfulness", "generation"),
    Case("hedged", Breakage.HEDGED, "faithfulness", "generation"),
    Case("error-page", Breakage.ERROR_PAGE, "context_precision", "retrieval"),
    Case("repeated", Breakage.REPEATED, "repeated_answers"),
    Case("refusals", Breakage.ABSTENTION, "abstentions"),
    Case("empty", Breakage.EMPTY, "empty_retrievals"),
    Case("no-text", Breakage.NO_TEXT, "empty_answers", is_slice=False),
    Case("german", Breakage.OTHER_LANGUAGE, "other_language", is_slice=False),
    Case("duplicates", Breakage.DUPLICATES, "duplicate_contexts", is_slice=False),
)
QUIET = "quiet"


class Log:
    """Writes answers of all routes; broken ones are of another release."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._traffic = Traffic()

    def write(self, count: int, *, broken: bool) -> None:
        """Append so many answers of each route, of which 60 % may be broken."""
        with self._file.open("a", encoding="utf-8") as file:
            for _ in range(count):
                file.writelines(self._rows(broken=broken))

    def _rows(self, *, broken: bool) -> Iterator[str]:
        for route, breakage in ((QUIET, None), *((case.route, case.breakage) for case in CASES)):
            wrong = breakage if broken and self._traffic.chance(0.6) else None
            row = json.loads(self._traffic.row(route, wrong))
            row["metadata"] = {"release": "v1" if wrong is None else RELEASE}
            yield f"{json.dumps(row)}\n"


async def learnt(ragwatch: RagwatchProcess, log: Log, scenarios: Sequence[Scenario]) -> None:
    """Write healthy answers until all baselines are learnt; those of signals need traffic that goes on."""
    log.write(LEARNT, broken=False)
    while True:
        names = list(ragwatch.series())
        scores = sum(name.startswith("ragwatch_drift_alarm{") for name in names)
        signals = sum(name.startswith("ragwatch_traffic_drift_alarm{") for name in names)
        if scores >= len(QUANTITIES) * len(scenarios) and signals >= 2 * len(scenarios):
            return
        log.write(4, broken=False)
        await asyncio.sleep(1.0)


async def alarming(ragwatch: RagwatchProcess, log: Log) -> None:
    """Write broken answers until every route alarms as it should."""
    while True:
        drift = json.loads(ragwatch.get("/api/v1/drift")[1])
        active = {(row["route"], row["quantity"]) for row in drift["answers"] if row["alarm"]}
        active |= {(row["route"], row["signal"]) for row in drift["traffic"] if row["alarm"]}
        if all((case.route, case.alarm) in active for case in CASES):
            return
        log.write(15, broken=True)
        await asyncio.sleep(3.0)


async def investigated(assistant: Assistant, route: str) -> tuple[dict[str, str | None], list[str], list[str], str]:
    """What a fixed way through the tools finds: alarms with their stage, causes, events, and the stage of an answer."""
    status = await assistant.call("status", route=route)
    assert status["routes"][0]["sampled"] > LEARNT
    alarms = await assistant.call("alarms", route=route)
    named = {row["name"]: None if row["stage"] is None else row["stage"]["stage"] for row in alarms["alarms"]}
    causes = await assistant.call("causes", route=route, window="1h")
    slices = [f"{words(row['attribute'])} {words(row['value'])}" for row in causes["causes"]]
    quantity = next((row["name"] for row in alarms["alarms"] if row["kind"] == "answers"), "faithfulness")
    worst = await assistant.call("worst_answers", route=route, quantity=quantity, since="1h", limit=3)
    answer = await assistant.call("answer", key=worst["answers"][0]["key"])
    return named, slices, [words(event["detail"]) for event in alarms["events"]], answer["stage"]


@pytest.mark.slow
@pytest.mark.servers
async def test_an_assistant_finds_the_cause_of_twelve_breakages(tmp_path: Path) -> None:
    """By six calls and 8,000 tokens: what alarms, the stage, and the planted release; nothing on a healthy route."""
    scenarios = [Scenario(route) for route in (QUIET, *(case.route for case in CASES))]
    parts = sections(scenarios, "embedded") | {"web": "{listen: '127.0.0.1:0', mcp: true}"}
    config, log = write_config(tmp_path, **parts), Log(tmp_path / "log" / "app.jsonl")
    with RagwatchProcess(config) as ragwatch:
        address = ragwatch.wait_until_serving().address
        await asyncio.wait_for(learnt(ragwatch, log, scenarios), 4 * DEADLINE)
        assert ragwatch.get(f"/-/events?kind=release&detail=release+{RELEASE}", method="POST")[0] == 200
        await asyncio.wait_for(alarming(ragwatch, log), 8 * DEADLINE)
        async with asking(address) as client:
            for case in CASES:
                assistant = Assistant(client)
                alarms, slices, events, stage = await investigated(assistant, case.route)
                print(f"{case.route}: {assistant.calls} calls, {assistant.tokens} tokens: {alarms}, {slices[:1]}")
                assert assistant.calls <= MAX_CALLS
                assert assistant.tokens <= MAX_TOKENS
                assert case.alarm in alarms, case
                assert f"release {RELEASE}" in events, case
                assert not case.is_slice or slices[0] == f"metadata.release {RELEASE}", (case, slices)
                if case.stage is not None:
                    assert (alarms[case.alarm], stage) == (case.stage, case.stage), case
            healthy = await Assistant(client).call("alarms", route=QUIET)
    assert healthy["alarms"] == []
