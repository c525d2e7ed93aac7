"""Hyper-parameters chosen by search on validation average performance: the outcomes of two campaigns.

``bare``, ``ewc`` and ``joint``: reports/begin/begin-nc-search.toml, two class orders, learning rate 1e-3 or 5e-3 and λ 1e2 or 1e4, dropout
0.5, no weight decay. The others: reports/begin/begin-nc-methods-search.toml, one class order, at most six settings (dropout 0, 0.25 or 0.5;
λ of LwF and MAS 0.1 or 1; β of TWP 0 or 0.01), learning rate 1e-3, no weight decay. λ = 1 won for LwF and MAS throughout.
"""

from __future__ import annotations

from cglsuite.specs import Value

__all__ = ["CHOSEN", "TRIALS"]

TRIALS = {"bare": 2, "joint": 2, "ewc": 4, "lwf": 6, "mas": 6, "twp": 6, "gem": 3, "er-gnn": 3}
"""The number of settings from which the values of a method were chosen: unequal, as BeGin's are (18 for Bare, 36 for most others)."""

_RATE: dict[str, Value] = {"training.lr": 1e-3}


def _chosen(
    *, ewc_lambda: float, lwf: float, mas: float, twp: tuple[float, float], gem: float, er_gnn: float
) -> dict[str, dict[str, Value]]:
    """The λ of EWC, and the dropout of each other method (for TWP with its β)."""
    return {
        "bare": _RATE,
        "joint": _RATE,
        "ewc": _RATE | {"method.lambda": ewc_lambda},
        "lwf": _RATE | {"backbone.dropout": lwf, "method.lambda": 1.0},
        "mas": _RATE | {"backbone.dropout": mas, "method.lambda": 1.0},
        "twp": _RATE | {"backbone.dropout": twp[0], "method.beta": twp[1]},
        "gem": _RATE | {"backbone.dropout": gem},
        "er-gnn": _RATE | {"backbone.dropout": er_gnn},
    }


CHOSEN: dict[str, dict[str, dict[str, Value]]] = {
    "cora/task-il@begin-1": _chosen(ewc_lambda=1e2, lwf=0.25, mas=0.0, twp=(0.0, 0.01), gem=0.25, er_gnn=0.5),
    "cora/class-il@begin-1": _chosen(ewc_lambda=1e4, lwf=0.0, mas=0.0, twp=(0.5, 0.0), gem=0.25, er_gnn=0.25),
    "citeseer/task-il@begin-1": _chosen(ewc_lambda=1e4, lwf=0.5, mas=0.25, twp=(0.25, 0.01), gem=0.5, er_gnn=0.5),
    "citeseer/class-il@begin-1": _chosen(ewc_lambda=1e2, lwf=0.5, mas=0.25, twp=(0.25, 0.0), gem=0.5, er_gnn=0.5),
}
