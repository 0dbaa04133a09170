"""The checklist on texts of chunks: complete thoughts, lengths, duplicates, boundaries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.checklists import SUBJECTS, a_chunk, a_question, some_questions, words

from ragwatch.offline.diagnosis import texts
from ragwatch.offline.diagnosis.definition import Check, Chunk, Question, Status, percent
from ragwatch.offline.diagnosis.texts import freshness, vocabulary

CUT = "of the whole of the matter. It ends where nobody would have expected it to end for"


def test_good_chunks_are_fine() -> None:
    """Complete thoughts of like length, each once, and claims that one chunk supports alone."""
    questions = [*some_questions(together=((), ())), a_question("bare", Chunk("no text", None))]
    for check in (texts.coherence, texts.lengths, texts.duplicates, texts.boundaries):
        finding = check(questions)
        assert (finding.status, finding.importance, finding.remedy) == (Status.FINE, 0.0, None), finding


def test_too_little_is_not_measured() -> None:
    """The reason names what is missing; there is no share."""
    checks = (texts.coherence, texts.lengths, texts.duplicates, texts.boundaries)
    findings = [(check(some_questions(2)), "fewer than 10 ") for check in checks]
    findings += [(vocabulary(some_questions(5), words), "fewer than 10 questions with a text")]
    findings += [(freshness(some_questions()), "`indexed_at`")]
    for finding, reason in findings:
        assert (finding.status, finding.share) == (Status.NOT_MEASURABLE, None)
        assert finding.summary.startswith("not measurable here because ")
        assert reason in finding.summary


def test_chunks_cut_inside_a_sentence() -> None:
    """The share counts each chunk once; evidence shows the edges, examples the samples to look at."""
    cut = [a_question(f"cut{number}", a_chunk(f"c{number}", f"{CUT} {name}")) for number, name in enumerate(SUBJECTS)]
    cut.append(a_question("begin", a_chunk("b", "of it all. That is It.")))
    finding = texts.coherence([*some_questions(), *cut, *cut])
    assert finding.status is Status.PROBLEM
    assert finding.summary == "13 of 37 chunks (35 %) begin or end inside a sentence"
    assert finding.figures == {"chunks": 37, "begin_inside": 13, "end_inside": 12}
    assert finding.examples == ("cut0", "cut1", "cut2", "cut3", "cut4")
    assert finding.evidence[1].startswith("for example ends with: ...")
    begins = texts.coherence([a_question(str(number), a_chunk(str(number), "of it. Is It.")) for number in range(10)])
    assert begins.evidence[1] == "for example begins: of it. Is It...."


def test_fragments_and_giants() -> None:
    """Both are odd; a wide distribution is a problem of its own."""
    giants = [a_question(f"g{number}", a_chunk(f"g{number}", "x" * 7000)) for number in range(4)]
    short = [a_question(f"s{number}", a_chunk(f"s{number}", f"n{number}.")) for number in range(4)]
    finding = texts.lengths([*some_questions(), *giants, *short])
    assert (finding.status, finding.figures["short"], finding.figures["long"]) == (Status.PROBLEM, 4, 4)
    spread = [
        a_question(str(number), a_chunk(str(number), "y" * (100 if number % 2 else 5000))) for number in range(20)
    ]
    finding = texts.lengths(spread)
    assert (finding.share, finding.status) == (0.2, Status.PROBLEM)
    assert finding.evidence[1] == "the longest tenth is 50 times as long as the shortest"


def test_copies_take_places() -> None:
    """A place is wasted by a copy of a better-ranked chunk of the same question, not by one of another question."""
    text = "The refund is paid back within five working days of the request."
    twice = [
        a_question(f"d{number}", a_chunk("r1", text), a_chunk("r2", text.upper()), a_chunk("r1", text), a_chunk("r3"))
        for number in range(6)
    ]
    finding = texts.duplicates([*some_questions(), *twice])
    assert finding.status is Status.PROBLEM
    assert finding.summary == "12 of 48 retrieved places (25 %) hold a copy of a better-ranked chunk"
    assert (finding.figures["groups"], finding.figures["exact"], finding.figures["chunks"]) == (1, 0, 2)
    assert finding.evidence[1] == "for example: r1, r2"
    assert finding.examples == ("d0", "d1", "d2", "d3", "d4")


def test_facts_split_over_a_boundary() -> None:
    """Claims that need neighbouring chunks together count; those that need chunks of two documents are multi-hop."""
    split = a_question("split", a_chunk("a.md#1"), a_chunk("a.md#2"), a_chunk("b.md#9"), together=((0, 1), (), (1, 2)))
    torn = a_question("torn", a_chunk("a.md#1"), together=((0, 7),))
    finding = texts.boundaries([*some_questions(8, together=((),)), split, torn])
    assert (finding.check, finding.status) == (Check.BOUNDARIES, Status.PROBLEM)
    assert finding.figures == {"claims": 12, "joint": 3, "split": 1, "sentences": 0}
    assert finding.examples == ("split",)
    assert finding.importance == 1 / 12
    assert finding.remedy is not None
    assert "overlap" in finding.remedy


def test_shares_are_shown_as_they_are() -> None:
    """A share below one per cent is not 0 %."""
    assert [percent(share) for share in (0.0, 0.004, 0.5)] == ["0 %", "0.4 %", "50 %"]


@pytest.mark.parametrize("ids", [("guide.md#1", "guide.md#2"), ("x7", "k3"), (None, None)])
@pytest.mark.parametrize("verbatim", ["yes", "no"])
def test_sentences_split_over_two_chunks(ids: tuple[str | None, str | None], verbatim: str) -> None:
    """All of 60 that are planted: verbatim answers by their words, others where ids place the chunks in a row."""
    questions = []
    for number in range(60):
        words = f"The annual fee of garden {number} is reduced to {number + 11} euros for adults who live here".split()
        cut = 6 + number % 3
        before = Chunk(ids[0], f"Hours are printed on the door. {' '.join(words[:cut])}")
        after = Chunk(ids[1], f"{' '.join(words[cut:])}. Complaints are answered within a week.")
        claim = (
            " ".join(words)
            if verbatim == "yes"
            else f"Adults who live here pay a fee of {number + 11} euros a year for garden {number}"
        )
        other = a_chunk(f"o{number}", "The harbour was rebuilt in 1931 after a storm.")
        chunks = (after, other, before)
        questions.append(a_question(f"q{number}", *chunks, together=((),), claims=(f"{claim}.",)))
    finding = texts.boundaries(questions)
    certain = verbatim == "yes" or ids[0] == "guide.md#1"
    assert (finding.figures["sentences"], finding.figures["split"]) == ((60, 60) if certain else (0, 0))
    assert finding.status is (Status.PROBLEM if certain else Status.FINE)
    whole = [replace(question, chunks=(*question.chunks[1:], overlapping(question))) for question in questions]
    assert texts.boundaries(whole).figures["sentences"] == 0


def overlapping(question: Question) -> Chunk:
    """The chunk before the cut, with which the one after it overlaps: it holds the sentence whole."""
    after, _, before = question.chunks
    return Chunk(after.id, f"{before.text} {after.text}")


def test_words_of_the_documents_are_fine() -> None:
    """Requests (`tell me`), numbers and tokens of redaction are no terms of the documents."""
    asked = a_question("r", text="Please explain number 12345678 about [EMAIL:0a1b2c] cats")
    finding = vocabulary([*some_questions(), asked], words)
    assert (finding.status, finding.figures["affected"]) == (Status.FINE, 0)
    assert finding.evidence == ()


def test_terms_that_no_chunk_holds() -> None:
    """The most frequent ones come first; the stage at fault on either side tells whether they matter."""
    users = [
        a_question(f"u{number}", text=f"Reimbursement of {kind}?", retrieval_failed=True)
        for number, kind in enumerate(("postage", "postage", "tariffs", "customs"))
    ]
    finding = vocabulary([*some_questions(retrieval_failed=False), *users], words)
    assert finding.status is Status.PROBLEM
    assert finding.summary == "4 of 16 questions (25 %) have a term that no retrieved chunk holds"
    assert finding.evidence[0] == "most frequent: reimbursement (4), postage (2), customs (1), tariffs (1)"
    assert finding.evidence[1].endswith("at fault for 100 % of these questions, and for 0 % of the others")
    assert finding.examples == ("u0", "u1", "u2", "u3")
    assert len(vocabulary([*some_questions(), *users], words).evidence) == 1


def test_dates() -> None:
    """Questions about a time after the newest document; days and years compare; counts are no years."""
    dated = a_question("d", a_chunk("x", "Valid since 2024-03-01. It holds 2048 rows."), text=None, day="2025-06-01")
    late = [
        a_question(f"l{number}", text=f"What changed in {when}?") for number, when in enumerate(("2025", "2024-05-02"))
    ]
    early = [a_question("e1", text="Was it so in 2024?"), a_question("e2", text="Are 2048 rows too many?")]
    finding = freshness([*some_questions(), dated, *late, *early])
    assert finding.status is Status.PROBLEM
    assert finding.examples == ("l0", "l1")
    assert finding.summary.startswith(
        "2 of 16 questions name a date after the newest one in the documents (2024-03-01), and 0 retrieved"
    )
    assert finding.evidence == ("the newest answer is of 2025-06-01",)
    assert freshness([*some_questions(), dated, *early]).status is Status.FINE


def test_old_versions() -> None:
    """Of near-duplicates with dates the older one is stale; metadata can date the index as well."""
    text = "The price list of the year {} names all of our prices, without tax and without postage."
    questions = [a_question("v", a_chunk("old", text.format(2022)), a_chunk("new", text.format(2024)))]
    finding = freshness(questions)
    assert (finding.status, finding.figures["outdated"], finding.examples) == (Status.PROBLEM, 1, ("v",))
    assert finding.evidence == ("old versions, for example: old",)
    indexed = [*some_questions(), a_question("m", dates=("2023-01-01",)), a_question("late", text="What of 2024?")]
    assert freshness(indexed).figures["late"] == 1
