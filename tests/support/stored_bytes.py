"""Everything that can be read from the bytes of a folder: files as they are, and what compressed texts in them hold."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

STREAM = re.compile(rb"\x78[\x01\x5e\x9c\xda]")  # the beginning of a zlib stream


def readable(folder: Path) -> bytes:
    """The bytes of all files, followed by every compressed text or beginning of one, wherever it starts."""
    content = b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    parts = [content]
    for match in STREAM.finditer(content):
        try:
            parts.append(zlib.decompressobj().decompress(content[match.start() : match.start() + (1 << 16)], 1 << 18))
        except zlib.error:  # no stream, or one that is cut: what comes before the cut
            parts.append(beginning(content[match.start() : match.start() + (1 << 14)]))
    return b"\0".join(parts)


def beginning(stream: bytes) -> bytes:
    """What can be read of a damaged stream."""
    decompressor, parts = zlib.decompressobj(), list[bytes]()
    try:
        for start in range(0, len(stream), 64):
            parts.append(decompressor.decompress(stream[start : start + 64]))
    except zlib.error:
        pass
    return b"".join(parts)
