"""`ragwatch calibrate`: a judge beside people."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ragwatch.commands.client import LabelClient, address_of, label_client, options_of
from ragwatch.commands.stored import picked_line
from ragwatch.config import load
from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.labels.agreement import Agreement, ShareEstimate, TooFewLabels
from ragwatch.core.labels.calibration import (
    CLASSES,
    CalibrationReport,
    ClaimReport,
    LabelledClaim,
    LabelledScore,
    LabelScale,
    report,
)
from ragwatch.core.labels.label import Label, from_record
from ragwatch.core.scores import Quantity
from ragwatch.errors import ConfigError
from ragwatch.telemetry import configure_logging

TOO_FEW = 3
BAR = 20
Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _LabelledVerdicts:
    """Labels beside the verdicts of one judge's newest version."""

    version: str
    pairs: Mapping[Quantity, Sequence[LabelledScore]]
    claims: Sequence[LabelledClaim]
    twice: Sequence[tuple[float, float]]
    of_others: int
    picked: float | None


def calibrate(path: Path, name: str | None, out: Path | None, url: str | None, *, as_json: bool) -> int:
    """Compare a judge with people: agreement, kappa, sensitivity, specificity, reliability, and the worst misses."""
    configure_logging("error")
    config = load(path)
    known = [each.place.name for each in config.judges]
    judge = name or known[0]
    if judge not in known:
        raise ConfigError(f"--judge {judge}: is not configured; use one of: {', '.join(known)}")
    options = options_of(config)
    with label_client(config, url) as way:
        beside = _read(way, judge, time.time() - options.fresh)
    found = report(
        beside.pairs,
        beside.claims,
        beside.twice,
        minimum=options.minimum,
        confidence=config.settings.estimates.confidence,
    )
    place = (config.settings.web.external_url or url or address_of(config)).rstrip("/")
    record = {
        "judge": judge,
        "version": beside.version,
        "of_other_versions": beside.of_others,
        "picked_until": beside.picked,
        **to_record(found, place),
    }
    if out is not None:
        _write(out, json.dumps(record, indent=2) + "\n")
    if as_json:
        click.echo(json.dumps(record))
    else:
        _show(found, beside, judge, place)
    return 0 if found.conclusive else TOO_FEW


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written: {error.strerror}") from error


def _read(way: LabelClient, judge: str, since: float) -> _LabelledVerdicts:
    by_key: dict[str, list[Label]] = {}
    for record in way.labels():
        label = from_record(record)
        if label.at >= since:
            by_key.setdefault(label.key, []).append(label)
    until = way.picked_until()
    lines = {key: line for key in by_key if (line := _line(way.verdicts(key), judge)) is not None}
    picked = {key for key, line in lines.items() if until is not None and float(line["at"]) <= until}
    lines = {key: line for key, line in lines.items() if key not in picked}
    newest = max(lines.values(), key=lambda line: float(line["at"]), default=None)
    version = "" if newest is None else str(newest["judge"]["version"])
    mine = {key: line for key, line in lines.items() if line["judge"]["version"] == version}
    pairs: dict[Quantity, list[LabelledScore]] = {}
    claims: list[LabelledClaim] = []
    twice: list[tuple[float, float]] = []
    for key, line in mine.items():
        for pair_of, pair in _pairs(key, line, by_key[key]):
            pairs.setdefault(pair_of, []).append(pair)
        claims += _claims(line, by_key[key])
        scored = [each.scores[Quantity.FAITHFULNESS] for each in by_key[key] if Quantity.FAITHFULNESS in each.scores]
        twice += [(scored[0], scored[1])] if len(scored) > 1 else []
    return _LabelledVerdicts(version, pairs, claims, twice, len(lines) - len(mine), until if picked else None)


def _line(lines: Iterable[Line], judge: str) -> Line | None:
    return next((line for line in lines if line["judge_name"] == judge and line["outcome"] == "judged"), None)


def _pairs(key: str, line: Line, labels: Sequence[Label]) -> Iterable[tuple[Quantity, LabelledScore]]:
    probability = next((each.probability for each in reversed(labels) if each.probability is not None), None)
    for quantity in Quantity:
        said = [each.scores[quantity] for each in labels if quantity in each.scores]
        score = line["scores"].get(str(quantity))
        if said and score is not None:
            yield quantity, LabelledScore(key, score, sum(said) / len(said), probability)


