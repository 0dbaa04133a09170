"""The sample page: claims are marked and labelled, large and damaged data are cut."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asked import SCOPE, XSS, Reading, get, judged
from support.hostile import HOSTILE
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged

from ragwatch.judges.claims.claims import other_sentences
from ragwatch.model.evidence import Cell, CriterionAnswer, CriterionReading, Evidence, ReferenceClaim, UnreadReason
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Role, Turn
from ragwatch.ports import Erasure
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.verdict import Usage
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.pages import sample_page
from ragwatch.web.pages.pages import ANSWER_CHARS, MAX_TURNS
from ragwatch.web.pages.sample_page import LINE_BYTES, MAX_CLAIMS, MAX_CONTEXTS, MAX_LABELS, segments


async def test_unknown_answers_are_not_found(store: SqliteStore) -> None:
    """A key that nothing has, or that is none, is a 404."""
    for key in ("xyz", "0" * 31, "0" * 33, "A" * 32, "0" * 32, f"{'0' * 32}%0a", "..%2f..%2fetc"):
        for path in ("/samples", "/api/v1/samples"):
            assert (key, (await get(store, f"{path}/{key}")).status_code) == (key, 404)


async def test_what_each_context_is_to_a_claim_is_told(store: SqliteStore) -> None:
    """Alone, jointly or only informed: in words, at the claim and at the context."""
    claims = [
        replace(a_claim((1, 1)), cells=(Cell.JOINTLY, Cell.JOINTLY)),
        a_claim((1, 1)),
        replace(a_claim((0, 0)), cells=(None, Cell.INFORMED)),
    ]
    draw = a_draw("a")
    judged(store, draw, an_evidence(*claims))
    text = " ".join(Reading((await get(store, f"/samples/{draw.key}")).text).text.split())
    for expected in (
        "jointly by context 1, context 2", "by each of context 1, context 2", "informed by context 2",
        "supports claim 1 (jointly), claim 2", "informed claim 3, which nothing supports",
    ):  # fmt: skip
        assert expected in text, expected


async def test_each_statement_of_a_reference_has_its_evidence(store: SqliteStore) -> None:
    """Which context supports it and by which words, or what no context has."""
    quoted = ReferenceClaim("Cats purr.", 0, 10, (True, False), quotes=(f"A cat purrs. {XSS}", None))
    absent = ReferenceClaim("Cats nap.", 11, 20, (False, False), missing=("nap",))
    draw = a_draw("a", reference="Cats purr. Cats nap.")
    judged(store, draw, an_evidence((1, 0), reference=(quoted, absent)))
    shown = (await get(store, f"/samples/{draw.key}")).text
    text = " ".join(Reading(shown).text.split())
    assert "context 1: “A cat purrs." in text
    assert "in no context: nap" in text
    assert XSS not in shown


async def test_claims_are_marked_by_more_than_colour(store: SqliteStore) -> None:
    """Each claim's verdict stands in words beside it, with its quote and the contexts that support it."""
    answer = "Cats purr. They bark. They are blue."
    claims = [
        a_claim((1, 0), text="Cats purr.", start=0, end=10, support=0.93, evidence="Cats purr all day."),
        a_claim((0, 0), "contradicted", text="They bark.", start=11, end=21, evidence="No cat barks."),
        a_claim((0, 0), text="They are blue.", start=22, end=36),
    ]
    draw = a_draw("a", answer=answer, probability=0.25, metadata={"trace_id": "4bf92f35", "release": "v2"})
    judged(store, draw, an_evidence(*claims, needs=(True, False)), a_reading(usage=Usage(1200, 30, 0.0042)))
    body = (await get(store, f"/samples/{draw.key}")).text
    text = " ".join(Reading(body).text.replace("\xa0", " ").split())
    for expected in (
        "Stage at fault: generation", "Check the generator", "Cats purr.1 ✔", "They bark.2 ✖ contradicted",
        "They are blue.3 ? not in context", "supporting: Cats purr all day.", "contradicting: No cat barks.",
        "by context 1", "support 0.93", "why?", "0.25", "4bf92f35", "v2", "scripted-1", "1,200, 30", "$0.0042",
        "✔ relevant ✔ used", "✖ not relevant ✖ unused", "No labels.",
    ):  # fmt: skip
        assert expected in text, expected
    for mark in ("supported", "contradicted", "not_in_context"):
        assert f'<mark class="{mark}">' in body


