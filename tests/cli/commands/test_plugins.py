"""``cglsuite plugins`` and ``plugins doctor``, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plugin_sites import Site

from cglsuite.specs import KINDS

HOSTILE = (
    "import-error",
    "sys-exit",
    "raises-in-hook",
    "rubbish",
    "bad-signature",
    "hook-typo",
    "forgotten-marker",
    "too-new",
    "twice",
    "recursion",
)


def of_site(site: Site, text: str) -> list[dict[str, object]]:
    """The records of this site's distributions from printed JSON."""
    return [r for r in json.loads(text) if r["distribution"] in site.distributions or r["distribution"] is None]


def test_the_table_shows_version_state_hooks_and_what_is_provided(site: Site) -> None:
    done = (
        site.add("healthy", "3.1")
        .add("sys-exit", "0.2")
        .add("clash-a")
        .call("plugins", COLUMNS="100", CGLSUITE_PLUGINS_BLOCK="cglsuite,clash-a")
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0].split() == ["DISTRIBUTION", "VERSION", "STATUS", "HOOKS", "ENTRY", "POINT", "PROVIDES"]
    by_name = {line.split()[0]: line for line in lines[1:] if line}
    assert by_name["healthy"].split()[:5] == ["healthy", "3.1", "ok", str(len(KINDS)), "plugin"]
    assert "2 methods" in done.stdout.replace("\n", " ") or "…" in by_name["healthy"]
    assert by_name["sys-exit"].split()[:4] == ["sys-exit", "0.2", "failed", "0"]
    assert by_name["clash-a"].split()[:3] == ["clash-a", "1.0", "blocked"]
    assert "FAULT    sys-exit 0.2: SystemExit: 3" in done.stdout
    assert "    fix: its authors must not exit the process" in done.stdout
    assert max(map(len, lines)) <= 100


def test_json_holds_every_field_and_failed_filters(site: Site) -> None:
    site.add("healthy").add("sys-exit").add("clash-a")
    everything = of_site(site, site.call("plugins", "--json").stdout)
    assert [(r["distribution"], r["status"]) for r in everything] == [("clash-a", "ok"), ("healthy", "ok"), ("sys-exit", "failed")]
    assert {"distribution", "version", "entry_point", "module", "status", "hooks", "error", "fix", "provides"} <= set(everything[0])
    assert everything[1]["provides"]["method"] == ["alpha", "zeta"]  # type: ignore[index]
    failed = json.loads(site.call("plugins", "--json", "--failed").stdout)
    assert [r["distribution"] for r in failed] == ["sys-exit"]


@pytest.mark.parametrize("how", ["option", "environment"])
def test_strict_prints_the_list_and_ends_with_4(site: Site, how: str) -> None:
    site.add("healthy").add("sys-exit")
    done = site.call("--strict", "plugins", "--json") if how == "option" else site.call("plugins", "--json", CGLSUITE_STRICT="1")
    assert done.returncode == 4
    assert len(of_site(site, done.stdout)) == 2
    assert "plugin sys-exit 1.0 failed: SystemExit" in done.stderr
    assert site.call("--strict", "plugins", CGLSUITE_PLUGINS_BLOCK="cglsuite,sys-exit").returncode == 0


@pytest.mark.nightly
def test_doctor_names_each_of_ten_hostile_plugins_and_its_fix(site: Site) -> None:
    for name in HOSTILE:
        site.add(name)
    site.add("healthy").add("os-exit").add("crashes").add("clash-a").add("clash-b")
    done = site.run("plugins", "doctor", "--timeout", "30")
    assert done.returncode == 4
    assert "ok       healthy 1.0" in done.stdout
    for name in (*HOSTILE, "os-exit", "crashes"):
        fault = done.stdout.split(f"FAULT    {name} 1.0: ")[1].split("FAULT")[0]
        assert "    fix: " in fault
    assert "FAULT    all plugins together: method 'same' is provided by 2 plugins" in done.stdout
    assert done.stdout.rstrip().endswith("15 plugins examined, 13 faults")


