"""The list of datasets: complete, honest about sources, and free of heavy imports."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest
from cglsuite_node.datasets.specs import DATASETS, DEBIAN_SIZES, SIZES

from cglsuite.specs import DatasetSpec

NAMES = {
    "synthetic-csbm",
    "cora",
    "citeseer",
    "pubmed",
    "corafull",
    "citationfull-cora-ml",
    "citationfull-citeseer",
    "citationfull-dblp",
    "amazon-clothing20",
    "ogbn-arxiv",
    "ogbn-products",
    "ogbn-mag",
    "ogbn-proteins",
    "reddit",
    "synthetic-csbm-edges",
    "synthetic-growing",
    "synthetic-node-targets",
    "twitch-gamers",
    "twitch-musae",
    "pcg",
    "humango",
    "dblp-multilabel",
    "blogcatalog",
    "yelp",
    "debian-packages",
}


def test_listing_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "scipy", "pandas", "torch_geometric", "ogb"}
    code = f"import sys, cglsuite_node.datasets.specs; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_all_datasets_are_there() -> None:
    assert {spec.name for spec in DATASETS} == NAMES
    assert set(SIZES) == {name for name in NAMES if not name.startswith("synthetic-")} - {"debian-packages"}


@pytest.mark.parametrize("spec", DATASETS, ids=lambda spec: spec.name)
def test_spec_is_complete_and_its_factory_exists(spec: DatasetSpec) -> None:
    assert spec.levels == (("NR",) if spec.name == "synthetic-node-targets" else ("NC",))
    assert spec.citation
    assert spec.licence
    assert spec.embedded == spec.name.startswith("synthetic-")
    if not spec.embedded:
        assert spec.home.startswith("https://")
        assert str(SIZES.get(spec.name, DEBIAN_SIZES)) in spec.summary
        assert "hecksum" in spec.summary
        assert "fficial split" in spec.summary or "Planetoid split" in spec.summary
    module, _, name = spec.factory.partition(":")
    factory = getattr(importlib.import_module(module), name)
    taken = inspect.signature(factory).parameters
    assert next(iter(taken)) == "root"
    assert factory.__doc__
    if not spec.embedded:
        assert {n: p.default for n, p in taken.items() if n != "root"} == {h.name: h.default for h in spec.hyperparameters}