def _claims(line: Line, labels: Sequence[Label]) -> Iterable[LabelledClaim]:
    for label in labels:
        if len(label.claims) == len(line["claims"]):
            for claim, word in zip(line["claims"], label.claims, strict=True):
                if word is not None:
                    yield LabelledClaim(ClaimVerdict(claim["verdict"]), claim["support"], word)


def to_record(found: CalibrationReport, place: str) -> dict[str, Any]:
    """A report as JSON values.

    Args:
        found: The report.
        place: Address under which pages of samples are.
    """
    return {
        "conclusive": found.conclusive,
        "missing": found.missing,
        "quantities": {
            str(quantity): {
                "labels": each.labels,
                "labelled": _agreement(each.labelled, [str(level.name).lower() for level in LabelScale]),
                "traffic": None if each.traffic is None else asdict(each.traffic),
                "worst": [asdict(pair) | {"link": f"{place}/samples/{pair.key}"} for pair in each.worst],
            }
            for quantity, each in found.quantities.items()
        },
        "claims": None if found.claims is None else _claims_record(found.claims),
        "people": None
        if found.people is None
        else _agreement(found.people, [level.name.lower() for level in LabelScale]),
    }


def _claims_record(found: ClaimReport) -> dict[str, Any]:
    return {
        "labelled": _agreement(found.labelled, list(map(str, CLASSES))),
        "reliability": [asdict(each) for each in found.curve],
        "calibration_error": found.error,
    }


def _agreement(found: Agreement | TooFewLabels, names: Sequence[str]) -> dict[str, Any]:
    if isinstance(found, TooFewLabels):
        return {"too_few": asdict(found)}
    record = asdict(found)
    for rate in ("sensitivity", "specificity"):
        record[rate] = dict(zip(names, record[rate], strict=True))
    return record


def _show(found: CalibrationReport, beside: _LabelledVerdicts, judge: str, place: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(_summary(found, f"{judge} ({beside.version})"))
    if beside.of_others:
        console.print(f"{beside.of_others} labelled answers were read by another version of {judge}: left out.")
    if beside.picked is not None:
        console.print(picked_line(beside.picked))
    rates = _rates(found)
    if rates.row_count:
        console.print(rates)
    if isinstance(found.people, Agreement):
        console.print(f"two people agree with each other: {_figure(found.people.agreement)}")
    if found.claims is not None and found.claims.curve:
        _show_curve(console, found.claims)
    for quantity, each in found.quantities.items():
        for pair in each.worst:
            told = f"{quantity}: judge {pair.judge:.2f}, people {pair.people:.2f}"
            console.print(f"{told}  {place}/samples/{pair.key}")
    if not found.conclusive:
        console.print(f"Too few labels to conclude anything: label {found.missing} more (ragwatch label).")


def _summary(found: CalibrationReport, title: str) -> Table:
    table = Table("quantity", "labels", "agree", "in traffic", "kappa", title=title, show_edge=False)
    for quantity, each in found.quantities.items():
        if isinstance(each.labelled, TooFewLabels):
            figures = [f"{each.labelled.missing} more needed"]
        else:
            figures = [_figure(share) for share in (each.labelled.agreement, each.traffic, each.labelled.kappa)]
        table.add_row(quantity, str(each.labels), *figures)
    return table


def _rates(found: CalibrationReport) -> Table:
    table = Table("what", "class", "sensitivity", "specificity", title="of what people called so, and not so")
    for quantity, each in found.quantities.items():
        _add_rates(table, quantity, each.labelled, [level.name.lower() for level in LabelScale])
    if found.claims is not None:
        _add_rates(table, "claims", found.claims.labelled, list(map(str, CLASSES)))
    return table


def _add_rates(table: Table, what: str, found: Agreement | TooFewLabels, names: Sequence[str]) -> None:
    if isinstance(found, Agreement):
        for name, hits, rejections in zip(names, found.sensitivity, found.specificity, strict=True):
            if hits is not None:
                table.add_row(what, name, _figure(hits), _figure(rejections))


def _show_curve(console: Console, found: ClaimReport) -> None:
    console.print("probability of support that the judge gave, and the share that people found supported:")
    for each in found.curve:
        bar = "█" * round(BAR * each.said.value)
        console.print(f"  {each.mean_score:.2f}  {bar:<{BAR}}  {_figure(each.said)}  {each.said.n} claims")
    console.print(f"  they are {found.error or 0.0:.3f} apart on average")


def _figure(found: ShareEstimate | None) -> str:
    return "unknown" if found is None else f"{found.value:.2f} ({found.low:.2f}-{found.high:.2f})"
