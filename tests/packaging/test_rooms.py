"""Imports point downward: a room of the core imports only rooms of lower layers; plugins, templates and examples import only public names.

``docs/reference/public-api.md`` is the list of public names: each exists, is documented and has a reference page, and none is missing.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Iterator, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import house
import pytest

from cglsuite.specs import API_VERSION

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "public-api.md"
_ROW = re.compile(r"^\| \[`(cglsuite[\w.]*)`\]\(([\w-]+\.md)\) \| (.+) \|$", re.M)
_IMPORT = re.compile(r"^[ \t]*((?:from cglsuite[\w.]* import (?:\([^)]*\)|[^\n(]*))|(?:import cglsuite[\w.]*[^\n]*))$", re.M)
_REFERENCE = re.compile(r"(cglsuite(?:\.\w+)*):(\w+)")
# What a third party starts from or reads as an example is held to the same list as the built-in plugins.
OUTSIDE = [
    *sorted(ROOT.glob("plugins/cglsuite-*/src")),
    ROOT / "plugins" / "template",
    *sorted(ROOT.glob("tests/example-*")),
    *(ROOT / "docs" / part for part in ("tutorials", "how-to", "protocols")),
    ROOT / "README.md",
]


def modules(folder: Path, packages: Set[str] = frozenset({"cglsuite"})) -> Iterator[tuple[Path, list[str]]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, [name for name in house.imported(path) if name.split(".")[0] in packages]


def test_every_room_is_in_a_layer() -> None:
    found = {p.stem if p.is_file() else p.name for p in (ROOT / "cglsuite").iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()}
    assert found - {"__init__", "__main__"} == {room for layer in house.LAYERS for room in layer}


def test_rooms_import_only_rooms_below() -> None:
    """Of lower layers, or of their own and before them in the table. The names that `import cglsuite` offers are above all."""
    upward = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path, here, there, name in house.crossings()
        if house.is_upward(here, there) and path.stem != house.HOOKS
    ]
    assert not upward


def test_the_house_does_not_grow() -> None:
    """``python tests/tools/house.py --lower`` writes what has fallen. To let a figure rise, edit the file and say why in the commit."""
    held = json.loads(house.RATCHET.read_text(encoding="utf-8"))
    assert {name: figure for name, figure in house.figures().items() if figure > held[name]} == {}


def test_only_display_builds_what_notebooks_show() -> None:
    parts = {f"cglsuite.base.markup.{name}" for name in ("card", "fold", "grid")}
    users = {path.relative_to(ROOT / "cglsuite").parts[:2] for path, names in modules(ROOT / "cglsuite") if parts & set(names)}
    assert users == {("study", "display.py")}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for annotations and inside functions count too. A package that only hands names on imports nothing."""
    found = {".".join(path.relative_to(ROOT).with_suffix("").parts): names for path, names in modules(ROOT / "cglsuite")}
    imports = {module: {n for n in names if n in found and n != module} for module, names in found.items()}
    circle: tuple[str, ...] = ()
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle = tuple(error.args[1])
    assert not circle


@cache
def listed() -> dict[str, tuple[str, frozenset[str]]]:
    """Module to (its reference page, its public names)."""
    rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert len({module for module, _, _ in rows}) == len(rows), "a module is listed twice"
    return {module: (page, frozenset(re.findall(r"`(\w+)`", names))) for module, page, names in rows}


def sources(place: Path) -> Iterator[tuple[Path, str]]:
    """The Python of a folder or page: its modules, and whatever its templates and pages have of it."""
    files = [place] if place.is_file() else sorted(f for f in place.rglob("*") if f.suffix in (".py", ".jinja", ".md") and f != PAGE)
    for file in files:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".md":
            text = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))
            text = re.sub(r"^(>>>|\.\.\.) ", "", text, flags=re.M)
        if file.suffix != ".py":  # a template is no Python yet, and pages leave things out
            text = "\n".join(_dedented(m) for m in _IMPORT.findall(re.sub(r"\{\{ kind \}\}", "method", text)))
        yield file, text


def _dedented(statement: str) -> str:
    return " ".join(statement.split())


def foreign(text: str) -> Iterator[str]:
    """What of the suite a module uses that is not on the list, as ``module.name``."""
    tree = ast.parse(text)
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "cglsuite" and not node.level:
            for alias in node.names:
                if f"{node.module}.{alias.name}" in listed():
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                elif alias.name not in listed().get(str(node.module), ("", frozenset()))[1]:
                    yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "cglsuite":
                    modules[alias.asname or alias.name] = alias.name
                    if alias.name not in listed():
                        yield alias.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (found := _REFERENCE.fullmatch(node.value)):
            module, name = found.groups()
            if name not in listed().get(module, ("", frozenset()))[1]:
                yield f"{module}.{name}"
    for used in [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]:
        module = modules.get(ast.unparse(used.value), "")
        if module in listed() and f"{module}.{used.attr}" not in listed() and used.attr not in listed()[module][1]:
            yield f"{module}.{used.attr}"


