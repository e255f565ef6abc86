"""Models behind Ray Serve: each replica has a repository, and answers HTTP as `gossamer serve` does.

    from ray import serve
    from gossamer.serve.ray import deployment

    serve.run(deployment(["/models"], num_replicas=4))

Ray Serve brings replicas on all nodes, their number by load, routing and a port; batching, limits, errors and metrics
are ours, in each replica. gRPC has only `gossamer serve`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from gossamer.serve.http import Application, create_app
from gossamer.serve.metrics import Metrics
from gossamer.serve.model import ModelOptions
from gossamer.serve.repository import Repository
from gossamer.serve.settings import Settings

if TYPE_CHECKING:
    from ray import serve

Message = MutableMapping[str, Any]


def deployment(
    models: Sequence[str | os.PathLike[str]],
    options: ModelOptions | None = None,
    settings: Settings | None = None,
    **ray_options: Any,
) -> serve.Application:
    """The application for ``serve.run``, `serve build` and configuration files of Ray Serve.

    ``models``: what `gossamer serve` takes, at places that every node can read. ``options``: by default one worker with
    one thread in a replica, which then takes one CPU of Ray's. Of the ``settings``, those of connections and ports are
    Ray's. ``ray_options``: those of ``serve.deployment``, such as ``num_replicas`` and ``autoscaling_config``. A
    replica takes as many requests at a time as may wait in its queue, which Ray would limit to 5.

    Raises `ModuleNotFoundError` where Ray Serve is not installed.
    """
    try:
        from ray import serve
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"a deployment needs {error.name}: python -m pip install 'gossamer[serve]' 'ray[serve]'",
            name=error.name,
        ) from None
    chosen = ModelOptions(workers=1) if options is None else options
    places = [os.fspath(model) for model in models]

    def replica() -> _Replica:
        return _Replica(places, chosen, Settings() if settings is None else settings)

    defaults = {
        "name": "gossamer",
        "max_ongoing_requests": chosen.max_queue_size,
        "ray_actor_options": {"num_cpus": chosen.workers * chosen.num_threads},
    }
    deployed: serve.Deployment = serve.deployment(**{**defaults, **ray_options})(serve.ingress(replica)())
    return deployed.bind()


class _Replica:
    """The ASGI application of a replica, whose models are closed at its end."""

    def __init__(self, models: Sequence[str], options: ModelOptions, settings: Settings) -> None:
        metrics = Metrics()
        self.repository = Repository(models, options, observe=metrics.ran)
        self.repository.start()
        metrics.watch(self.repository)
        self.application: Application = create_app(self.repository, settings, metrics)

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """See ASGI."""
        if scope["type"] != "lifespan":
            await self.application(scope, receive, send)
            return
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        self.repository.close()
        await send({"type": "lifespan.shutdown.complete"})
