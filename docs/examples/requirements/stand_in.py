"""A stand-in for two services, with recorded replies: a retriever, and a model that judges.

`python docs/examples/requirements/stand_in.py` serves on port 8765 until it is ended. `POST /search` returns the
recorded contexts of a query, `POST /v1/chat/completions` the recorded reading of a question.

The ids on a page are random. In `readings.json`, `A1` is line 1 of the answer, `R1` line 1 of the reference, `C2` the
second context and `C2.1` its first line.
"""  # noqa: INP001 - a script beside its data, no package

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PORT = 8765
_LINE = re.compile(r"([b-df-hj-np-tv-z]{3,4})(?:\.(\d+))?\| ?(.*)")
_SECTION = re.compile(r"(QUESTION|CONTEXTS|ANSWER|REFERENCE)")
_ID = re.compile(r"[ACR]\d+(?:\.\d+)?")


def recorded(name: str) -> dict[str, Any]:
    """Return the replies in a file of this folder."""
    replies: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return replies


def page_ids(page: str) -> tuple[str, dict[str, str]]:
    """Return the question on a page, and the id on the page of each name in a recorded reading."""
    section, question = "", ""
    ids: dict[str, str] = {}
    contexts: list[str] = []
    for line in page.splitlines():
        heading, marked = _SECTION.fullmatch(line), _LINE.fullmatch(line)
        if heading:
            section = heading[1]
        elif section == "CONTEXTS" and line.startswith("["):
            contexts.append(line.strip("[]"))
            ids[f"C{len(contexts)}"] = contexts[-1]
        elif marked and section == "QUESTION":
            question = marked[3]
        elif marked and marked[2]:
            name = f"C{len(contexts)}." if section == "CONTEXTS" else section[0]
            ids[f"{name}{marked[2]}"] = f"{marked[1]}.{marked[2]}"
    return question, ids


def completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded reading of the question on the page; a reading that is a text is returned as it is."""
    question, ids = page_ids(body["messages"][1]["content"])
    reading = recorded("readings.json").get(question, f"no reading is recorded of {question!r}")
    reply = reading if isinstance(reading, str) else json.dumps(_renamed(reading, ids))
    return {
        "id": "recorded",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


def _renamed(value: Any, ids: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {key: _renamed(inner, ids) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, ids) for inner in value]
    return ids[value] if isinstance(value, str) and _ID.fullmatch(value) else value


def reply_to(path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the recorded reply to a request."""
    if path == "/search":
        return {"hits": recorded("retrieved.json").get(body["query"], [])}
    return completion(body)


class StandIn(BaseHTTPRequestHandler):
    """Replies to POST requests."""

    def do_POST(self) -> None:
        """Reply."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = json.dumps(reply_to(self.path, body)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def serve(port: int) -> ThreadingHTTPServer:
    """Return a server on this port of the loopback interface; 0: any free port."""
    return ThreadingHTTPServer(("127.0.0.1", port), StandIn)


if __name__ == "__main__":
    serve(int(sys.argv[1]) if sys.argv[1:] else PORT).serve_forever()
