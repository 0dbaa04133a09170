"""What is sent where: the rules of one export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ragwatch.model.quantities import Quantity


class Signal(StrEnum):
    """A form in which scores are sent. The values are label values."""

    LOGS = "logs"
    SPANS = "spans"

    @property
    def path(self) -> str:
        """Path of the OTLP service, below the endpoint."""
        return "/v1/logs" if self is Signal.LOGS else "/v1/traces"


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """An OTLP endpoint.

    Attributes:
        endpoint: Its URL, without the path of a service.
        headers: Headers of every request; their values are secrets.
        timeout_seconds: Timeout of one request.
        ca_file: Certificates to trust instead of the usual ones.
    """

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 10.0
    ca_file: str | None = None


@dataclass(frozen=True, slots=True)
class ExportRules:
    """What is sent.

    Attributes:
        quantities: Quantities that are sent, by judge; a judge that is not named sends `default`.
        default: Quantities of other judges.
        thresholds: Thresholds of all routes: a score has the label `pass` or `fail` where there is one.
        route_thresholds: Those of single routes, which take precedence; None for none.
        explanations: Whether texts of the answer are sent that explain a score.
        resource: Attributes of the resource.
        same_trace: Whether a span is a child of the request that was judged; else it is in a trace of its own.
        max_age_seconds: Age of an answer from which its scores are no longer sent.
        batch: Most verdicts in one request.
    """

    quantities: Mapping[str, tuple[Quantity, ...]] = field(default_factory=dict)
    default: tuple[Quantity, ...] = tuple(Quantity)
    thresholds: Mapping[Quantity, float] = field(default_factory=dict)
    route_thresholds: Mapping[str, Mapping[Quantity, float | None]] = field(default_factory=dict)
    explanations: bool = False
    resource: Mapping[str, str] = field(default_factory=dict)
    same_trace: bool = True
    max_age_seconds: float = 86400.0
    batch: int = 200

    def of_judge(self, judge: str) -> tuple[Quantity, ...]:
        """Quantities of a judge that are sent."""
        return self.quantities.get(judge, self.default)

    def threshold(self, quantity: Quantity, route: str) -> float | None:
        """Threshold of a quantity on a route; None if it has none."""
        own = self.route_thresholds.get(route, {})
        return own[quantity] if quantity in own else self.thresholds.get(quantity)
