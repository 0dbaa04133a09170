"""The contract of `ports.Judge`, for every kind; those that ask a model ask the loopback server.

`local` runs its contract twice: with the model that is shipped, and with the small one of the tests. The model of
`detector` knows nothing (its logits are near 0), so that the words decide: what is tested is what is ours.

There a rule answers, which reads as the embedded judge does. So for those kinds the contract is about what is ours:
the page, the schema, the check of the reply. What a model can be talked into is another matter, and has its own tests.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import cache
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
from ragwatch.statistics.scores import score_all
from ragwatch.statistics.stage import stage
from ragwatch.statistics.verdict import Judged, UnjudgedReason, judged

pytestmark = pytest.mark.uncounted

DATA = Path(__file__).parents[1] / "data"
WEIGHTS, DETECTOR = DATA / "local", DATA / "detector" / "neutral"
INJECTIONS = [json.loads(line)["text"] for line in (DATA / "injections.jsonl").read_text(encoding="utf-8").splitlines()]
TINY = "local, the small model of the tests"
CASES = (*sorted(KINDS), TINY)
ASKING = ("claude", "openai")
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


embedded = cache(made)
"""A judge that holds nothing of the loop, made once for all tests."""


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """Each kind."""
    name: str = request.param
    return name


@pytest.fixture
async def judge(case: str, loopback_process: LoopbackProcess) -> AsyncIterator[Judge]:  # noqa: F811
    """Each kind's judge."""
    judge = made(case, loopback_process) if case in ASKING else embedded(case, loopback_process)
    yield judge
    await judge.close()


async def evidence_of(judge: Judge, sample: Sample) -> Evidence:
    """What the judge reads; it fits the sample, and keeps the laws of evidence: places, quotes, numbers, costs."""
    evidence, usage = await judge.read(sample)
    assert isinstance(judged(replace(a_draw("s1"), sample=sample), a_reading(), evidence), Judged)
    assert min(usage.input_tokens, usage.output_tokens, usage.cost_usd) >= 0
    placed = [claim for claim in evidence.claims if claim.start is not None]
    assert [claim.text for claim in placed] == [sample.answer[claim.start : claim.end] for claim in placed]
    assert [claim.start for claim in placed] == sorted(claim.start for claim in placed)
    texts = [context.text for context in sample.contexts]
    for claim in evidence.claims:
        assert claim.evidence is None or any(on_one_line(claim.evidence) in on_one_line(text) for text in texts)
        assert claim.support is None or 0.0 <= claim.support <= 1.0
    assert len(evidence.contexts) == len(sample.contexts)
    assert all(value is None or 0.0 <= value <= 1.0 for value in score_all(evidence).values())
    stage(evidence)
    return evidence


def on_one_line(text: str) -> str:
    """A text with single spaces, as LLM judges quote it."""
    return " ".join(text.split())


def verdicts(evidence: Evidence) -> dict[str, str]:
    """Verdict by the words of the claim."""
    return {claim.text: str(claim.verdict) for claim in evidence.claims}


async def test_a_clear_case(case: str, judge: Judge, loopback_process: LoopbackProcess) -> None:  # noqa: F811
    """Claims that a context says in the same words are supported; one that nobody wrote is not.

    A second judge of the kind reads the same. Of a kind that asks a model this holds as far as the model repeats
    itself: the ids of a page are no part of it.
    """
    assert (judge.name, judge.kind in KINDS, bool(judge.version), judge.concurrency >= 1) == ("mine", True, True, True)
    evidence = await evidence_of(judge, SAMPLE)
    assert list(verdicts(evidence).values()) == EXPECTED
    assert evidence.claims[0].contexts == (0,)
    assert (evidence.contexts[0].relevant, evidence.contexts[2].relevant) == (True, False)
    other = made(case, loopback_process)
    assert [await evidence_of(reader, SAMPLE) for reader in (judge, other)] == [evidence, evidence]
    await other.close()


