"""What the figures were measured on: enough to compare two files of results, nothing that names a host or a user."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import psutil


def describe() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "cpu": cpu_model(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": [round(x, 2) for x in os.getloadavg()],
        "versions": versions(),
    }


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    out = {"python": platform.python_version(), "java": java_version()}
    for package in ("pyspark", "pyarrow", "duckdb", "pandas", "numpy", "anabranch"):
        try:
            out[package] = version(package)
        except PackageNotFoundError:
            continue
    return out


def java_version() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return said.splitlines()[0]


def revision(root: Path) -> str:
    """The git revision, with a plus when there are changes on top of it."""
    try:
        head = git(root, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if git(root, "status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "none"


def git(root: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
