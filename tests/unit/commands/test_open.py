"""`ragwatch open`: the address of the worst answer, from a ragwatch that serves its samples on this host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest
from support.answering import answering
from support.command_line import command, refused
from support.kit import AT, a_draw, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE
from support.snapshots import small

from ragwatch.board import Board
from ragwatch.errors import RagwatchError
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import Server, build_app

BAD, WORSE = an_evidence((1, 0), (0, 0)), an_evidence((0, 0), (0, 0))


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a ragwatch: r1 is good, r2 bad, r3 worse, r4 older and as bad, r5 of another hour."""
    store = SqliteStore(tmp_path / "state")
    times = {"r1": AT - 10, "r2": AT - 20, "r3": AT - 30, "r4": AT - 40, "r5": AT - 9000}
    draws = [a_draw(name, at=at, route="other" if name == "r2" else "search") for name, at in times.items()]
    store.admit(an_admission(*draws))
    evidence = [an_evidence((1, 0)), BAD, WORSE, WORSE, WORSE]
    store.settle([a_verdict(draw, read) for draw, read in zip(draws, evidence, strict=True)])
    board = Board()
    board.publish(replace(small()))
    app = build_app(board=board, render=lambda *_: (b"", ""), store=store, clock=lambda: AT)
    one = Server(app, "127.0.0.1", 0)
    ports: SimpleQueue[int] = SimpleQueue()
    thread = Thread(target=lambda: asyncio.run(one.serve(started=ports.put)))
    thread.start()
    yield f"http://127.0.0.1:{ports.get(timeout=DEADLINE)}"
    one.stop()
    thread.join(DEADLINE)
    store.close()


run = partial(command, "open")


def link(address: str, name: str) -> str:
    """The line of an answer."""
    return f"{address}/samples/{a_draw(name).key}?judge=embedded\n"


def test_the_worst_answer_of_the_time(address: str) -> None:
    """The lowest faithfulness, the newest of equal ones; a route, a quantity and a time narrow it."""
    result = run("--url", f"{address}/")
    assert result.return_value == 0, result.exception
    assert result.stdout == link(address, "r3")
    assert result.stderr == "faithfulness 0.00, stage at fault generation, route search, 2023-11-14 22:12 UTC\n"
    assert run("--url", address, "--route", "other").stdout == link(address, "r2")
    assert run("--url", address, "--quantity", "faithfulness").stdout == link(address, "r3")
    assert run("--url", address, "--since", "25s").stdout == link(address, "r2")


def test_nothing_fails(address: str) -> None:
    """Exit code 3 and no address: a good answer is not the worst one, and the best score is no bad one."""
    for more in (["--since", "15s"], ["--since", "15s", "--quantity", "faithfulness"], ["--quantity", "contradiction"]):
        result = run("--url", address, *more)
        assert (result.return_value, result.stdout) == (3, "")
        assert "choose an earlier --since" in result.stderr


def test_a_wrong_word_is_told(address: str, tmp_path: Path) -> None:
    """By name: of the running ragwatch for quantities and times, of the configuration for routes."""
    for more, named in (
        (["--quantity", "colour"], f"{address} refused: quantity: not one of"),
        (["--since", "soon"], f"{address} refused: since: not a time"),
        (["--route", "caf\udce9"], "--route caf\udce9: is not UTF-8"),
    ):
        result = run("--url", address, *more)
        assert refused(result)
        assert str(result.exception).startswith(named)
    config = tmp_path / "ragwatch.yaml"
    config.write_text(
        "sources: [{kind: tail, name: app, path: /nowhere/*}]\nroutes: [search]\n"
        f"web: {{listen: {address.removeprefix('http://')}, external_url: https://rag.example.org/watch/}}\n"
    )
    wrong = run("--config", str(config), "--route", "gone")
    assert "use one of: search, other" in refused(wrong)
    assert run("--config", str(config), "--route", "search").stdout == link("https://rag.example.org/watch", "r3")
    assert run("--config", str(config), "--url", address).stdout == link(address, "r3")


@pytest.mark.parametrize(
    "reply",
    [
        [],
        {"samples": 1},
        {"samples": [{"verdict": None}]},
        {"samples": [{"verdict": {"key": "k"}}]},
        {"samples": [{"verdict": {"key": "k", "judge_name": "j", "route": "r", "at": "now"}}]},
        {"samples": [{"verdict": {"key": "k", "judge_name": "j", "route": "r", "at": 1e300, "scores": 3}}]},
    ],
)
def test_another_server_is_told(reply: object) -> None:
    """What is not a reply of this version is one clear error, never a traceback or half an address."""
    with answering(lambda _: (200, reply, {})) as (address, _):
        result = run("--url", address)
    assert "is not that of a ragwatch of this version" in refused(result, RagwatchError)
    assert result.stdout == ""


def test_nobody_there_is_told() -> None:
    """With what to do."""
    result = run("--url", "http://127.0.0.1:9")
    assert "give the address of the running ragwatch with --url" in str(result.exception)
    assert refused(run("--url", "file:///etc/passwd"))
