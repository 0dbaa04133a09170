"""Formats: foreign shapes to Sample. Pure; one file a shape, one line here.

A shape is a module with NAME, MAPPING, `matches` and `read` (see `shape.Format`). `custom` and `auto` are readers
that are built. `record.parse` turns the bytes of a line into the record all of them read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.core.sample import Sample
from ragwatch.errors import ConfigError
from ragwatch.formats import canonical, deepeval, haystack, langchain, llamaindex, openai, ragas
from ragwatch.formats.auto import AutoReader
from ragwatch.formats.custom import NAME as CUSTOM
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.shape import Format, Record, RecordReader

# In the order in which `auto` tries them: words that only one library uses come before words that many use.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        canonical.NAME: canonical,
        ragas.NAME: ragas,
        deepeval.NAME: deepeval,
        llamaindex.NAME: llamaindex,
        haystack.NAME: haystack,
        openai.NAME: openai,
        langchain.NAME: langchain,
    }
)
NAMES = ("auto", *FORMATS, CUSTOM)

__all__ = ["CUSTOM", "FORMATS", "NAMES", "Format", "Record", "RecordReader", "Sample", "build"]


def build(name: str, mapping: Mapping[str, str] | None = None) -> RecordReader:
    """The reader with this name. `auto` remembers what fitted last: build one for each source.

    Raises:
        ConfigError: No such format, or a mapping that is missing, wrong, or not asked for.
    """
    if name == CUSTOM:
        if not mapping:
            raise ConfigError("mapping: format custom needs one; `ragwatch map FILE` proposes it")
        return MappingReader(mapping)
    if mapping:
        raise ConfigError(f"mapping: only format custom takes one, this is {name!r}")
    if name == "auto":
        return AutoReader(tuple(FORMATS.values()))
    if name not in FORMATS:
        raise ConfigError(f"format: unknown {name!r}, use one of {', '.join(NAMES)}")
    return FORMATS[name]
