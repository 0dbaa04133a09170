"""Which contexts a claim uses, for the embedded judges: the examples of issue 15 and the laws of use."""

from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.embedded import LEXICAL, an_answer, by_model, has_negation, read_by

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.lexical import reader
from ragwatch.judges.lexical.facts import UNSUPPORTED
from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.judges.lexical.tables import shipped
from ragwatch.model.evidence import Cell, ClaimVerdict, Evidence
from ragwatch.statistics.scores import context_use, top_ranked_fault, top_ranked_ignored

LOCAL = by_model(weights=None)  # the one that ships
JUDGES = pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])

RETURNS = "Returns are accepted within thirty days of purchase."
SHIPPING = "Return shipping costs five euros."
OPENING = "The shop opens at nine on weekdays."
KELLER = "The company was founded in Bern in 1971 by Anna Keller."
WORDS = ["kettle", "boils", "water", "lamp", "dims", "Paris", "Vortex", "granite", "1971", "harbour", "violin", "tax"]
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(lambda words: f"The {' '.join(words)}.")
CONTEXTS = st.lists(SENTENCE, min_size=1, max_size=5)
FOREIGN = "Zzz qqj xxv."
MENU = (
    "kettle boils water 90 three Vortex lamp the of not dims Paris 1,000 U.S. e.g. max_len os.path Dr. [1] - 1. ok?"
    " yes. document does mention. I don't know. * # ``` \n \n\n : ... … “quote” (b) 中文。 naïve"
)
PROSE = st.lists(st.sampled_from(MENU.split(" ")), max_size=30).map(" ".join)


@JUDGES
def test_contexts_that_support_only_together_are_all_used(judge: LexicalJudge) -> None:
    """A sentence that stands word for word in two documents uses both, and ignores neither."""
    answer = f"{RETURNS[:-1]}, and return shipping costs five euros."
    evidence = read_by(judge, answer, RETURNS, SHIPPING, OPENING, question="Can I return it?")
    assert {claim.verdict for claim in evidence.claims} == {ClaimVerdict.SUPPORTED}
    assert (evidence.used, context_use(evidence)) == ((True, True, False), 2 / 3)
    assert (top_ranked_ignored(evidence), top_ranked_fault(evidence)) == (0.0, None)


@JUDGES
def test_a_sentence_that_is_not_split_is_supported_jointly(judge: LexicalJudge) -> None:
    """Its support set is both documents."""
    sample = an_answer(f"{RETURNS[:-1]}, and return shipping costs five euros.", RETURNS, SHIPPING)
    (claim,) = reader.read(sample, claims_of(sample.answer), shipped(), reader.Thresholds(), judge.cross_encoder).claims
    assert (claim.verdict, claim.cells) == (ClaimVerdict.SUPPORTED, (Cell.JOINTLY, Cell.JOINTLY))


@JUDGES
@pytest.mark.parametrize("question", ["When was the company founded?", "Who founded the company?", None])
def test_a_misquoted_context_was_used(judge: LexicalJudge, question: str | None) -> None:
    """`Zurich` for `Bern`: whatever the verdict is, the answer has the rest from document 1."""
    evidence = read_by(judge, KELLER.replace("Bern", "Zurich"), KELLER, OPENING, question=question)
    assert evidence.used == (True, False)
    assert top_ranked_ignored(evidence) == 0.0


def test_a_claim_without_support_is_informed_by_what_is_specific_to_it() -> None:
    """Common words and those of the question are no trace of a context."""
    swapped = "In 1971 Anna Keller sold the Vortex kettle patent to a bank in Zurich."
    for answer, cells in (
        (swapped, (None, Cell.INFORMED)),
        ("The shop was opened by a retired lighthouse keeper.", (None, None)),
    ):
        claim = read_by(LEXICAL, answer, OPENING, KELLER, question="Who opened the shop?").claims[-1]
        assert (claim.verdict, claim.cells) == (ClaimVerdict.NOT_IN_CONTEXT, cells)


def test_a_weaker_context_is_not_marked_beside_a_better_one() -> None:
    """The answer has its words from the context that has all of them; copies of it are equals, and the first counts."""
    weaker = "The company was founded in Bern in 1971 by its owners."
    for contexts, uses in (((weaker, KELLER), (1,)), ((KELLER, weaker), (0,)), ((weaker, KELLER, KELLER), (1,))):
        assert read_by(LEXICAL, KELLER, *contexts).claims[0].uses == uses


@JUDGES
def test_an_answer_that_uses_no_context_ignores_the_first(judge: LexicalJudge) -> None:
    """An invented claim takes nothing from it, and does not hide that other claims are of the second."""
    invented = "Violins were played by nine sailors at the harbour."
    for answer, used in ((invented, (False, False)), (KELLER, (False, True)), (f"{KELLER} {invented}", (False, True))):
        evidence = read_by(judge, answer, OPENING, KELLER)
        assert (evidence.used, top_ranked_ignored(evidence)) == (used, 1.0)


