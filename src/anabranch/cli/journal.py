"""`anabranch journal`: what a query decided about its cells, from the files in its checkpoint alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anabranch.cli.checkpoint import found
from anabranch.errors import CheckpointError
from anabranch.state.journal import read_entries
from anabranch.state.store import Store

Entry = dict[str, Any]
REFUSED = "refused"
UNIT = "µs of work per row"


def show_journal(path: str, id: int | None, last: int, which: str, as_json: bool) -> None:
    """`which`: done (enacted or advised), refused, or all."""
    store, _ = found(path)
    entries = read_entries(store)
    if not entries:
        raise CheckpointError(
            "nothing has been decided here", where=store.uri,
            fix="a policy decides after some epochs, and only if sites differ; policies=static never does",
        )  # fmt: skip
    if id is not None:
        entry = the_one(entries, id, store)
        print(json.dumps(entry, indent=2) if as_json else story(entry))
        return
    matching = chosen(entries, which)
    shown = matching[-last:]
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    console = Console(highlight=False)
    if shown:
        console.print(table(shown))
    for line in left_out(entries, matching, shown, which):
        console.print(line, soft_wrap=True)


def the_one(entries: Sequence[Entry], id: int, store: Store) -> Entry:
    for entry in entries:
        if entry["id"] == id:
            return entry
    raise CheckpointError(
        f"there is no decision {id}", where=store.uri,
        fix=f"the journal has {entries[0]['id']} to {entries[-1]['id']}; the oldest are deleted",
    )  # fmt: skip


def chosen(entries: Sequence[Entry], which: str) -> list[Entry]:
    if which == "all":
        return list(entries)
    return [e for e in entries if (e["verdict"] == REFUSED) == (which == REFUSED)]


def left_out(entries: Sequence[Entry], matching: Sequence[Entry], shown: Sequence[Entry], which: str) -> list[str]:
    lines = []
    earlier = len(matching) - len(shown)
    if earlier:
        lines.append(f"{earlier:,} earlier ones: --last {len(matching)}")
    others = len(entries) - len(matching)
    if others:
        lines.append(f"{others:,} refused: --refused" if which == "done" else f"{others:,} others: --all")
    return lines


# -- the table -------------------------------------------------------------------------------------------------


def table(entries: Sequence[Entry]) -> Table:
    """What and why, and why not; what was expected of it and what was seen."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("id", justify="right")
    table.add_column("epoch", justify="right")
    table.add_column("decision, and why", ratio=1)
    table.add_column("verdict")
    table.add_column("µs per row")
    for e in entries:
        text = Text.assemble(action(e), (f"\n{e['why']}", "dim"))
        if e["verdict"] == REFUSED:
            text.append(f"\nrefused: {e['reason']}", "yellow")
        table.add_row(str(e["id"]), f"{e['at']:.0f}", text, e["verdict"], "\n".join(effect(e)))
    return table


def action(entry: Entry) -> str:
    a = entry["action"]
    if a["kind"] == "move":
        return f"move {a['operator']} cell {a['cell']} to site {a['site']}"
    if a["kind"] == "resize":
        return f"resize to {a['sites']} sites"
    return f"{a['operator']} cell {a['cell']} at site {a['site']} is too much"


def effect(entry: Entry) -> list[str]:
    """Of the busier of the two sites that a move touches."""
    predicted, observed = entry["predicted"], entry["observed"]
    if predicted is None:
        return []
    lines = [f"{micros(max(predicted['before']))} → {micros(max(predicted['after']))}"]
    if observed is not None and "after" in observed:
        lines.append(f"seen: {micros(max(observed['after']))}")
    return lines


def micros(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


# -- one decision ----------------------------------------------------------------------------------------------


def story(entry: Entry) -> str:
    """Everything about one decision, in sentences."""
    by_hand = entry["policy"] == "manual"
    lines = [
        f"Decision {entry['id']}, after epoch {entry['at']:.0f}: {action(entry)}.",
        "Somebody asked for it." if by_hand
        else f"Policy {entry['policy']} proposed it in round {entry['round']}, because {entry['why']}.",
    ]  # fmt: skip
    if entry["inputs"]:
        lines.append("It was judged by:")
        lines += [f"  {name:<16} {value:,.6g}" for name, value in entry["inputs"].items()]
    lines.append(verdict(entry))
    return "\n".join([*lines, *expectation(entry)])


def verdict(entry: Entry) -> str:
    if entry["verdict"] == REFUSED:
        return f"It was refused: {entry['reason']}."
    if entry["verdict"] == "advised":
        return "It would have been done, but the query is advise-only, so nothing was."
    return "It was enacted." if entry["policy"] == "manual" else "The guard allowed it, and it was enacted."


def expectation(entry: Entry) -> list[str]:
    predicted, observed = entry["predicted"], entry["observed"]
    if predicted is None:
        return []
    pairs = zip(("donor", "receiver"), predicted["before"], predicted["after"], strict=True)
    told = " and ".join(f"site {predicted[k]} from {micros(before)} to {micros(after)}" for k, before, after in pairs)
    share = predicted["gain"] / max(predicted["before"]) if max(predicted["before"]) else 0.0
    lines = [
        f"Expected, in {UNIT} of the operator's input: {told}.",
        f"The busier of the two would have {share:.0%} less to do." if share >= 0
        else f"The busier of the two would have {-share:.0%} more to do.",
    ]  # fmt: skip
    if observed is not None and "why" in observed:
        lines.append(f"What came of it could not be seen: {observed['why']}.")
    elif observed is not None:
        donor, receiver = observed["after"]
        lines.append(
            f"Seen a round later, with all that moved beside it: site {predicted['donor']} at {micros(donor)}, "
            f"site {predicted['receiver']} at {micros(receiver)}."
        )
    elif entry["verdict"] == "enacted":
        lines.append("What came of it has not been seen yet.")
    return lines
