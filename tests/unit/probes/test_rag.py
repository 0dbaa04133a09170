"""Probe `rag` against a real service on the loopback interface: answers, contexts, and an oracle run."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from support.retrievers import HITS, asked, serving

from ragwatch.probes.rag import Options, RagProbe, build
from ragwatch.statistics.canary.answer import gold_texts, sample_of
from ragwatch.statistics.canary.definition import Canary, Expected, Failure, Hit

CANARY = Canary("cats", "What do cats do?", (Expected("d1", "Cats purr."),), reference="They purr.")


class Service:
    """Answers from what it retrieves, or from what it is given."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def ask(self, request: Request) -> Response:
        """What it retrieves, and the first passage as its answer."""
        body = await request.json()
        self.seen.append(body)
        reply: dict[str, Any] = {"result": {"answer": HITS[0]["text"]}, "sources": HITS}
        if body["question"] == "mute":
            reply["result"] = {}
        return JSONResponse(reply, status_code=500 if body["question"] == "down" else 200)

    async def generate(self, request: Request) -> Response:
        """Joins what it is given."""
        body = await request.json()
        self.seen.append(body)
        return JSONResponse({"text": " ".join(body["passages"])})


@pytest.fixture
def service() -> Service:
    """A service."""
    return Service()


@pytest.fixture
def address(service: Service) -> Iterator[str]:
    """Where it listens."""
    routes = Route("/ask", service.ask, methods=["POST"]), Route("/generate", service.generate, methods=["POST"])
    with serving(*routes) as address:
        yield address


def probe(address: str, **parts: Any) -> RagProbe:
    """A probe of the service, oracle included."""
    whole = {
        "url": f"{address}/ask",
        "body": {"question": "{{ query }}"},
        "answer": "result.answer",
        "contexts": "sources",
        "score": "similarity",
        "oracle": {
            "url": f"{address}/generate",
            "body": {"q": "{{ query }}", "passages": "{{ contexts }}"},
            "answer": "text",
        },
    }
    return build(Options.model_validate(whole | parts), name="docs")


async def test_answer_and_contexts_come_from_one_question(address: str, service: Service) -> None:
    """The service is asked once; the sample has what a judge needs, with the canary's reference."""
    result = await asked(probe(address), CANARY.query)
    assert (result.answer, result.hits[0], len(result.hits)) == ("Cats purr.", Hit("d1", "Cats purr.", 0.9), 2)
    assert service.seen == [{"question": "What do cats do?"}]
    assert len((await asked(probe(address), k=1)).hits) == 1
    sample = sample_of(CANARY, result, suite="docs", at=1.0)
    assert sample is not None
    assert (sample.answer, sample.reference, len(sample.contexts)) == ("Cats purr.", "They purr.", 2)


@pytest.mark.parametrize(("query", "failure"), [("mute", Failure.SHAPE), ("down", Failure.STATUS)])
async def test_no_answer_is_a_counted_reason(address: str, query: str, failure: Failure) -> None:
    """A service that does not answer has not answered with an empty text."""
    result = await asked(probe(address), query)
    assert (result.failure, result.answer, result.hits) == (failure, None, ())


async def test_an_oracle_run_hands_over_the_gold_contexts(address: str, service: Service) -> None:
    """As a list; nothing is retrieved. Without an oracle that is a failure: one canary must not spoil another."""
    gold = gold_texts(CANARY)
    assert gold is not None
    made = probe(address)
    result = await made.ask_with(CANARY.query, gold)
    await made.close()
    assert (result.answer, result.hits, result.failure) == ("Cats purr.", (), None)
    assert service.seen == [{"q": "What do cats do?", "passages": ["Cats purr."]}]
    bare = probe(address, oracle=None)
    result = await bare.ask_with(CANARY.query, gold)
    await bare.close()
    assert (result.failure, result.detail) == (Failure.SHAPE, "oracle: is not configured")