async def test_what_is_no_claim_is_named(store: SqliteStore) -> None:
    """A sentence that no score counts is grey, with its kind in words; a claim never is."""
    answer = "Sure! Cats purr. <b>Shall</b> I say more?"
    draw = a_draw("a", answer=answer)
    judged(store, draw, an_evidence(a_claim((1, 0), text="Cats purr.", start=6, end=16)))
    scope = replace(SCOPE, other_sentences=other_sentences)
    body = (await get(store, f"/samples/{draw.key}", scope=scope)).text
    assert '<span class="dim">Sure!</span><sup class="verdict">courtesy</sup>' in body
    assert '<span class="dim">&lt;b&gt;Shall&lt;/b&gt; I say more?</span><sup class="verdict">question</sup>' in body
    assert '<mark class="supported">Cats purr.</mark>' in body
    assert "grey: no claims" in body


@pytest.mark.parametrize(
    ("evidence", "named"),
    [
        (an_evidence(a_claim((1, 0), text="Cats purr.", start=None, end=None)), True),
        (an_evidence(reads_claims=False), True),
        (an_evidence(unread=UnreadReason.LANGUAGE), False),
    ],
)
async def test_a_claim_without_a_place_is_not_called_no_claim(
    store: SqliteStore, evidence: Evidence, *, named: bool
) -> None:
    """Nor is one that the judge was not asked about; where it could not read the answer, no sentence has a kind."""
    draw = a_draw("a", answer="Sure! Cats purr.")
    judged(store, draw, evidence)
    scope = replace(SCOPE, other_sentences=other_sentences)
    body = (await get(store, f"/samples/{draw.key}", scope=scope)).text
    assert ("Sure!</span>" in body) is named
    assert "Cats purr.</span>" not in body


async def test_the_conversation_stands_before_the_question(store: SqliteStore) -> None:
    """Who said what before, oldest first; a claim that only repeats the user is called that."""
    said = [(Role.USER, "I ordered a lamp."), (Role.ASSISTANT, "Fine."), *[(Role.OTHER, "note")] * MAX_TURNS]
    history = tuple(Turn(role, text) for role, text in said)
    draw = a_draw("a", answer="You ordered a lamp.", history=history[:3])
    long, first = a_draw("b", history=history), a_draw("c")
    claim = a_claim((0, 0), text="You ordered a lamp.", start=0, end=19, said_by_user=True)
    store.admit(an_admission(draw, long, first))
    store.settle([a_verdict(draw, an_evidence(claim)), a_verdict(long), a_verdict(first)])
    pages = [await get(store, f"/samples/{each.key}") for each in (draw, long, first)]
    text, cropped, plain = (" ".join(Reading(page.text).text.split()) for page in pages)
    assert "before the question user I ordered a lamp. assistant Fine. other note Question" in text
    assert "said by the user, not counted" in text
    assert "2 earlier turns are not shown" in cropped
    assert "I ordered a lamp." not in cropped
    assert "Conversation" not in plain


async def test_every_judge_stands_side_by_side(store: SqliteStore) -> None:
    """All verdicts on the answer are in one table, the default judge first; a link chooses whose claims are marked."""
    draw = a_draw("a")
    store.admit(an_admission(draw, judges=("claude", JUDGE)))
    store.settle([a_verdict(draw, an_evidence((0, 0)), a_reading("claude", "claude-x"))])
    store.settle([a_verdict(draw)])
    for query, stage in (("", "No stage is at fault"), ("?judge=claude", "Stage at fault: generation")):
        body = (await get(store, f"/samples/{draw.key}{query}")).text
        assert stage in body
        cells = re.search(r"faithfulness</th>(.*?)</tr>", body)
        assert cells is not None
        assert re.findall(r">([0-9.]+)<", cells[1]) == ["1.000", "0.000"]
    unknown = (await get(store, f"/samples/{draw.key}?judge=nobody")).text
    assert "No stage is at fault" in unknown


