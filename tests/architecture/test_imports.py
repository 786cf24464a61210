"""Dependencies point one way: a package imports only from rows above its own, and never its neighbour.

The rows are the package list of the architecture. The root `__init__` is the public door: it may point anywhere,
lazily, and only the lowest three rows may come in through it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
ROWS = (
    {"errors"},
    {"settings"},
    {"query", "routing"},
    {"kernels", "state"},
    {"plan", "control", "site"},
    {"spark", "sim"},
    {"testing"},
    {"lab", "dashboard"},
    {"cli"},
)
LEVEL = {package: level for level, row in enumerate(ROWS) for package in row}
LOWEST = {package for row in ROWS[-3:] for package in row}

# Third-party packages with one home. pickle has none: state is Arrow and JSON, and unpickling runs code.
ONLY_IN: dict[str, set[str]] = {
    "pyspark": {"spark", "testing"},
    "py4j": {"spark"},
    "sqlglot": {"query", "plan"},
    "duckdb": {"kernels", "testing", "lab"},
    "typer": {"cli"},
    "matplotlib": {"lab"},
    "pickle": set(),
    "cloudpickle": set(),
    "dill": set(),
    "joblib": set(),
}


def imports(path: Path, package: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every module that a file imports, wherever in the file, as (line, dotted parts); `from` names included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                yield node.lineno, (*module, alias.name)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"importlib.import_module", "__import__"}:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield node.lineno, tuple(first.value.split("."))


def violations(root: Path) -> list[str]:
    """What crosses a row under `root`, a folder that contains `anabranch`; one line each."""
    found: list[str] = []
    for path in sorted(root.glob("anabranch/**/*.py")):
        relative = path.relative_to(root)
        if relative.parts == ("anabranch", "__init__.py"):
            continue
        home = relative.parts[1].removesuffix(".py")
        if home not in LEVEL:
            found.append(f"{relative}: {home} has no row")
            continue
        for line, target in imports(path, relative.parts[:-1]):
            where = f"{relative}:{line}: {home}"
            if target[0] != "anabranch":
                if target[0] in ONLY_IN and home not in ONLY_IN[target[0]]:
                    found.append(f"{where} imports {target[0]}")
            elif len(target) == 1 or target[1] not in LEVEL:
                if home not in LOWEST:
                    found.append(f"{where} imports the public door")
            elif target[1] != home and LEVEL[target[1]] >= LEVEL[home]:
                found.append(f"{where} imports {target[1]}")
    return found


def test_packages_import_only_from_rows_above() -> None:
    assert violations(SRC) == []


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("query/sql.py", "from anabranch.plan import passes", "query imports plan"),
        ("query/sql.py", "from anabranch import plan", "query imports plan"),
        ("query/sql.py", "from ..routing.hash import f", "query imports routing"),
        ("query/sql.py", "from .. import routing", "query imports routing"),
        ("query/deep/sql.py", "from ...control import view", "query imports control"),
        ("control/view.py", "def f():\n    import anabranch.site.epoch", "control imports site"),
        ("settings.py", "import anabranch", "settings imports the public door"),
        ("plan/passes.py", "from anabranch import sql", "plan imports the public door"),
        ("kernels/join.py", "import pyspark.sql", "kernels imports pyspark"),
        ("cli/main.py", "from pyspark import sql", "cli imports pyspark"),
        ("spark/sink.py", "import importlib\nimportlib.import_module('pickle')", "spark imports pickle"),
        ("helpers/text.py", "", "helpers has no row"),
    ],
)
def test_a_line_that_crosses_a_row_is_found(tmp_path: Path, file: str, line: str, complaint: str) -> None:
    path = tmp_path / "anabranch" / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    found = violations(tmp_path)
    assert len(found) == 1, found
    assert found[0].endswith(complaint)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("plan/passes.py", "from anabranch.query import operators\nfrom .. import errors\nfrom .explain import text"),
        ("settings.py", "from anabranch.errors import SettingError"),
        ("spark/epoch.py", "from pyspark.sql import functions as F\nfrom anabranch.site import epoch"),
        ("testing/oracle.py", "import anabranch as ab\nimport pyspark"),
    ],
)
def test_a_line_that_respects_the_rows_passes(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / "anabranch" / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert violations(tmp_path) == []


IMPORT = """
import sys, time
began = time.perf_counter()
import anabranch
took = time.perf_counter() - began
print(took, *sorted({m.partition(".")[0] for m in sys.modules} & {"pyspark", "py4j", "duckdb", "pandas"}))
"""


def test_importing_anabranch_is_quick_and_starts_nothing_heavy() -> None:
    """Best of five, as another process may be in the way; no pyspark in memory means that no JVM can have started."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", IMPORT], cwd=SRC, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(5)
    ]
    assert all(heavy == [] for _, *heavy in runs), runs
    assert min(float(took) for took, *_ in runs) <= 0.3
