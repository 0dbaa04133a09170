"""The local judge in the real daemon and on the command line, with the small model of the tests."""

import json
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from functional.forked import run_forked

TINY = Path(__file__).parents[1] / "data" / "local"
MUSEUM = "The museum opens at nine in summer. The museum is closed for repair in winter."
GERMAN = "Das alte Museum am Hafen öffnet im Sommer um neun Uhr und schließt im Winter wegen eines Umbaus."
LABELS = '{corrected="no",judge="reader",route="search",window="15m"}'
JUDGED = 'ragwatch_samples_judged_total{judge="reader",route="search"}'


def _log(folder: Path, *answers: str) -> None:
    texts = [[GERMAN] if answer == GERMAN else [MUSEUM] for answer in answers]
    rows = [record(number, contexts=texts[number], answer=answer) for number, answer in enumerate(answers)]
    (folder / "log" / "rag.jsonl").write_text("".join(f"{row}\n" for row in rows))


def test_contradictions_become_a_gauge_and_what_is_not_english_is_counted(tmp_path: Path) -> None:
    """The model calls two of the three answers that it reads; of the one that is not English nobody knows."""
    config = write_config(tmp_path, judges=f"[{{name: reader, kind: local, weights: '{TINY}'}}]")
    denial, said = "The museum is not closed for repair in winter.", "The museum opens at nine in summer."
    _log(tmp_path, said, denial, GERMAN, denial)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(JUDGED, 4)
        series = ragwatch.wait_for(f"ragwatch_contradiction_samples{LABELS}", 3)
        info = next(name for name in series if name.startswith("ragwatch_judge_info"))
    assert series[f"ragwatch_contradiction_ratio{LABELS}"] == pytest.approx(2 / 3)
    assert series[f"ragwatch_faithfulness_ratio{LABELS}"] == pytest.approx(1 / 3)
    unknown = {name: value for name, value in series.items() if name.startswith("ragwatch_scores_unknown_total")}
    assert [
        value for name, value in unknown.items() if 'quantity="faithfulness"' in name and 'reason="language"' in name
    ] == [1]
    assert series['ragwatch_judge_left_to_words_total{judge="reader",reason="language"}'] == 0
    assert series['ragwatch_judge_left_to_words_total{judge="reader",reason="too_many"}'] == 0
    assert series['ragwatch_judge_fallback{judge="reader"}'] == 0
    assert 'kind="local"' in info
    assert 'version="local-' in info


def test_without_its_model_the_daemon_reads_by_words_and_says_so(tmp_path: Path) -> None:
    """A log line, a gauge, and the lexical judge's version; contradictions are unknown again, not none."""
    config = write_config(tmp_path, judges=f"[{{name: reader, kind: local, weights: '{tmp_path}/absent'}}]")
    _log(tmp_path, "The museum opens at nine in summer.")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(JUDGED, 1)
        series = ragwatch.wait_for(f"ragwatch_faithfulness_samples{LABELS}", 1)
        info = next(name for name in series if name.startswith("ragwatch_judge_info"))
    assert any(line["event"] == "model not loaded, the lexical judge reads instead" for line in ragwatch.log)
    assert series['ragwatch_judge_fallback{judge="reader"}'] == 1
    assert 'version="lexical-' in info
    assert f"ragwatch_contradiction_ratio{LABELS}" not in series


def test_labelled_rows_are_judged_on_the_command_line(tmp_path: Path) -> None:
    """Keys `label` and `meta`, a null question, and contexts by reference: rows of labelled sets as they are."""
    (tmp_path / "docs.json").write_text(json.dumps({"m": MUSEUM}))
    row = {
        "id": "r1",
        "question": None,
        "context_refs": ["m"],
        "docs": "docs.json",
        "answer": "The museum is not closed for repair in winter.",
        "label": {"faithful": False, "raw": "REFUTES"},
        "meta": {"dataset": "ours"},
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    done = run_forked("judge", "--judge", "local", "--set", f"weights={TINY}", tmp_path / "rows.jsonl", check=True)
    line = json.loads(done.stdout)
    assert [claim["verdict"] for claim in line["claims"]] == ["contradicted"]
    assert line["scores"]["contradiction"] == 1.0
    assert line["judge"]["kind"] == "local"
