"""`ragwatch status`: what the overview page says, on one screen of a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ragwatch.commands.api_client import DEFAULT_URL, ApiClient, address_of, read_token
from ragwatch.commands.options.lazy import usual_config
from ragwatch.commands.options.looking import StatusArguments
from ragwatch.commands.terminal import escape_line
from ragwatch.config import load
from ragwatch.errors import ConfigError, RagwatchError

CODES = {"bad": 1, "silent": 3}
WORDS = {"bad": "worse", "unsure": "inconclusive", "good": "good", "plain": "", "silent": "no data"}
_COLOURS = {"bad": "bold red", "unsure": "yellow", "good": "green", "plain": "default", "silent": "dim"}


def status(given: StatusArguments) -> int:
    """Show what a running ragwatch says. Returns 1 if quality is bad, 3 if nothing is judged yet."""
    address = given.url
    if address is None:
        path = given.path or usual_config()
        address = DEFAULT_URL if path is None else address_of(load(path))
    view = ApiClient(address, read_token(given.token_file)).overview(given.window)
    try:
        if given.window not in (None, view["window"]):
            raise ConfigError(f"--window {given.window}: is not configured; use one of: {', '.join(view['windows'])}")
        routes = [route for route in view["routes"] if given.route in (None, route["route"])]
        if not routes:
            names = ", ".join(route["route"] for route in view["routes"])
            raise ConfigError(f"--route {given.route}: is not configured; use one of: {names}")
        if given.as_json:
            click.echo(json.dumps({**view, "routes": routes}))
        else:
            _show({**view, "routes": routes}, address)
        return CODES.get(view["state"], 0)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RagwatchError(
            f"{address}: the response is not that of a ragwatch of this version; give its address with --url"
        ) from error


def _show(view: Mapping[str, Any], address: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    at = "nothing judged yet" if view["at"] is None else f"{datetime.fromtimestamp(view['at'], UTC):%Y-%m-%d %H:%M} UTC"
    console.print(f"[{_COLOURS[view['state']]}]{escape_line(view['headline'])}[/]")
    console.print(f"{at}, window {view['window'] or 'unknown'}, {escape_line(address)}")
    for problem in view["problems"]:
        console.print(f"[red]not ready[/]: {escape_line(problem)}")
    for alarm in view["drift"]:
        route = f" on route {escape_line(alarm['route'])}" if alarm["route"] else ""
        console.print(f"[bold red]drift alarm[/]: {alarm['kind']}: {escape_line(alarm['name'])}{route}")
    for route in view["routes"]:
        console.print(f"\n[bold]route {escape_line(route['route'])}[/]: {_traffic(route)}")
        for judge in route["judges"]:
            table = _table(judge)
            console.print(table if table.row_count else f"{escape_line(judge['judge'])}: {judge['why'] or 'no figure'}")
    for line in _sources_and_judges(view):
        console.print(escape_line(line))


def _traffic(route: Mapping[str, Any]) -> str:
    stages = ", ".join(
        f"{'good' if one['stage'] == 'none' else one['stage']} {one['share']:.0%}" for one in route["stages"]
    )
    return f"{route['drawn']:,.0f} sampled" + (f"; stage at fault: {stages}" if stages else "")


def _table(judge: Mapping[str, Any]) -> Table:
    """The figures of a judge; those that it does not give are left out."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in (escape_line(judge["judge"]), "level", "judge's mean", "threshold", "answers", ""):
        table.add_column(name, no_wrap=True)
    for figure in judge["figures"]:
        if "value" not in figure:
            continue
        level, limit = figure["corrected"], figure["threshold"]
        sign = "<=" if figure["lower_is_better"] else ">="
        unmeasured = figure.get("unmeasured", 0.0)
        unknown = f"unknown ({unmeasured:.0%} in other languages)" if unmeasured else "unknown"
        known = unknown if level is None else f"{level['low']:.2f} .. {level['high']:.2f}"
        table.add_row(
            figure["quantity"].replace("_", " "),
            known if level is None or level["calibrated"] else f"{known} (not calibrated)",
            f"{figure['value']:.3f}",
            "" if limit is None else f"{sign} {limit:g}",
            str(figure["n"]),
            f"[{_COLOURS[figure['state']]}]{WORDS[figure['state']]}[/]",
        )
    return table


def _sources_and_judges(view: Mapping[str, Any]) -> Iterator[str]:
    """One line for each source and each judge."""
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
