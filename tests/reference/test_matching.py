"""Which published row belongs to which preset, in both directions; nothing of it is written down row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from installed import installed
from report_lab import catalogue_of

from cglsuite.campaigns.reference.values import (
    PAPERS,
    Demand,
    Recipe,
    RecipeBook,
    Result,
    backbone_key,
    dataset_key,
    demand_of,
    keyed_results,
    method_key,
    paper_named,
    paper_of,
    printed_rows,
)
from cglsuite.cells.spec import resolve_cell
from cglsuite.host import Catalogue
from cglsuite.reports.results.variants import preset_variants
from cglsuite.specs import BackboneSpec, Hyperparameter, MethodSpec, MetricSpec, ScenarioSpec, ScheduleSpec, TaskFreeSpec, TrainingSpec

SETTINGS = ("task-il", "class-il", "domain-il", "time-il", "task-free")


def row_of(**wanted: str) -> dict[str, Any]:
    """The first published row with these columns."""
    rows = keyed_results()
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    assert len(rows), wanted
    return {str(k): v for k, v in rows.iloc[0].to_dict().items()}


def result_of(preset: str, method: str = "bare", metric: str = "average_performance", **more: Any) -> Result:
    given: dict[str, Any] = {"setting": preset.partition("/")[2].partition("@")[0], "level": "NC", "backbone": None, "configuration": {}}
    return Result(preset=preset, method=method, metric=metric, **(given | more))


def metric(name: str, **more: Any) -> tuple[str, MetricSpec]:
    return "metric", MetricSpec(name=name, summary=name, formula="f", direction="up", factory="json:loads", settings=SETTINGS, **more)


@pytest.fixture
def everywhere() -> Callable[..., RecipeBook]:
    """Recipes from the toy catalogue with further entries, and methods that work at every level."""

    def make(*extra: tuple[str, Any]) -> RecipeBook:
        metrics = [metric(name) for name in ("forward_transfer", "a_auc", "af_s", "a_end", "af_hard")]
        schedules = [
            ("schedule", ScheduleSpec(name=name, summary=name, factory="json:loads", hyperparameters=(amount,) if amount else ()))
            for name, amount in {
                "gaussian": Hyperparameter(name="sigma", default=1.0, doc="width"),
                "global": Hyperparameter(name="p", default=0.5, doc="share"),
                "hard": None,
            }.items()
        ]
        return RecipeBook(catalogue_of(*metrics, *schedules, *extra))

    return make


def drift(schedule: str, *overrides: tuple[str, Any]) -> tuple[str, ScenarioSpec]:
    task_free = TaskFreeSpec(schedule=schedule, schedule_hyperparameters=overrides)
    return "scenario", ScenarioSpec(
        name=f"corafull/{schedule}@drift-1", summary="s", dataset="toy", setting="task-free", task_free=task_free, training=_BATCHES
    )


_BATCHES = TrainingSpec(batch_size=10)


# --- names and variants ----------------------------------------------------------------------------------------------------------


def test_names() -> None:
    """One data set, method or backbone, several spellings."""
    assert dataset_key("CoraFull-CL") == dataset_key("corafull") == dataset_key("CoraFull")
    assert dataset_key("Arxiv-CL") == dataset_key("ogbn-arxiv")
    assert dataset_key("UCLA-CIL") == dataset_key("nw-ucla")
    assert dataset_key("DBLP") == dataset_key("dblp-multilabel") != dataset_key("citationfull-dblp")
    assert dataset_key("Bitcoin") == dataset_key("bitcoin-otc") != dataset_key("bitcoin-alpha")
    assert dataset_key("Cora") != dataset_key("CoraFull")
    assert method_key("CGNN") == method_key("continual-gnn")
    assert method_key("MAS*") == method_key("mas-star") != method_key("MAS")
    assert method_key("EvolveGCN") == method_key("evolve-gcn")
    assert backbone_key("GCN") == backbone_key("graph-gcn") != backbone_key("st-gcn")


@pytest.mark.parametrize(
    ("paper", "variant", "overrides"),
    [
        ("CGLB", "inter-task-edges=true", {"scenario.edge_policy": "inter-task"}),
        ("CGLB", "inter-task-edges=false", {"scenario.edge_policy": "none"}),
        ("DRIFT", "hard", {"stream.schedule": "hard"}),
        ("DRIFT", "sigma=60; batch=20", {"stream.schedule": "gaussian", "schedule.sigma": 60.0, "training.batch_size": 20}),
        ("DRIFT", "mixing=global p=30%", {"stream.schedule": "global", "schedule.p": 0.3}),
        ("DRIFT", "mixing=boundary-local K=5", {"stream.schedule": "boundary-local", "schedule.window": 5.0}),
        ("BeGin", "N=8", {}),
        ("BeGin", "N=20", {"scenario.n_tasks": 20, "scenario.classes_per_task": None}),
        ("BeGin", "ssl=none", {}),
        ("AGALE", "", {}),
    ],
)
def test_what_a_variant_asks_for(paper: str, variant: str, overrides: dict[str, Any]) -> None:
    """Settings by hand; of the number of tasks nothing where it is the data set's own."""
    assert demand_of(row_of(paper=paper, variant=variant)) == Demand(overrides=overrides)


