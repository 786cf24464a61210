"""The second act on the terminal: static on the left, adaptive on the right, and what moved and why below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from anabranch.cli.demo.live import Screen
from anabranch.cli.demo.story import Story

BAR = 18
SPARKS = "▁▂▃▄▅▆▇█"
MOVES_SHOWN = 4


@dataclass
class Side:
    """One run: its epochs with rows, in order, and what it has decided."""

    name: str
    progress: list[Mapping[str, Any]] = field(default_factory=list)
    moves: list[Mapping[str, Any]] = field(default_factory=list)

    def follow(self, progress: Sequence[Mapping[str, Any]], journal: Sequence[Mapping[str, Any]]) -> None:
        self.progress = [p for p in progress if p["kind"] == "batch"]
        self.moves = [e for e in journal if e["verdict"] == "enacted" and e["action"]["kind"] == "move"]

    def rate(self, first: int = 0, last: int | None = None) -> float:
        """Rows per second over some epochs."""
        seen = self.progress[first:last]
        took = sum(p["durationMs"]["triggerExecution"] for p in seen)
        return sum(p["numInputRows"] for p in seen) / took * 1000 if took else 0.0

    def busy(self, epoch: int) -> list[float]:
        """Milliseconds per site."""
        return [s["busyMs"] for s in self.progress[epoch]["sites"]] if epoch < len(self.progress) else []


def why(move: Mapping[str, Any]) -> str:
    a = move["action"]
    return f"epoch {move['at']:.0f}: {a['operator']} cell {a['cell']} to site {a['site']}, since {move['why']}"


class Sides(Screen):
    """Shows both runs epoch by epoch; the one that is over is shown at the epoch of the one that runs."""

    def __init__(self, console: Console, story: Story, static: Side, adaptive: Side) -> None:
        super().__init__(console)
        self.story = story
        self.sides = (static, adaptive)
        self._said: tuple[str, int] = ("", -1)

    def show(self, running: Side) -> None:
        epoch = len(running.progress) - 1
        if epoch < 0 or self._said == (running.name, epoch):
            return
        before = self._said
        self._said = running.name, epoch
        if self._live:
            self._live.update(self.panel(running, epoch), refresh=True)
            return
        first = before[1] + 1 if before[0] == running.name else 0
        for n in range(first, epoch + 1):
            chapter = self.story.chapter(n)
            if n == chapter.first:
                self.console.print(f"{running.name}: {chapter.told}", highlight=False)
            if n % 2:
                self.console.print(line(running, n), highlight=False)

    # -- pictures ----------------------------------------------------------------------------------------------

    def panel(self, running: Side, epoch: int) -> Group:
        grid = Table.grid(padding=(0, 4), expand=False)
        grid.add_row(*[self.column(s, epoch, s is running) for s in self.sides])
        _, adaptive = self.sides
        shown = [e for e in adaptive.moves if e["at"] <= epoch][-MOVES_SHOWN:]
        moves = [Text(why(e), style="dim", overflow="ellipsis", no_wrap=True) for e in shown]
        title = Text(f"epoch {epoch + 1} of {self.story.epochs}  ", style="bold")
        return Group(title, Text(self.story.chapter(epoch).told, style="yellow"), Text(), grid, Text(), *moves)

    def column(self, side: Side, epoch: int, running: bool) -> RenderableType:
        busy = side.busy(epoch)
        rows = Table.grid(padding=(0, 1))
        most = max((ms for s in self.sides for n in range(len(s.progress)) for ms in s.busy(n)), default=1.0)
        for site, ms in enumerate(busy):
            bar = Text("█" * round(BAR * ms / most), style="red" if ms > 1.5 * sum(busy) / len(busy) else "cyan")
            bar.pad_right(BAR - len(bar))
            rows.add_row(Text(f"site {site}", style="dim"), bar, f"{ms:>5,.0f} ms")
        moved = sum(e["at"] <= epoch for e in side.moves)
        rates = [side.rate(n, n + 1) for n in range(max(0, epoch - 18), min(epoch + 1, len(side.progress)))]
        head = Text(side.name, style="bold" if running else "dim bold")
        if not busy:
            return Group(head, Text("comes next", style="dim"))
        told = Text(f"{rates[-1]:,.0f} rows/s  {sparks(rates, self.fastest())}", style="green" if running else "dim")
        return Group(head, told, rows, Text(f"{moved} cells moved", style="dim"))

    def fastest(self) -> float:
        return max(s.rate(n, n + 1) for s in self.sides for n in range(len(s.progress)))


def line(side: Side, epoch: int) -> str:
    busy = side.busy(epoch)
    moved = sum(e["at"] <= epoch for e in side.moves)
    sites = " ".join(f"{ms:4.0f}" for ms in busy)
    return f"{side.name:<8} epoch {epoch + 1:2}  {side.rate(epoch, epoch + 1):5,.0f} rows/s  ms {sites}  moved {moved}"


def sparks(rates: Sequence[float], most: float) -> str:
    return "".join(SPARKS[min(round(r / most * (len(SPARKS) - 1)), len(SPARKS) - 1)] for r in rates)
