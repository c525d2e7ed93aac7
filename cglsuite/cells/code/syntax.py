"""Extract the parts of a module's source that can affect results: a normalised syntax tree and the imports."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, cast

# A module's syntax tree without the parts that are only for human readers.
# Left out: comments, formatting, docstrings and other bare constants, ``pass``, ``__all__``, blocks under ``TYPE_CHECKING``, annotations of
# parameters, returned values and variables, ``__repr__`` and ``_repr_*``, and texts in ``raise``, ``assert``, ``warnings.warn`` and logger
# calls. Annotated fields of classes are included, since dataclasses read them. So is everything that is not certainly neutral.

_LOGGED = {"debug", "info", "warning", "error", "exception", "critical", "log"}
_SHOWN = re.compile(r"__repr__|_repr_\w+|_ipython_\w+")
_DESCRIBED = {"doc", "effect"}
_OPERATORS = {c for base in (ast.operator, ast.cmpop, ast.unaryop, ast.boolop, ast.expr_context) for c in base.__subclasses__()}
_CHILDLESS = {ast.Name, ast.Constant, ast.alias}
_PLAIN = {str, int, bool, type(None), *_OPERATORS}
_LEFT = _PLAIN | _CHILDLESS


def normalised(tree: ast.Module, *, keeps_docs: bool) -> ast.Module:
    """Remove the parts of ``tree`` that cannot affect results, in place. Set ``keeps_docs`` if the program reads its own docstrings."""
    loggers = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and named(node.value.func) == "getLogger"
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return cast(ast.Module, _Normaliser(loggers | {"logging"}, keeps_docs).visit(tree))


class Transformer:
    """A faster :class:`ast.NodeTransformer`. Visitors are looked up once per class, and the fields of names and constants are not
    visited."""

    skipped: tuple[type, ...] = ()
    """Node types that are left unchanged with all their children."""

    def __init_subclass__(cls) -> None:
        cls._visitors = {getattr(ast, n[6:]): f for n, f in vars(cls).items() if n.startswith("visit_")}

    _visitors: ClassVar[dict[type, Any]] = {}

    def visit(self, node: ast.AST) -> Any:
        visitor = self._visitors.get(node.__class__)
        return self.generic_visit(node) if visitor is None else visitor(self, node)

    def generic_visit(self, node: ast.AST) -> Any:
        values = node.__dict__
        for name in node._fields:
            value = values.get(name)
            kind = value.__class__
            if kind is list:
                items: list[Any] = []
                for item in value:  # type: ignore[union-attr]
                    if item.__class__ in _LEFT or isinstance(item, self.skipped):
                        items.append(item)
                    elif (new := self.visit(item)) is not None:
                        items.extend(new) if new.__class__ is list else items.append(new)
                values[name] = items
            elif kind not in _LEFT and not isinstance(value, self.skipped):
                values[name] = self.visit(value)  # type: ignore[arg-type]
        return node


class _Normaliser(Transformer):
    def __init__(self, loggers: set[str], keeps_docs: bool) -> None:
        self.loggers, self.keeps_docs = loggers, keeps_docs
        self.scopes: list[str] = ["module"]
        self.functions: list[ast.AST] = []

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Constant):
            return node if self.keeps_docs and isinstance(node.value.value, str) else None
        return self.generic_visit(node)

    def visit_Pass(self, node: ast.Pass) -> None:
        return None

    def visit_If(self, node: ast.If) -> Any:
        if is_type_checking(node.test):
            return [visited for n in node.orelse if (visited := self.visit(n)) is not None]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if self.scopes[-1] == "module" and [named(t) for t in node.targets] == ["__all__"]:
            return None
        if isinstance(node.value, ast.Call) and named(node.value.func) == "getLogger":
            node.value.args = []  # the logger's name
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if self.scopes[-1] == "class":
            return self.generic_visit(node)
        if self.scopes[-1] == "module" and named(node.target) == "__all__":
            return None
        if node.value is not None:
            return self.visit(ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node))
        if isinstance(node.target, ast.Name) and self.functions and not _assigns(self.functions[-1], node.target.id):
            # An annotation makes a name local even if it is never assigned.
            node.annotation = ast.Constant(value=None)
            return node
        return None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        if self.scopes[-1] == "class" and _SHOWN.fullmatch(node.name):
            return None
        node.returns = None
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        for argument in every:
            if argument is not None:
                argument.annotation = None
        self.scopes.append("function")
        self.functions.append(node)
        out = self.generic_visit(node)
        self.scopes.pop()
        self.functions.pop()
        return out

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.scopes.append("class")
        out = self.generic_visit(node)
        self.scopes.pop()
        return out

    def visit_Raise(self, node: ast.Raise) -> Any:
        if isinstance(node.exc, ast.Call):
            _mute_message(node.exc)
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        node.msg = None if node.msg is None else _without_text(node.msg)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        func = node.func
        if isinstance(func, ast.Name) and func.id == "Hyperparameter":
            node.keywords = [k for k in node.keywords if k.arg not in _DESCRIBED]
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            owner = func.value.id
            if owner in self.loggers and func.attr in _LOGGED:
                _mute_message(node)
            elif owner == "warnings" and func.attr == "warn" and node.args:
                node.args[0] = _without_text(node.args[0])
        return self.generic_visit(node)


def _assigns(function: ast.AST, name: str) -> bool:
    """Return whether a function assigns to a name, rather than only annotating it."""
    nodes = list(walk(function))
    bare = {id(n.target) for n in nodes if isinstance(n, ast.AnnAssign) and n.value is None}
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and id(n) not in bare for n in nodes)


def _mute_message(call: ast.Call) -> None:
    call.args = [_without_text(a) for a in call.args]
    for keyword in call.keywords:
        keyword.value = _without_text(keyword.value)


def _without_text(node: ast.expr) -> ast.expr:
    """Return a message without its text. Of its interpolated expressions, only those with possible side effects remain."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return ast.Constant(value="")
    if isinstance(node, ast.JoinedStr):
        values = [v.value for v in node.values if isinstance(v, ast.FormattedValue) and not _is_shown_only(v)]
        return ast.Tuple(elts=values, ctx=ast.Load()) if values else ast.Constant(value="")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        left, right = _without_text(node.left), _without_text(node.right)
        return ast.Constant(value="") if _is_empty(left) and _is_empty(right) else ast.BinOp(left=left, op=node.op, right=right)
    if isinstance(node, ast.IfExp):
        return ast.IfExp(test=node.test, body=_without_text(node.body), orelse=_without_text(node.orelse))
    return node


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""