@pytest.mark.parametrize("place", OUTSIDE, ids=lambda p: str(p.relative_to(ROOT)))
def test_outside_the_core_only_public_names_are_used(place: Path) -> None:
    found = [f"{file.relative_to(ROOT)}: {name}" for file, text in sources(place) for name in foreign(text)]
    assert not found, f"not on {PAGE.relative_to(ROOT)}: {found}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from cglsuite.cells.store import Store", ["cglsuite.cells.store.Store"]),
        ("from cglsuite.cells import Store", []),
        ("from cglsuite.graphs import NodeData, torch_csr", ["cglsuite.graphs.torch_csr"]),
        ("from cglsuite.base import datafiles\ndatafiles.DataRoot", []),
        ("from cglsuite.base import datafiles\ndatafiles._save", ["cglsuite.base.datafiles._save"]),
        ("import cglsuite.graphs as g\ng.NodeData\ng.spans", ["cglsuite.graphs.spans"]),
        ("import cglsuite.host", ["cglsuite.host"]),
        ("def f():\n    from cglsuite.host import Entry", ["cglsuite.host.Entry"]),
        ("builder = 'cglsuite.streams.oracle:Oracle'", ["cglsuite.streams.oracle.Oracle"]),
        ("builder = 'cglsuite.streams.build:build_task_stream'", []),
        ("from cglsuite_node.plugin import presets", []),
    ],
)
def test_uses_are_found_in_every_form(text: str, found: list[str]) -> None:
    assert list(foreign(text)) == found


@pytest.mark.parametrize("place", sorted(ROOT.glob("plugins/cglsuite-*/src/*")), ids=lambda p: p.name)
def test_built_in_plugins_do_not_import_each_other(place: Path) -> None:
    others = {p.name for p in ROOT.glob("plugins/cglsuite-*/src/*")} - {place.name}
    found = [f"{path.relative_to(ROOT)} imports {name}" for path, names in modules(place, others) for name in names]
    assert len(others) > 5
    assert not found


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(file_of(module).read_text(encoding="utf-8"))


def file_of(module: str) -> Path:
    place = ROOT.joinpath(*module.split("."))
    return package if (package := place / "__init__.py").is_file() else place.with_suffix(".py")


def documentation(module: str, name: str) -> str | None:
    """The docstring of a definition, or the string below an assignment, in whichever module has it."""
    for body in [tree(module).body, *(n.body for n in tree(module).body if isinstance(n, ast.If))]:
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                return ast.get_docstring(node)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            if name in [t.id for t in targets if isinstance(t, ast.Name)]:
                text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
                return text if isinstance(text, str) else None
            if isinstance(node, ast.ImportFrom) and name in [a.asname or a.name for a in node.names]:
                return documentation(str(node.module), next(a.name for a in node.names if (a.asname or a.name) == name))
    return None


@pytest.mark.parametrize("module", listed())
def test_every_listed_name_exists_and_is_documented(module: str) -> None:
    found = importlib.import_module(module)
    names = listed()[module][1]
    assert [name for name in sorted(names) if not hasattr(found, name)] == []
    assert ast.get_docstring(tree(module))
    assert [name for name in sorted(names) if not documentation(module, name)] == []


@pytest.mark.parametrize("module", listed())
def test_no_module_takes_the_place_of_a_public_name(module: str) -> None:
    # Importing a module sets it on its package, over a lazy name; reference pages show the module instead of the name.
    parts = file_of(module).parent.iterdir() if file_of(module).name == "__init__.py" else ()
    assert not {path.stem for path in parts if path.suffix == ".py" or (path / "__init__.py").is_file()} & listed()[module][1]


@pytest.mark.parametrize("module", listed())
def test_every_name_that_a_public_module_offers_is_listed(module: str) -> None:
    found = [ast.literal_eval(n.value) for n in tree(module).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    assert [sorted(names) for names in found] == [sorted(listed()[module][1])]


@pytest.mark.parametrize("module", listed())
def test_reference_pages_show_every_public_module(module: str) -> None:
    page = PAGE.parent / listed()[module][0]
    assert f"::: {module}" in page.read_text(encoding="utf-8").splitlines()


def test_reference_pages_show_nothing_else() -> None:
    shown = {m for page in PAGE.parent.glob("*.md") for m in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.M)}
    assert shown == set(listed())


def test_the_list_is_that_of_the_present_plugin_interface() -> None:
    assert f"plugin interface {API_VERSION} (`api_version={API_VERSION}`)" in PAGE.read_text(encoding="utf-8")
