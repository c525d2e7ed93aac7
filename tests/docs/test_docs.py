"""Every block of code in docs/ and in the README holds: see tests/tools/doc_blocks.py for how each is run, or checked.

What would take long is checked in a cheaper way here; ``as_they_stand.py`` beside this file runs it whole (``tox -e docs``).
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from doc_blocks import ROOT, Block, Reader, blocks, pages
from page_elements import texts

import cglsuite
from cglsuite.base.errors import UsageError

README = ROOT / "README.md"
WITH_CODE = [page for page in pages() if blocks(page)]
Make = Callable[[bool], Reader]
pytestmark = pytest.mark.plugins


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


#: Pages whose blocks take several seconds each to follow; the README's are followed by day.
AT_NIGHT = ("write-an-executor", "jupyter", "check-a-plugin", "audit", "watch-a-run", "troubleshooting", "pyg")
AT_NIGHT += ("publish-results", "write-a-measure", "write-a-scenario", "replay", "study-in-python", "several-machines", "records")
AT_NIGHT += ("campaign-files", "task-free-streams", "forgetting", "pretraining", "links-and-graphs", "add-a-dataset")
BY_DAY = [page for page in WITH_CODE if page.stem not in AT_NIGHT]
OTHERS = [pytest.param(page, marks=pytest.mark.nightly) for page in WITH_CODE if page.stem in AT_NIGHT]


@pytest.mark.parametrize("page", [*BY_DAY, *OTHERS], ids=named)
def test_the_blocks_of_a_page_hold(page: Path, reader: Make) -> None:
    follower = reader(False)
    for block in blocks(page):
        follower.follow(block)


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site names them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)]
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in titles}


def test_links_to_headings_hold() -> None:
    """The strict build of the site checks this too, but only in the full round. Generated pages are left to it."""
    broken, checked = [], 0
    for page in (ROOT / "docs").rglob("*.md"):
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([\w-]+)\)", page.read_text(encoding="utf-8")):
            there = page.parent / target if target else page
            if there.is_file():
                checked += 1
                broken += [f"{named(page)}: {target}#{anchor}"] if anchor not in headings(there) else []
    assert checked > 20
    assert broken == []


def test_what_is_only_parsed_says_why() -> None:
    unexplained = [str(b) for page in WITH_CODE for b in blocks(page) if b.parsed and not re.search(r"\w+ \w+", b.parsed)]
    assert unexplained == []


def test_a_block_of_no_known_language_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import doc_blocks

    monkeypatch.setattr(doc_blocks, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```ruby\nputs 1\n```\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"page\.md:1: a block of 'ruby'"):
        blocks(page)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("cglsuite list mehtods", AssertionError, "ended with status 2"),
        ("cglsuite cell --scenario synthetic-csbm/class-il@begin-1", click.UsageError, "Missing parameter: method"),
        ("cglsuite status absent.toml", AssertionError, "ended with status 2"),
        ("cglsuite run absent.toml", UsageError, "no campaign file"),
        ("python -m pip install something", ValueError, "mark it as parsed"),
        ("rm -r here", ValueError, "the program 'rm'"),
    ],
)
def test_a_command_that_does_not_hold_is_noticed(text: str, error: type[Exception], message: str, reader: Make) -> None:
    with pytest.raises(error, match=message):
        reader(False).follow(Block(page=README, line=1, language="bash", text=text))


def test_a_python_block_that_fails_is_noticed(reader: Make) -> None:
    with pytest.raises(AssertionError):
        reader(False).follow(Block(page=README, line=1, language="python", text="assert 1 == 2"))


# --- campaigns and pages that texts name --------------------------------------------------------------------------------------------

TEXTS = sorted(
    {*pages(), *ROOT.glob("*.md"), *ROOT.glob("plugins/*/README.md"), ROOT / "reports" / "README.md", *ROOT.glob("reports/**/*.toml")}
)
CAMPAIGN = re.compile(r"(?<![\w/])reports/[\w/*$-]+\.(?:toml|html)")
NAMED = re.compile(r"pages? (`[\w-]+`(?: and `[\w-]+`)*) of\s+the\s+\[gallery\]")


def test_campaigns_that_texts_name_are_there() -> None:
    found_in = {(path, found) for path in TEXTS for found in CAMPAIGN.findall(path.read_text(encoding="utf-8"))}
    assert len(found_in) > 60
    assert {(named(path), found) for path, found in found_in if not any(ROOT.glob(found.replace("$f", "*")))} == set()


def test_pages_of_the_gallery_that_texts_name_are_in_its_list() -> None:
    listed = {page["name"] for page in tomllib.loads((ROOT / "reports" / "gallery" / "gallery.toml").read_text(encoding="utf-8"))["page"]}
    texts_of = [" ".join(path.read_text(encoding="utf-8").split()) for path in TEXTS]
    shown = {name for text in texts_of for found in NAMED.findall(text) for name in re.findall(r"`([\w-]+)`", found)}
    assert len(shown) > 15
    assert shown <= listed


# --- the README: its first two commands and its method are tested in tests/packaging/test_readme.py --------------------------------


def test_commands_of_the_readme_hold(reader: Make) -> None:
    follower = reader(False)
    for block in [b for b in blocks(README) if b.language == "bash"][2:]:
        follower.follow(block)


def test_configuration_in_the_readme_is_toml(reader: Make) -> None:
    found = [b for b in blocks(README) if b.language == "toml"]
    assert found
    for block in found:
        reader(False).follow(block)


def test_ten_lines_of_python_in_the_readme_hold() -> None:
    """The class is a method, and ``run`` takes what it is given; a tutorial's test trains such a study."""
    shown = next(b.text for b in blocks(README) if b.language == "python")
    assert len([line for line in shown.splitlines() if line.strip()]) <= 10
    head, _, calls = shown.partition("study = ")
    namespace: dict[str, Any] = {}
    exec(head, namespace)
    assert issubclass(namespace["Decay"], cglsuite.Method)
    call = ast.parse(calls.splitlines()[0], mode="eval").body
    assert isinstance(call, ast.Call)
    given = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
    inspect.signature(cglsuite.run).bind(*map(ast.unparse, call.args), **given)
    assert set(re.findall(r"study\.(\w+)\(", calls)) <= set(dir(cglsuite.Study))


def test_the_result_in_the_readme_is_that_of_the_demonstration() -> None:
    """The committed page of the demonstration has the two values of the sentence below the picture."""
    shown = re.search(r"Replay \(ER-GNN\) reaches ([\d.]+)% and joint training ([\d.]+)%", README.read_text(encoding="utf-8"))
    page = (ROOT / "reports" / "gallery" / "demo" / "campaign_report.html").read_text(encoding="utf-8")
    means = {cell.split()[0] for cell in texts(page, "td.number") if cell.strip()}
    assert shown is not None
    assert [value for value in shown.groups() if value not in means] == []
