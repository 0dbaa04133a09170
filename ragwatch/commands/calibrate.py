"""`ragwatch calibrate`: compares the verdicts of a judge with labels by people."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter

import click
from rich.console import Console
from rich.table import Table

from ragwatch.commands.api_client import LabelClient, address_of, label_client
from ragwatch.config import load
from ragwatch.model.quantities import Quantity
from ragwatch.offline.state_reader import retention_warning
from ragwatch.statistics.estimators.interval import CountedInterval
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS
from ragwatch.statistics.labels.agreement import Agreement, TooFewLabels
from ragwatch.statistics.labels.calibration import (
    CLASSES,
    CalibrationReport,
    ClaimReport,
    LabelledClaim,
    LabelledScore,
    LabelScale,
    report,
)
from ragwatch.statistics.labels.label import Label, from_record
from ragwatch.statistics.verdict_line import VerdictRecord
from ragwatch.terminal.given import judge_name, write_text
from ragwatch.terminal.options.people import CalibrateArguments

NOT_ENOUGH_DATA = 3
BAR_WIDTH = 20  # characters
LEVELS = tuple(level.name.lower() for level in LabelScale)


@dataclass(frozen=True, slots=True)
class _LabelledVerdicts:
    """Labels with the verdicts of the newest version of one judge."""

    version: str  # version of the judge; empty if it has no verdict on a labelled answer
    scores: Mapping[Quantity, Sequence[LabelledScore]]  # scores by the judge and by people, by quantity
    claims: Sequence[LabelledClaim]  # claims with the verdict of the judge and the label
    two_annotators: Sequence[tuple[float, float]]  # faithfulness scores by two annotators of the same answer
    other_versions: int  # number of labelled answers that were read by another version of the judge
    pruned_until: float | None  # retention has deleted a part of the answers up to this instant, which are left out


def calibrate(given: CalibrateArguments) -> int:
    """Compare a judge with labels: agreement, kappa, sensitivity, specificity, reliability, largest disagreements."""
    config = load(given.path)
    judge = judge_name(config, given.name or None)
    options = config.settings.labels
    with label_client(config, given.url, given.token_file) as client:
        verdicts = _read(client, judge, time.time() - options.fresh, frozenset(options.leave_out))
    calibration = report(
        verdicts.scores,
        verdicts.claims,
        verdicts.two_annotators,
        minimum=options.minimum,
        confidence=config.settings.estimates.confidence,
    )
    address = (config.settings.web.external_url or given.url or address_of(config)).rstrip("/")
    record = {
        "judge": judge,
        "version": verdicts.version,
        "of_other_versions": verdicts.other_versions,
        "picked_until": verdicts.pruned_until,
        **to_record(calibration, address),
    }
    if given.out is not None:
        write_text(f"--out {given.out}", given.out, json.dumps(record, indent=2) + "\n")
    if given.as_json:
        click.echo(json.dumps(record))
    else:
        _show(calibration, verdicts, judge, address)
    return 0 if calibration.conclusive else NOT_ENOUGH_DATA


def _read(client: LabelClient, judge: str, since: float, left_out: frozenset[str]) -> _LabelledVerdicts:
    """Read the labels since an instant that count, and the verdicts of a judge on the labelled answers."""
    by_key: dict[str, list[Label]] = {}
    for record in client.labels():
        label = from_record(record)
        if label.at >= since and label.revoked is None and label.annotator not in left_out:
            by_key.setdefault(label.key, []).append(label)
    until = client.pruned_until()
    answers = {key: client.answer(key) for key in by_key}
    verdicts = {
        key: verdict
        for key, (listed, _) in answers.items()
        for verdict in reversed(listed)  # the first one stays
        if verdict.judge == judge and verdict.judged
    }
    picked = {key for key, verdict in verdicts.items() if until is not None and verdict.at <= until}
    verdicts = {key: verdict for key, verdict in verdicts.items() if key not in picked}
    newest = max(verdicts.values(), key=lambda verdict: verdict.at, default=None)
    version = "" if newest is None else newest.judge_version
    current = {key: verdict for key, verdict in verdicts.items() if verdict.judge_version == version}
    scores: dict[Quantity, list[LabelledScore]] = {}
    claims: list[LabelledClaim] = []
    two_annotators: list[tuple[float, float]] = []
    for key, verdict in current.items():
        labels = by_key[key]
        for quantity, score in _labelled_scores(key, verdict, labels, answers[key][1]):
            scores.setdefault(quantity, []).append(score)
        claims += _labelled_claims(verdict, labels)
        faithful = [label.scores[Quantity.FAITHFULNESS] for label in labels if Quantity.FAITHFULNESS in label.scores]
        two_annotators += [(faithful[0], faithful[1])] if len(faithful) > 1 else []
    return _LabelledVerdicts(
        version=version,
        scores=scores,
        claims=claims,
        two_annotators=two_annotators,
        other_versions=len(verdicts) - len(current),
        pruned_until=until if picked else None,
    )


def _labelled_scores(
    key: str, verdict: VerdictRecord, labels: Sequence[Label], chars: int | None
) -> Iterable[tuple[Quantity, LabelledScore]]:
    probability = next((label.probability for label in reversed(labels) if label.probability is not None), None)
    for quantity in verdict.scores:
        by_people = [label.scores[quantity] for label in labels if quantity in label.scores]
        score = verdict.scores[quantity]
        if by_people and score is not None:
            yield quantity, LabelledScore(key, score, sum(by_people) / len(by_people), probability, chars)


def _labelled_claims(verdict: VerdictRecord, labels: Sequence[Label]) -> Iterable[LabelledClaim]:
    for label in labels:
        if len(label.claims) == len(verdict.claims):
            for claim, labelled in zip(verdict.claims, label.claims, strict=True):
                if labelled is not None:
                    yield LabelledClaim(claim.verdict, claim.support, labelled)


def to_record(calibration: CalibrationReport, address: str) -> dict[str, object]:
    """Convert a report to JSON values; links lead to the pages at the address."""
    return {
        "conclusive": calibration.conclusive,
        "missing": calibration.missing,
        "quantities": {
            str(quantity): {
                "labels": row.labels,
                "labelled": _agreement(row.labelled, LEVELS),
                "traffic": None if row.traffic is None else asdict(row.traffic),
                "length": (
                    {"too_few": asdict(row.length)}
                    if isinstance(row.length, TooFewLabels)
                    else asdict(row.length) | {"matters": row.length.matters}
                ),
                "worst": [asdict(pair) | {"link": f"{address}/samples/{pair.key}"} for pair in row.worst],
            }
            for quantity, row in calibration.quantities.items()
        },
        "claims": None if calibration.claims is None else _claims_record(calibration.claims),
        "people": None if calibration.people is None else _agreement(calibration.people, LEVELS),
    }


def _claims_record(claims: ClaimReport) -> dict[str, object]:
    return {
        "labelled": _agreement(claims.labelled, CLASSES),
        "reliability": [asdict(point) for point in claims.curve],
        "calibration_error": claims.error,
    }


def _agreement(agreement: Agreement | TooFewLabels, names: Sequence[str]) -> dict[str, object]:
    if isinstance(agreement, TooFewLabels):
        return {"too_few": asdict(agreement)}
    record = asdict(agreement)
    for rate in ("sensitivity", "specificity"):
        record[rate] = dict(zip(names, record[rate], strict=True))
    return record


def _show(calibration: CalibrationReport, verdicts: _LabelledVerdicts, judge: str, address: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    title = f"{judge} ({verdicts.version})" if verdicts.version else judge
    for table in filter(attrgetter("row_count"), (_summary(calibration, title), _rates(calibration))):
        console.print(table)
    if verdicts.other_versions:
        console.print(f"{verdicts.other_versions} labelled answers were read by another version of {judge}: left out.")
    if verdicts.pruned_until is not None:
        console.print(retention_warning(verdicts.pruned_until))
    for line in _length_lines(calibration, judge):
        console.print(line)
    if isinstance(calibration.people, Agreement):
        console.print(f"two annotators agree with each other: {_figure(calibration.people.agreement)}")
    if calibration.claims is not None and calibration.claims.curve:
        _show_curve(console, calibration.claims)
    for quantity, row in calibration.quantities.items():
        for pair in row.worst:
            scores = f"{quantity}: judge {pair.judge:.2f}, people {pair.people:.2f}"
            console.print(f"{scores}  {address}/samples/{pair.key}")
    for line in _wanted(calibration, judge, f"{address}/label?for=calibration"):
        console.print(line)


def _wanted(calibration: CalibrationReport, judge: str, page: str) -> Iterable[str]:
    """How many more labels are needed, and for what."""
    calibrated = f"A level is calibrated from {CALIBRATED_LABELS} labels of its route on"
    if not calibration.quantities:
        yield f"No label counts yet for an answer that {judge} has judged. {calibrated}."
        yield f"Label answers: ragwatch label --annotator YOU --count {CALIBRATED_LABELS}, or the page {page}"
    elif not calibration.conclusive:
        more = f"label at least {calibration.missing} more (ragwatch label)"
        yield f"Too few labels for a conclusion: {more}. {calibrated}."
    elif calibration.uncalibrated:
        yield f"{calibrated}: label {calibration.uncalibrated} more (ragwatch label)."


def _length_lines(calibration: CalibrationReport, judge: str) -> Iterable[str]:
    """The judge's preference for long answers, by quantity, with a warning where it matters."""
    for quantity, row in calibration.quantities.items():
        if isinstance(row.length, TooFewLabels):
            continue
        figure = _figure(row.length.correlation)
        yield f"{quantity}: rank correlation of score and answer length at equal label {figure}"
        if row.length.matters:
            kind = "long" if row.length.correlation.value > 0.0 else "short"
            yield (
                f"[yellow]warning: {judge} prefers {kind} answers in {quantity}: people gave them the same score. "
                "Compare variants that differ in length by labels, not by this judge.[/]"
            )


