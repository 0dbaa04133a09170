"""Source kind `otlp`: receives traces over OTLP and assembles one record for each RAG request."""

from ragwatch.ports import Source
from ragwatch.sources.otlp.options import Options

__all__ = ["Options", "build"]


def build(options: Options) -> Source:
    """Make the source."""
    from ragwatch.sources.otlp.source import OtlpSource  # noqa: PLC0415 - protobuf, which few installations need

    return OtlpSource(options)
