"""Writes the Grafana dashboards for a configuration, for `ragwatch rules --dashboards`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from ragwatch.commands.terminal import file_name_in_errors
from ragwatch.config import Config, JudgeConfig
from ragwatch.model.quantities import Quantity
from ragwatch.ports.capabilities import record_rules
from ragwatch.rules import RulePlan
from ragwatch.rules.dashboards import PLACEHOLDER, SQL_FILE, BoardPlan, Feature, Json, boards, sql_board
from ragwatch.rules.promql import span
from ragwatch.stores.postgres import Options as PostgresOptions

_FREE = frozenset({"lexical", "local", "detector"})


def write_dashboards(config: Config, plan: RulePlan, folder: Path) -> None:
    """Write the dashboards to a directory, as Grafana's provisioning and import read them."""
    if plan.links.pages is None:
        click.echo(f"web.external_url is not set: links of the dashboards lead to {PLACEHOLDER} until it is", err=True)
    folder.mkdir(parents=True, exist_ok=True)
    shown = board_plan_of(config, plan)
    texts = dashboard_files(shown)
    options = config.store.options
    if isinstance(options, PostgresOptions):
        schema = f"{options.database_schema}_views"
        texts[SQL_FILE] = _text(sql_board(pages=shown.pages, schema=schema, judge=shown.judge))
    for name, text in texts.items():
        with file_name_in_errors(str(folder / name)):
            (folder / name).write_text(text, encoding="utf-8")
        click.echo(f"wrote {folder / name}", err=True)


def dashboard_files(plan: BoardPlan) -> dict[str, str]:
    """Text of the dashboards, by file name."""
    return {name: _text(board) for name, board in boards(plan).items()}


def stored_dashboard() -> str:
    """Text of the dashboard for a PostgreSQL store, with the defaults."""
    return _text(sql_board())


def _text(board: Json) -> str:
    return json.dumps(board, indent=1, ensure_ascii=False) + "\n"


def board_plan_of(config: Config, plan: RulePlan) -> BoardPlan:
    """The plan of the dashboards for a configuration.

    Args:
        config: The configuration.
        plan: The plan of its rules, for the judge and the window that are selected.
    """
    return BoardPlan(
        pages=(plan.links.pages or PLACEHOLDER).rstrip("/"),
        judge=plan.judge,
        window=span(plan.window),
        quantities=frozenset().union(*(_scored(judge) for judge in config.judges)),
        features=frozenset({*_features(config), Feature.LABELS}),
        optional=frozenset({Feature.LABELS}),
    )


def _scored(judge: JudgeConfig) -> frozenset[Quantity]:
    wanted = frozenset(Quantity) if judge.place.quantities is None else frozenset(judge.place.quantities)
    return frozenset(quantity for quantity in wanted if judge.kind not in quantity.row.unread_by)


def _features(config: Config) -> Iterator[Feature]:
    rules = [record_rules(source.options) for source in config.sources]
    has = {
        Feature.PAID: any(judge.kind not in _FREE for judge in config.judges),
        Feature.BUDGET: any(judge.place.budget.caps for judge in config.judges),
        Feature.REPEAT: any(judge.place.repeat > 0 for judge in config.judges),
        Feature.KNOWN_BAD: any(judge.place.known_bad > 0 for judge in config.judges),
        Feature.ANCHORS: bool(config.anchors),
        Feature.CANARIES: bool(config.canaries),
        Feature.MIXED: any(rule.where is not None or rule.prefix is not None for rule in rules),
        Feature.JOINED: any(source.kind == "join" for source in config.sources),
        Feature.TRACES: any(source.kind == "otlp" for source in config.sources),
        Feature.EXPORT: config.settings.export.otlp is not None,
        Feature.SEGMENTS: bool(config.settings.segments),
        Feature.CRITERIA: bool(config.settings.criterion_rules),
    }
    return (feature for feature, is_there in has.items() if is_there)
