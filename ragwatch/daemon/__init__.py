"""The daemon: builds kinds, joins rooms, repeats their steps, serves, listens to signals. It alone reads the clock."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ragwatch import __version__, stores
from ragwatch.board import Board
from ragwatch.config import Config, load
from ragwatch.daemon.actions import actions
from ragwatch.daemon.loops import Loop, StopSignal, repeat
from ragwatch.daemon.process import limit_malloc_arenas, log_library_warnings, raise_file_limit, settle
from ragwatch.daemon.reloading import ReloadQueue
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.schedule import JobSchedule
from ragwatch.daemon.shared import Clock, Shared
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.ports import RecordedEvent
from ragwatch.telemetry import Telemetry
from ragwatch.web import PageScope, Server, allowed_hosts, build_app

POLL_SECONDS = 0.25
QUEUE_SECONDS = 1.0
GIVE_UP_SECONDS = 60.0
TERMINATED_TWICE = 1


class Daemon:
    """One running ragwatch.

    Args:
        config: What to run.
        path: Where the configuration came from, read again on reload; None when it cannot be reloaded.
        clock: Seconds since the epoch.

    Raises:
        StoreError: The state directory cannot be used.
        ConfigError: A kind cannot be built as configured.
    """

    def __init__(
        self, config: Config, *, path: Path | None = None, telemetry: Telemetry | None = None, clock: Clock = time.time
    ) -> None:
        limit_malloc_arenas()
        raise_file_limit()
        self._path = path
        self.board = Board()
        self.telemetry = telemetry or Telemetry()
        self.store = stores.KINDS[config.store.kind].build(config.store.options, config.settings.state)
        self._shared = Shared(self.store, self.board, self.telemetry, clock)
        self._failing: dict[str, str] = {}
        self._rooms = build(config, self._shared, self._problems)
        self.telemetry.judges_in_force(self._rooms.fallbacks())
        self._next: Runtime | None = None
        self._swapped = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._halt = StopSignal()
        self._stopping = asyncio.Event()
        self._schedule = JobSchedule(self.telemetry)
        self._reloads = ReloadQueue(self.reload)
        host, _, port = config.settings.web.listen.rpartition(":")
        self._host = host
        self._server = self._built_server(host.strip("[]"), int(port))
        self.telemetry.configured(clock())

    @property
    def rooms(self) -> Runtime:
        """The rooms in force."""
        return self._rooms

    @asynccontextmanager
    async def in_force(self) -> AsyncIterator[Runtime]:
        """The rooms in force, which no reload replaces meanwhile. For what is short."""
        async with self._turn:
            yield self._rooms

    def _problems(self) -> tuple[str, ...]:
        failing = tuple(f"{name}: {why}" for name, why in sorted(self._failing.items()))
        return (*failing, *self._rooms.problems())

    def ready(self) -> tuple[str, ...]:
        """What keeps ragwatch from being ready; empty when it is."""
        if self.board.look() is None:
            return ("no figures yet: the first digest is under way",)
        return self._problems()

    def record(self, kind: str, detail: str) -> None:
        """Keep an event of the service we watch beside its verdicts."""
        self.telemetry.announced(kind, detail)
        self.store.record(RecordedEvent(self._shared.clock(), kind, detail))

    async def run(
        self, started: Callable[[str], None] = lambda _: None, notice: Callable[[str], None] = lambda _: None
    ) -> None:
        """Serve and work until stopped.

        Args:
            started: Given the address once it answers.
            notice: Given what a person should know once the sources were looked at.

        Raises:
            AddressError: Nothing can listen on the configured address.
        """
        served = asyncio.Event()

        def serving(port: int) -> None:
            address = f"http://{self._host}:{port}"
            self.telemetry.started(address, __version__)
            started(address)
            served.set()

        try:
            asyncio.get_running_loop().set_exception_handler(log_library_warnings(self.telemetry))
            self._server.bind()  # first, so that nothing has been read where the address is taken
            self._rooms.resume(self.store)
            await self._rooms.digest.step()
            self._schedule.start(self._rooms)
            settle()
            async with asyncio.TaskGroup() as group:
                serve = group.create_task(self._server.serve(started=serving))
                work = group.create_task(self._work())
                notices = group.create_task(self._rooms.tell_skipped(served, notice))
                serve.add_done_callback(lambda _: self.stop())
                work.add_done_callback(lambda _: self.stop())
                await self._stopping.wait()
                drained = await self._drain(work)
                notices.cancel()
                self._server.stop()
        finally:
            self._server.close()
            await self._rooms.close()
            self.store.close()
        self.telemetry.stopped(drained=drained)

    def _built_server(self, host: str, port: int) -> Server:
        app = build_app(
            board=self.board,
            store=self.store,
            render=self._render,
            scope=self._scope,
            ready=self.ready,
            actions=actions(self._reloads.request, self.in_force),
            labels=lambda: self._rooms.labelling,
            hosts=lambda: allowed_hosts(host, self._rooms.config.settings.web.external_url),
            external=lambda: self._rooms.config.settings.web.external_url,
            clock=self._shared.clock,
        )
        return Server(app, host, port)

    def _scope(self) -> PageScope:
        config = self._rooms.config
        return PageScope(
            sources=tuple(each.source.name for each in self._rooms.intakes),
            routes=config.settings.routes,
            judges=tuple(each.place.name for each in config.judges),
            suites=tuple(each.place.suite for each in config.canaries),
            windows=tuple(config.settings.estimates.windows),
            thresholds={str(quantity): worst for quantity, worst in config.settings.live_thresholds.items()},
        )

    def _render(self, accept: str, names: Sequence[str]) -> tuple[bytes, str]:
        return self._rooms.exporter.render(accept, names)  # those in force now, not when the server was built

    async def _work(self) -> None:
        """The loops of the rooms in force, until stopped; a reload halts them, swaps the rooms and goes on."""
        try:
            while not self._stopping.is_set():
                async with asyncio.TaskGroup() as group:
                    for loop in self._loops(self._rooms):
                        group.create_task(repeat(loop, self._halt, self.telemetry, self._failing))
                await self._finish()
                if self._next is not None and not self._stopping.is_set():
                    await self._swap(self._next)
        finally:
            self._swapped.set()  # nobody may wait for a swap that will not come
        with suppress(RagwatchError):  # the last figures, if the store still answers
            await self._rooms.sampling.step()
            await self._rooms.digest.step()

    async def _swap(self, fresh: Runtime) -> None:
        async with self._turn:
            await self._rooms.close()
            fresh.inherit(self._rooms)
            await asyncio.to_thread(fresh.resume, self.store)  # it waits for whoever writes; scrapes do not
            self._rooms, self._next = fresh, None
            self.telemetry.judges_in_force(fresh.fallbacks())
        self._schedule.start(fresh)
        self._failing.clear()
        self._halt = StopSignal()
        self._swapped.set()

    async def _finish(self) -> None:
        try:
            await self._rooms.finish()
        except RagwatchError as error:  # the store cannot write: these draws stay pending
            self.telemetry.step_failed("judging", error)

    def _loops(self, rooms: Runtime) -> Sequence[Loop]:
        admitted = {judging.judge.name: asyncio.Event() for judging in rooms.judgings}
        every = rooms.config.settings.estimates.every
        return (
            *(
                Loop(f"source {each.source.name}", each.step, POLL_SECONDS, tell=tuple(admitted.values()))
                for each in rooms.intakes
            ),
            *(
                Loop(f"judge {each.judge.name}", each.step, QUEUE_SECONDS, wake=admitted[each.judge.name])
                for each in rooms.judgings
            ),
            Loop("digest", rooms.digest.step, every, eager=False),
            Loop("sampling", rooms.sampling.step, every, eager=False),
            Loop(
                "judges taken out", lambda: rooms.give_up(self.store, self._shared.clock), GIVE_UP_SECONDS, eager=False
            ),
            Loop("draws too old", rooms.expire, GIVE_UP_SECONDS, eager=False),
            Loop("drift", rooms.watchers.look, every, eager=False),
            Loop("judge drift", rooms.watchers.test_judge, GIVE_UP_SECONDS, eager=False),
        )

    async def _drain(self, work: asyncio.Task[None]) -> bool:
        """Let steps end by themselves within the deadline, then cancel them. The store is consistent either way."""
        self._schedule.pause()
        _, late = await asyncio.wait({work, *self._schedule.tasks}, timeout=self._rooms.config.settings.drain)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        self._schedule.shutdown()
        return not late

    @property
    def stopping(self) -> bool:
        """Whether the end has been asked for."""
        return self._stopping.is_set()

    async def pause(self, seconds: float) -> None:
        """Wait; ends early when the daemon stops."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    def stop(self) -> None:
        """End after the steps under way."""
        self._stopping.set()
        self._halt.call()

    async def reload(self) -> None:
        """Read the configuration again and swap it in; a bad one changes nothing.

        Raises:
            ConfigError: Why the old configuration stays.
        """
        async with self._reloading:  # two at a time would build rooms that nobody closes
            if self.stopping:  # nobody may be left to swap them in
                raise ConfigError("ragwatch is stopping")
            try:
                fresh = await asyncio.to_thread(self._fresh)  # models and tables take seconds; scrapes go on
            except Exception as error:
                self.telemetry.misconfigured(str(error) or type(error).__name__)
                raise
            if not self.stopping:
                self._swapped.clear()
                self._next = fresh
                self._halt.call()
                await self._swapped.wait()
            if self._rooms is not fresh:
                await fresh.close()
                raise ConfigError("ragwatch is stopping")
            self.telemetry.configured(self._shared.clock())

    def _fresh(self) -> Runtime:
        if self._path is None:
            raise ConfigError("there is no configuration file to read again")
        config, old = load(self._path), self._rooms.config
        if config.fixed != old.fixed:
            raise ConfigError("state, store and web.listen cannot change while running; restart to change them")
        return build(config, self._shared, self._problems)

    def listen_to_signals(self) -> None:
        """SIGTERM and SIGINT drain, a second one ends at once; SIGHUP reloads."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminate)
        loop.add_signal_handler(signal.SIGHUP, self._reloads.signal)

    def _terminate(self) -> None:
        if self._stopping.is_set():
            os._exit(TERMINATED_TWICE)  # every write is a transaction: nothing is left half done
        self.stop()
