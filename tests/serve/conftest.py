"""Servers for tests, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.serve.client import Client
from tests.serve.held import HeldRepository, doubled

if TYPE_CHECKING:
    from gossamer.serve.server import Server


@pytest.fixture
def repository() -> HeldRepository:
    """A repository whose answers the test gives."""
    return HeldRepository()


@pytest.fixture
def ready(repository: HeldRepository) -> HeldRepository:
    """A repository that answers at once."""
    repository.at_once = doubled
    return repository


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Serve a repository over HTTP until the test ends: ``serve(repository, timeout=1)``, with fields of `Settings`."""
    with contextlib.ExitStack() as stack:

        def start(repository: Any, **settings: Any) -> Server:
            from gossamer.serve.server import Server
            from gossamer.serve.settings import Settings

            server = Server(Settings(**{"http_port": 0, "grpc_port": None, **settings}))
            return stack.enter_context(server.running(repository))

        yield start


@pytest.fixture
def connect(serve: Callable[..., Server]) -> Iterator[Callable[..., Client]]:
    """A client of a server of its own: ``connect(repository, timeout=1)``."""
    with contextlib.ExitStack() as stack:

        def start(repository: Any, **settings: Any) -> Client:
            port = serve(repository, **settings).http_port
            assert port is not None
            client = Client(port)
            stack.callback(client.close)
            return client

        yield start
