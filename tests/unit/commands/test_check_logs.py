"""`ragwatch check` of a log: what is read, what is read wrongly, and what to change; the first samples are shown."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.command_line import command, configured, findings, log_of

from ragwatch.commands.check_records import check_records
from ragwatch.commands.check_settings import FAILED, OK, SUSPECT, WARNING, Finding
from ragwatch.config.model import Settings
from ragwatch.ports import Batch

GOOD = {"question": "Where?", "contexts": ["By the river."], "answer": "By the river."}
FEEDBACK = {"feedback_for": "r1", "thumbs": "up"}
HEALTH = {"level": "info", "msg": "GET /healthz 200"}
PASSAGE = "The old mill stands by the river. Its wheel was built by monks."
QUESTION = "Where does the old mill stand?"
GERMAN = {**GOOD, "answer": "Die Erstattung dauert fünf Tage, und der Versand ist kostenlos."}
ASKED_IN_GERMAN = {"question": "Wie lange dauert die Erstattung?", "contexts": [GERMAN["answer"]]}
MAPPING = {"question": "q", "contexts": "docs", "answer": "a", "at": "tiemstamp", "route": "path"}


def row(context: str, **more: object) -> dict[str, object]:
    """A record with one context."""
    return {"question": QUESTION, "contexts": [context], "answer": "By the river.", **more}


ROUTED = [row(PASSAGE, route="/search"), row(PASSAGE, route="/chat")]
MAPPED = [
    {"q": f"{QUESTION} {n}", "docs": [f"{PASSAGE} {n}"], "a": f"River {n}.", "timestamp": 1_780_000_000 + n}
    for n in range(3)
]
PROMPTS = (
    f"You are a helpful assistant. Answer the question.\n\n{PASSAGE}",
    f"System: use only the following context.\n{PASSAGE}",
    f"{PASSAGE}\n\nQuestion: {QUESTION}",
)


def of_log(folder: Path, *rows: object, sections: dict[str, Any] | None = None, **source: Any) -> Finding:
    """What is said of a log of these records."""
    log_of(folder / "rag.jsonl", *rows)
    tail = {"kind": "tail", "name": "app", "path": str(folder / "rag.jsonl"), "start": "beginning", **source}
    return findings(folder, sources=[tail], **(sections or {}))["sources[0]"]


@pytest.mark.parametrize(
    ("rows", "keys", "state", "says"),
    [
        ([GOOD, GOOD], {}, OK, r"^2 of 2 records of \S+ are samples$"),
        ([GOOD, GOOD | {"at": 1_700_000_000}, FEEDBACK], {}, OK, r"^2 of 2 records of \S+ are samples$"),
        ([HEALTH], {}, FAILED, "first error: "),
        ([GOOD, {"question": "x", "answer": "y"}], {}, WARNING, "missing_field"),
        ([{**GOOD, "contexts": []}], {}, FAILED, "none has a context with text"),
        ([], {"path": "/tmp/absent-*.jsonl"}, WARNING, "nothing to read yet: no file matches /tmp/absent-.*, or"),  # noqa: S108
        ([], {"path": "/nowhere/*.jsonl"}, FAILED, "^/nowhere: no such [^:]* in the configuration$"),
        # What a context must hold.
        ([row("doc-17#3"), row("6f1c2b")], {}, FAILED, "contexts: hold ids instead of texts"),
        ([row("Kettle manual.pdf"), row("Mill handbook.txt")], {}, SUSPECT, "contexts hold names of documents"),
        ([row("Yes."), row(PASSAGE)], {}, OK, "are samples$"),
        *(([row(prompt)] * 3, {}, SUSPECT, "looks like a whole prompt") for prompt in PROMPTS),
        ([*[row(PASSAGE)] * 3, row(f"{PASSAGE} Yes."), row(PROMPTS[0])], {}, OK, "are samples$"),
        # Routes.
        (ROUTED, {}, WARNING, "counted in route other; `routes`: list the logged ones: '/search', '/chat'"),
        (ROUTED, {"sections": {"routes": ["support"]}}, WARNING, "counted in route other; .* '/search', '/chat'"),
        (ROUTED, {"sections": {"routes": ["/search", "/v1/items/{id}"]}}, OK, "are samples$"),
        ([row(PASSAGE)], {"sections": {"routes": ["search"]}}, WARNING, "the records name none"),
        # Lines that are no records.
        ([f"2026-01-01 INFO {json.dumps(GOOD)}"] * 3, {}, FAILED, "set prefix: auto"),
        ([f"2026-01-01 INFO {json.dumps(GOOD)}"] * 3, {"skip_prefix": True}, OK, "^3 of 3 records"),
        ([*[GOOD] * 5, HEALTH, HEALTH], {"where": "answer"}, OK, "are samples; 2 lines are skipped .where 2.$"),
        ([GOOD] * 5, {"where": "anwser"}, FAILED, "no line is a record"),
        ([*[GOOD] * 90, *[HEALTH] * 7], {}, WARNING, r"7\.2% of the records are rejected, above alerts.rejects"),
        *(
            (rows, {"sections": {"alerts": {"rejects": share}}}, WARNING, r"^(?!.*alerts\.rejects)")
            for rows, share in (([*[GOOD] * 90, *[HEALTH] * 3], 0.05), ([*[GOOD] * 90, HEALTH], 0.5))
        ),
        # Fields and languages.
        ([row(PASSAGE, at=0)] * 2, {}, WARNING, r"2 values of the field at are left out \(implausible_time"),
        ([row(PASSAGE, refrence="It.")], {}, WARNING, "'refrence' is not read; did you mean 'reference'.$"),
        ([row(PASSAGE, reference="By it.", latency_ms=3)], {}, OK, "are samples$"),
        (
            [*MAPPED, {**MAPPED[0], "path": "search"}],
            {"format": "custom", "mapping": MAPPING, "sections": {"routes": ["search"]}},
            WARNING,
            "are samples; mapping.at: 'tiemstamp' is null in every record; did you mean 'timestamp'.$",
        ),
        ([GOOD, GERMAN, GERMAN], {}, WARNING, r"no measured accuracy \(und: 2;"),
        ([GOOD, GERMAN | ASKED_IN_GERMAN], {}, WARNING, r"read for changes alone \(de: 1\)"),
    ],
)
def test_what_is_said_of_a_log(tmp_path: Path, rows: list[object], keys: dict[str, Any], state: str, says: str) -> None:
    """Each with what to do about it; of a good log it is said that it is one, and nothing else."""
    found = of_log(tmp_path, *rows, **keys)
    assert found.state == state, found
    assert re.search(says, found.detail), found.detail


def test_files_and_lines_are_named(tmp_path: Path) -> None:
    """The first fault has its place; of files that cannot be read the first is named, and how many there are."""
    batch = Batch("s", "a.jsonl", [b"{"], [0], [7], "")
    assert "a.jsonl:7: torn_json" in check_records(object(), batch, Settings()).detail
    wide = Batch("s", "a.jsonl", ['{"a": 1}'.encode("utf-16")], [0], [1], "")
    said = check_records(object(), wide, Settings()).detail
    assert ("set encoding: utf-16" in said, "prefix: auto" in said) == (True, False)
    for name in (b"caf\xe9.jsonl", b"caf\xea.jsonl"):
        (tmp_path / os.fsdecode(name)).write_text("{}\n")
    found = of_log(tmp_path, GOOD, path=f"{tmp_path}/*.jsonl")
    assert found.state == WARNING
    assert r"caf\xe9.jsonl: its name is not UTF-8; rename it and 1 more" in found.detail


def test_an_array_is_named_with_what_to_write(tmp_path: Path) -> None:
    """An array that is not ended is neither no file nor an empty one."""
    for text, what in (
        (f"[{json.dumps(GOOD)},", "array.json is an incomplete JSON array"),
        ("{", "array.json has no complete line"),
        (f"{json.dumps([GOOD])}\n", "write one JSON object per line"),
    ):
        (tmp_path / "array.json").write_text(text)
        found = of_log(tmp_path, path=f"{tmp_path}/array.json")
        assert what in found.detail
        assert "no file matches" not in found.detail


def test_times_that_look_shifted_are_a_warning(tmp_path: Path) -> None:
    """In the future, or whole hours before the file was written; `timezone` mends that."""
    for hours in (2, -3):
        local = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S")
        shifted = of_log(tmp_path, row(PASSAGE, at=local))
        mended = of_log(tmp_path, row(PASSAGE, at=local), timezone=f"Etc/GMT{-hours:+d}")
        assert ["set timezone" in found.detail for found in (shifted, mended)] == [True, False]


def test_the_first_samples_are_shown_as_they_are_read(tmp_path: Path) -> None:
    """Three of them, each below its record; what is read wrongly has an exit code of its own."""
    source = {"kind": "tail", "name": "app", "path": str(tmp_path / "rag.jsonl")}
    config = configured(tmp_path, web={"listen": "127.0.0.1:0"}, sources=[source])
    log_of(tmp_path / "rag.jsonl", *(row(f"{PASSAGE} {n}.", id=f"r{n}") for n in range(5)))
    result = command("check", "--config", config)
    assert result.return_value == 0
    lines = result.stdout[result.stdout.index("the first samples") :].splitlines()
    assert [line.split(":")[0] for line in lines[1:5]] == ["record", "  question", "  contexts", "  answer"]
    assert lines[2] == f'  question: "{QUESTION}"'
    assert "id: r2" in result.stdout
    assert "id: r3" not in result.stdout
    log_of(tmp_path / "rag.jsonl", *[row(PROMPTS[0])] * 3)
    assert command("check", "--config", config).return_value == 3
