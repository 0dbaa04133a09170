"""`ragwatch judge`: one verdict line per sample, in the shape of the contract; other rows are rejected; criteria."""

import asyncio
import gzip
import io
import json
import os
import pty
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import Result
from loopback.fixture import KEY, LoopbackProcess, loopback, loopback_process  # noqa: F401 - fixtures
from support.callers import canned
from support.command_line import command, configured, jsonl, log_of, refused
from support.kit import ScriptedJudge
from support.labelled import World
from support.patience import DEADLINE

from ragwatch.model.quantities import quantity_of
from ragwatch.offline.judge import SampleFiles, read_all
from ragwatch.stores.sqlite.store import SqliteStore

ROW = {
    "id": "r1",
    "question": "Where is the mill?",
    "contexts": ["The old mill stands by the river.", "Cats purr."],
    "answer": "The old mill stands by the river.",
    "label": {"faithful": True},
}
SHARED = Path(__file__).parents[4] / "shared" / "data" / "judge" / "dev"
TORN = '{"torn'
RENAMED = {("query" if key == "question" else key): value for key, value in ROW.items()}
BARE = {key: value for key, value in ROW.items() if key != "contexts"}
THREE = jsonl(*({**ROW, "id": f"r{number}"} for number in range(3))).encode()
MUSEUM = "The museum opens at nine in the morning and closes at six in the evening."
CRITERIA = [
    {"name": "polite", "question": "Is the tone polite?"},
    {"name": "names_price", "question": "Is a price named?"},
]
POLITE = quantity_of("polite")


def _judge(text: str, *arguments: str) -> Result:
    return command("judge", *arguments, said=text)


def test_a_verdict_line_has_the_shape_of_the_contract() -> None:
    """Every key of the contract is there, offsets point into the answer, and what is unread is null."""
    result = _judge(json.dumps(ROW) + "\n")
    assert result.return_value == 0
    (line,) = (json.loads(each) for each in result.stdout.splitlines())
    assert set(line) >= {
        *("id", "outcome", "reason", "scores", "stage", "fault", "claims", "contexts", "missing", "judge")
    }
    assert (line["id"], line["outcome"], line["reason"]) == ("r1", "judged", None)
    assert line["scores"].items() >= {"faithfulness": 1.0, "contradiction": None, "need_recall": None}.items()
    (claim,) = line["claims"]
    assert ROW["answer"][claim["start"] : claim["end"]] == claim["text"]  # type: ignore[index]
    assert claim["contexts"] == [0]
    assert [each["used"] for each in line["contexts"]] == [True, False]
    assert line["judge"]["kind"] == "lexical"
    assert "1 samples" in result.stderr


def test_rows_are_read_as_the_configuration_says(tmp_path: Path) -> None:
    """Texts of contexts by id, as the daemon reads them; a wrong score beside relevance judgements costs itself."""
    corpus, config, log = tmp_path / "corpus.jsonl", tmp_path / "ragwatch.yaml", tmp_path / "log.jsonl"
    corpus.write_text(json.dumps({"id": "d1", "text": ROW["contexts"][0]}) + "\n")  # type: ignore[index]
    resolve = {"file": str(corpus), "id": "id", "text": "text"}
    source = {"kind": "tail", "name": "app", "path": str(log), "resolve": resolve}
    config.write_text(json.dumps({"state": str(tmp_path / "state"), "sources": [source]}))
    judged = {**ROW, "contexts": [{"id": "d1", "score": "high"}], "relevant_ids": ["d1"]}
    log.write_text(json.dumps(judged) + "\n")
    result = command("judge", "--config", config, log)
    assert result.return_value == 0, result.output
    (line,) = map(json.loads, result.stdout.splitlines())
    assert line["scores"]["faithfulness"] == 1.0
    assert line["ranking"]["recall@1"] == 1.0
    assert "fields left out: score 1" in result.stderr