@pytest.mark.parametrize(("dataset", "scheme"), [("Cora", "dgi"), ("Bitcoin", "dgi"), ("Aromaticity", "infograph")])
def test_begin_pretrained_the_fixed_body_of_piggyback(dataset: str, scheme: str) -> None:
    """Where a variant names a scheme or none, that counts; other methods' rows are without. On arXiv, the only table with all schemes, the
    main table's value is that with DGI and not that without."""
    row = row_of(paper="BeGin", dataset=dataset, method="Piggyback", setting="task-IL", metric="AP")
    assert demand_of(row).overrides["pretraining.scheme"] == scheme
    assert demand_of(row | {"variant": "ssl=none"}).overrides == {}
    assert demand_of(row | {"variant": "ssl=GraphCL"}).overrides["pretraining.scheme"] == "graphcl"
    assert demand_of(row | {"method": "PackNet"}).overrides == {}
    arxiv = {"paper": "BeGin", "dataset": "ogbn-arxiv", "method": "Piggyback", "setting": "task-IL", "metric": "AP"}
    main, without, dgi = (row_of(**arxiv, variant=v)["printed"] for v in ("", "ssl=none", "ssl=DGI"))
    assert main == dgi != without


def test_orders_and_what_cannot_be_met() -> None:
    """Order designs of the skeleton benchmark; running times are refused."""
    assert demand_of(row_of(paper="SkeletonCGL", variant="order=task")).orders == ("all-tasks",)
    assert demand_of(row_of(paper="SkeletonCGL", variant="order=class (aggregated)")).orders == ("all-tasks", "random-classes:100")
    lightgcl = {"pretraining.scheme": "lightgcl", "pretraining.temperature": 1.0}
    assert demand_of(row_of(paper="BeGin", variant="ssl=LightGCL")).overrides == lightgcl
    assert demand_of(row_of(paper="BeGin", variant="ssl=DGI")).overrides == {"pretraining.scheme": "dgi"}
    assert demand_of(row_of(paper="BeGin", variant="ssl=none")).overrides == {}
    assert "running time" in demand_of(row_of(paper="BeGin", table="9")).refused
    assert "'moon=full'" in demand_of(row_of(paper="BeGin") | {"variant": "moon=full"}).refused


def test_every_variant_of_the_tables_is_understood() -> None:
    """None falls through to "no counterpart"."""
    rows: list[Any] = keyed_results().drop_duplicates(["paper", "variant"]).to_dict(orient="records")
    for row in rows:
        assert "no counterpart" not in demand_of(row).refused, row["variant"]


def test_papers() -> None:
    """Names in any case; protocols belong to one paper each, or to none."""
    assert paper_named("begin").name == "BeGin"
    assert [paper.name for paper in PAPERS if paper_of(paper.protocols[0]) is not paper] == []
    assert paper_of("drift-honest-1") is None
    assert set(keyed_results()["paper"]) == {paper.name for paper in PAPERS}
    labels = keyed_results().query("unit != 's'").groupby("paper")["metric"].unique()
    assert all(set(labels[paper.name]) == set(paper.metrics) for paper in PAPERS)


# --- from results to rows --------------------------------------------------------------------------------------------------------


def test_a_known_cell_is_found() -> None:
    """BeGin, table 4: Cora, task-IL, Bare 90.3 ± 1.8; its AF is the one from the diagonal."""
    found = printed_rows(result_of("cora/task-il@begin-1")).iloc[0]
    assert (found["mean"], found["std"], found["printed"], found["table"]) == (90.3, 1.8, "90.3 ± 1.8", "4")
    forgetting = printed_rows(result_of("cora/task-il@begin-1", "er-gnn", "forgetting_from_diagonal")).iloc[0]
    assert (forgetting["mean"], forgetting["metric"]) == (5.2, "AF")


