"""Reports of a gate for CI systems: JUnit XML, and a summary in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ragwatch.offline.gates.gate_line import ChangeLine, GateFigure, GateLine, GateMetric, ReferenceLine
from ragwatch.statistics.question_scores import LostLine
from ragwatch.statistics.reference import StatementLine

OUTCOMES = {True: "pass", False: "FAIL", None: "unknown"}
_MOST_LISTED = 10
"""Questions that a text lists; JSON has all."""


def junit(line: GateLine) -> str:
    """Convert a gate line to JUnit XML, with one test case per metric, and one per metric that must not fall.

    A metric of severity `block` that fails is a failure; if it is unknown, it is an error, because it must not look
    like a pass. A metric of severity `warn` that fails or is unknown is skipped with a message: it never fails a build.
    So is one that does not apply. A fall since the baseline is a failure, with the questions that lost.
    """
    cases = [_case(metric) for metric in line["metrics"]]
    if line["baseline"] is not None:
        watched = {name: one for name, one in line["baseline"]["changes"].items() if one["watched"]}
        cases += [_change_case(name, one, lost_lines(line["baseline"]["lost"])) for name, one in watched.items()]
    counts = {name: str(sum(case.find(name) is not None for case in cases)) for name in ("failure", "error", "skipped")}
    totals = {"failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
    suites = Element("testsuites", {"name": "ragwatch", "tests": str(len(cases)), **totals})
    suite = SubElement(suites, "testsuite", {"name": "ragwatch gate", "tests": str(len(cases)), **totals})
    suite.extend(cases)
    said = [f"{line['verdict']}: {line['recommendation']}", *unsupported_lines(line)]
    SubElement(suite, "system-out").text = "\n".join(map(_clean, said))
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(metric: GateMetric) -> Element:
    case = Element("testcase", {"classname": "ragwatch.gate", "name": metric["metric"]})
    if metric["pass"] is True:
        return case
    blocks = metric["severity"] == "block" and metric["applies"]
    name = ("failure" if metric["pass"] is False else "error") if blocks else "skipped"
    prefix = "" if blocks else "warning only: " if metric["applies"] else "does not apply: "
    SubElement(case, name, {"message": _clean(f"{prefix}{_message(metric)}")})
    return case


def _change_case(name: str, one: ChangeLine, lost: Sequence[str]) -> Element:
    case = Element("testcase", {"classname": "ragwatch.gate.baseline", "name": f"{name} since the baseline"})
    if one["held"] is not True:
        kind = "failure" if one["held"] is False else "error"
        SubElement(case, kind, {"message": _clean(one["described"])}).text = "\n".join(map(_clean, lost))
    return case


def lost_lines(lost: Sequence[LostLine], since: str = "since the baseline") -> list[str]:
    """Names the questions that lost most, with their scores before and now."""
    rows = [f"{_place(one)}: {_losses(one)}" for one in lost]
    return _listed(f"{len(lost)} questions lost {since}, those that lost most first:", rows)


def unsupported_lines(line: GateLine) -> list[str]:
    """Names the statements of references that no context supports, by row, with the words that no context has."""
    rows = line["references"]
    count = sum(len(row["missing"]) for row in rows)
    listed = []
    for row in rows:
        parts = (one for one in row["statements"] if not one["supported"])
        listed.append(f"{_place(row)}: " + "; ".join(_missing(one) for one in parts))
    return _listed(f"{count} statements of the references of {len(rows)} rows are supported by no context:", listed)


def _listed(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    lines = [title, *(f"  {row}" for row in rows[:_MOST_LISTED])]
    return lines if len(rows) <= _MOST_LISTED else [*lines, f"  and {len(rows) - _MOST_LISTED} more, in --json"]


def _missing(one: StatementLine) -> str:
    text = " ".join(one["text"].split())
    words = ", ".join(one["missing"])
    return f'"{text}"' if words in ("", one["text"]) else f'"{text}" (no context has: {words})'


def _place(one: LostLine | ReferenceLine, *, linked: bool = True) -> str:
    question, link = " ".join((one["question"] or "").split()), one["link"] if linked else None
    return " ".join(part for part in (one["id"], f"({question})" if question else "", link) if part)


def _losses(one: LostLine) -> str:
    return ", ".join(f"{name} {before:.3f} -> {now:.3f}" for name, (before, now) in one["scores"].items())


def _message(metric: GateMetric) -> str:
    reason = f" ({metric['reason']})" if metric["reason"] else ""
    sign = "at most" if metric["lower_is_better"] else "at least"
    return f"{figure(metric)}, required {sign} {metric['threshold']:g}{reason}"


def figure(metric: GateFigure) -> str:
    """Value, interval and n of a metric as text."""
    if metric["value"] is None:
        return "unknown"
    return f"{metric['value']:.3f} [{metric['low']:.3f}, {metric['high']:.3f}] of {metric['n']}"


def sections(line: GateLine) -> list[tuple[str, str]]:
    """Sections of a gate line with their titles: test cases of retrieval and answers are never averaged together.

    The title is empty if there are no relevance judgements, so that there is one section only.
    """
    cases = line["cases"]
    ranked = cases["retrieval"] + cases["end_to_end"]
    if not ranked and all(row["section"] == "answers" for row in line["metrics"]):
        return [("answers", "")]
    if not cases["generation"] + cases["end_to_end"]:
        return [("retrieval", f"Retrieval: {ranked} test cases with relevance judgements; no row has an answer")]
    both = f", {cases['end_to_end']} of them with an answer" if cases["end_to_end"] else ""
    answers = "generation test cases" if cases["retrieval"] else "answers"
    number = cases["generation"] + cases["end_to_end"]
    return [
        ("retrieval", f"Retrieval: {ranked} test cases with relevance judgements{both}"),
        ("answers", f"Generation: {number} {answers}"),
    ]


def measures(line: GateLine) -> list[str]:
    """Say of which metrics the level was compared, and of which the judge's mean."""
    judged = [row for row in line["metrics"] if row["section"] == "answers" and row["value"] is not None]
    lines = [
        f"{row['metric']}: level in people's terms, with {row['labels']} labels; "
        f"the judge's mean is {row['mean']:.3f} ({row['mean_low']:.3f}..{row['mean_high']:.3f})"
        for row in judged
        if row["corrected"]
    ]
    means = ", ".join(row["metric"] for row in judged if not row["corrected"])
    return [*lines, f"judge's mean, not corrected: {means}"] if means else lines