_SHOWING = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.JoinedStr, ast.FormattedValue, ast.expr_context),
    *(ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.IfExp),
    *(ast.Tuple, ast.List, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension),
    *(ast.Call, ast.Starred, ast.keyword),
)
_SHOWING_CALLS = {
    *("len", "str", "repr", "int", "float", "type", "list", "tuple", "set", "sorted", "sum", "min", "max", "map", "range"),
    *("join", "format", "partition", "split", "keys", "values", "items", "item", "tolist"),
}


def _is_shown_only(node: ast.AST) -> bool:
    return all(isinstance(n, _SHOWING) and (not isinstance(n, ast.Call) or named(n.func) in _SHOWING_CALLS) for n in walk(node))


def is_type_checking(test: ast.expr) -> bool:
    """Return whether a condition tests ``TYPE_CHECKING``, which is false at run time."""
    return named(test) == "TYPE_CHECKING"


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Like :func:`ast.walk`, but much faster and without contexts and operators. Speed matters because listing cells computes their
    keys."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if node.__class__ in _CHILDLESS:
            continue
        values = node.__dict__
        for name in node._fields:
            value = values.get(name)
            kind = value.__class__
            if kind is list:
                waiting += [v for v in value if v.__class__ not in _PLAIN]  # type: ignore[union-attr]
            elif kind not in _PLAIN:
                waiting.append(value)  # type: ignore[arg-type]


