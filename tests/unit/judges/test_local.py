"""The local judge as the daemon meets it: words first, a model beside them, and words alone where there is none.

The model here is the small one that `tools/tiny_reader.py` writes: it was not trained, so what it must say is known.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.kit import a_judge_context

from ragwatch.core.evidence import ClaimVerdict, Evidence
from ragwatch.core.sample import Context, Sample
from ragwatch.core.sampling import uncertainty
from ragwatch.core.scores import score_all
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.facts import UNSUPPORTED
from ragwatch.judges.local.judge import LocalJudge, Options, build
from ragwatch.model.quantities import Quantity
from ragwatch.telemetry import Telemetry

TINY = Path(__file__).parents[2] / "data" / "local"
LAMP = "The old lamp burns for twelve hours on one watch. It is painted green."
MUSEUM = "The museum opens at nine in summer. The museum is closed for repair in winter."
SUPPORTED, CONTRADICTED, ABSENT = ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED, ClaimVerdict.NOT_IN_CONTEXT


def a_judge(telemetry: Telemetry | None = None, **options: object) -> LocalJudge:
    """A judge with the small model."""
    return build(Options.model_validate({"weights": TINY} | options), name="reader", context=a_judge_context(telemetry))


JUDGE = a_judge()


def a_sample(answer: str, *contexts: str, question: str | None = None, **parts: str) -> Sample:
    """One answer over these contexts."""
    return Sample("s", question, tuple(map(Context, contexts)), answer, **parts)  # type: ignore[arg-type]


def read(answer: str, *contexts: str, question: str | None = None) -> Evidence:
    """Evidence of one answer."""
    return JUDGE.evidence(a_sample(answer, *contexts, question=question))


def levels(telemetry: Telemetry) -> dict[tuple[str, ...], float]:
    """Levels by their names."""
    return {(str(level), *labels): value for (level, labels), value in telemetry.levels().items()}


def left(telemetry: Telemetry) -> dict[str, float]:
    """What was left to words, by reason."""
    counts = telemetry.counts().items()
    return {labels[1]: value for (count, labels), value in counts if str(count) == "judge_left_to_words"}


def test_the_three_verdicts() -> None:
    """Supported, contradicted, and neither; each with the sentence that speaks for or against it."""
    claims = read(
        "The lamp burns for twelve hours. The museum is not closed for repair in winter. Zebras sleep on the wall.",
        LAMP,
        MUSEUM,
    ).claims
    assert [claim.verdict for claim in claims] == [SUPPORTED, CONTRADICTED, ABSENT]
    assert [claim.contexts for claim in claims] == [(0,), (), ()]
    assert claims[0].evidence == "The old lamp burns for twelve hours on one watch."
    assert claims[1].evidence == "The museum is closed for repair in winter."


def test_a_contradiction_that_nobody_looked_for_is_no_zero() -> None:
    """Where words decide a claim that some context touches, the share of contradictions is unknown, not 0."""
    german = "Die Lampe der alten Mühle ist im Mai ausgegangen und niemand hat sie bisher ersetzt."
    assert score_all(read(german, german))[Quantity.CONTRADICTION] is None
    few = a_judge(max_pairs=1).evidence(a_sample("The lamp burns for twelve hours. The museum is open.", LAMP, MUSEUM))
    assert score_all(few)[Quantity.CONTRADICTION] is None
    assert score_all(read("Zebras sleep on a wall.", LAMP))[Quantity.CONTRADICTION] == 0.0


def test_a_contradiction_is_a_score() -> None:
    """It reads contradictions, so their share is known; needs it does not read."""
    evidence = read(
        "The museum is not closed for repair in winter.", MUSEUM, question="Is the museum closed in winter?"
    )
    scores = score_all(evidence)
    assert evidence.reads_contradiction
    assert (scores[Quantity.CONTRADICTION], scores[Quantity.FAITHFULNESS]) == (1.0, 0.0)
    assert scores[Quantity.NEED_RECALL] is None


def test_words_alone_would_have_been_fooled() -> None:
    """Why there is a cross-encoder: all words are there, and yet it is not what the context says."""
    words = lexical.build(lexical.Options(), name="words", context=a_judge_context())
    sample = a_sample("The museum was no longer closed for repair in winter.", MUSEUM)
    assert words.evidence(sample).claims[0].verdict is SUPPORTED
    assert JUDGE.evidence(sample).claims[0].verdict is CONTRADICTED


def test_support_is_the_uncertainty_of_the_cascade() -> None:
    """A calibrated probability, never 0 or 1: what follows this judge reads more of what is near a half."""
    sure = uncertainty(read("The lamp is painted green.", LAMP))
    unsure = uncertainty(read("The museum is not closed for repair in winter.", MUSEUM))
    assert sure is not None
    assert unsure is not None
    assert 0.0 < sure < unsure < 1.0


def test_contexts_in_use_are_told_by_words() -> None:
    """A context without a word of the claim was not used; the model reads a claim once, however many contexts."""
    answer, context = "The lamp is painted green.", "The lamp is painted green, they say."
    assert read(answer, context, "Lions sleep.").used == (True, False)
    telemetry = Telemetry()
    a_judge(telemetry, max_pairs=1).evidence(a_sample(answer, *[context] * 9))
    assert left(telemetry)["too_many"] == 0


def test_thresholds_can_be_moved_and_are_part_of_the_version() -> None:
    """Verdicts of other thresholds must not share a mean; limits and the folder's name do not matter."""
    strict = a_judge(support=0.95)
    assert strict.evidence(a_sample("The lamp is green.", LAMP)).claims[0].verdict is ABSENT
    assert read("The lamp is green.", LAMP).claims[0].verdict is SUPPORTED
    lenient = a_judge(contradiction=0.99)
    assert lenient.evidence(a_sample("The museum is not closed for repair.", MUSEUM)).claims[0].verdict is ABSENT
    versions = {each.version for each in (JUDGE, strict, lenient, a_judge(relevance=0.6), a_judge(max_pairs=9))}
    assert len(versions) == 5
    assert a_judge(max_claims=9, weights=str(TINY)).version == JUDGE.version


