"""The load generator."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from ragwatch.demo.driver import Driver, endless
from ragwatch.demo.endpoint import Endpoint
from ragwatch.demo.questions import Question
from ragwatch.demo.service import RagService

QUESTIONS = tuple(Question(f"What is number {number}?", "search", None) for number in range(20))


def test_every_question_is_asked_once_a_round_in_an_order_of_its_own() -> None:
    """A shuffle, not a draw; the next round differs, and so does another seed."""
    asked, again, other = (list(islice(endless(QUESTIONS, seed), 40)) for seed in (7, 7, 8))
    assert set(asked[:20]) == set(asked[20:]) == set(QUESTIONS)
    assert asked[:20] != asked[20:]
    assert asked == again != other


def test_a_step_asks_one_question_over_http(tmp_path: Path) -> None:
    """It is counted, it is in the log with its route, and whoever wants is told the time before."""
    service, times, ticks = RagService(tmp_path / "rag.jsonl"), [], iter([100.0, 101.5, 103.0])
    endpoint = Endpoint(service)
    endpoint.start()
    driver = Driver(endpoint.address, QUESTIONS, before=times.append, clock=lambda: next(ticks))
    driver.step()
    driver.step()
    driver.stop()
    endpoint.stop()
    service.close()
    records = [json.loads(line) for line in (tmp_path / "rag.jsonl").read_text().splitlines()]
    assert (driver.asked, driver.failed, times) == (2, 0, [1.5, 3.0])
    assert [record["question"] for record in records] == [
        question.text for question in islice(endless(QUESTIONS, 7), 2)
    ]
    assert {record["route"] for record in records} == {"search"}


def test_a_service_that_is_gone_is_counted_not_raised(tmp_path: Path) -> None:
    """The users go on asking."""
    service = RagService(tmp_path / "rag.jsonl")
    endpoint = Endpoint(service)
    address = endpoint.address
    endpoint.stop()
    service.close()
    driver = Driver(address, QUESTIONS)
    driver.step()
    driver.stop()
    assert (driver.asked, driver.failed) == (1, 1)