@pytest.mark.parametrize(
    "result",
    [
        result_of("cora/task-il@begin-1", changes=("training.epochs",)),
        result_of("cora/task-il@begin-1", metric="backward_transfer"),
        result_of("cora/task-il@begin-1", backbone="gat"),
        result_of("cora/task-il@begin-1", level="GC"),
        result_of("cora/task-il@cglb-1", configuration={"scenario.edge_policy": "none"}),
        result_of("pcg/task-il@agale-consistent-1"),
        result_of("cora/task-il@begin-paper-1"),
        result_of("pcg/task-il@agale-1", "joint", "backward_transfer"),
        result_of("pcg/task-il@agale-1", metric="forgetting_from_diagonal"),
        result_of("cora/task-il@mine-1"),
        result_of("cora/task-il@begin-1", "my-method"),
        result_of("cora/task-il@begin-1", "joint", "forgetting_from_diagonal"),
        result_of("corafull/gaussian@drift-honest-1", metric="a_auc", setting="task-free"),
    ],
    ids=lambda result: f"{result.preset} {result.method} {result.metric}",
)
def test_what_is_not_comparable_is_not_compared(result: Result) -> None:
    """An overridden preset, another definition, backbone, level, protocol or method, and cells that print a dash."""
    assert printed_rows(result).empty


@pytest.mark.parametrize(("edges", "expected"), [("none", "false"), ("inter-task", "true")])
def test_edges_between_tasks_tell_columns_apart(edges: str, expected: str) -> None:
    """CGLB prints both; the preset's edge policy says which."""
    (found,) = printed_rows(result_of("corafull/task-il@cglb-1", configuration={"scenario.edge_policy": edges})).to_dict(orient="records")
    assert found["variant"] == f"inter-task-edges={expected}"


@pytest.mark.parametrize("sigma", [3.0, 20.0, 7.0])
def test_widths_of_a_stream_tell_columns_apart(sigma: float) -> None:
    """DRIFT, CoraFull: σ = 20 is the preset's, 3 an override that table 5 prints, 7 one that no table has."""
    overrides = {"stream.schedule": "gaussian", "schedule.sigma": sigma}
    changes = () if sigma == 20.0 else ("schedule.sigma",)
    found = printed_rows(
        result_of("corafull/gaussian@drift-1", "er", "a_auc", setting="task-free", configuration=overrides, changes=changes)
    )
    assert list(found["table"]) == {3.0: ["5"], 20.0: ["2", "5"], 7.0: []}[sigma]
    overridden = {"setting": "task-free", "configuration": overrides, "changes": (*changes, "training.lr")}
    assert printed_rows(result_of("corafull/gaussian@drift-1", "er", "a_auc", **overridden)).empty


def test_another_backbone_stands_beside_its_own_rows() -> None:
    """DRIFT, table 4: GAT; the change of the backbone is what the row asks for."""
    overrides = {"stream.schedule": "gaussian", "schedule.sigma": 20.0}
    given = {"setting": "task-free", "backbone": "gat", "configuration": overrides, "changes": ("training.backbone",)}
    (found,) = printed_rows(result_of("corafull/gaussian@drift-1", "er", "af_s", **given)).to_dict(orient="records")
    assert (found["table"], found["backbone"], found["metric"]) == ("4", "GAT", "AF_s")


@pytest.mark.parametrize(
    "preset", ["cora/task-il@begin-1", "cora/class-il@begin-1", "citeseer/task-il@begin-1", "citeseer/class-il@begin-1"]
)
@pytest.mark.parametrize("method", ["lwf", "mas", "gem", "twp", "er-gnn", "continual-gnn"])
def test_methods_of_begin_have_printed_values(preset: str, method: str) -> None:
    """AP, AF and INT of every method of BeGin that comes with the suite, by our names."""
    for name in ("average_performance", "forgetting_from_diagonal", "intransigence"):
        found = printed_rows(result_of(preset, method, name)).iloc[0]
        assert found["paper"] == "BeGin"
        assert found["method"].lower().replace("-", "") == {"continual-gnn": "cgnn"}.get(method, method).replace("-", "")


# --- from rows to cells ----------------------------------------------------------------------------------------------------------


def test_a_recipe(everywhere: Callable[..., RecipeBook]) -> None:
    """Cora is in the toy catalogue: unchanged preset, its own backbone, the metric by definition, joint training for intransigence."""
    book, what = everywhere(), {"paper": "BeGin", "dataset": "Cora", "setting": "task-IL", "method": "EWC"}
    assert book.recipe(row_of(**what, metric="AF")) == Recipe(
        preset="cora/task-il@begin-1", method="ewc", metric="forgetting_from_diagonal"
    )
    assert book.recipe(row_of(**what, metric="INT")) == Recipe(
        preset="cora/task-il@begin-1", method="ewc", metric="intransigence", needs_joint=True
    )


