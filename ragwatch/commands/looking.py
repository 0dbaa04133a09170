"""Commands that ask a running ragwatch over HTTP: `status`, `incident`, `open` and `acknowledge`."""

import json
from collections.abc import Iterator, Mapping
from math import inf
from urllib.parse import urlencode

import click
from rich.console import Console
from rich.table import Column, Table

from ragwatch.commands.api_client import DEFAULT_URL, ApiClient, address_of, read_token, reply_of_this_version
from ragwatch.config import Config, load
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.sample import OTHER
from ragwatch.model.stages import FAULTS
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS, calibration_status
from ragwatch.stores.rows import number
from ragwatch.terminal.given import require_route, write_text
from ragwatch.terminal.options import usual_config
from ragwatch.terminal.options.people import (
    AcknowledgeArguments,
    IncidentArguments,
    McpArguments,
    OpenArguments,
    StatusArguments,
)
from ragwatch.terminal.output import compact_table, escape_line, figure, moment, printable, say
from ragwatch.web.pages.figure_replies import JudgeFigures, RouteFigures, Snapshot

CODES = {"bad": 1, "silent": 3}
NOTHING_FAILS = 3
WORDS = {"bad": "worse", "unsure": "inconclusive", "good": "good", "plain": "", "silent": "no data"}
_COLOURS = {"bad": "bold red", "unsure": "yellow", "good": "green", "plain": "default", "silent": "dim"}


Line = Mapping[str, object]


def client_for(
    given: StatusArguments | McpArguments | IncidentArguments | AcknowledgeArguments | OpenArguments,
) -> tuple[ApiClient, Config | None]:
    """The client for `--url`, else for `--config` or the usual configuration, which is returned too."""
    path = None if given.url is not None else given.path or usual_config()
    config = None if path is None else load(path)
    address = given.url or (DEFAULT_URL if config is None else address_of(config))
    return ApiClient(address, read_token(given.token_file)), config


def status(given: StatusArguments) -> int:
    """Show what the overview page says. Returns 1 if quality is bad, 3 if nothing is judged yet."""
    client, _ = client_for(given)
    view = client.overview(given.window)
    with reply_of_this_version(client.address):
        routes = [route for route in view["routes"] if given.route in (None, route["route"])]
        if not routes:
            names = ", ".join(route["route"] for route in view["routes"])
            what = "has no answers" if given.route == OTHER else "is not configured"
            raise ConfigError(f"--route {given.route}: {what}; use one of: {names}")
        view["routes"] = routes
        if given.as_json:
            click.echo(json.dumps(view))
        else:
            _show(view, client.address)
        return CODES.get(view["state"], 0)


