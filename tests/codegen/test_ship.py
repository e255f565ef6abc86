from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.codegen.kernels.elementwise import Map
from gossamer.codegen.library import walker
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.programs import generator, library
from gossamer.programs.archive import archive_files
from gossamer.programs.generator import SEAL, generator_version
from gossamer.programs.library import kernel_library
from gossamer.targets import Target, all_targets
from gossamer.tools import _ship as ship
from gossamer.tools._ship import targets_here, write_archives


def few(target: Target) -> Iterator[KernelSpec]:
    yield Map(target.plain.name, ("relu", 0))
    yield Map(target.name, ("abs", 0))
    yield walker(target)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an installation has its archives."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    for module in (generator, library):
        monkeypatch.setattr(module, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(library, "_libraries", {})
    return tmp_path / "shipped"


def test_what_is_written_is_found(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archives(shipped, all_targets().values(), few)
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("compiling for avx2, ")
    assert {line.partition(" kernels")[0] for line in told[1:]} == {
        f"{name}: {1 if target.base else 3}" for name, target in all_targets().items()
    }
    assert {path.name for path in shipped.iterdir()} == {SEAL, *(path.name for path in archive_files(shipped))}
    for target in all_targets().values():
        assert kernel_library(target).missing([spec.name for spec in few(target)]) == ()
        assert kernel_library(target).archives[0].check() == ()


def test_a_checkout_needs_what_this_machine_runs(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ship, "host_target", lambda _: all_targets()["avxvnni"])
    monkeypatch.setattr(ship, "all_targets", lambda: pytest.fail("asked for all"))
    monkeypatch.setattr(ship, "basis", few)
    monkeypatch.setattr("sys.argv", ["_ship", str(shipped), "--here"])
    assert {target.name for target in targets_here()} == {"avxvnni", "avx2"}
    ship.main()
    assert {path.name.split("-")[0] for path in archive_files(shipped)} == {"avxvnni", "avx2"}


def test_where_there_is_no_machine_code_nothing_is_compiled(
    shipped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ship, "host_target", lambda _: None)
    write_archives(shipped, targets_here())
    assert capsys.readouterr().out.startswith("compiling for no target")
    assert [path.name for path in shipped.iterdir()] == [SEAL]


def test_the_seal_is_that_of_the_sources(shipped: Path) -> None:
    write_archives(shipped, all_targets().values(), few)
    generator._sealed.cache_clear()
    assert generator_version.__wrapped__() == generator.version_of_sources()
    generator._sealed.cache_clear()
    assert (shipped / SEAL).read_text().splitlines()[0] == generator.version_of_sources()


def test_equal_sources_make_equal_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, processes in (("first", 1), ("second", 2)):
        write_archives(tmp_path / name, all_targets().values(), few, processes)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("first", "second")
    )
    assert first == second


def test_sources_that_change_meanwhile_are_an_error(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = iter(("1 a", "1 b"))
    monkeypatch.setattr(ship, "version_of_sources", lambda: next(versions))
    with pytest.raises(CompileError, match="The sources changed while their kernels were compiled"):
        write_archives(shipped, all_targets().values(), few)
    assert not (shipped / SEAL).exists()