async def test_what_is_missing(judge: Judge) -> None:
    """Nothing retrieved supports nothing; contexts without text have columns; without a question claims are read."""
    without = await evidence_of(judge, a_case(contexts=()))
    blank = await evidence_of(judge, a_case(contexts=(Context(""), Context(" \n"))))
    assert set(verdicts(without).values()) == set(verdicts(blank).values()) == {"not_in_context"}
    assert (len(without.claims), [column.relevant for column in blank.contexts]) == (3, [False, False])
    unasked = await evidence_of(judge, a_case(question=None))
    assert (list(verdicts(unasked).values()), unasked.address) == (EXPECTED, None)


@pytest.mark.costly
async def test_an_answer_that_says_nothing_claims_nothing(judge: Judge) -> None:
    """A colon is not a faithful answer: no claim, so no score. One that says it does not know is a class of its own."""
    for answer in (":", "Thought process:", "...", "\u200b", "#"):
        assert (await evidence_of(judge, a_case(answer=answer))).claims == (), answer
    unknown = await evidence_of(judge, a_case(answer="I could not find that in the documents."))
    assert (unknown.abstained, unknown.claims) == (True, ())


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


async def test_copies_of_a_context_change_nothing(judge: Judge) -> None:
    """Twenty copies: the same verdicts and probabilities, and every copy supports."""
    once, often = [await evidence_of(judge, a_case(contexts=CONTEXTS[:1] * times)) for times in (1, 20)]
    assert verdicts(often) == verdicts(once)
    # A detector reads several contexts at once.
    assert [claim.support for claim in often.claims] == pytest.approx([claim.support for claim in once.claims])
    assert often.claims[0].contexts == tuple(range(20))


def placed(text: str, position: str) -> Sample:
    """The sample with a hostile text in one place."""
    if position == "question":
        return a_case(question=f"{QUESTION}\n\n{text}")
    if position == "answer":
        return a_case(answer=f"{ANSWER}\n\n{text}")
    if position == "alone":
        return a_case(contexts=[Context(text)])
    return a_case(contexts=(*CONTEXTS[:1], Context(f"{CONTEXTS[1].text}\n\n{text}"), CONTEXTS[2]))


@pytest.mark.costly
@pytest.mark.parametrize("position", ["question", "context", "answer", "alone"])
async def test_orders_in_texts_are_not_followed(judge: Judge, position: str) -> None:
    """Whatever a text orders, the verdicts on the claims are those of the clean run, and so are other contexts' cells.

    In the answer it is at most a claim like others, which no context says; as the only context it supports nothing.
    """
    clean = await evidence_of(judge, SAMPLE)
    known = verdicts(clean)
    texts = list(HOSTILE)
    if judge.kind in ASKING:  # both write the same page: each is shown every second text
        texts = texts[ASKING.index(judge.kind) :: 2]
    elif judge.kind != "lexical" and position in {"context", "alone"}:
        texts += INJECTIONS
    for text in texts:
        evidence = await evidence_of(judge, placed(text, position))
        found = verdicts(evidence)
        if position == "alone":
            assert "supported" not in found.values(), text
            continue
        assert {claim: found.get(claim) for claim in known} == known, text
        assert {found[claim] for claim in found.keys() - known.keys()} <= {"not_in_context"}, text
        if position == "context":
            cells = [[(row.cells[0], row.cells[2]) for row in one.claims] for one in (evidence, clean)]
            assert cells[0] == cells[1], text


