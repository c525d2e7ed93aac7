"""The house in figures: rooms, floors, arrows, modules, code lines. ``python tests/tools/house.py [--lower]``

A room is a direct child of ``cglsuite``; ``plugins`` and ``notebooks`` count as one each. An arrow is an import of one room by another, of
any number of names. A floor is one more than the highest floor that a room imports; upward arrows, which lead to a higher layer, do not
count for it. ``--lower`` writes figures that have fallen to ``tests/packaging/house.json``, above which no test lets them rise again.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
RATCHET = ROOT / "tests" / "packaging" / "house.json"
LAYERS = (
    ("base",),
    ("specs", "graphs", "stats"),
    ("streams", "backbones", "problems", "host"),
    ("protocols", "learning"),
    ("cells",),
    ("campaigns",),
    ("reports",),
    ("testing", "study", "commons", "cli"),
)
"""From the ground up. A room imports rooms of lower layers, and of its own layer those that stand before it."""
OUTSIDE = ("__init__", "__main__", "plugins", "notebooks")
HOOKS = "plugin"
"""Modules of this name are plugins: they declare specs through the public interface, whatever room they describe."""


def sources() -> list[Path]:
    """The modules of the core and of the built-in plugins."""
    return [*sorted((ROOT / "cglsuite").rglob("*.py")), *sorted(p for s in ROOT.glob("plugins/cglsuite-*/src") for p in s.rglob("*.py"))]


def room_of(path: Path) -> str:
    """The room that a file is in."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if parts[0] != "cglsuite" else parts[1].removesuffix(".py")


@cache
def imported(path: Path) -> tuple[str, ...]:
    """The modules and names that a file imports, anywhere in it."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        text = "\n".join(line for cell in cells for line in "".join(cell).splitlines() if not line.startswith(("%", "!")))
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def crossings() -> Iterator[tuple[Path, str, str, str]]:
    """Every import of a room by another: the file, its room, the room that it imports, and the module or name."""
    rooms = {room for layer in LAYERS for room in layer}
    for path in [*sources(), *sorted(ROOT.glob("notebooks/*.ipynb"))]:
        here = room_of(path)
        for name in imported(path):
            parts = name.split(".")
            if parts[0] == "cglsuite" and len(parts) > 1 and parts[1] in rooms - {here}:
                yield path, here, parts[1], name


def is_upward(here: str, there: str) -> bool:
    """Whether an arrow leads to a higher layer, or to a room of its own layer that stands behind."""
    height = {room: (storey, place) for storey, layer in enumerate(LAYERS) for place, room in enumerate(layer)}
    return here in height and height[there] > height[here]


def code_lines(path: Path) -> int:
    """Lines with code: no blank ones, comments or docstrings."""
    text = path.read_text(encoding="utf-8")
    lines = set[int]()
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in quiet:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def figures() -> dict[str, int]:
    """What the ratchet holds."""
    found = list(crossings())
    arrows = {(here, there) for _, here, there, _ in found}
    upward = {(here, there) for path, here, there, _ in found if is_upward(here, there) and path.stem != HOOKS}
    floors: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in floors:
            floors[room] = 1 + max((floor(there) for here, there in arrows if here == room and not is_upward(here, there)), default=0)
        return floors[room]

    core = {path: code_lines(path) for path in sources()}
    inside = {path: n for path, n in core.items() if room_of(path) not in OUTSIDE}
    by_room: dict[str, int] = {}
    for path, n in inside.items():
        by_room[room_of(path)] = by_room.get(room_of(path), 0) + n
    ours = sum(n for path, n in core.items() if room_of(path) != "plugins")
    return {
        "rooms": len({*by_room, *OUTSIDE}),
        "floors": max(map(floor, [*by_room, "plugins", "notebooks", "__init__", "__main__"])),
        "arrows": len(arrows),
        "upward arrows": len(upward),
        "imports between modules of different rooms": len({(path, name) for path, _, _, name in found if _is_module(name)}),
        "modules": len(core),
        "code lines of the core": ours,
        "code lines with plugins": sum(core.values()),
        "largest room, in thousandths of the core's lines": round(1000 * max(by_room.values()) / ours),
    }


def _is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def main() -> None:
    """Print the table."""
    held, now = json.loads(RATCHET.read_text(encoding="utf-8")) if RATCHET.exists() else {}, figures()
    for name, figure in now.items():
        print(f"{name:50} {figure:7,}   held at {held.get(name, figure):,}")
    if "--lower" in sys.argv[1:]:
        RATCHET.write_text(json.dumps({name: min(figure, held.get(name, figure)) for name, figure in now.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