async def test_a_criterion_of_one_judge_is_unknown_by_the_other(store: SqliteStore) -> None:
    """Its row has the score of the one that reads it, and a dash for the other."""
    draw = a_draw("a")
    store.admit(an_admission(draw, judges=("claude", JUDGE)))
    criteria = (CriterionReading("polite", CriterionAnswer.YES),)
    store.settle([a_verdict(draw, an_evidence((1, 0), criteria=criteria), a_reading("claude")), a_verdict(draw)])
    body = (await get(store, f"/samples/{draw.key}?judge=claude")).text
    cells = re.search(r"polite</th>(.*?)</tr>", body)
    assert cells is not None
    assert re.findall(r">([0-9.–]+)<", cells[1]) == ["–", "1.000"]


async def test_an_unjudged_answer_says_why(store: SqliteStore) -> None:
    """The reason, and no claims, scores or zeros."""
    draw = a_draw("a")
    store.admit(an_admission(draw))
    store.settle([an_unjudged(draw, "over_budget")])
    text = Reading((await get(store, f"/samples/{draw.key}")).text).text
    assert "Unjudged: over budget" in text
    assert "The answer was not judged." in text
    assert "Cats purr." in text


async def test_huge_answers_are_cut_and_said_to_be(store: SqliteStore) -> None:
    """A page stays a page, and says what it leaves out and where all of it is."""
    contexts = tuple("y" * 100_000 for _ in range(MAX_CONTEXTS + 3))
    claims = [a_claim((0,) * len(contexts), text="z" * 5000, start=i, end=i + 1) for i in range(MAX_CLAIMS + 7)]
    draw = a_draw("a", answer="x" * 1_000_000, question="q" * 100_000, contexts=contexts)
    judged(store, draw, an_evidence(*claims, relevant=(True,) * len(contexts)))
    answer = await get(store, f"/samples/{draw.key}")
    assert len(answer.text) < 1_500_000
    for expected in ("of 1,000,000 characters", "of 100,000 characters", "3 more contexts", "7 more claims"):
        assert expected in answer.text
    assert f'href="../api/v1/samples/{draw.key}"' in answer.text
    assert answer.text.count("x" * ANSWER_CHARS) == 0
    assert Reading(answer.text).text.count("x") >= ANSWER_CHARS


async def test_without_its_text_the_verdict_still_stands(store: SqliteStore) -> None:
    """Once the text of an answer is gone, scores and what the judge said of its contexts are left."""
    draw = judged(store, a_draw("a"), an_evidence(address=None))
    store.forget(Erasure(ids=frozenset({draw.key})))
    text = Reading((await get(store, f"/samples/{draw.key}")).text).text
    for expected in ("The text is no longer stored.", "read too little to determine the stage at fault", "✔ relevant"):
        assert expected in text, expected
    assert ("Cats purr." in text, "What do cats do?" in text) == (False, False)


_SPANS = st.tuples(
    st.integers(0, 30), st.integers(1, 20), st.sampled_from(["supported", "contradicted", "not_in_context"])
)
_ORDER = ["supported", "not_in_context", "contradicted"]


@given(st.text(max_size=40), st.lists(_SPANS, max_size=6))
def test_marks_cover_what_claims_cover(answer: str, spans: list[tuple[int, int, str]]) -> None:
    """The parts are the answer; each character bears the worst verdict on it; each claim ends once, if it ends here."""
    claims = [(start, start + size, verdict) for start, size, verdict in spans]
    parts = list(segments(answer, claims))
    assert "".join(part["text"] for part in parts) == answer
    marks = [part["verdict"] for part in parts for _ in part["text"]]
    for place, mark in enumerate(marks):
        over = [verdict for start, end, verdict in claims if start <= place < end]
        assert mark == max(over, key=_ORDER.index, default=None)
    ended = [number for part in parts for number in part["ends"]]
    assert sorted(ended) == [number for number, (_, end, _) in enumerate(claims, start=1) if end <= len(answer)]
    assert all(one["text"] and other["text"] for one, other in pairwise(parts))


