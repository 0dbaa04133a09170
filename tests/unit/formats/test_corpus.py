"""`resolve`: contexts that are logged as ids get their texts from a corpus; without it such answers are no samples."""

import csv
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragwatch.errors import ConfigError, FormatError, SourceError
from ragwatch.formats.log_reader import LogReader, RecordRules

TEXTS = {
    "k1": "The kettle warranty lasts two years.",
    "k2": 'Claims need the "receipt",\nor a copy of it.',
    "7": "Seven.",
}
RECORD = {"question": "How long?", "contexts": ["k1", "k2", 7], "answer": "Two years."}


def corpus(folder: Path, kind: str, key: str = "id", text: str = "text") -> dict[str, str]:
    """A corpus of a kind, and the option that names it."""
    path = folder / f"corpus.{kind}"
    rows = [{key: name, text: words} for name, words in TEXTS.items()]
    option = {"file": str(path)} | ({} if (key, text) == ("id", "text") else {"id": key, "text": text})
    if kind == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif kind == "json":
        path.write_text(json.dumps(rows, indent=1))
    elif kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, (key, text))
            writer.writeheader()
            writer.writerows(rows)
    else:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f'CREATE TABLE "the chunks" ("{key}" TEXT, "{text}" TEXT)')
            database.executemany('INSERT INTO "the chunks" VALUES (?, ?)', TEXTS.items())
        option["table"] = "the chunks"
    return option


def texts(sample: Any) -> list[str]:
    """The texts of a sample's contexts."""
    return [context.text for context in sample.contexts]


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "db"])
@pytest.mark.parametrize("names", [("id", "text"), ("chunk id", "body")])
def test_texts_take_the_place_of_ids(tmp_path: Path, kind: str, names: tuple[str, str]) -> None:
    """Of every kind of file, with fields of any name; a context that has a text keeps it, and scores stay."""
    reader = LogReader(RecordRules(resolve=corpus(tmp_path, kind, *names)))
    sample = reader.read(RECORD, "1")
    assert texts(sample) == list(TEXTS.values())
    assert [context.id for context in sample.contexts] == ["k1", "k2", "7"]
    mixed = [{"doc_id": "k1", "score": 0.5}, {"id": "k9", "text": "Its own text."}]
    sample = reader.read({**RECORD, "contexts": mixed}, "1")
    assert [tuple(context[:3]) for context in sample.contexts] == [
        (TEXTS["k1"], "k1", 0.5),
        ("Its own text.", "k9", None),
    ]


def test_a_mapping_gives_the_ids(tmp_path: Path) -> None:
    """As it does in the lenient reading of intake."""
    mapping = {"answer": "reply", "contexts": "hits[].chunk"}
    reader = LogReader(RecordRules("custom", mapping, resolve=corpus(tmp_path, "csv")))
    record = {"reply": "Two years.", "hits": [{"chunk": "k1"}]}
    assert texts(reader.read(record, "1")) == texts(reader.read_without_wrong_fields(record, "1")[0]) == [TEXTS["k1"]]


@pytest.mark.parametrize("kind", ["jsonl", "db"])
def test_an_id_that_the_corpus_lacks(tmp_path: Path, kind: str) -> None:
    """The answer is refused: it would be judged by the others alone. A corpus that has it later is read again."""
    option = corpus(tmp_path, kind)
    reader = LogReader(RecordRules(resolve=option))
    record = {**RECORD, "contexts": ["k1", "new"]}
    with pytest.raises(FormatError, match=r"1 of 2 ids are not in .*'new'") as raised:
        reader.read(record, "1")
    assert raised.value.reason == "context_ids"
    later = {**TEXTS, "new": "A new text."}
    if kind == "jsonl":
        path = Path(option["file"])
        path.write_text("".join(f"{json.dumps({'id': name, 'text': text})}\n" for name, text in later.items()))
        os.utime(path, (2e9, 2e9))
    else:
        with closing(sqlite3.connect(option["file"])) as database, database:
            database.execute('INSERT INTO "the chunks" VALUES (?, ?)', ("new", "A new text."))
    assert texts(reader.read(record, "1")) == [TEXTS["k1"], "A new text."]


@pytest.mark.parametrize("contexts", [["doc-17#3", "6f1c2b"], ["kb/faq.md"], [{"text": "chunk_12", "score": 0.5}]])
def test_ids_without_a_corpus_are_no_contexts(contexts: list[Any]) -> None:
    """The answer is refused with the option to set, and never judged by ids."""
    with pytest.raises(FormatError, match="set `resolve`") as raised:
        LogReader(RecordRules()).read({**RECORD, "contexts": contexts}, "1")
    assert (raised.value.reason, raised.value.field) == ("context_ids", "contexts")


@pytest.mark.parametrize("contexts", [["Yes."], ["doc-17#3", "The door is green."], ["because"], ["春天"], [""], []])
def test_short_texts_are_contexts(contexts: list[str]) -> None:
    """One word, or an id beside a text."""
    assert len(LogReader(RecordRules()).read({**RECORD, "contexts": contexts}, "1").contexts) == len(contexts)


def test_a_corpus_that_cannot_be_read(tmp_path: Path) -> None:
    """A wrong option stops the start; a file that breaks later stops the reading, and loses nothing."""
    option = corpus(tmp_path, "db")
    for wrong, message in (
        ({"file": str(tmp_path / "none")}, "resolve.file: .* is no file"),
        ({"file": option["file"]}, "resolve.table: is missing"),
        ({**corpus(tmp_path, "csv"), "table": "t"}, "resolve.table: is for SQLite"),
        ({**option, "column": "x"}, "resolve.column: unknown"),
    ):
        with pytest.raises(ConfigError, match=message):
            LogReader(RecordRules(resolve=wrong))
    with pytest.raises(SourceError, match="no such table"):
        LogReader(RecordRules(resolve={**option, "table": "others"})).read(RECORD, "1")
