"""Exporter: Snapshot and counts -> series. Reads memory only; refuses to compute, and to show what is unknown."""

from __future__ import annotations

from ragwatch.exporter.render import Exporter

__all__ = ["Exporter"]
