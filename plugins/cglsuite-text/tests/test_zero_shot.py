"""What encoders know about the sections of debian-packages before any training, as the page on texts states it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from cglsuite import load_catalogue
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataAbsentError
from cglsuite.cells.text import with_text_features

PAGE = Path(__file__).parents[3] / "docs" / "protocols" / "text.md"


def accuracy(encoder: str, root: DataRoot) -> float:
    """The share of test packages whose description is closest, by cosine, to the name of their section."""
    catalogue = load_catalogue()
    data = catalogue.resolve(catalogue.get("dataset", "debian-packages"))(root)
    with root.file("DebianPackages/nodes.csv").open(encoding="utf-8") as stream:
        import pandas as pd

        names = sorted(set(pd.read_csv(stream, keep_default_na=False)["section"]))
    x = with_text_features(catalogue, encoder, data, root)[0].x.numpy()
    of_names = np.asarray(catalogue.resolve(catalogue.get("encoder", encoder))(root)(names), dtype=np.float32)
    test = data.official_split.numpy() == 2
    return float(((x @ of_names.T).argmax(axis=1) == data.y.numpy())[test].mean())


@pytest.mark.nightly
@pytest.mark.plugins("cglsuite-node")
@pytest.mark.parametrize(
    ("encoder", "package", "name"), [("wordllama", "wordllama", "WordLlama"), ("minilm", "sentence_transformers", "MiniLM")]
)
def test_names_of_sections_alone(encoder: str, package: str, name: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    try:
        found = 100 * accuracy(encoder, DataRoot.from_environment())
    except DataAbsentError as absent:
        pytest.skip(str(absent).splitlines()[0])
    assert f"{found:.1f}% with {name}" in " ".join(PAGE.read_text(encoding="utf-8").split())