def named(node: ast.AST) -> str | None:
    """Return the last part of a name or an attribute; ``None`` for any other node."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


_BY_NAME = {
    *("import_module", "__import__", "exec", "eval", "spec_from_file_location", "run_path", "run_module", "find_loader", "load_module"),
    *("resolve_name", "walk_packages", "iter_modules"),
}
_NAMES_ITSELF = (b"__name__", b"__file__", b"__module__", b"__package__", b"__spec__", b"__path__")
# Importing these does not affect results, so a name imported only for an annotation does not count: every cell imports them anyway.
_INERT = {"cglsuite", "torch", "numpy", "scipy"}
_PURE_DECORATORS = {"dataclass", "lru_cache", "cache", "contextmanager", "overload", "total_ordering", "wraps", "no_grad", "hookimpl"}
_FACADE_FUNCTIONS = {"__getattr__", "__dir__"}


@dataclass(frozen=True, kw_only=True)
class Import:
    """``from module import name as bound``, or ``import module`` if ``name`` is empty. ``package`` is the importing package."""

    module: str
    name: str
    bound: str


@dataclass(frozen=True, kw_only=True)
class Source:
    """The relevant parts of a module: the digest of its content, its imports, and the names that it exports.

    Attributes:
        content: SHA-256 (hex) of the tree. Imports from ``cglsuite`` and from the module's own package enter only as the bound names,
            without their origin, so that moving a module does not change the content.
        linked: imports of modules other than Python's own, torch, NumPy and SciPy, without names of ours that are used only in annotations
            and displays.
        exports: every imported name of the module, including those under ``TYPE_CHECKING``.
        facade: the module only re-exports. effects: importing it does more than define names.
        own_name: the module reads its own name or path.
        listed: ``__all__`` if it is a literal. constants: names assigned exactly once, outside functions and classes.
    """

    content: str
    linked: tuple[Import, ...]
    exports: tuple[Import, ...]
    facade: bool
    effects: bool
    own_name: bool
    listed: tuple[str, ...] | None
    constants: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One definition of a module and the definitions that it uses there, represented by their SHA-256 (hex) and their imports."""

    content: str
    linked: tuple[Import, ...]


def parse(source: bytes, package: str) -> Source:
    """Parse the relevant parts of a module's source. ``package`` is the base for relative imports.

    Raises:
        SyntaxError: the source is not valid Python.
    """
    tree = ast.parse(source)
    typed = [
        imported
        for block in _type_checking(tree.body)
        for imported in _imports([n for statement in block for n in walk(statement)], package)
    ]
    listed = _names_in_all(tree.body)
    tree = normalised(tree, keeps_docs=b"__doc__" in source)
    nodes = list(walk(tree))
    imports = list(_imports(nodes, package))
    facade, effects = _is_facade(tree), not all(_only_defines(node) for node in tree.body)
    own_name = any(name in source for name in _NAMES_ITSELF) and any(map(_mentions_itself, nodes))
    used = run = _names_read(nodes)
    if _postpones_annotations(tree):
        fields = [n.annotation for n in nodes if isinstance(n, ast.AnnAssign)]
        inside = {id(n) for annotation in fields for n in walk(annotation)}
        run = _names_read(n for n in nodes if id(n) not in inside)
    # Importing our modules has no side effects; importing a plugin's may.
    linked = {i for i in imports if _affects_bits(i.module) and (_root(i.module) != "cglsuite" or i.bound == "*" or _root(i.bound) in run)}
    return Source(
        content=hashlib.sha256(text_of(_Unlinked(package, used).visit(tree)).encode()).hexdigest(),
        linked=tuple(sorted(linked, key=lambda i: (i.bound, i.module, i.name))),
        exports=(*imports, *typed),
        facade=facade,
        effects=effects,
        own_name=own_name,
        listed=listed,
        constants=_constants(tree),
    )


