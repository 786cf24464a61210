"""Nothing to do: what adaptation costs, and that it leaves well alone.

The work is real, and many sites share few cores, so that every site's time is full of noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from anabranch.testing import Load, Run
from bench.adaptive.scenario import SITES, Field, Figure, Scenario

EPOCHS, WARM = 36, 4


def measure(field: Field) -> Iterator[Figure]:
    turns = 2 if field.quick else 4
    for slots, rows in ((2, 400_000), (SITES, 100_000)):
        load = Load(epochs=EPOCHS, sites=slots, rows=rows)
        runs: dict[str, list[Run]] = {"static": [], "balance": []}
        with field.session(slots) as ground:
            ground.run(f"uniform, {slots} sites: warm", load)  # at this size; it does not count
            for turn in range(turns):
                for policy in sorted(runs, reverse=bool(turn % 2)):
                    name = f"uniform, {slots} sites: {policy} {turn}"
                    runs[policy].append(ground.run(name, load, options={"policies": policy}))
        rate = {policy: median(ms for r in made for ms in r.ms[WARM:]) for policy, made in runs.items()}
        yield Figure(f"uniform, {slots} sites: adaptation on over off", rate["static"] / rate["balance"], 0.97)
        rounds = turns * EPOCHS / 2
        moves = sum(len(r.moves) for r in runs["balance"])
        yield Figure(f"uniform, {slots} sites: moves per 50 rounds, of {rounds:.0f}", moves * 50 / rounds, 0.99, True)


UNIFORM = Scenario("uniform", "an even load, adaptation on and off in turns; real work", measure)
