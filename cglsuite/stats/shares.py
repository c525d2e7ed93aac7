"""What share of a table's rows is within the margin: a hierarchical model over rows whose errors are correlated within a preset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.markup import several
from cglsuite.stats.refusal import Refused

PRIOR_SCALES = (1.0, 3.0, 6.0)
"""In points: scales of the priors with which a share is shown, as none of them is the right one."""
FEWEST_ROWS = 5
_NU = 4.0
_GRID = 40
_WARM_UP = 400
_Values = NDArray[np.float64]


class Share(NamedTuple):
    """The share of rows whose true difference is within the margin: posterior mean and 95% interval, under a prior of a ``scale``."""

    scale: float
    mean: float
    low: float
    high: float


def share_within(
    differences: ArrayLike,
    errors: ArrayLike,
    margins: ArrayLike,
    blocks: Sequence[Any],
    *,
    scale: float = 3.0,
    draws: int = 1500,
    seed: int = 0,
) -> list[Share]:
    """The posterior of the share of rows within their margins, for several tables of the same form at once.

    ``d_i = μ + b_preset + t_i + e_i``: ``t_i`` is Student's t with 4 degrees of freedom, so that a few rows may be far off; ``e_i`` has the
    standard error of the row, and errors of a preset have a common correlation that is not known (orders and seeds are shared, and so are
    those of the paper). All scales and the correlation of every preset are integrated over by Gibbs sampling, none is plugged in: ``μ`` is
    normal, both scales half-normal, correlations uniform. This is a statement on a table, and no verdict on any row.

    Args:
        differences, errors, margins: float64 ``[tables, rows]`` or ``[rows]``, in points. blocks: the preset of each row.
        scale: of the priors.

    Raises:
        Refused: fewer than five rows, an error that is not positive.

    Example:
        >>> share, = share_within([0.1, -0.2, 0.3, 0.0, 0.2], [0.2] * 5, [2.0] * 5, ["a", "a", "b", "b", "b"], draws=200)
        >>> share.mean > 0.9
        True
    """
    d, s, m = (np.atleast_2d(np.asarray(values, dtype=np.float64)) for values in (differences, errors, margins))
    if d.shape[1] < FEWEST_ROWS:
        raise Refused(f"{several(d.shape[1], 'row')}: a share needs at least {FEWEST_ROWS}")
    if not (np.isfinite(d).all() and (s > 0.0).all()):
        raise Refused("a row without a difference or a standard error has no part in a share")
    names = list(dict.fromkeys(blocks))
    member = np.array([[float(block == name) for name in names] for block in blocks])
    sampler = _Sampler(d, s, member, scale, np.random.default_rng(seed))
    shares = np.stack([(np.abs(sampler.step()) <= m).mean(axis=1) for _ in range(_WARM_UP + draws)][_WARM_UP:])
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
    return [Share(scale, *map(float, ends)) for ends in zip(shares.mean(axis=0), low, high, strict=True)]


class _Sampler:
    """Gibbs sampling of one or several tables; arrays are ``[tables, rows]`` or ``[tables, presets]``."""

    def __init__(self, d: _Values, s: _Values, member: _Values, scale: float, generator: np.random.Generator) -> None:
        self.d, self.s, self.member, self.scale, self.generator = d, s, member, scale, generator
        self.sizes = member.sum(axis=0)
        tables = d.shape[0]
        self.true, self.weight = d.copy(), np.ones_like(d)
        self.mu, self.tau, self.sigma = np.zeros((tables, 1)), np.full((tables, 1), scale / 2), np.full((tables, 1), scale / 2)
        self.preset = np.zeros((tables, member.shape[1]))
        self.scales = np.geomspace(scale / 100.0, 4.0 * scale, _GRID)
        self.rho, n = np.linspace(0.0, 0.95, 20), self.sizes[:, None]
        common = 1.0 + (n - 1.0) * self.rho
        self.ratio, self.log_common = self.rho / common, (n - 1.0) * np.log(1.0 - self.rho) + np.log(common)
        self.logs, self.twice, self.prior = np.log(self.scales), 2.0 * self.scales**2, self.scales**2 / (2.0 * scale**2)

    def step(self) -> _Values:
        """One draw of the rows' true differences."""
        self._errors()
        centre = self.mu + self.preset @ self.member.T
        off = self.true - centre
        self.weight = self.generator.gamma((_NU + 1.0) / 2.0, 2.0 / (_NU + (off / self.tau) ** 2))
        self.tau = self._scale_of((self.weight * off**2).sum(axis=1, keepdims=True), off.shape[1])
        precision = self.weight / self.tau**2
        self.preset = self._normal((precision * (self.true - self.mu)) @ self.member, precision @ self.member + 1.0 / self.sigma**2)
        self.sigma = self._scale_of((self.preset**2).sum(axis=1, keepdims=True), self.preset.shape[1])
        residual = precision * (self.true - self.preset @ self.member.T)
        self.mu = self._normal(residual.sum(axis=1, keepdims=True), precision.sum(axis=1, keepdims=True) + 1.0 / self.scale**2)
        return self.true

    def _errors(self) -> None:
        """The correlation of each preset's errors, what they have in common, and the true differences."""
        standard = (self.d - self.true) / self.s
        squares, sums, rho = (standard**2) @ self.member, standard @ self.member, self.rho
        quadratic = (squares[..., None] - self.ratio * sums[..., None] ** 2) / (1.0 - rho)
        drawn = rho[self._place(-0.5 * (self.log_common + quadratic))]
        shared = self._normal(sums * np.sqrt(drawn) / (1.0 - drawn), 1.0 + self.sizes * drawn / (1.0 - drawn))
        own = (self.s**2) * ((1.0 - drawn) @ self.member.T)
        around = self.d - self.s * ((np.sqrt(drawn) * shared) @ self.member.T)
        prior = self.weight / self.tau**2
        self.true = self._normal(around / own + prior * (self.mu + self.preset @ self.member.T), 1.0 / own + prior)

    def _scale_of(self, squares: _Values, n: int) -> _Values:
        """A scale with a half-normal prior, given the sum of n squares, on a grid that is even in its logarithm."""
        return self.scales[self._place((1.0 - n) * self.logs - squares / self.twice - self.prior)][:, None]

    def _place(self, density: _Values) -> NDArray[np.intp]:
        """A place on the last axis, drawn with a log density."""
        place: NDArray[np.intp] = np.argmax(density + self.generator.gumbel(size=density.shape), axis=-1)
        return place

    def _normal(self, total: _Values, precision: _Values) -> _Values:
        return np.asarray(total / precision + self.generator.standard_normal(total.shape) / np.sqrt(precision))
