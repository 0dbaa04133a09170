"""The local judge as the daemon meets it: words first, a model beside them, and words alone where there is none."""

import shutil
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.embedded import LEXICAL, LOCAL, TINY, an_answer, by_model, by_words, left_to_words, read_by

from ragwatch.judges.lexical.facts import UNSUPPORTED
from ragwatch.judges.local.cross_encoder import is_english
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.sampling import uncertainty
from ragwatch.statistics.scores import score_all
from ragwatch.telemetry import Telemetry

LAMP = "The old lamp burns for twelve hours on one watch. It is painted green."
MUSEUM = "The museum opens at nine in summer. The museum is closed for repair in winter."
SUPPORTED, CONTRADICTED, ABSENT = ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED, ClaimVerdict.NOT_IN_CONTEXT


def test_the_three_verdicts() -> None:
    """Supported, contradicted, and neither; each with the sentence that speaks for or against it."""
    answer = "The lamp burns for twelve hours. The museum is not closed for repair in winter. Zebras sleep on the wall."
    claims = read_by(LOCAL, answer, LAMP, MUSEUM).claims
    assert [claim.verdict for claim in claims] == [SUPPORTED, CONTRADICTED, ABSENT]
    assert [claim.contexts for claim in claims] == [(0,), (), ()]
    assert claims[0].evidence == "The old lamp burns for twelve hours on one watch."
    assert claims[1].evidence == "The museum is closed for repair in winter."


def test_a_contradiction_is_a_score() -> None:
    """Its share is known, also where words alone are fooled; needs it does not read.

    Where words decide a claim that some context touches, the share of contradictions is unknown, not 0.
    """
    denial, question = "The museum was no longer closed for repair in winter.", "Is the museum closed in winter?"
    evidence = read_by(LOCAL, denial, MUSEUM, question=question)
    scores = score_all(evidence)
    assert evidence.reads_contradiction
    assert (scores[Quantity.CONTRADICTION], scores[Quantity.FAITHFULNESS]) == (1.0, 0.0)
    assert scores[Quantity.NEED_RECALL] is None
    assert read_by(LEXICAL, denial, MUSEUM).claims[0].verdict is SUPPORTED
    german = "Die Lampe der alten Mühle ist im Mai ausgegangen und niemand hat sie bisher ersetzt."
    few = read_by(by_model(max_pairs=1), "The lamp burns for twelve hours. The museum is open.", LAMP, MUSEUM)
    for by_words_alone in (read_by(LOCAL, german, german), few):
        assert score_all(by_words_alone)[Quantity.CONTRADICTION] is None
    assert score_all(read_by(LOCAL, "Zebras sleep on a wall.", LAMP))[Quantity.CONTRADICTION] == 0.0


def test_support_is_the_uncertainty_of_the_cascade() -> None:
    """A calibrated probability, never 0 or 1: what follows this judge reads more of what is near a half."""
    sure = uncertainty(read_by(LOCAL, "The lamp is painted green.", LAMP))
    unsure = uncertainty(read_by(LOCAL, "The museum is not closed for repair in winter.", MUSEUM))
    assert 0.0 < (sure or 0.0) < (unsure or 0.0) < 1.0


def test_thresholds_can_be_moved_and_are_part_of_the_version() -> None:
    """The version names model and tables; verdicts of other thresholds must not share a mean; limits do not matter."""
    strict, lenient = by_model(support=0.95), by_model(contradiction=0.99)
    assert read_by(strict, "The lamp is green.", LAMP).claims[0].verdict is ABSENT
    assert read_by(LOCAL, "The lamp is green.", LAMP).claims[0].verdict is SUPPORTED
    assert read_by(lenient, "The museum is not closed for repair.", MUSEUM).claims[0].verdict is ABSENT
    assert len({each.version for each in (LOCAL, strict, lenient, by_model(relevance=0.6), by_model(max_pairs=9))}) == 5
    assert by_model(max_claims=9, weights=str(TINY)).version == LOCAL.version == f"{LOCAL.model}-{LEXICAL.version}"
    for key, value in (("support", 1.0), ("contradiction", 0.0), ("max_pairs", 0), ("url", "x")):
        with pytest.raises(ValidationError):
            by_model(**{key: value})
    assert (LOCAL.model[:6], len(LOCAL.model), LOCAL.kind, LOCAL.fallback) == ("local-", 14, "local", None)