async def test_an_answer_leads_to_its_trace(store: SqliteStore) -> None:
    """By the configured address; a hostile trace id stays one part of its path, and without an address it is text."""
    scope = replace(SCOPE, trace_url="https://traces.example/t/{trace_id}?org=1")
    links = {scope.trace_link(trace) for trace in (XSS, *HOSTILE, "..")} - {None}
    assert all(re.fullmatch(r"https://traces\.example/t/[\w.~%-]+\?org=1", str(link), re.ASCII) for link in links)
    assert scope.trace_link("..") is None
    draw = judged(store, a_draw("a", metadata={"trace_id": "4bf92f3577b34da6"}))
    linked, plain = [(await get(store, f"/samples/{draw.key}", scope=one)).text for one in (scope, SCOPE)]
    assert 'href="https://traces.example/t/4bf92f3577b34da6?org=1"' in linked
    assert ("4bf92f3577b34da6" in plain, "https:" in plain) == (True, False)


PLACES = ("samples SET body", "verdicts SET line")


def by_two_judges(store: SqliteStore, **parts: str) -> str:
    """Keep a verdict of two judges; the answer's key."""
    draw = a_draw("a", **parts)
    store.admit(an_admission(draw, judges=("embedded", "second")))
    store.settle([a_verdict(draw), a_verdict(draw, reading=a_reading("second", "v2"))])
    return draw.key


async def test_texts_larger_than_a_page_reads_are_cut(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page stands, shows the beginning, and says that it is not all."""
    monkeypatch.setattr(sample_page, "TEXT_BYTES", 1 << 20)
    key = by_two_judges(store, answer="begin " + "x" * (1 << 20))
    response = await get(store, f"/samples/{key}")
    assert response.status_code == 200
    assert "only their beginning is shown" in response.text
    assert "begin xxx" in response.text


async def test_a_verdict_larger_than_a_page_reads_is_cut(store: SqliteStore) -> None:
    """Claims as far as they were read; the page does not stumble over the one that is cut."""
    draw = a_draw("a")
    claims = [a_claim((1, 0), text=f"claim {number} " + "x" * (LINE_BYTES // 100)) for number in range(150)]
    judged(store, draw, an_evidence(*claims))
    response = await get(store, f"/samples/{draw.key}")
    assert response.status_code == 200
    assert "claim 90 " in response.text
    assert "claim 120 " not in response.text


@pytest.mark.parametrize("places", [PLACES[:1], PLACES[1:], PLACES])
async def test_damage_is_told_on_the_page(store: SqliteStore, places: tuple[str, ...]) -> None:
    """What can be read is shown, with one line on what cannot."""
    key = by_two_judges(store)
    for place in places:
        store.engine._writer.execute(f"UPDATE {place} = X'00ff'")
    response = await get(store, f"/samples/{key}")
    assert (response.status_code, response.text.count("a stored text is damaged")) == (200, 1)
    assert key in response.text


async def test_the_newest_labels_of_this_answer_are_shown(store: SqliteStore) -> None:
    """Labels of other answers, and the oldest of too many, are not."""
    key = by_two_judges(store)
    scores = {Quantity.FAITHFULNESS: 0.5}
    own = [
        Label(key, f"person {number:03}", AT + number, scores, note="half invented") for number in range(MAX_LABELS + 3)
    ]
    store.add_labels([*own, Label("0" * 32, "somebody else", AT, {})])
    text = (await get(store, f"/samples/{key}")).text
    assert ("person 002" in text, "person 003" in text, "somebody else" in text) == (False, True, False)
    assert ("half invented" in text, "0.50" in text) == (True, True)
