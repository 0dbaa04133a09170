"""What users see of a fixed log: scrape, pages, verdict lines, help and exit codes, held against files.

Rules and dashboards are held by `tests/house/test_oncall.py` and `test_dashboards.py`, keys by docs/reference.md.
A change of the structure of the code changes none of these files. `UPDATE_GOLDENS=1` writes them anew; the diff is then
what users will see. Times, durations, ports and versions are masked.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from functional.forked import run_forked

FILES = Path(__file__).parent / "files"
ANSWERS = json.loads((Path(__file__).parent / "answers.json").read_text())
PAGES = {
    "overview": "/",
    "canaries": "/canaries",
    "samples": "/samples",
    "sample": "/samples/KEY",
    "drift": "/drift",
    "trends": "/trends?route=search&range=90d",
    "changes": "/changes?route=search&at=1h",
    "changes_without_time": "/changes",
    "causes": "/causes",
    "label": "/label",
    "acknowledge": "/acknowledge",
    "routes": "/routes?route=search",
    "segment": "/segments/step?route=search",
}
REPLIES = {
    "snapshot": "snapshot",
    "canaries": "canaries",
    "samples": "samples",
    "sample": "samples/KEY",
    "drift": "drift",
    "routes": "routes?route=search",
    "trends": "trends?route=search&range=90d",
    "changes": "changes?route=search&at=1h",
    "causes": "causes?route=search",
    "segment": "segments/step?route=search",
    "openapi": "openapi.json",
}
MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z)?"), "TIME"),
    (re.compile(r"(?m)^seconds\n\d\.\d{3}$"), "seconds\nNUMBER"),
    (re.compile(r"(?m)^(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d\d$"), "DAY"),
    (re.compile(r"\b\d{10}(\.\d+)?\b|\b1\.\d{6,}e\+09\b"), "TIME"),
    (re.compile(r'"(age_seconds|seconds)": [^,}\n]+'), r'"\1": NUMBER'),
    (re.compile(r"(?<=the newest answer is of )\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|min|h|d|seconds?|minutes?) ago\b|\bjust now\b"), "AGO"),
    (re.compile(r"(?<![.\w])[0-9a-f]{16,64}\b"), "KEY"),
    (re.compile(r"(\d\.\d{6})\d+"), r"\1"),
    (re.compile(r"\b0\.\d+\.\d+(\.dev\d+)?\b"), "VERSION"),
)
# Values that depend on when the run took place, or on the machine.
UNSTEADY = re.compile(
    r"^(process_|python_)|_seconds(_bucket|_sum|{| )|_timestamp_seconds|_bytes|digest|lag_|build_info|_scrape|_leader|"
    r"_connections|_threads|_queue"
)


def _write_log(path: Path) -> None:
    now = time.time()
    rows = [{**row, "at": now - 40 + number} for number, row in enumerate(ANSWERS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


class _Text(HTMLParser):
    """The text of a page, a line for each element that holds text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._skipped = 0

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skipped and data.strip():
            self.lines.append(" ".join(data.split()))


