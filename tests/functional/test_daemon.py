"""The daemon as an operator meets it: start, signals, lock, and reloads, many at once too."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from functional.daemon import JUDGED, SEEN, RagwatchProcess, append_records, asked, write_config
from functional.forked import run_forked
from support.patience import DEADLINE, wait_until


def test_answers_written_while_it_runs_become_gauges(tmp_path: Path) -> None:
    """A line written to the log is judged and shown as value, interval and count; the service is ready."""
    config = write_config(tmp_path)
    with RagwatchProcess(config, forked=False).wait_until_serving() as ragwatch:
        assert ragwatch.series()[SEEN] == 0  # figures are there as soon as its address is
        append_records(tmp_path, range(20))
        ragwatch.wait_for(JUDGED, 20)
        labels = '{corrected="no",judge="embedded",route="search",window="15m"}'
        series = ragwatch.wait_for(f"ragwatch_faithfulness_samples{labels}", 20)
        assert series[f"ragwatch_faithfulness_ratio{labels}"] == 1.0
        assert 0.7 < series[f"ragwatch_faithfulness_ratio_low{labels}"] < 1.0
        assert series[f"ragwatch_faithfulness_ratio_high{labels}"] == 1.0
        assert f"ragwatch_contradiction_ratio{labels}" not in series  # words alone cannot tell: absent, not zero
        assert ragwatch.get("/-/ready") == (200, "ragwatch is ready\n")
        assert ragwatch.get("/-/healthy")[0] == 200


def test_t30_t31_sigterm_drains_and_a_second_daemon_is_refused(tmp_path: Path) -> None:
    """T30: SIGTERM ends steps under way, commits, and exits 0; what was counted is there at the next start.

    T31: the second process on one state directory exits with `locked` and the owner's process id.
    """
    config = write_config(tmp_path)
    append_records(tmp_path, range(200))
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(SEEN, 200)
        second = run_forked("run", "--config", config)
        assert second.returncode == 1
        assert f"is locked by process {ragwatch.process.pid}" in second.stderr
        ragwatch.signal(signal.SIGTERM)
        assert ragwatch.end() == 0
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        series = ragwatch.wait_for(JUDGED, 200)
        assert series[SEEN] == 200


def test_t30_second_sigterm_ends_at_once(tmp_path: Path) -> None:
    """T30: a second SIGTERM does not wait for the drain; nothing is lost or counted twice."""
    config = write_config(tmp_path)
    append_records(tmp_path, range(1000))
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.signal(signal.SIGTERM)
        ragwatch.signal(signal.SIGTERM)
        assert ragwatch.end() in {0, 1, -signal.SIGTERM}
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        assert ragwatch.wait_for(JUDGED, 1000)[SEEN] == 1000


def test_reload_swaps_the_configuration_or_keeps_the_old_one(tmp_path: Path) -> None:
    """SIGHUP and POST /-/reload take a good configuration; a bad one is refused, told, and shown as a series.

    A new state directory needs a restart, and says so.
    """
    config = write_config(tmp_path)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        append_records(tmp_path, range(10), route="billing")
        ragwatch.wait_for('ragwatch_samples_drawn_total{route="other"}', 10)
        write_config(tmp_path, routes="[search, billing]")
        assert ragwatch.get("/-/reload", method="POST")[0] == 200
        append_records(tmp_path, range(10, 25), route="billing")
        series = ragwatch.wait_for('ragwatch_samples_drawn_total{route="billing"}', 15)
        assert series[SEEN] == 25
        assert series["ragwatch_config_last_reload_successful"] == 1

        write_config(tmp_path, sampling="{probability: 7}")
        status, told = ragwatch.get("/-/reload", method="POST")
        assert (status, "sampling.probability" in told) == (500, True)
        write_config(tmp_path, state=f"{tmp_path}/elsewhere")
        status, told = ragwatch.get("/-/reload", method="POST")
        assert (status, "restart" in told) == (500, True)
        assert ragwatch.wait_for("ragwatch_config_last_reload_successful", 0)[SEEN] == 25

        write_config(tmp_path, routes="[search, billing, mail]")
        ragwatch.signal(signal.SIGHUP)
        ragwatch.wait_for("ragwatch_config_last_reload_successful", 1)
        assert ragwatch.get("/-/reload")[0] == 405


def test_a_judge_that_is_taken_out_leaves_nothing_pending(tmp_path: Path) -> None:
    """A reload with other judges gives up, counted, what waited for the old one, and goes on with the new."""
    config = write_config(tmp_path, judges="[{name: old, kind: lexical}]")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        append_records(tmp_path, range(2000))
        ragwatch.wait_for(SEEN, 2000)
        write_config(tmp_path, judges="[{name: new, kind: lexical}]")
        assert ragwatch.get("/-/reload", method="POST")[0] == 200
        append_records(tmp_path, range(2000, 2010))
        ragwatch.wait_for('ragwatch_samples_judged_total{judge="new",route="search"}', 10)
        series = ragwatch.wait_for("ragwatch_samples_pending", 0)
        assert series['ragwatch_samples_drawn_total{route="search"}'] == 2010


def test_who_asks_for_no_library_does_not_load_it() -> None:
    """The daemon, and the commands that name kinds of judges or ask a daemon, pay for no client, runtime or SDK."""
    code = (
        "import sys, ragwatch.daemon, ragwatch.judges, ragwatch.commands.run, ragwatch.offline.judge\n"
        "import ragwatch.commands.looking\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "dear = {'anthropic', 'httpx2', 'jsonschema', 'jwt', 'mcp', 'mcp_types', 'numpy', 'onnxruntime'}\n"
        "print(sorted(loaded & (dear | {'sse_starlette', 'tokenizers'})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=DEADLINE)
    assert done.stdout.strip() == "[]"


def _reloaded(ragwatch: RagwatchProcess) -> tuple[int, str | None]:
    """Status and `Retry-After` of a request to reload."""
    reply = asked(ragwatch.address + "/-/reload", method="POST")
    return reply.status, reply.headers.get("Retry-After")


def test_a_storm_of_reloads_is_a_few_reloads(tmp_path: Path) -> None:
    """Of 60 requests at once most are refused with 429 and when to ask again; of 200 signals those that wait are one.

    The last word on disk is in force afterwards.
    """
    config = write_config(tmp_path)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        with ThreadPoolExecutor(60) as clients:
            answers = list(clients.map(lambda _: _reloaded(ragwatch), range(60)))
        assert {status for status, _ in answers} == {200, 429}
        assert all(again is not None for status, again in answers if status == 429)
        assert sum(status == 200 for status, _ in answers) < 30
        write_config(tmp_path, routes="[search, billing]")
        assert _reloaded(ragwatch)[0] == 200
        assert 'route="billing"' in ragwatch.get("/metrics")[1]
        assert ragwatch.get("/-/ready")[0] == 200
        before = len(ragwatch.events("configuration loaded"))
        for _ in range(200):
            ragwatch.signal(signal.SIGHUP)
        write_config(tmp_path, routes="[search, mail]")
        ragwatch.signal(signal.SIGHUP)
        wait_until(lambda: 'route="mail"' in ragwatch.get("/metrics")[1], "the last signal is followed")
        ragwatch.signal(signal.SIGTERM)
        assert ragwatch.end() == 0
        assert len(ragwatch.events("configuration loaded")) - before < 50
