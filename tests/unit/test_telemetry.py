"""Telemetry: each event is one line of the log and one count; logs are lines of JSON."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from structlog.testing import LogCapture

from ragwatch import telemetry as module
from ragwatch.errors import SourceError
from ragwatch.telemetry import EventCount, Telemetry, configure_logging

PLACE = ("claude", "haiku-1")


def test_events_are_logged(telemetry: Telemetry, log: LogCapture) -> None:
    """Every event has its own text and level."""
    telemetry.started("http://127.0.0.1:1", "0.1.0")
    telemetry.stopped(drained=True)
    telemetry.configured(5.0)
    telemetry.misconfigured("drain: no")
    telemetry.reset("app", "a.jsonl", "truncated")
    telemetry.unreadable("app", {f"{index}.jsonl": "Permission denied" for index in range(9)}, 12)
    telemetry.readable_again("app", ["a.jsonl"], 11)
    telemetry.pruned(3)
    telemetry.announced("deploy", "v2")
    telemetry.skipped("app", "0 of 9 existing records read")
    assert [(entry["log_level"], entry["event"]) for entry in log.entries] == [
        ("info", "started"),
        ("info", "stopped"),
        ("info", "configuration loaded"),
        ("error", "configuration refused, the old one stays"),
        ("info", "stream started over"),
        ("warning", "files cannot be read"),
        ("info", "files no longer unreadable"),
        ("info", "verdicts pruned"),
        ("info", "event"),
        ("warning", "existing records are not read"),
    ]
    shown = next(entry for entry in log.entries if entry["event"] == "files cannot be read")
    assert (len(shown["first"]), shown["new"], shown["total"]) == (5, 9, 12)


def test_a_lasting_limit_is_logged_at_intervals(
    telemetry: Telemetry, log: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit on open files: one event in ten minutes for each source and for the server; failures are counted."""
    now = 5.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    for _ in range(3):
        telemetry.files_closed("app", 7)
        telemetry.files_closed("other", 9)
        telemetry.accept_failed("Too many open files")
    assert [entry.get("source") for entry in log.entries] == ["app", "other", None]
    assert telemetry.counts()[EventCount.ACCEPT_FAILURES, ()] == 3
    now += module.LIMIT_WARNING_SECONDS
    telemetry.files_closed("app", 8)
    assert (len(log.entries), log.entries[-1]["closed"]) == (4, 8)


def test_last_reload(telemetry: Telemetry) -> None:
    """Unknown before the first; a refused one keeps the time of the last good one."""
    assert (telemetry.last_reload_ok, telemetry.last_reload_at) == (None, None)
    telemetry.configured(5.0)
    telemetry.misconfigured("x")
    assert (telemetry.last_reload_ok, telemetry.last_reload_at) == (False, 5.0)


def test_calls_tokens_and_money(telemetry: Telemetry) -> None:
    """Seconds fall into buckets with their sum; tokens by direction."""
    telemetry.judge_called(*PLACE, 0.02)
    telemetry.judge_called(*PLACE, 99.0)
    telemetry.judge_spent(*PLACE, [("input", 100), ("output", 7)], 0.5)
    telemetry.call_failed(*PLACE, "timeout", "slow")
    assert telemetry.counts() == {
        (EventCount.JUDGE_CALLS, PLACE): 2,
        (EventCount.JUDGE_SECONDS, (*PLACE, "0.025")): 1,
        (EventCount.JUDGE_SECONDS, (*PLACE, "+Inf")): 1,
        (EventCount.JUDGE_SECONDS, (*PLACE, "sum")): pytest.approx(99.02),
        (EventCount.JUDGE_TOKENS, (*PLACE, "input")): 100,
        (EventCount.JUDGE_TOKENS, (*PLACE, "output")): 7,
        (EventCount.JUDGE_COST, PLACE): 0.5,
        (EventCount.JUDGE_FAILURES, (*PLACE, "timeout")): 1,
    }


def test_many_threads_lose_no_count(telemetry: Telemetry) -> None:
    """Judges and loops count from several threads."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: telemetry.judge_spent(*PLACE, [("input", 1)], 0.0), range(2000)))
    telemetry.counts()[EventCount.JUDGE_TOKENS, (*PLACE, "input")] = 7  # a copy
    assert telemetry.counts()[EventCount.JUDGE_TOKENS, (*PLACE, "input")] == 2000


def test_foreign_faults_have_no_traceback_and_bugs_do(telemetry: Telemetry, log: LogCapture) -> None:
    """A source that is gone is one line; a bug is shown with where it happened."""
    bug = ZeroDivisionError("no")
    telemetry.step_failed("source app", SourceError("gone"))
    telemetry.step_failed("digest", bug)
    assert [(entry["why"], entry["exc_info"]) for entry in log.entries] == [("gone", None), ("no", bug)]
    assert telemetry.counts() == {
        (EventCount.STEP_FAILURES, ("source app",)): 1,
        (EventCount.STEP_FAILURES, ("digest",)): 1,
    }


def test_a_flood_of_rejections_is_cut_short(
    telemetry: Telemetry, log: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten a minute are shown, then one line says where to look; the next minute shows again."""
    now = 1000.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    for _ in range(50):
        telemetry.rejected("app", "torn_json", file="a.jsonl", line=3)
    assert len(log.entries) == 11
    assert "ragwatch_requests_rejected_total" in log.entries[-1]["event"]
    now += 61.0
    telemetry.rejected("app", "torn_json", file="a.jsonl", line=3)
    assert log.entries[-1] == {
        "event": "record rejected",
        "source": "app",
        "reason": "torn_json",
        "file": "a.jsonl",
        "line": 3,
        "log_level": "warning",
    }


def failed(capsys: pytest.CaptureFixture[str]) -> str:
    """What stderr shows of a bug; stdout stays free for data."""
    Telemetry().step_failed("digest", ZeroDivisionError("with\nnewline"))
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_x16_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Text from outside cannot forge a line; a traceback is a field."""
    configure_logging("info")
    (line,) = failed(capsys).splitlines()
    event = json.loads(line)
    assert (event["level"], event["loop"], event["why"]) == ("error", "digest", "with\nnewline")
    assert "ZeroDivisionError" in event["exception"]
    assert event["timestamp"].endswith("Z")


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """No warning of structlog's, no colours where there is no terminal, and nothing below the level."""
    configure_logging("info", human=True)
    text = failed(capsys)
    assert "step failed, will be repeated" in text
    assert "ZeroDivisionError" in text
    assert "\x1b[" not in text
    Telemetry().announced("deploy", "\x1b]52;c;aGk\x07\x9b2J\u202e")
    assert capsys.readouterr().err.rstrip("\n").isprintable()
    configure_logging("error")
    Telemetry().pruned(1)
    assert capsys.readouterr().err == ""