@pytest.mark.parametrize(
    ("content", "ids", "errors"),
    [
        (jsonl(ROW, TORN, "", {**ROW, "contexts": [{"id": "x"}]}), ["r1"], [":2: torn_json", ":4: missing_field"]),
        (jsonl(f"[{TORN}", ROW), ["r1"], [":1: torn_json"]),
        (json.dumps([ROW, 7, {**ROW, "id": 2}]), ["r1", "2"], [":2: not_an_object"]),
        (json.dumps([ROW, 7, {**ROW, "id": 2}], indent=1), ["r1", "2"], [":2: not_an_object"]),
        (json.dumps(ROW, indent=2), ["r1"], []),
        (jsonl(ROW, {"feedback_for": "r1", "thumbs": "up"}), ["r1"], []),
        # A row whose question has another name is not judged without it.
        (jsonl(RENAMED), [], [":1: "]),
        (
            b'{"a": 1}\nno JSON\n',
            [],
            ["none of the records is a sample; `ragwatch init --print", "unknown_format", "torn"],
        ),
        (gzip.compress(THREE), ["r0", "r1", "r2"], []),
        (gzip.compress(THREE)[:-9], None, ["binary: the gzip file is truncated or corrupt"]),
        # Labelled sets name their contexts by key, in a file beside them.
        (jsonl(*[{**BARE, "docs": "docs.json", "context_refs": ["k1"]}] * 2), ["r1", "r1"], []),
        (jsonl({**BARE, "docs": "docs.json", "context_refs": ["k2"]}), [], ["context_refs: 'k2' is not in docs.json"]),
        (jsonl({**BARE, "docs": "no.json", "context_refs": []}), [], ["docs: no.json cannot be read"]),
        *(
            (jsonl({**BARE, "docs": f"{docs}.json", "context_refs": references}), [], [":1: wrong_type"])
            for docs, references in (("docs", [["k1"]]), ("docs", [1]), ("seven", ["k1"]), ("list", [0]))
        ),
        (jsonl({**BARE, "context_refs": ["k1"]}), [], [":1: missing_field: docs: is missing"]),
        (jsonl({**ROW, "docs": "no.json", "context_refs": ["k1"]}), ["r1"], []),
    ],
)
def test_rows_are_judged_or_named(
    tmp_path: Path, content: str | bytes, ids: list[str] | None, errors: list[str]
) -> None:
    """Lines, an array, one object, packed: what is no sample is named by file, place, reason and field: exit code 1."""
    for name, texts in {"docs": {"k1": ROW["contexts"][0]}, "seven": 7, "list": [0]}.items():  # type: ignore[index]
        (tmp_path / f"{name}.json").write_text(json.dumps(texts))
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = _judge("", str(path))
    assert [error for error in errors if error not in result.stderr] == []
    assert result.return_value == (1 if errors else 0)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert ids is None or [line["id"] for line in lines] == ids
    assert all(line["scores"]["faithfulness"] == 1.0 for line in lines)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_no_record_is_not_enough_data(content: str) -> None:
    """Exit code 3, and no table of quantities without a figure."""
    result = _judge(content)
    assert result.return_value == 3
    assert result.stderr == "there is no record to judge\n"


def test_x2_an_empty_answer_is_unjudged_with_a_reason() -> None:
    """No claim is no score: the outcome is `unjudged`, the scores are null."""
    line = json.loads(_judge(json.dumps({**ROW, "answer": "  "})).stdout)
    assert (line["outcome"], line["reason"]) == ("unjudged", "empty_answer")
    assert set(line["scores"].values()) == {None}


@pytest.mark.slow
def test_the_labelled_set_of_the_acceptance_list(tmp_path: Path) -> None:
    """All 500 rows of AttributionBench's test file become verdict lines, in their order."""
    path = SHARED / "attributionbench" / "test_id500.jsonl"
    if not path.exists():
        pytest.skip("needs ../shared/data/judge/dev/attributionbench/test_id500.jsonl")
    rows = [row for row in path.read_text(encoding="utf-8").split("\n") if row]
    done = command("judge", log_of(tmp_path / "rows.jsonl", *rows))
    verdicts = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert (done.return_value, verdicts) == (0, [json.loads(row)["id"] for row in rows])
    assert len(rows) == 500


