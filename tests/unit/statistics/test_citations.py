"""Citations: which contexts an answer names, which claims they stand by, and the share of them that is right."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_claim, a_draw, a_judge_context, a_reading, an_evidence

from ragwatch.judges.lexical import judge as lexical
from ragwatch.model.evidence import Citation, Claim, ClaimVerdict, ContextReading, Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import UnknownReason
from ragwatch.statistics.scores import citation_precision, why_unknown
from ragwatch.statistics.tally import Tally, verdict_tallies
from ragwatch.statistics.text import citations
from ragwatch.statistics.text.citations import MAX_CITATIONS, markers_of, with_citations, without_markers
from ragwatch.statistics.text.phrases import without_leads
from ragwatch.statistics.verdict import judged
from ragwatch.statistics.verdict_line import parse_verdict_line, verdict_line

COLUMN = ContextReading(relevant=True)
TEXTS = st.text(alphabet="[]()【】†^#0123,;:-–. \n`_axABsource document passage ref", max_size=200)
_NAMING = "[1]|(see doc 2)|passage |Documents |source: |ſource 1|citations: 1|ref 3|cıtation 2|chunK 1|references 1, 2"
_PIECES = st.sampled_from([*"[]()【】†^#.,:;–-&\n _\\x12İ", *_NAMING.split("|"), "10", "and", " says", "`[1]`"])


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Tea is green [1].", [(1,)]),
        ("Tea is green[2].", [(2,)]),
        ("Tea is green [1][2] [ 3 ].", [(1,), (2,)]),
        ("Tea is green [1, 2; 5].", [(1, 2, 5)]),
        ("Tea is green [2-4] [10–12].", [(2, 3, 4), (10, 11, 12)]),
        ("Tea is green [1-800] [7-3] [2, 2].", [(1, 800), (7, 3), (2,)]),
        ("Tea is green [^3] 【4】【5†source】.", [(3,), (4,), (5,)]),
        ("Tea is green [1](https://x.org).", [(1,)]),
        ("Tea is green (Passage 2).", [(2,)]),
        ("Tea is green [doc 3] (doc #4) [Source 1: Tea].", [(3,), (4,), (1,)]),
        ("Tea is green (Source: 2).", [(2,)]),
        ("Tea is green (Source: Document 2, page 4).", [(2,)]),
        ("Tea is green (Passages 1, 2 and 3) (see passage 4).", [(1, 2, 3), (4,)]),
        ("Tea is green (Passage 1, Passage 3) (ref. 2).", [(1, 3), (2,)]),
        ("According to document 2, tea is green.", [(2,)]),
        ("As documents 1 and 3 say, tea is green.", [(1, 3)]),
        ("Tea is green. Source: 2, 3", [(2, 3)]),
        ("Sources: 1", [(1,)]),
    ],
)
def test_forms_of_a_citation(text: str, numbers: list[tuple[int, ...]]) -> None:
    """The numbers that are named, in order, ranges filled in; a marker is what it is in the text."""
    assert [marker.numbers for marker in markers_of(text)] == numbers
    for marker in markers_of(text):
        assert all(str(number) in text[marker.start : marker.end] for number in (marker.numbers[0], marker.numbers[-1]))


@pytest.mark.parametrize(
    "text",
    [
        "x[1] of `rows [2]` in [0, 1] and [2019]",
        "at [12:30], page 3, step 4, room 5, (result 5), article 6",
        "Your booking reference: 123",
        "document 2.5, context 3D, source 12%, documents 2024",
        r"\[1\]",
        "the first passage",
        "No digits [a] (Source: Tea)",
    ],
)
def test_what_is_no_citation(text: str) -> None:
    """Indexes, intervals, code, years, versions and other things with numbers."""
    assert not [marker for marker in markers_of(text) if marker.numbers]


@pytest.mark.parametrize(
    ("mark", "numbers"),
    [
        ("【4:0†source】", ()),
        ("【4:0†handbook.pdf】", (2,)),
        (" [doc-4]", (1,)),
        (" [kb_12#3]", ()),
        (" [^1^]", (1,)),
        (" [^note]", ()),
        ("\u00b9", ()),
        (" (Source: handbook.pdf, p. 12)", (2,)),
        (" (Source: Tea; doc-4)", (1,)),
        (" [source: https://docs.example.org/17]", ()),
    ],
)
def test_marks_of_services(mark: str, numbers: tuple[int, ...]) -> None:
    """A mark names a context by its number or its id, or none; it is no word of the claim."""
    text = f"The warranty lasts two years{mark}."
    (marker,) = markers_of(text, {"doc-4": 1, "handbook.pdf": 2})
    assert (marker.numbers, marker.is_apart, text[marker.start : marker.end]) == (numbers, True, mark.strip())
    assert " ".join(without_markers(text).split()) == "The warranty lasts two years ."


@pytest.mark.parametrize(
    "text", ["It is 40 m² and 3 km² in size.", "2¹⁰ is 1024.", "see [the docs](doc-4)", "x[i1]", "[a-z0]+"]
)
def test_what_is_no_mark(text: str) -> None:
    """Units, powers, links and code stay."""
    assert without_markers(text) == text


def test_marks_are_no_words_of_a_claim() -> None:
    """What stands apart is blanked; "document 2" in the text is a lead, which is blanked as one."""
    assert without_markers("Tea is green [1]. (Source: 2)") == "Tea is green  .  "
    plain = without_leads("According to document 2, tea is green 【1†s】 [Source 3].")
    assert plain.split() == ["tea", "is", "green", "."]


def evidence_of(answer: str, *sentences: str, contexts: int = 2, **parts: Any) -> Evidence:
    """A claim for each sentence; the n-th context supports the n-th alone."""
    claims, position = [], 0
    for row, sentence in enumerate(sentences):
        position = answer.index(sentence, position)
        cells = tuple(rank == row for rank in range(contexts))
        verdict = ClaimVerdict.SUPPORTED if any(cells) else ClaimVerdict.NOT_IN_CONTEXT
        claims.append(Claim(sentence, position, position + len(sentence), verdict, cells))
        position += len(sentence)
    return with_citations(Evidence(tuple(claims), (COLUMN,) * contexts, **parts), answer)


@pytest.mark.parametrize(
    ("answer", "sentences", "cited"),
    [
        ("Tea is green [1]. Rum is brown [2].", ("Tea is green [1].", "Rum is brown [2]."), [(0, (0,)), (1, (1,))]),
        ("Tea is green. [1] Rum is brown. [2]", ("Tea is green. [1]", "Rum is brown. [2]"), [(0, (0,)), (1, (1,))]),
        ("Tea is green.  [1][2] Rum is brown.", ("Tea is green.", "[1][2] Rum is brown."), [(0, (0,)), (1, (0,))]),
        ("Tea is **green.** (Passage 2) Rum.", ("Tea is **green.**", "(Passage 2) Rum."), [(1, (0,))]),
        ("Tea is green. Document 2 says so.", ("Tea is green.", "Document 2 says so."), [(1, (1,))]),
        ("1. [2] Tea is green.", ("[2] Tea is green.",), [(1, (0,))]),
        ("Tea is green [1][1].", ("Tea is green [1][1].",), [(0, (0,))]),
        ("Tea is green.\nSources: [1], [3]", ("Tea is green.",), [(0, (0,)), (2, (0,))]),
        ("Tea.\n[1]\nRum.\nIt burns.\n(Source: 2)", ("Tea.", "Rum.", "It burns."), [(0, (0,)), (1, (1, 2))]),
        ("Tea [1]. Rum.\nSources: [1], [2]", ("Tea [1].", "Rum."), [(0, (0,)), (1, (0, 1))]),
        ("Tea [1].\n\n**References**\n[1] Green tea\n- [2] Rum", ("Tea [1].", "[1] Green tea", "[2] Rum"), [(0, (0,))]),
        ("Tea [1].\n[1]: https://x.org", ("Tea [1].", "[1]: https://x.org"), [(0, (0,))]),
        ("[1] Tea is green.\n[2] Rum.", ("[1] Tea is green.", "[2] Rum."), [(0, (0,)), (1, (1,))]),
        ("**Passage 2:**\nTea is green.", ("Tea is green.",), []),
        ("[1]\nTea is green.", ("Tea is green.",), []),
        ("Tea is green.\nSee [1] for " + "more " * 100, ("Tea is green.",), []),
    ],
)
def test_citations_belong_to_the_claims_of_their_sentence(
    answer: str, sentences: tuple[str, ...], cited: list[tuple[int, tuple[int, ...]]]
) -> None:
    """Behind a stop to the sentence before; a line of markers to the claims before it; each context once."""
    found = evidence_of(answer, *sentences)
    assert [(citation.context, citation.claims) for citation in found.citations] == cited


@pytest.mark.parametrize(
    ("marks", "rows", "right"),
    [
        ("[1]", [(1, 0, 0), (1, 0, 0)], [True]),
        ("[1][2]", [(1, 0, 0), (0, 1, 0)], [True, True]),  # each has one of the facts
        ("[1]", [(1, 0, 0), (0, 1, 0)], [False]),  # the other fact is not covered
        ("[1][2]", [(1, 0, 0), (0, 0, 0)], [False, False]),
        ("[1][3]", [(1, 0, 0), (1, 0, 0)], [True, False]),
        ("[1]", [("jointly", "jointly", None), (1, 0, 0)], [True]),
        ("[1][2]", [("informed", None, None), (0, 1, 0)], [False, False]),
        ("[2][9]", [(0, "alone", None), (0, 1, 0)], [True, False]),
        ("\nSources: 1, 3", [(1, 0, 0), (0, 1, 0)], [True, False]),  # a line for both claims: one is enough
    ],
)
def test_cited_contexts_have_to_support_the_whole_sentence(marks: str, rows: list[Any], right: list[bool]) -> None:
    """All facts of a sentence share its citations, which together have to support them."""
    answer = f"Tea is green, and it costs nine euros {marks}"
    end = len(answer) if "\n" not in marks else answer.index("\n")
    facts = [
        a_claim([cell not in {0, None, "informed"} for cell in row], start=start, end=stop, sentence=(0, end))
        for row, start, stop in zip(rows, (0, 18), (12, end), strict=True)
    ]
    facts = [replace(fact, cells=row) for fact, row in zip(facts, rows, strict=True)]
    found = with_citations(an_evidence(*facts, relevant=(True, True, False)), answer)
    assert [citation.claims for citation in found.citations] == [(0, 1)] * len(right)
    assert [citation.supports for citation in found.citations] == right
    assert citation_precision(found) == sum(right) / len(right)


def test_a_claim_that_repeats_the_user_cites_nothing() -> None:
    """No score counts it."""
    said = an_evidence(a_claim((0, 0), said_by_user=True, start=0, end=12))
    assert with_citations(said, "I am 9 [1].").citations == ()


def test_an_answer_that_cites_nothing_has_no_precision() -> None:
    """It is unknown with a reason, and no addend of an estimate."""
    verdict = judged(a_draw(), a_reading(), an_evidence((1, 0)))
    assert verdict.scores[Quantity.CITATION_PRECISION] is None
    tallies = verdict_tallies(verdict)
    unknown = [labels for tally, labels in tallies if tally is Tally.UNKNOWN and labels[0] == "citation_precision"]
    assert [labels[-1] for labels in unknown] == ["no_citations"]
    assert not any(tally is Tally.W and labels[0] == "citation_precision" for tally, labels in tallies)
    cited = evidence_of("Tea [1].", "Tea [1].", address=None)
    assert why_unknown(cited, Quantity.CITATION_PRECISION) is None
    abstained = an_evidence((1, 0), address="abstained", citations=(Citation(0, 0, 1, (0,), supports=True),))
    assert citation_precision(abstained) is None
    assert why_unknown(abstained, Quantity.CITATION_PRECISION) is UnknownReason.ABSTAINED
    assert why_unknown(an_evidence(), Quantity.CITATION_PRECISION) is UnknownReason.NO_CLAIMS


def test_a_verdict_line_shows_what_is_cited() -> None:
    """Both directions; a line without citations has no such key."""
    answer = "Cats purr [1][7]."
    evidence = an_evidence(a_claim((1, 0), start=0, end=len(answer)))
    verdict = judged(a_draw(answer=answer), a_reading(), evidence)
    line = verdict_line(verdict)
    assert line["scores"]["citation_precision"] == 0.5
    assert line["citations"] == [
        {"context": 0, "start": 10, "end": 13, "supports": True},
        {"context": 6, "start": 13, "end": 16, "supports": False},
    ]
    place = {"key": "k", "judge_name": "j", "route": "r", "at": 1.0, "probability": 1.0}
    assert [tuple(one) for one in parse_verdict_line(line | place).citations] == [(0, 10, 13, True), (6, 13, 16, False)]
    assert "citations" not in verdict_line(judged(a_draw(), a_reading(), evidence_of("Tea.", "Tea.")))


def test_the_embedded_judge_tells_right_from_wrong_citations() -> None:
    """A fact's citation too, and a number beyond the contexts."""
    read = lexical.build(lexical.Options(), name="mine", context=a_judge_context()).evidence
    contexts = ("The museum was founded in Bern in 1971.", "Tickets cost nine euros for adults.")
    precisions = {}
    for answer in (
        "The museum was founded in Bern in 1971 [1]. Tickets cost nine euros for adults (Passage 2).",
        "The museum was founded in Bern in 1971 [2]. Tickets cost nine euros for adults [1].",
        "The museum was founded in Bern in 1971. [1][3]",
        "The museum was founded in Bern in 1971.\nSources: 1, 2",
    ):
        draw = a_draw(question="Where is the museum?", answer=answer, contexts=contexts)
        verdict = judged(draw, a_reading(), read(draw.sample))
        precisions[answer] = verdict.scores[Quantity.CITATION_PRECISION]
        assert verdict.scores[Quantity.FAITHFULNESS] == 1.0  # no mark is a word, or a number, of a claim
    assert list(precisions.values()) == [1.0, 0.0, 0.5, 0.5]


