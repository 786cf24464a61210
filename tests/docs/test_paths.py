"""Links lead somewhere, cited paths exist, and nothing that is public is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import anabranch as ab
import anabranch.testing
from tests.docs import pages

TOP = ("docs", "tests", "bench", "src", ".ci")
PACKAGE = pages.ROOT / "src" / "anabranch"
IN_CODE = re.compile(r"(?<![\w/.])((?:docs|tests|bench)/[\w./-]*\w|[A-Z]{5,}\.md)")
INNER = ("checked", "relation", "inputs", "statics", "session")  # of a Flow: between our own modules
MADE = ("bench/data", "bench/results")  # by a benchmark; not kept


def missing(text: str) -> bool:
    """Whether the text is written like a path of this project and there is no such path."""
    if not re.fullmatch(r"\.?[\w./-]+", text) or text.rstrip("/") in MADE:
        return False
    first, slash, _ = text.partition("/")
    packages = {p.name for p in PACKAGE.iterdir() if p.is_dir()}
    if slash and first in TOP:
        return not (pages.ROOT / text).exists()
    if slash and first in packages:
        return not ((PACKAGE / text).exists() or (PACKAGE / f"{text}.py").exists())
    if re.fullmatch(r"[\w-]+\.(py|md|toml)", text):
        return not (any(pages.ROOT.glob(text)) or any(PACKAGE.rglob(text)) or any(pages.ROOT.glob(f"docs/**/{text}")))
    return False


@pytest.mark.parametrize("page", pages.NAMES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    wrong = []
    for line, target in pages.links(page):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (pages.ROOT / page).parent / path if path else pages.ROOT / page
        if not file.exists():
            wrong.append(f"{page}:{line}: {target} does not exist")
        elif anchor and anchor not in pages.anchors(str(file.resolve().relative_to(pages.ROOT))):
            wrong.append(f"{page}:{line}: {path or page} has no heading for #{anchor}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", pages.NAMES)
def test_every_path_that_a_page_cites_exists(page: str) -> None:
    wrong = [f"{page}:{line}: {text}" for line, text in pages.spans(page) if missing(text)]
    assert not wrong, "\n".join(wrong)


def test_every_page_that_the_code_cites_exists() -> None:
    files = [f for folder in ("src", "tests", "bench") for f in (pages.ROOT / folder).rglob("*.py")]
    here = Path(__file__)
    wrong = [
        f"{file.relative_to(pages.ROOT)}: {path}"
        for file in [*files, pages.ROOT / "Makefile", pages.ROOT / "pyproject.toml"]
        if file.parent != here.parent
        for path in IN_CODE.findall(file.read_text(encoding="utf-8"))
        if path not in MADE and not (pages.ROOT / path).exists() and "{" not in path
    ]
    assert not wrong, "\n".join(wrong)


def test_a_path_that_does_not_exist_is_found() -> None:
    assert missing("docs/nowhere.md")
    assert missing("spark/nothing.py")
    assert missing("nothing.md")
    assert not missing("docs/queries.md")
    assert not missing("spark/compat.py")
    assert not missing("README.md")
    assert not missing("a/b")


def test_every_page_can_be_found_from_the_readme() -> None:
    reached, todo = set(), ["README.md"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        for _, target in pages.links(page):
            file = ((pages.ROOT / page).parent / target.partition("#")[0]).resolve()
            if file.suffix == ".md" and file.is_relative_to(pages.ROOT):
                todo.append(str(file.relative_to(pages.ROOT)))
    assert set(pages.NAMES) - reached == {"CHANGELOG.md"} - reached


def test_every_decision_is_listed_and_complete() -> None:
    index = (pages.ROOT / "docs/decisions/0000-index.md").read_text(encoding="utf-8")
    files = sorted(p.name for p in (pages.ROOT / "docs/decisions").glob("*.md"))[1:]
    assert [f for f in files if f"]({f})" not in index] == []
    assert [int(f[:4]) for f in files] == list(range(1, len(files) + 1))
    for file in files:
        headings = [line[3:] for _, line in pages.prose(f"docs/decisions/{file}") if line.startswith("## ")]
        assert headings == ["Question", "Decision", "Alternatives", "Consequences", "Not a goal"], file


def words(*names: str) -> str:
    return "\n".join((pages.ROOT / name).read_text(encoding="utf-8") for name in names)


def test_every_public_name_is_documented() -> None:
    text = words("README.md", *(f"docs/{p.name}" for p in (pages.ROOT / "docs").glob("*.md")))
    assert [n for n in ab.__all__ if not re.search(rf"\b(ab\.)?{n}\b", text)] == []
    assert [n for n in anabranch.testing.__all__ if not re.search(rf"\b{n}\b", text)] == []


def test_every_method_of_a_flow_a_writer_and_a_query_is_documented() -> None:
    from anabranch.spark.writer import FlowWriter

    text = words(*(f"docs/{p.name}" for p in (pages.ROOT / "docs").glob("*.md")))
    for owner in (ab.Flow, FlowWriter, ab.ContinuousQuery):
        public = [n for n in vars(owner) if not n.startswith("_")]
        assert [n for n in public if n not in INNER and not re.search(rf"\b{n}\b", text)] == [], owner


def test_every_error_is_documented() -> None:
    text = words("docs/operations.md")
    kinds = [n for n, k in vars(ab.errors).items() if isinstance(k, type) and issubclass(k, ab.errors.AnabranchError)]
    assert [k for k in kinds if f"`{k}`" not in text] == []
