"""docs/logs.md: every line of its table of `records` gives as many answers as it says, and its lines of Python work."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from ragwatch.formats.log_reader import LogReader
from ragwatch.formats.selection import expanded
from ragwatch.sources.tail.options import Options

TEXT = (Path(__file__).parents[3] / "docs" / "logs.md").read_text(encoding="utf-8")
ROWS = re.findall(r"(?m)^\| `([{\[].*)`(?: \([^|]*\))? \| `(\{.*\})` \| (\d+) \|$", TEXT)
ANSWERS = [
    {"question": f"q{n}", "contexts": json.dumps([f"Text {n}, with a comma."]), "answer": f"a{n}"} for n in range(3)
]


def test_the_table_was_read() -> None:
    """A change of its form must not leave it untested."""
    assert len(ROWS) == 8


@pytest.mark.parametrize(("line", "keys", "number"), ROWS)
def test_every_line_gives_its_answers(line: str, keys: str, number: str) -> None:
    """With the keys beside it."""
    options = Options.model_validate({"name": "app", "path": "/log", **yaml.safe_load(keys.replace(r"\|", "|"))})
    reader = LogReader(options.rules)
    found = [record for _, record in expanded([(1, line.encode())], reader.expand)]
    samples = [reader.read(reader.parse(record)[0], "1") for record in found]  # type: ignore[arg-type,index]
    assert [sample.answer for sample in samples] == ["a", "b"][: int(number)]
    assert [context.text for context in samples[0].contexts] == ["A text."]


def test_csv_and_sqlite(tmp_path: Path) -> None:
    """The lines make logs of them that can be read."""
    with (tmp_path / "log.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ("question", "contexts", "answer"))
        writer.writeheader()
        writer.writerows(ANSWERS)
    with closing(sqlite3.connect(tmp_path / "app.db")) as database, database:
        database.execute("CREATE TABLE answers (question TEXT, contexts TEXT, answer TEXT)")
        database.executemany("INSERT INTO answers VALUES (:question, :contexts, :answer)", ANSWERS)
    lines = re.findall(r"(?m)^    (python3 -c .*)$", TEXT)
    assert len(lines) == 2
    for line in lines:
        subprocess.run(["sh", "-c", line], check=True, cwd=tmp_path)
        reader = LogReader(Options(name="app", path="/log").rules)
        samples = [reader.read(json.loads(row), "1") for row in (tmp_path / "log.jsonl").read_text().splitlines()]
        assert [sample.answer for sample in samples] == ["a0", "a1", "a2"]
        assert [context.text for context in samples[1].contexts] == ["Text 1, with a comma."]
