"""Servers of all kinds of brokers, started when a test needs them. See `support.queues`."""

import ctypes
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka
from moto.server import ThreadedMotoServer

from support.brokers import BrokerProcess, nats_server, redis_server
from support.programs import free_port
from support.queues import KafkaQueue, NatsQueue, RedisQueue, SqsQueue


class Brokers:
    """Servers of all kinds, started when they are needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: dict[str, Any] = {}
        self._ends: list[Callable[[], object]] = []

    def queue(self, kind: str, **options: Any) -> Any:
        """A queue of its own."""
        if kind not in self._started:
            self._started[kind] = getattr(self, f"_{kind}")()
        kinds: dict[str, Any] = {one.kind: one for one in (RedisQueue, NatsQueue, SqsQueue, KafkaQueue)}
        if kind == "kafka":
            options["is_mock"] = "RAGWATCH_TEST_KAFKA" not in os.environ
        return kinds[kind](self._started[kind], **options)

    def _process(self, start: Callable[[Path], BrokerProcess], name: str) -> BrokerProcess:
        folder = self._folder / name
        folder.mkdir()
        process = start(folder)
        self._ends.append(process.kill)
        return process

    def _redis_streams(self) -> BrokerProcess:
        return self._process(redis_server, "redis")

    def _nats(self) -> BrokerProcess:
        return self._process(nats_server, "nats")

    def _sqs(self) -> str:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer("127.0.0.1", free_port(), verbose=False)
        server.start()
        self._ends.append(server.stop)
        host, port = server.get_host_and_port()
        return f"http://{host}:{port}"

    def _kafka(self) -> str:
        if given := os.environ.get("RAGWATCH_TEST_KAFKA"):
            return given
        library = ctypes.CDLL(confluent_kafka.cimpl.__file__)  # which finds what librdkafka exports, too
        for name in ("rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(library, name).restype = ctypes.c_void_p
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        owner = ctypes.c_void_p(library.rd_kafka_new(0, None, None, 0))
        cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(owner, 1))
        # A group forms at once, and not after three seconds; what is shown is the same.
        library.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 50)
        self._ends.append(partial(library.rd_kafka_mock_cluster_destroy, cluster))
        self._ends.append(partial(library.rd_kafka_destroy, owner))
        return str(library.rd_kafka_mock_cluster_bootstraps(cluster).decode())

    def close(self) -> None:
        """End all."""
        for end in self._ends:
            end()
