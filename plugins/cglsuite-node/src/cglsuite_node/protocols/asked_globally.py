"""Presets in which a query does not reveal its task: the test items of all tasks so far are queried together, with edges between them.

They are variants of published presets, few-shot streams and open worlds.
"""

from __future__ import annotations

import dataclasses

from cglsuite import ScenarioSpec
from cglsuite.protocols.open_world import open_preset
from cglsuite.specs import Citation
from cglsuite_node.protocols.agale import agale_presets
from cglsuite_node.protocols.cglb import cglb_presets

_LLM4GCL = Citation(
    authors=("Cheng", "Li", "Li", "others"),
    title="Can LLMs Alleviate Catastrophic Forgetting in Graph Continual Learning? A Systematic Study",
    year=2025,
    arxiv="2505.18697",
)
_GEOMETER = Citation(
    authors=("Lu", "Gan", "Yang", "Zhang", "Fu", "Wang"),
    title="Geometer: Graph Few-Shot Class-Incremental Learning via Prototype Representation",
    year=2022,
    booktitle="KDD",
    arxiv="2205.13954",
)
_BASES = {"cora": (3, 2), "synthetic-csbm": (4, 2)}
"""The numbers of classes in the base task and in every later task."""
_SHOTS = 5
_ASKED_ONCE = "cglsuite.streams.asked_once:build_asked_once"


def global_presets() -> list[ScenarioSpec]:
    """Build a global-query variant of the newest class-IL preset of CGLB and of AGALE for every dataset, without edges between tasks in
    training.
    """
    families = {"global-1": cglb_presets(), "global-agale-1": agale_presets()}
    return [_twin(parent, protocol) for protocol, family in families.items() for parent in _newest(family)]


def _newest(family: list[ScenarioSpec]) -> list[ScenarioSpec]:
    alike = (p for p in family if (p.setting, p.edge_policy) == ("class-il", "none") and "consistent" not in p.protocol)
    return list({p.dataset: p for p in sorted(alike, key=lambda p: p.protocol)}.values())


def _twin(parent: ScenarioSpec, protocol: str) -> ScenarioSpec:
    several = parent.labels == "multi"
    return dataclasses.replace(
        parent,
        name=f"{parent.dataset}/{parent.setting}@{protocol}",
        summary=f"{parent.name}, asked about all tasks at once among the edges between them (LLM4GCL)",
        citation=(*parent.citations, _LLM4GCL),
        protocol=protocol,
        builder=_ASKED_ONCE if several else parent.builder,
        query_grouping="pooled",
        query_edges="seen",
        search_scope="first-tasks(2)",
        performance=parent.performance if several else "micro",
        note=f"Training is that of {parent.name}; only what queries tell differs, "
        + ("and a node of several tasks is asked once." if several else "and accuracy counts items."),
    )


def open_presets() -> list[ScenarioSpec]:
    """Return an open-world version of every global-query preset with single labels."""
    return [open_preset(preset) for preset in global_presets() if preset.protocol == "global-1"]


def few_shot_presets() -> list[ScenarioSpec]:
    """Build few-shot class-IL presets: a base task with all its training items, then tasks with five items per class, queried globally."""
    twins = {preset.dataset: preset for preset in global_presets() if preset.protocol == "global-1"}
    return [
        dataclasses.replace(
            twins[dataset],
            name=f"{dataset}/class-il@few-shot-1",
            summary=f"{base} classes of {dataset} in random order, then {later} at a time with {_SHOTS} training items each (few-shot)",
            citation=(_GEOMETER, _LLM4GCL),
            protocol="few-shot-1",
            base_classes=base,
            classes_per_task=later,
            shots=_SHOTS,
            drop_last=False,
            class_order="random",
            note="The setting of Geometer; its episodes and splits are not imitated, so its values are not comparable.",
        )
        for dataset, (base, later) in _BASES.items()
    ]
