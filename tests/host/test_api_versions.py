"""Plugins made for an interface out of range are faults that name both versions; an older interface works while it is supported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from plugin_sites import Site

from cglsuite.base.errors import PluginError
from cglsuite.graphs.files.named import named
from cglsuite.host import load_catalogue, loading

TAKING = """
from cglsuite import MethodSpec, hookimpl

@hookimpl
def cglsuite_methods(level):
    return [MethodSpec(name="taking", summary=f"for {level}", factory="taking:Old")]
"""


def test_a_hook_that_takes_an_argument_is_a_fault(site: Site) -> None:
    (record,) = site.add("taking", files={"taking.py": TAKING}).catalogue().records
    assert record.status == "failed"
    assert "bad signature: cglsuite_methods(level)" in str(record.error)


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
    assert (
        old.error == "MethodSpec 'm1' of cglsuite_methods was written for plugin interface 1, but this cglsuite supports 2 to 4 "
        "(made_for_1.py, line 2)"
    )
    assert old.fix == "install a newer release of made-for-1, or a version of cglsuite that has interface 1"
    assert (
        new.error
        == "MethodSpec 'm5' of cglsuite_methods needs plugin interface 5, but this cglsuite has interface 4 (made_for_5.py, line 2)"
    )
    assert new.fix == "upgrade cglsuite, or install a release of made-for-5 that supports interface 4"


FROM_THE_FUTURE = {
    "a new keyword": "from cglsuite import MethodSpec, hookimpl\n{constant}\n@hookimpl\ndef cglsuite_methods():\n"
    "    return [MethodSpec(name='m', summary='s', factory='a:b', vibrancy='high')]\n",
    "a new name": "{constant}\nfrom cglsuite import VibrancySpec, hookimpl\n",
    "a new hook": "from cglsuite import hookimpl\n{constant}\n@hookimpl\ndef cglsuite_vibrancies():\n    return []\n",
}


@pytest.mark.parametrize("what", FROM_THE_FUTURE)
@pytest.mark.parametrize("constant", ["API_VERSION = 2", "API_VERSION: int = 2"])
def test_a_module_constant_is_read_before_what_only_a_newer_suite_has(what: str, constant: str, site: Site) -> None:
    files = {"ahead.py": FROM_THE_FUTURE[what].format(constant=constant)}
    (record,) = site.add("ahead", files=files).catalogue().failed
    assert record.error == "ahead needs plugin interface 2, but this cglsuite has interface 1"
    assert record.fix == "upgrade cglsuite, or install a release of ahead that supports interface 1"
    assert "ahead" not in sys.modules


@pytest.mark.parametrize("what", FROM_THE_FUTURE)
def test_without_a_newer_interface_the_fault_itself_is_reported(what: str, site: Site) -> None:
    (record,) = site.add("ahead", files={"ahead.py": FROM_THE_FUTURE[what].format(constant="API_VERSION = 1")}).catalogue().failed
    assert "interface" not in str(record.error)
    assert "vibranc" in str(record.error).lower()


def test_no_hook_is_called_when_the_constant_is_out_of_range(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "API_VERSION", 3)
    monkeypatch.setattr(loading, "OLDEST_API_VERSION", 2)
    text = "import sys\nfrom cglsuite import hookimpl\nAPI_VERSION = {}\n@hookimpl\ndef cglsuite_methods():\n    sys.called_ahead = True\n"
    (old,) = site.add("ahead", files={"ahead.py": text.format(1)}).catalogue().failed
    assert old.error == "ahead was written for plugin interface 1, but this cglsuite supports 2 to 3"
    assert old.fix == "install a newer release of ahead, or a version of cglsuite that has interface 1"
    assert not hasattr(sys, "called_ahead")


@pytest.mark.parametrize("given", ["0", "'1'", "True", "None"])
def test_a_constant_that_is_no_interface_is_a_fault(given: str, site: Site) -> None:
    text = f"from cglsuite import hookimpl\nAPI_VERSION = {given}\n@hookimpl\ndef cglsuite_methods():\n    return []\n"
    (record,) = site.add("ahead", files={"ahead.py": text}).catalogue().failed
    assert "is not a positive whole number" in str(record.error)
    assert record.fix == "write API_VERSION = 1, a plain number"


def test_a_plugin_in_a_class_states_its_interface_there(site: Site) -> None:
    text = (
        "from cglsuite import MethodSpec, hookimpl\nclass Hooks:\n    API_VERSION = 2\n    @staticmethod\n    @hookimpl\n"
        "    def cglsuite_methods():\n        return [MethodSpec(name='m', summary='s', factory='a:b')]\nhooks = Hooks()\n"
    )
    (record,) = site.add("ahead", files={"ahead.py": text}, entry_points={"plugin": "ahead:hooks"}).catalogue().failed
    assert record.error == "ahead needs plugin interface 2, but this cglsuite has interface 1"


def test_a_plugin_file_states_its_interface_too(tmp_path: Path) -> None:
    file = tmp_path / "ahead_in_a_file.py"
    file.write_text(FROM_THE_FUTURE["a new keyword"].format(constant="API_VERSION = 2"))
    with named(plugins=[file]), pytest.raises(PluginError, match="ahead_in_a_file.py needs plugin interface 2, but this cglsuite has"):
        load_catalogue()
