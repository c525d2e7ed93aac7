"""The small faults that :mod:`mutants` puts into a module: where they can be, and the text with one of them.

Two things are no faults: a changed assertion (``assert``, ``raise``, the ``strict`` of a ``zip``), and the words of messages and options.
How thick, opaque or large something is drawn, where its label hangs and how the paper is divided is a kind of its own, ``appearance``: a
sample leaves it out unless it is asked for. All else that a report computes, orders, words or draws is in: values, limits, rows, ticks,
colours, the conditions of its sentences.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["APPEARANCE", "KINDS", "Mutation", "mutations_of"]

APPEARANCE = "appearance"
KINDS = (
    "operator",
    "negation",
    "sign",
    "boolean",
    "constant",
    "condition",
    "statement",
    "opposite",
    "filter",
    "arguments",
    "keyword",
    "guard",
)

_COMPARISONS = {"Lt": "<=", "LtE": "<", "Gt": ">=", "GtE": ">", "Eq": "!=", "NotEq": "==", "In": "not in", "NotIn": "in"}
_SIGNS = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!=", "In": "in", "NotIn": "not in"}
_ARITHMETIC = {"Add": ("+", "-"), "Sub": ("-", "+"), "Mult": ("*", "/"), "Div": ("/", "*"), "FloorDiv": ("//", "*"), "Pow": ("**", "*")}
_ARITHMETIC |= {"BitAnd": ("&", "|"), "BitOr": ("|", "&"), "Mod": ("%", "//")}
_OPPOSITES = {"min": "max", "any": "all", "sum": "mean", "argmin": "argmax", "eval": "train", "zeros": "ones", "floor": "ceil"}
_OPPOSITES |= {v: k for k, v in _OPPOSITES.items()}
#: Calls whose words are for people: a mutant in them changes no result.
_SPEAKING = {"debug", "info", "warning", "error", "echo", "secho", "Switch", "HyperParameter", "option", "argument", "Option"}
#: Keywords that are assertions or words for people.
_NO_FAULTS = ("strict", "help")
#: Words of a module that draws with matplotlib that move no mark and change no colour, and calls that only do so.
_LOOKS = {
    "alpha",
    "linewidth",
    "linewidths",
    "markersize",
    "markeredgewidth",
    "zorder",
    "fontsize",
    "family",
    "figsize",
    "dpi",
    "pad",
    "length",
}
_LOOKS |= {"labelpad", "frameon", "bbox_to_anchor", "handlelength", "columnspacing", "ha", "va", "loc", "rotation", "clip_on", "capsize"}
_PLACING = {"add_axes", "subplots_adjust", "margins", "set_axisbelow", "wrapped"}


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """``old`` at ``start`` (an offset in characters) becomes ``new``; ``names``: what the module defines for others."""

    path: str
    line: int
    kind: str
    start: int
    old: str
    new: str
    names: set[str]

    def applied(self, text: str) -> str:
        """The module with the fault."""
        if text[self.start : self.start + len(self.old)] != self.old:
            raise ValueError(f"{self.path} has changed since its mutations were listed")
        return text[: self.start] + self.new + text[self.start + len(self.old) :]


def mutations_of(path: str, text: str) -> list[Mutation]:
    """Every mutation of a module that compiles, in order."""
    tree = ast.parse(text)
    public = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")}
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    # A statement of the module compiles if and only if the module does, in a fraction of the time.
    statements = [(offset(n.lineno, n.col_offset), offset(n.end_lineno or n.lineno, n.end_col_offset or 0)) for n in tree.body]
    found = []
    draws = any("matplotlib" in ast.dump(n) for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom))
    looks = _of_looks(tree) if draws else set()
    for node in _code(tree):
        for kind, first, last, new in _faults(node, lambda n: ast.get_source_segment(text, n) or ""):
            start, stop = offset(*first), offset(*last)
            if kind == "operator":  # between its operands, of which the first may end in a bracket
                sign, replacement = new.split(" ", 1)
                at = text[start:stop].find(sign)
                if at < 0:
                    continue
                start, stop, new = start + at, start + at + len(sign), replacement
            if id(node) in looks or (kind == "keyword" and draws and text[start:stop].split("=")[0] in _LOOKS):
                kind = APPEARANCE
            mutation = Mutation(path=path, line=first[0], kind=kind, start=start, old=text[start:stop], new=new, names=public)
            begin, end = next(((a, b) for a, b in statements if a <= start and stop <= b), (0, len(text)))
            try:
                compile(text[begin:start] + new + text[stop:end], path, "exec")
            except SyntaxError:
                continue
            found.append(mutation)
    return found


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something: no annotations, no texts for people, no imports, nothing that only a type checker reads."""
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Call) and _name(node.func) in _SPEAKING:
        return
    if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Assign) and any(_name(t) == "__all__" for t in node.targets):
        return
    if isinstance(node, ast.keyword) and node.arg in _NO_FAULTS:
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _code(child)


