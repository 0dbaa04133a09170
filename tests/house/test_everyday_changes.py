"""What CONTRIBUTING.md says of everyday changes: this many places are written by hand, everything else follows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.changed_copy import changed_copy, run_python, run_ragwatch, scrape

pytestmark = pytest.mark.slow


def test_the_text_of_an_alert_stands_in_one_place(tmp_path: Path) -> None:
    """Rules in every format and docs/alerts.md are made of its row."""
    summary, meaning = "the disk is nearly full", "The disk of the state is nearly full."
    row = "ragwatch/rules/own_alerts.py"
    changes = (
        (row, "{_FREE} are free on the disk of the ragwatch state directory.", summary),
        (row, 'f"Less than {plan.limits.free >> 20} MiB are free for the state directory."', f'"{meaning}"'),
    )
    folder = changed_copy(tmp_path, changes)
    for shape in ("prometheus", "operator"):
        assert summary in run_ragwatch(folder, "rules", "--config", "config.example.yaml", "--format", shape)
    page = run_python(folder, "-c", "from tools.kit import files; print(files()['docs/alerts.md'])")
    assert f"| warning | {meaning} |" in page


def test_an_option_of_a_command_is_a_field(tmp_path: Path) -> None:
    """Flag, type, help and docs/reference.md follow; the function has it with its type."""
    field = '    shout: bool = option(help="Write in capitals.")\n'
    changes = (
        (
            "ragwatch/terminal/options/administration.py",
            "    shell: str = argument(",
            f"{field}    shell: str = argument(",
        ),
        (
            "ragwatch/commands/administration.py",
            ".source())\n    return 0",
            '.source().upper() if given.shout else "quiet")\n    return 0',
        ),
    )
    folder = changed_copy(tmp_path, changes)
    assert run_ragwatch(folder, "completion", "bash", "--shout").isupper()
    assert not run_ragwatch(folder, "completion", "bash").isupper()
    page = run_python(folder, "-c", "from tools.reference import reference; print(reference())")
    assert "| `--shout` | Write in capitals. |" in page


def test_a_key_is_a_field(tmp_path: Path) -> None:
    """The configuration takes it; its schema and docs/reference.md have it with its meaning."""
    rest = '    rest: Seconds = Field(5.0, description="Time between two batches.")\n'
    folder = changed_copy(
        tmp_path, (("ragwatch/config/model.py", "    lease: Seconds | None", f"{rest}    lease: Seconds | None"),)
    )
    (folder / "short.yaml").write_text("sources: [{kind: push, name: app}]\njudging: {rest: 7s}\n")
    read = "import pathlib, ragwatch.config as c; print(c.load(pathlib.Path('short.yaml')).settings.judging.rest)"
    assert run_python(folder, "-c", read) == "7.0\n"
    schema = json.loads(run_ragwatch(folder, "config", "schema"))
    assert schema["$defs"]["JudgingOptions"]["properties"]["rest"]["description"] == "Time between two batches."
    page = run_python(folder, "-c", "from tools.reference import reference; print(reference())")
    assert "| `judging.rest` | `5.0` | Time between two batches. |" in page


def test_a_label_of_a_series_is_named_once_and_given_where_it_is_counted(tmp_path: Path) -> None:
    """The scrape has it, and so has the table of series."""
    changes = (
        ("ragwatch/statistics/tally.py", 'REDACTED = "redacted", "secret"', 'REDACTED = "redacted", "route", "secret"'),
        (
            "ragwatch/pipeline/intake.py",
            "(Tally.REDACTED, (str(secret),))",
            "(Tally.REDACTED, (draw.route, str(secret)))",
        ),
    )
    folder = changed_copy(tmp_path, changes)
    answer = {"question": "Who is it?", "contexts": ["Ann."], "answer": "Write to ann@example.com."}
    text = scrape(folder, json.dumps(answer))
    assert re.search(r'(?m)^ragwatch_secrets_redacted_total\{route="other",secret="EMAIL"\} 1', text)
    table = run_python(folder, "-c", "from ragwatch.exporter.catalogue import markdown; print(markdown())")
    assert "| `ragwatch_secrets_redacted_total` | counter | `route`, `secret` |" in table