@given(SENTENCE, CONTEXTS, st.none() | SENTENCE)
@settings(max_examples=draws(50), deadline=None)
def test_every_supported_claim_has_a_support_set(answer: str, contexts: list[str], question: str | None) -> None:
    """It is not empty, and its contexts support the claim: one alone, several jointly; other claims have none.

    A context that shares no word and no run of four letters with the claim changes no cell: its own is empty.
    """
    before = read_by(LEXICAL, answer, *contexts, question=question)
    for claim in before.claims:
        assert bool(claim.support_set) == (claim.verdict is ClaimVerdict.SUPPORTED)
        kind = Cell.ALONE if len(claim.support_set) == 1 else Cell.JOINTLY
        assert {claim.cells[rank] for rank in claim.support_set} <= {kind}
    after = read_by(LEXICAL, answer, *contexts, FOREIGN, question=question)
    assert [claim.cells for claim in after.claims] == [(*claim.cells, None) for claim in before.claims]


@given(SENTENCE, CONTEXTS, st.data())
@settings(max_examples=draws(40), deadline=None)
def test_a_copy_moves_use_to_the_better_rank_only(answer: str, contexts: list[str], data: st.DataObject) -> None:
    """Of a context and its copy the better rank is used, where the context was; use of the others does not change.

    Unless the copy ranks before what was used and supports the claim as well, alone or jointly with what is used: of
    equals the better rank is used.
    """
    rank = data.draw(st.integers(0, len(contexts) - 1))
    at = data.draw(st.integers(0, len(contexts)))
    copied = [*contexts[:at], contexts[rank], *contexts[at:]]
    first = copied.index(contexts[rank])
    before, after = read_by(LEXICAL, answer, *contexts), read_by(LEXICAL, answer, *copied)
    expected = {first if contexts[old] == contexts[rank] else old + (old >= at) for old in _used(before)}
    lost, new = expected - _used(after), _used(after) - expected
    if lost or new:
        assert new == {at}
        assert at < min(lost)
        for claim, as_before in zip(after.claims, before.claims, strict=True):
            assert (claim.verdict, claim.support) == (as_before.verdict, pytest.approx(as_before.support))


def _used(evidence: Evidence) -> set[int]:
    return {rank for rank, used in enumerate(evidence.used) if used}


@given(st.permutations(WORDS), st.integers(0, 5), st.integers(0, 1))
@settings(max_examples=draws(30), deadline=None)
def test_one_changed_word_leaves_the_use(words: list[str], place: int, rank: int) -> None:
    """A claim of six words copied from a context, one of them changed to a word of none: it still uses that context."""
    source, other = (f"The {' '.join(part)} here." for part in (words[:6], words[6:]))
    contexts = (other, source) if rank else (source, other)
    changed = [*words[:6]]
    changed[place] = "zeppelin"
    for answer in (source, f"The {' '.join(changed)} here."):
        claims = read_by(LEXICAL, answer, *contexts).claims
        assume(claims)  # such lines of any words may be taken for talk
        assert [claim.uses for claim in claims] == [(rank,)]


@pytest.mark.costly
@given(PROSE, st.lists(PROSE, min_size=1, max_size=3), st.data())
@settings(max_examples=draws(50), deadline=None)
def test_a_context_that_says_more_supports_no_less(answer: str, contexts: list[str], data: st.DataObject) -> None:
    """Adding words of the claim to a context lowers no support, alone or together, and enlarges no support set.

    But where the claim or the context has a negation, the context may deny the claim then.
    """
    before = read_by(LEXICAL, answer, *contexts)
    for row, claim in enumerate(before.claims):
        words = data.draw(st.lists(st.sampled_from(claim.text.split()), max_size=5))
        rank = data.draw(st.integers(0, len(contexts) - 1))
        richer = [text + "\n" + " ".join(words) if rank == index else text for index, text in enumerate(contexts)]
        evidence = read_by(LEXICAL, answer, *richer)
        assume((evidence.unread, evidence.language) == (None, before.language))  # words may be of another language
        after = evidence.claims[row]
        if after.support == UNSUPPORTED and (has_negation(richer[rank]) or has_negation(claim.text)):
            continue
        assert (after.support or 0.0) >= (claim.support or 0.0)
        assert len(after.support_set) <= len(claim.support_set) or not claim.support_set
        assert claim.cells[rank] is not Cell.ALONE or after.cells[rank] is Cell.ALONE


@pytest.mark.costly
@given(PROSE, PROSE, st.lists(PROSE, min_size=2, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=draws(40), deadline=None)
def test_permuting_contexts_permutes_columns(question: str, answer: str, contexts: list[str], rng: Random) -> None:
    """The order of the contexts changes no claim, only where its cells stand, and which of equals is used."""
    order = rng.sample(range(len(contexts)), len(contexts))
    moved = [contexts[index] for index in order]
    before, after = (read_by(LEXICAL, answer, *texts, question=question) for texts in (contexts, moved))
    for old, new in zip(before.claims, after.claims, strict=True):
        assert (old.text, old.verdict, old.support) == (new.text, new.verdict, new.support)
        alone = [{rank for rank, cell in enumerate(one.cells) if cell is Cell.ALONE} for one in (old, new)]
        assert {order.index(rank) for rank in alone[0]} == alone[1]
        assert len(old.support_set) == len(new.support_set)
    said = claims_of(answer, question)
    here, there = (
        reader.relevance_of(an_answer(answer, *texts, question=question), said, shipped())
        for texts in (contexts, moved)
    )
    assert [here[index] for index in order] == there
