"""`anabranch checkpoint`: what a checkpoint holds, from its description and newest manifest alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from anabranch.errors import CheckpointError
from anabranch.routing.layout import Layout
from anabranch.state.manifest import Manifest, ManifestLog
from anabranch.state.meta import PATH, Meta, read
from anabranch.state.segments import Segment
from anabranch.state.store import Store

INSIDE = "anabranch"  # where state lies in a checkpointLocation


def show_checkpoint(path: str, plan: bool) -> None:
    console = Console(highlight=False)
    store, meta = found(path)
    manifest = ManifestLog(store).latest()
    facts = Table.grid(padding=(0, 3))
    facts.add_row("state in", store.uri)
    facts.add_row("created", meta.created)
    facts.add_row("plan", f"{meta.fingerprint[:8]}, {meta.cells} cells")
    if manifest is None:
        facts.add_row("epoch", "none committed yet")
    else:
        for name, value in about(manifest):
            facts.add_row(name, value)
    console.print(facts)
    if manifest is not None:
        console.print(streams(manifest))
        console.print(state(manifest))
    if plan:
        console.print(f"\n{meta.plan}", markup=False)


def found(path: str) -> tuple[Store, Meta]:
    """A checkpointLocation or the folder of the state itself."""
    for uri in (f"{path.rstrip('/')}/{INSIDE}", path):
        store = Store.open(uri)
        if store.exists(PATH):
            return store, read(store)
    raise CheckpointError(
        "there is no checkpoint of Anabranch here", where=path,
        fix="give the checkpointLocation of a query, or its stateLocation if it has one",
    )  # fmt: skip


def about(m: Manifest) -> list[tuple[str, str]]:
    layout = Layout.from_json(m.assignment)
    owned = [n for a in layout.operators.values() for n in a.counts()] or [0]
    levels = [level for level in m.released.values() if level is not None]
    return [
        ("epoch", f"{m.epoch} (Spark's batch {m.batch})" if m.batch >= 0 else str(m.epoch)),
        ("watermark", moment(m.watermark)),
        ("closed up to", moment(min(levels, default=None))),
        ("sites", f"{m.sites}, {min(owned)} to {max(owned)} cells each"),
    ]


def streams(m: Manifest) -> Table:
    table = Table(title="streams", title_justify="left")
    table.add_column("stream")
    table.add_column("newest event time")
    for name, facts in m.streams.items():
        table.add_row(name, moment(facts["time"]))
    return table


def state(m: Manifest) -> Table:
    """One line per operator input."""
    table = Table(title="state", title_justify="left")
    for name in ("operator", "input", "segments", "rows", "bytes", "from", "to"):
        table.add_column(name, justify="left" if name in ("operator", "from", "to") else "right")
    for port in sorted(m.state):
        segments = m.segments(port)
        operator, _, number = port.rpartition("/")
        if not segments:
            continue
        table.add_row(operator, number, *sums(segments))
    table.add_section()
    table.add_row("all", "", *sums([s for port in m.state for s in m.segments(port)]))
    return table


def sums(segments: Sequence[Segment]) -> list[str]:
    """Segments, rows, bytes, oldest and newest. A file that two sites share is counted once."""
    files = {s.path: s for s in segments}.values()
    return [
        f"{len(files):,}",
        f"{sum(s.rows for s in files):,}",
        f"{sum(s.bytes for s in files):,}",
        moment(min((s.t_min for s in files), default=None)) if files else "",
        moment(max((s.t_max for s in files), default=None)) if files else "",
    ]


def moment(us: int | None) -> str:
    if us is None:
        return "none"
    try:
        return datetime.fromtimestamp(us / 1e6, UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{us} us"
