"""`ragwatch init`: a configuration that works, from a log and a few answers; nothing is overwritten."""

import json
import re
import shutil
import socket
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from support.command_line import command, log_of, refused

from ragwatch.commands import cli
from ragwatch.commands.init_judges import NAMES
from ragwatch.config import load
from ragwatch.judges.llm.judge import price_of_reading
from ragwatch.judges.llm.options import known_model
from ragwatch.model.sample import Context, Sample

DATA = Path(__file__).parents[2] / "data" / "formats"
QUESTION = "How long is the warranty?"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of 101 answers, 72 s apart: 1,200 a day."""
    row = {"question": QUESTION, "contexts": ["The warranty lasts two years."], "answer": "Two years."}
    places = ({"id": f"r-{n}", "at": 1_780_000_000 + 72 * n, "route": ("support", "search")[n % 2]} for n in range(101))
    return log_of(tmp_path / "app.jsonl", *(row | place for place in places))


@pytest.fixture(autouse=True)
def without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of the shell that runs the tests."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def _init(*words: str | Path, typed: str = "") -> Result:
    return command("init", *words, said=typed)


def test_a_log_becomes_a_configuration(log: Path, tmp_path: Path) -> None:
    """Format, routes and the share to judge come from the log; the scrape job and the next commands are printed."""
    out = tmp_path / "ragwatch.yaml"
    result = _init(log, "--yes", "--state", tmp_path / "state", "--out", out)
    config = load(out)
    assert config.settings.routes == ("search", "support")
    assert config.settings.sampling.probability == 1.0
    assert config.settings.state == tmp_path / "state"
    assert [(source.kind, str(source.options.path)) for source in config.sources] == [("tail", str(log))]  # type: ignore[attr-defined]
    assert "101 of 101" in result.stdout or "100 of 100" in result.stdout
    scraped = yaml.safe_load(result.stdout[result.stdout.index("scrape_configs:") :])
    assert scraped["scrape_configs"][0]["static_configs"][0]["targets"] == ["127.0.0.1:10477"]
    assert f"ragwatch run --config {out}" in result.stdout
    with socket.socket() as probe:  # the exit code tells whether the address is free, here as for everybody
        free = probe.connect_ex(("127.0.0.1", 10477)) != 0
    assert result.return_value == (0 if free else 1), result.stdout


def test_what_a_log_does_not_tell_is_asked(tmp_path: Path) -> None:
    """Where the state is, and how many answers a day: with `--yes` those of a small log, of a large one unknown."""
    log = tmp_path / "app.jsonl"
    log.write_text('{"question": "q", "contexts": ["c"], "answer": "a"}\n', encoding="utf-8")
    result = _init(log, "--out", "-", typed=f"{tmp_path}/here\n1000000\nlexical\n")
    data = yaml.safe_load(result.stdout[result.stdout.index("# Configuration") :])
    assert data["state"] == f"{tmp_path}/here"
    assert data["sampling"] == {"probability": 0.002}
    assert data["routes"] == []
    line = json.dumps({"question": "q", "contexts": ["c"], "answer": "a"}) + "\n"
    shares = []
    for name, repeats in (("small", 24), ("large", 30_000)):
        log = tmp_path / f"{name}.jsonl"
        log.write_text(line * repeats, encoding="utf-8")
        shares.append(yaml.safe_load(_init(log, "--yes", "--out", "-").stdout)["sampling"]["probability"])
    assert shares == [1.0, 0.1]


def test_claude_is_offered_where_its_key_is(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a key: a cascade with a budget and its price for the log; the key itself is not written."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    result = _init(log, "--out", "-", "--state", tmp_path, typed="")
    assert refused(result)
    for words, typed in (((), f"{tmp_path}\nclaude\n"), (("--judge", "claude", "--yes"), "")):
        answered = _init(log, "--out", "-", *words, typed=typed)
        judges = yaml.safe_load(answered.stdout[answered.stdout.index("# Configuration") :])["judges"]
        assert [judge["name"] for judge in judges] == ["embedded", "claude"]
        assert judges[1]["budget"] == {"usd_per_day": 5.0}
        assert "sk-test" not in answered.stdout


def test_each_judge_says_what_it_knows_and_costs(log: Path, tmp_path: Path) -> None:
    """The price is that of the answers of the log, a day as many as its times say; without answers it is unknown."""
    shown = _init(log, "--out", "-", "--state", tmp_path, typed="\n").stdout
    pattern = r"about \$(.+) per 1,000 answers by (.+); 5 % of the judged answers = \$(.+) a day, .+ = \$(.+), never"
    ((price, model, low, high),) = re.findall(pattern, shown)
    known = known_model(model)
    assert known is not None
    sample = Sample("r", QUESTION, (Context("The warranty lasts two years."),), "Two years.")
    assert 1000 * price_of_reading(known.prices, sample) == pytest.approx(float(price), rel=0.05, abs=0.006)
    assert [float(low), float(high)] == pytest.approx([float(price) * share * 1.2 for share in (0.05, 0.4)], abs=0.02)
    assert "claude" in shown
    assert "needs the environment variable ANTHROPIC_API_KEY" in shown
    assert "price by the length" in _init("--receive", "push", "--out", "-", "--state", tmp_path, typed="1\n\n").stdout


def test_a_judge_that_cannot_be_used_is_refused(log: Path, tmp_path: Path) -> None:
    """With what it needs; and the option names every judge of the menu, each a valid configuration."""
    error = _init(log, "--judge", "claude", "--yes", "--out", "-").exception
    assert "--judge claude: needs the environment variable ANTHROPIC_API_KEY" in str(error)
    (option,) = [one for one in cli.commands["init"].params if one.name == "judge"]
    assert tuple(option.type.choices) == NAMES  # type: ignore[attr-defined]
    result = _init(log, "--judge", "lexical", "--yes", "--out", tmp_path / "r.yaml", "--state", tmp_path / "state")
    assert [(judge.kind, judge.place.name) for judge in load(tmp_path / "r.yaml").judges] == [("lexical", "embedded")]
    assert "Which judge" not in result.stdout


def test_a_detector_needs_its_model(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The menu says what to run, and that nobody knows its quality here; with a model the configuration is valid."""
    monkeypatch.chdir(tmp_path)
    shown = _init(log, "--out", "-", "--state", tmp_path / "state", typed="\n").stdout
    assert "how good it is on this log is unknown until answers have labels" in shown
    assert "needs ragwatch detector fetch OWNER/MODEL ./model" in shown
    error = _init(log, "--judge", "detector", "--yes", "--out", "-").exception
    assert "--judge detector: needs ragwatch detector fetch OWNER/MODEL ./model" in str(error)
    shutil.copytree(DATA.parent / "detector" / "neutral", tmp_path / "model")
    _init(log, "--judge", "detector", "--yes", "--out", tmp_path / "r.yaml", "--state", tmp_path / "state")
    (judge,) = load(tmp_path / "r.yaml").judges
    assert (judge.kind, judge.place.name, judge.options.model) == ("detector", "embedded", tmp_path / "model")


