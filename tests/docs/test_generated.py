"""Pages and tables that are made of specs and data: complete, true to what they are made of, and safe from what names hold."""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import scipy.stats
from doc_tool import TOOLS, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite import Catalogue, load_catalogue
from cglsuite.cells import resolve_cell
from cglsuite.cells.spec import preset_differences
from cglsuite.cells.storage.store import Store

pytestmark = pytest.mark.plugins
A, B = "aromaticity/class-il@begin-1", "aromaticity/class-il@cglb-1"
HERE = "protocols/page.md"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def made(catalogue: Catalogue) -> dict[str, str]:
    pages: dict[str, str] = tool("doc_cards").pages(catalogue) | tool("doc_methods").cards(catalogue)
    return pages


@pytest.mark.nightly
def test_every_method_and_every_scenario_has_its_place(made: dict[str, str], catalogue: Catalogue) -> None:
    cards = tool("doc_cards")
    for entry in catalogue.entries("method"):
        page = made[cards.method_path(entry.name)]
        assert all(f"`method.{h.name}`" in page for h in entry.spec.hyperparameters)  # type: ignore[attr-defined]
    for entry in catalogue.entries("scenario"):
        page = made[cards.dataset_path(entry.spec.dataset)]  # type: ignore[attr-defined]
        assert page.count(f"#{cards.anchor(entry.name)} ") == 1, entry.name
    for kind in ("metric", "backbone", "schedule", "notebook"):
        assert made[f"catalogue/{kind}s.md"].count("\n## ") == len(catalogue.names(kind))


@pytest.mark.nightly
def test_a_dataset_page_tells_what_presets_share_from_where_they_differ(made: dict[str, str]) -> None:
    page = made["catalogue/datasets/aromaticity.md"]
    differ, same = page.partition("### What they have in common")[::2]
    (row,) = [line for line in differ.splitlines() if line.startswith("| `scenario.performance` |")]
    (header,) = [line for line in differ.splitlines() if line.startswith("| setting | `")]
    message = dict(zip(header.split("`")[1::2], row.split("`")[3::2], strict=True))
    assert {message[f"{setting}@begin-1"] for setting in ("task-il", "class-il")} == {"micro"}
    assert {message[f"{setting}@cglb-1"] for setting in ("task-il", "class-il")} == {"macro"}
    assert "| `scenario.level` | `GC` |" in same
    assert "| `scenario.labels` |" in differ
    assert "| `scenario.labels` |" not in same
    assert "`scenario.performance`" not in same


def test_a_table_of_differences_has_a_row_per_difference(catalogue: Catalogue) -> None:
    page = tool("doc_directives").expanded(f"Text.\n\n{{{{ diff {A} {B} }}}}\n", HERE, catalogue)
    found = preset_differences(catalogue, A, B)
    assert f"{len(found)} values differ." in page
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert rows == [d.field for d in found]
    assert "| `scenario.performance` | `micro` | `macro` |" in page
    assert f"(../catalogue/datasets/aromaticity.md#{tool('doc_cards').anchor(A)})" in page


def test_published_values_are_those_of_the_tables_and_artefacts_are_marked(catalogue: Catalogue) -> None:
    page = tool("doc_directives").expanded("{{ published class-IL Aromaticity Aromaticity-CL }}", HERE, catalogue).replace("\xa0", " ")
    assert "| Bare | 6.2 ± 1.4% | 5.4 ± 0.2% |" in page
    (joint,) = [line for line in page.splitlines() if line.startswith("| Joint")]
    assert joint.startswith("| Joint | 28.6 ± 1.8% | 77.2 ± 1.3% (artefact: ")
    assert [line.split(" |")[0] for line in page.splitlines() if "artefact" in line] == ["| LwF", "| MAS", "| GEM", "| TWP", "| Joint"]
    message = tool("doc_directives").expanded("{{ gap class-IL Joint Aromaticity Aromaticity-CL }}", HERE, catalogue)
    assert "BeGin reports **28.6 ± 1.8%** (table 4" in message
    assert "CGLB reports **77.2 ± 1.3%** (table 6" in message


