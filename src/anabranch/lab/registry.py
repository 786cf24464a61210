"""Registry: every experiment by its name, built for a size and a seed."""

from __future__ import annotations

from collections.abc import Callable

from anabranch.errors import SettingError
from anabranch.lab.experiment import PAPER, Experiment, Size
from anabranch.lab.flux import damping, fig3, fig6, fig7, fig8, fig9, hybrid, memory

Builder = Callable[[Size, int], Experiment]

BUILDERS: dict[str, Builder] = {
    "flux.fig3": fig3.experiment,
    "flux.fig6": fig6.experiment,
    "flux.fig7": fig7.experiment,
    "flux.fig8": fig8.experiment,
    "flux.fig9": fig9.experiment,
    "flux.memory": memory.experiment,
    "flux.hybrid": hybrid.experiment,
    "flux.damping": damping.experiment,
}


def built(name: str, size: Size = PAPER, seed: int = 1) -> Experiment:
    if name not in BUILDERS:
        raise SettingError(f"there is no experiment {name!r}", fix=f"use one of {', '.join(BUILDERS)}")
    return BUILDERS[name](size, seed)


def matching(name: str) -> list[str]:
    """The experiment of that name, or all of a paper's (`flux`)."""
    found = [n for n in BUILDERS if n == name or n.startswith(f"{name}.")]
    if not found:
        papers = sorted({n.partition(".")[0] for n in BUILDERS})
        raise SettingError(
            f"there is no experiment {name!r}", fix=f"use {' or '.join(papers)} for all of a paper, or one of "
            f"{', '.join(BUILDERS)}",
        )  # fmt: skip
    return found
