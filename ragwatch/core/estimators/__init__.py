"""Estimators: scores and weights in, Estimate out. One file a kind."""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.estimate import Estimator
from ragwatch.core.estimators import hajek

KINDS: MappingProxyType[str, Estimator] = MappingProxyType({"hajek": hajek.estimate})
