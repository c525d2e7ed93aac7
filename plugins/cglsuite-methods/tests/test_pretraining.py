"""The schemes of pre-training: their losses by hand, their limits, and the published rows that they give cells to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from cglsuite_methods.pretraining.contrast import discriminated, noise_contrast
from installed import installed
from torch.nn import functional

from cglsuite.base.errors import CglsuiteError, NotApplicable
from cglsuite.cells import Store, run_cell
from cglsuite.cells.run import build_stream, make_runner
from cglsuite.cells.spec import resolve_cell
from cglsuite.cli.main import run
from cglsuite.testing import check_pretraining, tiny_catalogue

LEVELS = {
    "NC": "testing-nodes",
    "NR": "testing-node-targets",
    "LC": "testing-links",
    "GC": "testing-graphs",
    "LP": "testing-interactions",
    "GR": "testing-targets",
}
SCHEMES = ("dgi", "graphcl", "grace", "infograph", "lightgcl")


@pytest.fixture(scope="module")
def catalogue() -> Any:
    return tiny_catalogue(installed())


def scenario(level: str, setting: str = "domain-il") -> str:
    return f"{LEVELS[level]}/{setting}@testing-1"


def test_weights_are_named_by_all_but_the_method(catalogue: Any) -> None:
    """Methods and their settings share them, and so do other orders after the same first task; nothing else does."""
    from cglsuite.cells.run import _identity
    from cglsuite.specs import Seeds

    def name(method: str = "ewc", *, seeds: Seeds = Seeds(), first: str = "a", **more: Any) -> str:  # noqa: B008 - frozen
        overrides = {"pretraining.scheme": "dgi", **{key.replace("__", "."): value for key, value in more.items()}}
        return _identity(resolve_cell(catalogue, scenario("NC"), method, overrides=overrides, seeds=seeds), catalogue, first, "d")

    assert name() == name("bare") == name(method__lambda=3.0) == name(seeds=Seeds(order=5)) == name(pretraining__transfer="frozen")
    others = [name(seeds=Seeds(init=1)), name(first="b"), name(training__lr=0.5), name(pretraining__scheme="graphcl")]
    assert len({name(), *others}) == 5


def scheme_of(catalogue: Any, name: str, level: str, **own: Any) -> Any:
    """A scheme over the first task of a tiny stream, and its batch."""
    from cglsuite.learning.method import Hyperparameters
    from cglsuite.learning.pretraining.scheme import PretrainingContext
    from cglsuite.problems import Unlabelled

    asked = {"pretraining.scheme": name, **{f"pretraining.{key}": value for key, value in own.items()}}
    cell = resolve_cell(catalogue, scenario(level), "bare", overrides=asked)
    runner: Any = make_runner(cell, catalogue, stream := build_stream(cell, catalogue))
    view = stream.view(0)
    runner.problem.arrive(view)
    batch = Unlabelled(runner.problem).items(view)
    made = catalogue.resolve(catalogue.get("pretraining", name))
    torch.manual_seed(0)
    values = Hyperparameters(cell.pretraining_hyperparameters)
    context = PretrainingContext(
        problem=runner.problem, model=runner.method.model, hyperparameters=values, generator=torch.Generator().manual_seed(1), example=batch
    )
    return made(context), batch


def test_a_discriminator_that_knows_nothing_pays_twice_log_two() -> None:
    assert discriminated(torch.zeros(3), torch.zeros(5)) == pytest.approx(2 * math.log(2))
    assert discriminated(torch.tensor([1.0]), torch.tensor([-2.0])) == pytest.approx(math.log1p(math.exp(-1)) + math.log1p(math.exp(-2)))


def test_noise_contrast_by_hand() -> None:
    one, other = torch.tensor([[3.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    s = 1 / math.sqrt(2)  # cosines: rows (1, s) and (0, s)
    own = [-(1 - s) / 0.5, -(s - 0.0) / 0.5]
    assert noise_contrast(one, other, 0.5, positives_compete=False) == pytest.approx(sum(own) / 2, abs=1e-6)
    both = [-math.log(math.exp(2) / (math.exp(2) + math.exp(2 * s))), -math.log(math.exp(2 * s) / (1 + math.exp(2 * s)))]
    assert noise_contrast(one, other, 0.5, positives_compete=True) == pytest.approx(sum(both) / 2, abs=1e-6)


def test_dgi_by_hand(catalogue: Any) -> None:
    scheme, batch = scheme_of(catalogue, "dgi", "NC")
    scheme.model.eval()
    drawn = math.sqrt(len(scheme.bilinear)) * scheme.bilinear.detach()  # uniform between -1 and 1
    assert (float(drawn.min()), float(drawn.max())) == (pytest.approx(-1.0, abs=0.1), pytest.approx(1.0, abs=0.1))
    draws = torch.Generator().manual_seed(1)
    order = torch.randperm(batch.graph.n_nodes, generator=draws)
    h = scheme.model.encode(batch.graph)[batch.ids]
    from cglsuite.graphs import MessageGraph

    wrong = scheme.model.encode(MessageGraph(batch.graph.dense[order], batch.graph.edge_index))[batch.ids]
    summary = torch.sigmoid(h.mean(0))
    score, other = h @ scheme.bilinear @ summary, wrong @ scheme.bilinear @ summary
    expected = functional.softplus(-score).mean() + functional.softplus(other).mean()
    assert scheme.loss(batch).item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("as_begin", [False, True])
def test_infograph_by_hand(catalogue: Any, as_begin: bool) -> None:
    scheme, batch = scheme_of(catalogue, "infograph", "GC", as_begin=as_begin)
    scheme.model.eval()
    nodes, graph_of, graphs = scheme.items.parts(scheme.model, batch)
    assert torch.allclose(graphs, scheme.model.encode(batch.graph)[batch.ids])
    if as_begin:
        assert torch.equal(scheme.whole(graphs), graphs)
    score = scheme.local(nodes) @ scheme.whole(graphs).T
    right, wrong = [], []
    for i, row in enumerate(score.tolist()):
        for g, s in enumerate(row):
            softplus = math.log1p(math.exp(-abs(s))) + max(-s, 0.0)
            (right if g == int(graph_of[i]) else wrong).append(
                math.log(2) - softplus if g == int(graph_of[i]) else softplus + s - math.log(2)
            )
    assert scheme.loss(batch).item() == pytest.approx(sum(wrong) / len(wrong) - sum(right) / len(right), abs=1e-4)


def test_two_views_that_are_the_same_graph_are_contrasted_with_themselves(catalogue: Any) -> None:
    """Nothing is left out: the loss is that of the embeddings themselves."""
    scheme, batch = scheme_of(catalogue, "graphcl", "NC", keep=1.0, items=10**6)
    scheme.model.eval()
    projected = scheme.projection(scheme.model.encode(batch.graph)[batch.ids])
    expected = noise_contrast(projected, projected, 0.2, positives_compete=False)
    assert scheme.loss(batch).item() == pytest.approx(expected.item(), abs=1e-4)


def test_a_graph_is_contrasted_with_the_original_as_begin_does(catalogue: Any) -> None:
    scheme, batch = scheme_of(catalogue, "graphcl", "GC", as_begin=True)
    views = list[float]()
    kept, scheme._view = scheme._view, lambda b: views.append(1) or kept(b)
    scheme.loss(batch)
    assert len(views) == 1


def test_the_low_rank_copy_of_a_small_rank_graph_is_the_graph(catalogue: Any) -> None:
    scheme, batch = scheme_of(catalogue, "lightgcl", "LP", rank=10**6)
    adjacency, left, right = scheme._decomposed(batch)
    assert torch.allclose(left @ right, adjacency.to_dense(), atol=1e-4)
    degree = torch.bincount(batch.graph.edge_index[1], minlength=batch.graph.n_nodes).clamp(min=1)
    row = adjacency.to_dense()
    s, t = scheme.items.edges(batch)[:, 0].tolist()
    multiple = int(((batch.graph.edge_index[0] == s) & (batch.graph.edge_index[1] == t)).sum())
    assert float(row[t, s]) == pytest.approx(multiple / math.sqrt(float(degree[s] * degree[t])), abs=1e-5)
    assert scheme._decomposed(batch)[0] is adjacency  # kept


def test_ranking_links_is_off_by_default_and_adds_to_the_loss(catalogue: Any) -> None:
    (plain, batch), (ranked, _) = (scheme_of(catalogue, "lightgcl", "LP", recommend=weight) for weight in (0.0, 1.0))
    assert ranked.loss(batch).item() > plain.loss(batch).item()


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCHEMES)
def test_schemes_conform(name: str) -> None:
    check_pretraining(name)


@pytest.mark.parametrize("method", ["joint"])
def test_an_upper_bound_is_not_pretrained(catalogue: Any, method: str) -> None:
    with pytest.raises(NotApplicable, match="trains a fresh model on all tasks so far"):
        resolve_cell(catalogue, scenario("NC"), method, overrides={"pretraining": "dgi"})


@pytest.mark.parametrize("method", ["piggyback", "packnet", "gdumb", "mas", "gem", "cat", "pi-gnn", "hat", "simple-cil", "analytic-ridge"])
def test_methods_go_on_from_pretrained_weights(catalogue: Any, method: str, tmp_path: Path) -> None:
    """Methods that rebuild, mask or isolate weights, too; resumed runs end in the same state."""
    asked = {"pretraining": "dgi", "training.epochs": 3} | ({"method.features": "encoder"} if method == "analytic-ridge" else {})
    where = scenario("NC", "task-il")
    record = run_cell(resolve_cell(catalogue, where, method, overrides=asked), catalogue, Store(tmp_path))
    assert record.done, record.reason
    assert record.provenance["pretraining"]["scheme"] == "dgi"


def test_the_body_of_piggyback_is_the_pretrained_one(catalogue: Any) -> None:
    cells = [resolve_cell(catalogue, scenario("NC", "task-il"), m, overrides={"pretraining": "dgi"}) for m in ("bare", "piggyback")]
    bare, masked = (make_runner(c, catalogue, build_stream(c, catalogue)).method.model for c in cells)
    own = {tuple(p.shape): p for n, p in bare.named_parameters() if not n.startswith("head") and p.dim() == 2}
    originals = [p for n, p in masked.named_parameters() if n.endswith("original") or p.dim() == 2]
    assert any(tuple(p.shape) in own and torch.equal(p, own[tuple(p.shape)]) for p in originals)


def test_begins_rows_have_cells(catalogue: Any) -> None:
    """Of the 66 values of the table all that are printed for scenarios and methods that there are."""
    from cglsuite.campaigns.reference.values import demand_of

    row = {"paper": "BeGin", "dataset": "Aromaticity", "setting": "class-IL", "variant": "ssl=InfoGraph"}
    assert dict(demand_of(row).overrides) == {"pretraining.scheme": "infograph", "pretraining.as_begin": True}
    assert not demand_of(row | {"variant": "ssl=none"}).overrides


CAMPAIGN = """
name = "p"
[grid]
scenarios = ["synthetic-csbm/class-il@cglb-1"]
methods = ["bare", "joint"]
{grid}
"""


def planned(catalogue: Any, tmp_path: Path, grid: str) -> list[Any]:
    from cglsuite.campaigns.campaign import load_campaign
    from cglsuite.campaigns.planning import plan_campaign

    path = tmp_path / "p.toml"
    path.write_text(CAMPAIGN.format(grid=grid))
    return plan_campaign(load_campaign(path), catalogue)


def test_a_campaign_crosses_schemes_with_methods(catalogue: Any, tmp_path: Path) -> None:
    """A setting of one scheme is left out for the others; the upper bound is not applicable, with the reason."""
    text = 'pretraining = ["none", "dgi", "graphcl"]\n[set]\n"pretraining.keep" = 0.7\n"pretraining.share" = 0.5\n'
    cells = planned(catalogue, tmp_path, text)
    assert [(c.request.method, c.request.overrides["pretraining.scheme"], c.state) for c in cells] == [
        *(("bare", scheme, "ready") for scheme in ("none", "dgi", "graphcl")),
        *(("joint", scheme, "ready" if scheme == "none" else "n/a") for scheme in ("none", "dgi", "graphcl")),
    ]
    shown = [{k: v for k, v in c.cell.configuration.items() if k in ("pretraining.share", "pretraining.keep")} for c in cells[:3]]
    assert shown == [{}, {"pretraining.share": 0.5}, {"pretraining.share": 0.5, "pretraining.keep": 0.7}]
    (plain, *_) = planned(catalogue, tmp_path, "")
    assert cells[0].key == plain.key


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ('pretraining = ["dig"]', "dgi"),
        ('pretraining = ["dgi", "dgi"]', "dgi"),
        ('pretraining = ["dgi"]\naxes = { "pretraining.scheme" = ["graphcl"] }', "the same axis"),
        ('pretraining = ["dgi"]\n[set]\n"pretraining.kept" = 1', "pretraining.kept"),
        ('[set]\n"pretraining.keep" = 1', "pretraining.keep"),
    ],
)
def test_a_campaign_that_cannot_be_is_refused(catalogue: Any, tmp_path: Path, grid: str, message: str) -> None:
    with pytest.raises(CglsuiteError, match=message):
        planned(catalogue, tmp_path, grid)


def test_the_command_line_names_a_scheme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    words = ["cell", "--scenario", "synthetic-csbm/class-il@cglb-1", "--method", "bare", "--set", "training.epochs=2"]
    assert run([*words, "--pretraining", "dgi", "--store", str(tmp_path), "--json", "--device", "cpu"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["cell"]["configuration"]["pretraining.scheme"] == "dgi"
    assert record["provenance"]["pretraining"]["epochs"] == 2
    assert run([*words, "--pretraining", "infograph", "--store", str(tmp_path)]) == 3
    assert "supports only GC, GR" in capsys.readouterr().err