def _show(view: Snapshot, address: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    at = "nothing judged yet" if view["at"] is None else moment(view["at"])
    console.print(f"[{_COLOURS[view['state']]}]{escape_line(view['headline'])}[/]")
    console.print(f"{at}, window {escape_line(view['window'] or 'unknown')}, {escape_line(address)}")
    for problem in view["problems"]:
        console.print(f"[red]not ready[/]: {escape_line(problem)}")
    for alarm in view["drift"]:
        where = f" on route {escape_line(alarm['route'])}" if alarm["route"] else ""
        console.print(f"[bold red]drift alarm[/]: {alarm['kind']}: {escape_line(alarm['name'])}{where}")
    for route in view["routes"]:
        console.print(f"\n[bold]route {escape_line(route['route'])}[/]: {_traffic(route, view['window'])}")
        for judge in route["judges"]:
            table = _table(judge)
            console.print(table if table.row_count else escape_line(f"{judge['judge']}: {judge['why'] or 'no figure'}"))
            for line in _uncalibrated(judge):
                console.print(escape_line(line))
    for line in _sources_and_judges(view):
        console.print(escape_line(line))


def _traffic(route: RouteFigures, window: str) -> str:
    stages = ", ".join(
        f"{'good' if one['stage'] == 'none' else one['stage']} {one['share']:.0%}" for one in route["stages"]
    )
    return f"{route['drawn']:,.0f} sampled in all" + (f"; stage at fault in {window}: {stages}" if stages else "")


def _table(judge: JudgeFigures) -> Table:
    """The figures of a judge; those that it does not give are left out. It fits into 80 characters."""
    first = Column(escape_line(judge["judge"]), overflow="fold")
    table = compact_table(first, "level", "judge's\nmean", "threshold", "n", "")
    for one in judge["figures"]:
        if "value" not in one:
            continue
        level, limit = one["corrected"], one["threshold"]
        sign = "<=" if one["lower_is_better"] else ">="
        unmeasured = one.get("unmeasured", 0.0)
        unknown = f"unknown ({unmeasured:.0%} in other languages)" if unmeasured else "unknown"
        known = unknown if level is None else f"{level['low']:.2f} .. {level['high']:.2f}"
        table.add_row(
            one["quantity"].replace("_", " "),
            known if level is None or level["calibrated"] else f"{known} *",
            f"{one['value']:.3f}",
            "" if limit is None else f"{sign} {limit:g}",
            str(one["n"]),
            f"[{_COLOURS[one['state']]}]{WORDS[one['state']]}[/]",
        )
    return table


def _uncalibrated(judge: JudgeFigures) -> Iterator[str]:
    """What is said of levels that are wide: of each that has labels, how many count."""
    levels = {one["quantity"]: one["corrected"] for one in judge["figures"] if "value" in one}
    wide = {quantity: level for quantity, level in levels.items() if level and not level["calibrated"]}
    if wide:
        yield f"* not calibrated: wide until people have labelled about {CALIBRATED_LABELS} answers of a route"
    for quantity, level in wide.items():
        if level["labels_given"]:
            yield f"* {quantity.replace('_', ' ')}: {calibration_status(level['labels'], level['labels_given'])}"


def _sources_and_judges(view: Snapshot) -> Iterator[str]:
    for source in view["sources"]:
        lag = source["lag_seconds"]
        parts = [f"{source['seen']:,.0f} records read"]
        parts += [f"{sum(source['rejected'].values()):,.0f} rejected"] if source["rejected"] else []
        parts += [f"{lag:.0f} s behind"] if lag else []
        parts += [f"{source['unreadable_files']} files unreadable"] if source["unreadable_files"] else []
        yield f"source {source['source']}: {', '.join(parts)}"
    for judge in view["judges"]:
        unjudged = ", ".join(f"{reason} {count:,.0f}" for reason, count in judge["unjudged"].items())
        waiting = f", {judge['pending']:,} waiting" if judge["pending"] else ""
        yield f"judge {judge['judge']}: {judge['judged']:,.0f} judged{waiting}; not judged: {unjudged or 'none'}"


def incident(given: IncidentArguments) -> int:
    """Write what the pages say of a time as Markdown, or print it. Returns 0."""
    client, _ = client_for(given)
    text = client.incident({"since": given.since, "until": given.until, "route": given.route})
    if given.out is None:
        click.echo(printable(text), nl=False)
    else:
        write_text(f"--out {given.out}", given.out, text, advice="; name another file")
    return 0


def acknowledge(given: AcknowledgeArguments) -> None:
    """Acknowledge drift alarms, and print what was acknowledged."""
    if given.judge is not None and (given.quantity is not None or given.route is not None):
        raise ConfigError("--judge: anchors have no quantity and no route; leave those out")
    options = {
        "quantity": given.quantity,
        "route": given.route,
        "judge": given.judge,
        "renew": "true" if given.renew else None,
    }
    client, _ = client_for(given)
    click.echo(printable(client.acknowledge(options)), nl=False)


def open_worst(given: OpenArguments) -> int:
    """Print the address of the worst answer of the newest time. Returns 0, or 3 if there is none."""
    client, config = client_for(given)
    named = load(given.path) if config is None and given.path is not None else config
    if named is not None:
        require_route(named, given.route)
    filters = {"since": given.since} | ({} if given.route is None else {"route": given.route})
    if given.quantity is None:
        worst = _by_stage(client, filters)
    else:  # the worst score, unless it is the best that there can be
        bound = {"above": "0"} if given.quantity in LOW_IS_GOOD else {"below": "1"}
        worst = client.worst({**filters, **bound, "quantity": given.quantity, "sort": "worst"})
    if worst is None:
        what = "with a stage at fault" if given.quantity is None else f"with less than the best {given.quantity}"
        say(f"--since {given.since}: no answer {what}; choose an earlier --since")
        return NOTHING_FAILS
    shown = (None if config is None else config.settings.web.external_url) or client.address
    quantity = given.quantity or str(Quantity.FAITHFULNESS)
    with reply_of_this_version(client.address):
        link = f"{shown.rstrip('/')}/samples/{worst['key']}?{urlencode({'judge': worst['judge_name']})}"
        score, stage = figure(_score(worst, quantity), ".2f"), worst.get("stage") or "unknown"
        about = f"{quantity} {score}, stage at fault {stage}, route {worst['route']}, {moment(number(worst['at']))}"
    say(about)
    click.echo(printable(link))
    return 0


def _by_stage(client: ApiClient, filters: Mapping[str, str]) -> Line | None:
    """The answer with a stage at fault that has the lowest faithfulness; where none has any, the newest one."""
    worst_first = {"quantity": str(Quantity.FAITHFULNESS), "sort": "worst"}
    for order in (worst_first, {}):
        lines = [client.worst({**filters, **order, "stage": str(stage)}) for stage in FAULTS]
        failing = [line for line in lines if line is not None]
        if failing:
            return min(failing, key=_rank)
    return None


def _rank(line: Line) -> tuple[float, float]:
    score, at = _score(line, str(Quantity.FAITHFULNESS)), line.get("at")
    return (inf if score is None else score, -at if isinstance(at, int | float) else inf)


def _score(line: Line, quantity: str) -> float | None:
    scores = line.get("scores")
    score = scores.get(quantity) if isinstance(scores, dict) else None
    return score if isinstance(score, int | float) else None
