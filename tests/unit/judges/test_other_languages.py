"""Other languages than English are read for changes: on records of our own writing.

Thirty devices have four documents of two sentences each; a question asks for one of these eight facts, its contexts are
the document with the fact and those of other devices, and its answer says the fact in other words. Nobody asked these
questions: they show that a language is read as English is, and nothing of how good a judge is on real answers.
"""

import random
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean

import pytest
from pydantic import ValidationError
from support.embedded import LEXICAL, by_words, read_by

from ragwatch.judges.lexical.language import LANGUAGES, language_of
from ragwatch.model.evidence import Address, ClaimVerdict, UnreadReason
from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import UnknownReason
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.drift.detect import Score, begin, step
from ragwatch.statistics.drift.detectors import Betting
from ragwatch.statistics.drift.reference import ReferenceScheme
from ragwatch.statistics.scores import faithfulness, score_all, why_unknown

THINGS = tuple(" ".join(pair) for pair in product(("Orka", "Vela", "Tulsa", "Nordo", "Pixa"), "ABCDEF"))
DOCUMENTS = 4
PER_DOCUMENT = 2

_TABLE = Path(__file__).parents[2] / "data" / "languages" / "facts.tsv"
_ROWS = [line.split("\t") for line in _TABLE.read_text(encoding="utf-8").splitlines()[1:]]
FACTS = {
    language: [row for name, *row in _ROWS if name == language] for language in dict.fromkeys(row[0] for row in _ROWS)
}
"""By language, for each fact: question, sentence of a document, answer."""
BEFORE, RUNS = 400, 60


