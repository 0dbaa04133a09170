"""Commands that read logs: lines with feedback on an answer are no answers, and no faults either."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from support.command_line import findings
from support.kit import a_line

from ragwatch.commands.finding import OK
from ragwatch.commands.map import print_source
from ragwatch.commands.samples import SampleFiles

FEEDBACK = json.dumps({"feedback_for": "r1", "thumbs": "up"}).encode()
LOG = b"\n".join([a_line("r1"), FEEDBACK, a_line("r2"), FEEDBACK])


def test_check_counts_answers(tmp_path: Path) -> None:
    """A log with feedback is as good as one without."""
    (tmp_path / "log.jsonl").write_bytes(LOG + b"\n")
    source = {"kind": "tail", "name": "app", "path": str(tmp_path / "log.jsonl"), "start": "beginning"}
    one = findings(tmp_path, routes=["search"], sources=[source])["sources[0]"]
    assert (one.state, one.detail.split(" are samples")[0][:6]) == (OK, "2 of 2")


def test_map_guesses_from_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """The proposal reads all records, of which feedback is none."""
    assert print_source([io.BytesIO(LOG)]) == 0
    shown = capsys.readouterr()
    assert ("reads 2 of 2 records" in shown.out, shown.err) == (True, "")


def test_files_have_only_answers() -> None:
    """`judge`, `gate` and `compare` read the answers alone."""
    files = SampleFiles()
    assert [sample.id for sample in files.samples("-", io.BytesIO(LOG))] == ["r1", "r2"]
    assert not files.rejected
