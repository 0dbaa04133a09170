"""Commands and criteria: verdict lines, the gate, labels of people, and labels that name no criterion."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random
from typing import Any

from support.callers import canned
from support.command_line import command, configured, log_of
from support.labelled import World

from ragwatch.model.quantities import quantity_of
from ragwatch.stores.sqlite.store import SqliteStore

CRITERIA = [
    {"name": "polite", "question": "Is the tone polite?"},
    {"name": "names_price", "question": "Is a price named?"},
]
POLITE = quantity_of("polite")


def chat(answer: str) -> dict[str, Any]:
    """A reply of a chat endpoint that answers the first criterion, and says that the other one does not apply."""
    reply = {"polite": {"quote": answer, "answer": "yes"}, "names_price": {"quote": "", "answer": "does_not_apply"}}
    message = {"role": "assistant", "content": json.dumps({"criteria": reply})}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def test_verdict_lines_and_the_gate(tmp_path: Path) -> None:
    """A line has score, answer and quote; the summary and the gate have the mean; the page holds no criterion."""
    with canned((200, {}, chat("Gladly!"))) as (address, sent):
        judge = {"name": "llm", "kind": "openai", "model": "m", "base_url": f"{address}/v1"}
        judge |= {"prices": {"input": 0, "output": 0}}
        gate = {"metrics": {"polite": 0.9}, "minimum_samples": 1}
        config = configured(tmp_path, criteria=CRITERIA, judges=[judge], gate=gate)
        rows = log_of(tmp_path / "rows.jsonl", {"question": None, "contexts": [], "answer": "Gladly!"})
        judged = command("judge", rows, "--config", config)
        line = json.loads(judged.stdout)
        assert (line["scores"]["polite"], line["scores"]["names_price"]) == (1.0, None)
        assert line["criteria"] == [
            {"name": "polite", "answer": "yes", "quote": "Gladly!"},
            {"name": "names_price", "answer": "does_not_apply", "quote": None},
        ]
        assert "-criteria-" in line["judge"]["version"]
        assert "polite" in judged.stderr
        gated = json.loads(command("gate", rows, "--config", config, "--json").stdout)
        (metric,) = [metric for metric in gated["metrics"] if metric["metric"] == "polite"]
        assert (metric["value"], metric["pass"]) == (1.0, True)
        system, page = (message["content"] for message in sent[0]["messages"])
        assert "`polite`: Is the tone polite?" in system
        assert "polite" not in page


def test_people_answer_criteria(tmp_path: Path) -> None:
    """Each criterion is asked by its question; yes is 1, no is 0, - says nothing."""
    store = SqliteStore(tmp_path / "state")
    World(store, Random(1), requests=60, begin=time.time() - 1800.0)
    store.close()
    config = configured(tmp_path, criteria=CRITERIA)
    said = "s\ns\ns\ns\nf\ny\nn\n-\n\n"
    result = command("label", "--config", config, "--annotator", "ann", "--count", 1, said=said)
    assert result.exit_code == 0, result.output
    assert "Is the tone polite? [y/n/-]" in result.output
    store = SqliteStore(tmp_path / "state")
    (label,) = store.labels(0.0)
    store.close()
    assert label.scores[POLITE] == 0.0
    assert "names_price" not in label.scores
