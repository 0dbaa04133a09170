"""`ragwatch canary`: runs every canary once; which failed and why, and the stage at fault for wrong answers."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from support.canaries import a_canary, a_reply, a_report
from support.command_line import command, configured, refused
from support.programs import free_port
from support.retrievers import FaultyRetriever, serving

from ragwatch.pipeline.canaries import levels_name
from ragwatch.statistics.canary.history import with_levels
from ragwatch.statistics.canary.report import SuiteReport
from ragwatch.stores.sqlite.store import SqliteStore

PROBE = {"kind": "http", "body": {"query": "{{ query }}"}, "contexts": "hits", "score": "similarity"}
FINE = [{"query": "cats", "expected": ["d1"], "name": "cats"}]

canary = partial(command, "canary")
RIGHT, WRONG = "Refunds are paid within five days.", "Our museum opens at noon on Sundays."
GOLD = "Refunds are paid within five days to the card that was used."
OTHER = "Parcels are sent by rail."
WORDS: dict[str, Any] = {"name": "embedded", "kind": "lexical"}
UNREADABLE: dict[str, Any] = {"name": "embedded", "kind": "openai", "model": "m", "prices": {"input": 0, "output": 0}}
GENERATOR = "even with the right contexts it is wrong: the generator"


def a_config(folder: Path, **suites: tuple[str, list[dict[str, Any]]]) -> str:
    """A configuration with these suites, each by the address of its retriever and its canaries."""
    canaries = [
        {"suite": name, "k": [1, 5], "items": items, "probe": PROBE | {"url": f"{address}/search"}}
        for name, (address, items) in suites.items()
    ]
    return str(configured(folder, canaries=canaries))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A retriever that returns d1 (.9) and d2 (.4), except for queries that name a fault."""
    with serving(*FaultyRetriever().routes()) as found:
        yield found


@pytest.mark.costly
def test_the_table_says_why(tmp_path: Path, address: str) -> None:
    """Degraded is exit code 1; failed queries are 3, and say nothing about the retriever."""
    many = "2 passages returned, none expected; give `max_relevance_score` if it always returns k"
    partly = {"expected": ["d9", "d2", "d1"], "min_recall": 0.5, "min_relevance_score": 0.95}
    told: list[tuple[dict[str, Any], str, int]] = [
        ({"expected": ["d1"]}, "every canary succeeded", 0),
        ({"expected": ["d9"]}, "not in the first 5: d9; top results: d1, d2", 1),
        ({"expected": ["d9"], "query": "none"}, "not in the first 5: d9; top results: none", 1),
        ({"category": "negative"}, many, 1),
        ({"category": "negative", "max_relevance_score": 0.95}, "every canary succeeded", 0),
        ({"expected": [], "max_relevance_score": 0.9}, "score 0.9 at rank 1, max_relevance_score 0.9", 1),
        ({"expected": ["d2"], "min_relevance_score": 0.8}, "score 0.4 at rank 2, min_relevance_score 0.8", 1),
        (partly, "score 0.9 at rank 1, min_relevance_score 0.95", 1),
        ({"expected": ["d1"], "query": "status"}, "status: HTTP 500", 3),
        ({"expected": [{"text": "Cats purr."}]}, "every canary succeeded", 0),
    ]
    for item, message, code in told:
        result = canary("--config", a_config(tmp_path, docs=(address, [{"query": "cats", "name": "cats"} | item])))
        assert (result.return_value, result.exception) == (code, None), item
        assert message in " ".join(result.stdout.replace("│", " ").split())


def test_a_fall_of_all_scores_is_told_beside_the_daemon(tmp_path: Path, address: str) -> None:
    """The daemon has seen scores of 1.9 and 1.8; now they are .9 and .4, and everything is still retrieved."""
    path = a_config(tmp_path, docs=(address, FINE))
    assert "every canary succeeded" in canary("--config", path).stdout
    store = SqliteStore(tmp_path / "state")
    usual = a_report(a_canary("d1", name="cats", query="cats"), a_reply("d1", "d2", scores=[1.9, 1.8]))
    _, levels = with_levels(SuiteReport("docs", (5,), (usual,)), {})
    store.remember(levels_name("docs"), {key: list(level) for key, level in levels.items()})
    store.close()
    shown = " ".join(canary("--config", path).stdout.split())
    assert "all scores of the retriever fell by more than their own spread, so health is 0" in shown
    assert "coverage 1.000 health 0.000" in shown


def test_no_text_commands_the_terminal(tmp_path: Path, address: str) -> None:
    """Escape sequences in names, replies and texts are shown as what they are not; brackets are no markup."""
    item = {"query": "cats", "name": "a\x1b[2Jcat", "expected": ["[bold]d9\x1b]0;owned\x07"]}
    result = canary("--config", a_config(tmp_path, docs=(address, [item])))
    assert result.return_value == 1
    assert "\x1b" not in result.stdout
    assert "[bold]d9\ufffd]0;owned\ufffd" in "".join(result.stdout.split("\n"))


def test_suites_can_be_picked(tmp_path: Path, address: str) -> None:
    """Unknown figures are said to be; no configuration, an unknown suite and none at all are refused."""
    path = a_config(tmp_path, docs=(address, FINE), down=(f"http://127.0.0.1:{free_port()}", FINE))
    docs = canary("--config", path, "--suite", "docs", "--json")
    assert [each["suite"] for each in json.loads(docs.stdout)["suites"]] == ["docs"]
    down = canary("--config", path, "--suite", "down")
    assert down.return_value == 3
    assert "recall@5 unknown" in down.stdout
    assert canary("--config", path).return_value == 3
    assert isinstance(canary().exception, click.UsageError)
    unknown = canary("--config", path, "--suite", "nope")
    assert refused(unknown) == "--suite nope: is not configured; use one of: docs, down"
    for arguments in (("--suite", "nope"), ()):
        assert refused(canary("--config", a_config(tmp_path), *arguments)).startswith("canaries: none is configured")


