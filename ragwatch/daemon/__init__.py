"""The daemon: runs the loops of a configuration and the HTTP server, handles signals and reloads."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ragwatch import __version__, stores
from ragwatch.audit import AuditLog
from ragwatch.board import Board
from ragwatch.config import Config, load
from ragwatch.config.web import WebOptions
from ragwatch.daemon.actions import actions, page_scope, rebuilt_prompts, rejudge_with
from ragwatch.daemon.changes import record_judges, record_reload
from ragwatch.daemon.loops import MAINTENANCE_SECONDS, Loop, ReloadQueue, StopSignal, repeat, retry, runtime_loops
from ragwatch.daemon.process import (
    SharedState,
    limit_malloc_arenas,
    log_library_warnings,
    raise_file_limit,
    settle,
    state_secret,
)
from ragwatch.daemon.runtime import Runtime, build, check_places
from ragwatch.daemon.schedule import JobSchedule
from ragwatch.daemon.web_access import GrpcListeners, WebAccess
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.pipeline.leadership import Leadership
from ragwatch.ports import Clock, Erased, Erasure, RecordedEvent
from ragwatch.ports.sources import Handler
from ragwatch.process import EXIT_CODE_OF_SECOND_SIGNAL, TERMINATION, in_loop
from ragwatch.telemetry import Telemetry
from ragwatch.web import RequestPolicy, Server, allowed_hosts, build_app

FORGET_PATIENCE_SECONDS = 10.0  # for pages that are being read


class Daemon:
    """A ragwatch process: loops, HTTP server, scheduled jobs.

    Args:
        path: File of the configuration, for reloads; None if it cannot be reloaded.

    Raises:
        StoreError: The state directory cannot be used.
        ConfigError: A kind cannot be built with these options.
    """

    def __init__(
        self, config: Config, *, path: Path | None = None, telemetry: Telemetry | None = None, clock: Clock = time.time
    ) -> None:
        limit_malloc_arenas()
        raise_file_limit()
        self._path = path
        self.board = Board()
        self.telemetry = telemetry or Telemetry()
        listeners = config.grpc_listeners
        self._access = WebAccess(config.settings.web, self.telemetry, listeners=listeners)  # before anything is opened
        self._audit = AuditLog(file, clock) if (file := config.settings.audit.file) else None
        self._calls = GrpcListeners(listeners, self._receivers, self._access, self.telemetry)
        self.store = stores.KINDS[config.store.kind].build(config.store.options, config.settings.state)
        secret = state_secret(config.settings.state, self.store)
        self._leadership = Leadership(self.store, telemetry=self.telemetry)
        self._leadership.begin = self._begin_to_lead
        self._shared = SharedState(
            self.store, self.board, self.telemetry, clock, secret=secret, leadership=self._leadership
        )
        self._failing: dict[str, str] = {}
        self._runtime = build(config, self._shared, self._problems)
        self.telemetry.judges_in_force(self._runtime.fallbacks())
        self._next: Runtime | None = None
        self._while_nothing_runs: Callable[[], Awaitable[None]] | None = None
        self._swapped = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._swap_lock = asyncio.Lock()
        self._stop_loops = StopSignal()
        self._stopping = asyncio.Event()
        self._told_to_stop = False
        self._schedule = JobSchedule(self.telemetry, self._leadership)
        self._reloads = ReloadQueue(self.reload)
        web = config.settings.web
        self._host, _, port = web.listen.rpartition(":")
        self._server = self._build_server(web.host, int(port))
        self.telemetry.configured(clock(), web.pages)

    @property
    def runtime(self) -> Runtime:
        """The active runtime."""
        return self._runtime

    @asynccontextmanager
    async def in_force(self) -> AsyncIterator[Runtime]:
        """Hold the active runtime for a short time: no reload replaces it meanwhile."""
        async with self._swap_lock:
            yield self._runtime

    def _problems(self) -> tuple[str, ...]:
        failing = tuple(f"{name}: {why}" for name, why in sorted(self._failing.items()))
        return (*failing, *self._runtime.problems())

    def ready(self) -> tuple[str, ...]:
        """List why ragwatch is not ready; empty if it is."""
        if self.board.latest() is None:
            return ("no figures yet: the first digest is under way",)
        return self._problems()

    def record(self, kind: str, detail: str) -> None:
        """Store an event of the monitored service, such as a deployment."""
        self.telemetry.announced(kind, detail)
        self.store.record(RecordedEvent(self._shared.clock(), kind, detail))

    async def _resume(self) -> None:
        """Load what is stored, compute the first figures and start the schedule."""
        await self._leadership.step()
        self._runtime.resume(self.store, leads=not self._leadership.is_shared)
        self._record_judges(self._runtime)
        await self._runtime.sampling.step()
        await self._runtime.digest.step()
        self._schedule.start(self._runtime)
        settle()

    async def run(
        self, started: Callable[[str], None] = lambda _: None, notice: Callable[[str], None] = lambda _: None
    ) -> None:
        """Run the loops and the HTTP server until stopped.

        Args:
            started: Called with the address when the server accepts connections.
            notice: Called with messages for people after the first poll of the sources.

        Raises:
            AddressError: The configured address cannot be bound.
        """
        serving = asyncio.Event()

        def on_serving(port: int) -> None:
            address = f"{self._access.scheme}://{self._host}:{port}"
            self.telemetry.started(address, __version__)
            started(address)
            serving.set()

        try:
            asyncio.get_running_loop().set_exception_handler(log_library_warnings(self.telemetry))
            self._server.bind()  # first, so that nothing is read if the address is in use
            await self._calls.bind()
            await self._resume()
            await self._calls.start()
            async with asyncio.TaskGroup() as group:
                serve = group.create_task(self._server.serve(started=on_serving))
                work = group.create_task(self._run_loops())
                notices = group.create_task(self._runtime.report_skipped(serving, notice))
                serve.add_done_callback(lambda _: self.stop())
                work.add_done_callback(lambda _: self.stop())
                await self._stopping.wait()
                drained = await self._drain(work)
                notices.cancel()
                self._runtime.refuse_requests()
                self._server.stop()
                await self._calls.stop()
        finally:
            self._server.close()
            await self._calls.stop()
            await self._runtime.close()
            await self._leadership.close()
            self.store.close()
        self.telemetry.stopped(drained=drained)

    def _build_server(self, host: str, port: int) -> Server:
        app = build_app(
            audit=None if self._audit is None else self._audit.record,
            board=self.board,
            store=self.store,
            render=self._render,
            scope=lambda: page_scope(self._runtime, self.board.latest()),
            ready=self.ready,
            actions=actions(self._reloads.request, self.in_force, self.record, self._leadership.taken),
            labels=lambda: self._runtime.labelling,
            prompts=lambda name, record: rebuilt_prompts(self._runtime.judges, name, record),
            forget=self.forget,
            rejudge=rejudge_with(self.in_force, self.store, self.telemetry),
            receivers=self._receivers,
            policy=RequestPolicy(
                hosts=lambda: allowed_hosts(host, self._web.external_url, self._web.hosts),
                external=lambda: self._web.external_url,
                access=self._access.access,
                refused=self.telemetry.request_refused,
                mcp=lambda: self._web.mcp,
            ),
            clock=self._shared.clock,
        )
        return Server(app, host, port, self._access.tls)

    @property
    def _web(self) -> WebOptions:
        return self._runtime.config.settings.web

    async def _begin_to_lead(self) -> None:
        await asyncio.to_thread(self._runtime.resume_led)
        self._schedule.catch_up()

    def _receivers(self) -> dict[str, dict[str, Handler]]:
        return self._runtime.receivers()  # of the active runtime, not of the first one

    def _render(self, accept: str, names: Sequence[str]) -> tuple[bytes, str]:
        return self._runtime.exporter.render(accept, names)  # the same

    async def _run_loops(self) -> None:
        """Run the loops until stopped; a reload stops them, replaces the runtime, and starts the new loops."""
        clock = Loop("clock", self._schedule.follow_clock, MAINTENANCE_SECONDS, eager=False)
        try:
            while not self._stopping.is_set():
                async with asyncio.TaskGroup() as group:
                    for loop in (*runtime_loops(self._runtime, self._shared), clock):
                        group.create_task(repeat(loop, self._stop_loops, self.telemetry, self._failing))
                try:
                    await self._runtime.finish()
                except RagwatchError as error:  # the store cannot write: the draws stay pending
                    self.telemetry.step_failed("judging", error)
                if self._next is not None and not self._stopping.is_set():
                    await self._swap(self._next)
        finally:
            self._swapped.set()  # releases a reload that waits for the swap
        with suppress(RagwatchError):  # a last digest, unless the store has failed
            await self._runtime.sampling.step()
            await self._runtime.digest.step()

    async def _swap(self, successor: Runtime) -> None:
        async with self._swap_lock:
            await self._runtime.close()
            successor.inherit(self._runtime)
            if self._while_nothing_runs is not None:
                await self._while_nothing_runs()
            if not await self._resume_successor(successor):
                return
            await asyncio.to_thread(self._record_judges, successor)
            with suppress(ConfigError):  # a file that has become wrong since `_build_successor`: the old rules stay
                self._access.use(successor.config.settings.web)
            self._runtime, self._next = successor, None
            self.telemetry.judges_in_force(successor.fallbacks())
        self._schedule.start(successor)
        self._failing.clear()
        self._stop_loops = StopSignal()
        self._swapped.set()

    async def _resume_successor(self, successor: Runtime) -> bool:
        """Load what is stored, until it works: the other runtime is closed. False if ragwatch stops first."""

        async def resume() -> None:
            leads = self._leadership.leads
            await asyncio.to_thread(successor.resume, self.store, leads=leads)  # may wait for a writer

        self._stop_loops = StopSignal()
        return not self.stopping and await retry("reload", resume, self._stop_loops, self.telemetry, self._failing)

    def _record_judges(self, runtime: Runtime) -> None:
        versions = {judging.judge.name: judging.judge.version for judging in runtime.judgings}
        record_judges(self._shared, versions, runtime.watchers.drift.rules.judge)

    async def _drain(self, work: asyncio.Task[None]) -> bool:
        """Wait for running steps until the deadline, then cancel the rest. The store stays consistent either way."""
        self._schedule.pause()
        _, late = await asyncio.wait({work, *self._schedule.tasks}, timeout=self._runtime.config.settings.drain)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        self._schedule.shutdown()
        return not late

    @property
    def stopping(self) -> bool:
        """Whether the daemon is stopping."""
        return self._stopping.is_set()

    async def pause(self, seconds: float) -> None:
        """Sleep; returns early when the daemon stops."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    def stop(self) -> None:
        """Stop after the running steps."""
        self._stopping.set()
        self._stop_loops.set()

    async def reload(self) -> None:
        """Reload the configuration; one that is not valid changes nothing.

        Returns when it is active. If the store fails after the old runtime was closed, that is when the store works.

        Raises:
            ConfigError: The new configuration is not valid; the old one stays active.
            StoreError: The store cannot be read; the old one stays active.
        """
        async with self._reloading:  # one at a time, so that every runtime is closed
            if self.stopping:  # the task that replaces the runtime may have ended
                raise ConfigError("ragwatch is stopping")
            try:
                successor = await asyncio.to_thread(self._build_successor)  # loading models takes seconds
            except Exception as error:
                self.telemetry.misconfigured(str(error) or type(error).__name__)
                raise
            before = self._runtime.config
            await self._replace(successor)
            self.telemetry.configured(self._shared.clock(), successor.config.settings.web.pages)
            await asyncio.to_thread(record_reload, self._shared, before, successor.config)

    async def _replace(self, successor: Runtime) -> None:
        """Stop the loops, and start those of another runtime. Raises `ConfigError` if ragwatch is stopping."""
        if not self.stopping:
            self._swapped.clear()
            self._next = successor
            self._stop_loops.set()
            await self._swapped.wait()
        if self._runtime is not successor:
            await successor.close()
            raise ConfigError("ragwatch is stopping")

    async def forget(self, erasure: Erasure, dry_run: bool) -> Erased:  # noqa: FBT001 - see `web.operations.Forget`
        """Erase a person while nothing is read or judged; every loop then starts from what is stored.

        So no text of theirs remains in memory from where it could be written again: readings under way have ended and
        are stored before, and a verdict that could not be stored is refused, because its draw is settled.

        Raises:
            ConfigError: ragwatch is stopping.
        """
        redactor = self._runtime.config.settings.redaction.redactor()
        wanted = erasure if redactor is None else erasure.redacted(redactor.redact)
        if dry_run:
            return await asyncio.to_thread(self.store.forget, wanted, dry_run=True)
        outcomes: list[Erased | Exception] = []

        async def erase() -> None:
            try:
                outcomes.append(await asyncio.to_thread(self.store.forget, wanted, seconds=FORGET_PATIENCE_SECONDS))
            except Exception as error:  # noqa: BLE001 - it is raised below; the loops start again in any case
                outcomes.append(error)

        async with self._reloading:
            if self.stopping:
                raise ConfigError("ragwatch is stopping")
            successor = await asyncio.to_thread(self._build, self._runtime.config)
            self._while_nothing_runs = erase
            try:
                await self._replace(successor)
            except ConfigError:
                if not outcomes:  # else ragwatch stops after the erasure, whose outcome is known
                    raise
            finally:
                self._while_nothing_runs = None
        (outcome,) = outcomes
        if isinstance(outcome, Exception):
            raise outcome
        self.telemetry.erased(len(outcome.keys))
        return outcome

    def _build_successor(self) -> Runtime:
        if self._path is None:
            raise ConfigError("there is no configuration file to read again")
        config, old = load(self._path), self._runtime.config
        if config.fixed != old.fixed:
            raise ConfigError(
                "state, store, audit, web.listen, and `grpc` of sources with their limits cannot change while running; "
                "restart to change them"
            )
        self._access.check(config.settings.web)
        return self._build(config)

    def _build(self, config: Config) -> Runtime:
        """Build a runtime that can take the place of the active one."""
        check_places(config, self.store, self._runtime.config)
        return build(config, self._shared, self._problems)

    def listen_to_signals(self) -> None:
        """Handle signals: SIGTERM and SIGINT drain, a second one exits at once; SIGHUP reloads."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._terminate)
        loop.add_signal_handler(signal.SIGHUP, self._reloads.signal)
        TERMINATION.tell(in_loop(loop, self._terminate))  # a handler of the loop would be gone before it closes

    def _terminate(self) -> None:
        if self._told_to_stop:
            os._exit(EXIT_CODE_OF_SECOND_SIGNAL)  # every write is a transaction, so the store stays consistent
        self._told_to_stop = True
        self.stop()
