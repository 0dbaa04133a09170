"""What CONTRIBUTING.md says of everyday changes: this many places are written by hand, everything else follows."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def changed_copy(folder: Path, changes: Iterable[tuple[str, str, str]]) -> Path:
    """Make a copy of the package and of config.example.yaml in a folder, with changes: path, text, its replacement.

    Compiled modules come along: they keep the times of their files.
    """
    shutil.copytree(ROOT / "ragwatch", folder / "ragwatch")
    shutil.copy(ROOT / "config.example.yaml", folder)
    for name, before, after in changes:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{name}: the change does not fit: {before}"
        path.write_text(text.replace(before, after), encoding="utf-8")
    return folder


def run_python(folder: Path, *arguments: str, text: str = "") -> str:
    """Run Python with the package of a copy, and tools of the repository; return its output."""
    path = os.pathsep.join(map(str, (folder, ROOT)))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_ragwatch(folder: Path, *arguments: str, text: str = "") -> str:
    """Run a command of a copy; return its output."""
    return run_python(folder, "-m", "ragwatch", *arguments, text=text)


def scrape(folder: Path, record: str) -> str:
    """Judge a log of one record with a copy, and return what Prometheus would scrape."""
    (folder / "rag.jsonl").write_text(f"{record}\n", encoding="utf-8")
    (folder / "ragwatch.yaml").write_text(
        f"sources: [{{kind: tail, name: app, path: {folder}/rag.jsonl}}]\nsampling: {{probability: 1.0}}\n",
        encoding="utf-8",
    )
    return run_ragwatch(folder, "run", "--once", "--config", "ragwatch.yaml")


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


DIFF = re.compile(r"```diff\n(.*?)```", re.DOTALL)
HUNK = re.compile(r"--- a/(\S+)\n@@\n((?:[ +].*\n|\n)+)")
ANSWER = {
    "question": "Where does the old mill stand?",
    "contexts": ["The old mill stands by the river.", "Tomatoes need six hours of sun."],
    "answer": "The old mill stands by the river.",
}


def _change(name: str, hunk: str) -> tuple[str, str, str]:
    """Path, text and replacement of a hunk without line numbers."""
    lines = hunk.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line.startswith(" "))
    return name, before, "".join(line[1:] for line in lines)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package to which the diff was applied."""
    (diff,) = DIFF.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    hunks = HUNK.findall(diff)
    assert len(hunks) == 2
    assert sum(line.startswith("+") for _, hunk in hunks for line in hunk.splitlines()) <= 18
    return changed_copy(tmp_path_factory.mktemp("changed"), (_change(*hunk) for hunk in hunks))


def test_a_row_and_a_function_are_a_quantity(changed: Path) -> None:
    """Verdict lines have its score, a scrape its series, and rules record it."""
    line = json.loads(run_ragwatch(changed, "judge", text=json.dumps(ANSWER)))
    assert line["scores"]["relevant_use"] == 1.0
    assert re.search(r"(?m)^ragwatch_relevant_use_ratio\{[^}]*\} 1\.0$", scrape(changed, json.dumps(ANSWER)))
    rules = run_ragwatch(changed, "rules", "--config", "ragwatch.yaml")
    assert "quantity: relevant_use" in rules.replace('"', "")
