"""A path that exists is complete; a path that leaves the folder is refused; a copy on the host is only a copy."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from anabranch.errors import CheckpointError, SettingError
from anabranch.state.remote import HostCache
from anabranch.state.store import Store
from tests.state.state_tools import remote_store, store_of

both = pytest.mark.parametrize("kind", ["local", "remote"])


@both
def test_what_was_written_is_read_mapped_listed_and_deleted(kind: str, tmp_path: Path) -> None:
    store = store_of(kind, tmp_path)
    assert (list(store.list()), list(store.top()), store.local) == ([], [], kind == "local")
    store.write("a/b/c.bin", b"one")
    store.write("a/d.bin", b"", durable=False)
    store.write("a/b/c.bin", b"three")
    assert store.read("a/b/c.bin") == bytes(store.map("a/b/c.bin")) == b"three"
    assert bytes(store.map("a/d.bin")) == b""
    assert (store.size("a/b/c.bin"), store.exists("a/b"), store.exists("a/d.bin")) == (5, kind == "local", True)
    assert list(store.list()) == ["a/b/c.bin", "a/d.bin"]
    assert (list(store.list("a/b")), list(store.list("none")), list(store.top())) == (["a/b/c.bin"], [], ["a"])
    store.delete(["a/b/c.bin", "a/gone.bin"])
    assert list(store.list()) == ["a/d.bin"]


@both
@pytest.mark.parametrize("verb", ["read", "map", "size"])
def test_a_file_that_is_not_there_is_file_not_found(kind: str, verb: str, tmp_path: Path) -> None:
    store = store_of(kind, tmp_path)
    with pytest.raises(FileNotFoundError):
        getattr(store, verb)("a/b.bin")
    assert not store.exists("a/b.bin")


@both
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "a/../../b",
        "a/./b",
        "a//b",
        "a/",
        ".hidden",
        "a\\b",
        "a\0b",
        "a\nb",
        "~/a",
        "a b",
        None,
    ],
)
def test_a_path_that_could_leave_the_folder_is_refused(kind: str, path: Any, tmp_path: Path) -> None:
    store = store_of(kind, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for act in (store.read, store.map, store.size, store.exists, lambda p: store.write(p, b""), store.refresh):
        if not (act == store.refresh and store.local):
            with pytest.raises(CheckpointError, match="not a path inside"):
                act(path)
    with pytest.raises(CheckpointError):
        store.delete(["fine", path])
    assert sorted(tmp_path.rglob("*")) == before


@both
def test_a_write_that_fails_leaves_what_was_there_and_nothing_aside(kind: str, tmp_path: Path) -> None:
    store = store_of(kind, tmp_path)
    store.write("a/b.bin", b"old")
    with pytest.raises(TypeError):
        store.write("a/b.bin", 3.5)
    with pytest.raises(FileExistsError):
        store.write("a/b.bin", b"new", replace=False)
    assert (list(store.list()), store.read("a/b.bin")) == (["a/b.bin"], b"old")
    store.write("a/c.bin", b"new", replace=False)
    assert list(store.list()) == ["a/b.bin", "a/c.bin"]


def test_without_hard_links_nothing_is_replaced_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    store = Store.open(str(tmp_path))
    store.write("a", b"old", replace=False)
    with pytest.raises(FileExistsError):
        store.write("a", b"new", replace=False)
    assert (list(store.list()), store.read("a")) == (["a"], b"old")


def test_names_that_are_no_paths_of_a_store_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "not ours.txt").touch()
    store = Store.open(str(tmp_path))
    assert (list(store.list()), list(store.top())) == ([], ["not ours.txt"])


def test_a_store_is_its_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("my ckpt")
    assert store.uri == str(tmp_path / "my ckpt")
    for uri in (store.uri, f"file://{tmp_path}/my%20ckpt", f"file:{tmp_path}/my ckpt", f"file://localhost{store.uri}/"):
        assert Store.open(uri) is store
    assert not (tmp_path / "my ckpt").exists(), "opening creates nothing"


@pytest.mark.parametrize("uri", ["", "  ", "file://host/a", "file:a", "/", "file:///", "a\0b", None])
def test_a_location_that_makes_no_sense_is_refused(uri: Any) -> None:
    with pytest.raises(SettingError):
        Store.open(uri)


def test_any_file_system_of_pyarrow_is_a_store() -> None:
    store = Store.open("mock:///some/ckpt")
    assert store is Store.open("mock:///some/ckpt")
    store.write("manifests/1.json", b"{}")
    assert not store.local
    assert (list(store.list()), store.read("manifests/1.json")) == (["manifests/1.json"], b"{}")
    assert list(store.top()) == ["manifests"]


def test_a_uri_that_nothing_opens_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(SettingError, match="install fsspec"):
        Store.open("wat://bucket/ckpt")


def test_fsspec_opens_what_pyarrow_does_not() -> None:
    pytest.importorskip("fsspec", reason="an optional dependency")
    store = Store.open("memory://some/ckpt")
    store.write("a/b.bin", b"one", replace=False)
    store.write("a/b.bin", b"two")
    with pytest.raises(FileExistsError):
        store.write("a/b.bin", b"three", replace=False)
    assert (list(store.list()), list(store.list("a")), store.size("a/b.bin")) == (["a/b.bin"], ["a/b.bin"], 3)
    store.delete(["a/b.bin", "a/c.bin"])
    assert list(store.list()) == []
    with pytest.raises(SettingError, match="neither"):
        Store.open("wat://bucket/ckpt")


def test_a_remote_file_is_downloaded_once(tmp_path: Path) -> None:
    store = remote_store(tmp_path)
    store.write("a", b"one")
    assert bytes(store.map("a")) == b"one"
    store.delete(["a"])
    assert bytes(store.map("a")) == b"one"
    assert store.refresh("a")
    assert not store.refresh("a")
    with pytest.raises(FileNotFoundError):
        store.map("a")


def test_the_cache_keeps_what_was_used_last_within_its_bound(tmp_path: Path) -> None:
    store = remote_store(tmp_path, limit=250)
    for name in "abc":
        store.write(name, name.encode() * 100)
    first = store.map("a")
    store.map("b")
    for age, key in enumerate("ab"):  # long ago, a before b; set, because clocks may be coarse
        os.utime(store._cache._path(store._key(key)), (age, age))
    store.map("a")
    store.map("c")
    assert [store.refresh(name) for name in "abc"] == [True, False, True]
    assert bytes(first) == b"a" * 100, "what is mapped stays mapped"


def test_a_file_above_the_bound_is_still_served(tmp_path: Path) -> None:
    store = remote_store(tmp_path, limit=10)
    store.write("a", b"a" * 100)
    assert bytes(store.map("a")) == b"a" * 100


def test_many_readers_under_pressure_all_get_the_whole_file(tmp_path: Path) -> None:
    store = remote_store(tmp_path, limit=1)
    names = [f"f{i}" for i in range(6)]
    for name in names:
        store.write(name, name.encode() * 1000)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: bytes(store.map(names[i % 6])) == names[i % 6].encode() * 1000, range(120)))
    assert all(got)
    assert not [entry for entry in (tmp_path / "cache").iterdir() if entry.name.endswith(".tmp")]


def test_a_cache_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").touch()
    for name in ("open", "link", "file"):
        with pytest.raises(CheckpointError, match="only this user"):
            HostCache(str(tmp_path / name)).map("key", lambda: None)
