"""Source kind `sqs`: reads a queue of Amazon SQS."""

from __future__ import annotations

from ragwatch.sources.sqs.options import Options
from ragwatch.sources.sqs.source import SqsSource, build

__all__ = ["Options", "SqsSource", "build"]