def test_answers_that_are_sent_need_no_log(tmp_path: Path) -> None:
    """A source that receives is written and valid; neither a log nor a way to receive, or both, is an error."""
    for kind in ("push", "otlp"):
        out = tmp_path / f"{kind}.yaml"
        _init("--receive", kind, "--yes", "--out", out, "--state", tmp_path / "state")
        assert [source.kind for source in load(out).sources] == [kind]
    for words in ([], ["--receive", "push", __file__]):
        assert "give the log files" in str(_init(*words).exception)


def test_halves_of_requests_become_a_join(tmp_path: Path) -> None:
    """Two logs whose records share an id are one source."""
    asked = [
        {"request_id": f"r{n}", "question": f"Where is {n}?", "contexts": [f"{n} is at Weir Lane."]} for n in range(4)
    ]
    said = [{"request_id": f"r{n}", "answer": f"Mill {n} is there."} for n in range(4)]
    logs = log_of(tmp_path / "retrieval.jsonl", *asked), log_of(tmp_path / "answers.jsonl", *said)
    written = yaml.safe_load(_init(*logs, "--yes", "--out", "-").stdout)
    (source,) = written["sources"]
    assert (source["kind"], source["by"], len(source["of"])) == ("join", "request_id", 2)
    assert written["sampling"]["probability"] == 1.0


def test_nothing_is_overwritten_and_nothing_is_written_for_an_unreadable_log(tmp_path: Path, log: Path) -> None:
    """An existing file stays, and a log without JSON leaves none."""
    out = tmp_path / "ragwatch.yaml"
    out.write_text("mine", encoding="utf-8")
    assert "already exists" in str(_init(log, "--yes", "--out", out).exception)
    assert out.read_text(encoding="utf-8") == "mine"
    text = tmp_path / "text.log"
    text.write_text("hello\n", encoding="utf-8")
    result = _init(text, "--yes", "--out", tmp_path / "new.yaml")
    assert result.return_value == 1
    assert not (tmp_path / "new.yaml").exists()


def test_completion_scripts_name_the_program() -> None:
    """Each shell gets a script that completes `ragwatch`."""
    for shell in ("bash", "zsh", "fish"):
        assert "_RAGWATCH_COMPLETE" in command("completion", shell).stdout


def _log_of(path: Path, *routes: str) -> Path:
    return log_of(path, *({"question": "q", "contexts": ["c"], "answer": "a", "route": route} for route in routes))