def test_f1_stands_beside_precision_and_recall_and_figures_by_category(tmp_path: Path, address: str) -> None:
    """One context at rank 1 of two: precision@5 .2, recall 1, F1 1/3; a table by category where there are two."""
    items = [*FINE, {"query": "dogs", "name": "dogs", "expected": ["d1", "d9"], "category": "comparative"}]
    path = a_config(tmp_path, docs=(address, items))
    shown = canary("--config", path).stdout
    for text in ("precision", "F1", "comparative", "simple_factual", "recall@5", "F1@5"):
        assert text in shown
    line = json.loads(canary("--config", path, "--json").stdout)["suites"][0]
    simple, comparative = (line["categories"][name] for name in ("simple_factual", "comparative"))
    assert simple["f1"]["5"] == pytest.approx(1 / 3)
    assert comparative["f1"]["5"] == pytest.approx(2 * 0.2 * 0.5 / 0.7)
    assert line["f1"]["5"] == pytest.approx((simple["f1"]["5"] + comparative["f1"]["5"]) / 2)


class Service:
    """A RAG service whose retriever and generator can each be wrong.

    Attributes:
        context: What its retriever returns.
        answers: Its answer by the context that it was given.
    """

    def __init__(self, context: str, answers: dict[str, str]) -> None:
        self.context, self.answers = context, answers

    async def ask(self, request: Request) -> JSONResponse:
        """The answer from its own contexts, or from given ones."""
        given = (await request.json()).get("contexts", [self.context])
        hits = [{"id": "d1", "text": text, "score": 0.9} for text in given]
        return JSONResponse({"answer": self.answers[given[0]], "hits": hits})


async def chat(_: Request) -> JSONResponse:
    """A model whose reply is no verdict."""
    return JSONResponse({"choices": [{"message": {"content": "no"}, "finish_reason": "stop"}], "model": "m"})


def judged(folder: Path, service: Service, *options: str, judge: dict[str, Any] = WORDS, **item: Any) -> Result:
    """The command, with three canaries about refunds, which `item` changes."""
    item = {"expected": [{"id": "d1", "text": GOLD}], "reference": "Within five days."} | item
    items = [{"name": f"c{n}", "query": f"When are refunds paid, case {n}?"} | item for n in range(3)]
    replies = {"/ask": service.ask, "/v1/chat/completions": chat}
    with serving(*(Route(path, reply, methods=["POST"]) for path, reply in replies.items())) as address:
        judges = [judge | ({"base_url": f"{address}/v1"} if judge is UNREADABLE else {})]
        oracle = {"url": f"{address}/ask", "body": {"contexts": "{{ contexts }}"}, "answer": "answer"}
        probe = {"kind": "rag", "url": f"{address}/ask", "body": {"query": "{{ query }}"}, "contexts": "hits"}
        probe |= {"answer": "answer", "oracle": oracle}
        suite = {"suite": "docs", "k": [5], "judge": "embedded", "items": items, "probe": probe}
        result = command("canary", "--config", configured(folder, judges=judges, canaries=[suite]), *options)
    assert result.exception is None
    return result


@pytest.mark.parametrize("reference", [{}, {"reference": None}])
def test_a_generator_that_is_always_wrong(tmp_path: Path, reference: dict[str, Any]) -> None:
    """Recall is 1 and no answer is right, with a reference or without: the exit code is 1, and the stage is named."""
    service = Service(GOLD, {GOLD: WRONG})
    shown = judged(tmp_path, service, **reference)
    assert shown.return_value == 1
    assert f"{GENERATOR} (3 of 3 canaries)" in shown.stdout
    assert "every canary succeeded to retrieve what it expects" in shown.stdout
    line = json.loads(judged(tmp_path, service, "--json", **reference).stdout)["suites"][0]
    correctness = None if reference else 0.0
    assert line["answers"] == {
        "judged": 6,
        "correctness": {"gold": correctness, "retrieved": correctness},
        "faults": {"c0": "generator", "c1": "generator", "c2": "generator"},
        "verdict": [f"{GENERATOR} (3 of 3 canaries)"],
        "not_judged": {},
    }


def test_the_stage_at_fault(tmp_path: Path) -> None:
    """Right with the expected context alone: the retriever; always: a success; unread: exit code 3."""
    shown = judged(tmp_path, Service(OTHER, {GOLD: RIGHT, OTHER: WRONG}))
    assert shown.return_value == 1
    assert "answers: correctness 1.000 with the expected contexts, 0.000 with the retrieved ones" in shown.stdout
    assert "with the right contexts it is right: the retriever (3 of 3 canaries)" in shown.stdout
    service = Service(GOLD, {GOLD: RIGHT})
    assert judged(tmp_path, service).return_value == 0
    by_id = judged(tmp_path, service, expected=["d1"])
    assert by_id.return_value == 0
    assert "3 answers not judged: an expected context has an id and no text" in by_id.stdout
    assert "every canary succeeded" in by_id.stdout
    result = judged(tmp_path, Service(GOLD, {GOLD: RIGHT}), judge=UNREADABLE)
    assert result.return_value == 3
    assert "6 answers not judged: " in result.stdout
    assert "answers: correctness unknown with the expected contexts, unknown with the retrieved ones" in result.stdout
