"""What catalogues and entries show of themselves in a notebook, and their kinds as mappings."""

from __future__ import annotations

import pytest
from html_shape import EVIL, EVIL_SHOWN, Shape
from plugin_sites import Site

from cglsuite.base.errors import CollisionError, UnknownNameError
from cglsuite.base.markup import MAX_ROWS
from cglsuite.specs import KINDS, MethodSpec


def hostile(n: int = 1) -> dict[str, str]:
    """A plugin whose texts are markup: ``n`` methods, a scenario of a dataset."""
    return {
        "evil.py": f"from cglsuite import *\nE = {EVIL!r}\n"
        "@hookimpl\ndef cglsuite_methods():\n"
        "    return [MethodSpec(name=f'm{i:04}', summary=E, factory='evil:x', citation=E, category=E,\n"
        f"        hyperparameters=(Hyperparameter(name='a', default=E, doc=E, choices=(E,)),)) for i in range({n})]\n"
        "@hookimpl\ndef cglsuite_datasets():\n    return [DatasetSpec(name='d', summary=E, factory='evil:x', licence=E, home=E)]\n"
        "@hookimpl\ndef cglsuite_metrics():\n    return [MetricSpec(name='q', summary=E, factory='evil:x', formula=E, direction='up')]\n"
        "@hookimpl\ndef cglsuite_scenarios():\n"
        "    return [ScenarioSpec(name='d/task-il@e-1', summary=E, dataset='d', setting='task-il', note=E)]\n"
    }


@pytest.mark.parametrize("name", ["m0000", "d", "q", "d/task-il@e-1"])
def test_texts_of_plugins_are_only_ever_text(site: Site, name: str) -> None:
    catalogue = site.add("evil", files=hostile()).catalogue()
    entry = next(e for kind in KINDS for e in catalogue.entries(kind) if e.name == name)
    for source in (entry._repr_html_(), entry.spec._repr_html_(), getattr(catalogue, f"{entry.kind}s")._repr_html_()):
        shape = Shape(source)
        assert not {"img", "script", "a"} & set(shape.tags)
        assert "\x1b" not in source
        assert EVIL_SHOWN in shape.text
    Shape(catalogue._repr_html_())


def test_an_entry_shows_what_the_command_line_shows(site: Site) -> None:
    catalogue = site.add("healthy", "3.1").catalogue()
    shown = Shape(catalogue.methods["zeta"]._repr_html_()).text
    for message in ("method zeta", "comes first here, last when sorted", "healthy 3.1", "strength", "0.5", ">= 0", "how strongly the old"):
        assert message in shown
    printed = site.run("show", "method", "zeta").stdout
    for message in shown.splitlines():
        assert message in printed or message in {"setting", "type", "default", "allowed", "meaning", "hyperparameters"}
    scenario = Shape(catalogue.scenarios["tiny/task-il@test-1"]._repr_html_()).text
    assert "scenario.edge_policy" in scenario
    assert "training.epochs" in scenario


def test_a_catalogue_shows_kinds_faults_and_collisions(site: Site) -> None:
    catalogue = site.add("healthy").add("sys-exit", "0.2").add("clash-a").add("clash-b").catalogue()
    shown = Shape(catalogue._repr_html_()).text
    assert "Catalogue of 4 plugins" in shown
    assert "alpha, own-b, zeta" in shown or "alpha, own-a, own-b, zeta" in shown
    assert "sys-exit 0.2 is quarantined: SystemExit: 3" in shown
    assert "method 'same' is provided by 2 plugins" in shown


def test_a_long_list_is_cut_and_counted(site: Site) -> None:
    catalogue = site.add("evil", files=hostile(MAX_ROWS + 40)).catalogue()
    shape = Shape(catalogue.methods._repr_html_())
    assert shape.tags.count("tr") == MAX_ROWS + 1
    assert f"and 40 more, {MAX_ROWS + 40} in all" in shape.text
    assert len(catalogue._repr_html_()) < 5000


def test_kinds_are_read_only_mappings_with_completion(site: Site) -> None:
    catalogue = site.add("healthy").add("clash-a").add("clash-b").catalogue()
    for kind in KINDS:
        view = getattr(catalogue, f"{kind}s")
        assert list(view) == catalogue.names(kind) == view._ipython_key_completions_()
        assert list(view.values()) == catalogue.entries(kind)
        assert len(view) == len(catalogue.names(kind))
        assert f"{kind}s" in dir(catalogue)
    methods = catalogue.methods
    assert isinstance(methods["zeta"].spec, MethodSpec)
    assert "zeta" in methods
    assert "same" not in methods  # two plugins provide it
    assert methods.get("zetta") is None
    with pytest.raises(UnknownNameError, match=r"unknown method 'zetta'. Did you mean 'zeta'\?"):
        methods["zetta"]
    with pytest.raises(CollisionError, match="provided by 2 plugins"):
        methods["same"]
    with pytest.raises(TypeError):
        methods["new"] = methods["zeta"]  # type: ignore[index]
    assert repr(methods).startswith("<")
    with pytest.raises(AttributeError):
        catalogue.methode  # type: ignore[attr-defined]  # noqa: B018


def test_ipython_completes_kinds_and_names(site: Site) -> None:
    from IPython.core.completer import IPCompleter, provisionalcompleter

    names = {"catalogue": site.add("healthy").catalogue()}
    without_shell = ["IPCompleter.magic_matcher", "IPCompleter.magic_config_matcher", "IPCompleter.magic_color_matcher"]
    completer = IPCompleter(namespace=names, use_jedi=False, disable_matchers=without_shell)
    with provisionalcompleter():
        assert [c.text for c in completer.completions('catalogue.methods["ze', 20)] == ["zeta"]
        assert [c.text for c in completer.completions("catalogue.me", 12)] == [
            ".measure",
            ".measures",
            ".method",
            ".methods",
            ".metric",
            ".metrics",
        ]


def test_showing_imports_no_torch(site: Site) -> None:
    done = site.add("healthy").python(
        "-c",
        "import sys\nfrom cglsuite import load_catalogue\nc = load_catalogue()\n"
        "shown = c._repr_html_() + c.methods._repr_html_() + c.methods['zeta']._repr_html_() + c.methods['zeta'].spec._repr_html_()\n"
        "print(len(shown) > 500, 'torch' in sys.modules, 'pandas' in sys.modules, 'IPython' in sys.modules)",
    )
    assert done.stdout.split() == ["True", "False", "False", "False"], done.stderr
