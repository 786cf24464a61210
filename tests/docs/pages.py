"""The written pages as data: fenced blocks, tables, links and cited paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    *sorted(p for p in ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    ROOT / "bench" / "README.md",
)
NAMES = tuple(str(p.relative_to(ROOT)) for p in PAGES)
_FENCE = re.compile(r"^```(\w*)\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is the number of its first line in the page."""

    page: str
    line: int
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    found, language, begin, lines = [], None, 0, list[str]()
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if language is None and fence:
            language, begin, lines = fence.group(1), number + 1, []
        elif language is not None and line.strip() == "```":
            found.append(Block(page, begin, language, "\n".join(lines)))
            language = None
        elif language is not None:
            lines.append(line)
    assert language is None, f"{page}:{begin}: a fence is never closed"
    return found


def prose(page: str) -> list[tuple[int, str]]:
    """Numbered lines outside of fenced blocks."""
    inside = False
    found = []
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            found.append((number, line))
    return found


def section(page: str, heading: str) -> list[str]:
    """The lines of a section, up to the next heading of its level or above."""
    level, found, taking = 0, [], False
    for _, line in prose(page):
        match = re.match(r"(#+) (.*)", line)
        if match and taking and len(match.group(1)) <= level:
            break
        if taking:
            found.append(line)
        if match and match.group(2) == heading:
            level, taking = len(match.group(1)), True
    assert taking, f"{page} has no section {heading!r}"
    return found


def rows(lines: list[str]) -> list[list[str]]:
    """The cells of every table row, heads and rulers left out."""
    found = []
    for before, line in zip(["", *lines], lines, strict=False):
        if not line.startswith("|") or re.match(r"^\|[\s:|-]+$", line):
            continue
        if not before.startswith("|"):
            continue  # the head
        found.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def code(cell: str) -> list[str]:
    """The code spans of a cell."""
    return re.findall(r"`([^`]+)`", cell)


def links(page: str) -> Iterator[tuple[int, str]]:
    for number, line in prose(page):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            yield number, target


def anchors(page: str) -> set[str]:
    """What a link may name behind `#`."""
    headings = [m.group(1) for _, line in prose(page) if (m := re.match(r"#+ (.*)", line))]
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def spans(page: str) -> Iterator[tuple[int, str]]:
    for number, line in prose(page):
        for text in code(line):
            yield number, text
