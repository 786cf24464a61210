"""Plot: an outcome's curves in the paper's axes, as a PNG. Needs matplotlib, which the extra `lab` brings.

No window, no global state: a figure is made, drawn into bytes and let go.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from anabranch.errors import SettingError
from anabranch.lab.experiment import Curve
from anabranch.lab.results import Outcome, Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0b6e99", "#d1495b", "#e09f3e", "#3a7d44", "#6c4ab6", "#7a7a7a")
INK, FAINT = "#333333", "#e3e3e3"
DPI = 144
MANY = 4  # curves, above which the legend is beside the axes


def png(outcome: Outcome) -> bytes:
    """All axes of the figure side by side."""
    width = sum(8.0 if len(p.curves) > MANY else 6.4 for p in outcome.plots)
    figure = _figure()(figsize=(width, 4.1), dpi=DPI, layout="constrained")
    for axes, plot in zip(figure.subplots(1, len(outcome.plots), squeeze=False)[0], outcome.plots, strict=True):
        _draw(axes, plot)
    out = BytesIO()
    figure.savefig(out, format="png", facecolor="white", metadata={"Software": None})
    return out.getvalue()


def _figure() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingError(
            "plots need matplotlib, which is not installed", fix="pip install 'anabranch[lab]'"
        ) from None
    return Figure


def _draw(axes: Any, plot: Plot) -> None:
    groups = list(dict.fromkeys(c.like or c.name for c in plot.curves))
    for curve in plot.curves:
        _line(axes, curve, COLOURS[groups.index(curve.like or curve.name) % len(COLOURS)])
    axes.set_xlabel(plot.x, color=INK)
    axes.set_ylabel(plot.y, color=INK)
    if plot.title:
        axes.set_title(plot.title, color=INK, fontsize=10)
    if plot.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
        axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
    beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(plot.curves) > MANY else {}
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, handlelength=3.2, **beside)


def _line(axes: Any, curve: Curve, colour: str) -> None:
    xs, ys = zip(*curve.points, strict=True) if curve.points else ((), ())
    axes.plot(xs, ys, curve.style, color=colour, label=curve.name, linewidth=1.8, markersize=5)
