"""What the demo shows: a panel that follows the query's progress, or a plain line now and then where no one watches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

BAR = 30
EVERY_S = 2.0  # between plain lines


@dataclass
class Totals:
    """Sums over the epochs seen so far."""

    begin: float = field(default_factory=time.monotonic)
    epochs: int = 0
    rows: int = 0
    late: int = 0
    results: int = 0
    last: dict[str, Any] | None = None
    busy: dict[int, float] = field(default_factory=dict)  # site -> ms in all
    _seen: int = -1

    def add(self, progress: Sequence[Mapping[str, Any]]) -> None:
        for p in progress:
            if p["epoch"] <= self._seen:
                continue
            self._seen = p["epoch"]
            self.epochs += 1
            self.rows += p["numInputRows"]
            self.late += sum(s["numLateRows"] for s in p["sources"])
            self.results += p["sink"]["numOutputRows"]
            self.last = dict(p)
            for site in p["sites"]:
                self.busy[site["site"]] = self.busy.get(site["site"], 0.0) + site["busyMs"]

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begin

    def state(self) -> tuple[int, int]:
        """Rows and bytes."""
        operators = self.last["stateOperators"] if self.last else []
        return sum(o["numRowsTotal"] for o in operators), sum(o["memoryUsedBytes"] for o in operators)

    def watermark(self) -> str:
        mark = self.last["eventTime"]["nextWatermark"] if self.last else None
        return mark[11:19] if mark else "none yet"

    def line(self) -> str:
        rows, _ = self.state()
        return (
            f"{self.seconds:4.0f} s  epoch {self.epochs:3}  {self.rows:>9,} rows"
            f"  state {rows:,}"
            f"  watermark {self.watermark()}  results {self.results:,}"
        )

    def panel(self, title: str) -> Group:
        rows, size = self.state()
        last = self.last or {"processedRowsPerSecond": 0.0, "durationMs": {"triggerExecution": 0}, "sites": []}
        facts = Table.grid(padding=(0, 3))
        for _ in range(4):
            facts.add_column()
        facts.add_row(
            "[dim]rows in[/]", f"[bold]{self.rows:,}[/]",
            "[dim]last epoch[/]",
            f"{last['processedRowsPerSecond']:,.0f} rows/s, {last['durationMs']['triggerExecution']:.0f} ms",
        )  # fmt: skip
        facts.add_row("[dim]epochs[/]", f"{self.epochs}", "[dim]watermark[/]", self.watermark())
        facts.add_row("[dim]state[/]", f"{rows:,} rows, {size / 1e6:.1f} MB", "[dim]results[/]", f"{self.results:,}")
        sites = Table.grid(padding=(0, 2))
        most = max((s["numInputRows"] for s in last["sites"]), default=0) or 1
        for s in last["sites"]:
            bar = "█" * round(BAR * s["numInputRows"] / most)
            sites.add_row(
                f"[dim]site {s['site']}[/]", Text(f"{bar:<{BAR}}", style="cyan"),
                f"{s['numInputRows']:>8,} rows", f"{s['busyMs']:>6,.0f} ms",
            )  # fmt: skip
        return Group(
            Text(f"{title}  ({self.seconds:.0f} s)", style="bold"),
            facts,
            Text("load of the last epoch", style="dim"),
            sites,
        )


class Screen:
    """A place in the terminal that is written over and over, and gone in the end; none where no one watches."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()


class View(Screen):
    """Follows a query until told to close."""

    def __init__(self, console: Console, title: str) -> None:
        super().__init__(console)
        self.title = title
        self.totals = Totals()
        self._said = 0.0

    def show(self, progress: Sequence[Mapping[str, Any]]) -> None:
        self.totals.add(progress)
        if self._live:
            self._live.update(self.totals.panel(self.title), refresh=True)
        elif self.totals.seconds - self._said >= EVERY_S:
            self._said = self.totals.seconds
            self.console.print(self.totals.line(), highlight=False)
