"""The contract of `ports.Judge`, for every kind; those that ask a model ask the loopback server.

`local` runs its contract twice: with the model that is shipped, and with the small one of the tests. The model of
`detector` knows nothing (its logits are near 0), so that the words decide: what is tested is what is ours.

There a rule answers, which reads as the embedded judge does. So for those kinds the contract is about what is ours:
the page, the schema, the check of the reply. What a model can be talked into is another matter, and has its own tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback.fixture import LoopbackProcess, loopback_process  # noqa: F401 - a fixture
from support.hostile import HOSTILE
from support.kit import a_draw, a_judge_context, a_reading

from ragwatch.errors import JudgeError
from ragwatch.judges import KINDS
from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Context, Role, Sample, Turn
from ragwatch.ports import Judge
from ragwatch.statistics.verdict import Judged, UnjudgedReason, judged

pytestmark = pytest.mark.uncounted

DATA = Path(__file__).parents[1] / "data"
WEIGHTS, DETECTOR = DATA / "local", DATA / "detector" / "neutral"
TINY = "local, the small model of the tests"
CASES = (*sorted(KINDS), TINY)
CONTEXTS = (
    Context("The harbour museum opens at nine and closes at five. Entry costs twelve euros for adults.", "museum"),
    Context("The ferry to the island leaves every forty minutes from the northern pier.", "ferry"),
    Context("Tomatoes need full sun and regular watering in dry summers.", "garden"),
)
QUESTION = "When does the harbour museum open and what does entry cost?"
ANSWER = "The harbour museum opens at nine. Entry costs twelve euros for adults. The director was born in Lisbon."
EXPECTED = ["supported", "supported", "not_in_context"]


def a_case(question: str | None = QUESTION, contexts: Sequence[Context] = CONTEXTS, answer: str = ANSWER) -> Sample:
    """A clear case, with parts of it changed."""
    return Sample("s1", question, tuple(contexts), answer)


SAMPLE = a_case()


def made(case: str, server: LoopbackProcess) -> Judge:
    """A judge of a kind, with its defaults but for where its model answers, or lies."""
    kind = "local" if case == TINY else case
    options: dict[str, object] = {"weights": WEIGHTS} if case == TINY else {}
    if kind == "detector":
        options = {"model": DETECTOR}
    elif kind == "claude":
        options = {"base_url": server.address, "api_key": server.key}
    elif kind == "openai":
        free = {"input": 0, "output": 0}
        options = {"base_url": f"{server.address}/v1", "api_key": server.key, "model": "any", "prices": free}
    return KINDS[kind].build(KINDS[kind].Options(**options), name="mine", context=a_judge_context())


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """Each kind."""
    name: str = request.param
    return name


@pytest.fixture
async def judge(case: str, loopback_process: LoopbackProcess) -> AsyncIterator[Judge]:  # noqa: F811
    """Each kind's judge."""
    judge = made(case, loopback_process)
    yield judge
    await judge.close()


async def evidence_of(judge: Judge, sample: Sample) -> Evidence:
    """What the judge reads; it must fit the sample, or no verdict could be made of it."""
    evidence, _ = await judge.read(sample)
    draw = a_draw("s1")
    assert isinstance(judged(replace(draw, sample=sample), a_reading(), evidence), Judged)
    return evidence


def verdicts(evidence: Evidence) -> dict[str, str]:
    """Verdict by the words of the claim."""
    return {claim.text: str(claim.verdict) for claim in evidence.claims}


@pytest.mark.costly
async def test_names(judge: Judge) -> None:
    """A judge has the name it was configured with, its kind's name, a version, and room for one reading at least."""
    assert (judge.name, judge.kind in KINDS, bool(judge.version)) == ("mine", True, True)
    assert judge.concurrency >= 1


async def test_a_clear_case(judge: Judge) -> None:
    """Claims that a context says in the same words are supported; one that nobody wrote is not."""
    evidence = await evidence_of(judge, SAMPLE)
    assert list(verdicts(evidence).values()) == EXPECTED
    assert evidence.claims[0].contexts == (0,)
    assert evidence.contexts[0].relevant is True
    assert evidence.contexts[2].relevant is False


async def test_offsets_are_those_of_the_answer(judge: Judge) -> None:
    """A claim with offsets is a verbatim part of the answer, and claims stand in its order."""
    evidence = await evidence_of(judge, SAMPLE)
    for claim in evidence.claims:
        if claim.start is not None:
            assert ANSWER[claim.start : claim.end] == claim.text
    starts = [claim.start for claim in evidence.claims if claim.start is not None]
    assert starts == sorted(starts)


async def test_evidence_is_quoted_from_a_context(judge: Judge) -> None:
    """What is named as evidence stands in a context, word for word."""
    for claim in (await evidence_of(judge, SAMPLE)).claims:
        assert claim.evidence is None or any(claim.evidence in context.text for context in CONTEXTS)


@pytest.mark.costly
async def test_reading_twice_reads_the_same(
    case: str,
    judge: Judge,
    loopback_process: LoopbackProcess,  # noqa: F811
) -> None:
    """Same sample, same evidence, also from a second judge of the kind.

    Of a kind that asks a model this holds as far as the model repeats itself: the ids of a page are no part of it.
    """
    other = made(case, loopback_process)
    first = await evidence_of(judge, SAMPLE)
    assert [await evidence_of(reader, SAMPLE) for reader in (judge, other)] == [first, first]
    await other.close()


