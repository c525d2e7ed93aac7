"""Examples are true: what tutorials, the demonstration and the notebooks' defaults train learns what its prose says it learns.

The first repetition of every shipped example is trained, with the last value of every axis; examples share cells through one store.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jupytext
import numpy as np
import pytest
from doc_blocks import ROOT, blocks, pages
from numpy.typing import NDArray

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import run_cell
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import START
from cglsuite.graphs.files.named import named
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.specs import MethodSpec

pytestmark = pytest.mark.plugins

CPU = {"device": "cpu", "numerics": "native"}  # trained in this process
OWN_DATA = "docs/tutorials/own-data-and-method.md"
TOO_SHORT = ("training.epochs=1", "training.epochs=2", "training.epochs=5")
"""Commands with so few epochs show a command, not a result, and no page says what they print."""


def _defaults(path: Path) -> dict[str, Any]:
    """The parameters of a notebook."""
    cell = next(c for c in jupytext.read(path, fmt="py:percent").cells if "parameters" in c.metadata.get("tags", []))
    values: dict[str, Any] = {}
    exec(cell.source, values)
    return values


def _of_notebooks() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in sorted((ROOT / "notebooks").glob("*.py")):
        given = _defaults(path)
        if given.get("inline"):
            yield f"notebooks/{path.stem}", given["inline"]
        elif "methods" in given:
            grid = {"scenarios": [given["scenario"]], "methods": given["methods"]}
            yield f"notebooks/{path.stem}", {"name": path.stem, "grid": grid, "set": given["overrides"], "run": CPU}


def _of_pages() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Campaigns that a page writes, and cells of the suite's own data that it trains for longer than a moment; the start page's too."""
    on_start = "\n".join(line for line in START.splitlines() if "photo.npz" not in line)  # of the reader's own files
    yield from ((f"the start page:{scenario} {method}", content) for scenario, method, content in _trained(on_start))
    for page in pages():
        where = str(page.relative_to(ROOT))
        for block in blocks(page):
            if block.language == "toml" and block.title and "[grid]" in block.text:
                found = [(f"{where}:{block.title}", tomllib.loads(block.text))]
            elif block.language == "bash" and not block.parsed:
                found = [(f"{where}:{scenario} {method}", content) for scenario, method, content in _trained(block.text)]
            else:
                continue
            # Files that other pages write are examples of an interface: their own tests follow them.
            yield from ((name, c) for name, c in found if where == OWN_DATA or not (c.get("plugins") or c.get("data")))


def _trained(text: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] != ["cglsuite", "cell"] or any(word in TOO_SHORT for word in words) or any("testing-" in w for w in words):
            continue
        given: dict[str, Any] = {name: [words[i + 1] for i, w in enumerate(words) if w == name] for name in ("--set", "--plugin", "--data")}
        scenario, method = words[words.index("--scenario") + 1], words[words.index("--method") + 1]
        content: dict[str, Any] = {"name": "cell", "grid": {"scenarios": [scenario], "methods": [method]}, "run": CPU}
        content["set"] = {key: tomllib.loads(f"value = {value}")["value"] for key, value in (pair.split("=") for pair in given["--set"])}
        yield scenario, method, content | {name[2:] + ("s" if name == "--plugin" else ""): given[name] for name in ("--plugin", "--data")}


def _shipped() -> dict[str, Mapping[str, Any]]:
    demonstration = tomllib.loads((ROOT / "reports" / "demo.toml").read_text(encoding="utf-8"))
    return {"reports/demo.toml": demonstration, **dict(_of_notebooks()), **dict(_of_pages())}


SHIPPED = _shipped()