def _summary(calibration: CalibrationReport, title: str) -> Table:
    table = Table("quantity", "labels", "agree", "in traffic", "kappa", title=title, show_edge=False)
    for quantity, row in calibration.quantities.items():
        if isinstance(row.labelled, TooFewLabels):
            figures = [f"{row.labelled.missing} more needed"]
        else:
            figures = [_figure(share) for share in (row.labelled.agreement, row.traffic, row.labelled.kappa)]
        table.add_row(quantity, str(row.labels), *figures)
    return table


def _rates(calibration: CalibrationReport) -> Table:
    table = Table("quantity", "class", "sensitivity", "specificity", title="agreement by class of the label")
    for quantity, row in calibration.quantities.items():
        _add_rates(table, quantity, row.labelled, LEVELS)
    if calibration.claims is not None:
        _add_rates(table, "claims", calibration.claims.labelled, CLASSES)
    return table


def _add_rates(table: Table, quantity: str, agreement: Agreement | TooFewLabels, names: Sequence[str]) -> None:
    if isinstance(agreement, Agreement):
        for name, sensitivity, specificity in zip(names, agreement.sensitivity, agreement.specificity, strict=True):
            if sensitivity is not None:
                table.add_row(quantity, name, _figure(sensitivity), _figure(specificity))


def _show_curve(console: Console, claims: ClaimReport) -> None:
    console.print("reliability: probability of support by the judge, and share that people label as supported:")
    for point in claims.curve:
        bar = "█" * round(BAR_WIDTH * point.said.value)
        console.print(f"  {point.mean_score:.2f}  {bar:<{BAR_WIDTH}}  {_figure(point.said)}  n {point.said.n}")
    console.print(f"  mean calibration error {claims.error or 0.0:.3f}")


def _figure(share: CountedInterval | None) -> str:
    return "unknown" if share is None else share.shown()
