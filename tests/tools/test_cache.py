"""``gossamer cache``: what is in the archives, and what is thrown away."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.programs import host, library
from gossamer.programs.archive import DEFAULT_LIMIT, KernelArchive, archive_key
from gossamer.programs.generator import generator_version, is_llvm_here
from gossamer.programs.kernel_file import Blob
from gossamer.targets import Target, all_targets
from gossamer.tools import cache
from tests.conftest import ROOT
from tests.programs.kernels import returning, target_here
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]

HERE, ELSEWHERE = all_targets()["avx2"], all_targets()["neon"]


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation on an AVX2 machine whose directories are the test's; the user's."""
    generator_version()  # which is kept where it was asked for first
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(host, "cpu_features", lambda: HERE.requires)
    return tmp_path / "cache" / "kernels"


def fill(directory: Path, target: Target, version: str | None = None, *names: str) -> Path:
    archive = KernelArchive(directory, archive_key(target, version or generator_version()))
    code = returning(1).code
    assert archive.add({name: Blob(code + bytes(4000), 0) for name in names or ("k1", "k2")})
    assert archive.path is not None
    return archive.path


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"!")


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip(" ─")]


def test_nothing_is_there_yet(gossamer: Run, user: Path) -> None:
    result = gossamer("cache", "show", "--json")
    assert result.code == 0
    assert result.json == {
        "target": "avx2",
        "version": generator_version(),
        "llvmlite": is_llvm_here(),
        "shipped": None,
        "user": str(user),
        "problem": None,
        "limit": DEFAULT_LIMIT,
        "plans": 0,
        "archives": [],
    }
    assert gossamer("cache", "check").out == "0 kernels in 0 archives, none damaged\n"
    for change in ("prune", "clear"):
        assert words(gossamer("cache", change).out) == ["deleted 0 kernels, 0 bytes", "left 0 kernels, 0 bytes"]
    assert not user.exists()


def test_what_is_there_is_shown(gossamer: Run, user: Path, tmp_path: Path) -> None:
    shipped = fill(tmp_path / "shipped", HERE)
    foreign = fill(tmp_path / "shipped", ELSEWHERE)
    mine, old = fill(user, HERE, None, "k3"), fill(user, HERE, "0.0.1 00000000")
    truncated = fill(user, ELSEWHERE, "0.0.2 00000000")
    truncated.write_bytes(truncated.read_bytes()[:-1])
    for number, path in enumerate((shipped, foreign, mine, old, truncated)):
        os.utime(path, (number, number))
    report = gossamer("cache", "show", "--json", "--kernels").json
    assert report["shipped"] == str(tmp_path / "shipped")
    assert report["kernels"] == ["k1", "k2", "k3"]
    assert report["archives"][0] == {
        "place": "shipped",
        "path": str(shipped),
        "target": "avx2",
        "version": generator_version(),
        "kernels": 2,
        "bytes": shipped.stat().st_size,
        "state": "in use",
        "problem": None,
    }
    shown = [(archive["path"], archive["state"], archive["problem"]) for archive in report["archives"]]
    assert shown == [
        (str(shipped), "in use", None),
        (str(foreign), "for another CPU", None),
        (str(mine), "in use", None),
        (str(old), "of another version", None),
        (str(truncated), "not usable", "is truncated"),
    ]
    lines = words(gossamer("cache", "show", "--kernels").out)
    used = sum(path.stat().st_size for path in (mine, old, truncated))
    assert lines[:2] == ["this CPU avx2", f"version {generator_version()}"]
    assert f"user {user} ({used:,} of 33,554,432 bytes)" in lines
    assert "place target version kernels bytes state" in lines
    assert f"user avx2 0.0.1 00000000 2 {old.stat().st_size:,} of another version" in lines
    assert f"user 0 {truncated.stat().st_size:,} not usable: is truncated" in lines
    assert lines[-3:] == ["k1", "k2", "k3"]