def _of_looks(tree: ast.Module) -> set[int]:
    """The nodes, by id, that only say how something looks or where on the paper it stands."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _LOOKS and not any(_name(n) == node.arg for n in ast.walk(node.value)):
            found |= {id(n) for n in ast.walk(node.value)}
        if isinstance(node, ast.Call) and _name(node.func) in _PLACING:
            found |= {id(n) for n in ast.walk(node)}
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        found |= _of_layout(function, found)
    return found


def _of_layout(function: ast.FunctionDef, looks: set[int]) -> set[int]:
    """The values of the variables of a function that are read only where something looks, or in one another."""
    values: dict[str, list[ast.expr]] = {}
    for node in (n for n in ast.walk(function) if isinstance(n, ast.Assign) and len(n.targets) == 1):
        pairs = [(node.targets[0], node.value)]
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(node.targets[0].elts, node.value.elts, strict=True))
        for target, value in pairs:
            values.setdefault(_name(target), []).append(value)
    reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    layout: set[int] = set()
    while True:
        names = {name for name in values if name and all(id(n) in looks | layout for n in reads if n.id == name)}
        more = {id(n) for name in names for value in values[name] for n in ast.walk(value)}
        if more <= layout:
            return layout
        layout |= more


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


Place = tuple[int, int]
Fault = tuple[str, Place, Place, str]
"""Kind, beginning and end as (line, column in bytes), and the new text; for an operator the old sign and the new one."""


def _whole(node: ast.expr | ast.stmt | ast.keyword) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)


def _faults(node: ast.AST, text: Callable[[ast.AST], str]) -> Iterator[Fault]:
    match node:
        case ast.Compare(ops=[op]) if (sign := type(op).__name__) in _COMPARISONS:
            between = (_whole(node.left)[1], _whole(node.comparators[0])[0])
            yield "operator", *between, f"{_SIGNS[sign].split()[0]} {_COMPARISONS[sign]}" if sign != "NotIn" else "not "
        case ast.BinOp() if (sign := type(node.op).__name__) in _ARITHMETIC and not _is_text(node):
            old, new = _ARITHMETIC[sign]
            yield "operator", _whole(node.left)[1], _whole(node.right)[0], f"{old} {new}"
        case ast.BoolOp():
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield "operator", _whole(node.values[0])[1], _whole(node.values[1])[0], f"{old} {new}"
        case ast.UnaryOp(op=ast.Not()):
            yield "negation", *_whole(node), f"bool({text(node.operand)})"
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield "sign", *_whole(node), f"({text(node.operand)})"
        case ast.Constant(value=bool() as value):
            yield "boolean", *_whole(node), str(not value)
        case ast.Constant(value=int() as value):
            yield "constant", *_whole(node), str(value + 1)
        case ast.Constant(value=float() as value):
            yield "constant", *_whole(node), repr(value * 2 if value else 1.0)
        case ast.While():
            yield "condition", *_whole(node.test), "False"
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.UnaryOp):
            yield "condition", *_whole(test), f"(not ({text(test)}))"
        case ast.Expr(value=ast.Call() as call) if _name(call.func) not in _SPEAKING:
            yield "statement", *_whole(node), "pass"
        case ast.AugAssign():
            yield "statement", *_whole(node), "pass"
        case ast.Attribute(attr=attr) if attr in _OPPOSITES:
            end = _whole(node)[1]
            yield "opposite", (end[0], end[1] - len(attr)), end, _OPPOSITES[attr]
        case ast.Name(id=name) if name in ("min", "max", "any", "all"):
            yield "opposite", *_whole(node), _OPPOSITES[name]
        case ast.comprehension(ifs=[first, *_]):
            yield "filter", *_whole(first), "True"
    if isinstance(node, ast.Call):
        yield from _calls(node, text)
    if isinstance(node, ast.If) and isinstance(node.body[0], ast.Return | ast.Continue | ast.Raise | ast.Break):
        yield "guard", *_whole(node.test), "False"


def _calls(node: ast.Call, text: Callable[[ast.AST], str]) -> Iterator[Fault]:
    """Two arguments change places; a keyword is left out."""
    args = [a for a in node.args if not isinstance(a, ast.Starred)]
    if len(args) >= 2 and len(args) == len(node.args) and _name(node.func) not in ("min", "max", "isinstance"):
        (first, _), (_, last) = _whole(args[0]), _whole(args[1])
        yield "arguments", first, last, f"{text(args[1])}, {text(args[0])}"
    for keyword in node.keywords:
        if keyword.arg is not None and len(node.keywords) < 8 and keyword.arg not in _NO_FAULTS:
            first, last = _whole(keyword)
            yield "keyword", first, last, ""


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str)) for side in sides)