@pytest.mark.nightly
def test_measured_values_are_those_of_the_records(catalogue: Catalogue) -> None:
    """By hand from the records' last rows: the mean of each cell of the table, the number of runs, and no record of other settings."""
    asked = "{{ measured aromaticity class-il joint dataset.features method.only_last=true }}"
    page = tool("doc_directives").expanded(asked, HERE, catalogue).replace("\xa0", " ")
    values: dict[tuple[str, str], list[float]] = {}
    for record in Store(TOOLS.parents[1] / "reports" / "gallery" / "records").records():
        given = record.cell["configuration"]
        if given.get("scenario.dataset") == "aromaticity" and given.get("method.only_last"):
            values.setdefault((record.cell["scenario"], given["dataset.features"]), []).append(statistics.mean(record.performance()[-1]))
    assert len(values) == 4
    for (scenario, features), runs in values.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| [`{scenario}`]")]
        message = row.split(" | ")[1 if features == "canonical" else 2]
        assert message.removesuffix(" |") == f"{100 * statistics.mean(runs):.1f} ± {100 * statistics.stdev(runs):.1f}%, {len(runs)} runs"


def test_repetitions_stand_beside_what_is_printed() -> None:
    """By hand: BeGin prints 93.3 ± 1.8 and 0.0 ± 0.0 for PackNet on Cora, 92.0 ± 2.0 and -2.1 ± 1.9 for HAT, over ten orders."""
    settings = {"training.lr": 0.001, "backbone.dropout": 0.5, "backbone.predictor_dropout": None}
    settings |= {"backbone.init": "glorot", "method.threshold": None, "method.beta": None, "pretraining.scheme": None}
    same = {"status": "done", "protocol": "begin-1", "setting": "task-il", "dataset": "cora", "forgetting_from_diagonal": 0.0}
    same |= {f"configuration.{key}": value for key, value in settings.items()}
    ours = {
        ("packnet", True): [0.929, 0.931, 0.933, 0.935, 0.937],
        ("hat", False): [0.90, 0.91, 0.92],
        ("hat", True): [0.6, 0.7, 0.8],
        ("cat", True): [0.5],
    }
    rows = [
        same | {"method": m, "configuration.method.as_begin": as_begin, "average_performance": value, "order_seed": 1000 * n}
        for (m, as_begin), values in ours.items()
        for n, value in enumerate(values)
    ]
    same |= {"scenario": "cora/task-il@begin-1", "split_seed": 0, "init_seed": 0}
    rows = [same | row for row in rows]
    rows.append(rows[0] | {"order_seed": 9000, "average_performance": 0.1})  # of the order on which a search chose these settings
    rows.append(rows[0] | {"configuration.training.lr": 0.01})  # tried by the search, and not chosen
    rows.append(rows[0] | {"configuration.backbone.init": "linear", "average_performance": 0.2})  # varied by another campaign
    frame = pd.DataFrame(rows).astype({key: "object" for key in rows[0] if key.startswith("configuration")})
    frame = frame.where(frame.notna(), None)
    search = {"scenario": "cora/task-il@begin-1", "method": "packnet", "seeds": [{"order": 9000, "split": 0, "init": 0}]}
    frame = tool("doc_gallery").repetitions(frame, [search | {"overrides": {"training.lr": 0.001, "backbone.dropout": 0.5}}])
    assert len(frame) == len(rows) - 1
    assert len(tool("doc_gallery").repetitions(frame, [search | {"overrides": {"training.lr": 0.01}}])) == len(frame)
    page = tool("doc_beside").beside(frame, ["task-il", "cora", ":", "packnet", "hat", "cat", "pi-gnn"])
    lines = [line.strip("| ").split(" | ") for line in page.replace("\xa0", " ").splitlines()[2:]]
    assert [line[1] for line in lines] == [
        "packnet (as benchmarked, lr 0.001, dropout 0.5)",
        "hat (as benchmarked, lr 0.001, dropout 0.5)",
        "hat (as in the paper, lr 0.001, dropout 0.5)",
        "cat (as benchmarked, lr 0.001, dropout 0.5)",
        "pi-gnn",
    ]
    packnet, benchmarked, paper, single, missing = lines
    assert packnet[2:] == ["5", "93.3 ± 0.3", "93.3 ± 1.8", "equivalent", "0.0 ± 0.0", "0.0 ± 0.0", "no verdict"]
    own, theirs = 10 / 3**0.5, 2 / 10**0.5
    error = math.hypot(own, theirs)
    margin = 22 + error * float(scipy.stats.t.ppf(0.95, error**4 / (own**4 / 2 + theirs**4 / 9)))
    assert benchmarked[2:6] == ["3", "70.0 ± 10.0", "92.0 ± 2.0", f"undecided (± {margin:.1f})"]
    assert paper[2:] == ["3", "91.0 ± 1.0", "92.0 ± 2.0", "another form", "0.0 ± 0.0", "-2.1 ± 1.9", "another form"]
    assert single[2:6] == ["1", "50.0", "56.9 ± 10.7", "none"]
    assert missing[2:] == ["not run", "–", "90.8 ± 2.8", "none", "–", "0.0 ± 0.0", "none"]
    later = tool("doc_beside").beside(frame.assign(protocol="begin-2"), ["task-il", "@begin-2", "cora", ":", "packnet", "joint"])
    rows_of = [line.strip("| ").split(" | ") for line in later.replace("\xa0", " ").splitlines()[2:]]
    assert rows_of[0] == lines[0], "another version of the protocol, by name"
    assert rows_of[1][2:] == ["not run", "–", "92.4 ± 1.5", "none", "–", "–", "none"], "joint training has no printed AF"


