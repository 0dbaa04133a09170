"""The checklist on texts of chunks: complete thoughts, lengths, duplicates, boundaries."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.canaries import SUBJECTS, a_chunk, a_question, some_questions, words
from support.draws import draws

from ragwatch.offline.diagnosis import texts
from ragwatch.offline.diagnosis.chunks import (
    are_neighbours,
    begins_inside,
    document_place,
    ends_inside,
    linked,
    near_duplicates,
    overlap_words,
    splits_sentence,
)
from ragwatch.offline.diagnosis.definition import Check, Chunk, Question, Status, percent
from ragwatch.offline.diagnosis.texts import freshness, vocabulary

CUT = "of the whole of the matter. It ends where nobody would have expected it to end for"
LONG = "The warranty lasts two years and covers all parts that fail in normal use at home"


def test_good_chunks_are_fine() -> None:
    """Complete thoughts of like length, each once; of too little there is no share, and the reason is named."""
    questions = [*some_questions(together=((), ())), a_question("bare", Chunk("no text", None))]
    checks = (texts.coherence, texts.lengths, texts.duplicates, texts.boundaries)
    for finding in (check(questions) for check in checks):
        assert (finding.status, finding.importance, finding.remedy) == (Status.FINE, 0.0, None), finding
    findings = [(check(some_questions(2)), "fewer than 10 ") for check in checks]
    findings += [(vocabulary(some_questions(5), words), "fewer than 10 questions with a text")]
    findings += [(freshness(some_questions()), "`indexed_at`")]
    for finding, reason in findings:
        assert (finding.status, finding.share) == (Status.NOT_MEASURABLE, None)
        assert finding.summary.startswith("not measurable here because ")
        assert reason in finding.summary


def test_chunks_cut_inside_a_sentence() -> None:
    """The share counts each chunk once, and is not 0 % below one; evidence shows the edges, examples where to look."""
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
    assert [percent(share) for share in (0.0, 0.004, 0.5)] == ["0 %", "0.4 %", "50 %"]


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
    assert "overlap" in (finding.remedy or "")


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
        other_words = f"Adults who live here pay a fee of {number + 11} euros a year for garden {number}"
        claim = " ".join(words) if verbatim == "yes" else other_words
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


def test_terms_that_no_chunk_holds() -> None:
    """Requests, numbers and tokens of redaction are none; the most frequent come first, with the stage at fault."""
    asked = a_question("r", text="Please explain number 12345678 about [EMAIL:0a1b2c] cats")
    finding = vocabulary([*some_questions(), asked], words)
    assert (finding.status, finding.figures["affected"]) == (Status.FINE, 0)
    assert finding.evidence == ()
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
    told = "2 of 16 questions name a date after the newest one in the documents (2024-03-01), and 0 retrieved"
    assert finding.summary.startswith(told)
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


def test_where_a_chunk_begins() -> None:
    """Lower case begins inside a sentence, unless it is a name or nothing in the chunk has a capital."""
    whole = ("The end.", "iPhone users pay. It ends.", "max_len is three. It ends.", "2. Boil it.", "- boil it")
    told = {
        None: ("", "all of it is in lower case", "pip install ragwatch", "水は百度で沸く。"),
        True: ("... and so on.", ", which is late.", "which is late. It ends.", '"the end," he said. It is late.'),
        False: (*whole, '"""', "2024 was dry."),
    }
    assert [text for value, texts in told.items() for text in texts if begins_inside(text) is not value] == []


def test_where_a_chunk_ends() -> None:
    """A line without a stop is cut, unless it may be a heading, an item, a table or code."""
    item = "It ends.\n- an item that is long enough to be taken for a sentence"
    told = {
        True: (LONG, "It is so. Cut here", "Do this:", "It goes on ..."),
        False: (f"{LONG}.", f"{LONG} (see above).", "Refunds", item, "| a | b |", "水は百度で沸く。", "**"),
    }
    assert ends_inside("") is None
    assert [text for value, texts in told.items() for text in texts if ends_inside(text) is not value] == []


def test_copies_and_versions_are_near_duplicates() -> None:
    """Case, punctuation and numbers make no difference; other words do; tables of numbers are compared as they are."""
    tables = ["1 2 3 4 5 6", "7 8 9 1 2 3", "1  2 3 4 5 6"]
    texts = [LONG, f"{LONG.upper()}!", LONG.replace("two", "2"), "Cats purr when they are fed.", *tables, ""]
    assert near_duplicates(texts) == [(0, 1), (4, 6)]
    long = " ".join(f"word{chr(97 + number)}" for number in range(26))
    assert near_duplicates([f"{long} It costs 5.", f"{long} It costs 7.", long]) == [(0, 1, 2)]
    assert near_duplicates([LONG] * 50) == [tuple(range(50))]  # only so many are compared, and a copy of any joins


@settings(max_examples=draws(30))
@given(st.lists(st.text(max_size=60), max_size=12))
def test_groups_are_disjoint_and_hold_equal_texts_together(texts: list[str]) -> None:
    """Every text is in at most one group, and equal texts with a word are in the same one."""
    groups = near_duplicates([*texts, *texts])
    members = [index for group in groups for index in group]
    assert len(members) == len(set(members))
    for index, text in enumerate(texts):
        if any(char.isalpha() for char in text):
            assert any({index, index + len(texts)} <= set(group) for group in groups)


@settings(max_examples=draws(50))
@given(st.lists(st.sampled_from("ab"), max_size=9), st.lists(st.sampled_from("ab"), max_size=9))
def test_overlap_is_the_longest_one(before: list[str], after: list[str]) -> None:
    """The same as trying every length."""
    longest = max(n for n in range(min(len(before), len(after)) + 1) if before[len(before) - n :] == after[:n])
    assert overlap_words(" ".join(before), " ".join(after)) == longest


def test_an_id_may_name_a_place() -> None:
    """Only where it cannot be the number of a document."""
    told = {
        "a.md#3": ("a.md", 3),
        "4711_2": ("4711", 2),
        "x/9": ("x", 9),
        "guide chunk 4": ("guide", 4),
        **dict.fromkeys(("doc-17", "a#", "17", "#17", "abc17", "-" * 400 + "#1")),
    }
    assert {name: document_place(name) for name in told} == told


def test_neighbours_by_place_or_by_the_words_at_the_border() -> None:
    """Of few chunks all pairs are compared, of many the consecutive ones; a cut takes two words on either side."""
    assert are_neighbours(("a.md#3", ""), ("a.md#2", ""))
    assert not are_neighbours(("a.md#3", LONG), ("a.md#5", LONG))
    assert not are_neighbours(("a.md#3", ""), ("b.md#4", ""))
    assert are_neighbours((None, LONG), ("x", f"in normal use at home {LONG}"))
    assert not are_neighbours((None, "One."), (None, "Two."))
    apart = [(f"doc{number}.md#{number}", "") for number in range(20)]
    assert not linked(apart)
    assert not linked(apart[:1])
    assert linked([*apart, ("doc3.md#4", "")])
    assert linked([("a.md#1", ""), ("b.md#1", ""), ("a.md#2", "")])
    before = "The fee of the garden is due in spring and it"
    assert not splits_sentence("It falls.", (None, before), (None, "falls."))
    assert splits_sentence("The fee is due in spring and it falls later.", (None, before), (None, "falls later."))
