"""The report in the terminal, the figures and the page."""

from __future__ import annotations

import re
import sys
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from anabranch.errors import SettingError
from anabranch.lab.page import page
from anabranch.lab.plot import COLOURS, png
from anabranch.lab.report import show
from anabranch.lab.results import keep
from anabranch.lab.runs import report_kept
from tests.lab.samples import halved_outcome


def printed(width: int = 100) -> tuple[Console, StringIO]:
    out = StringIO()
    return Console(file=out, width=width, highlight=False), out


def pixels(image: bytes) -> Any:
    from matplotlib.image import imread

    return imread(BytesIO(image), format="png")


def close_to(image: Any, colour: str) -> int:
    """How many pixels have about that colour."""
    wanted = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    return int((abs(image[:, :, :3] - wanted).max(axis=2) < 0.02).sum())


class Read(HTMLParser):
    """Text, images and links of a page, and whether every tag is closed."""

    VOID = ("meta", "img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.open: list[str] = []
        self.images: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        self.images += [given["src"]] if tag == "img" else []
        self.links += [v for k, v in given.items() if k == "href"]
        self.ids += [v for k, v in given.items() if k == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_every_claim_is_shown_with_both_numbers_and_what_became_of_it() -> None:
    console, out = printed()
    show(console, halved_outcome())
    text = " ".join(out.getvalue().split())
    for words in ("half [of all]", "0.5", "inf s", "not reproduced", "differs", "it never ends here & now"):
        assert words in text
    assert max(map(len, out.getvalue().splitlines())) <= 100


def test_a_figure_has_its_curves() -> None:
    image = pixels(png(halved_outcome()))
    height, width, _ = image.shape
    assert width > 3 * height  # two pairs of axes, side by side
    assert all(close_to(image, colour) > 200 for colour in COLOURS[:2])
    assert close_to(image, COLOURS[2]) == 0


def test_curves_of_one_kind_share_a_colour() -> None:
    outcome = halved_outcome()
    plot = replace(outcome.plots[0], curves=tuple(replace(c, like="x") for c in outcome.plots[0].curves))
    image = pixels(png(replace(outcome, plots=(plot,))))
    assert close_to(image, COLOURS[0]) > 200
    assert close_to(image, COLOURS[1]) == 0


def test_without_matplotlib_the_numbers_are_shown_and_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    keep(halved_outcome(), tmp_path)
    console, out = printed()
    with pytest.raises(SettingError, match=r"anabranch\[lab\]"):
        report_kept(console, tmp_path)
    assert "one loaded site costs" in out.getvalue()
    assert not list(tmp_path.glob("*.html"))


def test_a_report_has_a_figure_each_and_one_page(tmp_path: Path) -> None:
    keep(halved_outcome(), tmp_path)
    keep(replace(halved_outcome(), driver="Spark", against="simulator"), tmp_path)
    console, out = printed()
    report_kept(console, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {
        f"test.halved{kind}" for kind in (".json", ".png", ".spark.json", ".spark.png")
    } | {"report.html"}
    assert "does not agree" in out.getvalue()
    read = Read((tmp_path / "report.html").read_text(encoding="utf-8"))
    images = [b64decode(i.removeprefix("data:image/png;base64,")) for i in read.images]
    assert images == [(tmp_path / f"test.halved{kind}.png").read_bytes() for kind in ("", ".spark")]


def test_there_is_nothing_to_report_on(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="no results"):
        report_kept(printed()[0], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_page_has_everything_and_needs_nothing() -> None:
    outcome = halved_outcome()
    text = page([outcome], {outcome.file: png(outcome)})
    read = Read(text)
    said = " ".join(" ".join(read.text).split())
    for finding in outcome.findings:
        assert all(words in said for words in (finding.says, finding.paper, finding.text, finding.why))
    for words in (*outcome.parameters, *outcome.parameters.values(), *outcome.notes, outcome.asks, outcome.paper):
        assert words in said
    assert read.links == ["#test.halved"]
    assert read.ids == ["test.halved"]
    assert not re.search(r"https?:|url\(|@import|<script|<link", text)
