"""A planted share of answers that ignore the first passage is the same everywhere: one mean."""

import json
from pathlib import Path
from statistics import fmean

import pytest
from functional.forked import run_forked

ANSWERS = 120
SUBJECTS = ("mill", "bridge", "tower", "lighthouse", "market", "harbour")
"""What the passages of a question are about."""
FACTS = ("was built by {name} in {year}", "was sold to {name} after a fire")


def _rows(share: float) -> list[dict[str, object]]:
    """Answers of which some are copied from the second passage, the others from the first."""
    rows: list[dict[str, object]] = []
    for number in range(ANSWERS):
        subject = f"{SUBJECTS[number % len(SUBJECTS)]} of {chr(65 + number % 26)}urgen"
        contexts = [f"The {subject} {fact.format(name=f'Marta Keller{number}', year=1800 + number)}." for fact in FACTS]
        ignores = number % 10 < share * 10
        rows.append(
            {
                "id": f"r{number}",
                "question": f"What happened to the {subject}?",
                "contexts": contexts,
                "answer": contexts[ignores],
                "route": "search",
            }
        )
    return rows


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 1.0])
def test_a_planted_share_is_shown_by_everything(tmp_path: Path, share: float) -> None:
    """Gauge, counter of faults, verdict lines, `estimate` and `gate` agree on it, to the answer."""
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in _rows(share)))
    judged = run_forked("judge", str(log), check=True).stdout
    verdicts = tmp_path / "verdicts.jsonl"
    verdicts.write_text(judged)
    lines = [json.loads(line) for line in judged.splitlines()]
    assert fmean(line["scores"]["top_ranked_ignored"] for line in lines) == pytest.approx(share)
    assert all(line["expected"] == {} for line in lines)
    mean = json.loads(run_forked("estimate", str(verdicts), "--json", check=True).stdout)["top_ranked_ignored"]
    assert mean["mean"] == pytest.approx(share)
    config = tmp_path / "ragwatch.yaml"
    source = {"kind": "tail", "name": "app", "path": str(log), "start": "beginning"}
    config.write_text(
        f"state: {tmp_path}/state\nroutes: [search]\nsampling: {{probability: 1.0}}\nsources: {json.dumps([source])}\n"
        "gate: {metrics: {top_ranked_ignored: 0.3}}\n"
    )
    gate = json.loads(run_forked("gate", str(log), "--config", str(config), "--json").stdout)
    values = {metric["metric"]: metric["value"] for metric in gate["metrics"]}
    assert values["top_ranked_ignored"] == pytest.approx(share)
    series = dict(
        line.rsplit(" ", 1)
        for line in run_forked("run", "--once", "--config", str(config), check=True).stdout.splitlines()
        if line.startswith("ragwatch_")
    )
    place = '{corrected="no",judge="embedded",route="search",window="1d"}'
    assert float(series[f"ragwatch_top_ranked_ignored_ratio{place}"]) == pytest.approx(share)
    faults = sum(
        float(value) for name, value in series.items() if name.startswith("ragwatch_top_ranked_fault_samples_total")
    )
    assert faults == round(share * ANSWERS)