@pytest.mark.parametrize(
    ("name", "level", "published"),
    [
        ("bitcoin-otc/task-il@begin-1", "LC", {"paper": "BeGin", "dataset": "Bitcoin", "setting": "task-IL"}),
        ("aromaticity/class-il@cglb-1", "GC", {"paper": "CGLB", "dataset": "Aromaticity-CL", "setting": "class-IL"}),
        ("zinc/domain-il@begin-1", "GR", {"paper": "BeGin", "dataset": "ZINC", "setting": "domain-IL"}),
        ("ask-ubuntu/time-il@begin-1", "LP", {"paper": "BeGin", "dataset": "Ask-Ubuntu", "setting": "time-IL"}),
    ],
)
def test_a_new_preset_is_found_as_it_is_installed(
    everywhere: Callable[..., RecipeBook], name: str, level: Any, published: dict[str, str]
) -> None:
    """No table names it: an entry of the catalogue is all it takes."""
    row = row_of(**published, method="Bare", metric="AP")
    without = everywhere().recipe(row)
    assert isinstance(without, str)
    assert "no plugin provides a preset" in without
    setting: Any = name.partition("/")[2].partition("@")[0]
    policy = "snapshot" if setting == "time-il" else "full"
    spec = ScenarioSpec(name=name, summary="new", dataset="toy", setting=setting, level=level, edge_policy=policy)
    found = everywhere(("scenario", spec)).recipe(row)
    assert isinstance(found, Recipe)
    assert (found.preset, found.method, found.backbone, found.overrides) == (name, "bare", None, ())
    unlike: Any = "NC"
    other = ScenarioSpec(name=name, summary="another level", dataset="toy", setting=setting, level=unlike)
    assert isinstance(everywhere(("scenario", other)).recipe(row), str)


def test_streams_take_the_preset_that_needs_least(everywhere: Callable[..., RecipeBook]) -> None:
    """σ and p may be overridden, the schedule may not: that is a preset of its own."""
    er = ("method", MethodSpec(name="er", summary="er", factory="json:loads", settings=("task-free",)))
    book = everywhere(er, drift("gaussian", ("sigma", 20.0)), drift("global", ("p", 0.1)))
    rows = {"paper": "DRIFT", "dataset": "CoraFull-CL", "method": "ER"}
    recipes = {v: book.recipe(row_of(**rows, variant=v, backbone="GCN")) for v in ("sigma=20", "sigma=3", "mixing=global p=30%", "hard")}
    found = {v: (r.preset, r.overrides) for v, r in recipes.items() if isinstance(r, Recipe)}
    assert found == {
        "sigma=20": ("corafull/gaussian@drift-1", ()),
        "sigma=3": ("corafull/gaussian@drift-1", (("schedule.sigma", 3.0),)),
        "mixing=global p=30%": ("corafull/global@drift-1", (("schedule.p", 0.3),)),
    }
    assert recipes["hard"] == "no preset for CoraFull-CL in task-free has hard"


def test_another_backbone(everywhere: Callable[..., RecipeBook]) -> None:
    """By its name in the catalogue, or a reason."""
    er = ("method", MethodSpec(name="er", summary="er", factory="json:loads", settings=("task-free",)))
    given = (er, drift("gaussian", ("sigma", 20.0)))
    row = row_of(paper="DRIFT", dataset="CoraFull-CL", method="ER", table="4", backbone="GIN")
    assert everywhere(*given).recipe(row) == "backbone GIN is not implemented here: no plugin provides it"
    found = everywhere(*given, ("backbone", BackboneSpec(name="gin", summary="gin", factory="json:loads"))).recipe(row)
    assert isinstance(found, Recipe)
    assert found.backbone == "gin"


