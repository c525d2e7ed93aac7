"""Scenarios that no plugin names: any protocol on any data set whose level and fields fit, as in ``photo/class-il@cglb-1``.

The parent is the preset of the same setting and protocol that differs least from the others of its kind, so that the exceptions which a
protocol makes for one data set are not taken for its rule. What belongs to the parent's data set stays behind: searched hyper-parameters,
memory budgets, written class orders, time bins, official splits that the data set lacks.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.graphs.files.given import FileDatasetSpec
from cglsuite.specs import DatasetSpec, ScenarioSpec, Value, switches
from cglsuite.specs.levels import LinkPredictionSpec

__all__ = ["Derivation", "derivable", "derive", "form_of", "needs_protocol"]

_OWN = frozenset({"dataset", "dataset_hyperparameters"})
"""Switches in which presets of one protocol differ by nature."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Derivation:
    """A derived scenario: its ``spec``, the preset it comes ``from_preset``, and what was ``left_out`` of that, in words."""

    spec: ScenarioSpec
    parent: ScenarioSpec
    left_out: tuple[str, ...]

    @property
    def message(self) -> str:
        """One line for people."""
        left = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        return f"{self.spec.name} is derived from {self.parent.name}{left} (cglsuite scenarios diff {self.parent.name} {self.spec.name})"


def form_of(name: str) -> tuple[str, str] | None:
    """``("photo", "class-il@cglb-1")`` of ``"photo/class-il@cglb-1"``; ``None`` for a name of another form."""
    dataset, slash, rest = name.partition("/")
    return (dataset, rest) if slash and "@" in rest and dataset and rest else None


def derive(name: str, dataset: DatasetSpec, presets: Iterable[ScenarioSpec]) -> Derivation:
    """The scenario ``name`` over ``dataset`` after the presets of the same setting and protocol.

    Args:
        name: ``"<dataset>/<setting>@<protocol>"``.
        dataset: the data set that the name begins with.
        presets: every preset of the catalogue, over any data set.

    Raises:
        UnknownNameError: no preset has this setting and protocol.
        SpecError: those that have it are of another level or kind of labels, or need an attribute that the data set lacks.
    """
    form = form_of(name)
    if form is None:
        raise SpecError(f"scenario {name!r}: expected <dataset>/<setting>@<protocol>")
    presets = list(presets)
    alike = [p for p in presets if p.name.partition("/")[2] == form[1]]
    if not alike:
        raise UnknownNameError("scenario", name, {f"{form[0]}/{p.name.partition('/')[2]}" for p in presets} | {p.name for p in presets})
    parents = _fitting(name, dataset, alike, [p for p in presets if p.dataset == dataset.name])
    parent = _typical(parents)
    defaults, dropped = _shared_defaults(parents, parent)
    changes: dict[str, Any] = {"dataset_hyperparameters": (), "method_defaults": defaults, "method_trials": {}}
    left = [dropped] if dropped else []
    shared = len({p.dataset for p in parents}) > 1 and len({p.memory_budget for p in parents}) == 1
    if parent.memory_budget is not None and not shared:
        changes["memory_budget"] = None
        left.append(f"the memory budget of {parent.memory_budget} items (no limit; --set scenario.memory_budget=N)")
    if "," in parent.class_order:
        changes["class_order"] = "random"
        left.append(f"the class orders written for {parent.dataset} (random)")
    changes |= _split(dataset, parent, left) | _attribute(name, dataset, parent, left)
    if isinstance(dataset, FileDatasetSpec):
        changes |= _of_file(dataset, parent, left)
    spec = dataclasses.replace(
        parent,
        name=name,
        dataset=dataset.name,
        summary=f"{form[1].partition('@')[0]} on {dataset.name}, derived from {parent.name}: no published preset",
        note=" ".join(filter(None, [parent.note, f"Derived from {parent.name}; nobody has published values under this name."])),
        derived_from=parent.name,
        **changes,
    )
    return Derivation(spec=spec, parent=parent, left_out=tuple(left))


