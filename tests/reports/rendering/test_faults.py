"""Whatever goes wrong while a notebook runs ends as a failed report with its reason, and never as a page that looks finished."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from page_elements import texts
from report_lab import Elements, Notebooks

from cglsuite.reports.rendering import notebook
from cglsuite.reports.rendering import notebook as freshness
from cglsuite.reports.rendering.job import Job
from cglsuite.reports.rendering.notebook import RenderedReport, render_notebook
from cglsuite.reports.site.index import render_campaign

pytestmark = pytest.mark.notebook
ANOTHER_PYTHON = {"argv": ["/bin/false", "{connection_file}"], "display_name": "another Python", "language": "python"}


@pytest.fixture(autouse=True)
def _another_kernelspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's kernelspec named python3 that does not work: reports must not use it."""
    folder = tmp_path / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(ANOTHER_PYTHON))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))


def render(notebooks: Notebooks, *cells: str, **more: Any) -> RenderedReport:
    """Render a notebook of these cells."""
    name = notebooks.add("report", *cells)
    return render_notebook(name, more.pop("given", {}), notebooks.folder / "out" / "report.html", catalogue=notebooks.catalogue, **more)


def status_of(report: RenderedReport) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(report.path.with_name(f"{report.path.name}.status.json").read_text())
    return status


def assert_failed(report: RenderedReport, reason: str) -> None:
    """The returned report, the page and the status file say the same."""
    assert report.status == "failed"
    assert reason in report.reason
    page = report.path.read_text()
    assert ("meta", {"content": "failed", "name": "cglsuite:status"}) in Elements(page).found
    assert texts(page, "p > strong") == ["This report failed."]
    assert status_of(report)["status"] == "failed"
    assert reason in status_of(report)["reason"]


def gone(pid: int, within_s: float = 15.0) -> bool:
    """Whether a process ends in time (a zombie that nobody has waited for counts)."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def test_a_whole_notebook_becomes_a_page(notebooks: Notebooks) -> None:
    """Parameters arrive, the kernel is this interpreter and talks over Unix sockets, IPython's own files stay out of the home folder."""
    cells = [
        "import sys; print('given', x, sys.executable)",
        "app = get_ipython().kernel.parent; print('transport', app.transport, app.ip)",
        "print('profile', get_ipython().profile_dir.location)",
    ]
    report = render(notebooks, *cells, given={"x": 7})
    assert (report.status, report.reason) == ("done", "")
    page = report.path.read_text()
    given, transport, profile = texts(page, "pre.stdout")
    assert given == f"given 7 {sys.executable}"
    assert re.fullmatch(r"transport ipc /\S*/cgl-\S+", transport)
    assert re.fullmatch(r"profile /\S*/cgl-\S+/ipython/profile_default", profile)
    assert status_of(report)["status"] == "done"
    assert sorted(p.name for p in report.path.parent.iterdir() if p.name[0] != ".") == ["report.html", "report.html.status.json"]


@pytest.mark.nightly
def test_a_dead_kernel(notebooks: Notebooks) -> None:
    """Papermill alone would save every cell as completed."""
    report = render(notebooks, "import os; os._exit(3)", "print('never')")
    assert_failed(report, "cell 2: the kernel died (exit status 3)")
    assert "os._exit(3)" in status_of(report)["details"]


@pytest.mark.nightly
def test_a_cell_that_leaves(notebooks: Notebooks) -> None:
    """Papermill alone takes SystemExit(0) for success and leaves the rest unexecuted."""
    assert_failed(render(notebooks, "import sys; sys.exit(0)", "print('never')"), "the rest of the notebook did not run")


@pytest.mark.nightly
def test_a_cell_that_takes_too_long(notebooks: Notebooks) -> None:
    """The time is that of one cell."""
    assert_failed(render(notebooks, "import time; time.sleep(60)", cell_timeout_s=1), "timed out")


