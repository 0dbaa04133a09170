"""`ragwatch export --failing`: each failing question once, redacted, in formats that are read back."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import command, configured, refused
from support.draws import draws
from support.kit import AT, a_claim, a_draw, a_record, a_verdict, an_admission, an_evidence

from ragwatch import formats
from ragwatch.config.canaries import read_suite
from ragwatch.formats.record import parse
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import NO_METADATA, Context, RelevantContext, Role, Sample, Turn
from ragwatch.offline.failing_answers import ROWS, FailingAnswer, _sample, regression_set
from ragwatch.ports import StoredVerdict
from ragwatch.redaction.redactor import Redactor
from ragwatch.statistics.canary.definition import Category, Expected, Grade
from ragwatch.statistics.labels.label import Label
from ragwatch.stores.sqlite.store import SqliteStore

CONTEXTS = (Context("Cats purr.", "d1"), Context("Dogs bark, says anna@example.org.", "d2"))
BAD = an_evidence((0, 0))
F, R = Quantity.FAITHFULNESS, Quantity.ANSWER_RELEVANCY


def a_config(folder: Path, **more: Any) -> str:
    """A configuration over a state directory."""
    thresholds = {"faithfulness": 0.9, "contradiction": 0.1}
    return str(configured(folder, **{"routes": ["search", "chat"], "thresholds": thresholds} | more))


def export(config: str, *arguments: str) -> Result:
    """The command."""
    return command("export", "--config", config, "--failing", *arguments)


def questions(result: Result) -> list[str]:
    """What was asked in the rows."""
    assert result.return_value == 0, result.exception
    return [json.loads(line)["question"] for line in result.stdout.splitlines()]


@pytest.fixture
def store(store: SqliteStore) -> SqliteStore:
    """The store of a running ragwatch: three questions have failing answers, one of them two; one has not."""
    asked = {"a": "Do dogs bark?", "b": "What do cats do?", "c": "what do cats  do?", "d": "Why?", "e": "Are birds ok?"}
    parts: dict[str, dict[str, Any]] = {"d": {"history": (Turn(Role.USER, "Do cats purr?"),), "route": "other"}}
    draws = {
        name: a_draw(name, at=AT + number, question=text, contexts=CONTEXTS, **parts.get(name, {}))
        for number, (name, text) in enumerate(asked.items())
    }
    store.admit(an_admission(*draws.values()))
    store.settle([a_verdict(draw, an_evidence((1, 0)) if name == "e" else BAD) for name, draw in draws.items()])
    return store


@pytest.mark.usefixtures("store")
def test_each_failing_question_once(tmp_path: Path) -> None:
    """The newest answer to each, sorted, redacted; by route, age, number, or a quantity beyond its threshold."""
    result = export(a_config(tmp_path), "--as", "gate")
    assert questions(result) == ["Why?", "Do dogs bark?", "what do cats  do?"]
    assert "left out: 1 answers to a question that is there already" in result.stderr
    assert "anna@example.org" not in result.stdout
    assert not {"at", "metadata"} & set(json.loads(result.stdout.splitlines()[0]))
    assert export(a_config(tmp_path), "--as", "gate").stdout_bytes == result.stdout_bytes
    config = a_config(tmp_path)
    assert questions(export(config, "--as", "gate", "--route", "other")) == ["Why?"]
    assert len(questions(export(config, "--as", "gate", "--route", "other", "--route", "search"))) == 3
    assert len(questions(export(config, "--as", "gate", "--route", "search", "--route", "chat"))) == 2
    few = export(config, "--as", "gate", "--limit", "2")
    assert questions(few) == ["Why?", "what do cats  do?"]
    assert "see --limit" in few.stderr
    assert len(questions(export(config, "--as", "gate", "--quantity", "faithfulness"))) == 3
    assert export(config, "--as", "gate", "--quantity", "contradiction").return_value == 3
    nothing = export(config, "--as", "gate", "--since", "1d")
    assert (nothing.return_value, nothing.stdout) == (3, "")
    assert "nothing was written" in nothing.stderr


def test_people_decide(tmp_path: Path, store: SqliteStore) -> None:
    """What people have labelled as right does not fail, unless the label is taken back or left out."""
    right = {F: 1.0, R: 1.0}
    names = {"a": "ann", "b": "ann", "c": "ben"}
    store.add_labels([Label(a_draw(name).key, by, 1.0, right) for name, by in names.items()])
    store.add_labels([Label(a_draw("d").key, "ann", 1.0, {F: 1.0})])  # half a label
    result = export(a_config(tmp_path, labels={"leave_out": ["ben"]}), "--as", "gate")
    assert questions(result) == ["Why?", "what do cats  do?"]
    assert "left out: 2 answers labelled by people as right" in result.stderr
    by_score = export(a_config(tmp_path), "--as", "gate", "--quantity", "faithfulness")
    assert by_score.return_value == 3
    assert "left out: 4 answers labelled by people as right" in by_score.stderr


@pytest.mark.usefixtures("store")
def test_files_are_new_and_private(tmp_path: Path) -> None:
    """A file is never overwritten, only its owner reads it, and a directory that is missing is named."""
    config, out = a_config(tmp_path), tmp_path / "set.jsonl"
    assert export(config, "--as", "gate", "--out", str(out)).return_value == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    again = export(config, "--as", "gate", "--out", str(out))
    assert "already exists and is not overwritten" in str(again.exception)
    assert "cannot be written" in str(export(config, "--as", "gate", "--out", str(tmp_path / "no" / "f")).exception)
    gated = command("gate", out, "--config", config, "--json")
    assert json.loads(gated.stdout)["judged"] == 3


@pytest.mark.usefixtures("store")
def test_what_makes_no_sense_is_named(tmp_path: Path) -> None:
    """As a usage error that names the option; without texts there is no set."""
    config = a_config(tmp_path)
    for arguments, message in (
        (["--as", "gate", "--route", "gone"], "--route gone: is not configured; use one of: search, chat, other"),
        (["--as", "gate", "--judge", "gone"], "--judge gone: is not configured; use one of: embedded"),
        (["--as", "gate", "--quantity", "gone"], "--quantity gone: is not a quantity"),
        (["--as", "gate", "--quantity", "context_use"], "--quantity context_use: has no threshold"),
        (["--as", "gate", "--since", "soon"], "--since soon"),
        (["--as", "gate", "--parquet", "files"], "--parquet: writes all verdicts"),
        ([], "--as: is missing; --failing needs it"),
    ):
        assert message in refused(export(config, *arguments))
    alone = command("export", "--config", "x", "--as", "gate")
    assert "--failing: is missing; --as needs it" in str(alone.exception)
    none = export(a_config(tmp_path, store={"kind": "sqlite", "texts": "none"}), "--as", "gate")
    assert "store.texts: is none" in str(none.exception)


def test_answers_without_text_are_counted(tmp_path: Path, store: SqliteStore) -> None:
    """No question was logged, texts are not kept, or the canonical format cannot read them: they are left out."""
    draws = [a_draw("n", at=AT + 50, question=None)]
    store.admit(an_admission(*draws, cursor="2"))
    store.settle([a_verdict(draw, BAD) for draw in draws])
    result = export(a_config(tmp_path), "--as", "gate")
    assert len(questions(result)) == 3
    assert "left out: 1 answers without stored texts" in result.stderr
    kept = a_config(tmp_path, store={"kind": "sqlite", "texts": "failing"}, thresholds={"context_use": 1.0})
    unkept = export(kept, "--as", "gate", "--quantity", "context_use")
    assert "answers without stored texts" in unkept.stderr
    verdict = a_record(a_verdict(a_draw(), BAD))
    for parts in ({"question": "Why?", "answer": 3}, {"question": None, "answer": "so"}):
        assert _sample(StoredVerdict(verdict, {}, {"contexts": [], **parts}), "all", Redactor()) is None


def test_a_route_may_have_no_threshold(tmp_path: Path, store: SqliteStore) -> None:
    """An answer fails by the threshold of its own route; a high score fails where low is good."""
    draw = a_draw("x", at=AT + 90, question="So?", contexts=CONTEXTS)
    store.admit(an_admission(draw, cursor="2"))
    store.settle([a_verdict(draw, an_evidence(a_claim((0, 0), "contradicted")))])
    own = {"faithfulness": 0.9, "contradiction": 0.1, "routes": {"search": {"faithfulness": None}}}
    config = a_config(tmp_path, thresholds=own)
    assert questions(export(config, "--as", "gate", "--quantity", "faithfulness")) == ["Why?"]
    assert questions(export(config, "--as", "gate", "--quantity", "contradiction")) == ["So?"]


@pytest.mark.usefixtures("store")
def test_a_suite(tmp_path: Path) -> None:
    """Contexts that the judge found relevant are expected; a follow-up question is left out; the suite is read."""
    out = tmp_path / "suite.yaml"
    result = export(a_config(tmp_path), "--as", "canaries", "--out", str(out))
    assert result.return_value == 0, result.exception
    assert "left out: 1 answers need their conversation" in result.stderr
    canaries = read_suite(out)
    assert [canary.query for canary in canaries] == ["Do dogs bark?", "what do cats do?"]
    assert [canary.expected for canary in canaries] == [(Expected("d1"),), (Expected("d1"),)]
    assert "# stage at fault generation, by embedded, 2023-11-14" in out.read_text()


def test_people_say_what_is_relevant(tmp_path: Path) -> None:
    """Relevance judgements come before the judge, with grades; none relevant is a negative canary."""
    judged = (RelevantContext("d9", None, 2), RelevantContext(None, "Cats purr.", 1))
    answers = [
        an_answer("graded", relevant=judged, reference="They purr."),
        an_answer("none", relevant=()),
        an_answer("hidden", relevant=(RelevantContext(None, "Ask [EMAIL:0a1b2c]."),)),
        an_answer("secret [EMAIL:0a1b2c]"),
        an_answer("text", contexts=(Context("Cats purr."), Context("Dogs bark."))),
    ]
    suite = regression_set("canaries", answers)
    (tmp_path / "suite.yaml").write_text(suite.text)
    graded, none, text = read_suite(tmp_path / "suite.yaml")
    assert graded.expected == (Expected("d9", None, Grade.HIGHLY_RELEVANT), Expected(None, "Cats purr."))
    assert graded.reference == "They purr."
    assert (none.category, none.expected) == (Category.NEGATIVE, ())
    assert text.expected == (Expected(None, "Cats purr."),)
    assert suite.left_out == {"redacted questions": 1, "without a context that is known as relevant": 1}
    assert regression_set("canaries", []).text == ""


def an_answer(question: str, **parts: Any) -> FailingAnswer:
    """A failing answer whose first context the judge found relevant."""
    draw = a_draw("r1", question=question, **{"contexts": CONTEXTS, **parts})
    return FailingAnswer(a_record(a_verdict(draw, BAD)), draw.sample)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30).filter(
    lambda text: bool(text.strip())
)
UNSET: Any = dict.fromkeys(("score", "step", "updated_at"), st.none())
SAMPLES = st.builds(
    Sample,
    id=TEXTS,
    question=TEXTS,
    contexts=st.lists(st.builds(Context, TEXTS.map("It says {}".format), TEXTS, **UNSET), max_size=3).map(tuple),
    answer=TEXTS,
    route=st.sampled_from(["", "search"]),
    reference=st.none() | TEXTS,
    at=st.none(),
    metadata=st.just(NO_METADATA),
    history=st.just(()),
    relevant=st.none(),
)


@given(sample=SAMPLES, kind=st.sampled_from(sorted(ROWS)))
@settings(max_examples=draws(30))
def test_what_is_written_is_read_back(sample: Sample, kind: str) -> None:
    """By the format of that name, and by `auto`: question, texts and ids of contexts, answer, reference, route."""
    answer = FailingAnswer(a_record(), sample)
    text = regression_set(kind, [answer]).text
    for name in ("canonical" if kind == "gate" else kind, "auto"):
        read = formats.build(name).read(parse(text.encode())[0], "log:1")
        ids = kind != "deepeval"
        contexts = tuple(context if ids else context._replace(id=None) for context in sample.contexts)
        assert read == sample._replace(contexts=contexts)


def test_a_conversation_is_read_back() -> None:
    """RAGAS and the canonical format hold it; DeepEval's test cases do not, and such answers are counted."""
    turns = (Turn(Role.USER, "Do cats purr?"), Turn(Role.ASSISTANT, "They do."))
    answer = an_answer("Why?", history=turns)
    for kind, name in (("ragas", "ragas"), ("gate", "canonical")):
        read = formats.build(name).read(parse(regression_set(kind, [answer]).text.encode())[0], "log:1")
        assert (read.question, read.history) == ("Why?", turns)
    assert regression_set("deepeval", [answer]) == ("", 0, {"need their conversation": 1})
