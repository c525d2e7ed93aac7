"""Turn a method class into a plugin file, so that worker processes can run classes defined in a notebook.

A class from an importable module is loaded from that module. As usual, its key covers the source of the module and of everything it
imports. A class defined in a notebook or script is hashed as it is in memory, together with everything it reads
(:mod:`cglsuite.cells.code.objects`). It is sent to workers as a pickle named by that digest; this process writes the pickle and never
loads it. If the class reads a value whose content cannot be compared, it gets a new key in every run, so that no result computed by
different code is reused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import io
import json
import linecache
import logging
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import FunctionType, ModuleType
from typing import Any

from cglsuite.base.atomic import write_atomic
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import UsageError
from cglsuite.cells.code.objects import Hashed, edited, function_in, globals_of, hashed, is_importable, wrapper_state
from cglsuite.cells.code.user import is_ours, is_user_module, places, user_code
from cglsuite.learning import Method
from cglsuite.learning.by_value import keep
from cglsuite.specs import LEVELS, SETTINGS, Hyperparameter, MethodSpec

logger = logging.getLogger(__name__)
_TEMPLATE = '''"""Written by cglsuite for a class that was given in Python."""
{loading}
from cglsuite import Hyperparameter, MethodSpec, hookimpl


@hookimpl
def cglsuite_methods():
    return [{spec}]
'''
_LOADING = """
from cglsuite.learning.by_value import given

CODE = {{
{code}
}}


def modules():  # never called: what the class uses of modules is a part of its key, and has to be where it runs
{imports}


def __getattr__(name):
    if name == {name!r}:
        return given(__file__)
    raise AttributeError(name)