def cut(source: bytes, package: str, name: str) -> Slice:
    """Return one top-level definition of a module with the definitions that it uses there, directly or indirectly. If the module has no
    such name, the whole module is returned.

    For modules in which results depend on only a few definitions: the function that turns names into seeds, a table of sizes in a module
    of descriptions.
    """
    tree = _normalised_source(source)
    defined: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for bound in _binds(node):
            defined.setdefault(bound, []).append(node)
    waiting, reached = [name] if name in defined else list(defined), dict[str, list[ast.stmt]]()
    while waiting:
        current = waiting.pop()
        if current in reached or current not in defined:
            continue
        reached[current] = defined[current]
        waiting += [n for node in defined[current] if not _is_import(node) for n in _names_read(walk(node))]
    code = sorted((bound, [text_of(n) for n in nodes if not _is_import(n)]) for bound, nodes in reached.items())
    imports = {i for bound, nodes in reached.items() for i in _imports(filter(_is_import, nodes), package) if _root(i.bound) == bound}
    outside = sorted([i.bound, i.module, i.name] for i in imports if not _affects_bits(i.module))
    return Slice(
        content=hashlib.sha256(json.dumps([code, outside]).encode()).hexdigest(),
        linked=tuple(sorted((i for i in imports if _affects_bits(i.module)), key=lambda i: (i.bound, i.module, i.name))),
    )


@lru_cache(maxsize=64)
def _normalised_source(source: bytes) -> ast.Module:
    return normalised(ast.parse(source), keeps_docs=b"__doc__" in source)


# --- what is imported ----------------------------------------------------------------------------------------------------------------


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module=alias.name, name="", bound=alias.asname or alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            base = absolute(node.module, node.level, package)
            for alias in node.names:
                yield Import(module=base, name=alias.name, bound=alias.asname or alias.name)
        elif isinstance(node, ast.Call) and node.args and named(node.func) in ("import_module", "__import__"):
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and not first.value.startswith("."):
                yield Import(module=first.value, name="", bound="*")


def absolute(module: str | None, level: int, package: str) -> str:
    """Return the absolute name of the module in ``from ..module import x``; ``level`` counts the dots."""
    parents = package.split(".")[: len(package.split(".")) - level + 1] if level else []
    return ".".join([*parents, *([module] if module else [])])


def _affects_bits(module: str) -> bool:
    """Return whether results may depend on the content of an imported module: it is not part of Python, and not all cells import it."""
    top = _root(module)
    return top not in sys.stdlib_module_names and top not in _INERT - {"cglsuite"}


class _Unlinked(Transformer):
    """Removes imports whose modules count by content, and names used only in annotations and displays."""

    skipped = (ast.expr, ast.arguments)

    def __init__(self, package: str, used: set[str]) -> None:
        self.package, self.used = package, used
        self.home = {"cglsuite", _root(package)} - {""}

    def visit_Import(self, node: ast.Import) -> Any:
        node.names = [a for a in node.names if _root(a.name) not in self.home and not self._is_unused(a.name, a.asname or a.name)]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module == "__future__":
            return node
        base = absolute(node.module, node.level, self.package)
        node.names = [a for a in node.names if a.name == "*" or not self._is_unused(base, a.asname or a.name)]
        if _root(base) in self.home:
            return None  # counted by links
        node.module, node.level = base, 0
        return node if node.names else None

    def _is_unused(self, module: str, bound: str) -> bool:
        return (_root(module) in _INERT or _root(module) in sys.stdlib_module_names) and _root(bound) not in self.used


# --- what kind of module -------------------------------------------------------------------------------------------------------------


def _is_facade(tree: ast.Module) -> bool:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in _FACADE_FUNCTIONS:
            continue
        if _is_import(node):
            continue
        if isinstance(node, ast.Assign):
            named_lazily = (
                isinstance(node.value, ast.Call) and named(node.value.func) == "lazily" and set(_binds(node)) <= _FACADE_FUNCTIONS
            )
            if named_lazily or (_is_literal(node.value) and all(n.startswith("_") for n in _binds(node))):
                continue
        return False
    return True