async def test_it_reads_off_the_loop_and_is_counted() -> None:
    """Awaiting a reading gives the same as the direct call; it is a call of this model, for no money."""
    telemetry = Telemetry()
    judge = by_model(telemetry)
    sample = an_answer("The lamp is painted green.", LAMP)
    assert (await judge.read(sample))[0] == judge.evidence(sample)
    counts = {(str(kind), *labels): value for (kind, labels), value in telemetry.counts().items()}
    assert counts["judge_calls", "reader", judge.model] == 1
    levels = {(str(level), *labels): value for (level, labels), value in telemetry.levels().items()}
    assert levels == {("judge_fallback", "reader"): 0.0}
    left = {key[1:]: number for key, number in counts.items() if key[0] == "judge_left_to_words"}
    assert left == {("reader", "language"): 0.0, ("reader", "too_many"): 0.0}


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("absent", "local.json of its model cannot be read"),
        ("damaged", "is not the file that was released"),
        ("no runtime", "onnxruntime is not installed; pip install 'ragwatch-exporter[local]'"),
    ],
)
def test_without_its_model_words_read_on_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, why: str
) -> None:
    """The lexical judge's version and verdicts, a level that says so, and the reason for `ragwatch check`."""
    folder, telemetry = tmp_path / "weights", Telemetry()
    if fault != "absent":
        shutil.copytree(TINY, folder)
    if fault == "damaged":
        (folder / "reader.onnx").write_bytes((folder / "reader.onnx").read_bytes() + b"\0")
    if fault == "no runtime":
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        monkeypatch.delitem(sys.modules, "ragwatch.judges.local.session", raising=False)
    judge = by_model(telemetry, weights=folder)
    sample = an_answer("The museum is not closed for repair in winter.", MUSEUM)
    assert judge.evidence(sample) == LEXICAL.evidence(sample)
    assert (judge.version, judge.model, judge.kind) == (LEXICAL.version, LEXICAL.model, "local")
    assert why in (judge.fallback or "")
    assert list(telemetry.levels().values()) == [1.0]
    # A configured threshold is then that of the words, and their version tells.
    assert by_model(weights=folder, support=0.9).version == by_words(support=0.9).version


def test_another_language_is_read_by_words_alone() -> None:
    """The model reads nothing of it, and no pair is counted as left to words."""
    telemetry = Telemetry()
    context = "In der Mühle steht eine Lampe, die grün gestrichen ist und zwölf Stunden lang ohne Aufsicht brennt."
    sample = an_answer("Die Lampe der alten Mühle ist grün gestrichen und brennt zwölf Stunden.", context)
    evidence = by_model(telemetry).evidence(sample)
    assert evidence == LEXICAL.evidence(sample)
    assert (evidence.language, evidence.reads_contradiction) == ("de", False)
    assert left_to_words(telemetry) == {}


def test_the_model_reads_english_only() -> None:
    """Other scripts are known by their letters, other languages and tables by what they lack."""
    english = (
        "Tea is green.",  # too short to tell
        "$ 1,200.00",
        "The Ｖｏｒｔｅｘ kettle boils one litre of water in ninety seconds, as it says on the box.",
        "Beyoncé and Dvořák met in São Paulo, where they talked about the music of Händel.",
    )
    others = (
        "La capitale de la France est Paris. La ville est traversée par la Seine et compte deux millions.",
        "De hoofdstad van Nederland is Amsterdam, maar de regering zetelt in Den Haag.",
        "Ibu kota Indonesia adalah Jakarta, sebuah kota besar di pantai barat laut pulau Jawa.",
        "Столица России Москва.",
        "name price weight height width depth colour maker model year stock shelf",  # words, but no sentence
    )
    assert (list(map(is_english, english)), list(map(is_english, others))) == ([True] * 4, [False] * 5)


def test_what_the_model_cannot_read_is_left_to_words() -> None:
    """A text that is unknown pieces for the most part; it is counted, and a claim that shares no word is not."""
    telemetry = Telemetry()
    judge = by_model(telemetry)
    (claim,) = read_by(judge, "Zebras sleep.", LAMP).claims
    assert (claim.verdict, claim.evidence, left_to_words(telemetry)) == (ABSENT, None, {})
    sample = an_answer("The xylographs befuddle quixotic jurymen.", "The xylographs befuddle jurymen.")
    assert judge.evidence(sample).claims == LEXICAL.evidence(sample).claims
    assert left_to_words(telemetry) == {"language": 1}


def test_pairs_beyond_what_time_allows_are_left_to_words_and_counted() -> None:
    """The first ones are read, the rest decided by words: bounded time, and nothing lost."""
    telemetry = Telemetry()
    judge = by_model(telemetry, max_pairs=2)
    contexts = (*(f"{MUSEUM} The house has {number} rooms." for number in ("two", "five")), LAMP)
    answer = f"{'The museum is not closed for repair in winter. ' * 5}The lamp is not painted green."
    assert [claim.verdict for claim in read_by(judge, answer, *contexts).claims] == [CONTRADICTED] * 6
    assert left_to_words(telemetry) == {}  # what was said five times is read once, however many contexts
    more = "The museum opens at nine in summer. The lamp burns for twelve hours. The house has two rooms."
    assert len(read_by(judge, more, *contexts).claims) == 3
    assert left_to_words(telemetry)["too_many"] >= 1


def test_a_name_or_a_number_that_no_context_holds_lowers_support() -> None:
    """Whatever the model says; a number makes the claim unsupported."""
    plain, named, numbered = (
        read_by(LOCAL, f"The museum {words}opens at nine in summer.", MUSEUM).claims[0].support or 0.0
        for words in ("", "of London ", "of 1971 ")
    )
    assert named < plain
    assert numbered <= UNSUPPORTED < named