@pytest.mark.nightly
def test_an_error_shows_its_traceback_in_plain_text(notebooks: Notebooks) -> None:
    """Without terminal colours, and escaped."""
    report = render(notebooks, "print('before')", "raise ValueError('<script>')", "print('after')")
    assert_failed(report, "cell 3: ValueError: <script>")
    details = status_of(report)["details"]
    assert "Traceback" in details
    assert "\x1b" not in details
    assert "<script>" not in report.path.read_text()


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"y": 1}, "unknown parameter of notebook 'report' 'y'"), ({"x": Path("p")}, "PosixPath"), ({"x": "1"}, "expected int")],
)
def test_parameters_are_refused_before_anything_runs(notebooks: Notebooks, given: dict[str, Any], reason: str) -> None:
    """Misspelt, not JSON, of another type."""
    mark = notebooks.folder / "ran"
    assert_failed(render(notebooks, f"open({str(mark)!r}, 'w')", given=given), reason)
    assert not mark.exists()


def test_a_notebook_file_that_is_broken(notebooks: Notebooks) -> None:
    """Not JSON at all: told like any other fault."""
    name = notebooks.add("report")
    (notebooks.folder / "report.ipynb").write_text("{")
    assert_failed(render_notebook(name, {}, notebooks.folder / "out" / "report.html", catalogue=notebooks.catalogue), "NotJSONError")


def test_a_killed_process_takes_its_kernel_along(notebooks: Notebooks) -> None:
    """As the system does when memory runs out; the kernel does not stay behind."""
    mark = notebooks.folder / "kernel"
    code = f"import os, signal; open({str(mark)!r}, 'w').write(str(os.getpid())); os.kill(os.getppid(), signal.SIGKILL)"
    report = render(notebooks, code, "import time; time.sleep(60)")
    assert_failed(report, "the rendering process was killed by SIGKILL before the report was complete")
    assert gone(int(mark.read_text()))


def test_a_killed_run_leaves_neither_page_nor_processes(notebooks: Notebooks, tmp_path: Path) -> None:
    """Whoever asked for the report is killed while a cell runs; the next run completes the page."""
    mark, page = notebooks.folder / "kernel", tmp_path / "out" / "report.html"
    body = f"""
        import os, pathlib, time
        mark = pathlib.Path({str(mark)!r})
        if not mark.exists():
            mark.write_text(f"{{os.getpid()}} {{os.getppid()}}")
            time.sleep(60)
    """
    notebooks.add("report", textwrap.dedent(body))
    script = f"""
        from pathlib import Path
        import report_lab
        from cglsuite.reports.rendering.notebook import render_notebook
        lab = report_lab.Notebooks.__new__(report_lab.Notebooks)
        lab.names = ["report"]
        render_notebook("report", {{}}, Path({str(page)!r}), catalogue=lab.catalogue)
    """
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2] / "tools"), os.environ.get("PYTHONPATH", "")])
    asking = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], env={**os.environ, "PYTHONPATH": path})
    end = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    asking.kill()
    asking.wait()
    assert all(gone(int(pid)) for pid in mark.read_text().split())
    assert not page.exists()
    assert json.loads(page.with_name("report.html.status.json").read_text())["status"] == "running"
    again = render_notebook("report", {}, page, catalogue=notebooks.catalogue)
    assert (again.status, status_of(again)["status"]) == ("done", "done")


@pytest.fixture
def _full_disk() -> Iterator[None]:
    """No file may grow beyond 4 kB, here and in child processes: writing a page fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("no_kernel")
def test_a_full_disk(notebooks: Notebooks, request: pytest.FixtureRequest) -> None:
    """The reason is told, and an earlier page does not stay as if it were this one."""
    report = render(notebooks, "print('whole')")
    assert report.done
    request.getfixturevalue("_full_disk")
    again = render_notebook("report", {}, report.path, catalogue=notebooks.catalogue)
    assert again.status == "failed"
    assert "the disk or quota is full" in again.reason
    assert not report.path.exists()
    assert status_of(again)["status"] == "failed"


def counting(notebooks: Notebooks, name: str, body: str = "") -> Path:
    """A notebook that adds a line to a file whenever it runs; the file."""
    log = notebooks.folder / f"{name}.log"
    notebooks.add(name, f"with open({str(log)!r}, 'a') as file:\n    print('ran', file=file)\n{body}")
    return log


def campaign_of(folder: Path, *names: str) -> Path:
    """A campaign with a report of each notebook; its only scenario is unknown, so that it has no leaderboard."""
    path = folder / "toy.toml"
    reports = "".join(f'[[report]]\nnotebook = "{name}"\n' for name in names)
    path.write_text(f'name = "toy"\n[grid]\nscenarios = ["s/task-il@x-1"]\nmethods = ["bare"]\n{reports}')
    return path


def runs(*logs: Path) -> list[int]:
    return [len(log.read_text().splitlines()) for log in logs]


@pytest.fixture
def _same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit of the suite's sources while tests run does not make pages stale."""
    monkeypatch.setattr(freshness, "_source_digests", lambda catalogue: [])