def test_all_examples_are_found() -> None:
    pages_of = {name.partition(":")[0] for name in SHIPPED}
    # papers' protocols; data alone; records alone
    not_trained = {f"notebooks/{name}" for name in ("reproduction", "ledger", "claims", "stream_anatomy", "findings")}
    notebooks = {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.py")} - not_trained
    tutorials = {f"docs/tutorials/{name}.md" for name in ("first-report", "order-sensitivity", "publish-a-method", "own-data-and-method")}
    assert {"reports/demo.toml", "the start page", *notebooks, *tutorials} <= pages_of


class Trainer:
    """Trains the first repetition of examples in one store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, Store(folder / "store")

    def records(self, name: str) -> dict[str, dict[str, Record]]:
        """Records by preset and method."""
        # A search would be run first; the grid's own values must learn without it.
        content: dict[str, Any] = {
            "run": CPU,
            **{key: SHIPPED[name][key] for key in SHIPPED[name] if key not in ("report", "run", "search")},
        }
        if name.startswith(OWN_DATA):
            content |= {key: [str(self._own_files() / file) for file in content[key]] for key in ("plugins", "data") if content.get(key)}
        if axes := content["grid"].get("axes"):
            content["grid"] = content["grid"] | {"axes": {key: values[-1:] for key, values in axes.items()}}
        with named(data=content.pop("data", ()), plugins=content.pop("plugins", ())):
            catalogue = load_catalogue()
            found: dict[str, dict[str, Record]] = {}
            if not (methods := [m for m in content["grid"]["methods"] if _has(catalogue, m)]):
                return found
            content["grid"] = content["grid"] | {"methods": methods}
            for planned in plan_campaign(Campaign.parse(content), catalogue, store=self.store):
                assert planned.cell is not None, planned.reason
                of_preset = found.setdefault(planned.cell.preset, {})
                if planned.cell.method not in of_preset:
                    record = run_cell(planned.cell, catalogue, self.store)
                    assert record.done, record.reason
                    of_preset[planned.cell.method] = record
        return found

    def _own_files(self) -> Path:
        """The files that the tutorial on own data writes."""
        folder = self.folder / "own"
        if not folder.exists():
            folder.mkdir()
            for block in [b for b in blocks(ROOT / OWN_DATA) if b.language == "python"]:
                if block.title:
                    (folder / block.title).write_text(block.text, encoding="utf-8")
                else:
                    exec(block.text.replace('"photo.npz"', repr(str(folder / "photo.npz"))), {})
        return folder


def _has(catalogue: Catalogue, method: str) -> bool:
    """Whether a method is installed: a tutorial's own package is not."""
    return method in catalogue.specs(MethodSpec)


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    return Trainer(tmp_path_factory.mktemp("examples"))


def final(record: Record) -> float:
    """Average performance at the end."""
    return float(np.nanmean(record.performance()[-1]))


def diagonal(record: Record) -> NDArray[np.float64]:
    """Performance on every task right after it was learnt."""
    return np.diagonal(record.performance()[1:])


def below_diagonal(record: Record) -> NDArray[np.float64]:
    """Performance on tasks after later ones were learnt."""
    learnt = record.performance()[1:]
    return learnt[np.tril_indices(len(learnt), -1)]


def replaying(methods: Iterable[str]) -> list[str]:
    catalogue = load_catalogue()
    return [method for method in methods if method in ("replay", "er-gnn") and _has(catalogue, method)]


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(SHIPPED))
def test_an_example_learns(name: str, trainer: Trainer) -> None:
    """Joint training is above fine-tuning and has learnt all tasks; replay learns each task, and forgets less than fine-tuning."""
    for preset, records in trainer.records(name).items():
        finals = {method: final(record) for method, record in records.items()}
        if "joint" in finals:
            assert finals["joint"] > finals.get("bare", 0.0), preset
            assert finals["joint"] > 0.8, preset
        for method in replaying(records):
            assert diagonal(records[method]).min() > 0.7, (preset, method)
            if "bare" in records and "class-il" in preset:
                assert finals[method] > finals["bare"] + 0.1, preset
        if "bare" in records and not records["bare"].stream:
            assert diagonal(records["bare"]).min() > 0.7, preset  # forgetting what was never learnt shows nothing


def test_the_first_cell_shows_what_the_tutorial_says(trainer: Trainer) -> None:
    page = "docs/tutorials/first-report.md"
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert "With `bare`, the diagonal is high and everything below it is close to zero" in text
    (name,) = [one for one in SHIPPED if one.startswith(f"{page}:") and one.endswith(" bare")]
    ((records),) = trainer.records(name).values()
    assert diagonal(records["bare"]).min() > 0.9
    assert below_diagonal(records["bare"]).max() < 0.1


def test_the_demonstration_names_no_finding() -> None:
    """Findings are computed: its text asks, and says what is not comparable."""
    text = SHIPPED["reports/demo.toml"]["description"]
    assert text.count("?") >= 1
    assert not {"forgets", "helps", "better", "worse", "best"} & set(text.replace(",", " ").replace(".", " ").split())
    assert len(SHIPPED["reports/demo.toml"]["seeds"]["order"]) >= 5  # fewer paired orders tell no two methods apart