def test_a_row_without_a_question_is_judged() -> None:
    """What follows from the question is unknown, and an unknown stage is not called `none`."""
    bare = {key: value for key, value in ROW.items() if key != "question"}
    result = _judge(jsonl(bare, {**bare, "id": "r2"}))
    assert result.return_value == 0
    lines = [json.loads(each) for each in result.stdout.splitlines()]
    assert [line["scores"]["faithfulness"] for line in lines] == [1.0, 1.0]
    assert [line["scores"]["answer_relevancy"] for line in lines] == [None, None]
    assert "stage: unknown 1" in _judge(jsonl({**ROW, "question": None, "answer": "I do not know."})).stderr


@pytest.mark.costly
@pytest.mark.parametrize("message", ["to a file", "to the terminal"])
def test_verdicts_go_to_stdout_whole_while_somebody_looks_on(tmp_path: Path, message: str) -> None:
    """With a terminal on stderr a bar is drawn; it neither takes the verdict lines away nor folds them."""
    path, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps({**ROW, "id": f"r{number}"}) + "\n" for number in range(12)))
    ours, theirs = pty.openpty()
    with out.open("wb") as file:
        command = [sys.executable, "-m", "ragwatch", "judge", str(path)]
        process = subprocess.Popen(command, stdout=file if message == "to a file" else theirs, stderr=theirs)
    os.close(theirs)
    shown = b"".join(iter(partial(_rest, ours), b""))
    os.close(ours)
    assert process.wait(DEADLINE) == 0
    lines = out.read_bytes() if message == "to a file" else shown.replace(b"\r\n", b"\n")
    ids = [json.loads(line)["id"] for line in lines.splitlines() if line.startswith(b"{")]
    assert ids == [f"r{number}" for number in range(12)]
    assert b"12 samples" in shown


