"""Judges, by kind. A kind is a module with `Options` and `build(options, name=, context=)`; add new ones to `KINDS`."""

from collections.abc import Mapping

from ragwatch.judges import claude, openai
from ragwatch.judges.detector import judge as detector
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.local import judge as local
from ragwatch.ports import Judge, Kind

KINDS: Mapping[str, Kind[Judge]] = {
    "lexical": lexical,
    "local": local,
    "detector": detector,
    "claude": claude,
    "openai": openai,
}
