"""What a server is told: where it listens, whom it answers, and its limits."""

from __future__ import annotations

from gossamer.records import record

MIB = 1 << 20


@record(frozen=True)
class Settings:
    """Where a server listens, whom it answers, and its limits. Times are seconds, sizes bytes.

    ``http_port``, ``grpc_port``: 0 for one that the system chooses, ``None`` for none. ``tokens``: whoever has one of
    them is answered; all are if there is none. ``repository_control``: whether clients may load and unload models.
    """

    host: str = "127.0.0.1"
    http_port: int | None = 8000
    grpc_port: int | None = 8001
    tls_certificate: str | None = None
    tls_key: str | None = None
    tokens: tuple[str, ...] = ()
    repository_control: bool = False
    log_requests: bool = True

    timeout: float | None = 60.0
    """For a request, from when it has been read until its answer is there."""
    max_body_size: int = 64 * MIB
    """Of a request, and of what it inflates to."""
    max_json_size: int = 16 * MIB
    """Of the JSON of a request: while it is read, it takes 20 times the memory, and nothing else is answered."""
    max_held_size: int = 1024 * MIB
    """Of the bodies of all requests that are being answered."""
    max_connections: int = 1024
    max_head_size: int = 64 << 10
    """Of the first line and the headers."""
    head_timeout: float = 10.0
    """Until the headers of a request are there."""
    body_timeout: float = 30.0
    """Until the body is there, and a second more for each ``least_rate`` bytes."""
    least_rate: float = 16 << 10
    keep_alive: float = 65.0
    """How long a connection may be idle: longer than load balancers keep theirs, which is a minute."""
    write_timeout: float = 30.0
    """How long a client may read nothing of an answer."""
    drain_timeout: float = 30.0
    """At the end, for requests that have been accepted."""