def _rest(terminal: int) -> bytes:
    """What has been written to a terminal; nothing once everybody has let go of it."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so instead of "end of file"
        return b""


async def test_a_slow_answer_does_not_hold_up_the_others() -> None:
    """While the first of 50 answers is read, all others are, four at a time; verdicts still come in their order.

    A judge that makes four calls at a time is given a fifth answer, so that a free call slot is taken at once.
    """
    others_done, four_read = asyncio.Event(), asyncio.Event()
    done = reading = 0

    async def read_first() -> None:
        await others_done.wait()

    async def read_other() -> None:
        nonlocal done, reading
        reading += 1
        if reading == 4:
            four_read.set()
        await four_read.wait()
        done += 1
        if done == 49:
            others_done.set()

    script = {f"r{number}": read_other for number in range(1, 50)} | {"r0": read_first}
    rows = b"".join(json.dumps({**ROW, "id": f"r{number}"}).encode() + b"\n" for number in range(50))
    shown: list[str] = []
    async with asyncio.timeout(DEADLINE):
        judge = ScriptedJudge(script, concurrency=4)
        files = SampleFiles()
        samples = files.of_streams([io.BytesIO(rows)])
        await read_all(files, samples, judge, lambda verdict: shown.append(verdict.draw.sample.id))
    assert shown == [f"r{number}" for number in range(50)]


@pytest.mark.costly
def test_a_setting_that_the_model_rejects_ends_the_command_and_uses_up_no_answer(loopback: LoopbackProcess) -> None:  # noqa: F811
    """The message names the option; no verdict is printed, and no call is made beyond those under way."""
    settings = {"base_url": loopback.address, "api_key": KEY, "model": "claude-opus-5-5", "thinking": "disabled"}
    given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    rows = "".join(json.dumps({**ROW, "id": f"r{number}"}) + "\n" for number in range(60))
    result = _judge(rows, "--judge", "claude", *given)
    assert "set judges.claude.thinking: null" in refused(result)
    assert result.stdout == ""
    assert len(loopback.requests()) <= 16


def stages_of(rows: list[dict[str, object]]) -> tuple[str, dict[str, int]]:
    """What the summary of `judge` and the line of `gate` count these rows as."""
    text = jsonl(*rows)
    shown = command("judge", said=text).stderr
    line = json.loads(command("gate", "--json", said=text).stdout)
    return next(part for part in shown.splitlines() if part.startswith("stage: ")), line["stages"]


def test_answers_that_ignore_the_first_passage_are_counted_apart() -> None:
    """Each with a fault: they are not "none"."""
    row = {"question": "When does the museum open?", "answer": "The museum opens at nine in the morning."}
    beside = [row | {"id": f"a{n}", "contexts": ["Parcels arrive within three days.", MUSEUM]} for n in range(4)]
    same = [row | {"id": f"b{n}", "contexts": ["The museum opens at nine.", MUSEUM]} for n in range(4)]
    shown, counts = stages_of([*beside, *(one | {"answer": MUSEUM} for one in same)])
    assert (shown, counts) == ("stage: ignored 8", {"ignored": 8})


def test_abstentions_on_questions_without_an_answer_are_a_knowledge_gap() -> None:
    """They are no fault of retrieval; where an answer is known to exist, retrieval missed it."""
    row: dict[str, object] = {
        "question": "Who won the chess game of 1987?",
        "contexts": [MUSEUM],
        "answer": "I don't know. The documents do not contain that.",
    }
    rows = [row | {"id": str(number)} for number in range(4)]
    assert stages_of(rows) == ("stage: knowledge_gap 4", {"knowledge_gap": 4})
    unknown = [one | {"reference": "The documents do not say.", "relevant_ids": []} for one in rows]
    assert stages_of(unknown)[1] == {"knowledge_gap": 4}
    for known in ({"reference": "Ada Berg won the game."}, {"relevant_texts": ["Ada Berg won the game."]}):
        assert stages_of([one | known for one in rows])[1] == {"retrieval": 4}


def chat(answer: str) -> dict[str, Any]:
    """A reply of a chat endpoint that answers the first criterion, and says that the other one does not apply."""
    reply = {"polite": {"quote": answer, "answer": "yes"}, "names_price": {"quote": "", "answer": "does_not_apply"}}
    message = {"role": "assistant", "content": json.dumps({"criteria": reply})}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def test_verdict_lines_and_the_gate(tmp_path: Path) -> None:
    """A line has score, answer and quote; the summary and the gate have the mean; the page holds no criterion."""
    with canned((200, {}, chat("Gladly!"))) as (address, sent):
        judge = {"name": "llm", "kind": "openai", "model": "m", "base_url": f"{address}/v1"}
        judge |= {"prices": {"input": 0, "output": 0}}
        gate = {"metrics": {"polite": 0.9}, "minimum_samples": 1}
        config = configured(tmp_path, criteria=CRITERIA, judges=[judge], gate=gate)
        rows = log_of(tmp_path / "rows.jsonl", {"question": None, "contexts": [], "answer": "Gladly!"})
        judged = command("judge", rows, "--config", config)
        line = json.loads(judged.stdout)
        assert (line["scores"]["polite"], line["scores"]["names_price"]) == (1.0, None)
        assert line["criteria"] == [
            {"name": "polite", "answer": "yes", "quote": "Gladly!"},
            {"name": "names_price", "answer": "does_not_apply", "quote": None},
        ]
        assert "-criteria-" in line["judge"]["version"]
        assert "polite" in judged.stderr
        gated = json.loads(command("gate", rows, "--config", config, "--json").stdout)
        (metric,) = [metric for metric in gated["metrics"] if metric["metric"] == "polite"]
        assert (metric["value"], metric["pass"]) == (1.0, True)
        system, page = (message["content"] for message in sent[0]["messages"])
        assert "`polite`: Is the tone polite?" in system
        assert "polite" not in page


def test_people_answer_criteria(tmp_path: Path) -> None:
    """Each criterion is asked by its question; yes is 1, no is 0, - says nothing."""
    store = SqliteStore(tmp_path / "state")
    World(store, Random(1), requests=60, begin=time.time() - 1800.0)
    store.close()
    config = configured(tmp_path, criteria=CRITERIA)
    said = "s\ns\ns\ns\nf\ny\nn\n-\n\n"
    result = command("label", "--config", config, "--annotator", "ann", "--count", 1, said=said)
    assert result.exit_code == 0, result.output
    assert "Is the tone polite? [y/n/-]" in result.output
    store = SqliteStore(tmp_path / "state")
    (label,) = store.labels(0.0)
    store.close()
    assert label.scores[POLITE] == 0.0
    assert "names_price" not in label.scores