def test_a_table_beside_print_is_of_the_protocols_paper() -> None:
    """CGLB prints -42.4 ± 7.5 as the AF of Bare on Aromaticity in task-IL; its TWP has a known artefact, which gets no verdict."""
    same = {"status": "done", "protocol": "cglb-2", "setting": "task-il", "dataset": "aromaticity", "forgetting_from_diagonal": 0.9}
    same |= {f"configuration.{key}": None for key in ("method.as_begin", "pretraining.scheme", "method.threshold", "method.beta")}
    same |= {f"configuration.{key}": 1e-3 for key in ("training.lr", "backbone.dropout", "backbone.predictor_dropout")}
    rows = [
        same | {"method": method, "average_performance": 0.532, "backward_transfer": af}
        for method in ("bare", "twp")
        for af in (-0.423, -0.424, -0.425)
    ]
    page = tool("doc_beside").beside(pd.DataFrame(rows, dtype=object), ["task-il", "@cglb-2", "aromaticity", ":", "bare", "twp"])
    bare, twp = [line.strip("| ").split(" | ")[2:] for line in page.replace("\xa0", " ").splitlines()[2:]]
    assert bare[1:3] + bare[4:6] == ["53.2 ± 0.0", "53.2 ± 3.8", "-42.4 ± 0.1", "-42.4 ± 7.5"]
    assert twp[3] == twp[6] == "artefact"
    with pytest.raises(ValueError, match="no paper has the protocol 'drift-9'"):
        tool("doc_beside").beside(pd.DataFrame(rows, dtype=object), ["task-il", "@drift-9", "aromaticity", ":", "bare"])


