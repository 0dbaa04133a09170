"""One Message Batch, and how the API shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

PATH = "/v1/messages/batches"
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


@dataclass(slots=True)
class Batch:
    """One batch. `results` are known once it has ended."""

    id: str
    requests: list[dict[str, Any]]
    created: float
    looks: int = 0
    ended: float | None = None
    results: list[dict[str, Any]] | None = None

    def shown(self, address: str) -> dict[str, Any]:
        """The batch as the API shows it."""
        counts = Counter(each["result"]["type"] for each in self.results or ())
        if self.results is None:
            counts["processing"] = len(self.requests)
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "in_progress" if self.ended is None else "ended",
            "request_counts": {name: counts[name] for name in _COUNTS},
            "created_at": rfc3339(self.created),
            "expires_at": rfc3339(self.created + timedelta(days=1).total_seconds()),
            "ended_at": None if self.ended is None else rfc3339(self.ended),
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"{address}{PATH}/{self.id}/results" if self.ended is not None else None,
        }


def rfc3339(at: float) -> str:
    """A time as both APIs write it."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