def records(language: str) -> list[Sample]:
    """240 right answers in a language, in an order that is the same in every language."""
    facts = FACTS[language]
    rng = random.Random(44)
    numbers = {(thing, fact): rng.randint(2, 97) for thing in THINGS for fact in range(len(facts))}

    def said(part: int, thing: str, fact: int) -> str:
        text = facts[fact][part].replace("{n}", str(numbers[thing, fact])).replace("{}", thing)
        return text[0].upper() + text[1:]

    def document(thing: str, place: int) -> str:
        first = place * PER_DOCUMENT
        return " ".join(said(1, thing, fact) for fact in range(first, first + PER_DOCUMENT))

    samples = []
    for thing, fact in rng.sample(list(numbers), len(numbers)):
        others = [document(rng.choice(THINGS), rng.randrange(DOCUMENTS)) for _ in range(2)]
        contexts = [document(thing, fact // PER_DOCUMENT), *others]
        rng.shuffle(contexts)
        name = f"{language}-{thing}-{fact}"
        samples.append(Sample(name, said(0, thing, fact), tuple(map(Context, contexts)), said(2, thing, fact)))
    return samples


def swapped(samples: list[Sample], rng: random.Random, share: float = 1.0) -> Iterator[Sample]:
    """Give so many of the samples, drawn by chance, the answer of another question."""
    for sample in samples:
        other = rng.choice(samples)
        yield sample._replace(answer=other.answer) if rng.random() < share else sample


ENGLISH = "Refunds take five days, and the shipping of the order is free."
_LINES = [line.split("\t") for line in _TABLE.with_name("sentences.tsv").read_text(encoding="utf-8").splitlines()]
READ, ELSEWHERE, UNREAD = (
    {language: text for name, language, text in _LINES if name == kind} for kind in ("read", "elsewhere", "unread")
)
"""By language: a sentence about refunds, one about something else; and sentences of languages that are not read."""


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_an_answer_is_compared_with_contexts_in_its_language(language: str) -> None:
    """Its own words support it, other words do not; nothing is contradicted, and the verdict tells the language."""
    text, other = READ[language], ELSEWHERE[language]
    assert language_of(text) == language_of(other) == language
    for context, verdict in ((text, ClaimVerdict.SUPPORTED), (other, ClaimVerdict.NOT_IN_CONTEXT)):
        read = read_by(LEXICAL, text, context)
        assert {claim.verdict for claim in read.claims} == {verdict}
        assert (read.language, read.unread, read.reads_contradiction) == (language, None, False)


@pytest.mark.parametrize(("language", "text"), [*READ.items(), *UNREAD.items()])
def test_what_words_cannot_compare_is_unknown_and_never_zero(language: str, text: str) -> None:
    """Beside English, beside a third language, and in a language that is not read: every score says why."""
    pairs = [(text, ENGLISH), (ENGLISH, text), (text, UNREAD["pl"] if language != "pl" else READ["de"])]
    for answer, context in pairs if language in LANGUAGES else [*pairs, (text, text)]:
        read = read_by(LEXICAL, answer, context, question="How long?")
        assert set(score_all(read).values()) == {None}
        assert why_unknown(read, Quantity.FAITHFULNESS) is UnknownReason.LANGUAGE
        assert why_unknown(read, Quantity.CONTEXT_PRECISION) is UnknownReason.LANGUAGE


def test_the_option_leaves_languages_out() -> None:
    """What it does not name is unknown; English is read in any case; the version says what is read."""
    german = by_words(languages=["de"])
    assert read_by(german, READ["de"], READ["de"]).language == "de"
    assert read_by(german, READ["fr"], READ["fr"]).unread is UnreadReason.LANGUAGE
    assert read_by(german, ENGLISH, ENGLISH).unread is None
    assert german.version == f"{LEXICAL.version}-de+en"
    with pytest.raises(ValidationError):
        by_words(languages=["pl"])


def test_english_names_and_code_are_read() -> None:
    """Names of other languages and scripts, code and numbers do not make a text foreign."""
    for answer in (
        ENGLISH,
        "Bern",
        "Los Angeles and San Diego are in California.",
        "Die Welt and Der Spiegel, two German papers, are in Berlin.",
        "Café de Flore, Jardin du Luxembourg",
        "pip install ragwatch",
        "42",
        "",
        "Владимир Петров runs the shop.",
    ):
        assert read_by(LEXICAL, answer, ENGLISH).unread is None, answer


def test_questions_refusals_and_bare_answers() -> None:
    """A German answer to a Spanish question is not read; a German refusal abstains; of a bare yes nothing is known."""
    question = "¿Cuánto tarda el reembolso y cómo se hace con los envíos?"
    assert read_by(LEXICAL, READ["de"], READ["de"], question=question).unread is UnreadReason.LANGUAGE
    refusal = read_by(LEXICAL, "Das kann ich Ihnen leider nicht sagen.", READ["de"], question="Wie lange dauert es?")
    assert refusal.address is Address.ABSTAINED
    bare = read_by(LEXICAL, "Ja.", READ["de"], question="Ist der Versand kostenlos?")
    assert (bare.unread, faithfulness(bare)) == (UnreadReason.SHORT_ANSWER, None)


def least_support(sample: Sample) -> float:
    """Support of the weakest claim."""
    return min(claim.support or 0.0 for claim in LEXICAL.evidence(sample).claims)


@pytest.mark.costly
@pytest.mark.parametrize("language", sorted(FACTS))
@pytest.mark.parametrize("count", [80, pytest.param(240, marks=pytest.mark.slow)])
def test_right_answers_have_more_support_than_answers_of_other_questions(language: str, count: int) -> None:
    """AUROC of .9 at least on our own records, English among them."""
    right = records(language)[:count]
    wrong = [least_support(sample) for sample in swapped(right, random.Random(1))]
    auroc = fmean((one > other) + (one == other) / 2 for one in map(least_support, right) for other in wrong)
    assert auroc >= 0.9


@cache
def delay(language: str) -> float:
    """Mean number of answers to the drift alarm after a fifth of the answers are those of other questions.

    One answer in twenty is so from the start, as no service is without faults. The order of the answers and of the
    swaps is that of every language. Runs with an alarm before the change are left out.
    """
    samples, waits = records(language), []
    rng = random.Random(7)
    known: dict[tuple[str, str], float] = {}
    scheme = ReferenceScheme(lambda baseline: Betting(baseline, 10_000.0), scores=BEFORE)
    for _ in range(RUNS):
        normal, worse = (list(swapped(rng.choices(samples, k=BEFORE), rng, share)) for share in (0.05, 0.2 + 0.05))
        watch = begin(scheme)
        for number, sample in enumerate([*normal, *worse]):
            pair = (sample.id, sample.answer)
            if pair not in known:
                known[pair] = faithfulness(LEXICAL.evidence(sample)) or 0.0
            watch = step(scheme, watch, number, float(number), Score(known[pair]))
            if watch.alarm is not None:
                waits.append(number - BEFORE + 1)
                break
    assert len(waits) == RUNS
    late = [wait for wait in waits if wait > 0]
    assert len(late) > 0.9 * RUNS
    return fmean(late)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "es"])
def test_swapped_answers_are_noticed_as_fast_as_in_english(language: str) -> None:
    """Within a factor of 1.5 of the same construction in English."""
    english, other = delay("en"), delay(language)
    print(f"alarm after {other:.1f} answers in {language}, {english:.1f} in English")
    assert other <= 1.5 * english
