"""How far the embedded judges agree with people, set by set: the figures of issue 8 and of the model card.

    python bench/judge_accuracy.py [FILES] [--limit N] [--jobs N] [--weights FOLDER] [--svg FILE] [--json FILE]

Without files every labelled set of ../shared/data/judge is read, and beside them relevance, the use of the first
context, and calibration over all dev sets together. A row's score is the least support among its claims; what a judge
calls no claim at all (a question, small talk) has none, counts in no figure, and is the share "unknown". F1 is that of
the judge's own verdicts at its shipped thresholds; intervals are 95 % bootstraps over rows that share no text. Sets
that a judge was fitted on are marked: what it says there proves nothing.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accuracy.figures import Figure
from accuracy.plot import plot
from accuracy.readings import LEXICAL, LOCAL, Bench, Reading, readers
from accuracy.rows import BARS, RELEVANCE, LabelledSet, Row, defaults, derived, read, related
from accuracy.scoring import MEASURES, Scored, contradictions, relevance, scored
from accuracy.swaps import SWAPS, swaps
from accuracy.use import (
    EXPERTQA,
    RATES,
    cited,
    cited_among_cells,
    first_of_clapnq,
    first_of_expertqa,
    gauge_errors,
)
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ragwatch.judges.local.artefact import TABLE, released_folder

FITTED_LEXICAL = ("judge/train/attributionbench", *RELEVANCE)
RELEVANCE_BARS = {RELEVANCE[0]: 0.92, RELEVANCE[1]: 0.85, RELEVANCE[2]: 0.95}
Read = Callable[[Iterable[Row]], Iterator[dict[str, Reading]]]


@dataclass
class Report:
    """What is told, and kept for the plot and for JSON."""

    console: Console  # where it is told
    fitted: dict[str, tuple[str, ...]]  # beginnings of the names of the sets that each judge was fitted on
    rounds: int  # bootstrap rounds
    scores: list[Scored] = field(default_factory=list)  # figures of the sets
    others: list[dict[str, Any]] = field(default_factory=list)  # figures of anything else: what, judge, name, value

    def tell(self, of: LabelledSet, readings: Sequence[dict[str, Reading]]) -> None:
        """Figures of one set, a line for each judge."""
        share = sum(row.unfaithful for row in of.rows) / max(1, len(of.rows))
        bar = "" if of.bar is None else f", bar {of.bar:.2f}"
        table = Table(
            "judge",
            *MEASURES,
            title=f"{of.name}: {len(of.rows)} rows, {share:.0%} unfaithful{bar}",
            title_justify="left",
        )
        for judge in readings[0] if readings else ():
            mine = [each[judge] for each in readings]
            fitted = of.name.startswith(self.fitted.get(judge, ()))
            found = scored(of, judge, mine, fitted=fitted, rounds=self.rounds)
            self.scores.append(found)
            table.add_row(f"{judge} (fitted)" if fitted else judge, *(str(found.figures[name]) for name in MEASURES))
        self.console.print(table)

    def line(self, what: str, judge: str, figure: Any, bar: str) -> None:  # noqa: ANN401 - a Figure
        """One figure with its bar."""
        self.others.append({"what": what, "judge": judge, "figure": figure.to_record(), "bar": bar})
        self.console.print(f"{what:62s} {judge:8s} {figure}  (bar {bar})")

    def to_record(self, versions: dict[str, str]) -> dict[str, Any]:
        """Everything, for JSON."""
        return {"versions": versions, "sets": [each.to_record() for each in self.scores], "others": self.others}


def main() -> None:
    """Read, tell, draw."""
    options = arguments()
    console = Console(width=None if Console().is_terminal else 160)
    bench = Bench(options.weights)
    versions = {LEXICAL: bench.lexical.version, LOCAL: bench.local.version}
    console.print(f"lexical: {versions[LEXICAL]}; local: {versions[LOCAL]}")
    if bench.local.fallback:
        console.print(f"[yellow]no local judge: {bench.local.fallback}[/]")
    fitted = {LEXICAL: FITTED_LEXICAL, LOCAL: (*FITTED_LEXICAL, *fitted_on(options.weights or released_folder()))}
    report = Report(console, fitted, options.rounds)
    with readers(options.weights, options.jobs) as reading:
        known = sets(options, reading, report)
        if not options.files:
            extras(options.limit, reading, report, known)
        if not options.files or options.use:
            uses(options.limit, reading, report)
    if options.svg:
        options.svg.write_text(plot(report.scores, "AUROC of unfaithful answers and claims, by set"), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(report.to_record(versions), indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "files", nargs="*", type=Path, help="labelled JSONL files; none for all of ../shared/data/judge"
    )
    parser.add_argument("--use", action="store_true", help="the use of contexts too, which is told without files")
    parser.add_argument("--limit", type=int, help="rows of a set at most, drawn at random but alike each time")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="processes")
    parser.add_argument("--rounds", type=int, default=400, help="bootstrap rounds; 0 for no intervals")
    parser.add_argument("--weights", type=Path, help="folder of another model")
    parser.add_argument("--svg", type=Path, help="where to draw AUROC by set")
    parser.add_argument("--json", type=Path, help="where to write every figure")
    return parser.parse_args()


def fitted_on(folder: Path) -> tuple[str, ...]:
    """Beginnings of the names of sets that the model was fitted on, as `local.json` tells (`trained.fitted_on`)."""
    try:
        trained = json.loads((folder / TABLE).read_text(encoding="utf-8")).get("trained", {})
    except OSError:
        return ()
    return tuple(trained.get("fitted_on", ()))


def sets(
    options: argparse.Namespace, reading: Read, report: Report
) -> list[tuple[LabelledSet, list[dict[str, Reading]]]]:
    """Read and tell every set."""
    known = []
    for path in options.files or defaults():
        of = read(path, options.limit)
        if not of.rows:
            report.console.print(f"{of.name}: no row has a verdict")
            continue
        found = watched(of, reading, report.console)
        report.tell(of, found)
        known.append((of, found))
        if of.name.startswith("judge/dev/fever_symmetric") and LOCAL in found[0]:
            for name, figure in contradictions(of, [each[LOCAL] for each in found], options.rounds).items():
                report.line(f"{of.name}: {name}", LOCAL, figure, ">= .70" if "F1" in name else "<= .05")
    return known


def extras(
    limit: int | None, reading: Read, report: Report, known: Sequence[tuple[LabelledSet, list[dict[str, Reading]]]]
) -> None:
    """What is asked beside the sets: unions, derived answers, relevance."""
    for part in ("judge/dev", "judge/train/summedits"):
        some = [(of, found) for of, found in known if of.name.startswith(part)]
        union = LabelledSet(f"{part}, together", [row for of, _ in some for row in of.rows], BARS.get(part))
        report.tell(union, [each for _, found in some for each in found])
    answers = derived(limit)
    report.tell(answers, watched(answers, reading, report.console))
    swapped = swaps(min(limit or SWAPS, SWAPS))
    report.tell(swapped, watched(swapped, reading, report.console))
    for name in RELEVANCE:
        of = related(name, limit)
        found = watched(of, reading, report.console)
        for judge in (LEXICAL, LOCAL):
            if judge in found[0]:
                mine = [each[judge] for each in found]
                report.line(
                    f"{name}: relevance AUROC", judge, relevance(of, mine, report.rounds), f">= {RELEVANCE_BARS[name]}"
                )


def uses(limit: int | None, reading: Read, report: Report) -> None:
    """Use of contexts: cited passages among the cells, and whether the first was used, with the error of its gauge."""
    of = cited(limit)
    found = watched(of, reading, report.console)
    for judge in (LEXICAL, LOCAL):
        if judge in found[0]:
            shares = cited_among_cells(of, [each[judge] for each in found], report.rounds)
            for name, figure in shares.items():
                report.line(
                    f"{EXPERTQA}: {name} cited, is a cell", judge, figure, ">= .80" if name == "one" else ">= .85"
                )
    gauges(limit, reading, report)


def gauges(limit: int | None, reading: Read, report: Report) -> None:
    """The error of the gauge of ignored first contexts."""
    for of in (first_of_clapnq(limit), first_of_expertqa(limit)):
        read_all = watched(of, reading, report.console)
        for judge in (LEXICAL, LOCAL):
            if judge in read_all[0]:
                for rate, error in zip(RATES, gauge_errors(of, [each[judge] for each in read_all]), strict=True):
                    report.line(f"{of.name}: gauge at {rate:.0%} ignored", judge, Figure(error), "error <= .03")


def watched(of: LabelledSet, reading: Read, console: Console) -> list[dict[str, Reading]]:
    """Readings of all rows, with a bar where somebody looks on."""
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        return list(progress.track(reading(of.rows), total=len(of.rows), description=of.name))


if __name__ == "__main__":
    main()
