"""Runs a small RAG service with live traffic and injected faults, which `ragwatch demo` monitors.

`corpus`, `index` and `answerer` are the parts of `service`; `endpoint` serves it over HTTP, `request_log` is its log.
`driver` generates load from `questions`, `breakage` defines the faults, `canaries` the canary suite. `Demo` combines
them.
"""

from __future__ import annotations

from ragwatch.demo.breakage import RECOVERED, Breakage
from ragwatch.demo.demo import Demo

__all__ = ["RECOVERED", "Breakage", "Demo"]