def _masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def _hold(name: str, text: str) -> None:
    path = FILES / name
    text = _masked(text)
    if os.environ.get("UPDATE_GOLDENS"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{name} changed; look at the difference, then run with UPDATE_GOLDENS=1"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of the daemon."""
    folder = tmp_path_factory.mktemp("golden")
    _write_log(write_config(folder).parent / "log" / "rag.jsonl")
    return folder / "ragwatch.yaml"


@pytest.fixture(scope="module")
def daemon(watched: Path) -> Iterator[RagwatchProcess]:
    """A daemon that has judged the whole log and computed its estimates."""
    with RagwatchProcess(watched) as process:
        process.wait_until_serving()
        process.wait_for(
            'ragwatch_faithfulness_samples{corrected="no",judge="embedded",route="search",window="1h"}', 10.0
        )
        process.wait_for('ragwatch_drift_band_ratio{quantity="top_ranked_ignored",route="support"}', 0.0)
        yield process


def test_scrape(daemon: RagwatchProcess) -> None:
    """Names, types, HELP, labels and values of all series."""
    text = daemon.get("/metrics")[1]
    lines = [line for line in text.splitlines() if not UNSTEADY.search(line) or line.startswith("#")]
    _hold("scrape.txt", "\n".join(lines) + "\n")


def _first_key(daemon: RagwatchProcess) -> str:
    """Key of the first answer of the log."""
    rows = json.loads(daemon.get("/api/v1/samples")[1])["samples"]
    return next(str(row["verdict"]["key"]) for row in rows if row["sample"]["id"] == ANSWERS[0]["id"])


@pytest.mark.parametrize("name", PAGES)
def test_page(daemon: RagwatchProcess, name: str) -> None:
    """The text of a page, line by line; steps of charts without an answer are left out."""
    status, html = daemon.get(PAGES[name].replace("KEY", _first_key(daemon)))
    text = _Text()
    text.feed(html)
    lines = (line for line in text.lines if not line.endswith((": no answers", ": no evidence is stored")))
    _hold(f"pages/{name}.txt", "\n".join((str(status), *lines)) + "\n")


@pytest.mark.parametrize("name", REPLIES)
def test_reply(daemon: RagwatchProcess, name: str) -> None:
    """Keys and values of the API, and the document that describes it."""
    status, body = daemon.get(f"/api/v1/{REPLIES[name].replace('KEY', _first_key(daemon))}")
    text = json.dumps(json.loads(body), indent=1, sort_keys=True, ensure_ascii=False)
    _hold(f"api/{name}.txt", f"{status}\n{text}\n")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration over the log, and the log as canonical samples."""
    path = write_config(tmp_path)
    _write_log(tmp_path / "log" / "rag.jsonl")
    return path


def test_verdict_lines(config: Path) -> None:
    """A verdict line for each answer, by the lexical judge."""
    done = run_forked("judge", "--config", config, config.parent / "log" / "rag.jsonl")
    lines = [json.dumps(json.loads(line), sort_keys=True, ensure_ascii=False) for line in done.stdout.splitlines()]
    _hold("verdicts.jsonl", "".join(line + "\n" for line in lines))
    assert done.returncode == 0


COMMANDS: dict[str, str] = {
    "gate": "gate LOG --config CONFIG --json",
    "gate_text": "gate LOG --config CONFIG",
    "gate_reports": "gate LOG --qrels QRELS --k 1 --uncorrected --junit /dev/stdout --markdown /dev/stderr",
    "estimate": "estimate VERDICTS --labels LABELS --json",
    "estimate_text": "estimate VERDICTS --labels LABELS",
    "compare": "compare LOG WORSE --qrels QRELS --k 1 --json",
    "compare_text": "compare LOG WORSE --qrels QRELS --k 1",
    "compare_variants": "compare v1 v2 --log LOG --label release --json",
    "backtest": "backtest SCORES --set reference=60 --quiet-until 2026-02-01 --json",
    "backtest_text": "backtest SCORES --set reference=60",
    "plan": "plan --per-day 1000 --price 0.01 --probability 0.2 --within 4d --json",
    "plan_text": "plan --per-day 1000 --price 0.01 --probability 0.2 --within 4d",
    "redact": "redact TEXT",
    "redact_json": "redact TEXT --json",
    "judge_text": "judge LOG",
    "check": "check --config CONFIG",
    "map": "init --print LOG",
    "once": "run --once --config CONFIG",
    "causes_empty": "causes --config CONFIG --json",
    "diagnose_empty": "diagnose --config CONFIG --json",
    "rollout_unset": "rollout --config CONFIG",
    "calibrate_empty": "calibrate --config CONFIG",
    "label_empty": "label --config CONFIG --annotator ann",
    "export_empty": "export --config CONFIG --failing --as gate",
    "forget_empty": "forget answer-01 --config CONFIG",
    "suggest_empty": "canary suggest --config CONFIG",
    "unknown_option": "run --nonsense",
    "no_config": "run --config missing.yaml",
}
HELD_ELSEWHERE = ("once", "judge_text")
"""Commands that print a scrape or verdict lines, which other tests hold."""


def _write_inputs(folder: Path) -> dict[str, str]:
    """Write the files that commands read; returns the path of each by the word that stands for it."""
    worse = [{**row, "answer": "Parcels may be sent back up to ninety days after delivery."} for row in ANSWERS]
    days = [{"at": f"2026-01-{1 + n // 10:02}", "faithfulness": 0.9 if n < 200 else 0.1} for n in range(310)]
    labels = [{"id": row["id"], "faithfulness": number % 2} for number, row in enumerate(ANSWERS)]
    texts = {
        "WORSE": "".join(json.dumps(row) + "\n" for row in worse),
        "QRELS": "".join(f"{row['id']} 0 doc-{1 + number % 2} 1\n" for number, row in enumerate(ANSWERS)),
        "VERDICTS": (FILES / "verdicts.jsonl").read_text().replace("NUMBER", "0.1"),
        "LABELS": "".join(json.dumps(label) + "\n" for label in labels),
        "SCORES": "".join(json.dumps(row) + "\n" for row in days),
        "TEXT": "Write to anna@example.org or call +49 30 901820.\nNothing here.\n",
    }
    places = {"CONFIG": str(folder / "ragwatch.yaml"), "LOG": str(folder / "log" / "rag.jsonl")}
    for name, text in texts.items():
        places[name] = str(folder / f"{name.lower()}.txt")
        Path(places[name]).write_text(text)
    return places


@pytest.mark.parametrize("name", COMMANDS)
def test_command(config: Path, name: str) -> None:
    """Exit code and output of a command."""
    _hold(f"commands/{name}.txt", _run(COMMANDS[name], _write_inputs(config.parent), whole=name not in HELD_ELSEWHERE))


LIVE: dict[str, str] = {
    "backtest": "backtest --config CONFIG --set reference=5 --json",
    "calibrate": "calibrate --config CONFIG --url URL --json",
    "calibrate_text": "calibrate --config CONFIG",
    "causes": "causes --config CONFIG --json",
    "causes_text": "causes --config CONFIG",
    "diagnose": "diagnose --config CONFIG --json",
    "diagnose_text": "diagnose --config CONFIG",
    "export_gate": "export --config CONFIG --failing --as gate",
    "export_ragas": "export --config CONFIG --failing --as ragas --limit 2",
    "export_deepeval": "export --config CONFIG --failing --as deepeval --limit 2",
    "export_canaries": "export --config CONFIG --failing --as canaries",
    "forget": "forget answer-01 --config CONFIG --dry-run",
    "label": "label --config CONFIG --annotator ann --count 1",
    "incident": "incident --url URL --since 7d",
    "open": "open --url URL --since 7d",
    "status": "status --url URL",
    "suggest": "canary suggest --config CONFIG",
    "thresholds": "rules --from-baseline --config CONFIG",
}


@pytest.mark.parametrize("name", LIVE)
def test_command_beside_a_daemon(daemon: RagwatchProcess, watched: Path, name: str) -> None:
    """Exit code and output of a command that reads the state of a running daemon, or asks it."""
    _hold(f"live/{name}.txt", _run(LIVE[name], {"CONFIG": str(watched), "URL": daemon.address}))


def _run(command: str, places: Mapping[str, str], *, whole: bool = True) -> str:
    """Run a command; returns its exit code and output, without standard output if that is not wanted."""
    folder = Path(places["CONFIG"]).parent
    wide = {**os.environ, "COLUMNS": "400"}
    done = run_forked(*(places.get(word, word) for word in command.split()), cwd=folder, env=wide)
    output = f"{done.stdout}\n{done.stderr}" if whole else done.stderr
    text = f"exit {done.returncode}\n{output}\n".replace(str(folder), "FOLDER")
    return re.sub(r" +[│┃]$|─+|━+", "", text, flags=re.MULTILINE)  # tables are as wide as the folder's name


@pytest.mark.parametrize("command", ["", "gate"])
def test_help(command: str) -> None:
    """The list of commands, and the help of one. That of all others is held by `docs/reference.md`."""
    _hold(f"help/{command or 'ragwatch'}.txt", run_forked(*command.split(), "--help").stdout)