"""


@dataclass(frozen=True, kw_only=True)
class MethodFile:
    """A plugin file for a user's method class.

    Attributes:
        path: the plugin file. name: the method's name in that file.
        folders: the folders that worker processes need on their path to import what the class uses.
        modules: the user's modules that the class imports.
        news: a description of what has changed since a class with this name was last used; empty if nothing has.
    """

    path: Path
    name: str
    folders: tuple[Path, ...]
    modules: tuple[str, ...] = ()
    news: str = ""


def as_plugin_file(method: type[Method], memory: dict[Any, str] | None = None) -> MethodFile:
    """Write a plugin file for a method class.

    Args:
        memory: digests of tensors that were already hashed, shared by the classes of one run.

    Raises:
        UsageError: the class is not derived from :class:`cglsuite.Method`, is defined inside a function, or reads something that
            cannot be sent to another process.
    """
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise UsageError(f"method {method!r}: expected the name of a method, or a class derived from cglsuite.Method")
    if "<locals>" in method.__qualname__:
        raise UsageError(f"{method.__qualname__} is defined inside a function: define the class at the top level")
    if is_importable(method) and getattr(sys.modules[method.__module__], "__file__", None):
        reference = f"{method.__module__}:{method.__qualname__}"
        if resolve_name(reference) is not method:
            logger.warning("%s has been reloaded since this class was imported: workers train the version in the file", reference)
        spec = spec_of(method, reference)
        text = _TEMPLATE.format(loading="", spec=_spec_expression(spec))
        path = _file(text, _stem(method.__name__, text))
        code = user_code([method.__module__])
        news = _changes(method, {f"module {name}": content for name, content in code.contents.items()})
        return MethodFile(
            path=path, name=spec.name, folders=_folders([method.__module__, *code.files]), modules=tuple(code.files), news=news
        )
    hashed_class = hashed(method, memory)
    for value in hashed_class.unstable:
        logger.warning("%s, so this class gets a new key in every run, and no result is reused", value)
    used = sorted({name for name in hashed_class.modules if is_ours(name) or is_user_module(name.partition(":")[0])})
    modules = sorted({name.partition(":")[0] for name in used if not is_ours(name)})
    code = user_code(modules)
    parts = {**hashed_class.parts, **{f"module {name}": content for name, content in code.contents.items()}}
    marks = {**parts, "": uuid.uuid4().hex} if hashed_class.unstable else parts
    stem = _stem(method.__name__, f"{hashed_class.digest} {sorted(marks.items())}")
    loading = _LOADING.format(
        code="\n".join(f"    {name!r}: {digest!r}," for name, digest in marks.items()),
        imports="\n".join([f"    {_import(name)}" for name in used] or ["    pass"]),
        name=method.__name__,
    )
    spec = spec_of(method, f"{stem}:{method.__name__}")
    content = _pickled(method, hashed_class)
    path = _file(_TEMPLATE.format(loading=loading, spec=_spec_expression(spec)), stem)
    write_atomic(path.with_suffix(".pkl"), content, durable=False)
    keep(stem, method)
    return MethodFile(path=path, name=spec.name, folders=_folders(code.files), modules=tuple(code.files), news=_changes(method, parts))


def spec_of(method: type[Method], factory: str) -> MethodSpec:
    """Return the class's ``spec`` attribute. A class without one gets a spec that has the name of the class and covers every level and
    setting.

    The class attribute ``hyperparameters`` is a tuple of :class:`cglsuite.Hyperparameter`, or a mapping of names to defaults.
    """
    declared = getattr(method, "spec", None)
    if isinstance(declared, MethodSpec):
        return dataclasses.replace(declared, factory=factory)
    hyperparameters = getattr(method, "hyperparameters", {})
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", method.__name__).lower().replace("_", "-").strip("-")
    doc = inspect.cleandoc(method.__dict__.get("__doc__") or "").splitlines()
    return MethodSpec(
        name=words,
        summary=doc[0] if doc else f"{method.__name__}, defined in Python",
        factory=factory,
        levels=LEVELS,
        settings=SETTINGS,
        hyperparameters=tuple(hyperparameters)
        if not isinstance(hyperparameters, Mapping)
        else tuple(Hyperparameter(name=name, default=value, doc=f"{name} of {method.__name__}") for name, value in hyperparameters.items()),
    )


# --- files ----------------------------------------------------------------------------------------------------------------------------


def _import(name: str) -> str:
    module, _, attribute = name.partition(":")
    return f"from {module} import {attribute.partition('.')[0]}" if attribute else f"import {module}"


def _folders(modules: Iterable[str]) -> tuple[Path, ...]:
    """Return the folders that must be on ``sys.path`` to import these modules."""
    folders = (place.absolute().parent for name in modules for place in places(name.partition(".")[0]))
    return tuple(dict.fromkeys(folders))


def _changes(method: type[Method], parts: Mapping[str, str]) -> str:
    """Describe what changed since a class with this name was last used, and remember this version."""
    path = DataRoot.from_environment().cache / "given" / "last" / f"{method.__module__}.{method.__qualname__}.json"
    before: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):
        before = json.loads(path.read_text(encoding="utf-8"))
    if before == parts:
        return ""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(parts).encode(), durable=False)
    if not before:
        return "given for the first time"
    words = {"changed": before.keys() & parts.keys(), "new": parts.keys() - before.keys(), "no longer used": before.keys() - parts.keys()}
    lists = {word: sorted(n for n in names if before.get(n) != parts.get(n)) for word, names in words.items()}
    return "; ".join(f"{', '.join(names)} {word}" for word, names in lists.items() if names)


def _stem(name: str, text: str) -> str:
    return f"{name.lower()}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _file(text: str, stem: str) -> Path:
    path = DataRoot.from_environment().cache / "given" / "methods" / stem / f"{stem}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    if not path.exists() or path.read_bytes() != content:
        write_atomic(path, content, durable=False)
    return path


# --- by value -------------------------------------------------------------------------------------------------------------------------


def _pickled(method: type[Method], hashed_class: Hashed) -> bytes:
    """Pickle the class by value, with the source of its functions; modules are pickled by name.

    Raises:
        UsageError: the class reads something that cannot be pickled; the message names it.
    """
    try:
        return _dumped((method, {file: lines for file in hashed_class.files if (lines := linecache.getlines(file))}))
    except Exception as error:
        culprit = _culprit(method) or "; ".join(map(str, hashed_class.unstable)) or f"{type(error).__name__}: {error}"
        raise UsageError(
            f"method {method.__qualname__} cannot be sent to a worker process: {culprit}. Create it in setup(), which runs in every "
            "worker process, or move it into a module that the class imports"
        ) from error


def _dumped(obj: Any) -> bytes:
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, ModuleType) and type(obj) is not ModuleType and sys.modules.get(obj.__name__) is obj:
                return importlib.import_module, (obj.__name__,)  # for example torch.backends.cudnn
            if isinstance(obj, (FunctionType, type)) and is_importable(obj):
                reference = f"{obj.__module__}:{obj.__qualname__}"
                if resolve_name(reference) is not obj:
                    return resolve_name, (reference,)  # for a module that has been reloaded, its current contents
            if isinstance(obj, functools._lru_cache_wrapper) and not is_importable(obj):
                return _cached, (obj.__wrapped__, obj.cache_parameters()), wrapper_state(obj) or None
            if type(obj) is not FunctionType and isinstance(obj, FunctionType):
                raise TypeError(
                    f"{type(obj).__module__}.{type(obj).__qualname__} wraps a function, and the wrapper would be lost in worker processes"
                )
            return super().reducer_override(obj)

    with io.BytesIO() as file:
        Pickler(file).dump(obj)
        return file.getvalue()


def _cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """Return a copy of a cached function with a separate cache."""
    return functools.lru_cache(**parameters)(function)


def _culprit(method: type[Method]) -> str:
    """Describe the first function or global of a class that cannot be pickled."""
    waiting: list[tuple[str, Any]] = [(f"{method.__qualname__}.{name}", value) for name, value in vars(method).items()]
    met = set[int]()
    while waiting:
        where, value = waiting.pop(0)
        function = function_in(value)
        if type(function) is FunctionType:
            if id(function) not in met:
                met.add(id(function))
                waiting += [(f"{where} reads the global {name}", obj) for name, obj in globals_of(function).items()]
        elif isinstance(value, type):
            if value.__module__ == method.__module__ and id(value) not in met:
                met.add(id(value))
                waiting += [(f"{value.__qualname__}.{name}", obj) for name, obj in vars(value).items()]
        elif not inspect.isdatadescriptor(value) and _pickling_fails(value):
            return f"{where}, a {type(value).__module__}.{type(value).__qualname__}, which cannot be pickled"
    return ""


def _pickling_fails(value: Any) -> bool:
    try:
        _dumped(value)
    except Exception:  # noqa: BLE001 - by foreign classes
        return True
    return False


# --- specs ----------------------------------------------------------------------------------------------------------------------------


def _spec_expression(spec: MethodSpec) -> str:
    """Write the spec as a Python expression."""
    fields = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec) if f.name != "hyperparameters"}
    arguments = ", ".join(f"{name}={value!r}" for name, value in fields.items() if value is not None)
    declared = "".join(f"{_hyperparameter(h)}, " for h in spec.hyperparameters)
    return f"MethodSpec({arguments}, hyperparameters=({declared}))"


def _hyperparameter(declared: Hyperparameter) -> str:
    fields = {f.name: getattr(declared, f.name) for f in dataclasses.fields(declared) if f.name != "kind"}
    kind = f", kind={declared.kind.__name__}" if declared.kind else ""
    return f"Hyperparameter({', '.join(f'{name}={value!r}' for name, value in fields.items())}{kind})"


# Changes made in a notebook that worker processes do not see. The user is warned about them by name before training starts.
# Workers import libraries afresh, and the user's modules from the current files. They do not see a function patched into a library or into
# the suite, a changed default dtype, or functions, methods and constants of the user's modules that differ from the file. Other changes to
# existing objects, such as a replaced list item, do not reach the workers either, but they cannot be detected.

_LIBRARIES = ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "numpy")
_CLASSES = (("torch", "Tensor"), ("torch.nn", "Module"))


def unsent_changes(modules: Iterable[str]) -> list[str]:
    """Describe the changes made in this process that worker processes will not see. The descriptions are sorted.

    Args:
        modules: the user's modules that a method imports.
    """
    return sorted({*_patches(), *_defaults(), *(f"{name}.{variable}" for name in modules for variable in edited(sys.modules.get(name)))})


def _defaults() -> Iterator[str]:
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.get_default_dtype() != torch.float32:
        yield f"torch's default dtype ({torch.get_default_dtype()})"


def _patches() -> Iterator[str]:
    """Yield attributes of libraries or the suite that were replaced by a user's function or class, and attributes of any module that were
    replaced by an object from the notebook.
    """
    ours = [name for name in sys.modules if is_ours(name)]
    for name in (*_LIBRARIES, *ours):
        module = sys.modules.get(name)
        for attribute, value in list(vars(module).items()) if isinstance(module, ModuleType) else ():
            if _is_users(value):
                yield f"{name}.{attribute}"
            elif isinstance(value, type) and value.__module__ == name and name in ours:
                yield from _patched_class(name, value)
    for name, module in list(sys.modules.items()):
        if type(module) is ModuleType:
            mine = [a for a, value in vars(module).copy().items() if type(value) is FunctionType and value.__module__ == "__main__"]
            yield from (f"{name}.{attribute}" for attribute in mine if _is_installed(name, module))
    for name, attribute in _CLASSES:
        if (module := sys.modules.get(name)) is not None:
            yield from _patched_class(name, getattr(module, attribute))


def _is_installed(name: str, module: ModuleType) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names or "site-packages" in (getattr(module, "__file__", None) or "")


def _patched_class(module: str, cls: type) -> Iterator[str]:
    for attribute, value in vars(cls).items():
        if _is_users(function_in(value)):
            yield f"{module}.{cls.__qualname__}.{attribute}"


def _is_users(value: Any) -> bool:
    if not isinstance(value, (FunctionType, type)):
        return False
    home = value.__module__
    return home == "__main__" or (isinstance(home, str) and not is_ours(home) and home.partition(".")[0] not in _KNOWN and _users(home))


_KNOWN = {"torch", "numpy", "builtins", "typing", "functools", "collections", "enum", "dataclasses", "abc", "contextlib"}
_SEEN: dict[str, bool] = {}


def _users(home: str) -> bool:
    top = home.partition(".")[0]
    if top not in _SEEN:
        file = getattr(sys.modules.get(top), "__file__", None) or "site-packages"
        _SEEN[top] = "site-packages" not in file and is_user_module(top)  # the first condition is cheap
    return _SEEN[top]
