"""One run at a time works on a checkpoint, and one that was replaced notices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.errors import CheckpointError
from anabranch.state.owner import Owner
from anabranch.state.store import Store
from tests.state.state_tools import remote_store, store_of


def local(tmp_path: Path) -> Store:
    store = Store.open(str(tmp_path / "ckpt"))
    store.write("meta.json", b"{}")
    return store


def test_a_second_run_on_a_folder_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    store = local(tmp_path)
    first, second = Owner(store, "a"), Owner(store, "b")
    first.take()
    with pytest.raises(CheckpointError, match=rf"another query is using this checkpoint: process {os.getpid()} on"):
        second.take()
    first.check()
    first.release()
    second.take()
    second.check()
    second.release()
    second.release()


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_a_run_that_was_replaced_is_told_so(kind: str, tmp_path: Path) -> None:
    store = store_of(kind, tmp_path)
    store.write("meta.json", b"{}")
    first, second = Owner(store, "a"), Owner(store, "b")
    first.take()
    if kind == "local":
        first.release()  # as on a file system without locks
    second.take()
    second.check()
    with pytest.raises(CheckpointError, match="another query has taken over this checkpoint: process"):
        first.check()
    second.release()


def test_an_owner_file_that_is_gone_or_unreadable_is_nobody(tmp_path: Path) -> None:
    store = remote_store(tmp_path)
    owner = Owner(store, "a")
    with pytest.raises(CheckpointError, match="its owner is not known"):
        owner.check()
    store.write("owner.json", b"[1]")
    with pytest.raises(CheckpointError, match="its owner is not known"):
        owner.check()
    owner.take()
    owner.check()


_HOLDER = """
import sys, time
from anabranch.state.owner import Owner
from anabranch.state.store import Store
Owner(Store.open(sys.argv[1]), "child").take()
print("taken", flush=True)
time.sleep(60)
"""


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    store = local(tmp_path)
    paths = os.pathsep.join(p for p in sys.path if p)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, store.uri], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"taken\n"
        with pytest.raises(CheckpointError, match=f"process {holder.pid} on"):
            Owner(store, "a").take()
        holder.send_signal(signal.SIGKILL)
    owner = Owner(store, "a")
    owner.take()
    owner.check()
    owner.release()
