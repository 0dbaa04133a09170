"""Faults: what can go wrong with a call, as data; the script that says which call it happens to, as posted to /control.

Every field of a script has a default: `{}` is a server without faults.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

CALLS = ("/v1/messages", "/v1/chat/completions")
ENTRY = "/v1/messages/batches/entry"


class Refusal(NamedTuple):
    """An answer that is an error."""

    status: int  # HTTP status
    type: str  # `error.type` of the Anthropic API
    message: str  # for people
    error_code: str | None = None  # `error.details.error_code`, where the API gives one
    retry_after: float | None = None  # seconds in the header `retry-after`, where the API sends one


REFUSALS: Mapping[str, Refusal] = MappingProxyType({
    "rate_limited": Refusal(429, "rate_limit_error", "This request would exceed your rate limit.", None, 1.0),
    "rate_limited_silently": Refusal(429, "rate_limit_error", "This request would exceed your rate limit."),
    "ramp_limit": Refusal(429, "rate_limit_error", "Usage grows too fast.", "ramp_limit_exceeded", 1.0),
    "spend_limit": Refusal(429, "rate_limit_error", "Monthly threshold crossed.", "enforced_spend_limit_reached"),
    "contract_spend_limit": Refusal(429, "rate_limit_error", "Contract is used up.", "contract_spend_limit_reached"),
    "own_spend_limit": Refusal(
        400, "invalid_request_error", "You have reached your specified API usage limits. You will regain access on "
        "2026-12-01 at 00:00 UTC."
    ),
    "workspace_spend_limit": Refusal(
        400, "invalid_request_error", "You have reached your specified workspace API usage limits. You will regain "
        "access on 2026-12-01 at 00:00 UTC."
    ),
    "bad_request": Refusal(400, "invalid_request_error", "messages.0.content: text is required"),
    "bad_key": Refusal(401, "authentication_error", "invalid bearer token"),
    "billing": Refusal(402, "billing_error", "Your credit balance is too low to access the API."),
    "forbidden": Refusal(403, "permission_error", "Your API key does not have permission to use this resource."),
    "retired_model": Refusal(404, "not_found_error", "model: claude-gone"),
    "request_timeout": Refusal(408, "timeout_error", "The request took too long to arrive."),
    "conflict": Refusal(409, "invalid_request_error", "The resource changed meanwhile."),
    "too_large": Refusal(413, "request_too_large", "Request exceeds the maximum size"),
    "server_error": Refusal(500, "api_error", "Internal server error"),
    "unavailable": Refusal(503, "api_error", "Service unavailable"),
    "gateway_timeout": Refusal(504, "timeout_error", "The request timed out while processing"),
    "overloaded": Refusal(529, "overloaded_error", "Overloaded"),
})  # fmt: skip

BODIES = frozenset({"html", "truncated_json"})
"""Status 200, and a body that is none of the protocol's: a proxy's page, the first half of the JSON."""

WIRES = frozenset({"hang", "slow", "reset", "cut_off"})
"""`seconds` without an answer, or before it; the connection reset before, or in the middle of, the answer."""

STOPS: Mapping[str, str] = MappingProxyType({
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "context_window": "model_context_window_exceeded",
    "unknown_stop": "resting",
})  # fmt: skip
"""Ends of a reply that are no end of turn, with the API's word for them."""

FLAWS = frozenset({
    "wrong_schema", "missing_cells", "unquoted", "duplicated_ids", "unknown_id", "not_json", "empty", "fooled",
    "contradicted", "waver",
})  # fmt: skip
"""What is wrong in the reply itself (see `loopback.flaws`)."""

KINDS = frozenset(REFUSALS) | BODIES | WIRES | frozenset(STOPS) | FLAWS | {"expired"}


class Fault(BaseModel):
    """One line of the script."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str  # one of `KINDS`; `expired` is for entries of a batch alone
    path: str | None = None  # path it happens to; unknown means every path of `CALLS`
    times: int | None = None  # it happens so often, then never again; unknown means always
    share: float = 1.0  # share of the calls, drawn with the script's seed
    after: int = 0  # so many calls go by first
    match: str | None = None  # only calls whose body holds this text
    retry_after: float | str | None = None  # header `retry-after`, in place of the kind's own
    should_retry: bool | None = None  # header `x-should-retry`
    seconds: float = Field(default=3600.0, ge=0.0)  # how long it hangs, or how much slower it is

    def concerns(self, path: str, body: str) -> bool:
        """Whether a call is one that it may happen to."""
        known = (self.path,) if self.path else CALLS
        return path in known and (self.match is None or self.match in body)

    def model_post_init(self, _: Any) -> None:
        """Refuse kinds that nobody plays."""
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}; known are {', '.join(sorted(KINDS))}")


class Script:
    """Faults in order: the first that strikes a call is the one that happens to it."""

    def __init__(self, faults: Sequence[Fault] = (), seed: int = 0) -> None:
        self._lines = [(fault, random.Random(f"{seed}/{number}")) for number, fault in enumerate(faults)]
        self._met: Counter[int] = Counter()
        self._struck: Counter[int] = Counter()

    def pick(self, path: str, body: str) -> Fault | None:
        """The fault of this call, if any."""
        for number, (fault, rng) in enumerate(self._lines):
            if not fault.concerns(path, body):
                continue
            self._met[number] += 1
            spent = fault.times is not None and self._struck[number] >= fault.times
            if self._met[number] <= fault.after or spent or rng.random() >= fault.share:
                continue
            self._struck[number] += 1
            return fault
        return None


class Latency(BaseModel):
    """Seconds a call takes: `mean` alone always, with `sigma` lognormal around it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float = 0.0
    sigma: float = 0.0

    def draw(self, rng: random.Random) -> float:
        """Seconds of one call."""
        if self.mean <= 0.0 or self.sigma <= 0.0:
            return self.mean
        return rng.lognormvariate(math.log(self.mean) - self.sigma**2 / 2, self.sigma)


class BatchRules(BaseModel):
    """When a batch ends, and how: after so many looks at it and seconds; `shuffled` results come in another order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    polls: int = 1
    seconds: float = 0.0
    shuffled: bool = True


class Control(BaseModel):
    """A run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    faults: tuple[Fault, ...] = ()  # what goes wrong; the first that strikes a call happens to it
    seed: int = 0  # of shares, latencies and the order of results
    latency: Latency = Latency()  # of Messages and chat calls
    embedding_latency: Latency = Latency()  # of embeddings
    # tokens of thought before each Messages reply, unless the request turns thinking off
    thinking: int = Field(default=0, ge=0)
    # `response_format` types the chat endpoint takes; others get 400
    formats: frozenset[str] = frozenset({"json_schema", "json_object", "text"})
    heeds_schema: bool = True  # false plays a server that takes a JSON schema and does not hold itself to it
    batch: BatchRules = BatchRules()  # of Message Batches
