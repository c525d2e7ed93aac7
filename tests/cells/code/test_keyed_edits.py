"""Which edit of the sources changes the keys of which cells, shown on edited copies of the core and of the built-in plugins."""

from __future__ import annotations

import ast
import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cglsuite import Catalogue, load_catalogue
from cglsuite.cells import keys as keys_module
from cglsuite.cells.code.sources import NUMERICAL_ROOMS, Closure, Files, closure
from cglsuite.cells.code.syntax import imports_by_name, parse
from cglsuite.cells.keys import cell_key, references
from cglsuite.cells.spec import resolve_cell
from cglsuite.learning.reproducibility.numerics import numerics_of

pytestmark = pytest.mark.plugins

ROOT = Path(__file__).parents[3]
NODES, NODES_FREE = "synthetic-csbm/class-il@begin-1", "synthetic-csbm/boundary-local@drift-1"
GRAPHS, LINKS, PREDICTED = (
    "synthetic-motifs/class-il@begin-1",
    "synthetic-signed-links/class-il@begin-1",
    "synthetic-temporal-links/domain-il@begin-1",
)
REGRESSION = "synthetic-graph-regression/domain-il@begin-1"
CELLS = [
    (NODES, "bare"),
    (NODES, "ewc"),
    (NODES, "twp"),
    (NODES_FREE, "bare"),
    (GRAPHS, "bare"),
    (GRAPHS, "twp"),
    (REGRESSION, "bare"),
    (LINKS, "bare"),
    (LINKS, "twp"),
    (PREDICTED, "bare"),
]
Cell = tuple[str, str]
EVERY, NONE = set(CELLS), set[Cell]()


class Copy:
    """A copy of the sources, and the digests of every cell's parts in it."""

    def __init__(self, folder: Path, catalogue: Catalogue) -> None:
        self.folder = folder
        self.roots = {cell: references(resolve_cell(catalogue, *cell), catalogue) for cell in CELLS}
        self.before = self.digests()

    def digests(self) -> dict[Cell, list[str]]:
        files = Files(sorted(self.folder.iterdir()))
        known = {roots: Closure(roots, files).digest for named in self.roots.values() for roots in named.values()}
        return {cell: [known[roots] for roots in named.values()] for cell, named in self.roots.items()}

    def changed_by(self, place: str, edit: Callable[[str], str]) -> set[Cell]:
        """The cells whose key another text of one file changes. The file is put back."""
        (path,) = self.folder.glob(f"*/{place}")
        text = path.read_text(encoding="utf-8")
        edited = edit(text)
        assert edited != text, f"{place} was not edited"
        ast.parse(edited)
        path.write_text(edited, encoding="utf-8")
        try:
            after = self.digests()
        finally:
            path.write_text(text, encoding="utf-8")
        return {cell for cell in CELLS if after[cell] != self.before[cell]}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue) -> Copy:
    folder = tmp_path_factory.mktemp("sources")
    only_python = shutil.ignore_patterns("__pycache__", "*.npz", "*.csv", "*.json", "*.egg-info")
    shutil.copytree(ROOT / "cglsuite", folder / "core" / "cglsuite", ignore=only_python)
    for source in (ROOT / "plugins").glob("cglsuite-*/src"):
        shutil.copytree(source, folder / source.parent.name, ignore=only_python)
    return Copy(folder, catalogue)


