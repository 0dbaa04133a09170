"""Courtesy, offers, questions and sources change nothing; what an answer invents in that tone stays a claim."""

from itertools import product

import pytest
from support.embedded import LEXICAL
from support.sentences import sections

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.kinds import asks, is_small_talk, kind_of
from ragwatch.judges.llm.units import units_of
from ragwatch.model.evidence import Address, ClaimVerdict, Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.scores import score_all
from ragwatch.statistics.text.citations import with_citations

QUESTION = "How long is the warranty?"
WARRANTY = "The warranty lasts two years."
CONTEXTS = (
    Context("The warranty lasts two years from the date of purchase. It covers battery faults.", id="doc-4"),
    Context("Shipping takes three days.", id="doc-9"),
)

HEADS_OF_SOURCES = ("Quellen:", "**Fuentes**", "Sources :", "## Fonti", "Bronnen:", "Fontes:", "Références :")

SENTENCES = sections()
# None of these lines is in training/kinds, nor is one of the inventions.
OPENINGS, CLOSINGS = SENTENCES["courteous opening"], SENTENCES["courteous closing"]


def read(answer: str, question: str = QUESTION, contexts: tuple[Context, ...] = CONTEXTS) -> Evidence:
    """What the lexical judge reads, with citations."""
    evidence = LEXICAL.evidence(Sample("r1", question, contexts, answer))
    return with_citations(evidence, answer, [context.id for context in contexts])


def faithfulness(answer: str) -> float | None:
    """The score of an answer about the warranty."""
    return score_all(read(answer))[Quantity.FAITHFULNESS]


@pytest.mark.costly
def test_courtesy_changes_nothing() -> None:
    """Of 400 courteous wrappings of a right answer, line by line or in one line, at most four change its score."""
    changed = []
    for number, (opening, closing) in enumerate(product(OPENINGS, CLOSINGS)):
        answer = (" " if (number + number // len(CLOSINGS)) % 2 else "\n\n").join((opening, WARRANTY, closing))
        if faithfulness(answer) != 1.0:
            changed.append(answer)
    assert len(changed) <= 4, changed


def test_an_invention_in_a_courteous_tone_stays_a_claim() -> None:
    """Of 200 at most six are taken for courtesy."""
    lost = []
    for frame, invention in product(SENTENCES["courteous frame"], SENTENCES["invention"]):
        answer = frame.format(invention)
        end = answer.index(invention) + len(invention)
        if not any(claim.start < end <= claim.end for claim in claims_of(answer).claims):
            lost.append(answer)
    assert len(lost) <= 6, lost


@pytest.mark.parametrize("side", [0, 1])
def test_what_says_nothing_about_the_subject_is_told_from_claims_in_like_words(side: int) -> None:
    """Of 100 pairs at most two on each side are not, between two other sentences.

    None of the lines is in training/kinds.
    """
    wrong = []
    for pair in SENTENCES["no claim | a claim in like words"]:
        sentence = pair.split(" | ")[side]
        answer = f"{WARRANTY} {sentence} It covers battery faults."
        start = answer.index(sentence)
        end = start + len(sentence)
        if any(claim.start < end and start < claim.end for claim in claims_of(answer).claims) is not bool(side):
            wrong.append(sentence)
    assert len(wrong) <= 2, wrong


@pytest.mark.parametrize(
    "answer",
    [
        f"{WARRANTY[:-1]}【4:0†source】.",
        f"{WARRANTY[:-1]} [doc-4].",
        f"{WARRANTY}\u00b9",
        f"{WARRANTY[:-1]} [^1^].",
        f"{WARRANTY[:-1]} (Source: handbook_v3.pdf, p. 12).",
        f"{WARRANTY}\n\nSources:\n- handbook_v3.pdf, page 12\n- https://docs.example.org/h/17",
        *(f"{WARRANTY}\n\n{head}\n[1] handbook_v3.pdf" for head in HEADS_OF_SOURCES),
        f"{WARRANTY[:-1]} [^1^].\n\n[^1^]: handbook_v3.pdf",
        f"{WARRANTY[:-1]} [^1].\n\n[^1]: Handbook of the shop",
        f"{WARRANTY}\nSource: https://docs.example.org/h/17",
        f"{WARRANTY} Would you like me to check your order?",
        f"Hi there! Thanks for reaching out. {WARRANTY} Have a great day!",
        f"Confidence: 95%\n\n{WARRANTY}\n\n*Last updated: today*",
        WARRANTY.replace("war", "war\u00ad"),
        WARRANTY.replace("war", "war\u200b"),
    ],
)
def test_marks_and_talk_are_no_claims(answer: str) -> None:
    """One claim is read, it is supported, and it is a line of an LLM's page, where it stands in the answer."""
    (claim,) = read(answer).claims
    assert (claim.verdict, claim.contexts) == (ClaimVerdict.SUPPORTED, (0,))
    ((start, end),) = units_of(Sample("r1", QUESTION, CONTEXTS, answer)).claims
    assert (start, end) == (claim.start, claim.end)
    assert answer[start:end].startswith("The ")


def test_a_mark_names_a_context_by_its_id() -> None:
    """The id of the sample's context; an unknown one names nothing."""
    (citation,) = read(f"{WARRANTY[:-1]} [doc-4] [doc-7].").citations
    assert (citation.context, citation.supports) == (0, True)


@pytest.mark.parametrize(
    ("answer", "address"),
    [
        ("I couldn't find any information about that. Can I help you with anything else?", Address.ABSTAINED),
        ("I don't have information about that. Would you like to talk to an agent?", Address.ABSTAINED),
        ("Thanks for asking! I could not find this in our documents. Let me know if I can help.", Address.ABSTAINED),
        ("Which product do you mean?", None),  # a question back is no answer that can be judged
    ],
)
def test_an_offer_behind_an_abstention(answer: str, address: Address | None) -> None:
    """The answer abstains; neither its faithfulness nor whether it addresses the question is known."""
    evidence = read(answer)
    assert (evidence.address, evidence.claims) == (address, ())
    assert {score_all(evidence)[name] for name in (Quantity.FAITHFULNESS, Quantity.ANSWER_RELEVANCY)} == {None}


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("Did you know that the warranty lasts nine years?", ["Did you know that the warranty lasts nine years?"]),
        ("It lasts nine years, doesn't it?", ["It lasts nine years, doesn't it?"]),
        ("The warranty lasts nine years, shall I check yours?", ["The warranty lasts nine years"]),
        ("Well, which one do you mean?", []),
        ("To point you in the right direction, could you tell me which kettle you have?", []),
        ("If you bought it within 30 days, do you have the receipt?", []),
        ("To date, the shop has sold nine kettles, do you want one?", ["To date, the shop has sold nine kettles"]),
        ("To get the 20 % discount of May, could you send me the code?", ["To get the 20 % discount of May"]),
        ("Sure.", ["Sure."]),
        ("I Will Always Love You", ["I Will Always Love You"]),
        ("Sources:\n- Vitamin C comes from oranges.", ["Vitamin C comes from oranges."]),
        ("Some foods that help against kidney stones include:\n\n* Melons and figs", ["Melons and figs"]),
        (
            "The warranty lasts nine years and covers:\n- The battery is covered",
            ["The warranty lasts nine years and covers:", "The battery is covered"],
        ),
    ],
)
def test_what_states_something_is_a_claim(answer: str, claims: list[str]) -> None:
    """Rhetorical questions, what stands before a question, bare answers, and lists of sources of something else.

    What announces a list is no claim, unless it has a number.
    """
    assert [answer[claim.start : claim.end] for claim in claims_of(answer).claims] == claims