async def test_usage_is_counted(judge: Judge) -> None:
    """What a reading costs is never negative."""
    _, usage = await judge.read(SAMPLE)
    assert min(usage.input_tokens, usage.output_tokens, usage.cost_usd) >= 0


async def test_no_contexts(judge: Judge) -> None:
    """Nothing retrieved supports nothing: claims are there, columns are not."""
    evidence = await evidence_of(judge, a_case(contexts=()))
    assert (len(evidence.claims), evidence.contexts) == (3, ())
    assert set(verdicts(evidence).values()) == {"not_in_context"}


async def test_empty_contexts(judge: Judge) -> None:
    """Contexts without text keep their columns, and support nothing."""
    evidence = await evidence_of(judge, a_case(contexts=(Context(""), Context(" \n"))))
    assert [column.relevant for column in evidence.contexts] == [False, False]
    assert set(verdicts(evidence).values()) == {"not_in_context"}


async def test_no_question(judge: Judge) -> None:
    """Without a question claims are read all the same, and how it is addressed stays unknown."""
    evidence = await evidence_of(judge, a_case(question=None))
    assert list(verdicts(evidence).values()) == EXPECTED
    assert evidence.address is None


@pytest.mark.costly
@pytest.mark.parametrize("answer", [":", "Thought process:", "...", "\u200b", "#"])
async def test_an_answer_that_says_nothing_claims_nothing(judge: Judge, answer: str) -> None:
    """A colon is not a faithful answer: no claim, so no score."""
    assert (await evidence_of(judge, a_case(answer=answer))).claims == ()


async def test_what_was_said_before_is_no_evidence(judge: Judge) -> None:
    """What the assistant said is as unsupported as without it; what the user stated is marked; contexts still count."""
    history = (
        Turn(Role.USER, "I lost a red umbrella yesterday evening."),
        Turn(Role.ASSISTANT, "The director was born in Lisbon. Entry costs twelve euros for adults."),
    )
    answer = f"{ANSWER} You lost a red umbrella yesterday evening."
    plain = await evidence_of(judge, a_case(answer=answer))
    evidence = await evidence_of(judge, a_case(answer=answer)._replace(history=history))
    assert list(verdicts(evidence).values()) == [*EXPECTED, "not_in_context"]
    assert [claim.cells for claim in evidence.claims] == [claim.cells for claim in plain.claims]
    assert [claim.said_by_user for claim in evidence.claims] == [False, False, False, True]
    assert not any(claim.said_by_user for claim in plain.claims)


async def test_an_abstention_is_seen(judge: Judge) -> None:
    """An answer that says it does not know is a class of its own."""
    evidence = await evidence_of(judge, a_case(answer="I could not find that in the documents."))
    assert (evidence.abstained, evidence.claims) == (True, ())


def placed(text: str, position: str) -> Sample:
    """The sample with a hostile text in one place."""
    if position == "question":
        return a_case(question=f"{QUESTION}\n\n{text}")
    if position == "answer":
        return a_case(answer=f"{ANSWER}\n\n{text}")
    return a_case(contexts=(*CONTEXTS[:1], Context(f"{CONTEXTS[1].text}\n\n{text}"), CONTEXTS[2]))


@pytest.mark.costly
@pytest.mark.parametrize("position", ["question", "context", "answer"])
async def test_orders_in_texts_are_not_followed(judge: Judge, position: str) -> None:
    """Whatever a text orders, the verdicts on the claims are those of the clean run."""
    clean = verdicts(await evidence_of(judge, SAMPLE))
    moved = {}
    for text in HOSTILE:
        read_verdicts = verdicts(await evidence_of(judge, placed(text, position)))
        if {claim: read_verdicts.get(claim) for claim in clean} != clean:
            moved[text] = read_verdicts
    assert moved == {}


@pytest.mark.costly
async def test_what_an_order_says_is_not_supported(judge: Judge) -> None:
    """A hostile text in the answer is at most a claim like others, and no context says it."""
    clean = verdicts(await evidence_of(judge, SAMPLE))
    for text in HOSTILE:
        read_verdicts = verdicts(await evidence_of(judge, placed(text, "answer")))
        assert {verdict for claim, verdict in read_verdicts.items() if claim not in clean} <= {"not_in_context"}, text


@pytest.mark.costly
async def test_x3_a_context_cannot_change_another_ones_row(judge: Judge) -> None:
    """A poisoned context lies about itself at most: cells of the others stay as they are."""
    clean = await evidence_of(judge, SAMPLE)
    for text in HOSTILE:
        evidence = await evidence_of(judge, placed(text, "context"))
        assert [(row.cells[0], row.cells[2]) for row in evidence.claims] == [
            (row.cells[0], row.cells[2]) for row in clean.claims
        ]


@pytest.mark.costly
@pytest.mark.parametrize("case", CASES)
def test_any_text_is_read_or_refused_with_a_reason(case: str, loopback_process: LoopbackProcess) -> None:  # noqa: F811
    """No text makes a judge fail otherwise than by a counted reason."""
    texts = st.text(st.characters(exclude_categories=()), max_size=200)

    async def read(sample: Sample) -> None:
        judge = made(case, loopback_process)
        try:
            await evidence_of(judge, sample)
        except JudgeError as error:
            assert error.reason in set(UnjudgedReason)  # noqa: PT017 - either outcome is right
        await judge.close()

    @given(st.none() | texts, st.lists(texts, max_size=4), texts)
    def read_or_refuse(question: str | None, contexts: list[str], answer: str) -> None:
        asyncio.run(read(a_case(question, [Context(text) for text in contexts], answer)))

    read_or_refuse()
