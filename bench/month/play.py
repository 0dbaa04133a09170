"""Plays the month: writes answers and breaks them, listens to who is notified, and keeps what Prometheus recorded."""

import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from functional.daemon import parse_series, write_config
from month.record import Course, Happened, Notice, Record
from month.story import AFTER, CHANGES, LEARNT, RATE, Change, compressed
from support.oncall_real import RealTraffic
from support.oncall_replay import OF_SCRAPES
from support.oncall_stage import ROOT, Stage, get, running, until
from support.programs import free_port, installed

from ragwatch import __version__

JOB, JUDGE = "ragwatch", "embedded"
_TICK, _LOOK, _SAVE = 0.1, 2.0, 60.0
_GAP = 4.0  # hours between two spans of one alarm: scrapes that were missed are no end
_RULES = ("ragwatch-recording.yaml", "ragwatch-alerts.yaml")
_STAGE = re.compile(r"Stage that changed: (\w+)")


def month(path: Path, routes: Sequence[str], days: float, hour: float, seed: int) -> None:
    """Play it, and keep the record in `path`, the last time at its end or when it is interrupted."""
    with (
        tempfile.TemporaryDirectory(prefix="ragwatch-month-") as folder,
        _watched(Path(folder), routes, hour) as watched,
    ):
        traffic = RealTraffic(routes, seed)
        player = _Player(
            *watched, traffic, log=Path(folder) / "month.jsonl", routes=routes, days=days, hour=hour, seed=seed
        )
        player.learn()
        try:
            player.play(path)
        except KeyboardInterrupt:
            print("ended early")
        player.record().write(path)


def configuration(routes: Sequence[str], hour: float) -> dict[str, str]:
    """Sections of the configuration: the defaults, with false alarms of a month and levels of one and two minutes."""
    often = f"false_alarm_every: {30 * 24 * hour:g}s"
    return {
        "routes": json.dumps(list(routes)),
        "judges": f"[{{name: {JUDGE}, kind: lexical}}]",
        "estimates": "{windows: {15m: 60, 1h: 60, 1d: 120}, every: 500ms}",
        "drift": (
            f"{{reference: {LEARNT - 50}, reference_time: 10ms, {often}, "
            f"traffic: {{requests: {LEARNT - 50}, reference: 10ms, {often}}}}}"
        ),
    }