def test_long_sentences_are_claims() -> None:
    """Whatever they begin with, and however long they are."""
    assert not is_small_talk(f"I hope this helps {'very ' * 40}much.")
    assert not is_small_talk("Hello " * 100_000)
    assert not asks("It costs 3 euros. " * 10_000)


@pytest.mark.parametrize(
    ("question", "context", "answer", "supported"),
    [
        ("Who is it?", "The foe of G.I. Joe is Destro, a dealer.", "The foe of G.I. Joe is Destro.", True),
        ("How far apart?", "1. Cut them.\n2. Plant them 12 inches apart.", "Plant them about 1-2 inches apart.", False),
        ("How many?", "They offer drinks:\n1. Tea\n2. Rum\n3. Milk", "They offer three drinks: tea, rum, milk.", True),
        ("Who runs it?", "Vladimir Petrov runs the shop.", "Vladimir Petrov runs the shop.", True),
    ],
)
def test_initials_and_numbers_of_lists(question: str, context: str, answer: str, supported: bool) -> None:  # noqa: FBT001
    """Initials end no sentence; the number of a list item is no amount, but the last one is their count."""
    claims = read(answer, question, (Context(context),)).claims
    assert (claims[0].start, claims[-1].end) == (0, len(answer))
    assert {claim.verdict is ClaimVerdict.SUPPORTED for claim in claims} == {supported}


def test_a_fact_belongs_to_the_context_where_it_stands() -> None:
    """Word for word in one of two contexts; the whole sentence is nearer to the other."""
    first = "Parcels may be sent back up to forty days after delivery"
    second = "the customer pays six euros for sending a parcel back"
    contexts = (Context(f"{first}."), Context(f"T{second[1:]}."))
    evidence = read(f"{first}, and {second}.", "What is the return policy?", contexts)
    assert [claim.contexts for claim in evidence.claims] == [(0,), (1,)]
    assert evidence.address is Address.FULLY
    assert [context.relevant for context in evidence.contexts] == [True, True]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How do I get my money back?", "Refunds are paid to the card within ten days."),
        ("How much does postage cost?", "Delivery is free above 50 euros, otherwise the fee is 4 euros."),
        ("Who wrote Emma?", "The author of Emma is Jane Austen."),
        ("When are you open on weekends?", "The shop closes at six on Saturday."),
        ("How do I terminate my subscription?", "Cancel the plan under Account before the next invoice."),
    ],
)
def test_an_answer_may_put_the_question_in_other_words(question: str, answer: str) -> None:
    """What is right and stands in the context is relevant and addresses the question, whatever words it shares."""
    evidence = read(answer, question, (Context(answer), Context("Bicycles must be left at the gate.")))
    assert evidence.address in (Address.FULLY, Address.PARTIALLY)
    assert evidence.contexts[0].relevant


def test_words_cannot_tell_whether_an_answer_in_words_of_its_own_addresses_a_question() -> None:
    """Where no context shares the question's words either; where one does, the answer is beside the point."""
    question, answer = "Why do birds migrate in autumn?", "The daily lecture begins at nine in the great hall."
    assert read(answer, question, (Context(answer),)).address is None
    assert read(answer, question, (Context("Birds migrate in autumn to find food."),)).address is Address.NOT_AT_ALL


def test_a_sentence_without_a_claim_has_a_kind() -> None:
    """In seven languages; questions that state what they ask have none."""
    kinds = {name.removeprefix("kind: "): lines for name, lines in SENTENCES.items() if name.startswith("kind: ")}
    assert len(kinds) == 9
    wrong = [text for kind, lines in kinds.items() for text in lines if (kind_of(text) or "a claim") != kind]
    assert wrong == []
