"""Defines one query of a panel, and the selectors and groupings that all queries share.

Every selector restricts job, cluster and namespace, and every grouping keeps them: lines of two deployments never look
alike. `cluster` and `namespace` are labels of the scrape configuration, which may be absent; an empty label matches
"All". Recorded series and alerts have no `instance`, and they have lost cluster and namespace where the rules of an
older version recorded them, so their selectors also match series without these labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias

from ragwatch.rules.yaml_writer import JsonValue

Json: TypeAlias = dict[str, JsonValue]
PLACE = ("job", "cluster", "namespace")
RECORDED = 'job=~"$job",cluster=~"$cluster|",namespace=~"$namespace|"'
SCRAPED = 'job=~"$job",cluster=~"$cluster",namespace=~"$namespace",instance=~"$instance"'
ROUTE = 'route=~"$route"'
JUDGE = 'judge="$judge"'
RATE = "$__rate_interval"


class Style(StrEnum):
    """How the lines of a query are drawn."""

    LINE = "line"
    LIMIT = "limit of an interval"
    THRESHOLD = "threshold"
    GOOD = "green"
    DOUBTFUL = "orange"
    BAD = "red"
    UNKNOWN = "blue"


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression with its legend."""

    expr: str  # the expression
    labels: tuple[str, ...] = ()  # labels of its lines besides job, cluster and namespace
    name: str = ""  # text of the legend that the labels do not tell
    style: Style = Style.LINE  # how its lines are drawn
    place: tuple[str, ...] = PLACE  # labels that tell where a line comes from

    source: ClassVar[Mapping[str, JsonValue]] = {"type": "prometheus", "uid": "$datasource"}

    def json(self, kind: str) -> Json:
        """Renders what a panel of a kind asks for; tables and tiles show the present value."""
        # what, then where; Grafana leaves out labels that are absent
        what = [f"{{{{{label}}}}}" for label in self.labels]
        legend = " ".join([*what, *filter(None, [self.name]), *(f"{{{{{label}}}}}" for label in self.place)])
        instant: Json = {"instant": True, "range": False} if kind in {"table", "stat"} else {}
        table: Json = {"format": "table"} if kind == "table" else {}
        return {"expr": self.expr, "legendFormat": legend, **instant, **table}


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query of Grafana's PostgreSQL data source; for a line its columns are `time`, `metric` (a text) and values."""

    sql: str
    labels: ClassVar[tuple[str, ...]] = ()
    style: ClassVar[Style] = Style.LINE
    source: ClassVar[Mapping[str, JsonValue]] = {"type": "grafana-postgresql-datasource", "uid": "$datasource"}

    def json(self, kind: str) -> Json:
        """Renders what a panel of a kind asks for."""
        shape = "table" if kind == "table" else "time_series"
        return {"format": shape, "editorMode": "code", "rawQuery": True, "rawSql": self.sql}


def grouped(operator: str, inner: str, *labels: str, name: str = "", style: Style = Style.LINE) -> Query:
    """Builds an aggregation that keeps job, cluster, namespace and these labels."""
    return Query(f"{operator} by ({keep(*labels)}) ({inner})", labels, name, style)


def keep(*labels: str) -> str:
    """Labels of a grouping: job, cluster, namespace and these.

    >>> keep("route")
    'job, cluster, namespace, route'
    """
    return ", ".join((*PLACE, *labels))


def recorded(name: str, *chosen: str) -> str:
    """Selector of a series of the recording rules."""
    return f"{name}{{{','.join((RECORDED, *chosen))}}}"


def windowed(name: str, *chosen: str) -> str:
    """Selector of a recorded series over the selected window, which its name carries."""
    return recorded(f"{name}${{window}}", *chosen, 'window="$window"')


def scraped(name: str, *chosen: str) -> str:
    """Selector of a series of the exporter."""
    return f"{name}{{{','.join((SCRAPED, *chosen))}}}"


def mean_with_ends(level: str, chosen: Sequence[str], labels: tuple[str, ...], name: str = "") -> tuple[Query, ...]:
    """Builds the queries for a recorded mean and both ends of its interval; `level` is the prefix of the series."""
    mean, high, low = (windowed(f"{level}:ragwatch_quality:{part}", *chosen) for part in ("mean", "high", "low"))
    return (
        Query(mean, labels, name),
        Query(high, labels, "upper end", Style.LIMIT),
        Query(low, labels, "lower end", Style.LIMIT),
    )


def rate(counter: str, *labels: str, chosen: tuple[str, ...] = ()) -> Query:
    """Builds the per-second rate of a counter, summed by labels."""
    return grouped("sum", f"rate({scraped(counter, *chosen)}[{RATE}])", *labels)


def spread(histogram: str, share: float, name: str, *chosen: str) -> Query:
    """Builds a quantile of a histogram."""
    buckets = grouped("sum", f"rate({scraped(f'{histogram}_bucket', *chosen)}[{RATE}])", "le").expr
    return Query(f"histogram_quantile({share}, {buckets})", (), name)
