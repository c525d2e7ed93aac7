"""The catalogue: sorted, collisions withheld, overriding only on purpose, lazy factories with errors that name the provider."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from plugin_sites import Site

from cglsuite.base.errors import CollisionError, PluginError, UnknownNameError
from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.specs import KINDS, MethodSpec


def override(name: str, replaces: str | None) -> dict[str, str]:
    """A module that provides the method ``same``."""
    spec = f"MethodSpec(name='same', summary='of {name}', factory='{name}:build', replaces={replaces!r})"
    return {f"{name}.py": f"from cglsuite import MethodSpec, hookimpl\n@hookimpl\ndef cglsuite_methods():\n    return [{spec}]\n"}


def test_entries_are_sorted_whatever_the_order_of_registration(site: Site) -> None:
    catalogue = site.add("healthy").add("clash-b").catalogue()
    assert catalogue.names("method") == ["alpha", "own-b", "same", "zeta"]
    assert [e.name for e in catalogue.entries("method")] == catalogue.names("method")
    assert [e.provider for e in catalogue.entries("method")] == ["healthy 1.0", "clash-b 1.0", "clash-b 1.0", "healthy 1.0"]
    reversed_order = load_catalogue(entry_points=reversed(site.entry_points()))
    assert [e.name for e in reversed_order.entries("method")] == catalogue.names("method")
    assert [r.distribution for r in reversed_order.records] == ["clash-b", "healthy"]


def test_every_kind_is_listed(site: Site) -> None:
    catalogue = site.add("healthy").catalogue()
    assert {kind: catalogue.names(kind) for kind in KINDS} == {
        "dataset": ["tiny"],
        "scenario": ["tiny/task-il@test-1"],
        "backbone": ["line"],
        "method": ["alpha", "zeta"],
        "pretraining": ["hides"],
        "measure": ["share"],
        "metric": ["mean"],
        "schedule": ["even"],
        "encoder": ["blank"],
        "notebook": ["look"],
        "executor": ["here"],
        "command": ["wave"],
    }
    assert repr(catalogue).startswith("<Catalogue of 1 plugins: 1 datasets, 1 scenarios")


def test_specs_are_looked_up_with_their_type(site: Site) -> None:
    catalogue = site.add("healthy").add("clash-a").add("clash-b").catalogue()
    found = (
        catalogue.scenario("tiny/task-il@test-1"),
        catalogue.dataset("tiny"),
        catalogue.backbone("line"),
        catalogue.method("zeta"),
        catalogue.metric("mean"),
        catalogue.schedule("even"),
    )
    for spec in found:
        assert spec is catalogue.get(spec.kind, spec.name).spec
        assert type(spec) is KINDS[spec.kind]
    assert found[3].hyperparameters[0].name == "strength"
    assert catalogue.specs(MethodSpec) == {name: catalogue.get("method", name).spec for name in ("alpha", "own-a", "own-b", "zeta")}
    with pytest.raises(UnknownNameError, match="Did you mean 'zeta'"):
        catalogue.method("zetta")
    with pytest.raises(CollisionError, match=r"provided by 2 plugins: clash-a 1.0, clash-b 1.0"):
        catalogue.method("same")


def test_a_collision_is_withheld_and_names_every_provider_and_version(site: Site) -> None:
    catalogue = site.add("clash-a", "1.4").add("clash-b", "0.2").add("healthy").catalogue()
    assert catalogue.names("method") == ["alpha", "own-a", "own-b", "zeta"]
    with pytest.raises(CollisionError) as raised:
        catalogue.get("method", "same")
    assert str(raised.value) == (
        "method 'same' is provided by 2 plugins: clash-a 1.4, clash-b 0.2. "
        "To resolve it, keep one: block the others (CGLSUITE_PLUGINS_BLOCK=clash-b) or uninstall them; "
        'or, if the override is intended, set replaces="clash-a" in the MethodSpec of clash-b. '
        f"The plugins are in {site.folder / 'clash_a.py'} and {site.folder / 'clash_b.py'}."
    )
    assert raised.value.exit_code == 4
    assert [(c.kind, c.name) for c in catalogue.collisions] == [("method", "same")]
    assert [r.status for r in catalogue.records] == ["ok", "ok", "ok"]


def test_a_collision_is_fatal_in_strict_mode(site: Site) -> None:
    site.add("clash-a").add("clash-b")
    with pytest.raises(CollisionError, match=r"clash-a 1.0, clash-b 1.0"):
        site.catalogue(strict=True)


def test_blocking_one_side_resolves_a_collision(site: Site) -> None:
    catalogue = site.add("clash-a").add("clash-b").catalogue(block=["clash-a"], strict=True)
    assert catalogue.get("method", "same").record.distribution == "clash-b"


def test_the_same_name_in_two_kinds_is_no_collision(site: Site) -> None:
    dataset = (
        "from cglsuite import DatasetSpec, hookimpl\n@hookimpl\ndef cglsuite_datasets():\n"
        "    return [DatasetSpec(name='same', summary='x', factory='a:b')]\n"
    )
    catalogue = site.add("clash-a").add("other", files={"other.py": dataset}).catalogue(strict=True)
    assert catalogue.names("dataset") == ["same"]


def test_replaces_overrides_on_purpose(site: Site) -> None:
    catalogue = site.add("clash-a").add("overrides").catalogue(strict=True)
    assert catalogue.get("method", "same").record.distribution == "overrides"
    assert catalogue.names("method") == ["own-a", "same"]


def test_replaces_of_a_distribution_that_is_absent_does_no_harm(site: Site) -> None:
    assert site.add("overrides").catalogue(strict=True).get("method", "same").record.distribution == "overrides"


def test_replaces_does_not_override_a_third_provider(site: Site) -> None:
    catalogue = site.add("clash-a").add("clash-b").add("overrides").catalogue()
    with pytest.raises(CollisionError, match=r"provided by 2 plugins: clash-b 1.0, overrides 1.0\."):
        catalogue.get("method", "same")


def test_a_chain_of_overrides_ends_at_its_last_link_and_a_circle_collides(site: Site) -> None:
    site.add("clash-a").add("second", files=override("second", "clash-a")).add("third", files=override("third", "second"))
    assert site.catalogue(strict=True).get("method", "same").record.distribution == "third"
    site.add("clash-a", files=override("clash_a", "third"))
    with pytest.raises(CollisionError, match=r"clash-a 1.0, second 1.0, third 1.0"):
        reloaded(site).get("method", "same")


def reloaded(site: Site) -> Catalogue:
    """The catalogue after the modules have changed on disk."""
    for name in ("clash_a", "second", "third"):
        sys.modules.pop(name)
    sys.path_importer_cache.clear()
    return site.catalogue()


def test_two_entry_points_of_one_distribution_collide_by_entry_point(site: Site) -> None:
    files = {**override("one", None), **override("two", None)}
    catalogue = site.add("pair", "5", files=files, entry_points={"a": "one", "b": "two"}).catalogue()
    with pytest.raises(
        CollisionError, match=r"pair 5 \(entry point a\), pair 5 \(entry point b\). To resolve it, use another release of pair"
    ):
        catalogue.get("method", "same")


def test_unknown_names_suggest_the_nearest(site: Site) -> None:
    catalogue = site.add("healthy").catalogue()
    with pytest.raises(UnknownNameError, match=r"unknown method 'alpah'\. Did you mean 'alpha'\?"):
        catalogue.get("method", "alpah")
    with pytest.raises(UnknownNameError, match=r"unknown kind 'methods'\. Did you mean 'method'\?"):
        catalogue.names("methods")


def test_an_unknown_name_says_that_plugins_are_out_of_use(site: Site) -> None:
    catalogue = site.add("healthy").add("sys-exit").add("clash-a").catalogue(block=["clash-a"])
    with pytest.raises(UnknownNameError, match=r"1 plugin is quarantined and 1 plugin is blocked: see `cglsuite plugins`"):
        catalogue.get("method", "own-a")


def test_resolve_imports_the_factory_lazily(site: Site) -> None:
    package = {
        "lazy/__init__.py": "",
        "lazy/plugin.py": override("lazy", None)["lazy.py"].replace("lazy:build", "lazy.heavy:build"),
        "lazy/heavy.py": "def build(): return 7",
    }
    catalogue = site.add("lazy", files=package, entry_points={"p": "lazy.plugin"}).catalogue()
    assert "lazy.heavy" not in sys.modules
    entry = catalogue.get("method", "same")
    assert catalogue.resolve(entry)() == 7
    assert catalogue.resolve(entry.spec) is catalogue.resolve(entry)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (
            "method",
            "alpha",
            r"method 'alpha' of healthy 1\.0: 'healthy:lod' cannot be loaded: module 'healthy' has no 'lod'; did you mean 'load'\?",
        ),
        (
            "executor",
            "here",
            r"executor 'here' of healthy 1\.0: 'no_such_module_anywhere:Here' .*Install the distribution that provides the module 'no_such",
        ),
        ("notebook", "look", r"notebook 'look' of healthy 1\.0: 'healthy_notebooks:look\.ipynb' cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_factory_that_cannot_be_loaded_names_spec_provider_and_remedy(site: Site, kind: str, name: str, message: str) -> None:
    catalogue = site.add("healthy").catalogue()
    with pytest.raises(PluginError, match=message):
        catalogue.resolve(catalogue.get(kind, name))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys; sys.exit(1)", "SystemExit: 1"),
        ("raise RuntimeError('no licence')", r"RuntimeError: no licence \(target.py, line 1\)"),
        ("build = 3", "'build' is of type int, which is not callable"),
    ],
)
def test_a_factory_module_may_fail_in_any_way(site: Site, source: str, message: str) -> None:
    files = {"user.py": override("target", None)["target.py"], "target.py": source}
    catalogue = site.add("user", "8.1", files=files).catalogue()
    with pytest.raises(PluginError, match=f"method 'same' of user 8.1: .*{message}.*Reinstall user"):
        catalogue.resolve(catalogue.get("method", "same"))


def test_a_spec_of_nobody_resolves_and_says_so_when_it_fails(site: Site) -> None:
    assert load_catalogue(entry_points=[]).resolve(MethodSpec(name="m", summary="s", factory="os.path:join"))("a", "b") == str(
        Path("a", "b")
    )
    with pytest.raises(PluginError, match="method 'm' of no plugin of this catalogue"):
        load_catalogue(entry_points=[]).resolve(MethodSpec(name="m", summary="s", factory="os.path:jion"))


@pytest.mark.parametrize("place", ["nb_package/_notebooks/look.ipynb", "notebooks/look.ipynb"])
def test_a_notebook_is_found_in_the_package_and_beside_an_editable_one(site: Site, place: str) -> None:
    plugin = (
        "from cglsuite import NotebookSpec, hookimpl\n@hookimpl\ndef cglsuite_notebooks():\n"
        "    return [NotebookSpec(name='look', summary='x', path='nb_package:_notebooks/look.ipynb')]\n"
    )
    catalogue = site.add("nb", files={"nb_package/__init__.py": plugin, place: "{}"}, entry_points={"p": "nb_package"}).catalogue()
    assert catalogue.resolve(catalogue.get("notebook", "look")) == site.folder / place


def test_catalogues_are_independent_objects(site: Site) -> None:
    full = site.add("healthy").add("clash-a").catalogue()
    part = site.catalogue(block=["clash-a"])
    assert "own-a" in full.names("method")
    assert "own-a" not in part.names("method")
    full.names("method").clear()
    full.records.clear()
    assert full.names("method")
    assert full.records


def test_describe_is_plain_json_with_the_promised_keys(site: Site) -> None:
    catalogue = site.add("healthy", "4.0").catalogue()
    shown: dict[str, Any] = catalogue.get("method", "zeta").describe()
    assert list(shown)[:5] == ["name", "kind", "provider", "version", "summary"]
    assert (shown["name"], shown["kind"], shown["provider"], shown["version"]) == ("zeta", "method", "healthy", "4.0")
    assert shown["hyperparameters"][0] == {
        "name": "strength",
        "type": "float",
        "default": 0.5,
        "doc": "how strongly the old weights pull",
        "choices": [],
        "implicit": False,
        "minimum": 0,
        "maximum": None,
        "above": None,
        "optional": False,
        "effect": "",
    }
    scenario = catalogue.get("scenario", "tiny/task-il@test-1").describe()
    assert scenario["training"]["epochs"] == 3
    assert scenario["method_defaults"] == {"zeta": {"method.strength": 2.0}}
    assert isinstance(catalogue.get("metric", "mean"), Entry)
