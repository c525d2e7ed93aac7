"""Each published protocol has one home, and every preset under its name is made there."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from cglsuite import ScenarioSpec, load_catalogue
from cglsuite.campaigns.reference.values import PAPERS
from cglsuite.protocols import begin, cglb
from cglsuite.specs import Value

ROOT = Path(__file__).parents[2]
HOMES = {
    "begin": "cglsuite/protocols/begin",
    "cglb": "cglsuite/protocols/cglb.py",
    "agale": "cglsuite/protocols/agale.py",
    "drift": "plugins/cglsuite-drift/src/cglsuite_drift/protocols.py",
    "skeleton": "plugins/cglsuite-skeleton/src/cglsuite_skeleton/protocols.py",
}
"""Paper to the only place whose code knows the names of its protocols; that of published values is ``cglsuite/campaigns/reference``."""


def sources() -> list[Path]:
    core = [p for p in (ROOT / "cglsuite").rglob("*.py") if "reference" not in p.relative_to(ROOT).parts]
    return core + list((ROOT / "plugins").glob("cglsuite-*/src/**/*.py"))


def named(node: ast.AST, names: dict[str, str]) -> list[str]:
    """The paper whose protocol a node names: whole (``"begin-1"``), or with its version to come (``f"begin-{version}"``)."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [names[node.value]] if node.value in names else []
    if isinstance(node, ast.JoinedStr) and len(node.values) == 2 and isinstance(node.values[0], ast.Constant):
        return [paper for paper in HOMES if node.values[0].value == f"{paper}-"]
    return []


@pytest.mark.nightly
def test_only_a_papers_home_names_its_protocols() -> None:
    names = {name: name.partition("-")[0] for paper in PAPERS for name in paper.protocols}
    assert set(names.values()) == set(HOMES)
    found = defaultdict(set)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for paper in named(node, names):
                found[paper].add(path.relative_to(ROOT).as_posix())
    assert set(found) == set(HOMES)
    assert [path for paper, paths in found.items() for path in sorted(paths) if not path.startswith(HOMES[paper])] == []


@pytest.mark.plugins
@pytest.mark.parametrize("paper", HOMES)
def test_presets_of_a_paper_cite_it_alike(paper: str) -> None:
    specs: list[ScenarioSpec] = [entry.spec for entry in load_catalogue().entries("scenario")]  # type: ignore[misc]
    cited = {spec.citation for spec in specs if spec.protocol.partition("-")[0] == paper}
    assert len(cited) == 1


@pytest.mark.parametrize(
    "preset",
    [
        begin.node_preset("mine", "class-il", budget=100, n_tasks=5, n_classes=10),
        begin.link_classification_preset("mine", "class-il", n_tasks=3, budget=100),
        begin.link_prediction_preset("mine", "time-il", key="step", n_tasks=5),
        begin.graph_preset("mine", "domain-il", n_tasks=5, budget=None),
        cglb.node_preset("mine", "class-il"),
        cglb.node_preset("mine", "task-il", edge_policy="inter-task"),
        cglb.graph_preset("mine", "task-il", "classes arrive"),
    ],
    ids=lambda preset: f"{preset.protocol} {preset.level}",
)
def test_a_dataset_of_a_third_party_gets_a_preset(preset: ScenarioSpec) -> None:
    assert preset.name == f"mine/{preset.setting}@{preset.protocol}"
    assert preset.train_outputs == ("task" if preset.setting == "task-il" else "seen")
    assert preset.method_defaults["ewc"]["method.fisher"] == "batch"


def test_a_search_goes_over_the_protocols_table() -> None:
    chosen: dict[str, dict[str, Value]] = {"ewc": {"method.lambda": 5.0}, "other": {"method.x": 1}}
    preset = begin.node_preset("mine", "class-il", budget=100, n_tasks=5, n_classes=10, selected=chosen)
    assert preset.method_defaults["ewc"] == {"method.fisher": "batch", "method.lambda": 5.0}
    assert preset.method_defaults["other"] == {"method.x": 1}
    assert preset.method_defaults["gem"]["method.per_task"] == 20