@pytest.mark.plugins
@pytest.mark.nightly
def test_beside_ten_hostile_plugins_every_healthy_one_runs_a_cell(site: Site, tmp_path: Path) -> None:
    """Those that only fail are caught in process; three more that end or stop it are found out in a process of their own, once."""
    for name in HOSTILE:
        site.add(name)
    source = (Path(__file__).parents[2] / "example-plugin" / "cglsuite_l2_anchor.py").read_text(encoding="utf-8")
    site.add("healthy").add("anchor", files={"cglsuite_l2_anchor.py": source}, entry_points={"plugin": "cglsuite_l2_anchor"})
    allowed = ",".join([*site.distributions, "cglsuite-node", "cglsuite-methods", "cglsuite-metrics"])
    methods = json.loads(site.run("list", "methods", "--json").stdout)
    assert [(m["name"], m["provider"]) for m in methods] == [("alpha", "healthy"), ("l2-anchor", "anchor"), ("zeta", "healthy")]
    tiny = [
        "dataset.n_nodes=48",
        "dataset.n_classes=4",
        "dataset.n_features=20",
        "dataset.words=4",
        "training.epochs=1",
        "backbone.width=4",
    ]
    overrides = [word for text in tiny for word in ("--set", text)]
    cell = ["cell", "--scenario", "synthetic-csbm/class-il@begin-1", *overrides, "--store", str(tmp_path / "store"), "--json"]

    def run(method: str) -> tuple[dict[str, Any], str]:
        allow = ",".join([allowed, *fatal])
        done = site.run(
            *cell, "--method", method, CGLSUITE_PLUGINS_ALLOW=allow, CGLSUITE_PLUGINS_BLOCK="nothing", CGLSUITE_PLUGINS_TIMEOUT="10"
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    fatal = ("crashes", "hangs", "os-exit")
    assert {p["distribution"] for p in run("l2-anchor")[0]["provenance"]["plugins"]} == {"cglsuite", "cglsuite-node", "anchor"}
    for name in fatal:
        site.add(name)
    record, message = run("bare")
    assert record["status"] == "done"
    for name in fatal:
        assert f"plugin {name} 1.0 is quarantined" in message
    done = site.run("plugins", "doctor", "--timeout", "20")
    faults = {fault.split(" ")[0]: fault for fault in done.stdout.split("FAULT    ")[1:]}
    assert sorted(faults) == sorted([*HOSTILE, *fatal])
    for name in fatal:
        assert f"fix: block it (CGLSUITE_PLUGINS_BLOCK={name})" in " ".join(faults[name].split())


@pytest.mark.nightly
def test_doctor_ends_with_0_where_all_is_well_and_prints_json(site: Site) -> None:
    site.add("healthy")
    done = site.run("plugins", "doctor")
    assert done.returncode == 0, done.stdout
    assert "1 plugin examined, no faults" in done.stdout
    (record,) = of_site(site, site.run("plugins", "doctor", "--json").stdout)
    assert (record["distribution"], record["status"], record["faults"]) == ("healthy", "ok", [])


@pytest.mark.nightly
def test_doctor_outlives_a_hanging_plugin(site: Site) -> None:
    done = site.add("hangs").run("plugins", "doctor", "--timeout", "1.5", "--json")
    assert done.returncode == 4
    (record,) = of_site(site, done.stdout)
    assert record["faults"][0]["error"] == "hangs: no progress for 1.5 s while calling cglsuite_methods"  # type: ignore[index]


@pytest.mark.parametrize("arguments", [("plugins", "docter"), ("plugins", "doctor", "--timeout", "0"), ("plugins", "--jsn")])
def test_wrong_usage_ends_with_2(site: Site, arguments: tuple[str, ...]) -> None:
    done = site.call(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
