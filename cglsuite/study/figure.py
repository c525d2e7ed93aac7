"""A figure that notebooks show in place, whatever matplotlib's backend is and whether pyplot was ever used."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["ShownFigure"]

_DPI = 160


class ShownFigure(Figure):
    """A figure with a PNG of its own: Jupyter draws figures only after pyplot has chosen a backend."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """PNG in twice the resolution of its size in CSS pixels, which is given with it."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_DPI)
        width, height = (round(96 * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}
