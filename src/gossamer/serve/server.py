"""A server: HTTP and gRPC on one event loop, from the first request to the last."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from gossamer.errors import GossamerError
from gossamer.interrupts import INTERRUPTED
from gossamer.serve.connections import watched
from gossamer.serve.http import Application, create_app
from gossamer.serve.logs import say
from gossamer.serve.metrics import Metrics
from gossamer.serve.settings import Settings

if TYPE_CHECKING:
    from gossamer.serve.repository import Repository

GRACE = 0.5
"""Seconds at the end for which idle connections stay open: who sends a request on one meanwhile is told to go."""

SETTLED = 0.1
"""Seconds without connections after which no more come: one that is accepted is seen some turns of the loop later."""

ENDING = 5.0
"""Seconds at the end for runs that have been cancelled."""

BACKLOG = 1024

ACCEPTED = 64
"""Connections that are accepted in one turn of the event loop. uvloop takes one, so that of 200 that come at once the
last waits for 200 turns, in each of which those before it are answered: two seconds."""

PAUSE = 0.5
"""Seconds until it is tried again to accept, where there are no more descriptors."""


class Server:
    """Serves a repository. Made, it holds its ports; `run` or ``with server.running(repository)`` begins.

    ``http_port`` and ``grpc_port`` are those that it has, ``None`` for none; that of gRPC is known when it serves.

    Raises `ServerError` if it cannot have its ports, or if its certificate is none.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings = Settings() if settings is None else settings
        self.metrics = Metrics()
        self.tls = _tls(settings)
        self.sockets = [] if settings.http_port is None else [_bound(settings.host, settings.http_port)]
        self.http_port: int | None = self.sockets[0].getsockname()[1] if self.sockets else None
        if settings.grpc_port:
            _bound(settings.host, settings.grpc_port).close()  # it binds its port itself, and later
        self.grpc_port: int | None = settings.grpc_port
        self._tls_files = [Path(path).read_bytes() for path in (settings.tls_certificate, settings.tls_key) if path]
        self._stop: asyncio.Event | None = None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the ports, if it has not served."""
        for bound in self.sockets:
            bound.close()

    def run(self, repository: Repository, started: Any = None) -> int:
        """Serve until a signal ends it: the exit code of the process. ``started`` is called without arguments when
        requests are answered.

        SIGTERM or SIGINT: requests that have been accepted are answered, new ones are sent away. A second signal ends
        the process at once.
        """
        _allow_files(self.settings.max_connections)
        # Modules and models stay until the end: passed over, a collection does not hold requests up for 50 ms, and the
        # process ends the quicker.
        gc.collect()
        gc.freeze()
        loop = _new_loop()
        received: list[int] = []

        def stop(number: int) -> None:
            if received:
                os._exit(128 + number)
            received.append(number)
            self.stop()

        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                if os.name == "nt":
                    signal.signal(number, lambda number, _: loop.call_soon_threadsafe(stop, number))
                else:
                    loop.add_signal_handler(number, stop, number)
            loop.run_until_complete(self.serve(repository, started))
        finally:
            loop.close()
        return INTERRUPTED if received == [signal.SIGINT] else 0

    @contextlib.contextmanager
    def running(self, repository: Repository) -> Iterator[Server]:
        """Serve in a thread of this process, from when requests are answered until the end of the block."""
        loop, started = _new_loop(), threading.Event()
        failed: list[BaseException] = []

        def serve() -> None:
            try:
                loop.run_until_complete(self.serve(repository, started.set))
            except BaseException as error:
                failed.append(error)
            finally:
                started.set()
                loop.close()

        thread = threading.Thread(target=serve, name="gossamer-serve")
        thread.start()
        started.wait()
        try:
            if not failed:
                yield self
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.stop)
            thread.join()
        if failed:
            raise failed[0]

    def stop(self) -> None:
        """End gracefully, as SIGTERM does. To be called in the event loop."""
        if self._stop is not None:
            self._stop.set()

    async def serve(self, repository: Repository, started: Any = None) -> None:
        """Serve in the event loop that runs, until `stop`."""
        settings = self.settings
        self._stop = asyncio.Event()
        self.metrics.watch(repository)
        application = create_app(repository, settings, self.metrics)
        http = _Http(application, settings, self.tls)
        self.metrics.connections.set_function(lambda: len(http.server_state.connections))
        serving = asyncio.ensure_future(http.serve(self.sockets) if self.sockets else _nothing(http))
        grpc = None
        try:
            await asyncio.wait({serving, asyncio.ensure_future(http.listening.wait())}, return_when="FIRST_COMPLETED")
            if settings.grpc_port is not None:
                from gossamer.serve import rpc

                address = f"[{settings.host}]" if ":" in settings.host else settings.host
                grpc = rpc.Server(application, f"{address}:{settings.grpc_port}", *self._tls_files)
                self.grpc_port = grpc.port
                await grpc.start()
            if started is not None:
                started()
            say("started", http_port=self.http_port, grpc_port=self.grpc_port, host=settings.host)
            stopped = asyncio.ensure_future(self._stop.wait())
            await asyncio.wait({serving, stopped}, return_when="FIRST_COMPLETED")
            say("draining", in_flight=http.active)
            application.draining = True
            repository.hurry()
            ends: list[Coroutine[Any, Any, None]] = [http.drain(settings.drain_timeout)]
            if grpc is not None:
                ends.append(grpc.drain(GRACE, settings.drain_timeout))
            await asyncio.gather(*ends)
        finally:
            http.should_exit = True
            await serving
            await asyncio.to_thread(repository.close, ENDING)
        say("stopped", lost=http.lost)


class ServerError(GossamerError):
    """A server cannot be what it is told to be."""


class _Http(uvicorn.Server):
    """uvicorn, whose signals are ours, with an eye on its connections."""

    def __init__(self, application: Application, settings: Settings, tls: ssl.SSLContext | None) -> None:
        config = uvicorn.Config(
            application,
            http=watched(settings),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=settings.keep_alive,
            timeout_graceful_shutdown=1,
        )
        config.load()
        config.ssl = tls
        super().__init__(config)
        self._sockets: list[socket.socket] = []
        self._joining: set[asyncio.Task[None]] = set()
        self._head_timeout, self._most = settings.head_timeout, settings.max_connections
        self.listening = asyncio.Event()
        self.lost = 0
        """Requests that have not been answered at the end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._sockets = sockets or []
        if os.name == "nt":  # whose event loop cannot be told of sockets
            await super().startup(sockets)
        else:
            await super().startup([])
            for listening in self._sockets:
                listening.setblocking(False)
                listening.listen(BACKLOG)
                asyncio.get_running_loop().add_reader(listening, self._accept, listening)
        self.listening.set()

    def _accept(self, listening: socket.socket) -> None:
        """Accept those who are there."""
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED):
            try:
                connection, _address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                say("no connection can be accepted", logging.ERROR, reason=error.strerror)
                loop.remove_reader(listening)
                loop.call_later(PAUSE, self._accept_again, listening)
                return
            if len(self._joining) > self._most:  # who says nothing of TLS for long is many
                connection.close()
                continue
            joining = loop.create_task(self._join(connection))
            self._joining.add(joining)
            joining.add_done_callback(self._joining.discard)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _join(self, connection: socket.socket) -> None:
        """Have a connection that is accepted served."""
        config, encrypted = self.config, {}
        if config.ssl is not None:
            encrypted = {"ssl": config.ssl, "ssl_handshake_timeout": self._head_timeout}

        def protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = config.http_protocol_class(
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        try:
            connection.setblocking(False)
            with contextlib.suppress(OSError):  # it has gone, or is none of TCP
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(protocol, connection, **encrypted)
        except (OSError, asyncio.TimeoutError, asyncio.CancelledError):  # what it sends is no TLS, or nothing
            connection.close()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # ten ticks are a second
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                connection.check(now)
        ends: bool = await super().on_tick(counter)
        return ends

    @property
    def active(self) -> int:
        """Connections with a request, or with a part of one."""
        return sum(not connection.is_idle for connection in self.server_state.connections)

    async def drain(self, timeout: float) -> None:
        """Answer what has been accepted, and close all connections; after ``timeout`` seconds, whatever they do."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for listening in self._sockets:
            listening.listen(0)  # from now on nobody who connects is put into the queue of those to be accepted
        for _ in range(5):  # turns of the loop, in which those are accepted who are there
            await asyncio.sleep(0.01)
        for listening in self._sockets:
            if os.name != "nt":
                loop.remove_reader(listening)
                self._accept(listening)  # who came since the last turn
            listening.close()
        for server in getattr(self, "servers", ()):
            server.close()
        last_seen = loop.time()
        while loop.time() - began < timeout and loop.time() - last_seen < SETTLED:
            if self.server_state.connections:
                last_seen = loop.time()
            if loop.time() - began > GRACE:
                for connection in list(self.server_state.connections):
                    if connection.is_idle:
                        connection.transport.close()
            await asyncio.sleep(0.02)
        self.lost = self.active
        for joining in list(self._joining):
            joining.cancel()
        for connection in list(self.server_state.connections):
            connection.transport.abort()


async def _nothing(http: _Http) -> None:
    http.listening.set()
    while not http.should_exit:
        await asyncio.sleep(0.1)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _allow_files(connections: int) -> None:
    """Have the system let this process have so many connections, as far as it may."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections + 512  # over HTTP and over gRPC, and files
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _bound(host: str, port: int) -> socket.socket:
    """A socket that has the port. Raises `ServerError`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            if os.name != "nt":
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except BaseException:
            bound.close()
            raise
    except (OSError, OverflowError) as error:
        raise ServerError(f"cannot listen on {host} port {port}: {getattr(error, 'strerror', None) or error}") from None
    return bound


def _tls(settings: Settings) -> ssl.SSLContext | None:
    """What HTTP is encrypted with. Raises `ServerError`."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ServerError("TLS needs both a certificate and its key")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=lambda: b"")  # else the terminal would be asked
    except OSError as error:
        if isinstance(error, ssl.SSLError):
            reason = f"no certificate and key that belong together, as PEM ({error.reason or error})"
        else:
            missing = next((path for path in (certificate, key) if not os.access(path, os.R_OK)), certificate)
            reason = f"{missing}: {error.strerror}"
        raise ServerError(f"TLS with {certificate} and {key}: {reason}") from None
    return context
