"""Serves pages and API endpoints on one port. Reads the Board and the Store, never writes; pages have no scripts."""

from __future__ import annotations

from ragwatch.web.app import Action, build_app
from ragwatch.web.guard import allowed_hosts
from ragwatch.web.request_limit import BusyError
from ragwatch.web.samples import ParameterError
from ragwatch.web.scope import PageScope
from ragwatch.web.serve import Server

__all__ = ["Action", "BusyError", "PageScope", "ParameterError", "Server", "allowed_hosts", "build_app"]
