"""Serve models over HTTP and gRPC: the Open Inference Protocol."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.config import serve_token
from gossamer.records import replace
from gossamer.serve.logs import set_up
from gossamer.serve.model import ModelOptions
from gossamer.serve.repository import Repository, split_name
from gossamer.serve.settings import Settings
from gossamer.tools._command import Failure, Tool, console, existing_file, json_option, table, write_json

if TYPE_CHECKING:
    from gossamer.serve.server import Server

_HELP = """Serve each MODEL over HTTP and gRPC, until SIGTERM or Ctrl-C.

MODEL is a .tflite file, NAME=FILE, or a folder of models: NAME.tflite, or NAME/VERSION/*.tflite, where versions are
numbers and the newest one answers who asks for none. Folders are watched: new files and versions are loaded while the
old ones answer. A model that cannot be loaded does not keep the others from being served.

The protocol is KServe's v2, which is Triton's: tritonclient, KServe's client and curl work as they are. docs/serve.md
tells the rest.
"""

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _size(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    """A number of bytes: 1000, 64k, 64MiB."""
    match = re.fullmatch(r"(\d{1,12}) ?([kmg]?)(i?b)?", value.strip().lower())
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{value!r} is no number of bytes, such as 1000000, 512k or 64M.")
    return int(match[1]) * _UNITS[match[2]]


def _port(ctx: click.Context, parameter: click.Parameter, value: str) -> int | None:
    """A port, 0 for one that the system chooses, ``none`` for no port."""
    if value == "none":
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 6 and int(value) < 1 << 16):
        raise click.BadParameter(f"{value!r} is no port: 0 to 65535, or none.")
    return int(value)


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Serve models over HTTP and gRPC.",
    example="gossamer serve digits.tflite ./models --max-batch-size=8 --batch-delay=2",
)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0 is everywhere.")
@click.option(
    "--http-port",
    "--port",
    metavar="PORT",
    callback=_port,
    default="8000",
    show_default=True,
    help="0: any; none: no HTTP.",
)
@click.option(
    "--grpc-port", metavar="PORT", callback=_port, default="8001", show_default=True, help="0: any; none: no gRPC."
)
@click.option("--workers", type=click.IntRange(min=1), help="Runs of a model side by side; by default one a CPU.")
@click.option("--num-threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of a run.")
@click.option(
    "--max-batch-size",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Requests that run together, of models whose first size is open.",
)
@click.option(
    "--batch-delay", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Milliseconds to wait for them."
)
@click.option("--exact-batches", is_flag=True, help="Batches only where no bit of a result depends on them.")
@click.option("--queue-size", type=click.IntRange(min=1), default=1024, show_default=True, help="Requests that wait.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds for a request; then its run is cancelled.",
)
@click.option(
    "--max-body", metavar="SIZE", callback=_size, default="64M", show_default=True, help="Bytes of a request."
)
@click.option("--max-json", metavar="SIZE", callback=_size, default="16M", show_default=True, help="Bytes of its JSON.")
@click.option(
    "--max-memory",
    metavar="SIZE",
    callback=_size,
    default="2G",
    show_default=True,
    help="Bytes that the shapes and values of a request may have a run take.",
)
@click.option(
    "--max-connections", type=click.IntRange(min=1), default=1024, show_default=True, help="Clients at a time."
)
@click.option(
    "--drain-timeout",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds at the end for requests that have been accepted.",
)
@click.option(
    "--tls-certificate", metavar="FILE", help="Encrypt with this certificate (PEM), and the ones that sign it."
)
@click.option("--tls-key", metavar="FILE", help="Its key.")
@click.option("--token-file", metavar="FILE", help="Answer who has a token of this file, or of $GOSSAMER_SERVE_TOKEN.")
@click.option("--repository-control", is_flag=True, help="Let clients load and unload models.")
@click.option("--watch/--no-watch", default=True, show_default=True, help="Whether to look for new models.")
@click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "text"]),
    default="auto",
    show_default=True,
    help="auto: text on a terminal, else JSON.",
)
@click.option("--log-level", type=click.Choice(["info", "warning", "error"]), default="info", show_default=True)
@click.option("--log-requests/--no-log-requests", default=True, show_default=True, help="A line for each request.")
@json_option
def command(
    models: tuple[str, ...],
    host: str,
    http_port: int | None,
    grpc_port: int | None,
    workers: int | None,
    num_threads: int,
    max_batch_size: int,
    batch_delay: float,
    exact_batches: bool,
    queue_size: int,
    timeout: float,
    max_body: int,
    max_json: int,
    max_memory: int,
    max_connections: int,
    drain_timeout: float,
    tls_certificate: str | None,
    tls_key: str | None,
    token_file: str | None,
    repository_control: bool,
    watch: bool,
    log_format: str,
    log_level: str,
    log_requests: bool,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    if http_port is None and grpc_port is None:
        raise click.UsageError("--http-port=none and --grpc-port=none leave nothing to listen on.")
    if http_port and http_port == grpc_port:
        raise click.UsageError(f"HTTP and gRPC cannot both have port {http_port}.")
    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("--tls-certificate and --tls-key go together.")
    tokens = _tokens(token_file)
    for _, path in map(split_name, models):
        if not path.is_dir():
            existing_file(str(path), "model")
    try:
        for package in ("fastapi", "uvicorn", "prometheus_client"):
            import_module(package)
        if grpc_port is not None:
            import_module("gossamer.serve.rpc")
            import_module("grpc")
    except ModuleNotFoundError as error:
        raise Failure(f"gossamer serve needs {error.name}: python -m pip install 'gossamer[serve]'") from None
    from gossamer.serve.server import Server

    settings = Settings(
        host=host,
        http_port=http_port,
        grpc_port=grpc_port,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        tokens=tokens,
        repository_control=repository_control,
        log_requests=log_requests,
        timeout=timeout,
        max_body_size=max_body,
        max_json_size=max_json,
        max_held_size=max(max_body, max_memory // 2),
        max_connections=max_connections,
        drain_timeout=drain_timeout,
    )
    server = Server(settings)  # has its ports and its certificate before models are loaded, which takes longer
    set_up(log_format, log_level)
    options = ModelOptions(
        num_threads=num_threads,
        max_queue_size=queue_size,
        max_memory=max_memory,
        max_batch_size=max_batch_size,
        batch_delay=1e-3 * batch_delay,
        exact_batches=exact_batches,
    )
    if workers is not None:
        options = replace(options, workers=workers)
    repository = Repository(models, options, observe=server.metrics.ran, watch=watch)
    # Until requests are answered. The first process of a container would not be ended by what it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with server, contextlib.ExitStack() as stack:
        stack.callback(repository.close, 0)  # whatever runs then has had its time
        repository.start()
        entries = repository.index()
        if not any(entry.state == "READY" for entry in entries):
            reasons = "".join(f"\n  {entry.name} version {entry.version}: {entry.reason}" for entry in entries)
            raise Failure(f"no model of {', '.join(models)} can be served{reasons or ': there is no .tflite file'}")
        code = server.run(repository, lambda: _show(server, repository, as_json))
    raise click.exceptions.Exit(code)


def _tokens(path: str | None) -> tuple[str, ...]:
    """The tokens of a file, one a line, or of the environment. Raises `Failure` for a file without one."""
    if path is None:
        token = serve_token()
        return () if token is None else (token,)
    tokens = tuple(filter(None, map(str.strip, Path(path).read_text().splitlines())))
    if not tokens or not all(token.isascii() and token.isprintable() for token in tokens):
        raise Failure(f"{path}: a token file has a token of printable ASCII characters on each line")
    return tokens


def _show(server: Server, repository: Repository, as_json: bool) -> None:
    """What is served, and where."""
    settings = server.settings
    scheme = "https" if server.tls else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    places = {
        name: place
        for name, place in (
            ("http", f"{scheme}://{host}:{server.http_port}"),
            ("grpc", f"{host}:{server.grpc_port}"),
        )
        if getattr(server, f"{name}_port") is not None
    }
    entries = repository.index()
    if as_json:
        models = [{"name": e.name, "version": e.version, "state": e.state, "reason": e.reason} for e in entries]
        write_json({**places, "models": models}, indent=None)
        return
    out = console()
    out.print(table(["model", "version", "state", "reason"], [(e.name, e.version, e.state, e.reason) for e in entries]))
    for name, place in places.items():
        out.print(f"{name.upper() if name == 'http' else 'gRPC'}: {place}", markup=False)