def test_routes_that_cannot_be_listed_are_named(tmp_path: Path) -> None:
    """The configuration is valid: they count as "other", which a comment says; so do those beyond the first twenty."""
    refused = ["my route", "s\u00fcd", "a" * 200, "x\ny\u2028z"]
    log, out = _log_of(tmp_path / "app.jsonl", "ok/1", *refused), tmp_path / "ragwatch.yaml"
    _init(log, "--yes", "--out", out, "--state", tmp_path / "state")
    assert load(out).settings.routes == ("ok/1",)
    (comment,) = (line for line in out.read_text(encoding="utf-8").split("\n") if "Not listed" in line)
    assert comment.startswith('# Not listed, so that they count as "other": ')
    for name in ('"my route"', '"s\u00fcd"', f'"{"a" * 40}..."', '"x\\ny\ufffdz"'):
        assert name in comment
    out.unlink()
    _init(_log_of(log, *(f"r{number:02}" for number in range(22))), "--yes", "--out", out, "--state", tmp_path / "s")
    assert len(load(out).settings.routes) == 20
    assert 'list those that you want to see apart: "r20", "r21"\n' in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "message"),
    [("${NOPE}", "names environment variables in a configuration; rename"), ("caf\udce9", "is not UTF-8")],
)
def test_a_path_that_a_configuration_cannot_hold_is_refused(tmp_path: Path, name: str, message: str) -> None:
    """Before anything is written, so that the next attempt does not find a file."""
    folder, out = tmp_path / name, tmp_path / "ragwatch.yaml"
    folder.mkdir()
    assert message in refused(_init(_log_of(folder / "app.jsonl", "a"), "--yes", "--out", out))
    log = _log_of(tmp_path / "app.jsonl", "a")
    error = refused(_init(log, "--yes", "--out", out, "--state", "caf\udce9"))
    assert error.startswith("--state: the path caf\ufffd is not UTF-8")
    assert not out.exists()


UNCLEAR = [
    {
        "user_query": f"How long does kettle {n} last?",
        "hits": [{"snippet": f"Kettle {n} lasts {n} years."}],
        "turns": [{"said": f"Let me look for kettle {n}."}, {"said": f"It lasts {n} years."}],
        "note": f"Somebody asked for kettle {n}.",
    }
    for n in range(4)
]
"""Logs whose answer has no telling name."""


def test_a_part_that_is_not_recognised_is_asked_for_with_values(tmp_path: Path) -> None:
    """The one that is chosen is mapped; with `--yes` nothing is asked, and a draft has what was recognised."""
    log = log_of(tmp_path / "app.jsonl", *UNCLEAR)
    result = _init(log, "--out", "-", "--state", tmp_path / "state", typed="1\n100\n\n")
    assert 'Which of these is the answer?\n  1  note  "Somebody asked for kettle 0."' in result.stdout
    source = yaml.safe_load(result.stdout[result.stdout.index("# Configuration") :])["sources"][0]
    assert source["mapping"] == {"question": "user_query", "contexts": "hits[].{text: snippet}", "answer": "note"}
    assert "reads 4 of 4" in result.stdout
    log, out = log_of(tmp_path / "app.jsonl", *UNCLEAR), tmp_path / "ragwatch.yaml"
    result = _init(log, "--yes", "--state", tmp_path / "state", "--out", out)
    assert result.return_value == 1
    assert "question and contexts are logged, but no field looks like answer" in result.stderr
    assert "are a draft" in result.stdout
    text = out.read_text(encoding="utf-8")
    assert yaml.safe_load(text)["sources"][0]["mapping"].keys() == {"question", "contexts"}
    assert "# answer is missing: is it one of these?" in text


def test_every_part_without_a_telling_name_is_asked_for(tmp_path: Path) -> None:
    """Records of another kind are no sign that the answer stands elsewhere; what was chosen is not offered again."""
    texts = [(f"Where is kettle {n}?", f"Kettle {n} is in the hall.") for n in range(4)]
    rows = (
        {"user_said": q, "hits": [{"doc_ref": f"d{q}", "passage": a, "sim": 0.5}], "bot": {"said": a}} for q, a in texts
    )
    log = log_of(tmp_path / "app.jsonl", *rows, {"event": "health"})
    result = _init(log, "--out", "-", "--state", tmp_path / "state", typed="2\n1\n100\n\n")
    source = yaml.safe_load(result.stdout[result.stdout.index("# Configuration") :])["sources"][0]
    assert source["mapping"] == {
        "question": "user_said",
        "contexts": "hits[].{id: doc_ref, text: passage, score: sim}",
        "answer": "bot.said",
    }
    assert "separate records" not in result.stderr
    asked = result.stdout.partition("Which of these is the question?")[2].partition("Number")[0]
    assert ("user_said" in asked, "bot.said" in asked) == (True, False)