@pytest.mark.nightly
@pytest.mark.usefixtures("_same_code", "no_kernel")
def test_the_next_run_completes_only_what_is_missing(notebooks: Notebooks, tmp_path: Path) -> None:
    """What was complete is kept; what failed, was removed or was edited is rendered again; with force, all is."""
    needed = tmp_path / "needed"
    logs = [counting(notebooks, "good"), counting(notebooks, "bad", f"open({str(needed)!r}).close()")]
    campaign, out = campaign_of(tmp_path, "good", "bad"), tmp_path / "out"

    def again(**more: Any) -> tuple[list[str], list[int]]:
        rendered = render_campaign(campaign, store=tmp_path / "store", out=out, catalogue=notebooks.catalogue, **more)
        return [r.status for r in rendered[:2]], runs(*logs)

    assert again() == (["done", "failed"], [1, 1])
    assert again() == (["done", "failed"], [1, 2])
    needed.touch()
    assert again() == (["done", "done"], [1, 3])
    with (out / "good.html").open("a") as page:
        page.write("edited")
    assert again() == (["done", "done"], [2, 3])
    assert again() == (["done", "done"], [2, 3])
    assert again(force=True) == (["done", "done"], [3, 4])


@pytest.mark.usefixtures("no_kernel")
def test_every_notebook_that_reports_on_a_campaign(notebooks: Notebooks, tmp_path: Path) -> None:
    """After those that the campaign names, each once, come the others that take one; one whose file is broken is a failed report."""
    notebooks.add("named", "1", parameters="campaign = ''")
    notebooks.add("takes", "print(campaign)", parameters="campaign = ''")
    notebooks.add("other", "1", parameters="x = 1")
    notebooks.add("broken", "1")
    (notebooks.folder / "broken.ipynb").write_text("{")
    campaign = campaign_of(tmp_path, "named")
    rendered = render_campaign(campaign, store=tmp_path / "store", catalogue=notebooks.catalogue, every=True)
    expected = [("named.html", "done"), ("broken.html", "failed"), ("takes.html", "done"), ("index.html", "failed")]
    assert [(r.path.name, r.status) for r in rendered] == expected


@pytest.mark.usefixtures("_same_code", "no_kernel")
def test_two_runs_into_one_folder(notebooks: Notebooks, tmp_path: Path) -> None:
    """One renders, the other waits for its page and keeps it; both tell the same."""
    log = counting(notebooks, "slow", "import time; time.sleep(0.5)")
    campaign, out = campaign_of(tmp_path, "slow"), tmp_path / "out"

    def one(_: int) -> RenderedReport:
        return render_campaign(campaign, store=tmp_path / "store", out=out, catalogue=notebooks.catalogue)[0]

    with ThreadPoolExecutor(max_workers=2) as pool:
        rendered = list(pool.map(one, range(2)))
    assert [(r.status, r.path) for r in rendered] == [("done", out / "slow.html")] * 2
    assert runs(log) == [1]
    assert status_of(rendered[0])["status"] == "done"


