"""Each way in which a plugin can be at fault: it is quarantined with its error and fix, and everything else works."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from plugin_sites import Site

from cglsuite import load_catalogue
from cglsuite.base.errors import PluginError, UnknownNameError
from cglsuite.specs import KINDS

FAULTS = {
    "import-error": (
        r"ModuleNotFoundError: No module named 'a_module_that_is_not_there' \(import_error.py, line 3\)",
        r"install the package that provides",
    ),
    "sys-exit": (r"SystemExit: 3 \(sys_exit.py, line 5\)", r"must not exit the process"),
    "raises-in-hook": (r"cglsuite_methods raised ZeroDivisionError: one over nothing \(raises_in_hook.py, line 18\)", r"another version"),
    "recursion": (r"cglsuite_methods raised RecursionError", r"another version"),
    "rubbish": (r"cglsuite_methods returned int 42 at position 1: expected MethodSpec", r"tell its authors"),
    "bad-signature": (r"bad signature: cglsuite_methods\(catalogue.*catalogue", r"without arguments"),
    "hook-typo": (r"unknown hook cglsuite_method: did you mean cglsuite_methods\?", r"rename it"),
    "forgotten-marker": (r"cglsuite_methods is not marked as a hook", r"put @hookimpl .* above def cglsuite_methods"),
    "too-new": (r"MethodSpec 'futuristic' of cglsuite_methods needs plugin interface 99, but this cglsuite has", r"upgrade cglsuite"),
    "twice": (r"cglsuite_metrics returns the name 'double' twice", r"must give each metric a unique name"),
    "no-hooks": (r"implements no hook", r"from cglsuite import hookimpl"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_plugin_at_fault_is_quarantined_and_the_others_work(site: Site, name: str) -> None:
    error, fix = FAULTS[name]
    path_before = list(sys.path)
    catalogue = site.add(name, "2.3").add("healthy").catalogue()
    good, bad = sorted(catalogue.records, key=lambda r: r.distribution != "healthy")
    assert good.status == "ok"
    assert catalogue.names("method") == ["alpha", "zeta"]
    assert (bad.distribution, bad.version, bad.status, bad.hooks, bad.provides) == (name, "2.3", "failed", (), {})
    assert re.search(error, str(bad.error)), bad.error
    assert re.search(fix, str(bad.fix)), bad.fix
    assert bad.details
    assert catalogue.failed == [bad]
    assert name.replace("-", "_") not in sys.modules
    assert sys.path == path_before


def test_nothing_of_a_plugin_that_fails_late_is_in_the_catalogue(site: Site) -> None:
    catalogue = site.add("raises-in-hook").add("rubbish").catalogue()
    assert catalogue.names("dataset") == catalogue.names("method") == []
    with pytest.raises(UnknownNameError, match="2 plugins are quarantined"):
        catalogue.get("dataset", "orphan")


def test_all_faults_at_once_leave_the_healthy_plugin_alone(site: Site) -> None:
    for name in FAULTS:
        site.add(name)
    catalogue = site.add("healthy").catalogue()
    assert [r.distribution for r in catalogue.records if r.status == "ok"] == ["healthy"]
    assert len(catalogue.failed) == len(FAULTS)


def test_strict_mode_makes_faults_fatal_and_names_them_all(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("healthy").add("sys-exit", "2.0").add("hook-typo")
    with pytest.raises(PluginError, match=r"(?s)plugin hook-typo 1.0 failed: .*plugin sys-exit 2.0 failed: SystemExit") as raised:
        site.catalogue(strict=True)
    assert raised.value.exit_code == 4
    monkeypatch.setenv("CGLSUITE_STRICT", "1")
    with pytest.raises(PluginError):
        site.catalogue()
    monkeypatch.setenv("CGLSUITE_STRICT", "0")
    assert site.catalogue().names("method") == ["alpha", "zeta"]


def test_a_users_interrupt_goes_through_and_leaves_no_module(site: Site) -> None:
    site.add(
        "interrupted", files={"interrupted/__init__.py": "", "interrupted/plugin.py": "raise KeyboardInterrupt"}, entry_points=INTERRUPTED
    )
    with pytest.raises(KeyboardInterrupt):
        site.catalogue()
    assert not [name for name in sys.modules if name.startswith("interrupted")]


INTERRUPTED = {"plugin": "interrupted.plugin"}


def test_half_imported_packages_are_taken_back_and_shared_ones_stay(site: Site) -> None:
    files = {
        "half/__init__.py": "",
        "half/good.py": "import half.shared",
        "half/shared.py": "import helpful_library",
        "half/plugin.py": "import half.good\nraise RuntimeError('late')",
        "helpful_library.py": "",
    }
    catalogue = site.add("half", files=files, entry_points={"plugin": "half.plugin"}).catalogue()
    assert catalogue.failed[0].source == site.folder / "half"
    assert not [name for name in sys.modules if name.split(".")[0] == "half"]
    assert "helpful_library" in sys.modules


def test_a_second_plugin_of_a_package_fails_without_harm_to_the_first(site: Site) -> None:
    hooks = (
        "from cglsuite import MethodSpec, hookimpl\n@hookimpl\ndef cglsuite_methods():\n"
        "    return [MethodSpec(name='first', summary='x', factory='pair.a:f')]\n"
    )
    files = {"pair/__init__.py": "", "pair/a.py": hooks, "pair/b.py": "import pair.c\n1 / 0", "pair/c.py": ""}
    catalogue = site.add("pair", files=files, entry_points={"a": "pair.a", "b": "pair.b"}).catalogue()
    assert [(r.entry_point, r.status) for r in catalogue.records] == [("a", "ok"), ("b", "failed")]
    assert "pair.a" in sys.modules
    assert "pair.b" not in sys.modules
    assert "pair.c" not in sys.modules
    assert not hasattr(sys.modules["pair"], "c")


def test_modules_of_the_standard_library_and_the_core_are_never_taken_back(site: Site) -> None:
    sys.modules.pop("colorsys", None)
    catalogue = site.add("odd", files={}, entry_points={"a": "colorsys", "b": "cglsuite.specs"}).catalogue()
    assert [r.status for r in catalogue.records] == ["failed", "failed"]
    assert "colorsys" in sys.modules
    assert "cglsuite.specs" in sys.modules


def test_what_a_plugin_prints_goes_to_stderr(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.add("chatty").catalogue()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "hello from the plugin\nasked\n"


def hook(body: str, name: str = "cglsuite_methods", marker: str = "@hookimpl") -> dict[str, str]:
    """A module with one hook."""
    return {"custom.py": f"from cglsuite import *\nfrom typing import Any\n{marker}\ndef {name}():\n    {body}\n"}


SPEC = "MethodSpec(name='m', summary='s', factory='a:b'"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("return None", r"cglsuite_methods returned None: expected an iterable of MethodSpec"),
        ("return 'ewc'", r"returned str 'ewc': expected an iterable"),
        ("return 3", r"returned int 3: expected an iterable"),
        (f"return {SPEC})", r"returned a single MethodSpec: expected an iterable"),
        ("return [MethodSpec]", r"returned the class MethodSpec at position 0: expected MethodSpec"),
        (
            "return [DatasetSpec(name='d', summary='s', factory='a:b')]",
            r"returned DatasetSpec 'd' at position 0: expected MethodSpec",
        ),
        ("return [MethodSpec(name='Not Good', summary='s', factory='a:b')]", r"raised SpecError: MethodSpec name 'Not Good'"),
        (
            "return [MethodSpec(name='m', summary='s', factory='a:b', colour='red')]",
            r"raised TypeError: .*unexpected keyword argument 'colour'",
        ),
        (f"return [{SPEC}, levels=['NC'])]", r"MethodSpec 'm' of cglsuite_methods: unhashable type: 'list'"),
        (f"return [{SPEC}, category=object())]", r"object has no canonical form"),
        (f"return [{SPEC}, citation=object())]", r"SpecError: MethodSpec 'm': citation <object .*> is neither a string nor a Citation"),
        (f"return [{SPEC}, hyperparameters=Hyperparameter(name='a', default=1, doc='d'))]", r"hyperparameters is Hyperparameter"),
        (f"return [{SPEC}, hyperparameters=(Hyperparameter(name='a', default=1, doc='d'),) * 2)]", r"hyperparameters declares a twice"),
        (f"return [{SPEC}, replaces='custom')]", r"replaces its own distribution"),
        (f"return [{SPEC}, replaces=3)]", r"replaces is int 3"),
        (f"return [{SPEC}, api_version='1')]", r"api_version str '1' is not a positive whole number"),
        (f"return iter(lambda: {SPEC}), 0)", r"yields more than 10000 specs: it may be an infinite generator"),
        (
            "class Loose(MethodSpec):\n        def __post_init__(self): pass\n    return [Loose(name=3, summary='s', factory='a:b')]",
            r"name 3: expected",
        ),
        (
            "class Mute(Exception):\n        def __str__(self): raise ValueError\n    raise Mute",
            r"raised Mute: \(its message cannot be shown\)",
        ),
        (
            "class Odd:\n        def __repr__(self): raise SystemExit\n    return [Odd()]",
            r"returned Odd \(which cannot be shown\) at position 0: expected MethodSpec",
        ),
        ("raise SystemExit", r"cglsuite_methods raised SystemExit"),
    ],
)
def test_whatever_a_hook_does_is_quarantined_by_name(site: Site, body: str, error: str) -> None:
    (record,) = site.add("custom", files=hook(body)).catalogue().records
    assert record.status == "failed"
    assert re.search(error, str(record.error)), record.error
    assert "\n" not in str(record.error)
    assert record.fix


@pytest.mark.parametrize(
    ("name", "marker", "error"),
    [
        ("datasets", "@hookimpl", r"unknown hook datasets: did you mean cglsuite_datasets\?"),
        ("cglsuite_methods", "@hookimpl(hookwrapper=True)", r"wrapper"),
        ("anything", "@hookimpl(specname='cglsuite_metric')", r"unknown hook cglsuite_metric: did you mean cglsuite_metrics\?"),
    ],
)
def test_hooks_that_would_be_passed_over_in_silence_are_faults(site: Site, name: str, marker: str, error: str) -> None:
    (record,) = site.add("custom", files=hook("yield", name, marker)).catalogue().records
    assert record.status == "failed"
    assert re.search(error, str(record.error)), record.error


def test_a_name_given_by_two_functions_of_one_hook_is_the_plugins_fault(site: Site) -> None:
    files = hook(f"return [{SPEC})]")
    files["custom.py"] += f"@hookimpl(specname='cglsuite_methods')\ndef more():\n    return [{SPEC})]\n"
    (record,) = site.add("custom", files=files).catalogue().records
    assert record.error == "cglsuite_methods returns the name 'm' twice (custom.py, line 6)"


def test_an_optional_hook_of_a_later_version_is_no_fault(site: Site) -> None:
    files = hook("return []")
    files["custom.py"] += "@hookimpl(optionalhook=True)\ndef cglsuite_schedulers():\n    return [1]\n"
    (record,) = site.add("custom", files=files).catalogue().records
    assert (record.status, record.hooks) == ("ok", ("cglsuite_methods",))


def test_a_hook_may_be_a_method_of_an_object(site: Site) -> None:
    source = (
        "from cglsuite import *\nclass P:\n    @hookimpl\n    def cglsuite_methods(self):\n        return [" + SPEC + ")]\nplugin = P()\n"
    )
    catalogue = site.add("custom", files={"custom.py": source}, entry_points={"plugin": "custom:plugin"}).catalogue()
    assert catalogue.names("method") == ["m"]
    assert catalogue.records[0].module == "custom"


def test_an_entry_point_to_a_module_that_is_not_there_says_reinstall(site: Site) -> None:
    (record,) = site.add("ghost", files={}, entry_points={"plugin": "ghost.plugin"}).catalogue().records
    assert "No module named 'ghost'" in str(record.error)
    assert "reinstall ghost: its entry point 'plugin' refers to a missing module" in str(record.fix)


def test_a_syntax_error_names_file_and_line(site: Site) -> None:
    (record,) = site.add("custom", files={"custom.py": "x = 1\ndef broken(:\n"}).catalogue().records
    assert re.search(r"SyntaxError: .* \(custom.py, line 2\)", str(record.error))


def test_records_survive_json(site: Site) -> None:
    catalogue = site.add("healthy").add("sys-exit").catalogue(block=["nothing"])
    for record in catalogue.records:
        assert type(record).from_json(record.as_json()) == record


def test_a_loaded_plugin_is_recorded_with_its_hooks_names_and_source(site: Site) -> None:
    package = {"deep/__init__.py": "", "deep/inner/__init__.py": "", "deep/inner/plugin.py": hook(f"return [{SPEC})]")["custom.py"]}
    site.add("healthy", "3.2.1").add("deep", files=package, entry_points={"p": "deep.inner.plugin"})
    deep, healthy = site.catalogue().records
    assert healthy.version == "3.2.1"
    assert len(healthy.hooks) == len(KINDS)
    assert list(healthy.hooks) == sorted(healthy.hooks)
    assert healthy.provides["method"] == ("alpha", "zeta")
    assert healthy.source == site.folder / "healthy.py"
    assert deep.source == site.folder / "deep"
    assert (healthy.error, healthy.fix, healthy.details) == (None, None, None)


EDITED = """
from cglsuite import Hyperparameter, MethodSpec, hookimpl
from {stem}_defaults import RATE

@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="mine", summary="s", factory="{stem}:x", hyperparameters=(Hyperparameter(name="rate", default=RATE, doc="d"),))]
"""


def test_a_plugin_whose_files_were_edited_is_imported_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its defaults are those of the files, also of one beside it that was written within a second and has as many bytes."""
    stem = f"edited_plugin_{os.getpid()}"
    path, beside = tmp_path / f"{stem}.py", tmp_path / f"{stem}_defaults.py"
    path.write_text(EDITED.format(stem=stem))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("CGLSUITE_PLUGIN_FILES", str(path))

    def default() -> float:
        (rate,) = load_catalogue().method("mine").hyperparameters
        return rate.default

    found = []
    for value in (1, 2, 3):
        beside.write_text(f"RATE = {value}\n")
        found.append(default())
        loaded = sys.modules[stem]
        assert default() == value
        assert sys.modules[stem] is loaded
    assert found == [1, 2, 3]
    path.write_text(EDITED.format(stem=stem).replace("default=RATE", "default=7"))
    assert default() == 7
