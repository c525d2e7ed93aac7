"""The page that analyses which nodes are predicted better or worse than the mean of their task.

Formats what :mod:`cglsuite.reports.studies.nodes` computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from cglsuite.base.errors import UsageError
from cglsuite.base.markup import Fragment, element
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.diagnostics import ITEM_SCORES, finished, item_embeddings, item_results
from cglsuite.cells.portable import process_numerics
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.kit.figures import Panel, cumulative_figure
from cglsuite.reports.kit.pictures import MARKERS, Gallery, Theme, legend, legend_columns, picture, plain_axes, titled_figure
from cglsuite.reports.kit.sentences import join_names
from cglsuite.reports.kit.tables import Column, as_rows, empty, framed, label, mean_std_cell, number, number_cell, number_text, words
from cglsuite.reports.kit.text import key_box, listed, scenario_words
from cglsuite.reports.results.summary import preset_caption
from cglsuite.reports.results.tables import mean_std
from cglsuite.reports.results.variants import PresetVariant, preset_variants


def message(items: NodeItems) -> Fragment:
    """Summarise, per method, how nodes predicted better than the mean of their task differ from the others."""
    lines = []
    rows = {(row["method"], row["group"]): row for row in as_rows(group_summary(items.frame))}
    for method in dict.fromkeys(method for method, _ in rows):
        better, worse = rows[method, "better"], rows[method, "worse"]
        said = [
            f"a {'higher' if better[f'{name}_mean'] > worse[f'{name}_mean'] else 'lower'} {words} "
            f"({number_text(better[f'{name}_mean'], 2)} against {number_text(worse[f'{name}_mean'], 2)})"
            for name, words in ATTRIBUTES.items()
            if better[f"{name}_n"] and worse[f"{name}_n"] and better[f"{name}_mean"] != worse[f"{name}_mean"]
        ]
        finding = f"nodes above their task's mean score have {join_names(said)}" if said else "nodes above and below the mean do not differ"
        for group, where in ((better, "above"), (worse, "below")):
            finding = finding if group["n"] else f"no node is {where} its task's mean score"
        lines.append(element("li", element("strong", method), f": {finding} [{better['n']:,} nodes above, {worse['n']:,} below]."))
    return key_box(lines)


def node_groups(items: NodeItems) -> Fragment:
    """Tabulate, per method, the items above and below the mean score of their task: their number and mean ± std of attributes."""
    columns = [
        *(label("method"), words("answered", lambda row: _answered(row["group"])), number("items", "n")),
        number("share, %", lambda row: 100 * row["share"], 1),
        *(_attribute(name, title) for name, title in ATTRIBUTES.items()),
    ]
    runs = items.frame[["order", "split", "init"]].drop_duplicates()
    seeds = "; ".join(f"{row['order']}/{row['split']}/{row['init']}" for row in as_rows(runs))
    score = _SCORES[items.score] if items.several_labels else "1 for the right class, else 0"
    about = f"mean ± sample standard deviation over items; an item's score: {score}; seeds (order/split/init): {seeds}"
    return framed(group_summary(items.frame), columns, preset_caption(items.preset, [items.variant] if items.variant else [], about))


def _attribute(name: str, title: str) -> Column:
    """A column with mean and deviation over the items with a known attribute."""

    def cell(row: Mapping[str, Any]) -> Fragment:
        known = int(row[f"{name}_n"])
        if not known:
            return number_cell(None)
        remark = f" (n={known})" if known != row["n"] else ""
        return mean_std_cell(row[f"{name}_mean"], row[f"{name}_std"], scale=1.0, digits=3 if name == "homophily" else 2, remark=remark)

    return Column(title, cell)


def node_distributions(items: NodeItems) -> Gallery | Fragment:
    """Plot, per method, the distributions of homophily, degree and (if it varies) number of labels in both groups of items.

    A method that predicts all items of a task equally well has no groups and no figure.
    """
    frame, summary = items.frame, as_rows(group_summary(items.frame))
    quantities = ["homophily", *(["labels"] if frame["labels"].nunique() > 1 else []), "degree"]

    def chart(method: str) -> Any:
        part = frame[frame["method"] == method]
        panels = [_node_panel(part, frame[name], name) for name in quantities]
        said = [
            f"{ATTRIBUTES[name]}: " + ", ".join(f"{row['group']} {row[f'{name}_mean']:.2f}" for row in summary if row["method"] == method)
            for name in quantities
        ]
        sizes = ", ".join(f"{int(part[group].sum())} {group}" for group in GROUPS)
        draw = partial(cumulative_figure, panels, title=method, order=[_answered(group) for group in GROUPS])
        alt = f"Distributions for {method} in {items.preset}, {sizes} than the mean of their task. Means: {'; '.join(said)}"
        return picture(draw, alt, group=scenario_words(items.preset))

    grouped = frame[frame[list(GROUPS)].any(axis=1)]
    pictures = tuple(chart(str(method)) for method in dict.fromkeys(grouped["method"]))
    return Gallery(pictures) if pictures else empty("Every method predicts all items of a task equally well.")


def node_embeddings(items: NodeItems) -> Gallery | Fragment:
    """Plot a t-SNE of the embeddings in each method's first repetition, as in DRIFT (Sun et al., Figure 5)."""
    pictures = [
        _embedded(items.preset, method, frame, plane(vectors))
        for method, (frame, vectors) in items.embeddings.items()
        if len(frame) >= _MIN_POINTS and np.ptp(vectors, axis=0).any()
    ]
    return (
        Gallery(tuple(pictures)) if pictures else empty(f"There are fewer than {_MIN_POINTS} items, or they all have the same embedding.")
    )


