"""What a rendering leaves: page, status file, returned report, and whose turn it is. The rendering process itself is staged."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_elements import texts
from report_lab import Notebooks

from cglsuite.base.errors import UsageError
from cglsuite.cells.storage.lease import Lease
from cglsuite.reports.rendering import notebook
from cglsuite.reports.rendering import notebook as freshness
from cglsuite.reports.rendering.job import Job, Outcome
from cglsuite.reports.rendering.notebook import RenderedReport, current_status, page_fingerprint, render_notebook, surroundings


class Stage:
    """Stands for the rendering process: writes a page, or does what a test says."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.status_then: list[dict[str, Any]] = []
        self.answer: Any = Outcome(status="done")
        self.content = "<p>page</p>"

    def __call__(self, job: Job, stop: threading.Event, handed: Any = None) -> Outcome:
        self.jobs.append(job)
        page = Path(job.output)
        self.status_then.append(json.loads(page.with_name(f"{page.name}.status.json").read_text()))
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer.status == "done":
            page.write_text(self.content)
        return self.answer  # type: ignore[no-any-return]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr(notebook, "in_process", made)
    return made


@pytest.fixture
def page(notebooks: Notebooks, tmp_path: Path) -> Path:
    notebooks.add("report", parameters="x = 1\ny = 'a'")
    return tmp_path / "out" / "report.html"


def status_of(page: Path) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(page.with_name(f"{page.name}.status.json").read_text())
    return status


def render(notebooks: Notebooks, page: Path, **more: Any) -> RenderedReport:
    return render_notebook("report", more.pop("given", {}), page, catalogue=notebooks.catalogue, **more)


