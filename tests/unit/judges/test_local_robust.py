"""The local judge over what nobody tuned it to: orders, boilerplate, tables, code, huge and empty texts, other scripts.

No crash, bounded time, and no certainty that the text does not give. The model is the small one of the tests, and the
one that is shipped, where there is one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from ragwatch_reader import MODEL_FOLDER
from support.embedded import TINY, by_model, read_by
from support.hostile import HOSTILE
from support.patience import cpu_limit

from ragwatch.judges.local.artefact import TABLE
from ragwatch.judges.local.judge import LocalJudge
from ragwatch.model.evidence import ClaimVerdict, Evidence
from ragwatch.statistics.scores import score_all
from ragwatch.statistics.stage import stage

pytestmark = pytest.mark.uncounted

DATA = Path(__file__).parents[2] / "data"
INJECTIONS = [json.loads(line) for line in (DATA / "injections.jsonl").read_text(encoding="utf-8").splitlines()]
FOLDERS = {"tiny": TINY, "released": MODEL_FOLDER}
MUSEUM = "The harbour museum opens at nine in summer. Tickets cost twelve euros for adults. The director is a lawyer."
FERRY = "The ferry to the island leaves every forty minutes from the north pier."
ANSWER = "The harbour museum opens at nine in summer. Tickets cost twelve euros for adults. The owl sleeps in the mill."
CLEAN = [ClaimVerdict.SUPPORTED, ClaimVerdict.SUPPORTED, ClaimVerdict.NOT_IN_CONTEXT]


@pytest.fixture(scope="module", params=sorted(FOLDERS))
def judge(request: pytest.FixtureRequest) -> LocalJudge:
    """A judge with each model."""
    if not (FOLDERS[request.param] / TABLE).exists():
        pytest.skip("needs the model of reader/, which training/ makes")
    return by_model(weights=FOLDERS[request.param])


def read(judge: LocalJudge, answer: str, contexts: Sequence[str], question: str | None = None) -> Evidence:
    """Evidence of one sample that keeps the laws: offsets, probabilities inside (0, 1), scores and a stage."""
    evidence = read_by(judge, answer, *contexts, question=question)
    for claim in evidence.claims:
        assert answer[claim.start : claim.end] == claim.text
        assert claim.support is not None
        assert 0.0 < claim.support < 1.0
        assert claim.evidence is None or any(claim.evidence in text for text in contexts)
    assert len(evidence.contexts) == len(contexts)
    assert all(value is None or 0.0 <= value <= 1.0 for value in score_all(evidence).values())
    stage(evidence)
    return evidence


def verdicts(evidence: Evidence) -> list[ClaimVerdict]:
    """Verdicts in the order of the claims."""
    return [claim.verdict for claim in evidence.claims]


@pytest.mark.costly
def test_an_order_as_a_context_supports_nothing(judge: LocalJudge) -> None:
    """Alone it supports no claim, behind other contexts it changes none."""
    for text in (*(each["text"] for each in INJECTIONS), *HOSTILE):
        assert ClaimVerdict.SUPPORTED not in verdicts(read(judge, ANSWER, [text], "When does the museum open?")), text
        assert verdicts(read(judge, ANSWER, [MUSEUM, FERRY, text])) == CLEAN, text


TABLE_TEXT = "| ship | price | crew |\n|---|---|---|\n| Ferry | 12 euros | 7 |\n| Old ship | 40 euros | 12 |"
CODE = "def read(path):\n    with open(path) as file:\n        return file.read()\n"
BOILERPLATE = (
    "Home | About us | Cookies | Privacy\nWe use cookies. Accept all. Subscribe to our letter! (c) 2024\n" * 20
)
QUOTES = "“The museum,” she said, “opens at ‘nine’ — in summer.”"


@pytest.mark.costly
@pytest.mark.parametrize(
    ("answer", "contexts"),
    [
        (ANSWER, []),
        (ANSWER, ["", " \n\t", "\u200b"]),
        (ANSWER, [MUSEUM] * 40),
        (ANSWER, [BOILERPLATE, MUSEUM]),
        ("The ferry costs 12 euros and has a crew of 7.", [TABLE_TEXT]),
        (TABLE_TEXT, [TABLE_TEXT, MUSEUM]),
        (f"```python\n{CODE}```\nIt reads a file.", [CODE]),
        ("Yes.", [MUSEUM]),
        ("12", [TABLE_TEXT]),
        ("- The museum opens at nine.\n- Tickets cost twelve euros.\n  * for adults\n1. no\n2) yes", [MUSEUM]),
        (QUOTES, [MUSEUM, QUOTES]),
        ("Ｔｈｅ ｍｕｓｅｕｍ ｏｐｅｎｓ ａｔ ｎｉｎｅ.", [MUSEUM]),
        ("The muse\u200bum op\u00adens at ni\u200dne.", [MUSEUM]),
        ("Тhе musеum ореns аt ninе in summеr.", [MUSEUM]),  # Cyrillic letters that look Latin
        ("\u202eemmus ni enin ta snepo muesum ehT\u202c", [MUSEUM]),
        ("T̷h̷e̷ ̷m̷u̷s̷e̷u̷m̷ ̷o̷p̷e̷n̷s̷ ̷a̷t̷ ̷n̷i̷n̷e̷.", [MUSEUM]),
        ("The museum 🏛️ opens at 9️⃣ 👨‍👩‍👧‍👦!", [MUSEUM]),
        ("The museum \ud800 opens at nine.", [MUSEUM, "The museum opens \udfff at nine in summer."]),
        ("a" * 5_000, ["a" * 5_000]),
        ("? ! . , ; :", [MUSEUM]),
        ("\x00\x01\x1b[31m", ["\x00"]),
        ("Das Museum öffnet im Sommer um neun Uhr und schließt im Winter wegen Umbau.", [MUSEUM]),
        ("Музей открывается летом в девять часов.", ["Музей открывается летом в девять часов утра."]),
        ("博物馆夏天九点开门。", ["博物馆夏天九点开门，冬天关闭。"]),
        ("המוזיאון נפתח בתשע", ["המוזיאון נפתח בתשע בבוקר"]),
    ],
)
def test_anything_is_read(judge: LocalJudge, answer: str, contexts: list[str]) -> None:
    """No crash, and the laws of `read` hold."""
    read(judge, answer, contexts, "When does the museum open?")
    read(judge, answer, contexts)


def test_duplicates_change_nothing(judge: LocalJudge) -> None:
    """Forty copies of a context: the same verdicts, the same probabilities, every copy used."""
    once, often = read(judge, ANSWER, [MUSEUM]), read(judge, ANSWER, [MUSEUM] * 40)
    assert [(claim.verdict, claim.support) for claim in often.claims] == [
        (claim.verdict, claim.support) for claim in once.claims
    ]
    assert often.claims[0].contexts == tuple(range(40))


HUGE = 100_000


@pytest.mark.uncounted
@pytest.mark.parametrize(
    "context",
    [
        (f"{MUSEUM} {FERRY} " * 700)[:HUGE],
        pytest.param(("museum " * 20_000)[:HUGE], marks=pytest.mark.slow),
        ("museum. " * 20_000)[:HUGE],
        pytest.param("x" * HUGE, marks=pytest.mark.slow),
        ("| museum | opens | nine " * 6_000)[:HUGE],
        (f"{BOILERPLATE}{MUSEUM}\n" * 60)[:HUGE],
    ],
    ids=["prose", "one line", "stops", "no space", "table", "boilerplate"],
)
def test_a_hundred_thousand_characters_take_bounded_time(judge: LocalJudge, context: str) -> None:
    """A huge context costs the time of its length, and the model reads no more of it than of a short one."""
    start = time.process_time()
    read(judge, ANSWER, [context, MUSEUM])
    assert time.process_time() - start < cpu_limit(10.0)


@pytest.mark.costly
def test_a_sample_at_its_limits_takes_bounded_time(judge: LocalJudge) -> None:
    """Sixty claims over sixty contexts are 3,600 cells: the model reads its share, words the rest."""
    contexts = [f"{MUSEUM} House {number} of {number + 7} is on the hill." for number in range(60)]
    answer = " ".join(f"The museum has {number} tickets for adults in summer." for number in range(60))
    start = time.process_time()
    assert len(read(judge, answer, contexts).claims) == 60
    assert time.process_time() - start < cpu_limit(30.0)
