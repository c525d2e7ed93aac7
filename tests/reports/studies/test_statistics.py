"""Published statistics of data sets beside our counts: every row, every cause with a rule that is checked."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch
from ledger_lab import catalogue

from cglsuite.base.errors import UnknownNameError
from cglsuite.campaigns.reference import dataset_statistics, statistic_causes
from cglsuite.host import load_catalogue
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.studies.anatomy.compute import _carried_homophily
from cglsuite.reports.studies.anatomy.published import RULES, Count, cause_of, counted, is_printed_as
from cglsuite.reports.studies.ledger.page import _together
from cglsuite.reports.studies.ledger.ratios import load_statistics, statistic_counts


def row_of(paper: str, dataset: str) -> dict[str, Any]:
    """The first row of a paper and data set."""
    table = dataset_statistics()
    return as_rows(table[(table["paper"] == paper) & (table["dataset"] == dataset)])[0]


def count(paper: str, dataset: str, quantity: str, ours: float = math.nan, **facts: float) -> Count:
    """The printed number of a quantity beside ``ours``."""
    row = row_of(paper, dataset)
    printed = next(line["published"] for line in counted(row) if line["quantity"] == quantity)
    return Count(row=row, quantity=quantity, published=printed, unit=1.0, ours=ours, facts=facts)


@pytest.mark.parametrize(
    ("value", "published", "unit", "same"),
    [
        (5881, 5858, 1, False),
        (5858, 5858, 1, True),
        (5859, 5858, 1, False),
        (29.7469, 29.7, 0.1, True),
        (29.8001, 29.7, 0.1, False),
        (28_702, 28_000, 1000, True),  # cut
        (27_600, 28_000, 1000, True),  # rounded
        (29_000, 28_000, 1000, False),
        (0.7552, 0.76, 0.01, True),
        (25_182.5, 25_183, 1, True),
    ],
)
def test_a_number_is_printed_rounded_or_cut(value: float, published: float, unit: float, same: bool) -> None:
    """Exactly, where whole numbers are printed in full."""
    assert is_printed_as(value, published, unit) is same


@pytest.mark.parametrize(
    ("found", "check"),
    [
        (count("BeGin", "Bitcoin", "nodes", 5881, receivers=5858), "holds"),
        (count("BeGin", "Bitcoin", "nodes", 5881, receivers=5857), "fails"),
        (count("BeGin", "Bitcoin", "nodes"), "not checked"),
        (count("BeGin", "Bitcoin", "nodes", 5858, receivers=1), ""),
        (count("BeGin", "ogbn-arxiv", "nodes"), "holds"),  # by the paper's own row of CoraFull
        (count("BeGin", "ogbg-molhiv", "features", 174, feature_sum=9), "holds"),
        (count("BeGin", "ogbg-molhiv", "edge features", 13, edge_feature_sum=4), "fails"),
        (count("BeGin", "AqSol", "graphs", 9833), "open"),
        (count("BeGin", "Cora", "nodes", 2709), "open"),
        (count("BeGin", "Cora", "nodes"), ""),
        (count("CGLB", "CoraFull-CL", "nodes per task"), "holds"),  # 19,793 over 30
        (count("CGLB", "Aromaticity-CL", "graphs per task", 257.87), "holds"),
        (count("DRIFT", "RomanEmpire-CL", "edges"), "holds"),
        (count("AGALE", "PCG", "edges per task", 9527.6, mean_pairs=4763.8), "holds"),
        (count("AGALE", "PCG", "edges per task", 9527.6, mean_pairs=4764.1), "fails"),
    ],
)
def test_causes_are_checked(found: Count, check: str) -> None:
    """A rule gives the printed number or it does not; what lacks a rule is open; what is equal needs no cause."""
    assert cause_of(found)[1] == check


@pytest.mark.parametrize(("value", "check"), [(0.3786, "holds"), (0.3635, "fails"), (None, "not checked")])
def test_classes_carried_from_order_to_order(value: float | None, check: str) -> None:
    """AGALE prints 0.38 for PCG in class-IL, where the classes seen in an order give 0.45."""
    table = dataset_statistics()
    row = as_rows(table[(table["dataset"] == "PCG") & (table["setting"] == "class-IL")])[0]
    facts = {} if value is None else {"carried_homophily": value}
    found = Count(row=row, quantity="label homophily, mean over tasks", published=0.38, unit=0.01, ours=0.451, facts=facts)
    assert cause_of(found)[1] == check


def test_the_mean_with_carried_classes_by_hand() -> None:
    """Two orders of three single-class tasks; in the second one every class counts as often as it has come."""
    y = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=torch.bool)
    edges = torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]])
    data = SimpleNamespace(y=y, n_nodes=4)

    def stream(*order: int) -> Any:
        outputs = [torch.arange(3) == c for c in order]
        nodes = [y[:, c].nonzero().flatten() for c in order]
        return SimpleNamespace(n_outputs=3, edges=edges, data=data, layout=SimpleNamespace(outputs=outputs, nodes=nodes))

    first = [1, (1 + 1 / 2) / 2, 2 / 3]  # class 0 (pairs 0-1, 1-2); 0 and 1 (pairs 1-2, 2-3); all three (pair 2-3)
    # Then weights 1, 1, 2 (pair 2-3: 3 of 4), 2, 1, 2 (pairs 0-1: 2 of 3, 1-2: 3 of 5), 2, 2, 2 (pairs 1-2: 2 of 3, 2-3: 2 of 3).
    second = [3 / 4, (2 / 3 + 3 / 5) / 2, (2 / 3 + 2 / 3) / 2]
    assert _carried_homophily([stream(0, 1, 2), stream(2, 0, 1)]) == pytest.approx(sum(first + second) / 6)


def test_lines_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A raw file of 68,335 edges: the printed 68K; without the file the cause is not checked."""
    monkeypatch.setenv("CGLSUITE_DATA", str(tmp_path))
    row = row_of("AGALE", "DBLP")
    found = Count(row=row, quantity="edges", published=68_000, unit=1000, ours=133_664, facts={"pairs": 66_832})
    assert cause_of(found)[1] == "not checked"
    (tmp_path / "DBLPMultiLabel").mkdir()
    (tmp_path / "DBLPMultiLabel" / "dblp.edgelist").write_text("1 2\n" * 68_335)
    assert cause_of(found)[1] == "holds"
    (tmp_path / "DBLPMultiLabel" / "dblp.edgelist").write_text("1 2\n" * 66_832)
    assert cause_of(found)[1] == "fails"


