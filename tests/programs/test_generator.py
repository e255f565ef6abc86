from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.programs import generator
from gossamer.programs.generator import (
    SEAL,
    generator_version,
    plan_version,
    seal,
    sources,
    version_of_sources,
)


def version() -> str:
    """The version as a new process finds it."""
    generator._sealed.cache_clear()
    try:
        return generator_version.__wrapped__()
    finally:
        generator._sealed.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sources, as an installation has them: with a seal."""
    for name in (*sources(), "ops/add.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(generator.PACKAGE / name, tmp_path / name)
    monkeypatch.setattr(generator, "PACKAGE", tmp_path)
    monkeypatch.setattr(generator, "PLANNING", (*generator.PARTS, "ops"))
    monkeypatch.setattr(generator, "SHIPPED", tmp_path / "programs" / "shipped")
    generator.SHIPPED.mkdir()
    (generator.SHIPPED / SEAL).write_text(seal())
    return tmp_path


def imported_by(path: Path) -> Iterator[str]:
    """Modules of ours, as files of the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            file = "/".join(name.split(".")[1:])
            for candidate in (f"{file}.py", f"{file}/__init__.py"):
                if name.startswith("gossamer.") and (generator.PACKAGE / candidate).exists():
                    yield candidate


def test_the_sources_are_all_that_kernels_are_made_of() -> None:
    reached = [name for name in sources() if name.startswith("codegen/kernels/")]
    for name in reached:
        reached += [found for found in imported_by(generator.PACKAGE / name) if found not in reached]
    assert "targets/avx2.py" in sources()  # found by its place
    # Names and forms only, what is allocated, and sizes, which are plain numbers where kernels are made.
    forms = {"config.py", "disk_cache.py", "errors.py", "records.py", "schema/enumeration.py", "schema/enums.py"}
    allowed = {*forms, "limits.py", "sizes.py"}
    assert set(reached) - set(sources()) <= allowed


def test_the_version_changes_with_the_text_of_every_source(package: Path) -> None:
    seen = {version_of_sources()}
    for name in sources():
        with (package / name).open("a") as stream:
            stream.write("\n")
        seen.add(version_of_sources())
        seen.add(version())
    assert len(seen) == 1 + len(sources())


def test_a_new_source_is_another_version(package: Path) -> None:
    before = version_of_sources()
    (package / "codegen" / "kernels" / "zzz.py").touch()
    assert version_of_sources() != before


@pytest.fixture
def checkout(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same without a seal, an hour old; nothing is remembered of it."""
    (generator.SHIPPED / SEAL).unlink()
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(generator, "SETTLED", -3600.0)
    return package


def test_a_checkout_reads_its_sources_only_if_they_look_changed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = version_of_sources()
    assert version() == expected
    with monkeypatch.context() as context:
        context.setattr(generator, "version_of_sources", lambda: pytest.fail("sources were read"))
        assert version() == expected
    path = checkout / "codegen" / "ir.py"
    looked = path.stat()
    path.write_bytes(path.read_bytes().swapcase())
    os.utime(path, ns=(looked.st_atime_ns, looked.st_mtime_ns))  # of the same size and time
    assert version() == version_of_sources() != expected
    (checkout / "targets" / "avx1024.py").touch()
    assert version() == version_of_sources()


def test_sources_that_were_changed_just_now_are_not_believed_to_look_so(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "SETTLED", 2.0)
    (checkout / "codegen" / "ir.py").touch()
    assert version() == version_of_sources()
    assert not (checkout / "cache").exists()


def test_what_is_remembered_may_be_damaged_or_nowhere(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = version()
    (kept,) = (checkout / "cache" / "kernels").iterdir()
    for content in (b"", b"\xff", b"1.0 abc\n"):
        kept.write_bytes(content)
        assert version() == expected
    kept.chmod(0o666)
    assert version() == expected
    (checkout / "file").touch()
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(checkout / "file"))
    assert version() == expected
    monkeypatch.setattr(generator, "user_directory", lambda: None)
    assert version() == expected


def test_an_installation_does_not_read_its_sources(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, plans = version_of_sources(), version_of_sources(generator.PLANNING)
    monkeypatch.setattr(generator, "version_of_sources", lambda: pytest.fail("sources were read"))
    assert version() == expected
    assert plan_version.__wrapped__() == plans
    generator._sealed.cache_clear()
    # Where modules are kept in other forms, their text is not there.
    for name in sources():
        (package / name).unlink()
    assert version() == expected


@pytest.mark.parametrize("name", ["codegen/ir.py", "targets/avx2.py", "programs/team.py"])
def test_a_source_that_was_changed_breaks_the_seal(package: Path, name: str) -> None:
    sealed = version()
    path = package / name
    installed = (generator.SHIPPED / SEAL).stat().st_mtime
    text = path.read_bytes()
    path.write_bytes(text.swapcase())  # of the same size, later
    os.utime(path, (installed + 3600, installed + 3600))
    assert version() == version_of_sources() != sealed
    path.write_bytes(text + b"#")  # of another size, at any time
    os.utime(path, (installed - 3600, installed - 3600))
    assert version() == version_of_sources() != sealed


def test_an_operator_that_changes_makes_other_plans(package: Path) -> None:
    before = seal().splitlines()
    with (package / "ops" / "add.py").open("a") as stream:
        stream.write("\n")
    after = seal().splitlines()
    assert after[0] == before[0]
    assert after[1] != before[1]


@pytest.mark.parametrize("text", ["", "1.0 abc", "1.0 abc\n1.0 def\nmany codegen/ir.py\n", "\xff"])
def test_a_damaged_seal_is_not_believed(package: Path, text: str) -> None:
    (generator.SHIPPED / SEAL).write_bytes(text.encode("latin-1"))
    assert version() == version_of_sources()
