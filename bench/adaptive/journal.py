"""The journals of all runs before: every move was predicted and looked back at, every refusal has a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anabranch.testing import Run
from bench.adaptive.scenario import Field, Figure, Scenario


def measure(field: Field) -> Iterator[Figure]:
    entries = [e for run in field.runs.values() for e in decided(run)]
    moves = [e for e in entries if e["verdict"] == "enacted"]
    refused = [e for e in entries if e["verdict"] == "refused"]
    yield Figure("journal: moves in all runs", len(moves))
    yield Figure("journal: moves without a predicted effect", sum(not e["predicted"] for e in moves), 0, at_most=True)
    yield Figure("journal: moves without an observed effect", sum(not e["observed"] for e in moves), 0, at_most=True)
    yield Figure("journal: proposals refused", len(refused))
    yield Figure("journal: refused without a reason", sum(not e["reason"] for e in refused), 0, at_most=True)


def decided(run: Run) -> list[dict[str, Any]]:
    """What policies proposed, without the last round of each operator: no other came behind it to look back."""
    entries = [e for e in run.journal if e["policy"] != "manual"]
    last: dict[str, int] = {}
    for e in entries:
        last[e["action"]["operator"]] = max(e["round"], last.get(e["action"]["operator"], 0))
    return [e for e in entries if e["round"] < last[e["action"]["operator"]]]


JOURNAL = Scenario("journal", "what the journals of the scenarios before tell", measure)