def test_what_ships_for_an_extension_is_used_with_what_it_extends(
    gossamer: Run, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension = all_targets()["avx512vnni"]
    monkeypatch.setattr(host, "cpu_features", lambda: extension.requires)
    for member in extension.family():
        fill(tmp_path / "shipped", member, None, member.name)
        fill(user, member, None, f"mine_{member.name}")
    report = gossamer("cache", "show", "--json", "--kernels").json
    assert report["target"] == "avx512vnni"
    states = {(one["place"], one["target"]): one["state"] for one in report["archives"]}
    assert states == {
        ("shipped", "avx512"): "in use",
        ("shipped", "avx512vnni"): "in use",
        ("user", "avx512"): "for another CPU",
        ("user", "avx512vnni"): "in use",
    }
    assert report["kernels"] == ["avx512", "avx512vnni", "mine_avx512vnni"]


def test_a_place_that_cannot_be_used_is_a_problem(gossamer: Run, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user.parent.mkdir()
    user.touch()
    assert gossamer("cache", "show", "--json").json["problem"] == f"{user} is not a directory"
    assert f"problem {user} is not a directory" in words(gossamer("cache", "show").out)
    monkeypatch.setattr(cache, "user_directory", lambda: None)
    assert "problem there is no directory for the user's archives" in words(gossamer("cache", "show").out)[-1]
    assert gossamer("cache", "clear", "--json").json["user"] is None


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
def test_an_archive_that_others_may_have_written_is_not_usable(gossamer: Run, user: Path) -> None:
    path = fill(user, HERE)
    path.chmod(0o666)
    (archive,) = gossamer("cache", "show", "--json").json["archives"]
    assert archive["state"] == "not usable"
    assert archive["problem"] == f"{path} can be written by other users (mode 666)"


def test_a_cpu_without_a_target(gossamer: Run, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "cpu_features", frozenset)
    fill(user, HERE)
    report = gossamer("cache", "show", "--json", "--kernels").json
    assert (report["target"], report["kernels"]) == (None, [])
    assert report["archives"][0]["state"] == "for another CPU"
    assert "this CPU no target: it runs no machine code" in words(gossamer("cache", "show").out)
    assert gossamer("cache", "prune", "--limit", "0", "--json").json["left"] == {"kernels": 0, "bytes": 0}


def test_damage_is_found_wherever_it_is(gossamer: Run, user: Path, tmp_path: Path) -> None:
    mine, old = fill(user, HERE), fill(tmp_path / "shipped", ELSEWHERE, "0.0.1 00000000")
    assert gossamer("cache", "check").out == "4 kernels in 2 archives, none damaged\n"
    assert gossamer("cache", "check").code == 0
    damage(old)
    result = gossamer("cache", "check")
    assert result.code == 1
    last = KernelArchive(old.parent, archive_key(ELSEWHERE, "0.0.1 00000000"), writable=False).check()
    assert result.out.splitlines() == [
        f"{old}: damaged: {', '.join(last)}",
        "4 kernels in 2 archives, 1 damaged",
    ]
    mine.write_bytes(b"no archive at all, and long enough to be looked at")
    result = gossamer("cache", "check", "--json")
    assert result.code == 1
    found = {archive["path"]: (archive["problem"], archive["damaged"]) for archive in result.json["archives"]}
    assert found == {
        str(old): (None, list(last)),
        str(mine): ("is not an archive of kernels of this format", []),
    }


def test_pruning_leaves_what_is_used_here(gossamer: Run, user: Path, tmp_path: Path) -> None:
    shipped, mine, old = fill(tmp_path / "shipped", HERE), fill(user, HERE), fill(user, HERE, "0.0.1 00000000")
    size = mine.stat().st_size
    assert gossamer("cache", "prune", "--json").json["deleted"] == {"kernels": 0, "bytes": 0}
    assert gossamer("cache", "prune", "--limit", size, "--json").json == {
        "user": str(user),
        "deleted": {"kernels": 2, "bytes": size},
        "left": {"kernels": 2, "bytes": size},
    }
    assert (shipped.exists(), mine.exists(), old.exists()) == (True, True, False)
    assert words(gossamer("cache", "prune", "--limit", "5K").out)[0].startswith("deleted 1 kernel,")
    assert gossamer("cache", "prune", "--limit", "0", "--json").json["left"]["kernels"] == 0


@pytest.mark.parametrize("size", ["many", "-1", "1T", "1.5M", ""])
def test_sizes_that_are_none(gossamer: Run, size: str) -> None:
    result = gossamer("cache", "prune", f"--limit={size}")
    assert result.code == 2
    assert f"{size!r} is no size; write bytes, or a number and K, M or G, as in 8M" in result.err


def test_models_are_made_ready(gossamer: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    target_here()
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    for module in (cache, library):
        monkeypatch.setattr(module, "SHIPPED", tmp_path / "shipped")
    model = ROOT / "examples" / "digits.tflite"
    (first,) = gossamer("cache", "warm", model, "--json").json["models"]
    assert first["model"] == str(model)
    assert first["compiled"] == first["kernels"] > 0
    assert first["failures"] == []
    result = gossamer("cache", "warm", model)
    assert result.code == 0
    assert words(result.out) == [f"{model}: {first['kernels']} kernels, 0 of them compiled now; 1 plan kept"]
    shown = gossamer("cache", "show", "--json").json
    assert (shown["plans"], shown["archives"][0]["kernels"]) == (
        1,
        first["kernels"] + 2,
    )  # and the walker, and its entry
    assert gossamer("cache", "clear", "--json").json["left"] == {"kernels": 0, "bytes": 0}
    assert gossamer("cache", "show", "--json").json["plans"] == 0
    assert not list((tmp_path / "cache" / "kernels").glob("*.graphs"))


def test_what_cannot_be_kept_is_a_failure(gossamer: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    target_here()
    (tmp_path / "file").touch()
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "file"))
    result = gossamer("cache", "warm", ROOT / "examples" / "digits.tflite", "--json")
    assert result.code == 1
    (facts,) = result.json["models"]
    assert facts["kernels"] > 0
    (kernels, plan) = facts["failures"]
    assert kernels.startswith(f"{facts['kernels']} kernels cannot be kept: ")
    assert plan.startswith("the plan of nodes 0-")
    assert all(str(tmp_path / "file") in failure for failure in (kernels, plan))


@pytest.mark.usefixtures("lenient")
def test_what_cannot_be_compiled_is_a_failure(gossamer: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    target_here()
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    model = ROOT / "examples" / "digits.tflite"
    result = gossamer("cache", "warm", model)
    assert result.code == 1
    first, second = result.out.splitlines()
    assert first == f"{model}: 0 kernels, 0 of them compiled now; 0 plans kept"
    assert " on the reference kernels, in NumPy" in second
    assert second.endswith('python -m pip install "gossamer[compile]".')


def test_a_model_that_is_not_there(gossamer: Run) -> None:
    result = gossamer("cache", "warm", "no_such.tflite", "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: model 'no_such.tflite' does not exist")


def test_what_writers_left_that_died_goes(gossamer: Run, user: Path) -> None:
    fill(user, HERE)
    left = [user / name for name in ("a.new", "b.part", "c.part")]
    for path in (*left, user / "d.decoders"):
        path.touch()
    os.utime(left[1], (0, 0))
    gossamer("cache", "prune")
    assert [path.exists() for path in left] == [False, False, True]
    gossamer("cache", "clear")
    assert [path.name for path in user.iterdir()] == ["lock"]


def test_clearing_leaves_what_ships(gossamer: Run, user: Path, tmp_path: Path) -> None:
    shipped = fill(tmp_path / "shipped", HERE)
    paths = [fill(user, HERE), fill(user, ELSEWHERE), fill(user, HERE, "0.0.1 00000000")]
    assert words(gossamer("cache", "clear").out)[0].startswith("deleted 6 kernels, ")
    assert [path.exists() for path in (shipped, *paths)] == [True, False, False, False]


def test_a_directory_that_somebody_holds_is_an_error(
    gossamer: Run, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(user, HERE)
    monkeypatch.setattr("gossamer.programs.archive.LOCK_TIMEOUT", 0.01)
    with host.file_lock(user / "lock", 1):
        result = gossamer("cache", "clear")
    assert (result.code, result.out) == (1, "")
    assert "has been locked by another process" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("name", ["show", "check", "warm", "prune", "clear"])
def test_every_command_has_help_with_an_example_and_json(gossamer: Run, name: str) -> None:
    result = gossamer("cache", name, "--help")
    assert result.code == 0
    assert f"Example: gossamer cache {name}" in result.out
    assert "--json" in result.out
    assert "Exit codes: 0 done" in result.out


def test_an_unknown_command_is_answered_with_the_nearest(gossamer: Run) -> None:
    result = gossamer("cache", "chek")
    assert result.code == 2
    assert "check" in result.err
