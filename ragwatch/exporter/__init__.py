"""Exporter: converts the Snapshot and process counters to Prometheus series, from memory only."""

from ragwatch.exporter.families import AllowedLabels
from ragwatch.exporter.render import Exporter

__all__ = ["AllowedLabels", "Exporter"]
