"""Follow-up questions: read with the user's turns before them, never with what the assistant said."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.embedded import LEXICAL, an_answer, read_by
from support.sentences import pairs

from ragwatch.judges.claims.conversation import ELLIPTIC, completed, repeats, statements_of
from ragwatch.judges.claims.words import identifiers, terms
from ragwatch.model.evidence import Address, ClaimVerdict, Evidence
from ragwatch.model.sample import Role, Sample, Turn
from ragwatch.statistics.scores import faithfulness, score_all

PRICES = "Tickets: adults pay 10 euros, students pay 5 euros. Children under six are free."
HOURS = "The garden opens at nine and closes at dusk. Dogs are kept on a lead."
MENU = "kettle boils water 90 three Vortex lamp the of not dims I my is you Paris ? . and No."
WORDS = st.sampled_from(MENU.split(" "))
PROSE = st.lists(WORDS, max_size=16).map(" ".join)
HISTORY = st.lists(st.builds(Turn, st.sampled_from(Role), PROSE), max_size=4).map(tuple)


def user(*texts: str) -> tuple[Turn, ...]:
    """What the user said before, with an answer after each turn."""
    return tuple(turn for text in texts for turn in (Turn(Role.USER, text), Turn(Role.ASSISTANT, "I see.")))


def read(question: str | None, answer: str, *contexts: str, history: tuple[Turn, ...] = ()) -> Evidence:
    """Evidence of one sample."""
    return read_by(LEXICAL, answer, *contexts, question=question, history=history)


def test_a_follow_up_is_read_with_what_it_leaves_out() -> None:
    """Answer and contexts are about the ticket that the question does not name."""
    before = user("How much is the ticket to the garden?")
    evidence = read("And for students?", "Students pay 5 euros.", HOURS, PRICES, history=before)
    assert (faithfulness(evidence), evidence.address) == (1.0, Address.FULLY)
    assert [reading.relevant for reading in evidence.contexts] == [False, True]


def test_a_question_without_words_of_its_own_is_what_came_before() -> None:
    """Alone it asks for nothing that could be compared; in its conversation it does."""
    before = user("When does the garden open and close?")
    off_topic = "Lions sleep through most hot afternoons on the wide plains of Africa."
    assert read("And then?", "It opens at nine.", HOURS).address is None
    assert read("And then?", "The garden opens at nine.", HOURS, history=before).address is Address.FULLY
    assert read("And then?", off_topic, HOURS, history=before).address is Address.NOT_AT_ALL


def test_the_kind_of_thing_in_question_is_carried_over() -> None:
    """How much? And for students? "They get a discount" lacks the amount.

    An abstention beside good contexts is told from one beside none, also where the question names nothing.
    """
    before = user("How much is a ticket?")
    assert read("And for students?", "Students pay 5 euros.", PRICES, history=before).address is Address.FULLY
    text = "Students get a discount for tickets."
    assert read("And for students?", text, text).address is Address.FULLY
    assert read("And for students?", text, text, history=before).address is Address.PARTIALLY
    for history, relevant in ((user("How much do students pay for tickets?"), [True, False]), ((), [None, None])):
        evidence = read("And why?", "I do not know.", PRICES, HOURS, history=history)
        assert [reading.relevant for reading in evidence.contexts] == relevant


def test_what_the_user_stated_is_no_invention() -> None:
    """It is marked and left out of faithfulness; it is neither support nor use; what a context says stays supported."""
    answer = "You bought a ticket on 3 May for 10 euros. Students pay 5 euros. The castle was built by monks."
    before = user("I bought a ticket on 3 May for 10 euros.")
    plain = read("And for students?", answer, PRICES)
    evidence = read("And for students?", answer, PRICES, history=before)
    assert [claim.said_by_user for claim in evidence.claims] == [True, False, False]
    assert [claim.verdict for claim in evidence.claims] == [claim.verdict for claim in plain.claims]
    assert (evidence.claims[0].verdict, evidence.claims[0].contexts) == (ClaimVerdict.NOT_IN_CONTEXT, ())
    assert (faithfulness(plain), faithfulness(evidence)) == (1 / 3, 1 / 2)
    both = read("And for students?", answer, PRICES, "You bought a ticket on 3 May for 10 euros.", history=before)
    assert [claim.said_by_user for claim in both.claims] == [False, False, False]


def test_statements() -> None:
    """Only one sentence in which the user states all of it, number by number; questions and keywords state nothing."""
    for heading, expected in (("stated by the user", True), ("not stated by the user", False)):
        wrong = [pair for pair in pairs(heading) if repeats(pair[1], statements_of([pair[0]])) is not expected]
        assert wrong == []


def test_the_current_question_states_nothing() -> None:
    """A claim that repeats the question is as unsupported as it was without a history.

    The museum that the user named before need not stand in the context again: a follow-up is ruled on as if it had been
    asked in full.
    """
    asked = "I bought a blue lamp in May. Can I return it?"
    for history in ((), user("Hello, I have a problem.")):
        (claim,) = read(asked, "You bought a blue lamp in May.", HOURS, history=history).claims
        assert not claim.said_by_user
    hours = "Opening hours: Monday to Saturday from nine. Sunday: opens at eleven."
    full, short = "When does the Harbour Museum open?", "And on Sundays?"
    alone, followed, whole = (
        read(question, "On Sundays the Harbour Museum opens at eleven.", hours, history=history).claims[0].support
        for question, history in ((short, ()), (short, user(full)), (f"{full} {short}", ()))
    )
    assert (alone or 0.0) < (followed or 0.0) == whole


def a_sample(question: str | None, contexts: list[str], answer: str, history: tuple[Turn, ...]) -> Sample:
    """A sample with a reference, which is compared with the same words."""
    return an_answer(answer, *contexts, question=question, reference=answer, history=history)


SAMPLES = st.builds(a_sample, st.none() | PROSE, st.lists(PROSE, max_size=2), PROSE, HISTORY)


@pytest.mark.costly
@given(SAMPLES)
@settings(max_examples=draws(40), deadline=None)
def test_what_the_assistant_said_is_not_read(sample: Sample) -> None:
    """Without the turns of everybody but the user, the evidence is the same; and no turn supports a claim.

    Claims are ruled on as with the question alone, or, if it says hardly anything, as with the question in full.
    """
    users = tuple(turn for turn in sample.history if turn.role is Role.USER)
    evidence, alone = LEXICAL.evidence(sample), LEXICAL.evidence(sample._replace(history=()))
    assert evidence == LEXICAL.evidence(sample._replace(history=users))
    words = set(terms(sample.question or "")) | identifiers(sample.question or "")
    if sample.question and len(words) < ELLIPTIC:
        full = completed(sample.question, sample.user_turns)
        alone = LEXICAL.evidence(sample._replace(question=full, history=()))
        assume(len(alone.claims) == len(evidence.claims))  # a bare "no" claims what is asked
    for claim, plain in zip(evidence.claims, alone.claims, strict=True):
        assert (claim.verdict, claim.cells) == (plain.verdict, plain.cells)
        # The words of a user's turn weigh a little less than those of a question that says all of it.
        assert claim.support == plain.support or len(words) < ELLIPTIC
        assert not (claim.said_by_user and (claim.verdict is not ClaimVerdict.NOT_IN_CONTEXT or any(claim.cells)))
    assert evidence.used == alone.used
    before, after = faithfulness(alone), faithfulness(evidence)
    assert after is None or (before is not None and after >= before)
    assert all(value is None or 0.0 <= value <= 1.0 for value in score_all(evidence).values())
