"""Reports: what a gate found, for machines and people that read builds: JUnit XML, and a summary in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

OUTCOMES = {True: "pass", False: "FAIL", None: "unknown"}


def junit(line: Mapping[str, Any]) -> str:
    """A gate line as JUnit XML: one test case a metric.

    What fails and blocks is a failure. What blocks and is unknown is an error: it must not look like a pass. What only
    warns is skipped with a message where it fails or is unknown, so that it never turns a build red.
    """
    metrics = line["metrics"]
    cases = [_case(each) for each in metrics]
    counts = {name: str(sum(case.find(name) is not None for case in cases)) for name in ("failure", "error", "skipped")}
    plural = {"failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
    suites = Element("testsuites", {"name": "ragwatch", "tests": str(len(cases)), **plural})
    suite = SubElement(suites, "testsuite", {"name": "ragwatch gate", "tests": str(len(cases)), **plural})
    suite.extend(cases)
    SubElement(suite, "system-out").text = f"{line['verdict']}: {_clean(line['recommendation'])}"
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(metric: Mapping[str, Any]) -> Element:
    case = Element("testcase", {"classname": "ragwatch.gate", "name": metric["metric"]})
    if metric["pass"] is True:
        return case
    blocks = metric["severity"] == "block"
    name = ("failure" if metric["pass"] is False else "error") if blocks else "skipped"
    warns = "" if blocks else "warning only: "
    SubElement(case, name, {"message": _clean(f"{warns}{_told(metric)}")})
    return case


def _told(metric: Mapping[str, Any]) -> str:
    reason = f" ({metric['reason']})" if metric["reason"] else ""
    sign = "at most" if metric["lower_is_better"] else "at least"
    return f"{figure(metric)}, wanted {sign} {metric['threshold']:g}{reason}"


def figure(metric: Mapping[str, Any]) -> str:
    """Value, interval and n of a metric in words."""
    if metric["value"] is None:
        return "unknown"
    return f"{metric['value']:.3f} [{metric['low']:.3f}, {metric['high']:.3f}] of {metric['n']}"


def markdown(line: Mapping[str, Any]) -> str:
    """A gate line as a summary in Markdown, such as a pull request shows."""
    rows = [
        f"| {each['metric'].replace('_', ' ')} | {_mean(each)} | {_ends(each)} | {each['n']} "
        f"| {'≤' if each['lower_is_better'] else '≥'} {each['threshold']:g} | {each['severity']} "
        f"| {OUTCOMES[each['pass']]}{_because(each)} |"
        for each in line["metrics"]
    ]
    unread = ", ".join(f"{reason} {count}" for reason, count in line["unread"].items()) or "none"
    parts = [
        f"## ragwatch gate: {line['verdict'].replace('_', ' ')}",
        _escaped(line["recommendation"]),
        "\n".join(
            [
                "| metric | mean | interval | n | threshold | severity | outcome |",
                "|---|---:|---|---:|---|---|---|",
                *rows,
            ]
        ),
        f"Judged {line['judged']} samples by `{line['judge'].replace('`', '')}`; unread: {_escaped(unread)}.",
    ]
    return "\n\n".join(parts) + "\n"


def _mean(metric: Mapping[str, Any]) -> str:
    return "unknown" if metric["value"] is None else f"{metric['value']:.3f}"


def _ends(metric: Mapping[str, Any]) -> str:
    return "" if metric["value"] is None else f"{metric['low']:.3f} – {metric['high']:.3f}"


def _because(metric: Mapping[str, Any]) -> str:
    return f": {_escaped(metric['reason'])}" if metric["reason"] else ""


def _escaped(text: str) -> str:
    """Text that means nothing to Markdown."""
    return "".join(f"\\{each}" if each in "\\`*[]<>|#" else each for each in text)


def _clean(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return "".join(each if each.isprintable() else " " for each in text)
