"""People beside the real daemon: labels come in while it runs, and become corrected gauges; nothing said is lost."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from functional.daemon import JUDGED, RagwatchProcess, append_records, write_config
from functional.forked import run_forked
from support.patience import DEADLINE

SUPPORTED = "s\nf\ny\n\n"
NOT = "n\np\nn\na note\n"
LABELS = 'ragwatch_judge_labels{quantity="faithfulness"}'
PLACE = '{corrected="yes",judge="embedded",route="search",window="1d"}'


def _log(folder: Path, count: int) -> None:
    for number in range(count):
        append_records(folder, [number], **({} if number % 3 else {"answer": "It was sold to a baker in Paris."}))


def _config(folder: Path) -> Path:
    return write_config(folder, estimates="{windows: [15m, 1d], every: 200ms}")


def test_labels_come_in_while_the_daemon_runs(tmp_path: Path) -> None:
    """A person at a terminal labels 40 answers through the daemon: corrected gauges appear beside the judge's own."""
    config = _config(tmp_path)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _log(tmp_path, 90)
        ragwatch.wait_for(JUDGED, 90)
        before = ragwatch.series()
        way = ("--config", str(config), "--url", ragwatch.address)
        done = run_forked("label", *way, "--annotator", "ann", "--count", "40", stdin=(SUPPORTED + NOT) * 20)
        assert (done.returncode, done.stderr) == (0, "")
        assert "40 saved" in done.stdout
        series = ragwatch.wait_for(LABELS, 40)
        level = series[f"ragwatch_faithfulness_ratio{PLACE}"]
        assert 0.0 <= series[f"ragwatch_faithfulness_ratio_low{PLACE}"] < level < 1.0
        low, high = (f"ragwatch_faithfulness_ratio_{end}{PLACE}" for end in ("low", "high"))
        assert series[high] - series[low] < before[high] - before[low]
        assert series['ragwatch_judge_agreement_ratio{judge="embedded",quantity="faithfulness"}'] <= 1.0
        assert series["ragwatch_judge_last_label_timestamp_seconds"] > 1.7e9
        report = run_forked("calibrate", *way, "--json")
        assert report.returncode == 3, report.stderr
        assert json.loads(report.stdout)["missing"] > 0
    alone = run_forked("label", "--config", str(config), "--annotator", "ann", "--export", "-")
    assert len(alone.stdout.splitlines()) == 40
    assert {json.loads(line)["note"] for line in alone.stdout.splitlines()} == {"", "a note"}
    report = run_forked("calibrate", "--config", str(config), "--json")
    assert json.loads(report.stdout)["quantities"]["faithfulness"]["labels"] == 40


def test_what_was_said_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    """Ctrl-C in the middle of the third answer: two are kept whole, the third as far as it went."""
    config = _config(tmp_path)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _log(tmp_path, 30)
        ragwatch.wait_for(JUDGED, 30)
        command = [sys.executable, "-m", "ragwatch", "label", "--config", str(config), "--annotator", "ann"]
        with subprocess.Popen(
            [*command, "--url", ragwatch.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(SUPPORTED * 2 + "s\n")
            process.stdin.flush()
            seen = ""
            while seen.count("does it address the question?") < 3:
                seen += process.stdout.read(1)
            # A signal just before the call that waits for a line is only seen after that line.
            while "pipe_read" not in Path(f"/proc/{process.pid}/wchan").read_text():
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert "3 saved" in process.stdout.read()
            assert process.wait(DEADLINE) == 0
        labels = json.loads(ragwatch.get("/api/v1/labels")[1])["labels"]
        assert sorted(len(each["scores"]) for each in labels) == [2, 4, 4]
