"""The section `export`: where scores are sent, beside the traces of the answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from ragwatch.config.options import DAY, AnyQuantity, FrozenOptions, Seconds, must, reject_empty_path
from ragwatch.model.quantities import Quantity
from ragwatch.outgoing.addresses import checked_url, url_parts
from ragwatch.pipeline.export.evaluation import ExportRules, ExportTarget, Signal

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_OWN_HEADERS = frozenset({"content-type", "content-encoding", "content-length", "host", "transfer-encoding"})


def _check_endpoint(endpoint: str) -> str:
    parts = url_parts(endpoint)
    if parts is None or parts.port == 0 or parts.query or parts.fragment or any(char.isspace() for char in endpoint):
        raise ValueError(
            f"{endpoint!r} is not a URL; write one such as http://phoenix:6006 or https://otel.example.org"
        )
    if parts.username is not None:
        raise ValueError("holds a user name, which logs would show; write it under `headers` as Authorization")
    for signal in Signal:
        if parts.path.rstrip("/").endswith(signal.path):
            raise ValueError(f"ends with {signal.path}, which is added; leave it out")
    return checked_url(endpoint).rstrip("/")


def _check_headers(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, secret in headers.items():
        value = secret.get_secret_value()
        if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
            raise ValueError(f"{name!r} cannot be set; write the name of a header such as Authorization")
        if not value or not value.isascii() or not value.isprintable():
            raise ValueError(f"{name}: is empty, or holds a character that a header cannot carry")
    return headers


class OtlpExportOptions(FrozenOptions):
    """An OTLP/HTTP endpoint that gets the scores of answers whose trace id is known."""

    endpoint: Annotated[str, AfterValidator(_check_endpoint)] = Field(
        description="Backend that has the traces; /v1/logs and /v1/traces are added."
    )
    headers: Annotated[dict[str, SecretStr], AfterValidator(_check_headers)] = Field(
        default_factory=dict,
        description='Headers, such as {Authorization: "Bearer ${TOKEN}"}; logs and pages do not show values.',
    )
    logs: bool = Field(default=True, description="Send gen_ai.evaluation.result events, one for each score.")
    spans: bool = Field(
        default=True, description="Send OpenInference EVALUATOR spans, one for each verdict, linked to the request."
    )
    quantities: tuple[AnyQuantity, ...] | None = Field(
        None, min_length=1, description="Such as [faithfulness, answer_relevancy]; null for all."
    )
    explanations: bool = Field(
        default=False, description="true: send claims of the answer and missing facts, too: texts of your users."
    )
    resource: dict[str, str] = Field(
        default_factory=dict, description="Resource attributes, such as {openinference.project.name: shop}."
    )
    same_trace: bool = Field(
        default=True, description="The span is a child of the request; false: in a trace of its own."
    )
    max_age: Seconds = Field(DAY, description="Age of an answer from which its scores are no longer sent.")
    batch: int = Field(200, ge=1, le=1000, description="Most verdicts in one request.")
    timeout: Annotated[Seconds, must(lambda seconds: seconds <= 120.0, "is more than 120 s; write less")] = Field(
        10.0, description="Time limit of one request, at most 120s."
    )
    ca_file: Annotated[str, BeforeValidator(reject_empty_path)] | None = Field(
        None, description="Certificates to trust instead of the usual ones."
    )

    @model_validator(mode="after")
    def _check_signals(self) -> Self:
        if not self.logs and not self.spans:
            raise ValueError("sends neither `logs` nor `spans`; set one of them to true, or leave `export.otlp` out")
        return self

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Forms in which scores are sent."""
        return (*((Signal.LOGS,) if self.logs else ()), *((Signal.SPANS,) if self.spans else ()))

    @property
    def target(self) -> ExportTarget:
        """The endpoint."""
        headers = {name: secret.get_secret_value() for name, secret in self.headers.items()}
        return ExportTarget(self.endpoint, headers, self.timeout, self.ca_file)

    def rules(
        self,
        judges: Mapping[str, tuple[Quantity, ...] | None],
        thresholds: Mapping[Quantity, float],
        route_thresholds: Mapping[str, Mapping[Quantity, float | None]],
        every: tuple[Quantity, ...] = tuple(Quantity),
    ) -> ExportRules:
        """What is sent: of all quantities (`every`, criteria included) those that each judge judges; None for all."""
        wanted = every if self.quantities is None else self.quantities
        return ExportRules(
            quantities={
                judge: tuple(quantity for quantity in wanted if own is None or quantity in own)
                for judge, own in judges.items()
            },
            default=wanted,
            thresholds=thresholds,
            route_thresholds=route_thresholds,
            explanations=self.explanations,
            resource=self.resource,
            same_trace=self.same_trace,
            max_age_seconds=self.max_age,
            batch=self.batch,
        )


class ExportOptions(FrozenOptions):
    """Where scores are sent."""

    otlp: OtlpExportOptions | None = None