@pytest.mark.usefixtures("no_kernel")
def test_a_full_disk_leaves_no_index_of_an_earlier_run(notebooks: Notebooks, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The pages that it linked are gone, and so is it; what is returned says why."""
    counting(notebooks, "one")
    campaign, out = campaign_of(tmp_path, "one"), tmp_path / "out"
    render_campaign(campaign, store=tmp_path / "store", out=out, catalogue=notebooks.catalogue)
    assert (out / "index.html").is_file()
    request.getfixturevalue("_full_disk")
    rendered = render_campaign(campaign, store=tmp_path / "store", out=out, catalogue=notebooks.catalogue, force=True)
    assert [(r.path.name, r.status) for r in rendered] == [("one.html", "failed"), ("index.html", "failed")]
    assert all("the disk or quota is full" in r.reason for r in rendered)
    assert not list(out.glob("*.html"))


@pytest.mark.nightly
def test_two_reports_at_once(notebooks: Notebooks, tmp_path: Path) -> None:
    """Each waits for the other's cell; a third that fails keeps nobody from being rendered, and the index links all of them."""
    cell = """
        import pathlib, time
        here = pathlib.Path({folder!r})
        (here / "{mine}").touch()
        end = time.monotonic() + 60
        while not (here / "{other}").exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert (here / "{other}").exists()
        print("report {mine}", x)
    """
    for mine, other in (("one", "two"), ("two", "one")):
        notebooks.add(mine, textwrap.dedent(cell.format(folder=str(tmp_path), mine=mine, other=other)))
    notebooks.add("three", "print(x)", parameters="x = ''\ncampaign = ''\nstore = ''")
    campaign = tmp_path / "toy.toml"
    tables = [("one", "1"), ("two", "2"), ("three", "1"), ("three", "'fine'")]
    reports = "".join(f'[[report]]\nnotebook = "{name}"\nparameters = {{ x = {x} }}\n' for name, x in tables)
    campaign.write_text(f'name = "toy"\ntitle = "<b>"\n[grid]\nscenarios = ["s/task-il@x-1"]\nmethods = ["bare"]\n{reports}')
    rendered = render_campaign(campaign, store=tmp_path / "store", catalogue=notebooks.catalogue)
    assert [(r.path.name, r.status) for r in rendered] == [
        ("one.html", "done"),
        ("two.html", "done"),
        ("three.html", "failed"),
        ("three-2.html", "done"),
        ("index.html", "failed"),  # there is no such scenario, hence no leaderboard
    ]
    folder = tmp_path / "rendered" / "toy"
    assert "report one 1" in (folder / "one.html").read_text()
    assert str(campaign) in (folder / "three-2.html").read_text()
    index = (folder / "index.html").read_text()
    links = [a["href"] for t, a in Elements(index).found if t == "a" and a.get("href") != "#content"]
    assert links == ["one.html", "two.html", "three.html", "three-2.html"]
    assert all((folder / str(link)).is_file() for link in links)
    assert ("meta", {"content": "failed", "name": "cglsuite:status"}) in Elements(index).found


@pytest.mark.nightly
def test_an_interrupt_ends_the_rendering(notebooks: Notebooks, tmp_path: Path) -> None:
    """What another thread asks to stop, stops within seconds."""
    stop, mark = threading.Event(), notebooks.folder / "running"
    threading.Thread(target=lambda: (wait_for(mark), stop.set()), daemon=True).start()
    began = time.monotonic()
    report = render(notebooks, f"open({str(mark)!r}, 'w').write('1')", "import time; time.sleep(120)", stop=stop)
    assert report.status == "failed"
    assert "interrupted" in report.reason
    assert time.monotonic() - began < 60


def test_a_process_that_dies_of_being_interrupted_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What asked it to end is the reason, however it ended: a library may abort where the signal meets it."""
    stop, mark, popen = threading.Event(), tmp_path / "running", subprocess.Popen
    code = f"import os, signal, time; signal.signal({int(signal.SIGTERM)}, lambda *_: os.abort()); open({str(mark)!r}, 'w'); time.sleep(60)"
    monkeypatch.setattr(notebook.subprocess, "Popen", lambda _, **options: popen([sys.executable, "-c", code], **options))
    threading.Thread(target=lambda: (wait_for(mark), stop.set()), daemon=True).start()
    job = Job(notebook="n.ipynb", name="n", title="n", parameters={}, output=str(tmp_path / "n.html"), cell_timeout_s=None)
    outcome = notebook.in_process(job, stop)
    assert outcome.status == "failed"
    assert outcome.reason == "interrupted before the report was complete; the rendering process was killed by SIGABRT"


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)


@pytest.mark.nightly
def test_sigterm_is_answered(notebooks: Notebooks) -> None:
    """A rendering process that is asked to end says so, instead of dying without a word."""
    mark = notebooks.folder / "pid"
    code = (
        f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); os.kill(os.getppid(), {int(signal.SIGTERM)}); time.sleep(60)"
    )
    assert_failed(render(notebooks, code), "interrupted")
    assert gone(int(mark.read_text()))
