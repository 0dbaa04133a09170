"""A small real RAG service with live traffic, and ways to make it worse: what `ragwatch demo` watches.

corpus -> index -> answerer are the service (`service`, over HTTP in `endpoint`), `journal` is its log, `questions` and
`driver` its users, `breakage` what goes wrong with it, `canaries` what ragwatch itself asks. `stage_play` puts them
together as `Demo`.
"""

from __future__ import annotations

from ragwatch.demo.breakage import Breakage
from ragwatch.demo.canaries import askable
from ragwatch.demo.stage_play import Demo

__all__ = ["Breakage", "Demo", "askable"]
