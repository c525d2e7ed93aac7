"""``cglsuite report``: paths on stdout, reasons on stderr, exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cglsuite.cli.main import run
from cglsuite.reports.rendering.notebook import RenderedReport
from cglsuite.reports.site import index


def rendered(folder: Path, *states: Any) -> list[RenderedReport]:
    return [
        RenderedReport(notebook="n", path=folder / f"{i}.html", status=state, reason="" if state == "done" else "why", seconds=1.5)
        for i, state in enumerate(states)
    ]


@pytest.fixture
def campaign(tmp_path: Path) -> str:
    """The path of a campaign file."""
    path = tmp_path / "x.toml"
    path.write_text('name = "x"\n\n[grid]\nscenarios = ["any"]\nmethods = ["any"]\n', encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("states", "status"), [(("done", "done"), 0), (("done", "failed"), 1)])
def test_paths_are_printed_and_failures_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    campaign: str,
    states: tuple[str, ...],
    status: int,
) -> None:
    """One path per line; the exit status is 1 if any report failed."""
    asked: dict[str, Any] = {}

    def fake(path: str, **given: Any) -> list[RenderedReport]:
        asked.update(given, campaign=path)
        return rendered(tmp_path, *states)

    monkeypatch.setattr(index, "render_campaign", fake)
    assert run(["report", campaign, "--out", "pages", "--store", "records", "--cell-timeout", "0"]) == status
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [str(tmp_path / f"{i}.html") for i in range(len(states))]
    assert captured.err.count("why") == captured.err.count("report ") == states.count("failed")
    assert [asked[name] for name in ("campaign", "out", "store")] == [Path(campaign), Path("pages"), Path("records")]
    assert asked["cell_timeout_s"] is None


def test_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], campaign: str) -> None:
    """One object per report."""
    monkeypatch.setattr(index, "render_campaign", lambda *_, **__: rendered(tmp_path, "failed"))
    assert run(["report", campaign, "--json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)
    assert one == {"notebook": "n", "path": str(tmp_path / "0.html"), "reason": "why", "seconds": 1.5, "status": "failed", "title": ""}


def test_several_campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], campaign: str) -> None:
    """Each in a folder of its name; two that would share one are refused before anything is rendered."""
    second = tmp_path / "y.toml"
    second.write_text(Path(campaign).read_text().replace('"x"', '"y"'))
    asked = []
    monkeypatch.setattr(index, "render_campaign", lambda path, **given: asked.append((path, given["out"])) or rendered(tmp_path, "done"))
    assert run(["report", campaign, str(second), "--out", str(tmp_path / "pages")]) == 0
    assert asked == [(Path(campaign), tmp_path / "pages" / "x"), (second, tmp_path / "pages" / "y")]
    assert run(["report", campaign, str(second)]) == 0
    assert asked[2:] == [(Path(campaign), tmp_path / "rendered" / "x"), (second, tmp_path / "rendered" / "y")]
    assert len(capsys.readouterr().out.splitlines()) == 4
    second.write_text(Path(campaign).read_text())
    assert run(["report", campaign, str(second)]) == 2
    assert "two campaigns are named 'x'" in capsys.readouterr().err
    assert len(asked) == 4


def test_a_campaign_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A usage error, before anything is written."""
    assert run(["report", str(tmp_path / "no.toml")]) == 2
    assert "there is no campaign file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
