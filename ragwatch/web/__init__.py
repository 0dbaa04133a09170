"""Serves pages and API endpoints on one port. Reads the Board and the Store, never writes; one page has a script."""

from ragwatch.web.access import EVERYTHING, OPEN, Access, RateLimit, RequestPolicy, Right, Token
from ragwatch.web.app import Action, build_app
from ragwatch.web.authentication import Authenticator
from ragwatch.web.json_requests import Rejudge, RejudgeFields
from ragwatch.web.json_values import ParameterError
from ragwatch.web.pages.prompt_page import RebuiltPrompts
from ragwatch.web.request_limit import BusyError
from ragwatch.web.scope import PageScope
from ragwatch.web.server.grpc_server import GrpcServer, grpc_library
from ragwatch.web.server.guard import allowed_hosts
from ragwatch.web.server.serve import Server
from ragwatch.web.server.tls import Tls, TlsSettings, build_tls

__all__ = [
    "EVERYTHING",
    "OPEN",
    "Access",
    "Action",
    "Authenticator",
    "BusyError",
    "GrpcServer",
    "PageScope",
    "ParameterError",
    "RateLimit",
    "RebuiltPrompts",
    "Rejudge",
    "RejudgeFields",
    "RequestPolicy",
    "Right",
    "Server",
    "Tls",
    "TlsSettings",
    "Token",
    "allowed_hosts",
    "build_app",
    "build_tls",
    "grpc_library",
]
