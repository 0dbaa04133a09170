"""`ragwatch canary` with a judge: which stage is at fault for wrong answers, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from support.command_line import command, configured
from support.retrievers import serving

RIGHT, WRONG = "Refunds are paid within five days.", "Our museum opens at noon on Sundays."
GOLD = "Refunds are paid within five days to the card that was used."
OTHER = "Parcels are sent by rail."
WORDS: dict[str, Any] = {"name": "embedded", "kind": "lexical"}
UNREADABLE: dict[str, Any] = {"name": "embedded", "kind": "openai", "model": "m", "prices": {"input": 0, "output": 0}}
GENERATOR = "even with the right contexts it is wrong: the generator"


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


def canary(folder: Path, service: Service, *options: str, judge: dict[str, Any] = WORDS, **item: Any) -> Result:
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
    shown = canary(tmp_path, service, **reference)
    assert shown.return_value == 1
    assert f"{GENERATOR} (3 of 3 canaries)" in shown.stdout
    assert "every canary succeeded to retrieve what it expects" in shown.stdout
    line = json.loads(canary(tmp_path, service, "--json", **reference).stdout)["suites"][0]
    correctness = None if reference else 0.0
    assert line["answers"] == {
        "judged": 6,
        "correctness": {"gold": correctness, "retrieved": correctness},
        "faults": {"c0": "generator", "c1": "generator", "c2": "generator"},
        "verdict": [f"{GENERATOR} (3 of 3 canaries)"],
        "not_judged": {},
    }


def test_two_figures_tell_the_retriever_from_the_generator(tmp_path: Path) -> None:
    """Right with the expected context, wrong with what was retrieved: the retriever, though the id is right."""
    shown = canary(tmp_path, Service(OTHER, {GOLD: RIGHT, OTHER: WRONG}))
    assert shown.return_value == 1
    assert "answers: correctness 1.000 with the expected contexts, 0.000 with the retrieved ones" in shown.stdout
    assert "with the right contexts it is right: the retriever (3 of 3 canaries)" in shown.stdout


def test_right_answers_are_a_success(tmp_path: Path) -> None:
    """With every expected context known by text, and where one is known by its id alone: that is no failure."""
    service = Service(GOLD, {GOLD: RIGHT})
    assert canary(tmp_path, service).return_value == 0
    by_id = canary(tmp_path, service, expected=["d1"])
    assert by_id.return_value == 0
    assert "3 answers not judged: an expected context has an id and no text" in by_id.stdout
    assert "every canary succeeded" in by_id.stdout


def test_an_answer_that_the_judge_could_not_read_is_no_success(tmp_path: Path) -> None:
    """Exit code 3, as for queries that failed."""
    result = canary(tmp_path, Service(GOLD, {GOLD: RIGHT}), judge=UNREADABLE)
    assert result.return_value == 3
    assert "6 answers not judged: " in result.stdout
    assert "answers: correctness unknown with the expected contexts, unknown with the retrieved ones" in result.stdout
