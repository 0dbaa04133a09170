"""`web.config_file` from end to end: Prometheus scrapes over TLS with a password and with a certificate."""

import base64
import json
import shutil
import ssl
import threading
import time
import urllib.request
from functools import partial
from pathlib import Path

import bcrypt
import httpx
import pytest
from functional.daemon import RagwatchProcess, asked, write_config
from functional.forked import run_forked
from functional.test_prometheus import prometheus, until
from support.certificates import Authority
from support.patience import DEADLINE, wait_until
from support.programs import free_port

PASSWORD, TOKEN = "correct horse", "0123456789abcdef0123456789abcdef"
FILE = """
tls_server_config: {{cert_file: server.crt, key_file: server.key{tls}}}
{users}
"""
CLIENTS = ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: authority.crt, client_allowed_sans: [prom]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, a server, and Prometheus as its client."""
    made = tmp_path_factory.mktemp("certificates")
    authority = Authority(made)
    authority.issue("server", "server")
    authority.issue("next", "server")
    authority.issue("prom", "client", "DNS:prom")
    return made


def protected(folder: Path, name: str, *, tls: str = "", users: bool = True, web: str = "") -> Path:
    """A configuration whose server speaks TLS."""
    place = folder / name
    place.mkdir()
    for file in ("server.crt", "server.key", "authority.crt"):
        shutil.copy(folder / file, place / file)
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(5)).decode()
    text = f"basic_auth_users: {{prometheus: {hashed}, anna: {hashed}}}" if users else ""
    (place / "web.yml").write_text(FILE.format(tls=tls, users=text))
    return write_config(place, web=f"{{listen: '127.0.0.1:0', config_file: web.yml{web}}}")


def get(url: str, authority: Path, user: str | None = None) -> int:
    """Status of a request over a connection of its own."""
    context = ssl.create_default_context(cafile=str(authority))
    login = "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
    return asked(url, headers={} if user is None else {"Authorization": login}, context=context).status


@pytest.mark.costly
async def test_x20_prometheus_scrapes_over_tls(folder: Path) -> None:
    """With the password and with a certificate it scrapes; with a wrong password and without a certificate not."""
    port = free_port()
    rights, named = ", users: {prometheus: [metrics]}", ", users: {prom: [metrics]}"
    with (
        RagwatchProcess(protected(folder, "passwords", web=rights)) as first,
        RagwatchProcess(protected(folder, "clients", tls=CLIENTS, users=False, web=named)) as second,
    ):
        ports = [int(each.wait_until_serving().address.rpartition(":")[2]) for each in (first, second)]
        assert first.address.startswith("https://")
        ca, own = {"ca_file": "authority.crt"}, {"cert_file": "prom.crt", "key_file": "prom.key"}
        jobs = {
            name: {"basic_auth": {"username": "prometheus", "password": password}, "tls_config": ca}
            for name, password in (("password", PASSWORD), ("wrong", "wrong"))
        }
        jobs |= {"certificate": {"tls_config": {**ca, **own}}, "stranger": {"tls_config": ca}}
        for (name, job), at in zip(jobs.items(), (ports[0], ports[0], ports[1], ports[1]), strict=True):
            job |= {"job_name": name, "scheme": "https", "static_configs": [{"targets": [f"127.0.0.1:{at}"]}]}
        often = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        with prometheus(folder, port, json.dumps({"global": often, "scrape_configs": [*jobs.values()]})):
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                expected = {"password": "1", "wrong": "0", "certificate": "1", "stranger": "0"}
                await until(
                    client,
                    "/api/v1/query",
                    lambda data: {row["metric"]["job"]: row["value"][1] for row in data["result"]} == expected,
                    query="up",
                )
        authority = folder / "authority.crt"
        assert get(first.address + "/", authority, "prometheus") == 403
        assert get(first.address + "/metrics", authority, "anna") == 200
        assert get(first.address + "/metrics", authority) == 401


@pytest.mark.costly
def test_x20_certificates_rotate_under_load(folder: Path) -> None:
    """While new connections scrape without a pause, certificate and key are replaced in turn: none fails."""
    config = protected(folder, "rotation", web=", open: [metrics]")
    served: set[str] = set()
    failures: list[str] = []
    scrapes = [0]
    done = threading.Event()
    context = ssl.create_default_context(cafile=str(folder / "authority.crt"))

    def scrape(address: str) -> None:
        while not done.is_set():
            try:
                with urllib.request.urlopen(f"{address}/metrics", timeout=DEADLINE, context=context) as response:
                    response.read()
                scrapes[0] += 1
                time.sleep(0.01)  # the machine has other tests to run
            except OSError as error:
                failures.append(str(error))

    def certificate(port: int) -> str:
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=DEADLINE)

    with RagwatchProcess(config) as ragwatch:
        address = ragwatch.wait_until_serving().address
        port = int(address.rpartition(":")[2])
        threads = [threading.Thread(target=scrape, args=[address]) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for name in ("next", "server"):
                served.add(certificate(port))
                for kind in ("crt", "key"):
                    shutil.copy(folder / f"{name}.{kind}", config.parent / f"server.{kind}")
                    time.sleep(0.3)  # long enough for a look at half a pair: there is nothing else to wait for
                written = (folder / f"{name}.crt").read_text().replace("\r", "")
                is_served = partial(lambda wanted: certificate(port) == wanted, written)
                wait_until(is_served, f"the certificate {name}")
                was_scraped = partial(lambda number: scrapes[0] >= number or failures, scrapes[0] + 10)
                wait_until(was_scraped, "ten scrapes with it")
        finally:
            done.set()
            for thread in threads:
                thread.join()
    assert failures == []
    assert len(served) == 2


@pytest.mark.costly
def test_x19_beyond_loopback_it_does_not_start_open(tmp_path: Path) -> None:
    """Exit code 2, before anything is opened, with what to write; `check` says the same."""
    config = write_config(tmp_path, web="{listen: '0.0.0.0:0'}")
    for command in ("run", "check"):
        done = run_forked(command, "--config", config)
        assert done.returncode == (2 if command == "run" else 1)
        if command == "run":
            assert "web.listen: 0.0.0.0:0 can be reached from other machines" in done.stderr
    assert not (tmp_path / "state").exists()
