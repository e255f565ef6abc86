"""HTTP connections with limits: uvicorn's, which trust their clients to be quick and brief.

A client that sends or reads slowly, or holds connections open, costs little but must not cost it for ever. Each
connection notes since when it waits for its client; `Watched.check`, called about once a second for all of them, ends
those that wait too long.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from gossamer.serve.settings import Settings

LINGER = 5.0
"""Seconds for which the rest of a body is read and thrown away that has been answered already: a connection closed with
something unread loses the answer."""

_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


def watched(settings: Settings) -> type[asyncio.Protocol]:
    """The class of connections for uvicorn: its quicker one, if httptools is there, with the limits of ``settings``."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Base
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol as Base
    return type("Connection", (Watched, Base), {"settings": settings})


class Watched(asyncio.Protocol):
    """What is added to a connection of uvicorn, whose ``cycle`` is the latest request of which the headers are there,
    ``None`` before the first."""

    settings: ClassVar[Settings]
    if TYPE_CHECKING:
        cycle: Any
        connections: set[Any]
        loop: asyncio.AbstractEventLoop
        transport: asyncio.Transport

    waiting_since: float | None = None
    """Since when a request is being read."""
    head_size = 0
    """Bytes of headers that are not there as a whole."""
    body_size = 0
    unread_since: float | None = None
    """Since when the client reads nothing of an answer."""
    unread = 0
    """Bytes of it at the last look."""
    lingers = False
    """Whether the rest of a body is thrown away."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.waiting_since = self.loop.time()
        if len(self.connections) > self.settings.max_connections:
            self.refuse(503, f"this server takes {self.settings.max_connections} connections")

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        was_in_body = before is not None and before.more_body
        super().data_received(data)
        cycle = self.cycle
        if cycle is None or (cycle is before and not was_in_body):
            if self.waiting_since is None:
                self.waiting_since = self.loop.time()
            self.head_size += len(data)
            if self.head_size > self.settings.max_head_size:
                self.refuse(431, f"the headers of a request may have {self.settings.max_head_size} bytes")
            return
        self.head_size = 0
        if not cycle.more_body:
            self.waiting_since = None
        elif cycle is before:
            self.body_size += len(data)
        else:
            self.waiting_since, self.body_size, self.lingers = self.loop.time(), len(data), False

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread_since, self.unread = self.loop.time(), self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unread_since = None

    def check(self, now: float) -> None:
        """End the connection if it has waited for its client longer than it may."""
        settings, cycle = self.settings, self.cycle
        if self.unread_since is not None:
            size = self.transport.get_write_buffer_size()
            if size != self.unread:
                self.unread_since, self.unread = now, size
            elif now - self.unread_since > settings.write_timeout:
                self.transport.abort()
        if self.waiting_since is None:
            return
        waited = now - self.waiting_since
        if cycle is None or not cycle.more_body:
            if waited > settings.head_timeout:
                self.refuse(408, "the headers of the request did not come in time")
        elif cycle.response_complete:
            if not self.lingers:
                self.lingers, self.waiting_since = True, now
            elif waited > LINGER:
                self.transport.abort()
        elif waited > settings.body_timeout + self.body_size / settings.least_rate:
            self.refuse(408, "the body of the request did not come in time")

    @property
    def is_idle(self) -> bool:
        """Whether there is no request, not even a part of one."""
        return not self.head_size and (self.cycle is None or bool(self.cycle.response_complete))

    def shutdown(self) -> None:
        """Called by uvicorn at the end, when `gossamer.serve.server` has closed what there was."""

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what is not HTTP."""
        self.refuse(400, msg)

    def refuse(self, status: int, why: str) -> None:
        """Answer and close, if nothing has been answered yet."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        body = f'{{"error": "{why}"}}'
        self.transport.write(
            f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
        )
        self.transport.close()
