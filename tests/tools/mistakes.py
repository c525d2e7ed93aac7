"""Mistakes of plugin authors, each with what the suite says of it, and the table of them in the docs.

``python tests/tools/mistakes.py`` writes the table anew; a test compares.
"""

# ruff: noqa: E501 - a table
from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cglsuite import BackboneSpec, CommandSpec, DatasetSpec, ExecutorSpec, MethodSpec, MetricSpec, NotebookSpec, ScenarioSpec
from cglsuite.host import Catalogue, PluginRecord
from cglsuite.specs import Hyperparameter, ScheduleSpec
from cglsuite.testing.streams import tiny_catalogue, tiny_scenarios, with_specs

__all__ = ["MISTAKES", "PAGE", "Mistake", "Said", "said", "table"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "mistakes.md"
_HEAD = "from cglsuite import *\nfrom cglsuite import hookimpl\n\n\n"
_SPEC = "name='mine', summary='s', factory='mine:Mine'"


@dataclass(frozen=True)
class Said:
    """What an author reads: the place, the message and the fix."""

    place: str
    message: str
    fix: str


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Args:
        title: what the author did. spec: in which spec, or the source of the whole plugin ``mine.py``.
        check: the check that finds it; empty where the plugin does not load.
        given, expected: words of the message that say what came and what should have come.
    """

    title: str
    spec: Any
    given: str
    expected: str
    check: str = ""


def _hook(kind: str, body: str) -> str:
    return f"{_HEAD}@hookimpl\ndef cglsuite_{kind}s():\n    {body}\n"


def _method(**more: Any) -> MethodSpec:
    given: dict[str, Any] = {"name": "mine", "summary": "s", "citation": "Me, 2026", "settings": ("class-il",)} | more
    return MethodSpec(**given)


def _scenario(name: str, **more: Any) -> ScenarioSpec:
    from dataclasses import replace

    plain = next(s for s in tiny_scenarios() if s.name == "testing-nodes/class-il@testing-1")
    return replace(plain, name=name, **more)


def _backbone(name: str) -> BackboneSpec:
    return BackboneSpec(name="mine", summary="s", citation="Me, 2026", factory=f"faulty_networks:{name}")


def _metric(name: str, **more: Any) -> MetricSpec:
    given: dict[str, Any] = {"formula": "M", "direction": "up", "range": (0.0, 1.0), "citation": "Me, 2026"} | more
    return MetricSpec(name="mine", summary="s", factory=f"faulty_entries:{name}", settings=("task-il",), **given)


def _dataset(name: str, **more: Any) -> DatasetSpec:
    return DatasetSpec(name="mine", summary="s", factory=f"faulty_entries:{name}", **({"licence": "CC0-1.0", "embedded": True} | more))


def _schedule(name: str) -> ScheduleSpec:
    return ScheduleSpec(name="mine", summary="s", citation="Me, 2026", factory=f"faulty_networks:{name}")


_TWO = _hook("method", f"return [MethodSpec({_SPEC})]")


MISTAKES: tuple[Mistake, ...] = (
    # What keeps a plugin from being loaded
    Mistake("a hook is misspelt", _hook("x", "return []").replace("_xs", "_method"), "unknown hook cglsuite_method", "did you mean cglsuite_methods"),
    Mistake("a hook is not marked", "def cglsuite_methods():\n    return []\n", "cglsuite_methods is not marked", "@hookimpl"),
    Mistake("a hook takes an argument", _HEAD + "@hookimpl\ndef cglsuite_methods(catalogue):\n    return []\n", "catalogue", "without arguments"),
    Mistake("a hook returns a single spec", _hook("method", f"return MethodSpec({_SPEC})"), "returned a single MethodSpec", "expected an iterable of MethodSpec"),
    Mistake("a hook returns nothing", _hook("method", "pass"), "returned None", "expected an iterable of MethodSpec"),
    Mistake("a hook returns specs of the wrong kind", _hook("backbone", f"return [MethodSpec({_SPEC})]"), "returned MethodSpec 'mine'", "expected BackboneSpec"),
    Mistake("two specs with the same name in a plugin", _hook("method", f"return 2 * [MethodSpec({_SPEC})]"), "the name 'mine' twice", "unique name"),
    Mistake("a keyword is misspelt", _hook("method", f"return [MethodSpec({_SPEC}, citaton='Me')]"), "citaton", "citation"),
    Mistake("an unknown level", _hook("method", f"return [MethodSpec({_SPEC}, levels=('nodes',))]"), "'nodes'", "Known: GC, GR, LC, LP, NC, NR"),
    Mistake("an unknown setting", _hook("method", f"return [MethodSpec({_SPEC}, settings=('class-li',))]"), "'class-li'", "'class-il'"),
    Mistake("an unknown need", _hook("method", f"return [MethodSpec({_SPEC}, needs=('past-view',))]"), "'past-view'", "'past-views'"),
    Mistake("a spec contains a list instead of a tuple", _hook("method", f"return [MethodSpec({_SPEC}, hyperparameters=[])]"), "hyperparameters is list []", "not a tuple of Hyperparameter"),
    Mistake("a class instead of its import string", _hook("method", "return [MethodSpec(name='mine', summary='s', factory=MethodSpec)]"), "factory <class", '"package.module:Object" string'),
    Mistake("a malformed name", _hook("metric", "return [MetricSpec(name='My Metric', summary='s', factory='a:b', formula='M', direction='up')]"), "'My Metric'", "expected lower-case letters"),
    Mistake("a module that is not installed", "import a_module_of_mine\n", "No module named 'a_module_of_mine'", "install the package that provides"),
    Mistake("the plugin needs a newer suite", _hook("method", f"return [MethodSpec({_SPEC}, api_version=99)]"), "needs plugin interface 99", "this cglsuite has"),
    Mistake("two plugins with the same name", _TWO, "provided by 2 plugins: mine 1.0, yours 1.0", "replaces="),
    # What a check of it finds
    Mistake("no citation", _metric("mean_of_last", citation=""), "the spec has no citation", "citation=...", "documentation"),
    Mistake("no licence", _dataset("no_licence", licence="not stated"), "neither the licence nor the source", "set licence=", "licence"),
    Mistake("a loader returns a dictionary", _dataset("not_data"), "the factory returns a dict", "return one of NodeTargetData, NodeData", "form"),
    Mistake("a loader returns data of an undeclared level", _dataset("wrong_level", levels=("GC",)), "the spec declares GC", "a NodeData is for NC", "form"),
    Mistake("a loader seeds the global generator", _dataset("seeds_globally"), "changes global random states", "torch.Generator", "repeatable"),
    Mistake("a metric is NaN", _metric("unsure"), "NaN for a complete matrix of 2 tasks", "return NaN only for incomplete matrices", "value"),
    Mistake("a metric is out of its range", _metric("out_of_range"), "for a matrix of", "its range (0, 1)", "value"),
    Mistake("a metric writes to the matrix", _metric("writes_to_matrix"), "modifies its input matrix", "copy the matrix before changing", "pure"),
    Mistake("a metric declares the wrong direction", _metric("backwards", direction="down"), "direction='down'", 'set direction="up"', "direction"),
    Mistake("a scenario without its dataset", _scenario("photo/class-il@mine-1", dataset="photo"), "the data set 'photo' of the scenario is unknown", "cglsuite_datasets", "names"),
    Mistake("a scenario with classes shared between tasks", _scenario("testing-nodes/class-il@mine-1", builder="faulty_entries:sharing_classes"), "class 0 is in 2 tasks (1, 2)", "expected every class in a single task", "parts"),
    Mistake("a scenario that tests on training items", _scenario("testing-nodes/class-il@mine-1", builder="faulty_entries:overlapping_parts"), "parts of task 1 overlap", "one part", "parts"),
    Mistake("a scenario with labels in its queries", _scenario("testing-nodes/class-il@mine-1", builder="faulty_entries:labelled_queries"), "a query contains labels", "y=None", "queries"),
    Mistake("a backbone with a fixed number of outputs", _backbone("Narrow"), "returns [24, 6]", "expected [24, 7]", "shape"),
    Mistake("a backbone that returns outputs for all nodes", _backbone("AllItems"), "returns [144, 6]", "expected [24, 6]", "shape"),
    Mistake("a backbone without a head", _backbone("Headless"), "does not set self.head", "expected a module", "builds"),
    Mistake("a backbone with a head that cannot grow", _backbone("StiffHead"), "a Sequential head cannot initialise outputs", "expected 'fixed'", "growing head"),
    Mistake("dropout during evaluation", _backbone("AlwaysDrops"), "two calls of", "only while self.training", "deterministic"),
    Mistake("a tensor that stays on another device", _backbone("LooseTensor"), "scale of LooseTensor", "register_buffer", "state"),
    Mistake("a mutable default shared by all models", _backbone("SharesLayer"), "two models initialised from the same seed differ", "do not share modules", "initialisation"),
    Mistake("a layer that is never called", _backbone("Unused"), "the parameters spare.weight", "use the parameter", "gradients"),
    Mistake("a backbone that does not accept sparse features", _backbone("OnlyDense"), "fails on sparse features", "graph.dense", "sparse features"),
    Mistake("a schedule with the wrong shape", _schedule("one_row"), "an array [1, 2]", "expected [12, 2]", "weights"),
    Mistake("a schedule draws from the global generator", _schedule("global_draws"), "draws from global random states", "default_rng(seed)", "pure"),
    Mistake("an executor without run", ExecutorSpec(name="mine", summary="s", factory="faulty_networks:Runless"), "a Runless without run", "expected an executor", "interface"),
    Mistake("a factory that does not accept the options", ExecutorSpec(name="mine", summary="s", factory="faulty_networks:Forgetful", options=(Hyperparameter(name="hours", default=1.0, doc="the time"),)), "declared options (hours)", "one keyword argument per declared option", "interface"),
    Mistake("a missing notebook", NotebookSpec(name="mine", summary="s", path="faulty_networks:page.ipynb"), "page.ipynb", "cannot be loaded", "factory"),
    Mistake("a command module that prints on import", CommandSpec(name="mine", summary="s", factory="loud_command:loud"), "importing loud_command prints", "only in the function of the command", "quiet import"),
    Mistake("a function that is not a command", CommandSpec(name="mine", summary="s", factory="faulty_commands:no_command"), "'no_command' is of type function", "expected a click command", "factory"),
    Mistake("an unknown category", _method(factory="faulty_methods:Forgetful", category="replay"), "unknown category 'replay'", "expected one of Reg, Rep", "declaration"),
    Mistake("undeclared state", _method(factory="faulty_methods:Forgetful"), "resumed from the state after task 1", "in `state`", "resumable"),
    Mistake("items kept outside the metered memory", _method(factory="cheating_methods:HoardsTensors"), "outside the memory", "keep items only in self.memory", "memory budget"),
    Mistake("predictions with the wrong shape", _method(factory="faulty_methods:OneColumn"), "returned outputs of shape", "expected (", "runs"),
    Mistake("predictions that are NaN", _method(factory="faulty_methods:Endless"), "returned NaN", "guard logarithms", "runs"),
    Mistake("unseeded randomness", _method(factory="faulty_methods:Restless"), "a second run gives different losses", "self.context.generator", "repeatable"),
    Mistake("a method modifies a view's tensors", _method(factory="faulty_methods:WritesToTensors"), "of the data in place", "clone tensors", "inputs unchanged"),
    Mistake("a loss with the wrong sign", _method(factory="faulty_methods:Climbs"), "mean performance right after training", "check its sign", "learns"),
)  # fmt: skip


def said(mistake: Mistake, method_sandbox: Any = None) -> Said:
    """What an author reads of a mistake; ``method_sandbox`` is where methods run."""
    return _loaded(mistake) if isinstance(mistake.spec, str) else _checked(mistake, method_sandbox)


def _loaded(mistake: Mistake) -> Said:
    from plugin_sites import Site

    from cglsuite.host import load_catalogue

    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        try:
            site = Site(Path(folder)).add("mine", files={"mine.py": mistake.spec})
            if mistake.spec is _TWO:
                site.add("yours", files={"yours.py": _TWO})
                (collision,) = load_catalogue(entry_points=site.entry_points()).collisions
                problem, _, rest = collision.message.partition(". To resolve it, ")
                remedy, _, files = rest.partition(". The plugins are in ")
                return Said(files.rstrip("."), f"{problem} ({files.rstrip('.')})", remedy)
            (record,) = load_catalogue(entry_points=site.entry_points()).failed
        finally:
            sys.path.remove(folder)
            for module in ("mine", "yours"):
                sys.modules.pop(module, None)
    place = re.search(r"\(([\w.]+, line \d+)\)", str(record.error))
    return Said(place[1] if place else "", str(record.error), str(record.fix))


def _checked(mistake: Mistake, method_sandbox: Any) -> Said:
    record = PluginRecord(
        distribution="mine", version="1.0", entry_point="mine", module="cglsuite.testing", status="ok", source=Path(__file__)
    )
    catalogue = with_specs(_base(), [mistake.spec], record)
    report = _report(mistake, catalogue, method_sandbox)
    found = [f for f in report if f.check == mistake.check and f.status != "ok"]
    assert found, f"{mistake.title}: {[(f.check, f.message) for f in report if f.status != 'ok']}"
    return Said(report.source, found[0].message, found[0].fix)


def _base() -> Catalogue:
    if not _BASE:
        _BASE.append(tiny_catalogue())
    return _BASE[0]


_BASE: list[Catalogue] = []


def _report(mistake: Mistake, catalogue: Catalogue, method_sandbox: Any) -> Any:
    from dataclasses import replace

    from cglsuite.testing import examine
    from cglsuite.testing.findings import source_of
    from cglsuite.testing.kinds.methods import judged

    kind, name, only = mistake.spec.kind, mistake.spec.name, (mistake.check,)
    if kind != "method":
        return examine(kind, name, catalogue, only=only)
    report = judged(name, catalogue, method_sandbox, quick=True, scenarios=("testing-nodes/class-il@testing-1",), seed=20_261, only=only)
    return replace(report, source=source_of(catalogue.get("method", name)))


def _rows(method_sandbox: Any) -> Iterator[str]:
    for mistake in MISTAKES:
        one = said(mistake, method_sandbox)
        cells = (mistake.title, _plain(one.message), _plain(one.fix))
        yield "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    """One line of Markdown, without folders of this machine."""
    text = re.sub(r"(?:/[\w.+-]+)+/([\w.-]+)", r"\1", " ".join(text.split()))
    return re.sub(r"([|<>*_`\[\]])", r"\\\1", text) if text else "-"


def table(method_sandbox: Any) -> str:
    """The table of the docs."""
    head = "| mistake | message | fix |\n| --- | --- | --- |\n"
    return head + "\n".join(_rows(method_sandbox)) + "\n"


def main() -> None:
    """Write the table into the page."""
    from cglsuite.testing.judge.sandbox import Sandbox

    text = PAGE.read_text(encoding="utf-8")
    before = text.partition("| mistake |")[0]
    with Sandbox() as method_sandbox:
        PAGE.write_text(before + table(method_sandbox), encoding="utf-8")


if __name__ == "__main__":
    main()