def derivable(dataset: DatasetSpec, presets: Iterable[ScenarioSpec]) -> list[str]:
    """The names of all scenarios that :func:`derive` makes over ``dataset``, without those that are presets; sorted."""
    presets, names = list(presets), []
    known = {p.name for p in presets}
    for rest in {p.name.partition("/")[2] for p in presets}:
        name = f"{dataset.name}/{rest}"
        if form_of(name) is None or name in known:
            continue
        try:
            made = derive(name, dataset, presets)
        except (SpecError, UnknownNameError):
            continue
        if made.spec.task_key is None or dataset.keys is not None:  # whether a dataset has an attribute that it does not declare is unknown
            names.append(name)
    return sorted(names)


def needs_protocol(dataset: DatasetSpec, presets: Iterable[ScenarioSpec]) -> str:
    """What to answer to the name of a data set where a scenario is asked for: the scenarios over it."""
    presets = list(presets)
    own = sorted(p.name for p in presets if p.dataset == dataset.name)
    more = derivable(dataset, presets)
    parts = [f"{dataset.name!r} is a dataset: expected a scenario over it, with a setting and a protocol."]
    parts += [f"Presets: {', '.join(own)}."] if own else []
    parts += [f"{'Derived from other presets' if own else 'Derived from presets of other datasets'}: {', '.join(more)}."] if more else []
    return " ".join(parts)


def _fitting(name: str, dataset: DatasetSpec, alike: Sequence[ScenarioSpec], own: Sequence[ScenarioSpec]) -> list[ScenarioSpec]:
    """The presets of the data set's level and kind of labels."""
    levels = dataset.levels
    fitting = [p for p in alike if p.level in levels]
    if not fitting:
        there = ", ".join(sorted({p.level for p in alike}))
        raise SpecError(
            f"{name} cannot be derived: {dataset.name} is of level {', '.join(levels)}, {name.partition('/')[2]} of {there}; "
            "choose a protocol of that level (cglsuite list scenarios)"
        )
    labels = {dataset.labels} if dataset.labels is not None else {p.labels for p in own}
    matching = [p for p in fitting if not labels or p.labels in labels]
    if not matching and isinstance(dataset, FileDatasetSpec) and dataset.binary:
        matching = [p for p in fitting if p.labels == "multi"]  # two classes are one label, see _of_file
    if not matching:
        there = ", ".join(sorted({p.labels for p in fitting}))
        raise SpecError(
            f"{name} cannot be derived: labels of {dataset.name} are {', '.join(sorted(labels))}, and {name.partition('/')[2]} exists for "
            f"{there} labels; choose another protocol (cglsuite list scenarios)"
        )
    if len({p.labels for p in matching}) > 1 and not labels:
        matching = [p for p in matching if p.labels == "single"] or matching
    return matching


def _typical(presets: Sequence[ScenarioSpec]) -> ScenarioSpec:
    """The preset that differs in the fewest switches from the others; of equals the first by name."""
    every = [_flat(p) for p in presets]
    counts = {key: Counter(flat.get(key) for flat in every) for key in set().union(*every)}
    shared = [sum(counts[key][value] for key, value in flat.items() if key not in _OWN) for flat in every]
    return min(zip(presets, shared, strict=True), key=lambda pair: (-pair[1], pair[0].name))[0]


def _flat(preset: ScenarioSpec) -> dict[str, str]:
    parts = {"": preset, "training.": preset.training, "stream.": preset.task_free}
    return {
        f"{prefix}{key}": repr(value)
        for prefix, part in parts.items()
        if part is not None
        for key, value in switches(part, implicit=True).items()
    }


def _shared_defaults(presets: Sequence[ScenarioSpec], parent: ScenarioSpec) -> tuple[dict[str, dict[str, Value]], str]:
    """The parent's defaults per method that are its protocol's, and in words those that are its data set's.

    A value is the protocol's if presets over several data sets share it; numbers of a protocol with one data set, and whatever the protocol
    leaves to a search, are the data set's.
    """
    several = len({p.dataset for p in presets}) > 1
    kept: dict[str, dict[str, Value]] = {}
    dropped: set[str] = set()
    for method, values in parent.method_defaults.items():
        for key, value in values.items():
            same = all(p.method_defaults.get(method, {}).get(key, value) == value for p in presets)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if key in parent.searched or not same or (number and not several):
                dropped.add(key)
            else:
                kept.setdefault(method, {})[key] = value
    words = f"what was searched on {parent.dataset} per method ({', '.join(sorted(dropped))}: defaults apply)" if dropped else ""
    return kept, words