def test_the_table_of_causes() -> None:
    """Each is of a number that a paper prints, is said once, and names a rule; none that the papers' own numbers decide on fails."""
    causes = statistic_causes()
    assert not causes.duplicated(["paper", "dataset", "setting", "quantity"]).any()
    assert set(causes["rule"]) - {""} == set(RULES)
    assert (causes["cause"] != "").all()
    printed = {(line["paper"], line["dataset"], line["quantity"]) for row in as_rows(dataset_statistics()) for line in counted(row)}
    assert set(zip(causes["paper"], causes["dataset"], causes["quantity"], strict=True)) <= printed
    checks = [line["check"] for row in as_rows(dataset_statistics()) for line in counted(row)]
    assert "fails" not in checks
    assert checks.count("holds") > 20


def test_every_printed_number_is_listed() -> None:
    """61 rows, every count of them; without a preset or data a reason."""
    frame = load_statistics(catalogue())
    places = dataset_statistics()[["paper", "dataset", "setting"]].drop_duplicates()
    assert len(frame[["paper", "dataset", "setting"]].drop_duplicates()) == len(places) == 61
    columns = ["n_nodes", "n_edges", "n_features", "n_edge_features", "n_graphs", "n_classes", "n_tasks"]
    noted = ["nodes per task", "edges per task", "graphs per task", "labels per node", "mean degree", "frames per sequence"]
    noted += [name for name in set(frame["quantity"]) if name.startswith("label homophily")]
    assert (~frame["quantity"].isin(noted)).sum() == sum((dataset_statistics()[name] != "").sum() for name in columns)
    assert frame["ours"].isna().all()
    assert (frame["reason"] != "").all()
    citeseer = load_statistics(catalogue(), paper="begin", dataset="citeseer", setting="task-il")
    assert set(citeseer["reason"]) == {
        "the data file CiteSeer/raw/ind.citeseer.x is absent; a run would download it from https://example.org/citeseer.zip"
    }
    assert set(citeseer["preset"]) == {"citeseer/task-il@begin-1"}
    assert statistic_counts(frame) == {"not counted": len(frame)}
    with pytest.raises(UnknownNameError, match="Did you mean 'Cora'"):
        load_statistics(catalogue(), dataset="Coraa")


@pytest.mark.realdata
@pytest.mark.plugins
@pytest.mark.parametrize("paper", ["BeGin", "AGALE"])
def test_what_is_here_is_counted(paper: str) -> None:
    """On the data at hand: no cause fails; a loader that gives something else is a reason, not a crash."""
    frame = load_statistics(load_catalogue(), paper=paper, dataset="Bitcoin" if paper == "BeGin" else "PCG")
    if (frame["reason"] != "").all():
        pytest.skip(frame["reason"].iloc[0])
    assert "fails" not in set(frame["check"])
    assert frame["ours"].notna().all()
    assert statistic_counts(frame) == ({"equal": 15, "explained": 3} if paper == "BeGin" else {"equal": 13, "explained": 5})


def test_receivers_and_sums_of_features() -> None:
    """By hand: three links into two nodes."""
    from cglsuite.graphs import LinkData
    from cglsuite.reports.studies.anatomy.compute import Grouping, dissect

    links = LinkData(links=torch.tensor([[0, 1, 2], [3, 3, 0]]), y=torch.tensor([0, 1, 0]), n_classes=2, n_nodes=4, name="links")
    made = dissect(
        links, Grouping(what="task", names=["a"], members=[torch.arange(3)]), name="links", dataset="links", setting="", level="LC"
    )
    assert (made.whole["receivers"], made.whole["edge_features"]) == (2, 0)
    assert isinstance(made.groups, pd.DataFrame)


def test_settings_with_the_same_numbers_share_a_title() -> None:
    """Papers and data sets stay in the order in which they come."""
    rows = [("Z", "pcg", "task-IL", 1), ("Z", "pcg", "class-IL", 1), ("A", "cora", "task-IL", 2), ("A", "cora", "class-IL", 3)]
    frame = pd.DataFrame([{"paper": p, "dataset": d, "setting": s, "preset": f"{d}/{s}", "published": n} for p, d, s, n in rows])
    found = _together(frame)
    assert list(found) == ["pcg in task-IL and class-IL", "cora in task-IL", "cora in class-IL"]
    assert [part["published"].tolist() for part in found.values()] == [[1], [2], [3]]
