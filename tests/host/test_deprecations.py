"""What is deprecated still works and is told once: who, what, since when, what instead. Interfaces out of range are faults."""

from __future__ import annotations

import json
import warnings

import pytest
from plugin_sites import Site

from cglsuite.host import Catalogue, deprecations, hookspecs, loading
from cglsuite.host.deprecations import DEPRECATED, Deprecation
from cglsuite.host.hookspecs import HOOKS
from cglsuite.specs import API_VERSION, KINDS, OLDEST_API_VERSION

FIELD = Deprecation(owner="MethodSpec", name="category", since=2, instead="the field family")
ARGUMENT = Deprecation(owner="cglsuite_methods", name="level", since=3, instead="load_catalogue()", value=lambda: "NC")
SHARED = Deprecation(owner="PluginSpec", name="citation", since=2, instead="the field references")

OLD = """
from cglsuite import MethodSpec, hookimpl

@hookimpl
def cglsuite_methods():
    for name in ("one", "two"):
        yield MethodSpec(name=name, summary="s", factory="old:Old", category="replay")
    yield MethodSpec(name="new", summary="s", factory="old:load")

class Base:
    def before_task(self): ...

class Old(Base):
    pass

def load(): ...
"""
TAKING = """
from cglsuite import MethodSpec, hookimpl

@hookimpl
def cglsuite_methods(level):
    return [MethodSpec(name="taking", summary=f"for {level}", factory="taking:Old")]
"""


def told(site: Site) -> tuple[Catalogue, list[warnings.WarningMessage]]:
    """The site's catalogue and what was warned of while it loaded."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return site.catalogue(), caught


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three deprecations that there are not."""
    monkeypatch.setattr(deprecations, "DEPRECATED", (FIELD, ARGUMENT, SHARED))


def test_every_entry_of_the_table_names_something_that_there_is() -> None:
    for entry in DEPRECATED:
        owners = {*HOOKS, "Method", "PluginSpec", *(spec.__name__ for spec in KINDS.values())}
        assert entry.owner in owners
        assert OLDEST_API_VERSION < entry.since <= API_VERSION
    assert OLDEST_API_VERSION <= API_VERSION


@pytest.mark.usefixtures("table")
def test_a_deprecated_field_works_and_is_told_once_with_the_specs_that_set_it(site: Site) -> None:
    catalogue, caught = told(site.add("old", "1.4", files={"old.py": OLD}).add("healthy", "2.0"))
    assert catalogue.names("method") == ["alpha", "new", "one", "two", "zeta"]
    assert [str(w.message) for w in caught] == [
        "healthy 2.0: PluginSpec.citation (method alpha) is deprecated since plugin interface 2: use the field references",
        "old 1.4: MethodSpec.category (method one, method two) is deprecated since plugin interface 2: use the field family",
    ]
    assert {w.category for w in caught} == {DeprecationWarning}
    assert caught[1].filename == str(site.folder / "old.py")
    healthy, old = catalogue.records
    assert (healthy.status, old.status, old.error) == ("ok", "ok", None)
    assert type(old).from_json(old.as_json()) == old


@pytest.mark.usefixtures("table")
def test_the_same_process_is_told_no_more_than_once_by_default(site: Site) -> None:
    site.add("old", files={"old.py": OLD})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            site.catalogue()
    assert len(caught) == 1


@pytest.mark.usefixtures("table")
def test_a_deprecated_argument_is_still_given(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    @hookspecs.hookspec
    def cglsuite_methods(level: str) -> None: ...

    monkeypatch.setattr(hookspecs, "cglsuite_methods", cglsuite_methods)
    catalogue, (warning,) = told(site.add("taking", files={"taking.py": TAKING}))
    assert catalogue.get("method", "taking").spec.summary == "for NC"
    assert str(warning.message) == (
        "taking 1.0: argument level of cglsuite_methods is deprecated since plugin interface 3: use load_catalogue()"
    )


def test_an_argument_that_is_not_in_the_table_is_a_fault(site: Site) -> None:
    (record,) = site.add("taking", files={"taking.py": TAKING}).catalogue().records
    assert (record.status, record.notices) == ("failed", ())
    assert "bad signature: cglsuite_methods(level)" in str(record.error)


def test_a_deprecated_hook_of_a_method_is_told_when_its_factory_is_imported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Deprecation(owner="Method", name="before_task", since=2, instead="Method.begin_task")
    monkeypatch.setattr(deprecations, "DEPRECATED", (entry,))
    catalogue, caught = told(site.add("old", files={"old.py": OLD}))
    assert not caught
    with pytest.warns(
        DeprecationWarning, match=r"^old 1\.0: Method\.before_task \(method one\) is deprecated since plugin interface 2: use"
    ):
        catalogue.resolve(catalogue.get("method", "one"))
    catalogue.resolve(catalogue.get("method", "new"))


def test_warnings_as_errors_reach_the_caller_and_quarantine_nobody(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deprecations, "DEPRECATED", (FIELD,))
    site.add("old", files={"old.py": OLD})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning, match=r"old 1\.0"):
            site.catalogue()


def test_the_doctor_shows_a_notice_and_no_fault(site: Site) -> None:
    entries = (
        "from cglsuite.host import deprecations as d\n"
        "d.DEPRECATED = (d.Deprecation(owner='MethodSpec', name='category', since=2, instead='the field family'),\n"
        "    d.Deprecation(owner='Method', name='before_task', since=2, instead='Method.begin_task'))\n"
    )
    site.add("old", "1.4", files={"old.py": entries + OLD})
    done = site.run("plugins", "doctor", "--deep", COLUMNS="200")
    assert done.returncode == 0, done.stdout
    assert " ".join(done.stdout.split()).endswith(
        "ok old 1.4 "
        "notice old 1.4: MethodSpec.category (method one, method two) is deprecated since plugin interface 2: use the field family "
        "notice old 1.4: Method.before_task (method one) is deprecated since plugin interface 2: use Method.begin_task "
        "notice old 1.4: Method.before_task (method two) is deprecated since plugin interface 2: use Method.begin_task "
        "1 plugin examined, no faults"
    )
    (record,) = [r for r in json.loads(site.run("plugins", "doctor", "--json").stdout) if r["distribution"] == "old"]
    assert (len(record["notices"]), record["faults"]) == (1, [])


def test_an_older_interface_works_while_it_is_supported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "API_VERSION", 4)
    monkeypatch.setattr(loading, "OLDEST_API_VERSION", 2)
    for version in (1, 2, 3, 4, 5):
        hooks = (
            "from cglsuite import MethodSpec, hookimpl\n@hookimpl\ndef cglsuite_methods():\n"
            f"    return [MethodSpec(name='m{version}', summary='s', factory='a:b', api_version={version})]\n"
        )
        site.add(f"made-for-{version}", files={f"made_for_{version}.py": hooks})
    catalogue = site.catalogue()
    assert catalogue.names("method") == ["m2", "m3", "m4"]
    old, new = catalogue.failed
    assert old.error == "MethodSpec 'm1' of cglsuite_methods was made for plugin interface 1; this cglsuite supports 2 to 4"
    assert old.fix == "install a newer release of made-for-1, or a version of cglsuite that has interface 1"
    assert new.error == "MethodSpec 'm5' of cglsuite_methods needs plugin interface 5; this cglsuite has 4"
    assert new.fix == "upgrade cglsuite, or install a release of made-for-5 that was made for interface 4"