def test_version_names_model_and_tables() -> None:
    """`local`, digits of the model, then the lexical judge's own, for its figures go into every verdict."""
    words = lexical.build(lexical.Options(), name="words", context=a_judge_context())
    assert JUDGE.version == f"{JUDGE.model}-{words.version}"
    assert (JUDGE.model[:6], len(JUDGE.model), JUDGE.kind, JUDGE.fallback) == ("local-", 14, "local", None)


@pytest.mark.parametrize(("key", "value"), [("support", 1.0), ("contradiction", 0.0), ("max_pairs", 0), ("url", "x")])
def test_options_that_make_no_sense_are_refused(key: str, value: object) -> None:
    """At the door, not at the first answer."""
    with pytest.raises(ValidationError):
        Options.model_validate({key: value})


async def test_it_reads_off_the_loop_and_is_counted() -> None:
    """Awaiting a reading gives the same as the direct call; it is a call of this model, for no money."""
    telemetry = Telemetry()
    judge = a_judge(telemetry)
    sample = a_sample("The lamp is painted green.", LAMP)
    assert (await judge.read(sample))[0] == JUDGE.evidence(sample)
    counts = {(str(kind), *labels): value for (kind, labels), value in telemetry.counts().items()}
    assert counts["judge_calls", "reader", judge.model] == 1
    assert levels(telemetry)["judge_fallback", "reader"] == 0.0
    assert left(telemetry) == {"language": 0, "too_many": 0}


def test_without_its_model_words_read_on_loudly(tmp_path: Path) -> None:
    """The lexical judge's version and verdicts, a level that says so, and the reason for `ragwatch check`."""
    telemetry = Telemetry()
    judge = a_judge(telemetry, weights=tmp_path / "absent")
    words = lexical.build(lexical.Options(), name="reader", context=a_judge_context())
    sample = a_sample("The museum is not closed for repair in winter.", MUSEUM)
    assert judge.evidence(sample) == words.evidence(sample)
    assert (judge.version, judge.model, judge.kind) == (words.version, words.model, "local")
    assert judge.fallback == "local.json of its model cannot be read"
    assert levels(telemetry)["judge_fallback", "reader"] == 1.0


