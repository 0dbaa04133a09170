"""`ragwatch check` of `export.otlp`: whether the endpoint takes both forms, and what is sent there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import findings
from support.otlp_backend import Fault, OtlpBackend

from ragwatch.commands.finding import FAILED, OK, WARNING, Finding


@pytest.fixture
def backend() -> Iterator[OtlpBackend]:
    """A backend that accepts everything."""
    found = OtlpBackend()
    yield found
    found.close()


def finding(folder: Path, otlp: dict[str, Any], **sections: Any) -> Finding:
    """What `check` says of the export."""
    return findings(folder, export={"otlp": otlp}, **sections)["export.otlp"]


def test_an_endpoint_that_takes_both(tmp_path: Path, backend: OtlpBackend) -> None:
    """It says where scores go, that no text does, and that nothing was sent but empty requests."""
    one = finding(tmp_path, {"endpoint": backend.url, "quantities": ["faithfulness"]})
    assert one.state == OK
    assert one.detail.startswith(f"{backend.url} gets scores of faithfulness and no text of users;")
    assert [request.body for request in backend.received] == [b"", b""]


def test_an_endpoint_that_takes_spans_only(tmp_path: Path, backend: OtlpBackend) -> None:
    """What is refused is an error, with what to set."""
    backend.faults = [Fault(404)]
    one = finding(tmp_path, {"endpoint": backend.url, "explanations": True})
    assert one.state == FAILED
    assert "all quantities and texts of answers that explain them" in one.detail
    assert "events: refused: HTTP 404; set logs: false if" in one.detail
    assert "spans: accepted" in one.detail


def test_what_is_lost_without_metadata(tmp_path: Path, backend: OtlpBackend) -> None:
    """Where the store keeps no metadata, spans cannot link to anything: a warning."""
    one = finding(tmp_path, {"endpoint": backend.url}, store={"kind": "sqlite", "texts": "none"})
    assert one.state == WARNING
    assert "store.texts is none" in one.detail


def test_secrets_over_plain_http(tmp_path: Path) -> None:
    """Headers that would travel unencrypted to another host are told; an endpoint that does not answer is an error."""
    options = {"endpoint": "http://nowhere.invalid", "headers": {"Authorization": "Bearer hidden"}, "timeout": "5s"}
    one = finding(tmp_path, options)
    assert one.state == FAILED
    assert "the headers travel unencrypted: write https" in one.detail
    assert "hidden" not in one.detail
