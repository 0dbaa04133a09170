"""Limits of the embedded judges: what is too large is left unjudged soon, whatever it is made of; the rest is read."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.embedded import LEXICAL, LOCAL, TINY, an_answer, by_model, by_words
from support.patience import cpu_limit

from ragwatch.commands import cli
from ragwatch.errors import JudgeError
from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.limits import Deadline
from ragwatch.judges.claims.words import identifiers, terms
from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.model.sample import Role, Sample, Turn

pytestmark = pytest.mark.uncounted

FACTS = "The museum opens at nine in summer. Tickets cost twelve euros for adults. "
ASK = "When does the museum open in summer?"
SECONDS = 10.0  # CPU: the default budget is 2 s; what one step takes under coverage comes on top
HUGE = 10**9
NO_SIZE = {"max_contexts": HUGE, "max_claims": HUGE, "max_chars": HUGE, "max_answer_chars": HUGE}
NO_SIZE["max_question_chars"] = HUGE


@contextmanager
def within(seconds: float, what: str = "") -> Iterator[None]:
    """It must not take more CPU time than that, on a quiet machine."""
    start = time.process_time()
    yield
    assert time.process_time() - start < cpu_limit(seconds), what


def sized(unit: str, size: int) -> str:
    """Text of one unit, again and again."""
    return (unit * (size // len(unit) + 1))[:size]


def of(answer: str, *contexts: str, question: str = ASK, reference: str | None = None) -> Sample:
    """A sample."""
    return an_answer(answer, *contexts, question=question, reference=reference)


NUMBERED = " ".join(f"The museum sold {number} tickets to adults." for number in range(480))
FLAT = [sized(f"House {rank} has a museum. Nine. ", 90_000) for rank in range(9)]
TOO_LARGE: dict[str, Callable[[], Sample]] = {
    "900 kB of one-letter sentences": lambda: of(sized("a. b. c. ", 900_000), FACTS),
    "900 kB of claims": lambda: of(sized(FACTS, 900_000), FACTS),
    "a word of 4 MB": lambda: of("x" * 4_000_000, FACTS),
    "1 MB without a space": lambda: of(FACTS, "ab1" * 340_000),
    "100,000 contexts": lambda: of(FACTS, *["tea"] * 100_000),
    "900 kB of newlines": lambda: of("\n" * 900_000 + "x", FACTS),
    "900 kB of bullets": lambda: of(sized("- \n", 900_000), FACTS),
    "900 kB of nested quotes": lambda: of(sized('."“‘(', 900_000), FACTS),
    "10,000 sentences, 50 contexts of 100 kB": lambda: of(FACTS * 5_000, *[sized(FACTS, 100_000)] * 50),
    "a question of 400 kB": lambda: of("Nothing here.", FLAT[0], question=sized("is w1 or w2 ", 400_000)),
    "a reference of 900 kB": lambda: of(FACTS, FACTS, reference=sized(FACTS, 900_000)),
    "501 claims": lambda: of(sized(FACTS, 90_000), FACTS),
    "a reference of 501 claims": lambda: of(FACTS, FACTS, reference=sized(FACTS, 90_000)),
    "480 claims over 900 contexts": lambda: of(NUMBERED, *[f"Museum {each} sold tickets." for each in range(900)]),
    "480 claims over 54,000 sentences": lambda: of(NUMBERED, *FLAT),
}
NAMED = "The museum in Zurich was opened by Anna Keller on 3 May 1971, and sold 4,123 tickets."
LARGE: dict[str, Callable[[], Sample]] = {
    "names and numbers beside a word of 300 kB": lambda: of(NAMED, "x" * 300_000),
    "names and numbers beside 20,000 numbers": lambda: of(NAMED, " ".join(map(str, range(13, 140_000, 7)))),
    "200 answers of one word": lambda: of("No.\n\n" * 200, sized(FACTS, 200_000), question="Is the museum open?"),
    "a word of 90 kB": lambda: of("x" * 90_000, FACTS),
    "300 kB without a space": lambda: of(FACTS, "ab1" * 100_000),
    "900 kB of newlines": lambda: of(FACTS, "\n" * 900_000),
    "90 kB of newlines": lambda: of("\n" * 90_000 + "x", FACTS),
    "90 kB of one-letter sentences": lambda: of(sized("a. b. c. ", 90_000), FACTS),
    "90 kB of bullets": lambda: of(sized("- \n", 90_000), FACTS),
    "90 kB of quotes": lambda: of(sized('."“‘(', 90_000), FACTS),
    "90 kB of one sentence of many parts": lambda: of(
        sized("in Bern and was built, the lamp, a, b and which ", 90_000), FACTS
    ),
    "9 kB of sentences of many parts": lambda: of(sized("Tea was in Bern ; while ( x-y, a, b and so. ", 9_000), FACTS),
    "90 kB of fences": lambda: of(sized("```\n", 90_000), FACTS),
    "1,000 contexts": lambda: of(FACTS, *["Tickets cost twelve euros."] * 1_000),
}


DEADLINES = (
    "480 claims over 54,000 sentences",
    "480 claims over 900 contexts",
    "900 kB of claims",
    "a question of 400 kB",
)


@pytest.mark.parametrize("name", [name for name in TOO_LARGE if name != DEADLINES[1]])
@pytest.mark.parametrize("judge", [LEXICAL, pytest.param(LOCAL, marks=pytest.mark.slow)], ids=["lexical", "local"])
def test_what_is_too_large_is_left_unjudged_soon(judge: LexicalJudge, name: str) -> None:
    """Whatever makes a sample too large, it is refused as such within the time budget, never read for minutes."""
    sample = TOO_LARGE[name]()
    with within(SECONDS), pytest.raises(JudgeError) as caught:
        judge.evidence(sample)
    assert (caught.value.reason, caught.value.permanent) == ("too_large", True)


@pytest.mark.parametrize("name", LARGE)
def test_what_is_hostile_and_within_the_limits_is_read_soon(name: str) -> None:
    """Hostile text of an allowed size is read in a second or so without any deadline: every step is linear in it."""
    judge, sample = by_words(max_seconds=3600), LARGE[name]()
    with within(3 * SECONDS):
        assert len(judge.evidence(sample).contexts) == len(sample.contexts)


def test_any_hostile_answer_is_split_in_linear_time() -> None:
    """However many claims it has: an answer of half the size that is allowed, made of one unit."""
    for unit in (" ", "A. B", "[1]", "1.", "'", "x_", "a.b", "\n- a", "passage 1, ", "not ", "é"):
        text = sized(unit, 50_000)
        with within(SECONDS / 6, unit):
            claims_of(text)
            terms(text)
            identifiers(text)


@pytest.mark.parametrize("weights", [TINY, pytest.param(None, marks=pytest.mark.slow)], ids=["tiny", "released"])
def test_a_model_reads_no_more_of_a_huge_context_than_of_a_short_one(weights: Path | None) -> None:
    """It costs the time of its length, whatever its form; 3,600 cells take bounded time, as the model reads a share."""
    judge = by_model(weights=weights)
    page = "Home | About us | Cookies\nWe use cookies. Accept all. Subscribe to our letter! (c) 2024\n" * 20
    for unit in (FACTS, "museum. ", "| museum | opens | nine ", page + FACTS):
        with within(SECONDS, unit[:20]):
            judge.evidence(of(NAMED, sized(unit, 100_000), FACTS))
    contexts = [f"{FACTS} House {number} of {number + 7} is on the hill." for number in range(60)]
    answer = " ".join(f"The museum has {number} tickets for adults in summer." for number in range(60))
    with within(3 * SECONDS):
        assert len(judge.evidence(of(answer, *contexts)).claims) == 60


@pytest.mark.costly
@pytest.mark.parametrize(
    "name", [name if name in DEADLINES else pytest.param(name, marks=pytest.mark.slow) for name in sorted(TOO_LARGE)]
)
def test_the_time_budget_alone_is_enough(name: str) -> None:
    """With every limit of size lifted a reading ends soon after its budget, or is over before."""
    judge, sample = by_words(**NO_SIZE, max_seconds=0.2), TOO_LARGE[name]()
    with within(3 * SECONDS), suppress(JudgeError):
        judge.evidence(sample)


def test_the_queue_goes_on_behind_hostile_answers(tmp_path: Path) -> None:
    """Answers of 900 kB are unjudged within seconds, and the ordinary one behind them is judged."""
    texts = [sized("a. b. c. ", 900_000), sized(FACTS, 900_000)] * 2 + [FACTS]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"question": ASK, "contexts": [FACTS], "answer": each}) + "\n" for each in texts))
    with within(SECONDS):
        result = CliRunner().invoke(cli, ["judge", str(log)], standalone_mode=False)
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["reason"] for each in outcomes] == ["too_large"] * 4 + [None]
    assert outcomes[-1]["scores"]["faithfulness"] == 1.0


@pytest.mark.parametrize("unit", ["I am. ", "and ", "\n", "my x "], ids=repr)
def test_hostile_turns_are_refused_or_read_soon(unit: str) -> None:
    """Many turns, and megabytes of them: a counted refusal, or a reading in linear time."""
    sample = of("I am. My x said 1. " * 40, FACTS, question="And then?")
    many = tuple(Turn(Role.USER, unit) for _ in range(20_000 // len(unit)))
    with within(4.0):
        LEXICAL.evidence(sample._replace(history=many))
        LEXICAL.evidence(sample._replace(history=(Turn(Role.USER, sized(unit, 20_000)),)))
    with pytest.raises(JudgeError, match="characters of its history") as caught:
        LEXICAL.evidence(sample._replace(history=(Turn(Role.ASSISTANT, sized(unit, 1_000_000)),)))
    assert caught.value.permanent


def test_an_answer_that_repeats_itself_has_a_row_for_each_claim() -> None:
    """Claims of the same words are looked up once, and still stand at their own places with the same verdict."""
    claims = LEXICAL.evidence(of(FACTS * 3, FACTS)).claims
    assert len({claim.start for claim in claims}) == len(claims) == 6
    assert [claim.support for claim in claims[:2]] * 3 == [claim.support for claim in claims]


def test_a_deadline_counts_cpu_time_only() -> None:
    """However much wall time has passed, a reading goes on until its CPU time has run out, and not beyond."""
    cpu, wall = [100.0], [0.0]
    check = Deadline(2.0, lambda: cpu[0], lambda: wall[0])
    check()
    wall[0], cpu[0] = 50.0, 101.0
    check()
    cpu[0] = 102.5
    check()  # half a second of wall time must pass first for the CPU clock to be worth asking
    wall[0] = 51.0
    with pytest.raises(JudgeError, match="2 s of CPU time") as caught:
        check()
    assert caught.value.reason == "too_large"


def test_a_part_that_is_bounded_otherwise_does_not_count() -> None:
    """What the model takes is not taken from the words' time; what was left before is left behind it."""
    now = [0.0]
    check = Deadline(2.0, lambda: now[0], lambda: now[0])
    now[0] = 1.5
    with check.paused():
        now[0] = 11.0
    now[0] = 11.4
    check()
    now[0] = 11.6
    with pytest.raises(JudgeError, match="2 s of CPU time"):
        check()
