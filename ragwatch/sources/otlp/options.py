"""Options of a source of kind `otlp`."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ragwatch.formats.log_reader import RecordRules
from ragwatch.formats.traces.record import Naming
from ragwatch.ports.sources import PATTERN, GrpcListener, checked_port
from ragwatch.sources.otlp.resolver import ResolveOptions
from ragwatch.sources.record_options import Size, SourceOptions

_MIN_RECEIVING, _MAX_RECEIVING = 2, 32
_RECEIVED_SHARE = 4
"""How many times `queue_bytes` the messages may take that are received over gRPC at once."""


class GrpcOptions(BaseModel):
    """Options of OTLP over gRPC."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: Annotated[str, AfterValidator(checked_port)] = Field(
        "127.0.0.1:4317",
        pattern=PATTERN,
        description="Address of its own; TLS, users and tokens are those of the section `web`.",
    )


class Options(SourceOptions):
    """Options of a source of kind `otlp`."""

    route: str | list[str] = Field(
        "service.name",
        description="Attribute of spans or of their resource that holds the route; of several the first.",
    )
    metadata: dict[str, str] = Field({}, description="Attribute that becomes each field of the metadata.")
    grace_seconds: float = Field(
        10.0,
        ge=0,
        le=600,
        description="How long to wait for further spans after the last one, once the first span of a request is there.",
    )
    wait_seconds: float = Field(
        120.0, gt=0, le=3600, description="How long to wait for that first span after the last other one has arrived."
    )
    without_retrieval: bool = Field(
        default=False,
        description="Judge answers of traces in which nothing was retrieved, as answers without contexts.",
    )
    resolve: ResolveOptions | None = Field(None, description="Where texts of documents are that spans name by id only.")
    grpc: GrpcOptions | None = Field(
        None, description="Receives OTLP over gRPC as well, on an address of its own; needs the extra `grpc`."
    )
    max_body_bytes: Size = Field(20 << 20, gt=0, description="Largest request, as sent and after decompression.")
    queue_bytes: Size = Field(
        32 << 20, gt=0, description="Bytes of requests that are not stored yet; further ones are refused with 429."
    )
    waiting_bytes: Size = Field(
        64 << 20, gt=0, description="Memory of incomplete traces; above that the oldest wait no longer."
    )

    @property
    def naming(self) -> Naming:
        """Which attributes become fields of a record."""
        return Naming((self.route,) if isinstance(self.route, str) else tuple(self.route), self.metadata)

    @property
    def grpc_listener(self) -> GrpcListener | None:
        """Where calls over gRPC are received; None if they are not.

        A message is in memory as a whole before its size is known here: the more may be large, the fewer at once.
        """
        if self.grpc is None:
            return None
        receiving = _RECEIVED_SHARE * self.queue_bytes // self.max_body_bytes
        return GrpcListener(
            self.name,
            self.grpc.listen,
            self.max_body_bytes,
            max(_MIN_RECEIVING, min(_MAX_RECEIVING, receiving)),
        )

    @property
    def rules(self) -> RecordRules:
        """How the records are read that this source assembles."""
        return RecordRules("canonical")
