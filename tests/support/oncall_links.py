"""Links of alerts with the templates of Prometheus filled in, without Prometheus."""

from __future__ import annotations

import re

_CHOICE = re.compile(r"\{\{ if match [^}]*\}\}above\{\{ else \}\}below\{\{ end \}\}")
_OTHERWISE = re.compile(r"\{\{ else \}\}[^{]*(?=\{\{ end \}\})")


def filled(
    link: str,
    labels: dict[str, str],
    *,
    value: str = "0.9",
    at: str = "1000",
    pages: str = "https://ragwatch.example.com",
) -> str:
    """A link about the worst quantity `labels["quantity"]`, whose queries found something; low values are bad."""
    link = _OTHERWISE.sub("", _CHOICE.sub("below", link))
    for name, text in labels.items():
        link = link.replace(f"{{{{ $labels.{name} }}}}", text)
    known = {
        "{{ $worst }}": labels["quantity"],
        '{{ . | first | value | printf "%.4g" }}': value,
        '{{ . | first | value | printf "%.0f" }}': at,
        '{{ $pages = . | first | label "external_url" }}': "",
        '{{ . | first | label "external_url" }}': pages,
        "{{ $pages }}": pages,
    }
    for template, text in known.items():
        link = link.replace(template, text)
    return re.sub(r"\{\{ (?:with|end|\$worst :=|\$pages :=)[^}]*(?:\{[^}]*\}[^}]*)*\}\}", "", link)
