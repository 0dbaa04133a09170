"""The embedded judge as the daemon meets it: options, a version, honest refusals, and pinned tables and readings."""

import json
from importlib import resources

import pytest
from pydantic import ValidationError
from support.embedded import LEXICAL, an_answer, by_words, read_by
from support.kit import a_judge_context
from support.readings import ANSWERS, FIGURES, lines

from ragwatch.errors import JudgeError
from ragwatch.judges import KINDS
from ragwatch.judges.error_rates import measured_rates, rates
from ragwatch.judges.lexical import features, relevance
from ragwatch.judges.lexical.statements import READING_VERSION
from ragwatch.judges.lexical.tables import FILES, shipped
from ragwatch.model.evidence import Address, ClaimVerdict, Evidence
from ragwatch.model.stages import Fault, Stage
from ragwatch.statistics.scores import faithfulness, top_ranked_fault
from ragwatch.statistics.stage import stage
from ragwatch.statistics.verdict import Usage
from ragwatch.telemetry import Telemetry

KETTLE = "The Vortex kettle boils one litre of water in 90 seconds. Its lid locks while the water is hot."
TOASTER = "The Ember toaster browns four slices at once. A tray under the slots catches the crumbs."
LAMP = "The Firefly lamp dims in twelve steps. It remembers the last setting after a power cut."
ASK = "How many steps does the Firefly lamp dim in?"
COPIED = "The Firefly lamp dims in twelve steps."
ABSTAINED = "I could not find that in the documents."
INVENTED = "Engineers in Lisbon tuned 87 hidden gears with a silver spoon."
FOLDER = resources.files("ragwatch.judges") / "tables"


def read(question: str | None, answer: str, *contexts: str) -> Evidence:
    """Evidence of one sample, at once."""
    return read_by(LEXICAL, answer, *contexts, question=question)


async def test_each_reading_is_counted_and_costs_nothing() -> None:
    """A reading is a call of the tables' version, for no tokens and no money; one that is refused is a failure."""
    telemetry = Telemetry()
    judge = by_words(telemetry, max_contexts=1)
    sample = an_answer("It boils one litre in 90 seconds.", KETTLE)
    assert await judge.read(sample) == (LEXICAL.evidence(sample), Usage())
    with pytest.raises(JudgeError):
        await judge.read(an_answer("It boils.", KETTLE, LAMP))
    counts = {(str(kind), *labels): value for (kind, labels), value in telemetry.counts().items()}
    assert counts["judge_calls", "embedded", judge.model] == 2
    assert counts["judge_call_failures", "embedded", judge.model, "too_large"] == 1
    assert counts["judge_cost_dollars", "embedded", judge.model] == 0.0
    assert counts["judge_tokens", "embedded", judge.model, "input"] == 0
    assert judge.version.startswith(judge.model)
    assert judge.ready_in() == 0.0


def test_unknown_options_and_large_samples_are_refused() -> None:
    """A misspelt option is an error, and so is a threshold that is no probability.

    A sample beyond a limit is not read in part: it is unjudged, with the reason that is counted.
    """
    for wrong in ({"suport": 0.4}, {"support": 1.0}):
        with pytest.raises(ValidationError):
            by_words(**wrong)
    two = "The kettle boils. The toaster browns bread."
    for limit, answer in (({"max_contexts": 1}, "Fine."), ({"max_chars": 20}, "A" * 21), ({"max_claims": 1}, two)):
        with pytest.raises(JudgeError) as caught:
            read_by(by_words(**limit), answer, "a", "b")
        assert caught.value.reason == "too_large"


def test_contradiction_is_never_claimed() -> None:
    """A judge of words cannot tell a contradiction from an invention, and says so."""
    evidence = read(None, "The lamp explodes on Tuesdays in Madrid.", LAMP)
    assert evidence.reads_contradiction is False
    assert {claim.verdict for claim in evidence.claims} == {ClaimVerdict.NOT_IN_CONTEXT}


@pytest.mark.parametrize(
    ("name", "answer", "contexts", "expected"),
    [
        ("copied from the right one", COPIED, (LAMP, KETTLE, TOASTER), Stage.NONE),
        ("copied where all say the same", COPIED, (LAMP, LAMP, LAMP), Stage.NONE),
        ("short and right", "Twelve", (LAMP, KETTLE), Stage.NONE),
        ("abstains with the document at hand", ABSTAINED, (LAMP, KETTLE), Stage.GENERATION),
        ("abstains without it", ABSTAINED, (KETTLE, TOASTER), Stage.RETRIEVAL),
        ("invents with the document at hand", INVENTED, (LAMP, KETTLE), Stage.GENERATION),
        ("invents without it", INVENTED, (KETTLE, TOASTER), Stage.RETRIEVAL),
        ("copies the wrong document", KETTLE, (KETTLE, TOASTER), Stage.RETRIEVAL),
        ("nothing retrieved", COPIED, (), Stage.RETRIEVAL),
        ("leaves the right document aside", TOASTER, (LAMP, TOASTER), Stage.ALIGNMENT),
    ],
)
def test_the_stage_without_a_gold_answer(name: str, answer: str, contexts: tuple[str, ...], expected: Stage) -> None:
    """The readings let core name what to mend in the cases an on-call engineer meets."""
    assert stage(read(ASK, answer, *contexts)) == expected, name


