"""The threat model (docs/security.md): every threat once, tests that exist, and what no other test checks."""

import gzip
import itertools
import json
import re
import tracemalloc
from pathlib import Path

import pytest
from support.asked import application, asking
from support.callers import HandClock, canned
from support.kit import AT, JUDGE, Clock, ListSource, a_batch, a_judge_context, a_line
from support.loops import CANONICAL
from support.secret_examples import EXAMPLES
from support.snapshots import small
from support.tail_reader import Reader

from ragwatch.errors import JudgeError, SourceError
from ragwatch.judges.lexical.judge import Options as LexicalOptions
from ragwatch.judges.lexical.judge import build as build_lexical
from ragwatch.judges.openai import Options, build
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context, Sample
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import LoopContext
from ragwatch.redaction.redactor import Redactor
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.statistics.scores import score_all
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry
from ragwatch.web.json_values import MAX_BODY_BYTES

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| X\d+ \|", line)
]
THREATS = 27
NAMES = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"(?m)^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"))
}


def test_every_threat_has_tests_that_exist() -> None:
    """X1 to X27, each with what stops it and a test that has its number; such a test stands in its row."""
    assert [row[0] for row in ROWS] == [f"X{number}" for number in range(1, THREATS + 1)]
    assert all(len(row) == 4 and all(row) for row in ROWS)
    for number, _, _, names in ROWS:
        named = re.findall(r"`(\w+)`", names)
        assert named
        assert set(named) <= NAMES, number
        numbers = [match[1].split("_") for name in named if (match := re.match(r"test_((?:x\d+_)+)", name))]
        assert numbers, number
        assert all(number.lower() in each for each in numbers), number
    rows = {number.lower(): set(re.findall(r"`(\w+)`", names)) for number, _, _, names in ROWS}
    for name in NAMES:
        for number in re.findall(r"x\d+(?=_)", (re.match(r"test_((?:x\d+_)+)", name) or [""])[0]):
            assert name in rows[number], (number, name)


PACKAGE = Path(__file__).parents[2] / "ragwatch"
MIB = 1 << 20
UNPICKLES = re.compile(
    r"(?m)^\s*(?:import|from) (?:_?pickle|dill|cloudpickle|joblib|marshal|shelve|torch|transformers)\b"
    r"|trust_remote_code"
)


@pytest.mark.parametrize("answer", [":", "Thought process:", "**Answer:**", "...", "-", "```\n```"])
def test_x2_an_answer_that_says_nothing_has_no_score(answer: str) -> None:
    """No claims is a state of its own: no quantity about claims is 1, it is unknown; the question is not addressed."""
    judge = build_lexical(LexicalOptions(), name=JUDGE, context=a_judge_context())
    evidence = judge.evidence(Sample("s", "When does it open?", (Context("It opens at nine."),), answer))
    scores = score_all(evidence)
    assert evidence.claims == ()
    assert (scores[Quantity.FAITHFULNESS], scores[Quantity.CONTRADICTION]) == (None, None)
    assert scores[Quantity.ANSWER_RELEVANCY] in (0.0, None)


@pytest.mark.costly
async def test_x4_secrets_in_1000_lines_reach_neither_disk_nor_provider(
    store: SqliteStore, telemetry: Telemetry, tmp_path: Path
) -> None:
    """An example of every rule's kind, in question, context, answer and metadata: no byte of one leaves intake."""
    examples = [example for kind in EXAMPLES.values() for example in kind]
    lines = [
        a_line(
            f"r{number}",
            question=f"What of {text}\nplease?",
            contexts=[{"id": "c", "text": f"We have:\n{text}\nfiled."}],
            answer=f"It is\n{text}\nas filed.",
            metadata={"note": f"see {text}"},
        )
        for number, (text, _) in enumerate(itertools.islice(itertools.cycle(examples), 1000))
    ]
    rules = IntakeRules(SamplingPlan(1.0), {JUDGE: 1.0}, Redactor(), 2000)
    source = ListSource([a_batch(*lines)])
    intake = IntakeLoop(source, CANONICAL, rules, LoopContext(store, telemetry, Clock(AT)))
    await intake.step()
    draws = store.lease(JUDGE, 1000, now=AT, seconds=0)
    assert len(draws) == 1000
    with canned((400, {}, {})) as (address, sent):
        options = Options.model_validate({"model": "m", "base_url": f"{address}/v1", "allow_unknown_price": True})
        clock = HandClock()
        judge = build(options, name=JUDGE, context=a_judge_context(), clock=clock)
        for draw in draws[: len(examples) : 30]:
            with pytest.raises(JudgeError):
                await judge.read(draw.sample)
            clock.at += 100_000.0  # so that the circuit breaker is closed again
        await judge.close()
    store.engine.checkpoint()
    left = (
        repr(draws)
        + json.dumps(sent)
        + "".join(path.read_bytes().decode("latin-1") for path in (tmp_path / "state").iterdir() if path.is_file())
    )
    assert len(sent) >= len(examples) // 30
    assert sorted({secret for _, secret in examples if secret in left or json.dumps(secret)[1:-1] in left}) == []


async def test_x7_a_compressed_body_is_not_unpacked() -> None:
    """200 MB of JSON in 200 kB of gzip: refused, with a few bytes of memory."""
    bomb = gzip.compress(b" " * MIB) * 200
    assert len(bomb) < 300_000
    async with asking(application(small())) as client:
        tracemalloc.start()
        replies = [
            await client.post("/v1/labels", content=content, headers={"Content-Encoding": "gzip"})
            for content in (bomb, b" " * (MAX_BODY_BYTES + 1))
        ]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert [reply.status_code for reply in replies] == [400, 413]
    assert peak < 50 * MIB


def test_x7_a_compressed_log_is_not_unpacked_into_memory(tmp_path: Path) -> None:
    """100 MB in 100 kB of gzip are no log: the error names the file, and nothing of it is held."""
    (tmp_path / "app.jsonl.1.gz").write_bytes(gzip.compress(b"a" * MIB) * 100 + gzip.compress(b"\nnext\n"))
    reader = Reader(tmp_path / "app.jsonl*", max_line_bytes=MIB)
    tracemalloc.start()
    with pytest.raises(SourceError, match=r"app\.jsonl\.1\.gz: more than \d+ bytes in"):
        reader.drain()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reader.stop()
    assert peak < 50 * MIB


def test_x25_no_code_comes_with_a_model() -> None:
    """No module of ours unpickles, or loads a model with code of its own."""
    for path in PACKAGE.rglob("*.py"):
        assert UNPICKLES.search(path.read_text(encoding="utf-8")) is None, path