def _only_defines(node: ast.stmt) -> bool:
    if _is_import(node):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return all(named(d.func if isinstance(d, ast.Call) else d) in _PURE_DECORATORS for d in node.decorator_list)
    if isinstance(node, ast.Assign):
        return all(isinstance(t, ast.Name) for t in node.targets)
    if isinstance(node, ast.Try | ast.If):
        inner = [*node.body, *node.orelse, *(node.finalbody if isinstance(node, ast.Try) else ())]
        inner += [n for h in (node.handlers if isinstance(node, ast.Try) else ()) for n in h.body]
        return all(_only_defines(n) for n in inner)
    return False


def imports_by_name(node: ast.AST) -> bool:
    """Return whether a node is a call that imports or executes code by a name that is known only at run time."""
    if not isinstance(node, ast.Call) or named(node.func) not in _BY_NAME:
        return False
    if named(node.func) in ("exec", "eval") and not isinstance(node.func, ast.Name):
        return False  # model.eval()
    return imported_literally(node) is None


def imported_literally(call: ast.Call) -> str | None:
    """Return the module name in ``import_module("literal")``, or ``None`` for any other call."""
    first = call.args[0] if call.args else None
    if named(call.func) in ("import_module", "__import__") and isinstance(first, ast.Constant) and isinstance(first.value, str):
        return None if first.value.startswith(".") else first.value
    return None


def _mentions_itself(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id.encode() in _NAMES_ITSELF
    return isinstance(node, ast.Attribute) and node.attr in ("__module__", "__file__", "__package__")


def _type_checking(body: Iterable[ast.stmt]) -> Iterator[list[ast.stmt]]:
    return (node.body for node in body if isinstance(node, ast.If) and is_type_checking(node.test))


def _names_in_all(body: Sequence[ast.stmt]) -> tuple[str, ...] | None:
    for node in body:
        if isinstance(node, ast.Assign) and [named(t) for t in node.targets] == ["__all__"] and _is_literal(node.value):
            return tuple(map(str, ast.literal_eval(node.value)))
    return None


# --- small tools ---------------------------------------------------------------------------------------------------------------------


def _names_read(nodes: Iterable[ast.AST]) -> set[str]:
    """Return every name that is read, or that is a whole string constant."""
    names = set[str]()
    for node in nodes:
        kind = node.__class__
        if kind is ast.Name:
            if node.ctx.__class__ is not ast.Store:  # type: ignore[attr-defined]
                names.add(node.id)  # type: ignore[attr-defined]
        elif kind is ast.Constant and node.value.__class__ is str and node.value.isidentifier():  # type: ignore[attr-defined]
            names.add(node.value)  # type: ignore[attr-defined]
    return names


def _postpones_annotations(tree: ast.Module) -> bool:
    return any(
        isinstance(n, ast.ImportFrom) and n.module == "__future__" and any(a.name == "annotations" for a in n.names) for n in tree.body
    )


def _binds(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [_root(a.asname or a.name) for a in node.names]
    return [n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _constants(tree: ast.Module) -> frozenset[str]:
    bound = [name for node in tree.body for name in _binds(node)]
    assigned = {name for node in tree.body if isinstance(node, ast.Assign) for name in _binds(node)}
    return frozenset(name for name in assigned if bound.count(name) == 1)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return False
    return True


def _root(name: str) -> str:
    return name.partition(".")[0]


_OMITTED = {"ctx", "kind", "type_comment", "type_ignores"}


def text_of(node: Any) -> str:
    """Serialise the tree as node types and fields in a fixed order, without positions, contexts and empty fields, which differ between
    Python versions.
    """
    kind = node.__class__
    if kind is ast.Name:
        return f"Name({node.id})"
    if kind is ast.Constant:
        return f"{node.value.__class__.__name__}:{node.value!r}"
    if kind is list:
        return f"[{','.join(map(text_of, node))}]"
    if isinstance(node, ast.AST):
        values = node.__dict__
        fields = [(name, values.get(name)) for name in node._fields if name not in _OMITTED]
        return f"{kind.__name__}({','.join([f'{name}={text_of(value)}' for name, value in fields if value is not None and value != []])})"
    return f"{kind.__name__}:{node!r}"
