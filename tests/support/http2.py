"""Frames of HTTP/2 as a hostile client writes them."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, CONTINUATION = 0, 1, 4, 9


def frame(kind: int, payload: bytes, stream: int = 1) -> bytes:
    """A frame without flags."""
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + stream.to_bytes(4, "big") + payload
