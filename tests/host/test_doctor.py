"""The doctor sees what cannot be caught in process, names the fault and its distribution, and survives it."""

from __future__ import annotations

import re

import pytest
from plugin_sites import Site

from cglsuite.host.discovery import Gate
from cglsuite.host.doctor import Diagnosis, diagnose


def examined(site: Site, **options: float | bool) -> dict[str, Diagnosis]:
    """Diagnosis per distribution of the site; the joint one is under ``"together"``."""
    gate = Gate.from_environment(block=["cglsuite"], allow=site.distributions)
    found = diagnose(gate=gate, **options)  # type: ignore[arg-type]
    return {d.record.distribution if d.record else "together": d for d in found if d.record is None or d.record.status != "blocked"}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("os-exit", r"ends the process \(exit code 0\) at import"),
        ("crashes", r"is killed by SIGSEGV at import"),
        ("hangs", r"hangs: no progress for 3 s while calling cglsuite_methods"),
        ("sys-exit", r"SystemExit: 3"),
        ("hook-typo", r"unknown hook"),
    ],
)
def test_each_fault_is_named_and_the_healthy_plugin_is_not(site: Site, name: str, error: str) -> None:
    found = examined(site.add("healthy").add(name), timeout_s=3)
    assert found["healthy"].faults == ()
    assert found["healthy"].record is not None
    assert found["healthy"].record.provides["method"] == ("alpha", "zeta")
    (fault,) = found[name].faults
    assert re.search(error, fault.error), fault.error
    assert name in fault.fix or fault.fix.startswith("rename")
    assert "together" not in found


def test_listing_that_imports_torch_is_a_fault(site: Site) -> None:
    site.add("imports-torch").add("fake-torch", files={"torch.py": ""}, entry_points={})
    (fault,) = examined(site)["imports-torch"].faults
    assert fault.error.startswith("listing it imports torch")


def test_collisions_are_found_although_each_plugin_is_healthy(site: Site) -> None:
    (fault,) = examined(site.add("clash-a", "1.5").add("clash-b"))["together"].faults
    assert fault.error == "method 'same' is provided by 2 plugins: clash-a 1.5, clash-b 1.0"
    assert "CGLSUITE_PLUGINS_BLOCK=clash-b" in fault.fix


def test_a_plugin_that_disturbs_another_is_found(site: Site) -> None:
    vandal = (
        "import cglsuite\nfrom cglsuite import hookimpl\n@hookimpl\ndef cglsuite_metrics():\n    del cglsuite.MethodSpec\n    return []\n"
    )
    (fault,) = examined(site.add("a-vandal", files={"a_vandal.py": vandal}).add("clash-b"))["together"].faults
    assert fault.error.startswith("clash-b 1.0 fails only together with the others: ImportError")


@pytest.mark.nightly
def test_deep_examination_finds_factories_that_lead_nowhere(site: Site) -> None:
    faults = examined(site.add("healthy"), deep=True)["healthy"].faults
    assert [f.error.split(" of ")[0] for f in faults] == [
        "method 'alpha'",
        "pretraining 'hides'",
        "measure 'share'",
        "notebook 'look'",
        "executor 'here'",
        "command 'wave'",
    ]


def test_blocked_plugins_are_not_examined(site: Site) -> None:
    site.add("os-exit")
    found = diagnose(gate=Gate.from_environment(block=["os-exit"], allow=["os-exit"]))
    ours = [d for d in found if d.record and d.record.distribution == "os-exit"]
    assert [(d.record.status, d.faults) for d in ours if d.record] == [("blocked", ())]


def test_the_core_has_plugins_of_its_own_and_they_are_healthy() -> None:
    found = diagnose(gate=Gate(block=frozenset(), allow=frozenset({"cglsuite"})))
    ours = [d for d in found if d.record is not None and d.record.status == "ok"]
    assert {d.record.entry_point for d in ours if d.record} == {"core-backbones", "core-executors", "core-notebooks"}
    assert [d.faults for d in ours] == [()] * len(ours)