def test_a_named_function_that_no_context_holds_is_a_retrieval_failure() -> None:
    """A question about `kettle.boil` answered from a page on `kettle.clean` was answered from the wrong page.

    Where part of the answer is invented too, the fault of an ignored top context is the generator's.
    """
    page = "kettle.clean(cycles)\nRuns the cleaning program as often as asked."
    answer = "Runs the cleaning program as often as asked."
    assert stage(read("What does kettle.boil do?", answer, page)) is Stage.RETRIEVAL
    assert stage(read("What does kettle.clean do?", answer, page)) is Stage.NONE
    assert top_ranked_fault(read(ASK, f"{TOASTER} {INVENTED}", LAMP, TOASTER)) is Fault.GENERATOR


def test_without_a_question_what_cannot_be_known_is_none() -> None:
    """No question: no address; an abstention then leaves even relevance unknown."""
    assert read("Why?", COPIED, LAMP).address is None  # nor does a bare why give anything to look for
    evidence = read(None, ABSTAINED, LAMP)
    assert evidence.address is Address.ABSTAINED
    assert evidence.contexts[0].relevant is None
    assert stage(evidence) is None


def test_x2_an_answer_of_no_claims_addresses_nothing() -> None:
    """A label alone claims nothing: no claims, no faithfulness, and the question is not addressed.

    An answer to "how many" without any number is partial at best. A bare yes is read with the question's words, so it
    can be supported at all.
    """
    evidence = read(ASK, "Thought process:", LAMP)
    assert (evidence.claims, faithfulness(evidence), evidence.address) == ((), None, Address.NOT_AT_ALL)
    assert read(ASK, "The Firefly lamp dims in steps.", LAMP).address is Address.PARTIALLY
    assert read("Who tuned the Firefly lamp?", "The lamp was tuned.", LAMP).address is Address.PARTIALLY
    evidence = read("Does the lid of the Vortex kettle lock while the water is hot?", "Yes.", KETTLE)
    assert ([claim.text for claim in evidence.claims], faithfulness(evidence)) == (["Yes."], 1.0)


def test_other_thresholds_are_another_version() -> None:
    """Verdicts by other thresholds mean something else, and must not share a mean with these."""
    kind, digits, reading = LEXICAL.version.split("-")
    assert (kind, len(bytes.fromhex(digits)), reading) == (LEXICAL.kind, 4, f"r{READING_VERSION}")
    assert by_words(support=0.75).version == f"{LEXICAL.version}-support0.75"
    assert by_words(max_claims=7).version == LEXICAL.version


def test_weights_keep_their_meaning() -> None:
    """Names stand in the order that the code uses, no weight has turned its sign, and rarity is a share."""
    for files, most in ((FILES, 100_000), (("kinds.json", "kind_names.json"), 64 * 1024)):
        assert sum(len((FOLDER / name).read_bytes()) for name in files) <= most  # they fit any wheel
    fitted = json.loads((FOLDER / FILES[0]).read_text(encoding="utf-8"))
    assert tuple(fitted["support"]["weights"]) == features.NAMES
    assert tuple(fitted["relevance"]["weights"]) == relevance.NAMES
    for sign, weight in zip(features.SIGNS, shipped().support.weights, strict=True):
        assert sign * weight >= 0
    assert all(weight >= 0 for weight in shipped().relevance.weights)
    assert all(0.0 < value <= features.UNLISTED for value in shipped().rarity.values())


@pytest.mark.parametrize("name", sorted(measured_rates()))
def test_rates_are_of_the_judge_that_ships(name: str) -> None:
    """A change of what a judge reads is measured again: run `python training/levels.py --judge NAME`."""
    if name == "local":
        pytest.importorskip("ragwatch_reader")
    judge = KINDS[name].build(KINDS[name].Options(), name=name, context=a_judge_context())
    assert judge.version == measured_rates()[name].version


def test_a_local_judge_without_its_model_errs_as_words_do() -> None:
    """Its version says that it has read words alone; that of one with its model begins with the model."""
    by_words, by_model = (measured_rates()[name].version for name in ("lexical", "local"))
    assert rates("local", by_words) == rates("lexical", by_words)
    assert rates("local", by_model) != rates("lexical", by_words)


@pytest.mark.costly
def test_figures_are_pinned() -> None:
    """What is read in each answer is what was read when the figures were written (see `readings`).

    They are of every sort: abstentions, contradicting numbers, many scripts, no contexts, nothing said at all.
    """
    read, pinned = [[json.loads(line) for line in some] for some in (lines(), FIGURES.read_text().splitlines())]
    assert [row for row, before in zip(read, pinned, strict=True) if row != before] == []
    rows = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    pinned.pop()  # of redaction
    assert len(rows) == len(pinned) == 200
    assert sum(not row["answer"].isascii() for row in rows) >= 40
    assert {row["address"] for row in pinned} == {None, "fully", "partially", "not_at_all", "abstained"}
    verdicts = [claim[2] for row in pinned for claim in row["claims"]]
    assert min(verdicts.count("supported"), verdicts.count("not_in_context")) >= 50
    names = {name for row in pinned for name in row["scores"]}
    assert {"faithfulness", "context_precision", "answer_relevancy"} <= names