@pytest.mark.plugins
def test_a_table_beside_print_may_be_of_the_presets_own_settings(catalogue: Catalogue) -> None:
    """The preset of LwF on Cora has a dropout of its own; another dropout has been run as often."""
    same = {"status": "done", "protocol": "begin-2", "setting": "task-il", "dataset": "cora", "method": "lwf"}
    same |= {f"configuration.{key}": None for key in ("method.as_begin", "pretraining.scheme", "method.threshold", "method.beta")}
    same |= {
        "configuration.training.lr": 1e-3,
        "configuration.training.weight_decay": 0.0,
        "configuration.backbone.predictor_dropout": None,
    }
    own = resolve_cell(catalogue, "cora/task-il@begin-2", "lwf").configuration["backbone.dropout"]
    rows = [
        same | {"configuration.backbone.dropout": dropout, "average_performance": ap, "forgetting_from_diagonal": 0.0}
        for dropout, ap in ((own, 0.9), (own + 0.1, 0.1))
        for _ in range(3)
    ]
    shown = [
        tool("doc_beside").beside(pd.DataFrame(rows, dtype=object), ["task-il", "@begin-2", *words, "cora", ":", "lwf"], catalogue)
        for words in ([], ["preset"])
    ]
    assert [(len(one.splitlines()) - 2, "10.0" in one, "90.0" in one) for one in shown] == [(2, True, True), (1, False, True)]


@pytest.mark.plugins
def test_of_what_a_campaign_varied_a_table_beside_print_has_the_presets_own(catalogue: Catalogue) -> None:
    """As many runs of another number of epochs, which come first."""
    same = {"status": "done", "protocol": "cglb-2", "setting": "task-il", "dataset": "aromaticity", "method": "bare"}
    same |= {f"configuration.{key}": None for key in ("method.as_begin", "pretraining.scheme", "method.threshold", "method.beta")}
    same |= {f"configuration.{key}": 1e-3 for key in ("training.lr", "backbone.dropout", "backbone.predictor_dropout")}
    own = resolve_cell(catalogue, "aromaticity/task-il@cglb-2", "bare").configuration["training.epochs"]
    rows = [
        same | {"configuration.training.epochs": epochs, "average_performance": ap, "backward_transfer": 0.0}
        for epochs, ap in ((own // 2, 0.1), (own, 0.9), (own * 2, 0.2))
        for _ in range(3)
    ]
    words = ["task-il", "@cglb-2", "aromaticity", ":", "bare"]
    assert "| 90.0" in tool("doc_beside").beside(pd.DataFrame(rows, dtype=object), words, catalogue)
    more = pd.DataFrame([*rows, rows[0]], dtype=object)
    assert "| 10.0" in tool("doc_beside").beside(more, words, catalogue), "of more runs, however far from the preset"


def test_a_table_beside_print_may_have_pre_trained_bodies() -> None:
    """BeGin prints AF 69.4 for Bare on Aromaticity, 71.3 where InfoGraph trained the body; of DGI there it prints nothing."""
    same = {"status": "done", "protocol": "begin-2", "setting": "class-il", "dataset": "aromaticity", "method": "bare"}
    same |= {f"configuration.{key}": None for key in ("method.as_begin", "method.threshold", "method.beta")}
    same |= {f"configuration.{key}": 1e-3 for key in ("training.lr", "backbone.dropout", "backbone.predictor_dropout")}
    same |= {"average_performance": 0.06, "forgetting_from_diagonal": 0.6}
    rows = [same | {"configuration.pretraining.scheme": scheme} for scheme in ("infograph", "dgi", None, "none") for _ in range(2)]
    shown = {}
    for word in ((), ("pretrained",)):
        page = tool("doc_beside").beside(pd.DataFrame(rows, dtype=object), ["class-il", "@begin-2", *word, "aromaticity", ":", "bare"])
        cells = [line.strip("| ").split(" | ") for line in page.replace("\xa0", " ").splitlines()[2:]]
        shown[word] = {line[1].partition("(")[2].partition(",")[0]: line[7] for line in cells}
    assert shown[()] == {"dgi": "69.4 ± 2.6", "lr 0.001": "69.4 ± 2.6"}
    assert shown["pretrained",] == shown[()] | {"infograph": "71.3 ± 3.7"}


def test_every_command_has_its_help(catalogue: Catalogue) -> None:
    from cglsuite.cli.main import COMMANDS

    page = tool("doc_directives").expanded("{{ commands }}", "reference/command-line.md", catalogue)
    assert [name for name in COMMANDS if f"\n## cglsuite {name}\n" not in f"\n{page}"] == []
    assert "### cglsuite scenarios diff" in page


def test_what_papers_call_af_is_listed_with_its_sign(catalogue: Catalogue) -> None:
    page = tool("doc_directives").expanded("{{ metrics AF }}", "glossary.md", catalogue)
    rows = [line.split(" | ") for line in page.splitlines()[2:]]
    assert [(row[1], row[3]) for row in rows] == [
        ("`forgetting_from_diagonal`", "lower"),
        ("`backward_transfer`", "higher"),
        ("`af_hard`", "higher"),
    ]


def test_an_unknown_directive_is_an_error(catalogue: Catalogue) -> None:
    with pytest.raises(KeyError, match="dif"):
        tool("doc_directives").expanded("{{ dif a b }}", HERE, catalogue)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.sampled_from(" |<>[]()*_`\\#{}&"), max_size=30))