def markdown(line: GateLine) -> str:
    """Convert a gate line to a summary in Markdown, for example for a pull request."""
    unread = ", ".join(f"{reason} {count}" for reason, count in line["unread"].items()) or "none"
    parts = [f"## ragwatch gate: {line['verdict'].replace('_', ' ')}", _escape(line["recommendation"])]
    for section, title in sections(line):
        parts += [*([f"### {title}"] if title else []), _markdown_table(line["metrics"], line["figures"], section)]
    parts += [_escape(text) for text in measures(line)]
    lost = lost_lines(line["baseline"]["lost"]) if line["baseline"] is not None else []
    if lost and line["baseline"] is not None:
        rows = [f"| {_linked(one)} | {_escape(_losses(one))} |" for one in line["baseline"]["lost"][:_MOST_LISTED]]
        parts += [f"### {lost[0]}", "\n".join(["| question | scores |", "|---|---|", *rows])]
        parts += lost[_MOST_LISTED + 1 :]
    title, *unsupported = unsupported_lines(line) or [""]
    if title:
        parts += [f"### {title}", "\n".join(f"- {_escape(row.strip())}" for row in unsupported)]
    parts.append(
        f"Judged {line['judged']} samples by `{line['judge'].replace('`', '')}`; not judged: {_escape(unread)}."
    )
    return "\n\n".join(parts) + "\n"


def _linked(one: LostLine) -> str:
    text = _escape(_place(one, linked=False))
    return text if one["link"] is None else f"[{text}](<{one['link'].translate(_NOT_IN_LINKS)}>)"


def _markdown_table(metrics: Sequence[GateMetric], figures: Sequence[GateFigure], section: str) -> str:
    rows = [
        f"| {metric['metric'].replace('_', ' ')} | {_mean(metric)} | {_interval(metric)} | {metric['n']} "
        f"| {'≤' if metric['lower_is_better'] else '≥'} {metric['threshold']:g} | {metric['severity']} "
        f"| {OUTCOMES[metric['pass']]}{_reason(metric)} |"
        for metric in metrics
        if metric["section"] == section
    ]
    rows += [
        f"| {row['metric'].replace('_', ' ')} | {_mean(row)} | {_interval(row)} | {row['n']} | | | |"
        for row in figures
        if row["section"] == section
    ]
    head = ["| metric | value | interval | n | threshold | severity | outcome |", "|---|---:|---|---:|---|---|---|"]
    return "\n".join([*head, *rows])


def _mean(metric: GateFigure) -> str:
    return "unknown" if metric["value"] is None else f"{metric['value']:.3f}"


def _interval(metric: GateFigure) -> str:
    return "" if metric["value"] is None else f"{metric['low']:.3f} – {metric['high']:.3f}"


def _reason(metric: GateMetric) -> str:
    return f": {_escape(metric['reason'])}" if metric["reason"] else ""


def _escape(text: str) -> str:
    """Escape the special characters of Markdown."""
    return "".join(f"\\{char}" if char in "\\`*[]<>|#" else char for char in text)


_NOT_IN_LINKS = {ord("<"): "%3C", ord(">"): "%3E", ord("|"): "%7C", ord("\n"): ""}


def _clean(text: str) -> str:
    """Replace the characters that are not allowed in XML."""
    return "".join(char if char.isprintable() else " " for char in text)