TABLE = "| ship | price | crew |\n|---|---|---|\n| Ferry | 12 euros | 7 |\n| Old ship | 40 euros | 12 |"
CODE = "def read(path):\n    with open(path) as file:\n        return file.read()\n"
PAGE = "Home | About us | Cookies | Privacy\nWe use cookies. Accept all. Subscribe to our letter! (c) 2024\n" * 20
MUSEUM = CONTEXTS[0].text
QUOTES = "“The museum,” she said, “opens at ‘nine’ — in summer.”"
ODD = (
    (ANSWER, ["", " \n\t", "\u200b"]),
    (ANSWER, [PAGE, MUSEUM]),
    ("The ferry costs 12 euros and has a crew of 7.", [TABLE]),
    (TABLE, [TABLE, MUSEUM]),
    (f"```python\n{CODE}```\nIt reads a file.", [CODE]),
    ("Yes.", [MUSEUM]),
    ("12", [TABLE]),
    ("- The museum opens at nine.\n- Tickets cost twelve euros.\n  * for adults\n1. no\n2) yes", [MUSEUM]),
    (QUOTES, [MUSEUM, QUOTES]),
    ("Ｔｈｅ ｍｕｓｅｕｍ ｏｐｅｎｓ ａｔ ｎｉｎｅ.", [MUSEUM]),
    ("The muse\u200bum op\u00adens at ni\u200dne.", [MUSEUM]),
    ("Тhе musеum ореns аt ninе in summеr.", [MUSEUM]),  # Cyrillic letters that look Latin
    ("\u202eemmus ni enin ta snepo muesum ehT\u202c", [MUSEUM]),
    ("T̷h̷e̷ ̷m̷u̷s̷e̷u̷m̷ ̷o̷p̷e̷n̷s̷ ̷a̷t̷ ̷n̷i̷n̷e̷.", [MUSEUM]),
    ("The museum 🏛️ opens at 9️⃣ 👨‍👩‍👧‍👦!", [MUSEUM]),
    ("The museum \ud800 opens at nine.", [MUSEUM, "The museum opens \udfff at nine in summer."]),
    ("a" * 5_000, ["a" * 5_000]),
    ("? ! . , ; :", [MUSEUM]),
    ("\x00\x01\x1b[31m", ["\x00"]),
    ("Das Museum öffnet im Sommer um neun Uhr und schließt im Winter wegen Umbau.", [MUSEUM]),
    ("Музей открывается летом в девять часов.", ["Музей открывается летом в девять часов утра."]),
    ("博物馆夏天九点开门。", ["博物馆夏天九点开门，冬天关闭。"]),
    ("המוזיאון נפתח בתשע", ["המוזיאון נפתח בתשע בבוקר"]),
)
MENU = (
    "kettle boils water 90 three Vortex lamp the of not dims Paris 1,000 U.S. e.g. max_len os.path Dr. [1] - 1. ok?"
    " yes. document does mention. I don't know. * # ``` \n \n\n : ... … “quote” (b) 中文。 naïve"
)
PROSE = st.lists(st.sampled_from(MENU.split(" ")), max_size=30).map(" ".join)
TEXTS = PROSE | st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.costly
@pytest.mark.parametrize("case", CASES)
def test_any_text_is_read_or_refused_with_a_reason(case: str, loopback_process: LoopbackProcess) -> None:  # noqa: F811
    """No text makes a judge fail otherwise than by a counted reason: odd ones that people write, and any at all."""

    async def read(*samples: Sample) -> None:
        judge = made(case, loopback_process) if case in ASKING else embedded(case, loopback_process)
        for sample in samples:
            try:
                await evidence_of(judge, sample)
            except JudgeError as error:
                assert error.reason in set(UnjudgedReason)  # noqa: PT017 - either outcome is right
        await judge.close()

    @given(st.none() | TEXTS, st.lists(TEXTS, max_size=4), TEXTS)
    def read_or_refuse(question: str | None, contexts: list[str], answer: str) -> None:
        asyncio.run(read(a_case(question, [Context(text) for text in contexts], answer)))

    odd = [(answer, [Context(text) for text in contexts]) for answer, contexts in ODD]
    asyncio.run(
        read(*(a_case(question, contexts, answer) for answer, contexts in odd for question in (None, QUESTION)))
    )
    read_or_refuse()