def _split(dataset: DatasetSpec, parent: ScenarioSpec, left: list[str]) -> dict[str, Any]:
    if parent.split != "official" or dataset.official_split is not False:
        return {}
    split = "per-class" if parent.labels == "single" and parent.setting != "time-il" else "random"
    left.append(f"the official split, which {dataset.name} does not have ({split})")
    return {"split": split}


def _of_file(dataset: FileDatasetSpec, parent: ScenarioSpec, left: list[str]) -> dict[str, Any]:
    """What follows from the size of a user's graph: the features of its edges, and how many negatives there can be."""
    changes: dict[str, Any] = {}
    if dataset.labels == "single" and parent.labels == "multi":
        options = next(str(h.default) for h in dataset.hyperparameters if h.name == "options")
        changes["dataset_hyperparameters"] = (("options", json.dumps(json.loads(options) | {"labels": "multi"}, sort_keys=True)),)
        left.append("several labels (the two classes are one label, true or false: labels = multi)")
    own = dict(parent.backbone_hyperparameters)
    if (theirs := own.get("edge_features", dataset.edge_features)) != dataset.edge_features:
        changes["backbone_hyperparameters"] = tuple((own | {"edge_features": dataset.edge_features}).items())
        left.append(f"{theirs} features of an edge (backbone.edge_features = {dataset.edge_features})")
    ranking = parent.level_spec
    if isinstance(ranking, LinkPredictionSpec) and dataset.absent_pairs is not None:
        # By default there are as many as test links, about a tenth of all: of few links too few to rank among.
        enough = ranking.negatives or (None if dataset.links // 10 >= 2 * ranking.hits_k else 4 * ranking.hits_k)
        # Test and validation have their own, and each of them needs room to be drawn at random.
        negatives = min(enough or dataset.links // 10, max(1, dataset.absent_pairs // 4))
        if negatives != (enough or dataset.links // 10) or (enough and ranking.negatives is None):
            hits_k = min(ranking.hits_k, max(1, negatives // 4))
            changes["level_spec"] = dataclasses.replace(ranking, negatives=negatives, hits_k=hits_k)
            given = f"scenario.negatives = {negatives}, scenario.hits_k = {hits_k}"
            left.append(f"the number of negatives, which follows the size of the graph ({given})")
    return changes


def _attribute(name: str, dataset: DatasetSpec, parent: ScenarioSpec, left: list[str]) -> dict[str, Any]:
    """The data set's own attribute where the parent's tasks come from one, without the parent's bins."""
    if parent.task_key is None:
        return {}
    changes: dict[str, Any] = {}
    if parent.task_bins:
        changes["task_bins"] = ()
        left.append(f"the bins of {parent.task_key} of {parent.dataset} (one step per value; --set scenario.task_bins=...)")
    keys = dataset.keys
    if keys is not None and parent.task_key not in keys:
        fitting = [key for key in keys if (key == "time") == (parent.setting == "time-il")] or list(keys)
        if len(fitting) > 1 and parent.setting == "domain-il":
            left.append(f"the attribute {parent.task_key}: tasks are the values of {fitting[0]} (or --set scenario.task_key={fitting[1]})")
            fitting = fitting[:1]
        if len(fitting) != 1:
            there = f"it has {', '.join(keys)}" if keys else "it has none"
            raise SpecError(
                f"{name} cannot be derived: its tasks are the values of an attribute such as {parent.task_key!r} of every item, and "
                f"{dataset.name} needs exactly one to take ({there}); add the array, or choose another protocol"
            )
        changes["task_key"] = fitting[0]
    return changes
