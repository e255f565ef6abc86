"""The names of ``ai_edge_litert.environment``: what models may share. Here that is nothing: no library is loaded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnvironmentOptions:
    """Folders of libraries that LiteRT loads; none of them is looked at here."""

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""


class Environment:
    """Made by `create`; valid until it is closed, by `close` or at the end of a ``with`` statement."""

    def __init__(self, capsule: object, options: EnvironmentOptions) -> None:
        self._capsule = capsule
        self._options = options

    @classmethod
    def create(
        cls,
        *,
        options: EnvironmentOptions | str | None = None,
        runtime_path: str | None = None,
        compiler_plugin_path: str = "",
        dispatch_library_path: str = "",
    ) -> Environment:
        """One of these options, or of these paths. Raises `ValueError` for both."""
        if isinstance(options, str):
            if runtime_path is not None:
                raise ValueError("runtime_path was provided twice.")
            options, runtime_path = None, options
        if options is not None and (runtime_path is not None or compiler_plugin_path or dispatch_library_path):
            raise ValueError("Pass either options or environment path shortcuts.")
        return cls(object(), options or EnvironmentOptions(runtime_path, compiler_plugin_path, dispatch_library_path))

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """No model can be made with it after that; those that are made run on."""
        self._capsule = None

    @property
    def options(self) -> EnvironmentOptions:
        """Those that it was made with."""
        return self._options

    @property
    def capsule(self) -> object:
        """What stands for it. Raises `ValueError` if it is closed."""
        if self._capsule is None:
            raise ValueError("Environment is no longer valid")
        return self._capsule