@given(TEXTS, st.lists(st.integers(0, 200), max_size=6))
def test_any_text_is_read(answer: str, edges: list[int]) -> None:
    """Markers are in order and apart, inside the answer; citations are bounded and name claims that there are."""
    markers = list(markers_of(answer))
    ends = [0, *(marker.end for marker in markers)]
    assert all(end <= marker.start < marker.end <= len(answer) for end, marker in zip(ends, markers, strict=False))
    assert len(without_markers(answer)) <= len(answer) + len(markers)
    places = sorted({min(edge, len(answer)) for edge in edges})
    pairs = pairwise(places)
    claims = tuple(Claim("c", start, end, ClaimVerdict.NOT_IN_CONTEXT, (False,)) for start, end in pairs)
    found = with_citations(Evidence(claims, (COLUMN,)), answer)
    assert all(row < len(claims) for citation in found.citations for row in citation.claims)
    assert citation_precision(found) in (None, 0.0)
    keys = [(citation.context, row) for citation in found.citations for row in citation.claims]
    assert len(keys) == len(set(keys)) or any(len(citation.claims) > 1 for citation in found.citations)


def test_hostile_answers_are_bounded() -> None:
    """Ranges do not multiply what is kept of an answer."""
    answer = "Tea " + "".join(f"[{low}-{low + 20}]" for low in range(1, 960, 7)) + "."
    found = evidence_of(answer * 20, *([answer] * 20))
    assert len(found.citations) == MAX_CITATIONS


@given(st.lists(_PIECES, max_size=30).map("".join))
def test_every_marker_begins_where_markers_may_begin(text: str) -> None:
    """Trying only at brackets and at the first letters of the nouns finds what trying at every character does."""
    expected = [match.span() for match in citations.MARKER.finditer(text)]
    assert [match.span() for match in citations.matches(text)] == expected
