"""BeGin (Ko et al. 2025): what its protocol fixes at every problem level."""

from __future__ import annotations

from cglsuite.specs import Citation, TrainingSpec, Value

__all__ = ["CITATION", "FIRST_NOTE", "TRAINING", "VERSIONS", "method_defaults", "noted"]

CITATION = Citation(
    authors=("Ko", "others"),
    title="BeGin: Extensive Benchmark Scenarios and An Easy-to-use Framework for Graph Continual Learning",
    year=2025,
    journal="ACM TIST 16(1)",
)
"""The paper."""
TRAINING = TrainingSpec(
    backbone="gcn",
    lr=1e-3,
    weight_decay=0.0,
    epochs=1000,
    plateau_patience=20,
    plateau_factor=0.1,
    stop_ratio=1e-3,
    monitor="validation-loss",
    restore_best=True,
)
"""Adam under a plateau schedule on the validation loss, best weights kept; levels differ in epochs, patience and batch size."""


VERSIONS = (1, 2)
"""Versions of the presets. The second follows the published code where the first left what it does to the methods' own forms."""
FIRST_NOTE = "begin-2 follows the published code where this version does not: TWP as implemented."
"""What the note of a preset of the first version says about the second."""
_TWP: dict[str, Value] = {
    "method.lambda_l": 1e4,
    "method.lambda_t": 1e3,
    "method.beta": 0.01,
    "method.detach_beta": True,
    "method.topology_accumulates": True,
    "method.attention_norm": "norm",
    "method.attention_from": "degree-normalised",
    "method.double_loss": True,
}


def noted(note: str, version: int) -> str:
    """The note of a preset, which in the first version names the second."""
    return " ".join(filter(None, (note, FIRST_NOTE if version == 1 else "")))


def method_defaults(budget: int | None, n_tasks: int, version: int = 1) -> dict[str, dict[str, Value]]:
    """Hyper-parameters that the protocol fixes for a method; where its grid leaves a choice, the grid's last value.

    Args:
        budget: items in memory; ``None`` = no limit. GEM keeps ``budget // n_tasks`` items per task, at least one.
        n_tasks: number of tasks.
        version: see :data:`VERSIONS`; the second has TWP as implemented. The benchmark's script searches λ_t = 100 and 1000 (the default of
            1e4 in its code is not used).
    """
    share: dict[str, Value] = {} if budget is None else {"method.per_task": max(budget // n_tasks, 1)}
    return {
        "ewc": {"method.fisher": "batch", "method.lambda": 1e4},
        "lwf": {"method.lambda": 1.0, "method.temperature": 2.0},
        "mas": {"method.importance": "batch", "method.lambda": 1.0},
        "twp": {"method.lambda_l": 1e4, "method.lambda_t": 100.0, "method.beta": 0.01} if version == 1 else dict(_TWP),
        "gem": {"method.margin": 0.5, **share},
        "packnet": {"method.as_begin": True},
        "piggyback": {"method.as_begin": True, "method.threshold": 0.01},
        "hat": {"method.as_begin": True, "training.norm_statistics": "shared"},
        "pi-gnn": {"method.beta": 1.0, **share},
        "cat": {"method.as_begin": True, **share},
    }
