"""Labels of sentences of real answers: a place, a hash and a kind, without the text."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import kinds_labels
import pytest


def test_a_label_has_no_text_and_each_sentence_has_one() -> None:
    """A line says where a sentence is, and none is labelled twice."""
    with kinds_labels.LABELS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    for name, row, offset, length, digest, kind in rows:
        assert (name in kinds_labels.SETS, kind in kinds_labels.KINDS) == (True, True), row
        assert re.fullmatch(r"[\w.:#-]{1,100} \d+ [1-9]\d* [0-9a-f]{12}", f"{row} {offset} {length} {digest}"), row
    assert len({row[4] for row in rows}) == len(rows) >= 3000


def test_another_text_than_the_labelled_one_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A label holds for the text that was read."""
    answer = "Sure! Tea is green."
    monkeypatch.setattr(kinds_labels, "DATA", tmp_path)
    monkeypatch.setattr(kinds_labels, "LABELS", tmp_path / "labels.csv")
    monkeypatch.setattr(kinds_labels, "SETS", {"tea": (9, 0, 0)})
    for text, is_same in ((answer, True), (answer.replace("green", "black"), False)):
        kinds_labels.answers.cache_clear()
        row = {"id": "one", "answer": text, "label": {}, "meta": {}}
        (tmp_path / "tea.jsonl").write_text(json.dumps(row), encoding="utf-8")
        if is_same:
            sample = sorted(kinds_labels.sample())
            kinds_labels.write(sample, ["courtesy", "claim"])
            assert [(one.text, kind) for one, kind in kinds_labels.labelled()] == [
                ("Sure!", "courtesy"),
                ("Tea is green.", "claim"),
            ]
            assert "green" not in kinds_labels.LABELS.read_text(encoding="utf-8")
        else:
            with pytest.raises(SystemExit):
                list(kinds_labels.labelled())
    kinds_labels.answers.cache_clear()