def test_text_shows_exactly_that(given_text: str) -> None:
    markdown = pytest.importorskip("markdown", reason='pages are rendered by the tools of the documentation: pip install "cglsuite[docs]"')
    from bs4 import BeautifulSoup

    doc_text = tool("doc_text")
    shown = f"x {given_text} x"
    html = markdown.markdown(doc_text.table(("a", "b"), [(doc_text.text(shown), "end")]), extensions=["tables"])
    cells = [cell.get_text() for cell in BeautifulSoup(html, "html.parser").find_all("td")]
    assert cells == [" ".join(shown.split()), "end"]


@pytest.mark.nightly
def test_pages_are_made_without_torch() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(TOOLS)!r})\n"
        "from cglsuite import load_catalogue\nfrom doc_cards import pages\nfrom doc_methods import cards\n"
        "from doc_directives import expanded\n"
        f"c = load_catalogue(); pages(c); cards(c); expanded('{{{{ diff {A} {B} }}}}', 'a.md', c); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


# --- gallery and figures -----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_the_gallery_embeds_every_report_with_its_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in git and those that were rendered; of the others it names the command. A leaderboard comes with its feeds."""
    gallery = tool("doc_gallery")
    for name in ("gallery.toml", "ledger.html", "demo/campaign_report.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((gallery.FOLDER / name).read_bytes())
    for name in ("leaderboard/index.html", "leaderboard/feeds/index.json"):
        (tmp_path / "rendered" / name).parent.mkdir(parents=True)
        (tmp_path / "rendered" / name).write_text("<h1>A board</h1>", encoding="utf-8")
    monkeypatch.setattr(gallery, "FOLDER", tmp_path)
    page, shown = gallery.gallery_sections(), {"ledger.html", "demo/campaign_report.html", "leaderboard/index.html"}
    assert set(gallery.gallery_files()) == {*shown, "leaderboard/feeds/index.json"}
    assert re.findall(r'<iframe src="(\S+)" title="', page) == ["ledger.html", "leaderboard/index.html", "demo/campaign_report.html"]
    assert page.count('<details class="report" open>') == 1
    assert page.count("\n## ") + 1 == len(gallery.listed())
    assert "Not rendered here: `python tests/tools/gallery.py findings`." in page
    assert page.count("Not rendered here: ") == len(gallery.listed()) - len(shown)
    demonstration = page.partition("demo/campaign_report.html")[2].partition("<details")[0]
    assert "er-gnn is best" in demonstration


@pytest.mark.nightly
def test_figures_are_drawn_from_records_and_data() -> None:
    """One image per theme, with its text alternative; a figure that nobody has is an error, not a gap."""
    figures = tool("doc_gallery").figures
    drawn = figures(["matrices", "reports/demo.toml", "er-gnn_on"])
    assert drawn.count("#only-light") == drawn.count("#only-dark") == 2  # task-IL and class-IL
    assert 'alt="Mean performance matrix (accuracy in percent) of er-gnn' in drawn
    assert figures(["homophily", "synthetic-csbm/class-il@example-1"]).count("<img") == 2
    with pytest.raises(ValueError, match="nothing to show"):
        figures(["curves", "reports/demo.toml", "no_such_scenario"])
    with pytest.raises(KeyError, match="bars"):
        figures(["bars", "reports/demo.toml"])