def _embedded(preset: str, method: str, frame: pd.DataFrame, places: NDArray[np.float32]) -> Any:
    n, tasks = len(frame), frame["task"].nunique()
    draw = partial(embedding_figure, frame, places, title=f"t-SNE of embeddings, {method}")
    alt = (
        f"t-SNE of the embeddings of {n} test items of {tasks} tasks by {method} in {preset}; distances between clusters are not meaningful"
    )
    return picture(draw, alt, group=scenario_words(preset))


def plane(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Project vectors (float32 [n, d]) to float32 [n, 2] by t-SNE (van der Maaten & Hinton 2008), initialised by PCA."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    reduced = TSNE(init="pca" if vectors.shape[1] > 1 else "random", perplexity=min(30.0, (len(vectors) - 1) / 3), random_state=0)
    with threadpool_limits(1):  # sums of several threads differ from machine to machine, and on few items threads wait for each other
        places: NDArray[np.float32] = reduced.fit_transform(vectors)
    return places


def embedding_figure(frame: pd.DataFrame, places: NDArray[np.float32], theme: Theme, *, title: str) -> Figure:
    """Plot items in the plane, with one colour per class and one marker per task. Items without a single class have the colour of their
    task.

    Args:
        frame: columns task and label, as of :func:`cglsuite.cells.diagnostics.item_embeddings`. places: float32 [n, 2].
    """
    several = bool((frame["label"] < 0).any())
    colour_of, tasks = frame["task"] if several else frame["label"], sorted(frame["task"].unique())
    names = sorted(colour_of.unique())
    colours = dict(zip(names, theme.lines, strict=False))
    if len(names) > len(theme.lines):
        colours = {name: colormaps["turbo"](0.05 + 0.9 * k / (len(names) - 1)) for k, name in enumerate(names)}
    shapes = {task: MARKERS[k % len(MARKERS)] for k, task in enumerate(tasks)}
    entries = [Line2D([], [], linestyle="none", color=theme.quiet, label=f"task {t}", marker=shapes[t]) for t in tasks[:_ENTRIES]]
    if not several:
        entries += [Line2D([], [], linestyle="none", marker="s", color=colours[n], label=f"class {n}") for n in names[:_ENTRIES]]
    columns = legend_columns([str(entry.get_label()) for entry in entries], 5.2)
    figure, axes = titled_figure(title, theme, 5.6, 4.2, rows=-(-len(entries) // columns), left=0.2, margins=0.4, below=0.2)
    for task in tasks:
        mine = (frame["task"] == task).to_numpy()
        axes.scatter(
            places[mine, 0],
            places[mine, 1],
            s=16,
            c=[colours[name] for name in colour_of[mine]],
            alpha=0.8,
            linewidths=0,
            marker=shapes[task],
        )
    axes.set_xticks([])
    axes.set_yticks([])
    plain_axes(axes, theme)
    legend(figure, columns, left=0.15, handles=entries)
    return figure


def _answered(group: str) -> str:
    return f"{group} than the mean"


def _node_panel(part: pd.DataFrame, everything: pd.Series, name: str) -> Any:
    """The distributions of one attribute in both groups, with the same axis for all methods."""
    values = {group: part.loc[part[group], name].dropna().to_numpy(dtype=np.float64) for group in GROUPS}
    curves = {_answered(group): cumulative(some) for group, some in values.items() if some.size}
    if name == "homophily":
        bounds = (0.0, 1.0)
    else:
        bounds = (0.9 * float(everything.min()), 1.1 * max(float(everything.max()), 1.0))
    return Panel(ATTRIBUTES[name], curves, bounds, logarithmic=name == "degree")


# Single nodes after the last task: which ones a method predicts better or worse than the task average, and how these differ.
# After Figure 6 of Zhao, Bartos & Khosla, AGALE, TMLR 2024. All functions but :func:`node_items` are pure functions of its frame.

ATTRIBUTES = {"homophily": "label homophily", "labels": "number of labels", "degree": "degree"}
"""Attributes that compare nodes: column name to label."""
GROUPS = ("better", "worse")
"""Items above and below the mean score of their task; items exactly at the mean are in neither group."""
ALL = "all methods"
_POINTS, _MIN_POINTS, _ENTRIES = 400, 10, 16


@dataclass(frozen=True)
class NodeItems:
    """The test items of several cells of one scenario.

    Args:
        frame: the rows of :func:`cglsuite.cells.diagnostics.item_results` of every cell, with columns ``method``, ``order``, ``split`` and
            ``init``. preset: display name of the scenario. several_labels: whether a node may have several labels. variant: the
            overrides of the preset, if any. score: the score of items with several labels. embeddings: by method, those of its first
            repetition (:func:`cglsuite.cells.diagnostics.item_embeddings`).
    """

    frame: pd.DataFrame
    preset: str
    several_labels: bool
    variant: PresetVariant | None = None
    score: str = ITEM_SCORES[0]
    embeddings: Mapping[str, tuple[pd.DataFrame, NDArray[np.float32]]] = field(default_factory=dict)


_SCORES = {
    "f1": "F1 of the predicted set of labels",
    "average-precision": "average precision of its outputs, the measure of AGALE's tables",
}


def node_items(
    catalogue: Catalogue,
    scenario: str,
    methods: str | Sequence[str],
    overrides: Mapping[str, Any] | None = None,
    seeds: Mapping[str, Sequence[int]] | None = None,
    store: Store | str | Path | None = None,
    score: str = ITEM_SCORES[0],
) -> NodeItems:
    """Collect the test items of every method and seed in a scenario, as predicted after the last task. Missing cells are trained.

    Args:
        overrides: changes to the preset, with dotted or bare keys; hyperparameters of methods apply to the methods that declare them.
        seeds: ``order``, ``split`` and ``init`` to lists, as in a campaign. score: the score of items with several labels, one of
            :data:`cglsuite.cells.diagnostics.ITEM_SCORES`.

    Raises:
        UsageError: if a name or key is unknown, or a method does not support this scenario.
        CglsuiteError: any error raised by training.
    """
    from cglsuite.campaigns.campaign import Campaign

    grid = {"scenarios": [scenario], "methods": listed(methods)}
    run = {"device": "cpu", "numerics": process_numerics()}  # cells are trained, and queried, in this process
    campaign = {"name": "nodes", "grid": grid, "seeds": dict(seeds or {}), "set": dict(overrides or {}), "run": run}
    store = store if isinstance(store, Store) else Store(store)
    cells = []
    for planned in plan_campaign(Campaign.parse(campaign), catalogue, store=store):
        if planned.cell is None:
            raise UsageError(f"{planned.request.method} cannot be run in {scenario}: {planned.reason}; remove it from the methods")
        cells.append(planned.cell)
    parts, embeddings = [], {}
    for cell in cells:
        drawn, runner = cell.seeds, finished(cell, catalogue, store) if cell.scenario.level == "NC" else None  # refused before training
        results = item_results(cell, catalogue, store, score, runner)
        parts.append(results.assign(method=cell.method, order=drawn.order, split=drawn.split, init=drawn.init))
        if cell.method not in embeddings:
            embeddings[cell.method] = item_embeddings(cell, catalogue, store, runner=runner)
    frame = pd.concat(parts, ignore_index=True)
    leading = ["method", "order", "split", "init"]
    frame, preset = frame[leading + [c for c in frame.columns if c not in leading]], cells[0].preset
    variant = preset_variants(cells, catalogue).get(preset)
    return NodeItems(frame, preset, cells[0].scenario.labels == "multi", variant, score, embeddings)


def group_summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Summarise, per method and over all methods, how items predicted better than the mean differ from the others.

    Returns:
        One row per method (in the frame's order; :data:`ALL` last, where there are several) and group. Columns method, group, n (items),
        share (of the method's items), and for every attribute ``<attribute>_n`` (items that have a value), ``_mean`` and ``_std`` (sample
        standard deviation; NaN where it is undefined).
    """
    parts = [(method, part) for method, part in frame.groupby("method", sort=False)]
    parts += [(ALL, frame)] if len(parts) > 1 else []
    rows = []
    for method, part in parts:
        for group in GROUPS:
            members = part[part[group]]
            row = {"method": method, "group": group, "n": len(members), "share": len(members) / len(part)}
            for name in ATTRIBUTES:
                known = mean_std(members[name].dropna().to_numpy(dtype=np.float64))
                row |= {f"{name}_{what}": known[what] for what in ("n", "mean", "std")}
            rows.append(row)
    columns = [f"{name}_{what}" for name in ATTRIBUTES for what in ("n", "mean", "std")]
    return pd.DataFrame(rows, columns=["method", "group", "n", "share", *columns])


def cumulative(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the steps of the empirical distribution function: the values in ascending order, and the share of ``values`` up to each of
    them.

    NaN is left out. More than 400 steps are reduced to 400 quantiles, so that a figure's size does not grow with the data.

    Example:
        >>> [part.tolist() for part in cumulative(np.array([2.0, 1.0, 2.0, np.nan]))]
        [[1.0, 2.0], [0.3333333333333333, 1.0]]
    """
    known = np.sort(values[np.isfinite(values)])
    steps, counts = np.unique(known, return_counts=True)
    shares = np.cumsum(counts) / max(known.size, 1)
    if steps.size > _POINTS:
        steps_shown = np.unique(np.searchsorted(shares, np.linspace(0, 1, _POINTS)).clip(max=steps.size - 1))
        steps_shown = np.unique(np.concatenate([[0], steps_shown, [steps.size - 1]]))
        steps, shares = steps[steps_shown], shares[steps_shown]
    return steps, shares