def test_a_page_that_is_done(notebooks: Notebooks, page: Path, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Its status says so, with the hash of the page; before that it says who renders it."""
    with caplog.at_level(logging.INFO):
        report = render(notebooks, page, given={"x": 7}, offered={"y": "b", "z": 3}, title="T", heading="H", cell_timeout_s=5)
    assert (report.notebook, report.path, report.status, report.reason, report.done) == ("report", page, "done", "", True)
    (job,) = stage.jobs
    assert job == Job(
        notebook=str(notebooks.folder / "report.ipynb"),
        name="report",
        title="T",
        heading="H",
        output=str(page.absolute()),
        parameters={"x": 7, "y": "b"},
        cell_timeout_s=5,
    )
    (then,) = stage.status_then
    assert then.pop("since") > 1_700_000_000
    assert then == {"status": "running", "notebook": "report", "pid": os.getpid()}
    status = status_of(page)
    assert status.pop("seconds") == round(report.seconds, 2)
    assert status == {
        "notebook": "report",
        "title": "",
        "path": "report.html",
        "status": "done",
        "reason": "",
        "details": "",
        "fingerprint": "",
        "sha256": hashlib.sha256(b"<p>page</p>").hexdigest(),
    }
    assert f"rendering report to {page}" in caplog.text
    assert "slow to open" not in caplog.text


def test_defaults_of_a_job(notebooks: Notebooks, page: Path, stage: Stage) -> None:
    """The title is the notebook's name; what is given goes before what is offered; an hour for a cell."""
    render(notebooks, page, given={"x": 7}, offered={"x": 8, "y": "c"})
    assert (stage.jobs[0].title, stage.jobs[0].heading, stage.jobs[0].parameters) == ("report", "", {"x": 7, "y": "c"})
    assert stage.jobs[0].cell_timeout_s == 3600


@pytest.mark.parametrize(
    ("answer", "reason", "details"),
    [
        (Outcome(status="failed", reason="cell 2: boom", details="Trace <b>"), "cell 2: boom", "Trace <b>"),
        (UsageError("what was wrong"), "what was wrong", ""),
        (OSError("no room"), "OSError: no room", ""),
    ],
)
def test_a_failure_replaces_the_page(
    notebooks: Notebooks, page: Path, stage: Stage, answer: Any, reason: str, details: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever was there before: the page says why there is none."""
    page.parent.mkdir()
    page.write_text("an earlier report")
    stage.answer = answer
    with caplog.at_level(logging.INFO):
        report = render(notebooks, page, title="T")
    assert (report.status, report.reason, report.done) == ("failed", reason, False)
    status = status_of(page)
    assert {name: status[name] for name in ("status", "reason", "details", "path")} == {
        "status": "failed",
        "reason": reason,
        "details": details,
        "path": "report.html",
    }
    assert not {"fingerprint", "sha256"} & set(status)
    assert texts(page.read_text(), "p > strong") == ["This report failed."]
    assert texts(page.read_text(), "h1") == ["T"]
    assert texts(page.read_text(), "pre.error") == ([details] if details else [])
    assert f"report report failed: {reason}" in caplog.text


def test_parameters_are_checked_before_the_process_starts(notebooks: Notebooks, page: Path, stage: Stage) -> None:
    report = render(notebooks, page, given={"z": 1})
    assert "unknown parameter of notebook 'report' 'z'" in report.reason
    assert (stage.jobs, status_of(page)["status"]) == ([], "failed")


@pytest.mark.parametrize(("size", "warned"), [(3_000_000, False), (3_000_001, True)])
def test_a_large_page_is_warned_of(
    notebooks: Notebooks, page: Path, stage: Stage, size: int, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stage.content = "x" * size
    assert render(notebooks, page).done
    assert (f"{page} has 3.0 MB; it will be slow to open" in caplog.text) is warned


# --- pages that are up to date ------------------------------------------------------------------------------------------------------


def test_a_page_that_is_up_to_date_is_kept(notebooks: Notebooks, page: Path, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """With the seconds that it took then. Forced, or without a fingerprint, it is rendered again."""
    first = render(notebooks, page, shared="a")
    status = status_of(page) | {"seconds": 123.5}
    page.with_name("report.html.status.json").write_text(json.dumps(status))
    with caplog.at_level(logging.INFO):
        again = render(notebooks, page, shared="a")
    assert again == RenderedReport(notebook="report", path=page, status="done", reason="", seconds=123.5)
    assert len(stage.jobs) == 1
    assert f"{page} is up to date" in caplog.text
    assert status_of(page) == status
    assert render(notebooks, page, shared="a", force=True).done
    assert render(notebooks, page).done
    assert len(stage.jobs) == 3
    assert first.done


@pytest.mark.parametrize("change", ["shared", "parameter", "title", "notebook", "page", "failed", "absent", "damaged", "file"])
def test_every_input_counts(notebooks: Notebooks, page: Path, stage: Stage, tmp_path: Path, change: str) -> None:
    """What went into a page, the page itself and the status beside it."""
    folder = tmp_path / "campaign"
    folder.mkdir()
    (folder / "words.txt").write_text("a")
    asked: dict[str, Any] = {"shared": "a", "given": {"x": 1, "y": "words.txt"}, "title": "T", "folders": (folder,)}
    render(notebooks, page, **asked)
    render(notebooks, page, **asked)
    assert len(stage.jobs) == 1
    status = page.with_name("report.html.status.json")
    if change == "shared":
        asked["shared"] = "b"
    elif change == "parameter":
        asked["given"] = {"x": 2, "y": "words.txt"}
    elif change == "title":
        asked["title"] = "U"
    elif change == "notebook":
        book = notebooks.folder / "report.ipynb"
        book.write_text(book.read_text() + "\n")
    elif change == "page":
        page.write_text("another")
    elif change == "failed":
        status.write_text(json.dumps(status_of(page) | {"status": "failed"}))
    elif change == "absent":
        page.unlink()
    elif change == "damaged":
        status.write_text("[]")
    else:
        (folder / "words.txt").write_text("b")
    render(notebooks, page, **asked)
    assert len(stage.jobs) == 2


def test_a_page_is_complete_only_with_its_status(tmp_path: Path) -> None:
    page, status = tmp_path / "a.html", tmp_path / "a.html.status.json"
    page.write_text("x")
    good = {"status": "done", "fingerprint": "f", "sha256": hashlib.sha256(b"x").hexdigest(), "seconds": 2}
    assert current_status(page, status, "f") is None
    for content, kept in (
        (json.dumps(good), True),
        (json.dumps({**good, "status": "running"}), False),
        (json.dumps({**good, "sha256": "0"}), False),
        (json.dumps({k: v for k, v in good.items() if k != "fingerprint"}), False),
        ("[1]", False),
        ("{", False),
    ):
        status.write_text(content)
        assert current_status(page, status, "f") == (good if kept else None)
    status.write_text(json.dumps(good))
    assert current_status(page, status, "g") is None


def test_files_that_parameters_name_count_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any depth, from the current folder first; texts that are no paths count as texts."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name)
    book = tmp_path / "n.ipynb"
    book.write_text("{}")
    monkeypatch.chdir(tmp_path)

    def of(parameters: Any, *folders: Path) -> str:
        return page_fingerprint("s", book, "t", parameters, folders)

    nested = {"p": [{"q": ("a.txt",)}]}
    first = of(nested, here, there)
    assert first == of(nested, here)
    assert first != of(nested, there)
    assert first != of(nested)
    (here / "a.txt").write_text("new")
    assert of(nested, here) != first
    monkeypatch.chdir(there)
    assert of(nested, here) == of(nested, there) == of(nested)
    for text in ("", "x" * 5000, "a\0b", "y" * 400):
        assert of({"p": text}) != of({"p": "z"})


def test_what_all_pages_share(notebooks: Notebooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and searches of the store by name and content, versions, and the device."""
    store = tmp_path / "store"
    for folder in ("cells", "searches", "other"):
        (store / folder).mkdir(parents=True)
    monkeypatch.setattr(freshness, "_source_digests", lambda catalogue: iter(()))
    seen = {surroundings(store, notebooks.catalogue)}
    assert seen == {surroundings(store, notebooks.catalogue)}
    (store / "other" / "a.json").write_text("1")
    (store / "cells" / "a.txt").write_text("1")
    assert surroundings(store, notebooks.catalogue) in seen
    for number, (place, text) in enumerate([("cells/a", "1"), ("searches/a", "1"), ("cells/a", "2"), ("cells/b", "1")]):
        (store / f"{place}.json").write_text(text)
        seen.add(surroundings(store, notebooks.catalogue))
        assert len(seen) == number + 2
    monkeypatch.setattr(freshness, "resolve_device", lambda name: f"another than {name}")
    assert surroundings(store, notebooks.catalogue) not in seen
    monkeypatch.setattr(freshness.platform, "python_version", lambda: "2.7")
    assert surroundings(store, notebooks.catalogue) not in seen


# --- turns --------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def taken(page: Path) -> Iterator[Lease]:
    """Another run renders the page."""
    lease = Lease(page.parent / ".rendering" / "report.html.lease")
    page.parent.mkdir(parents=True, exist_ok=True)
    assert lease.acquire()
    yield lease
    lease.release()


def test_a_run_that_is_stopped_while_it_waits_leaves_the_page_alone(
    notebooks: Notebooks, page: Path, stage: Stage, taken: Lease, caplog: pytest.LogCaptureFixture
) -> None:
    page.write_text("of the other run")
    stop = threading.Event()
    stop.set()
    report = render(notebooks, page, stop=stop)
    assert (report.status, report.path) == ("failed", page)
    assert report.reason == "interrupted while another run was rendering this page, which was left alone"
    assert page.read_text() == "of the other run"
    assert not page.with_name("report.html.status.json").exists()
    assert stage.jobs == []
    assert caplog.text.count(f"{page} is being rendered by another run: waiting for it") == 1
    assert taken.held


def test_a_run_that_waits_renders_afterwards(
    notebooks: Notebooks, page: Path, stage: Stage, taken: Lease, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It says once that it waits."""
    monkeypatch.setattr(notebook, "_WAIT_S", 0.02)
    clock = threading.Timer(0.3, taken.release)
    clock.start()
    assert render(notebooks, page).done
    clock.join()
    assert len(stage.jobs) == 1
    assert caplog.text.count("is being rendered by another run") == 1
    again = Lease(page.parent / ".rendering" / "report.html.lease")
    assert again.acquire()  # it was given back
    again.release()


def test_a_folder_that_cannot_be_written(notebooks: Notebooks, page: Path, stage: Stage) -> None:
    """The reason names the option that chose it."""
    page.parent.write_text("a file where the folder should be")
    report = render(notebooks, page)
    assert report.status == "failed"
    assert "--out" in report.reason
    assert stage.jobs == []