def swap(old: str, new: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        assert old in text, f"{old!r} is not there any more: choose another line to edit"
        return text.replace(old, new, 1)

    return edit


def formatted_anew(text: str) -> str:
    """The same program without comments, in other lines, with other quotes and brackets."""
    return ast.unparse(ast.parse(text))


def annotated_by_links(text: str) -> str:
    text = text.replace("k: int", "k: LinkData")
    return text.replace("import torch\n", "import torch\nfrom cglsuite.graphs import LinkData\n", 1)


def before_first_function(addition: str) -> Callable[[str], str]:
    return lambda text: text.replace("\ndef ", f"\n{addition}\n\n\ndef ", 1)


NEUTRAL: dict[str, tuple[str, Callable[[str], str]]] = {
    "a module's docstring": ("cglsuite/streams/oracle.py", lambda text: text.replace('"""The', '"""An', 1)),
    "a comment": ("cglsuite/learning/loop.py", lambda text: text + "\n# another thought\n"),
    "formatting": ("cglsuite/learning/runner.py", formatted_anew),
    "formatting of a method": ("cglsuite_methods/regularisation/twp.py", formatted_anew),
    "an annotation of a parameter": ("cglsuite/streams/oracle.py", swap("hits_k: int = 50", "hits_k: float = 50")),
    "an annotation of what is returned": ("cglsuite/streams/oracle.py", swap("-> bool:", "-> int:")),
    "an annotation of a variable": (
        "cglsuite/streams/oracle.py",
        swap("function: Callable[[Answered], Any] =", "function: Callable[..., Any] ="),
    ),
    "how a measure of the core is described": ("cglsuite/specs/plugins.py", swap("accuracy over items", "share of items")),
    "what a spec of another kind holds": (
        "cglsuite/specs/plugins.py",
        lambda text: text.replace('kind: ClassVar[str] = "notebook"\n', 'kind: ClassVar[str] = "notebook"\n    other: int = 0\n'),
    ),
    "an import for annotations": (
        "cglsuite/streams/oracle.py",
        annotated_by_links,
    ),
    "a message": ("cglsuite/streams/oracle.py", swap("the predicted scores are not finite", "Some predicted scores are infinite")),
    "a message with values": ("cglsuite/streams/oracle.py", swap("shape {list(given.shape)} for", "size {len(given.shape)} for")),
    "a message of a data set": ("cglsuite/graphs/data.py", lambda text: text.replace("expected", "wanted")),
    "a logged text": ("cglsuite/streams/build.py", swap("so no messages are passed", "so none is passed")),
    "what __all__ lists": ("cglsuite/streams/build.py", swap('__all__ = ["build_task_stream"]', "__all__ = []")),
    "a facade": ("cglsuite/graphs/__init__.py", swap("links import LinkData", "links import LinkData, hashlib")),
    "the table of adapters": ("cglsuite/problems/adapters.py", swap('("NC", "single")', '("XX", "single"): "x:X",\n    ("NC", "single")')),
    "a new function that nobody imports from a sliced module": (
        "cglsuite/base/hashing.py",
        before_first_function("def other():\n    return 1"),
    ),
    "another data set's sizes": ("cglsuite_node/datasets/specs.py", lambda text: text + "\nOTHER = {'nodes': 7}\n"),
    "how a setting is described": ("cglsuite_node/datasets/specs.py", lambda text: text.replace('doc="', 'doc="So: ')),
}  # fmt: skip


@pytest.mark.parametrize("edit", NEUTRAL)
def test_an_edit_that_changes_no_number_changes_no_key(copy: Copy, edit: str) -> None:
    place, change = NEUTRAL[edit]
    assert copy.changed_by(place, change) == NONE


def test_what_is_displayed_changes_no_key(copy: Copy) -> None:
    """Neither a capital letter in a card's title nor a new ``__repr__``, wherever these are written."""
    rooms = [copy.folder / "core" / "cglsuite" / room for room in (*NUMERICAL_ROOMS, "study")]
    titles = [path for room in rooms for path in room.rglob("*.py") if "stream of {" in path.read_text(encoding="utf-8")]
    assert titles
    for path in titles:
        place = path.relative_to(copy.folder / "core").as_posix()
        assert copy.changed_by(place, lambda text: text.replace('f"stream of {', 'f"Stream of {')) == NONE, place
    addition = "    def __repr__(self) -> str:\n        return f'<{self!s:>7}>'\n\n    def deposit("
    assert copy.changed_by("cglsuite/streams/oracle.py", swap("    def deposit(", addition)) == NONE


def of(*scenarios: str) -> set[Cell]:
    return {cell for cell in CELLS if cell[0] in scenarios}


NUMERIC: dict[str, tuple[str, Callable[[str], str], set[Cell]]] = {
    "a formula of TWP": (
        "cglsuite_methods/regularisation/twp.py",
        lambda text: text + "\nTWP.scale = 2.0\n",
        {cell for cell in CELLS if cell[1] == "twp"},
    ),
    "a helper beside methods": (
        "cglsuite_methods/regularisation/penalty.py",
        lambda text: text + "\nSCALE = 2.0\n",
        {cell for cell in CELLS if cell[1] in ("ewc", "twp")},
    ),
    "links in graphs": ("cglsuite/graphs/links.py", swap("dim() == 2", "dim() == 3"), of(LINKS, PREDICTED)),
    "the adapter of links": ("cglsuite/problems/link.py", swap("2**10", "2**11"), of(LINKS, PREDICTED)),
    "negatives": ("cglsuite/graphs/splits/negatives.py", lambda text: text + "\n_FACTOR = 3\n", of(LINKS, PREDICTED)),
    "sets of graphs": ("cglsuite/graphs/packed.py", lambda text: text + "\n_FACTOR = 3\n", of(GRAPHS, REGRESSION)),
    "real targets": ("cglsuite/problems/regression.py", swap(".square()", ".abs()"), of(REGRESSION)),
    "mixtures of task-free streams": ("cglsuite/streams/mixing.py", lambda text: text + "\n_FACTOR = 3\n", of(NODES_FREE)),
    "the loop": ("cglsuite/learning/loop.py", lambda text: text + "\n_FACTOR = 3\n", EVERY),
    "denormals": (
        "cglsuite/learning/reproducibility/numerics.py",
        swap("flush_denormal: bool = True", "flush_denormal: bool = False"),
        EVERY,
    ),
    "how names become seeds": ("cglsuite/base/hashing.py", swap("sort_keys=True", "sort_keys=False"), EVERY),
    "a field's default": ("cglsuite/streams/views.py", swap("tasks: Tensor | None = None", "tasks: Tensor | None = 0"), EVERY),
    "a field's name": ("cglsuite/graphs/links.py", swap("    links: Tensor\n", "    pairs: Tensor\n"), of(LINKS, PREDICTED)),
    "the order of fields": (
        "cglsuite/graphs/links.py",
        swap("    links: Tensor\n    y: Tensor\n", "    y: Tensor\n    links: Tensor\n"),
        of(LINKS, PREDICTED),
    ),
}


@pytest.mark.parametrize("edit", NUMERIC)
def test_an_edit_that_may_change_a_number_changes_the_keys_of_its_cells_alone(copy: Copy, edit: str) -> None:
    place, change, cells = NUMERIC[edit]
    assert copy.changed_by(place, change) == cells


def test_a_module_that_is_moved_with_its_importers_changes_no_key(copy: Copy) -> None:
    core = copy.folder / "core" / "cglsuite"
    texts = {path: path.read_text(encoding="utf-8") for path in core.rglob("*.py")}
    place, moved = core / "graphs" / "sparse.py", core / "streams" / "rows.py"
    place.rename(moved)
    try:
        for path, text in texts.items():
            here = moved if path == place else path
            if "cglsuite.graphs.sparse" in text:
                here.write_text(text.replace("cglsuite.graphs.sparse", "cglsuite.streams.rows"), encoding="utf-8")
        assert copy.digests() == copy.before
    finally:
        moved.unlink()
        for path, text in texts.items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")


def test_every_declared_numeric_switch_is_in_the_key(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = resolve_cell(catalogue, NODES, "bare")
    plain = numerics_of(cell.device, cell.threads)
    found = {cell_key(cell, catalogue)}
    for field in dataclasses.fields(plain):
        changes: dict[str, Any] = {field.name: "another value"}
        other = dataclasses.replace(plain, **changes)
        monkeypatch.setattr(keys_module, "numerics_of", lambda device, threads, other=other: other)
        found.add(cell_key(cell, catalogue))
    assert len(found) == 1 + len(dataclasses.fields(plain))


# --- every module of the numerical rooms ---------------------------------------------------------------------------------------------

MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in (*(ROOT / "cglsuite" / room for room in NUMERICAL_ROOMS), *(ROOT / "plugins").glob("cglsuite-methods/src"))
    for path in folder.rglob("*.py")
)


def content(text: str) -> str:
    return parse(text.encode(), "cglsuite.somewhere").content


def described_anew(tree: ast.Module) -> ast.Module:
    """Another docstring for everything that can have one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                node.body.pop(0)
            node.body.insert(0, ast.Expr(ast.Constant("Another description.")))
    return ast.fix_missing_locations(tree)


def unread(tree: ast.Module) -> Iterator[ast.AST]:
    """What people read only, or what says what a value is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Constant)):
            yield from ast.walk(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            shown = node.name == "__repr__" or node.name.startswith("_repr_")
            arguments = [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            for part in [node] if shown else [node.returns, *(a.annotation for a in arguments if a is not None)]:
                yield from ast.walk(part) if part is not None else ()
        elif isinstance(node, ast.AnnAssign):
            yield from ast.walk(node.annotation)


@pytest.mark.sampled(60)
@pytest.mark.parametrize("module", MODULES)
def test_descriptions_of_a_module_are_nothing_and_its_numbers_are_something(module: str) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")
    before = content(text)
    assert content(ast.unparse(described_anew(ast.parse(text)))) == before
    assert content(f"# first\n{text}\n# last\n") == before
    tree = ast.parse(text)
    aside = {id(node) for node in unread(tree)}
    numbers = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) in (int, float) and id(n) not in aside]
    for number in numbers[:: max(1, len(numbers) // 4)]:
        value: Any = number.value
        number.value = value + 1
        assert content(ast.unparse(tree)) != before, f"line {number.lineno}"
        number.value = value
    assert content(ast.unparse(tree)) == before


def test_what_built_in_code_loads_by_name_is_declared() -> None:
    """In these modules: the names that they load are roots of a cell's key (:func:`cglsuite.cells.keys.references`), or re-exports."""
    by_name = [module for module in MODULES if any(map(imports_by_name, ast.walk(ast.parse((ROOT / module).read_bytes()))))]
    assert by_name == [
        "cglsuite/learning/launch.py",
        "cglsuite/problems/adapters.py",
        "cglsuite/streams/build_task_free.py",
        "cglsuite/streams/oracle.py",
    ]


@pytest.mark.nightly
def test_no_loader_counts_the_descriptions_of_datasets() -> None:
    """Of the modules that describe datasets, loaders use tables alone: a summary or a citation is in no key."""
    catalogue = load_catalogue()
    loaders = {entry.name: entry.spec.factory.partition(":")[0] for entry in catalogue.entries("dataset")}  # type: ignore[attr-defined]
    found = {name: [part for part, _ in closure(module) if part.endswith(".datasets.specs")] for name, module in loaders.items()}
    assert len(found) > 40
    assert {name: parts for name, parts in found.items() if parts} == {}
