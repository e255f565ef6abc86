"""Models in files and folders, in versions, and what becomes of them when the files change.

A path is a file, ``NAME.tflite``, which is version 1; the folder of a model, ``NAME/VERSION.tflite`` or
``NAME/VERSION/ANY.tflite``; or a folder of such files and folders. ``NAME=PATH`` gives a model another name. Versions
are numbers, and the greatest that is ready is the default. Names that begin with a dot are passed over.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gossamer.errors import ModelError, did_you_mean
from gossamer.records import record, replace
from gossamer.serve.batching import Observer, Pending, Scheduler
from gossamer.serve.logs import say
from gossamer.serve.model import ModelOptions, ServedModel, available_cpus
from gossamer.serve.protocol import IndexEntry, InferenceRequest, ModelMetadata, NotReady, UnknownModel

LOADING, READY, UNLOADING, UNAVAILABLE = "LOADING", "READY", "UNLOADING", "UNAVAILABLE"

SUFFIX = ".tflite"

Key = tuple[str, str]
"""Name and version."""


@record(frozen=True)
class Source:
    """A file, and what it was when it was looked at: when it was written to, device, node, size, rights and owner.
    ``fault``: why there is no such file."""

    path: str
    stamp: tuple[int, ...] = ()
    fault: str = ""

    def is_fresh(self, seconds: float) -> bool:
        """Whether it has been written to in the last so many seconds."""
        return bool(self.stamp) and 0 <= time.time() - 1e-9 * self.stamp[0] < seconds


class _BeingWritten(Exception):
    """A file changes while it is read."""


_WRITTEN = "its file is being written"


def find_models(paths: Iterable[str | os.PathLike[str]]) -> dict[Key, Source]:
    """The versions of models in these files and folders. Of two with one name and version the first counts. Raises
    `OSError` for a folder that is there and cannot be read."""
    found: dict[Key, Source] = {}
    for name, path in map(split_name, paths):
        for (own_name, version), source in _models_in(path):
            key = name or own_name, version
            if key not in found:
                found[key] = source
            elif found[key].path != source.path:
                fault = f"{source.path} is version {key[1]} of {key[0]!r} too, and is not served"
                found[key] = replace(found[key], fault=found[key].fault or fault)
    return found


def split_name(path: str | os.PathLike[str]) -> tuple[str, Path]:
    """The name and the path of ``NAME=PATH``; "" and all of it for what is there as it is, or has no name."""
    name, is_named, rest = os.fspath(path).partition("=")
    if not (is_named and name and rest) or {"/", os.sep} & set(name) or os.path.exists(path):
        return "", Path(path)
    return name, Path(rest)


def _models_in(path: Path) -> Iterator[tuple[Key, Source]]:
    if not path.is_dir():
        if path.suffix == SUFFIX or path.exists():
            yield (path.name.removesuffix(SUFFIX), "1"), _source(path)
        return
    children = _children(path)
    if any(_version(child) for child in children):
        yield from _versions_of(path)
        return
    for child in children:
        if child.is_dir():
            yield from _versions_of(child)
        elif child.suffix == SUFFIX:
            yield (child.stem, "1"), _source(child)


def _versions_of(folder: Path) -> Iterator[tuple[Key, Source]]:
    for child in _children(folder):
        version = _version(child)
        if not version:
            continue
        key = folder.resolve().name if folder.name in ("", "..") else folder.name, version
        if not child.is_dir():
            yield key, _source(child)
            continue
        files = [file for file in _children(child) if file.suffix == SUFFIX]
        if len(files) == 1:
            yield key, _source(files[0])
        else:
            yield key, Source(str(child), fault=f"{child} has {len(files)} files *{SUFFIX}; a version has one")


def _version(path: Path) -> str:
    """The number that a file or folder of a version is named after, "" for others."""
    name = path.name if path.is_dir() else path.stem if path.suffix == SUFFIX else ""
    return str(int(name)) if name.isascii() and name.isdigit() and len(name) < 20 else ""


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(child for child in folder.iterdir() if not child.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):  # it has gone in the meantime
        return []


def _source(path: Path) -> Source:
    try:
        return Source(str(path), _stamp(os.stat(path)))
    except OSError as error:
        return Source(str(path), fault=f"{path}: {error.strerror}")


def _stamp(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_mtime_ns, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mode, stat.st_uid, stat.st_gid


class _Version:
    """A version of a model: what runs it now, and what was last found of its file."""

    def __init__(self) -> None:
        self.source: Source | None = None
        self.scheduler: Scheduler | None = None
        self.state = LOADING
        self.reason = ""


class Repository:
    """The models of some files and folders. `start` loads them, and has changes of the files followed; `close` ends it.

    ``options``: of every model. ``observe``: see `Observer`. ``watch``: follow changes, at once where the package
    watchfiles is installed, and every ``poll_interval`` seconds at the latest.

    A version that takes the place of another is loaded beside it; what runs on the old one is finished there. One that
    cannot be loaded is in the `index` with its reason, and is tried again when its file has changed. A file that is
    found while changes are followed is loaded when nobody has written to it for ``poll_interval`` seconds: one that is
    being copied is whole then. All methods may be called from any thread.
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        options: ModelOptions | None = None,
        *,
        observe: Observer | None = None,
        watch: bool = True,
        poll_interval: float = 1.0,
    ) -> None:
        self.paths = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
        self.options = ModelOptions() if options is None else options
        self._observe = observe
        self._watches = watch
        self._poll_interval = poll_interval
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        """Held by whoever looks at the files: one at a time."""
        self._versions: dict[str, dict[str, _Version]] = {}
        self._unloaded: set[str] = set()
        self._leaving: set[threading.Thread] = set()
        self._stop = threading.Event()
        self._watcher: threading.Thread | None = None
        self._started = self._closed = False

    # -- what is there

    @property
    def ready(self) -> bool:
        """Whether the models that there were at the start are loaded, or have been tried."""
        return self._started and not self._closed

    def index(self) -> list[IndexEntry]:
        """Every version of every model, with its state, and the reason if it is not ready or could not be replaced."""
        with self._lock:
            return [
                IndexEntry(name, version, each.state, each.reason)
                for name, versions in sorted(self._versions.items())
                for version, each in sorted(versions.items(), key=lambda item: int(item[0]))
            ]

    def get(self, name: str, version: str = "") -> ServedModel:
        """A version of a model that is ready, by default the newest. Raises `UnknownModel`, `NotReady`."""
        return self._scheduler(name, version).model

    def metadata(self, name: str, version: str = "") -> ModelMetadata:
        """What clients are told of a model, with the versions that are ready. Raises as `get`."""
        metadata = self.get(name, version).metadata
        with self._lock:
            versions = self._versions.get(name, {})
            ready = sorted((number for number, each in versions.items() if each.state == READY), key=int)
        return replace(metadata, versions=tuple(ready) or metadata.versions)

    def is_ready(self, name: str, version: str = "") -> bool:
        """Whether a model answers requests. Raises `UnknownModel`."""
        try:
            self._scheduler(name, version)
        except NotReady:
            return False
        return True

    def queue_lengths(self) -> list[tuple[str, str, int]]:
        """Name and version of models that are ready, and how many requests wait for each."""
        return [(s.model.name, s.model.version, s.queue_length) for s in self._schedulers()]

    def infer(self, request: InferenceRequest) -> Pending:
        """See `Scheduler.submit`. Raises also `UnknownModel`, and `NotReady` for a model that cannot run."""
        while True:
            scheduler = self._scheduler(request.model_name, request.model_version)
            try:
                return scheduler.submit(request)
            except NotReady:
                # It has been replaced since it was found; the one in its place takes the request.
                if self._closed or self._scheduler(request.model_name, request.model_version) is scheduler:
                    raise

    # -- what changes

    def start(self) -> None:
        """Load what there is, as many models at a time as there are CPUs; then follow changes in a thread. Raises
        `OSError` for a folder that cannot be read."""
        self.refresh()
        self._started = True
        if self._watches and self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="repository", daemon=True)
            self._watcher.start()

    def refresh(self) -> None:
        """Look at the files: load what is new or has changed, unload what has gone. Returns when that is done. Raises
        `OSError` for a folder that cannot be read: what is served stays then."""
        self._refresh()

    def load(self, name: str) -> None:
        """Have a model that was unloaded, or could not be loaded, loaded from its files. Raises `UnknownModel` if there
        are none, `NotReady` with the reason if no version of it can be."""
        with self._refreshing:
            found = find_models(self.paths)
            if not any(name == known for known, _ in found):
                raise self._unknown(name, {known for known, _ in found})
            self._unloaded.discard(name)
            with self._lock:
                for each in self._versions.get(name, {}).values():
                    if each.state != READY:
                        each.source = None
            self._follow(found)
        self._scheduler(name, "")

    def unload(self, name: str) -> None:
        """Finish what a model has accepted, and forget it until `load`. Raises `UnknownModel`."""
        with self._refreshing:
            with self._lock:
                if name not in self._versions:
                    raise self._unknown(name, self._versions)
                keys = [(name, version) for version in self._versions[name]]
            self._unloaded.add(name)
            for key in keys:
                self._drop(key, "it was unloaded")

    def hurry(self) -> None:
        """Run what waits for others to run with: the server is about to end."""
        for scheduler in self._schedulers():
            scheduler.hurry()

    def close(self, timeout: float | None = None) -> bool:
        """Refuse new requests, finish those that are accepted, and end all threads. What is left after so many seconds
        fails with `NotReady`; ``False`` if there was any."""
        self._closed = True
        self._stop.set()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join()
        leaving = [
            (scheduler, threading.Thread(target=scheduler.drain, daemon=True)) for scheduler in self._schedulers()
        ]
        for _, thread in leaving:
            thread.start()
        limit = None if timeout is None else time.monotonic() + timeout
        is_done = True
        with self._lock:
            others = list(self._leaving)
        for thread in [thread for _, thread in leaving] + others:
            thread.join(None if limit is None else max(0.0, limit - time.monotonic()))
            is_done &= not thread.is_alive()
        if not is_done:
            for scheduler, _ in leaving:
                scheduler.abort()
        return is_done

    # -- how

    def _schedulers(self) -> list[Scheduler]:
        with self._lock:
            return [
                each.scheduler
                for versions in self._versions.values()
                for each in versions.values()
                if each.scheduler is not None
            ]

    def _scheduler(self, name: str, version: str) -> Scheduler:
        with self._lock:
            versions = self._versions.get(name)
            if versions is None:
                raise self._unknown(name, self._versions)
            if version:
                each = versions.get(version)
                if each is None:
                    known = ", ".join(sorted(versions, key=int))
                    raise UnknownModel(f"model {name!r} has no version {version!r}; it has {known}")
            else:
                ready = [number for number, each in versions.items() if each.scheduler is not None]
                each = versions[max(ready or versions, key=int)]
                version = max(ready or versions, key=int)
            if each.scheduler is not None:
                return each.scheduler
            reason = f": {each.reason}" if each.reason else ""
            raise NotReady(f"model {name!r} version {version} is {each.state}{reason}")

    def _unknown(self, name: str, known: Iterable[str]) -> UnknownModel:
        return UnknownModel(f"there is no model {name!r}{did_you_mean(name, known)}")

    def _refresh(self, *, waits: bool = False) -> None:
        """``waits``: for what is being written, until the next time."""
        with self._refreshing:
            if not self._closed:
                self._follow(find_models(self.paths), waits=waits)

    def _follow(self, found: dict[Key, Source], *, waits: bool = False) -> None:
        with self._lock:
            known = {(name, version) for name, versions in self._versions.items() for version in versions}
        for key in known - found.keys():
            self._drop(key)
        changed = []
        for key, source in found.items():
            if key[0] in self._unloaded:
                continue
            with self._lock:
                each = self._versions.setdefault(key[0], {}).setdefault(key[1], _Version())
                is_new = each.source != source
                is_early = is_new and waits and source.is_fresh(self._poll_interval)
                if is_new and not is_early:
                    each.source = source
                    if each.scheduler is None:
                        each.state, each.reason = LOADING, ""
                    changed.append((key, source))
            if is_early:
                self._wait_for(key)
        if len(changed) <= 1 or available_cpus() == 1:
            for key, source in changed:
                self._load(key, source)
        else:
            with ThreadPoolExecutor(available_cpus()) as pool:
                list(pool.map(lambda change: self._load(*change), changed))

    def _load(self, key: Key, source: Source) -> None:
        """Load a version beside the one that runs, and put it in its place; or say why not."""
        name, version = key
        try:
            scheduler = Scheduler(_load(source, key, self.options), self._observe)
        except _BeingWritten:
            self._wait_for(key)
            return
        except Exception as error:  # whatever is wrong with one model, the others go on
            reason = f"{type(error).__name__}: {error}".rstrip()
            with self._lock:
                each = self._versions[name][version]
                if each.scheduler is None:
                    each.state, each.reason = UNAVAILABLE, reason
                else:
                    each.reason = f"its file has changed, and cannot be loaded: {reason}"
            say("model cannot be loaded", logging.ERROR, model=name, version=version, reason=reason)
            return
        with self._lock:
            each = self._versions[name][version]
            old, each.scheduler = each.scheduler, scheduler
            each.state, each.reason = READY, source.fault
        say("model ready", model=name, version=version, path=source.path, reason=source.fault or None)
        if old is not None:
            self._leave(old)

    def _wait_for(self, key: Key) -> None:
        """Leave a version until its file is whole, which is seen at another look."""
        name, version = key
        with self._lock:
            each = self._versions[name][version]
            each.source = None
            if each.scheduler is None:
                each.state = LOADING
            is_said = each.reason == _WRITTEN
            each.reason = _WRITTEN
        if not is_said:
            say("model is being written", model=name, version=version)

    def _drop(self, key: Key, reason: str = "") -> None:
        """Have a version finish what it has accepted; its place is empty at once, or says why it is not there."""
        name, version = key
        with self._lock:
            each = self._versions[name][version]
            old, each.scheduler = each.scheduler, None
            if reason:
                each.source, each.state, each.reason = None, UNLOADING if old is not None else UNAVAILABLE, reason
            else:
                del self._versions[name][version]
                if not self._versions[name]:
                    del self._versions[name]
        say("model unloaded", model=name, version=version, reason=reason or None)
        if old is not None:
            self._leave(old, each)

    def _leave(self, scheduler: Scheduler, dropped: _Version | None = None) -> None:
        def drain() -> None:
            scheduler.drain()
            with self._lock:
                if dropped is not None and dropped.state == UNLOADING:
                    dropped.state = UNAVAILABLE
                self._leaving.discard(thread)

        thread = threading.Thread(target=drain, name=f"{scheduler.model.name}-leaves", daemon=True)
        with self._lock:
            self._leaving.add(thread)
        thread.start()

    def _watch(self) -> None:
        """Look at the files when something has changed in their folders, and every now and then."""
        fault = ""
        for _ in self._changes():
            if self._stop.is_set():
                return
            try:
                self._refresh(waits=True)
                fault = ""
            except Exception as error:
                if fault != repr(error):  # once, and not at each look
                    fault = repr(error)
                    expected = isinstance(error, OSError)
                    say("repository cannot be looked at", logging.ERROR, None if expected else error, reason=str(error))

    def _changes(self) -> Iterator[Any]:
        try:
            from watchfiles import watch
        except ImportError:
            while not self._stop.wait(self._poll_interval):
                yield None
            return
        while not self._stop.is_set():
            # A file is followed by its folder: whoever replaces it leaves another one there.
            paths = [str(path) for _, path in map(split_name, self.paths)]
            folders = {path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path)) for path in paths}
            folders = {folder for folder in folders if os.path.isdir(folder)}
            if not folders:
                self._stop.wait(self._poll_interval)
                yield None
                continue
            milliseconds = max(1, int(self._poll_interval * 1000))
            try:
                yield from watch(
                    *folders,
                    stop_event=self._stop,
                    watch_filter=None,
                    debounce=200,
                    rust_timeout=milliseconds,
                    yield_on_timeout=True,
                )
            except (OSError, RuntimeError) as error:  # a folder has gone, or there are too many to be told of
                say("folders cannot be watched", logging.WARNING, reason=str(error), poll_interval=self._poll_interval)
                self._stop.wait(self._poll_interval)
                yield None


def _load(source: Source, key: Key, options: ModelOptions) -> ServedModel:
    """The model of a file, which is read, not mapped: see `ServedModel`. Raises `_BeingWritten`, `OSError`, and what
    that raises."""
    if source.fault and not source.stamp:
        raise FileNotFoundError(source.fault)
    content = Path(source.path).read_bytes()
    if _stamp(os.stat(source.path)) != source.stamp:
        raise _BeingWritten
    if not content:
        raise ModelError(f"{source.path} is empty")
    return ServedModel(content, *key, options)