@contextmanager
def _watched(folder: Path, routes: Sequence[str], hour: float) -> Iterator[tuple[Stage, str]]:
    """The daemon, Prometheus and Alertmanager; the stage, and the address of the daemon."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    source = f"[{{kind: tail, name: app, path: '{folder}/month.jsonl', start: beginning}}]"
    config = write_config(folder, web=f"{{listen: '127.0.0.1:{port}'}}", sources=source, **configuration(routes, hour))
    rules = {name: compressed((ROOT / "deploy" / "prometheus" / name).read_text(), hour) for name in _RULES}
    command = (sys.executable, "-m", "ragwatch", "run", "--config", str(config))
    with (
        running(folder / "ragwatch.log", *command),
        Stage({JOB: [port]}).open_rules(folder, lambda _: rules) as stage,
    ):
        until("the daemon", lambda: get(f"{address}/-/healthy")[0] == 200)
        yield stage, address


class _Player:
    """Plays the story against the stage."""

    def __init__(
        self,
        stage: Stage,
        address: str,
        traffic: RealTraffic,
        *,
        log: Path,
        routes: Sequence[str],
        days: float,
        hour: float,
        seed: int,
    ) -> None:
        self._hour, self._day_seconds = hour, 24.0 * hour
        self._stage, self._address, self._traffic, self._log = stage, address, traffic, log
        self._routes, self._days, self._seed = routes, days, seed
        self._story = {
            number: change for number, change in enumerate(CHANGES) if change.route in routes and change.day < days
        }
        self._answered: dict[str, list[float]] = {route: [] for route in routes}
        self._heard: list[float] = []
        self._stages: dict[tuple[str, str], str] = {}
        self._slowest = 0.0
        self._began = time.time()

    def learn(self) -> None:
        """Write what baselines are learnt from, and wait until they are learnt and nothing waits for the judge.

        Raises:
            SystemExit: The machine is too slow for hours as short as these.
        """
        begin = time.time()
        self._append([(route, None) for _ in range(LEARNT) for route in self._routes])
        least = 3 * len(self._routes)  # quantities whose drift pages; signals of traffic need more requests after this
        while self._count("ragwatch_drift_baseline_ratio{") < least or self._series()["ragwatch_samples_pending"] > 100:
            self._append([(route, None) for route in self._routes])  # a silent source would be told
            time.sleep(1.0)
        judged = len(self._routes) * LEARNT / (time.time() - begin)
        needed = 1.4 * RATE * len(self._routes) / self._hour
        print(f"judged {judged:.0f} answers a second; the month needs {needed:.0f}", flush=True)
        if judged < needed:
            raise SystemExit(f"the machine is too slow or busy: --hour {math.ceil(1.2 * self._hour * needed / judged)}")

    def play(self, path: Path) -> None:
        """Write answers until the month is over, look what is told, and keep the record now and then."""
        self._began = time.time()
        self._answered = {route: [] for route in self._routes}
        self._heard = [-1.0] * len(self._stage.heard)
        due = dict.fromkeys(self._routes, 0.0)
        deploys = sorted((change.day, number) for number, change in self._story.items() if change.event)
        look, save = 0.0, _SAVE
        while (now := (time.time() - self._began) / self._day_seconds) < self._days:
            self._append(list(self._due(due, now)))
            while deploys and deploys[0][0] <= now:
                self._deploy(self._story[deploys.pop(0)[1]])
            seconds = now * self._day_seconds
            self._heard += [now] * (len(self._stage.heard) - len(self._heard))
            if seconds >= look:
                look = seconds + _LOOK
                self._look()
            if seconds >= save:
                save = seconds + _SAVE
                print(f"day {now:.1f}: {len(self._notices())} notifications, queue {self._slowest:.0f}", flush=True)
                self.record().write(path)
            time.sleep(_TICK)

    def _due(self, due: dict[str, float], now: float) -> Iterator[tuple[str, Change | None]]:
        """Routes that answer now, each with what is broken; at night they answer less."""
        rate = 24.0 * RATE * (1.0 + 0.8 * math.sin(2.0 * math.pi * now))
        for route in self._routes:
            while due[route] <= now:
                due[route] += 1.0 / rate
                self._answered[route].append(now)
                yield route, self._broken(route, now)

    def _broken(self, route: str, now: float) -> Change | None:
        for change in self._story.values():
            if change.route == route and change.day <= now < change.day + change.hours / 24.0:
                return change
        return None

    def _append(self, answers: Sequence[tuple[str, Change | None]]) -> None:
        lines = []
        for route, change in answers:
            bad = change is not None and self._traffic.chance(change.share)
            lines.append(self._traffic.row(route, change.breakage if change is not None and bad else None))
        with self._log.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def _deploy(self, change: Change) -> None:
        """Tell ragwatch of it, as a pipeline does."""
        address = f"{self._address}/-/events?kind={change.event}&detail={quote(change.what)}"
        get(address, "POST")

    def _look(self) -> None:
        """Keep what pages say now: one that comes with the first broken answers names the stage a little later."""
        self._slowest = max(self._slowest, self._series().get("ragwatch_samples_pending", 0.0))
        with suppress(OSError):
            for alert in self._stage.alerts(JOB, ".+"):
                if named := _STAGE.search(alert["annotations"]["description"]):
                    self._stages[alert["labels"]["route"], alert["startsAt"]] = named[1]

    def _series(self) -> dict[str, float]:
        try:
            return parse_series(get(f"{self._address}/metrics")[1])
        except OSError:
            return {}

    def _count(self, prefix: str) -> int:
        return sum(name.startswith(prefix) for name in self._series())

    def _notices(self) -> list[Notice]:
        """Everything that was notified, each alert once."""
        notices: dict[tuple[str, ...], Notice] = {}
        for heard, (receiver, body) in zip(self._heard, list(self._stage.heard), strict=False):
            for alert in body["alerts"]:
                labels = alert["labels"]
                if heard < 0.0 or labels["alertname"] in OF_SCRAPES:
                    continue
                key = (receiver, alert["fingerprint"], alert["startsAt"])
                route, ended = labels.get("route", ""), None
                if alert["status"] == "resolved":
                    ended = self._day(datetime.fromisoformat(alert["endsAt"]).timestamp())
                first = notices.get(key)
                notices[key] = Notice(
                    receiver,
                    labels["alertname"],
                    route,
                    labels.get("quantity", labels.get("signal", "")),
                    first.heard if first else heard,
                    ended,
                    first.summary if first else alert["annotations"]["summary"],
                    self._stages.get((route, alert["startsAt"]), ""),
                )
        return sorted(notices.values(), key=lambda notice: notice.heard)

    def _day(self, at: float) -> float:
        return (at - self._began) / self._day_seconds

    def record(self) -> Record:
        """Everything until now."""
        now = self._day(time.time())
        happened = []
        for number, change in self._story.items():
            end = change.day + change.hours / 24.0
            answered = [at for at in self._answered[change.route] if change.day <= at <= end + AFTER / 24.0]
            happened.append(Happened(number, change.day, end, answered if change.breakage else ()))
        version = subprocess.run([installed("prometheus"), "--version"], check=True, capture_output=True, text=True)
        return Record(
            self._seed,
            min(now, self._days),
            self._hour,
            datetime.now(UTC).date().isoformat(),
            __version__,
            re.findall(r"version (\S+)", version.stdout + version.stderr)[0],
            {route: len(times) for route, times in self._answered.items()},
            self._slowest,
            self._missed(now),
            happened,
            self._notices(),
            {route: self._course(route, now) for route in self._routes},
        )

    def _missed(self, now: float) -> float:
        """Share of the scrapes of the month that failed."""
        found = self._stage.value(f'1 - avg_over_time(up{{job="{JOB}"}}[{max(1, round(now * self._day_seconds))}s])')
        return 0.0 if found is None else found

    def _course(self, route: str, now: float) -> Course:
        end = self._began + now * self._day_seconds
        level = f'ragwatch_faithfulness_ratio%s{{route="{route}",judge="{JUDGE}",window="1d",corrected="yes"}}'
        read, precision = (
            f'route:ragwatch_quality:%s6h{{route="{route}",judge="{JUDGE}",quantity="{name}"}}'
            for name in ("faithfulness", "context_precision")
        )
        return Course(
            self._band([level % part for part in ("", "_low", "_high")], end),
            self._band([read % part for part in ("mean", "low", "high")], end),
            self._band([precision % part for part in ("mean", "low", "high")], end),
            self._alarms(route, end),
        )

    def _band(self, series: Sequence[str], end: float) -> list[list[float]]:
        """Value, low and high of a figure with an interval, every two hours."""
        found: list[dict[float, str]] = []
        for one in series:
            shown = self._stage.over(one, self._began, end, 2 * self._hour)
            found.append(dict(shown[0]["values"]) if shown else {})
        return [
            [round(self._day(at), 4), *(round(float(values[at]), 4) for values in found)]
            for at in found[0]
            if all(at in values for values in found)
        ]

    def _alarms(self, route: str, end: float) -> dict[str, list[list[float]]]:
        """Times in which a detector's alarm was active, with the largest change of its figure."""
        alarms: dict[str, list[tuple[float, float, float]]] = {}
        for prefix, label in (("ragwatch_drift", "quantity"), ("ragwatch_traffic_drift", "signal")):
            moved = {
                one["metric"][label]: {at: float(value) for at, value in one["values"]}
                for one in self._stage.over(_moved(prefix, label, route), self._began, end, self._hour / 2)
            }
            for one in self._stage.over(f'{prefix}_alarm{{route="{route}"}} == 1', self._began, end, self._hour / 2):
                name = one["metric"][label]
                alarms[name] = _spans([at for at, _ in one["values"]], moved.get(name, {}), _GAP * self._hour)
        return {
            name: [
                [round(self._day(begin), 3), round(self._day(end), 3), round(change, 3)] for begin, end, change in spans
            ]
            for name, spans in alarms.items()
        }


def _moved(prefix: str, label: str, route: str) -> str:
    """Change of a figure since its alarm began, against before."""
    if prefix == "ragwatch_drift":
        return f'ragwatch_drift_since_ratio{{route="{route}"}} - ragwatch_drift_before_ratio{{route="{route}"}}'
    since, before = (
        f'max by ({label}) ({prefix}_ratio{{route="{route}",period="{period}"}})' for period in ("since", "before")
    )
    return f"{since} - {before}"


def _spans(times: Sequence[float], moved: Mapping[float, float], gap: float) -> list[tuple[float, float, float]]:
    """Begin, end and largest change of each run of times."""
    spans: list[list[float]] = []
    for at in times:
        if not spans or at - spans[-1][1] > gap:
            spans.append([at, at, 0.0])
        spans[-1][1] = at
        spans[-1][2] = max(spans[-1][2], moved.get(at, 0.0), key=abs)
    return [(begin, end, change) for begin, end, change in spans]
