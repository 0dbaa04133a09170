"""Certificates for the tests of servers."""

import pytest
from support.certificates import Authority, Pair


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs the certificates of the server and of its clients."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def pair(authority: Authority) -> Pair:
    """The server's certificate."""
    return authority.issue("server", "server")
