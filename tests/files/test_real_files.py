"""What is understood of files that people know, beside the facts that their papers state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from own_data_lab import PAGE, table_of

from cglsuite.graphs.files.given import cell_warnings, data_spec
from cglsuite.graphs.files.named import named
from cglsuite.study.data import as_data_file


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))


def understood(source: Any, **options: Any) -> dict[str, str]:
    path = as_data_file(source, "" if isinstance(source, Path) else "mine")
    with named(data=[path], options={path.stem: options} if options else None):
        spec = data_spec(path)
    return dict(spec.facts) | {"level": spec.levels[0], "labels are": str(spec.labels), "warnings": "; ".join(cell_warnings(spec))}


ROWS = {
    cells[0]: cells[2:]
    for cells in (
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in table_of(PAGE.read_text(encoding="utf-8"), "real files").splitlines()
    )
}


def documented(name: str, facts: Mapping[str, str]) -> None:
    """The docs say what is understood of a file."""
    edges = "; ".join(facts[key] for key in ("edges", "links") if key in facts)
    kinds = ("graphs", "labelled", "classes", "labels", "times", "attribute weight", "types of nodes", "not used")
    rest = [f"{key}: {facts[key]}" for key in kinds if key in facts and facts[key] != "nothing"]
    assert ROWS[name] == [facts["nodes"], edges, "; ".join(rest) or "–"]


def tables(folder: Path, graph: Any, items: str, of_node: Mapping[Any, str] | None = None, column: str = "y") -> Path:
    """A graph of networkx as its own names write it."""
    folder.mkdir()
    header, rows = ["id"], [[str(node)] for node in graph]
    if of_node:
        header, rows = [*header, column], [[*row, of_node[node]] for row, node in zip(rows, graph, strict=True)]
    if items == "edges":
        header, rows = [*header, "one"], [[*row, "1"] for row in rows]
    (folder / "nodes.csv").write_text("\n".join(map(",".join, [header, *rows])))
    weights = [f",{data['weight']}" if "weight" in data else "" for *_, data in graph.edges(data=True)]
    head = "source,target" + (",weight" if any(weights) else "")
    (folder / f"{items}.csv").write_text("\n".join([head, *(f"{a},{b}{w}" for (a, b), w in zip(graph.edges, weights, strict=True))]))
    return folder


def test_karate_club(tmp_path: Path) -> None:
    """Zachary 1977: 34 members, 78 ties with weights, two factions of 17."""
    graph = nx.karate_club_graph()
    found = understood(tables(tmp_path / "karate", graph, "edges", nx.get_node_attributes(graph, "club")))
    assert found["nodes"] == "34, 1 feature"
    assert found["edges"].startswith("78, directed, weights of 1 to 7, 0 self-loops, 0 duplicates")
    assert (found["classes"], found["labelled"]) == ("2: Mr. Hi (17), Officer (17)", "34 of 34")
    assert found["warnings"].startswith("the weights of edges are used only by gcn and gin with backbone.edge_weight = true")
    documented("karate club, with weights", found)


def test_karate_club_of_pyg() -> None:
    """Four communities, each tie in both directions; its four training nodes are no split."""
    from torch_geometric.datasets import KarateClub

    for source in (KarateClub(), list(KarateClub()), KarateClub()[0]):
        found = understood(source)
        assert (found["level"], found["nodes"], found["classes"]) == ("NC", "34, 34 features", "4: 0 (13), 1 (12), 2 (4), 3 (5)")
        assert found["edges"].startswith("156, in both directions, not weighted, 0 self-loops, 0 duplicates")
        documented("`pyg:KarateClub`", found)


def test_les_miserables(tmp_path: Path) -> None:
    """Knuth 1993: 77 characters, 254 pairs that meet, 1 to 31 times."""
    found = understood(tables(tmp_path / "miserables", nx.les_miserables_graph(), "links"))
    assert (found["level"], found["nodes"], found["links"]) == (
        "LP",
        "77, no features",
        "254, directed, not weighted, 0 self-loops, 0 duplicates",
    )
    assert found["attribute weight"] == "17 distinct, 1 to 31"
    documented("Les Misérables", found)


def test_florentine_families(tmp_path: Path) -> None:
    """Breiger and Pattison 1986: 15 families with 20 marriages."""
    found = understood(tables(tmp_path / "florentine", nx.florentine_families_graph(), "links"))
    assert (found["nodes"], found["links"]) == ("15, no features", "20, directed, not weighted, 0 self-loops, 0 duplicates")
    documented("Florentine families", found)


def test_davis_southern_women(tmp_path: Path) -> None:
    """Davis et al. 1941: 18 women at 14 events, 89 attendances; both sides are types."""
    graph = nx.davis_southern_women_graph()
    sides = {node: "event" if side else "woman" for node, side in nx.get_node_attributes(graph, "bipartite").items()}
    found = understood(tables(tmp_path / "davis", graph, "links", sides, "node_type"))
    assert (found["nodes"], found["links"][:2], found["types of nodes"]) == ("32, no features", "89", "0 (14), 1 (18)")
    documented("Davis's southern women", found)


RAW = Path(os.environ.get("CGLSUITE_DATA", "").split(os.pathsep)[0] or "/none")


def raw(name: str) -> Path:
    """The largest file of a data set here."""
    if not (RAW / name).is_dir():
        pytest.skip(f"{name} is not in CGLSUITE_DATA")
    return RAW / name


def numbers(path: Path) -> np.ndarray[Any, Any]:
    return np.loadtxt(path, dtype=np.int64)


def test_email_eu_core() -> None:
    """Leskovec et al. 2007: 1,005 members of 42 departments, 25,571 directed edges, 642 of them to oneself."""
    folder = raw("EmailEUCore")
    edges, departments = (
        numbers(next(folder.rglob(pattern))) for pattern in ("email-Eu-core.txt*", "email-Eu-core-department-labels.txt*")
    )
    found = understood({"x": np.ones((1005, 1)), "edge_index": edges.T, "y": departments[:, 1]})
    assert (found["nodes"], found["edges"]) == ("1,005, 1 feature", "25,571, directed, not weighted, 642 self-loops, 0 duplicates")
    assert found["classes"].startswith("42: 0 (49), 1 (65)")
    documented("email-Eu-core", found)


def test_college_msg() -> None:
    """Panzarasa et al. 2009: 1,899 users, 59,835 messages over 20,296 directed pairs; times to the second."""
    messages = numbers(next(raw("CollegeMsg").rglob("CollegeMsg.txt*")))
    found = understood({"links": messages[:, :2].T - 1, "time": messages[:, 2]})
    assert (found["nodes"], found["links"]) == (
        "1,899, no features",
        f"59,835, directed, not weighted, 0 self-loops, {59835 - 20296:,} duplicates",
    )
    assert found["times"].startswith("58,911 distinct, 1082040961 to 1098777142")
    documented("CollegeMsg", found)


def test_tox21() -> None:
    """Wu et al. 2018: 12 assays of molecules, with measurements that are missing."""
    import pandas as pd

    file = next(raw("MoleculeNet").rglob("tox21.csv*"))
    y = pd.read_csv(file).iloc[:, :12].to_numpy(dtype=np.float64)
    n = len(y)
    found = understood({"x": np.ones((n, 1)), "edge_index": np.empty((2, 0), int), "graph": np.arange(n), "y": y})
    assert (found["level"], found["labels are"]) == ("GC", "multi")
    assert found["labels"].startswith("12: 0 (")
    assert found["labels"].endswith(f"; {int(np.isnan(y).sum()):,} unknown")
    assert found["labelled"] == f"{int((~np.isnan(y)).any(axis=1).sum()):,} of {n:,}"
    documented("Tox21", found)


def test_pcg() -> None:
    """Zhao et al. 2023: 3,233 proteins, 37,351 pairs that interact, 15 labels."""
    folder = raw("PCG")
    files = {path.stem.lower(): path for path in folder.rglob("*") if path.suffix in (".csv", ".txt")}
    edges = np.loadtxt(next(path for stem, path in files.items() if "edge" in stem), delimiter=",", dtype=np.int64)
    labels = np.loadtxt(next(path for stem, path in files.items() if "label" in stem), delimiter=",")
    found = understood({"x": np.ones((len(labels), 1)), "edge_index": edges.T, "y": labels})
    assert (found["nodes"], found["labels are"]) == ("3,233, 1 feature", "multi")
    assert found["labels"].startswith("15: 0 (")
    documented("PCG", found)
