"""Draws the picture of the README from the records of the demonstration. ``python docs/tools/demo_picture.py [STORE]``

``cglsuite run reports/demo.toml --store STORE`` makes the records; default: ``.cglsuite``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.image
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cglsuite.reports import load_campaign_results
from cglsuite.reports.kit.figures import curve_figure, matrix_figure
from cglsuite.reports.kit.pictures import LIGHT, house_style
from cglsuite.reports.results import tables

ROOT = Path(__file__).parents[2]
SETTING, SHOWN = "class-IL", ("bare", "er-gnn")


def pixels(figure: Figure) -> np.ndarray:
    """A figure as uint8 [height, width, 3], on white."""
    figure.set_dpi(110)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3]


def beside(pictures: list[np.ndarray]) -> np.ndarray:
    """Pictures side by side, centred vertically on white."""
    height = max(len(picture) for picture in pictures)
    rows = [(height - len(picture)) // 2 for picture in pictures]
    padded = [np.pad(p, ((top, height - len(p) - top), (0, 0), (0, 0)), constant_values=255) for p, top in zip(pictures, rows, strict=True)]
    return np.concatenate(padded, axis=1)


def main(store: str = ".cglsuite") -> None:
    """Write ``docs/pictures/demo.png``: curves of all methods, and the matrices of two."""
    results = load_campaign_results(ROOT / "reports" / "demo.toml", store)
    order = list(dict.fromkeys(tables.curves(results)["method"]))
    frame = tables.curves(results)
    frame = frame[frame["preset"].str.contains(SETTING.lower())].assign(label=lambda part: part["method"])
    with mpl.rc_context(house_style(LIGHT)):
        title = f"{SETTING}: mean accuracy on the tasks learnt so far"
        figures = [curve_figure(frame, LIGHT, title=title, ylabel="accuracy in percent", order=order)]
        matrices = {g.method: m for g, m in tables.mean_matrices(results) if SETTING.lower() in g.preset}
        figures += [matrix_figure(matrices[method], f"{method}: accuracy per task", LIGHT) for method in SHOWN]
        matplotlib.image.imsave(ROOT / "docs" / "pictures" / "demo.png", beside([pixels(figure) for figure in figures]))


if __name__ == "__main__":
    main(*sys.argv[1:])
