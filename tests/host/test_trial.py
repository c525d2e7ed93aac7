"""Plugins that end, crash or stop a process never get into this one, and are tried once."""

from __future__ import annotations

import json
import time

import pytest
from plugin_sites import Site

from cglsuite.base.errors import UsageError
from cglsuite.host import doctor, load_catalogue


@pytest.fixture
def tried(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The distributions of every child process that a trial started."""
    from cglsuite.host.doctor import Examiner

    seen: list[list[str]] = []
    visit = Examiner.visit

    def counted(self: Examiner, candidates: object, *arguments: object, **more: object) -> object:
        seen.append([c.distribution for c in candidates])  # type: ignore[attr-defined]
        return visit(self, candidates, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Examiner, "visit", counted)
    monkeypatch.setenv("CGLSUITE_CACHE", str(site.folder.parent / "cache"))
    monkeypatch.setenv("CGLSUITE_PLUGINS_BLOCK", "cglsuite")
    monkeypatch.setenv("CGLSUITE_PLUGINS_TIMEOUT", "5")
    return seen


def admit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_PLUGINS_ALLOW", ",".join(site.distributions))


def test_killers_are_quarantined_and_the_healthy_one_is_loaded(site: Site, tried: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("healthy").add("crashes").add("os-exit").add("hangs")
    admit(site, monkeypatch)
    catalogue = load_catalogue()
    ours = {r.distribution: r.status for r in catalogue.records if r.distribution in site.distributions}
    assert ours == {"healthy": "ok", "crashes": "failed", "os-exit": "failed", "hangs": "failed"}
    errors = {r.distribution: r.error or "" for r in catalogue.failed}
    assert "SIGSEGV" in errors["crashes"]
    assert "ends the process" in errors["os-exit"]
    assert "hangs: no progress for 5 s" in errors["hangs"]
    assert all("to try it again, delete" in (r.fix or "") for r in catalogue.failed)
    assert len(tried) == 4  # all, and one more for each that ended it


def test_what_was_tried_is_not_tried_again(site: Site, tried: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("healthy").add("os-exit")
    admit(site, monkeypatch)
    load_catalogue()
    first = len(tried)
    assert [r.distribution for r in load_catalogue().failed] == ["os-exit"]
    assert len(tried) == first


def test_a_bad_verdict_lasts_a_day(site: Site, tried: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("os-exit")
    admit(site, monkeypatch)
    load_catalogue()
    assert len(tried) == 1
    (verdict,) = (site.folder.parent / "cache" / "plugins").iterdir()
    assert json.loads(verdict.read_text())["error"].startswith("ends the process")
    now = time.time()
    monkeypatch.setattr(doctor.time, "time", lambda: now + 25 * 3600)
    load_catalogue()
    assert len(tried) == 2


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan"])
def test_a_timeout_that_is_none_is_refused(site: Site, tried: list[list[str]], monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    site.add("healthy")
    admit(site, monkeypatch)
    monkeypatch.setenv("CGLSUITE_PLUGINS_TIMEOUT", given)
    with pytest.raises(UsageError, match="CGLSUITE_PLUGINS_TIMEOUT"):
        load_catalogue()
    assert tried == []
