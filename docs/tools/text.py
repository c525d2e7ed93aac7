"""Computes the tables of docs/protocols/text.md from records: ``python docs/tools/text.py``.

The campaigns are ``reports/studies/text.toml`` and ``text-shuffled.toml``; their records are in ``reports/gallery/text/records``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import closed_form
import numpy as np
from closed_form import LEAST, ROOT, Some, chance, differences, interval, p_value, spread, values

from cglsuite.reports import load_campaign_results
from cglsuite.stats import adjust

RECORDS = ROOT / "reports" / "gallery" / "text" / "records"
PAGE = ROOT / "docs" / "protocols" / "text.md"
CAMPAIGNS = ("text", "text-shuffled")
ENCODERS = {"random": "none (random)", "tf-idf": "TF-IDF", "wordllama": "WordLlama", "minilm": "MiniLM"}
LEARNERS = ("bare", "simple-cil", "analytic-ridge")
EDGES = {True: "edges", False: "no edges"}
AP = "average_performance"
Cell = tuple[str, bool, str, str]
"""An encoder, whether there are edges, a method, and the value of ``dataset.texts``."""


@cache
def records() -> dict[Cell, Some]:
    """The finished records by cell, then by seeds, of cells with at least three repetitions."""
    found: dict[Cell, dict[tuple[int, int, int], closed_form.Record]] = {}
    for campaign in CAMPAIGNS:
        for cell in load_campaign_results(ROOT / "reports" / "studies" / f"{campaign}.toml", RECORDS).cells:
            if cell.record is not None and cell.record.done:
                given, seeds = cell.record.cell["configuration"], cell.record.cell["seeds"]
                edges = given["dataset.max_in_degree"] is None
                key = given["scenario.features"].removeprefix("text:"), edges, cell.record.cell["method"], given["dataset.texts"]
                found.setdefault(key, {})[seeds["order"], seeds["split"], seeds["init"]] = cell.record
    return {key: some for key, some in found.items() if len(some) >= LEAST}


def ap(encoder: str, edges: bool, method: str, texts: str = "given") -> np.ndarray:
    """The AP of a cell in percent, one value per order; empty if it was not run."""
    return values(records().get((encoder, edges, method, texts), {}), AP)


def paired(one: Cell, other: Cell) -> np.ndarray:
    """Differences in AP over the orders that both cells have, in points."""
    return differences(records().get(one, {}), records().get(other, {}))


CONTRASTS: dict[str, list[tuple[str, Cell, Cell]]] = {
    "the encoder": [
        (
            f"{ENCODERS[one]} vs. {ENCODERS[other]}, `{method}`, {EDGES[edges]}",
            (one, edges, method, "given"),
            (other, edges, method, "given"),
        )
        for one, other in (("minilm", "tf-idf"), ("minilm", "wordllama"))
        for method in LEARNERS
        for edges in EDGES
    ],
    "the learner": [
        (f"`{one}` vs. `{other}`, {ENCODERS[encoder]}, edges", (encoder, True, one, "given"), (encoder, True, other, "given"))
        for one, other in (("simple-cil", "bare"), ("analytic-ridge", "simple-cil"))
        for encoder in ENCODERS
    ],
    "the graph": [
        (f"edges vs. none, `{method}`, {ENCODERS[encoder]}", (encoder, True, method, "given"), (encoder, False, method, "given"))
        for method in LEARNERS
        for encoder in ENCODERS
    ],
}
"""The comparisons on the page: what differs, then one line each."""


@cache
def contrasts() -> dict[str, dict[str, tuple[np.ndarray, float]]]:
    """The paired differences of each comparison that was run, with p-values adjusted by Holm's method over all of them."""
    found = {(what, name): paired(*cells) for what, rows in CONTRASTS.items() for name, *cells in rows}
    tested = [key for key, some in found.items() if len(some) >= LEAST]
    adjusted = dict(zip(tested, adjust([p_value(found[key]) for key in tested]), strict=True))
    return {
        what: {name: (found[what, name], float(adjusted[what, name])) for name, *_ in rows if (what, name) in adjusted}
        for what, rows in CONTRASTS.items()
    }


def tables() -> dict[str, list[str]]:
    """The lines of every table by the name in the comment above it."""
    return {"encoders": list(_factorial()), "contrasts": list(_contrasts()), "texts of other packages": list(_shuffled())}


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*cells: str) -> Iterator[str]:
    yield from (_row(*cells), _row(*("---" for _ in cells)))


def _factorial() -> Iterator[str]:
    yield from _head("encoder", *(f"`{method}`, {word}" for word in EDGES.values() for method in LEARNERS))
    for encoder, name in ENCODERS.items():
        yield _row(name, *(shown(ap(encoder, edges, method)) for edges in EDGES for method in LEARNERS))


def shown(some: np.ndarray) -> str:
    """Mean and standard deviation, with the number of orders if it is not five."""
    return "–" if not some.size else spread(some) if len(some) == 5 else f"{spread(some)} (n = {len(some)})"


def _contrasts() -> Iterator[str]:
    yield from _head("what differs", "comparison", "n", "AP", "p")
    for what, rows in contrasts().items():
        for name, (some, p) in rows.items():
            ends = ", ".join(f"{end:+.1f}" for end in interval(some))
            yield _row(what, name, str(len(some)), f"{some.mean():+.1f} [{ends}]", chance(p))


def _shuffled() -> Iterator[str]:
    yield from _head("descriptions", *(f"`{method}`" for method in LEARNERS[1:]))
    for texts, name in (
        ("given", "their own"),
        ("shuffled-in-class", "of a package of the same class and part (uses labels)"),
        ("shuffled", "of a package of the same part"),
    ):
        yield _row(name, *(shown(ap("wordllama", True, method, texts)) for method in LEARNERS[1:]))


def with_tables(text: str) -> str:
    """The page with updated tables."""
    return closed_form.with_tables(text, tables())


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