def test_a_damaged_model_is_not_run(tmp_path: Path) -> None:
    """Wrong digest: words alone."""
    folder = Path(shutil.copytree(TINY, tmp_path / "weights"))
    with (folder / "reader.onnx").open("ab") as file:
        file.write(b"\0")
    judge = a_judge(weights=folder)
    assert judge.fallback is not None
    assert "is not the file that was released" in judge.fallback
    assert judge.version.startswith("lexical-")


def test_without_the_extra_words_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not installed is named, with what to install."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "ragwatch.judges.local.session", raising=False)
    judge = a_judge()
    assert judge.fallback == "onnxruntime is not installed; pip install 'ragwatch-exporter[local]'"
    assert judge.evidence(a_sample("Tea is green.", "Tea is green.")).claims[0].verdict is SUPPORTED


def test_a_threshold_of_its_own_holds_for_words_too(tmp_path: Path) -> None:
    """Where words read alone, the configured threshold is theirs, and their version tells."""
    judge = a_judge(weights=tmp_path, support=0.9)
    assert judge.version == lexical.build(lexical.Options(support=0.9), name="x", context=a_judge_context()).version


def test_another_language_is_read_by_words_alone() -> None:
    """The model reads nothing of it, and no pair is counted as left to words."""
    telemetry = Telemetry()
    answer = "Die Lampe der alten Mühle ist grün gestrichen und brennt zwölf Stunden."
    context = "In der Mühle steht eine Lampe, die grün gestrichen ist und zwölf Stunden lang ohne Aufsicht brennt."
    sample = a_sample(answer, context)
    found = a_judge(telemetry).evidence(sample)
    assert found == lexical.build(lexical.Options(), name="w", context=a_judge_context()).evidence(sample)
    assert (found.language, found.reads_contradiction) == ("de", False)
    assert left(telemetry) == {"language": 0, "too_many": 0}


def test_words_that_the_vocabulary_lacks_are_left_to_words() -> None:
    """A text that is unknown pieces for the most part says nothing to the model."""
    telemetry = Telemetry()
    sample = a_sample("The xylographs befuddle quixotic jurymen.", "The xylographs befuddle jurymen.")
    found = a_judge(telemetry).evidence(sample)
    assert found.claims == lexical.build(lexical.Options(), name="w", context=a_judge_context()).evidence(sample).claims
    assert left(telemetry) == {"language": 1, "too_many": 0}


def test_pairs_beyond_what_time_allows_are_left_to_words_and_counted() -> None:
    """The first ones are read, the rest decided by words: bounded time, and nothing lost."""
    telemetry = Telemetry()
    judge = a_judge(telemetry, max_pairs=2)
    answer = "The museum is not closed for repair in winter. " * 5
    contexts = [f"{MUSEUM} The house has {number} rooms." for number in ("two", "five")]
    claims = judge.evidence(a_sample(f"{answer}The lamp is not painted green.", *contexts, LAMP)).claims
    assert [claim.verdict for claim in claims[:5]] == [CONTRADICTED] * 5  # said five times, read once
    assert claims[5].verdict is CONTRADICTED
    assert left(telemetry) == {"language": 0, "too_many": 0}
    more = "The museum opens at nine in summer. The lamp burns for twelve hours. The house has two rooms."
    found = judge.evidence(a_sample(more, *contexts, LAMP)).claims
    assert len(found) == 3
    assert left(telemetry)["too_many"] >= 1


def test_a_name_or_a_number_that_no_context_holds_lowers_support() -> None:
    """Whatever the model says; a number makes the claim unsupported."""
    plain, named, numbered = (
        read(f"The museum {words}opens at nine in summer.", MUSEUM).claims[0].support or 0.0
        for words in ("", "of London ", "of 1971 ")
    )
    assert named < plain
    assert numbered <= UNSUPPORTED < named


def test_a_claim_that_shares_no_word_is_not_even_asked_about() -> None:
    """Words know as much, and nothing is counted as left over: there is nothing to read."""
    telemetry = Telemetry()
    found = a_judge(telemetry).evidence(a_sample("Zebras sleep.", LAMP)).claims[0]
    assert (found.verdict, found.evidence) == (ABSENT, None)
    assert left(telemetry) == {"language": 0, "too_many": 0}