def test_a_number_of_tasks(everywhere: Callable[..., RecipeBook]) -> None:
    """BeGin, table 8: 8 tasks are the preset's own; with 20, GEM keeps a twentieth of the budget for each."""
    spec = ScenarioSpec(name="ogbn-arxiv/class-il@begin-1", summary="s", dataset="toy", setting="class-il", memory_budget=2000)
    gem = MethodSpec(
        name="gem", summary="gem", factory="json:loads", hyperparameters=(Hyperparameter(name="per_task", default=1, doc="n"),)
    )
    book = everywhere(("scenario", spec), ("method", gem))
    rows = {"paper": "BeGin", "dataset": "ogbn-arxiv", "setting": "class-IL", "table": "8", "metric": "AP"}
    overrides = {}
    for method, variant in (("Bare", "N=8"), ("Bare", "N=20"), ("GEM", "N=20")):
        recipe = book.recipe(row_of(**rows, method=method, variant=variant))
        assert isinstance(recipe, Recipe)
        overrides[method, variant] = dict(recipe.overrides)
    twenty = {"scenario.n_tasks": 20, "scenario.classes_per_task": None}
    assert overrides == {("Bare", "N=8"): {}, ("Bare", "N=20"): twenty, ("GEM", "N=20"): twenty | {"method.per_task": 100}}


def test_reasons(everywhere: Callable[..., RecipeBook]) -> None:
    """What is missing is named as the paper names it."""
    book, cora = everywhere(), {"paper": "BeGin", "dataset": "Cora", "setting": "task-IL"}
    assert book.recipe(row_of(**cora, method="CaT")) == "method CaT is not implemented here: no plugin provides it"
    gowalla = book.recipe(row_of(paper="BeGin", dataset="Gowalla", table="4"))
    assert gowalla == "no plugin provides a preset of begin-2 or begin-1 for Gowalla in time-IL (LP)"
    assert str(book.recipe(row_of(paper="BeGin", table="9"))).startswith("a running time on a part of the data set (small 1x)")
    assert str(book.recipe(row_of(paper="AGALE", table="9"))).startswith(
        "no plugin provides a preset of agale-2 or agale-1 for PCG in task-IL"
    )
    assert RecipeBook(Catalogue([], [])).recipe(row_of(**cora, metric="AP")) == "no plugin provides the metric average_performance"


@pytest.mark.nightly
@pytest.mark.plugins
def test_both_directions_agree_on_everything_installed() -> None:
    """A cell made by the recipe of a row is a result that stands beside this row; and every paper has rows with a recipe."""
    catalogue = installed()
    book = RecipeBook(catalogue)
    seen: dict[str, int] = dict.fromkeys((paper.name for paper in PAPERS), 0)
    rows = keyed_results()
    for index, row in rows[rows["mean"].notna()].iterrows():
        recipe = book.recipe({str(k): v for k, v in row.to_dict().items()})
        if isinstance(recipe, str) or recipe.orders or recipe.needs_reference:
            seen[row["paper"]] += not isinstance(recipe, str)
            continue
        cell = resolve_cell(catalogue, recipe.preset, recipe.method, recipe.backbone, dict(recipe.overrides))
        variant = preset_variants([cell], catalogue).get(cell.preset)
        budgets = {name for name, _ in recipe.overrides if name.startswith("method.")}
        result = Result(
            preset=recipe.preset,
            setting=cell.scenario.setting,
            level=cell.scenario.level,
            method=recipe.method,
            backbone=recipe.backbone,
            metric=recipe.metric,
            configuration=cell.configuration,
            changes=tuple(name for name in (variant.changes if variant else {}) if name not in budgets),
        )
        assert index in printed_rows(result).index, (row["paper"], row["dataset"], row["variant"], row["method"], recipe)
        seen[row["paper"]] += 1
    assert all(n > 50 for n in seen.values()), seen


def test_every_printed_name_is_understood() -> None:
    """What a row says that its paper calls a method, and headings of papers, name what they stand for."""
    rows = keyed_results()
    called = rows[["method", "note"]].assign(name=rows["note"].str.extract(r"(?:^|; )called ([^;]+)")[0]).dropna()
    assert len(called["name"].unique()) >= 5
    assert [name for method, name in called[["method", "name"]].to_numpy() if method_key(name) != method_key(method)] == []
    headings = {"N-UCLA": "UCLA-CIL", "NYC": "NYC-Taxi", "Ask": "Ask-Ubuntu", "Wiki": "Wiki-CS"}
    assert [heading for heading, name in headings.items() if dataset_key(heading) != dataset_key(name)] == []


@pytest.mark.parametrize(
    ("paper", "given"), [("AGALE", "SimpleGCN"), ("AGALE", "JointTrainGCN"), ("CGLB", "bare model"), ("DRIFT", "Joint (Offline)")]
)
def test_rows_are_selected_by_printed_names(paper: str, given: str) -> None:
    from cglsuite.campaigns.reference.reproduction import Selection, selections_of

    assert [one.paper for one in selections_of(Selection(method=given)) if one.paper == paper] == [paper]
