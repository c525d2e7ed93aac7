"""Problem levels and their level-specific switches, incremental settings, and the version of the plugin interface.

A new level only needs a class of switches, listed in :data:`LEVEL_SPECS`. A :class:`cglsuite.specs.ScenarioSpec` stores the switches of its
level in ``level_spec``. In overrides, tables, comparisons and keys, they are called ``scenario.NAME``, like all other switches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from cglsuite.specs.switch import Switch, check_switches, declared_switches

API_VERSION = 1
"""The plugin interface of this version of the suite."""
OLDEST_API_VERSION = 1
"""The oldest supported plugin interface."""
Level = Literal["NC", "NR", "LC", "LP", "GC", "GR"]
"""A problem level: node classification or regression, link classification or prediction, graph classification or regression."""
Setting = Literal["task-il", "class-il", "domain-il", "time-il", "task-free"]
"""An incremental setting."""
LEVELS: tuple[str, ...] = get_args(Level)
"""Every value of :data:`Level`."""
SETTINGS: tuple[str, ...] = get_args(Setting)
"""Every value of :data:`Setting`."""


@dataclass(frozen=True, kw_only=True)
class LevelSpec:
    """Base class for the switches of one problem level. Every field is a :func:`Switch` with a default.

    Raises:
        SpecError: a value has the wrong type or is out of range.
    """

    level: ClassVar[str]
    """The problem level, one of :data:`cglsuite.specs.LEVELS`."""

    in_every_key: ClassVar[bool] = False
    """Whether cells of other levels carry the defaults in their configuration and key. Leave it out for a new level, or all keys change."""

    measures: ClassVar[tuple[str, ...]] = ()
    """Values of ``scenario.performance`` that scenarios of other levels refuse."""

    def __post_init__(self) -> None:
        check_switches(self, "scenario")


@dataclass(frozen=True, kw_only=True)
class LinkPredictionSpec(LevelSpec):
    """Switches for link prediction: how links are ranked, and whether training passes messages over the links to be predicted."""

    level: ClassVar[str] = "LP"
    # Cells of every level were keyed with these before levels had switches of their own.
    in_every_key: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = ("hits",)

    hits_k: int = Switch(
        50,
        "K of Hits@K; unused by other measures of performance",
        effect="a larger K: more links count as hits, performance rises and differences shrink",
        minimum=1,
    )
    negatives: int | None = Switch(
        None,
        "pairs without a link that test items are ranked against, and as many others for validation items; drawn once per split seed; "
        "none = as many as there are test items",
        effect="with more negatives the K-th best of them scores higher, so Hits@K falls",
        minimum=1,
    )
    exclude_targets: bool = Switch(
        False,
        "whether links predicted in a training step are left out of the message graph in that step",
        effect={
            "true": "a link does not reveal itself through its own messages; test links do not either",
            "false": "training links carry messages while they are predicted and test links do not, so training is easier than the test",
        },
    )


LEVEL_SPECS: dict[str, type[LevelSpec]] = {spec.level: spec for spec in (LinkPredictionSpec,)}
"""The class of switches for each problem level that has any."""

LEVEL_OF = {name: level for level, level_class in LEVEL_SPECS.items() for name in declared_switches(level_class)}
"""The only problem level that has a switch, by the switch's name."""
