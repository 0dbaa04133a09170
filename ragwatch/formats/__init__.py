"""Formats: convert logged records to samples. Pure functions.

A format has the members of `shape.Format`; to add one, add it to `FORMATS`.
`custom` and `auto` are reader classes. `record.parse` decodes a line into the record that readers take.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.core.sample import Sample
from ragwatch.errors import ConfigError
from ragwatch.formats import (
    canonical,
    file_search,
    haystack,
    langchain,
    langserve,
    llamaindex,
    openai,
    ragas,
    vertex,
)
from ragwatch.formats.auto import AutoReader
from ragwatch.formats.custom import NAME as CUSTOM
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.providers import PROVIDERS
from ragwatch.formats.shape import Format, Record, RecordReader
from ragwatch.formats.traces.export import EXPORTS

# In the order in which `auto` tries them: formats with keys of one library before formats with common keys.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        canonical.NAME: canonical,
        ragas.NAME: ragas,
        llamaindex.NAME: llamaindex,
        haystack.NAME: haystack,
        **{export.NAME: export for export in EXPORTS},
        **{provider.NAME: provider for provider in PROVIDERS},
        vertex.NAME: vertex,
        file_search.NAME: file_search,
        openai.NAME: openai,
        langserve.NAME: langserve,
        langchain.NAME: langchain,
    }
)
TRACES = frozenset(export.NAME for export in EXPORTS)
NAMES = ("auto", *FORMATS, CUSTOM)

__all__ = ["CUSTOM", "FORMATS", "NAMES", "TRACES", "Format", "Record", "RecordReader", "Sample", "build"]


def build(name: str, mapping: Mapping[str, str] | None = None) -> RecordReader:
    """Build the reader of a format. `auto` keeps state about the last match: build one reader per source.

    Raises:
        ConfigError: The format is unknown, or the mapping is missing, invalid or not applicable.
    """
    if name == CUSTOM:
        if not mapping:
            raise ConfigError("mapping: format custom needs one; `ragwatch init --print FILE` proposes it")
        return MappingReader(mapping)
    if mapping:
        raise ConfigError(f"mapping: only format custom takes one, this is {name!r}")
    if name == "auto":
        return AutoReader(tuple(FORMATS.values()))
    if name not in FORMATS:
        raise ConfigError(f"format: unknown {name!r}, use one of {', '.join(NAMES)}")
    return FORMATS[name]
