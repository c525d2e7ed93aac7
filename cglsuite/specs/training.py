"""Training settings for one task."""

from __future__ import annotations

from dataclasses import dataclass

from cglsuite.base.errors import SpecError
from cglsuite.specs.switch import Switch, check_switches


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """Training settings for one task. These are the protocol's defaults, before a method's searched values are applied."""

    backbone: str = Switch(
        "gcn",
        "the backbone's name in the catalogue",
        effect="performance and forgetting depend on the network, so compare methods only on the same backbone",
    )
    optimizer: str = Switch(
        "adam",
        "the optimiser",
        ("adam", "sgd"),
        effect={
            "adam": "steps are scaled per parameter, and so are penalties such as EWC's",
            "sgd": "steps are proportional to the gradient, which requires different learning rates and more epochs",
        },
    )
    lr: float = Switch(
        1e-3,
        "initial learning rate",
        effect="a higher rate learns a task in fewer epochs but overwrites more of what was learnt on earlier tasks",
        above=0,
        maximum=1e6,
    )
    weight_decay: float = Switch(
        0.0,
        "L2 penalty added to the gradient by the optimiser",
        effect="more decay reduces overfitting, but weights that only earlier tasks need shrink while later tasks are trained",
        minimum=0,
        maximum=1e6,
    )
    epochs: int = Switch(
        200,
        "maximum number of passes over the task's training items",
        effect="more epochs fit the current task better but overwrite more of what was learnt on earlier tasks",
        minimum=1,
        maximum=1_000_000,
    )
    plateau_patience: int | None = Switch(
        None,
        "epochs without a better monitored value before the rate is cut; none = constant rate, last epoch kept",
        effect="with none, every task is trained for all epochs at a constant rate; a smaller patience ends tasks sooner",
        minimum=0,
        maximum=1_000_000,
    )
    plateau_factor: float = Switch(
        0.1,
        "factor by which the rate is multiplied on a plateau",
        effect="with a smaller factor, training stops after fewer cuts of the rate, so tasks end sooner",
        minimum=0,
        maximum=1,
    )
    stop_ratio: float = Switch(
        1e-3,
        "stop when the rate has fallen to this fraction of its initial value",
        effect="a larger fraction ends tasks sooner, with a worse fit and less forgetting",
        minimum=0,
        maximum=1,
    )
    monitor: str = Switch(
        "none",
        "the scalar that steers the schedule",
        ("none", "validation-loss", "validation-performance"),
        effect={
            "none": "validation labels do not influence training",
            "validation-loss": "validation labels decide when a task ends and which weights are kept",
            "validation-performance": "as with validation-loss, but the test measure decides; it is coarser but not misled by confidence",
        },
    )
    restore_best: bool = Switch(
        False,
        "after a task, restore the weights with the best monitored value",
        effect={
            "true": "the epoch that generalises best is kept, so long training overfits less",
            "false": "the last epoch is kept, even if it overfits",
        },
    )
    carry_optimizer: bool = Switch(
        False,
        "whether the optimiser's moments survive the end of a task",
        effect={
            "true": "the first steps of a task still follow the moments of the previous task",
            "false": "every task starts with fresh moments, so its first steps are as large as the rate allows",
        },
    )
    class_balanced: bool = Switch(
        False,
        "weight the loss of an item by 1 / (count of its class in the batch); with several labels, weight positives by the ratio of "
        "negatives "
        "to positives among the task's training items",
        effect={
            "true": "rare classes count as much as common ones, which favours macro accuracy",
            "false": "common classes dominate the loss, which favours micro accuracy",
        },
    )
    norm_statistics: str = Switch(
        "shared",
        "running statistics of batch norm: shared = updated by all tasks; frozen = those of the first task are kept and used, also in "
        "training; per-task = reset for every task, and a query that names its task is normalised with that task's",
        ("shared", "frozen", "per-task"),
        effect={
            "shared": "the statistics drift towards the latest task, which shifts the representations of earlier tasks' items",
            "frozen": "items of the first task keep their scale, but later tasks are normalised with the first task's statistics",
            "per-task": "no task uses another's statistics; if the task is unknown at test time, all queries use the latest statistics",
        },
    )
    batch_size: int | None = Switch(
        None,
        "items per step, redrawn in every epoch; none = all items of the task in one step. In a task-free stream: the number that arrives",
        effect="smaller batches take more and noisier steps per epoch, which fit a task sooner but overwrite more of earlier tasks",
        minimum=1,
    )
    fan_out: tuple[int, ...] = Switch(
        (),
        "maximum number of in-neighbours sampled per node in training, by layer from the input (10,25: 25 for a batch's items, 10 for "
        "their neighbours); () = all. Evaluation and the monitored value always use all",
        effect="fewer neighbours need less memory and time per step but make gradients noisier; with sum aggregation, activations are also "
        "smaller in training than in evaluation",
        minimum=1,
        maximum=1_000_000,
    )

    def __post_init__(self) -> None:
        check_switches(self, "training")
        if self.fan_out and self.batch_size is None:
            raise SpecError("training.batch_size = none, but training.fan_out samples neighbours for mini-batches; expected a number")
        if (self.plateau_patience is not None or self.restore_best) and self.monitor == "none":
            raise SpecError(
                "training.monitor = none, but a plateau schedule and restore_best require a monitored value (validation-loss or "
                "validation-performance)"
            )
