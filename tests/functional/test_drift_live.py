"""Whose fault it is, live: the demo over HTTP, ragwatch as a process beside its log; judge and index are changed."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from support.patience import pauses, wait_until

from ragwatch.demo import Demo, endless
from ragwatch.demo.questions import questions
from ragwatch.demo.service import Breakage

REFERENCE, ANCHORS, RATE = 200, 60, 120.0
JUDGED = 'ragwatch_samples_judged_total{judge="embedded",route="other"}'
FAITHFULNESS = 'ragwatch_faithfulness_ratio{corrected="no",judge="embedded",route="other",window="1h"}'
JUDGE_DRIFT = 'ragwatch_judge_drift_alarm{judge="embedded"}'
RAG_DRIFT = "ragwatch_drift_alarm{"
PRECISION = 'ragwatch_drift_alarm{quantity="context_precision",route="other"}'
DRIFT = (
    f"{{reference: {REFERENCE}, reference_time: 1s, tolerance: 0.05, bridge: 0,"
    " quantities: [faithfulness, context_precision, answer_relevancy], traffic: {signals: []}}"
)


def configure(folder: Path, support: float) -> Path:
    """The embedded judge, at some threshold of support, beside the service's log; every answer is judged."""
    return write_config(
        folder,
        routes="[]",
        sources=f"[{{kind: tail, name: demo, path: '{folder}/log/rag.jsonl', start: beginning}}]",
        judges=f"[{{name: embedded, kind: lexical, support: {support}}}]",
        drift=DRIFT,
        anchors=f"{{file: '{folder}/anchors.jsonl', every: 7d}}",
    )


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """The service, with users; its first answers are the anchors."""
    config = configure(tmp_path, 0.5)
    with Demo(config.parent / "log" / "rag.jsonl", rate=RATE) as found:
        asked = islice(endless(questions(found.service.passages), seed=1), ANCHORS)
        rows = [json.dumps({"question": each.text, **found.service.ask(each.text)}) for each in asked]
        (tmp_path / "anchors.jsonl").write_text("\n".join(rows))
        yield found


def learnt(ragwatch: RagwatchProcess) -> dict[str, float]:
    """The series once a baseline is learnt, and so many answers more were watched."""
    series, wanted = {}, None
    for _ in pauses():
        series = ragwatch.series()
        if wanted is None and PRECISION in series:
            wanted = series[JUDGED] + REFERENCE
        if wanted is not None and series[JUDGED] >= wanted:
            return series
    raise AssertionError(series)


def pages(series: dict[str, float]) -> list[str]:
    """What RagwatchDrift would call somebody for."""
    return [name for name, value in series.items() if name.startswith(RAG_DRIFT) and value == 1.0]


@pytest.mark.slow
def test_a_harsher_judge_is_no_page_and_a_broken_retriever_is(demo: Demo, tmp_path: Path) -> None:
    """A reload brings a harsher judge: its own signal rises, nobody is called. Then the index breaks: somebody is."""
    with RagwatchProcess(configure(tmp_path, 0.5)).wait_until_serving() as ragwatch:
        wait_until(lambda: ragwatch.events("anchors read"), "the judge has read the anchors")
        healthy = learnt(ragwatch)
        assert (pages(healthy), healthy.get(JUDGE_DRIFT)) == ([], None)

        configure(tmp_path, 0.97)
        assert ragwatch.get("/-/reload", method="POST")[0] == 200
        ragwatch.wait_for(JUDGE_DRIFT, 1.0)
        harsh = learnt(ragwatch)
        assert (pages(harsh), harsh[JUDGE_DRIFT]) == ([], 1.0)
        assert harsh[FAITHFULNESS] < healthy[FAITHFULNESS] - 0.5

        assert ragwatch.get("/-/drift/acknowledge?judge=embedded", method="POST")[0] == 200
        demo.break_it(Breakage.VANISH)
        broken = ragwatch.wait_for(PRECISION, 1.0)
        assert JUDGE_DRIFT not in broken  # it is the measure of itself now, until the next reading
        told = json.loads(ragwatch.get("/api/v1/drift")[1])
        assert told["state"] == "bad"
        assert [each["judge_moved"] for each in told["answers"] if each["alarm"]] == [False] * told["alarms"]
