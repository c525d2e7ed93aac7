"""Every key of a campaign file: its default, what a file can give it, and both sides of what it allows."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.campaign import Campaign, load_campaign
from cglsuite.campaigns.search import Candidate, Search
from cglsuite.graphs.files.named import data_files, named, plugin_files

GRID = {"scenarios": ["s"], "methods": ["m"]}
LEAST: dict[str, Any] = {"name": "x", "grid": GRID}


def with_key(path: str, value: Any) -> dict[str, Any]:
    """The least campaign with one more key, by its dotted path."""
    data: dict[str, Any] = {"name": "x", "grid": dict(GRID)}
    *sections, key = path.split(".")
    place = data
    for section in sections:
        place = place.setdefault(section, {})
    place[key] = value
    return data


def test_defaults() -> None:
    made = Campaign.parse(LEAST)
    assert made.model_dump() == {
        "name": "x",
        "title": "",
        "description": "",
        "plugins": [],
        "data": [],
        "data_options": {},
        "grid": {"scenarios": ["s"], "methods": ["m"], "backbones": [], "pretraining": [], "axes": {}},
        "seeds": {"order": [0], "split": [0], "init": [0], "design": "zip", "orders": None},
        "values": {},
        "overrides": [],
        "search": None,
        "run": {
            "workers": 1,
            "device": "auto",
            "numerics": "auto",
            "timeout_s": None,
            "checkpoint_every_s": None,
            "threads": 1,
            "executor": "local",
            "share_prefixes": True,
            "watch": [],
            "read": [],
            "cells_at_most": 50_000,
        },
        "reports": [],
    }
    assert (made.path, made.where, made.run.executors) == (None, "campaign 'x'", {})


def test_every_key_is_read() -> None:
    text = """
    name = "x-1"
    title = "T"
    description = "D"
    plugins = ["p.py"]
    data = ["d.npz"]
    [data_options.d]
    unlabelled = "none"
    [grid]
    scenarios = ["s", "t"]
    methods = ["m"]
    backbones = ["b"]
    pretraining = ["none", "p"]
    axes = { training.lr = [1, 2], "a.b" = ["x"] }
    [seeds]
    order = [1, 2]
    split = [3]
    init = [4, 5]
    design = "cross"
    [set]
    training.epochs = 3
    "method.flag" = true
    method.ratio = [1, 2]
    [[override]]
    match = { scenario = "s*", method = "m*", backbone = "b*" }
    set = { method.k = 1 }
    [[override]]
    match = {}
    set = {}
    [search]
    trials = 2
    scope = "first-tasks(3)"
    seeds = { init = [7] }
    grid = { training.lr = [1] }
    methods = { m = { method.k = [1, 2] } }
    [run]
    workers = 2
    device = "cuda"
    numerics = "portable"
    timeout_s = 2.5
    checkpoint_every_s = 0
    threads = 3
    executor = "grid"
    share_prefixes = false
    watch = ["csv"]
    read = ["../shared"]
    cells_at_most = 7
    [run.grid]
    queue = "long"
    [[report]]
    notebook = "a"
    title = "A"
    parameters = { x = [1] }
    """
    made = Campaign.parse(tomllib.loads(text), Path("p/x.toml"))
    everything = {"match": {"scenario": "*", "method": "*", "backbone": "*"}, "values": {}}
    assert made.model_dump() == {
        "name": "x-1",
        "title": "T",
        "description": "D",
        "plugins": ["p.py"],
        "data": ["d.npz"],
        "data_options": {"d": {"unlabelled": "none"}},
        "grid": {
            "scenarios": ["s", "t"],
            "methods": ["m"],
            "backbones": ["b"],
            "pretraining": ["none", "p"],
            "axes": {"training.lr": [1, 2], "a.b": ["x"]},
        },
        "seeds": {"order": [1, 2], "split": [3], "init": [4, 5], "design": "cross", "orders": None},
        "values": {"training.epochs": 3, "method.flag": True, "method.ratio": [1, 2]},
        "overrides": [{"match": {"scenario": "s*", "method": "m*", "backbone": "b*"}, "values": {"method.k": 1}}, everything],
        "search": {
            "trials": 2,
            "scope": "first-tasks(3)",
            "draw": "sobol",
            "seeds": {"order": [0], "split": [0], "init": [7], "design": "zip"},
            "grid": {"training.lr": [1]},
            "methods": {"m": {"method.k": [1, 2]}},
        },
        "run": {
            "workers": 2,
            "device": "cuda",
            "numerics": "portable",
            "timeout_s": 2.5,
            "checkpoint_every_s": 0,
            "threads": 3,
            "executor": "grid",
            "share_prefixes": False,
            "watch": ["csv"],
            "read": ["../shared"],
            "cells_at_most": 7,
        },
        "reports": [{"notebook": "a", "title": "A", "parameters": {"x": [1]}}],
    }
    assert made.run.executors == {"grid": {"queue": "long"}}
    assert (made.path, made.where) == (Path("p/x.toml"), "p/x.toml")


def test_defaults_of_a_search() -> None:
    search = Campaign.parse({**LEAST, "search": {}}).search
    assert search is not None
    seeds = {"order": [0], "split": [0], "init": [0], "design": "zip"}
    assert search.model_dump() == {"trials": None, "scope": None, "draw": "sobol", "seeds": seeds, "grid": {}, "methods": {}}


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("name", ["a", "0", "a.b_c-d"], ["", "A", "-a", "a b", ".a", 3]),
        ("grid.backbones", [[], ["b", "c"]], [[""], ["b", "b"], "b"]),
        ("grid.pretraining", [[], ["none", "p"]], [[""], ["p", "p"], "p"]),
        ("grid.methods", [["m"]], [[], [""], ["m", "m"], "m"]),
        ("seeds.order", [[0], [2**63 - 1]], [[], [-1], [2**63], [1.0], [True], 0]),
        ("seeds.design", ["zip", "cross"], ["Zip", ""]),
        ("run.workers", [1, 1024], [0, 1025, 1.0, True]),
        ("run.threads", [1, 1024], [0, 1025, "1"]),
        ("run.checkpoint_every_s", [0, 0.1, 1e9], [-1, 1.1e9, float("inf"), float("nan"), "5"]),
        ("run.timeout_s", [0.1, 1e9, 5], [0, -1, 1.1e9, float("inf"), float("nan"), "5"]),
        ("run.device", ["auto", "cpu", "cuda"], ["gpu", "cuda:0"]),
        ("run.executor", ["x"], [""]),
        ("run.share_prefixes", [True, False], [1, "true"]),
        ("run.cells_at_most", [1, 100_000_000], [0, 100_000_001, 1.5, True]),
        ("run.watch", [[], ["csv", "csv=x"]], [["csv", "csv"], [""], "csv"]),
        ("run.read", [[], ["a", "../b"]], [["a", "a"], [""], "a"]),
        ("search.trials", [2, 1_000_000], [1, 0, 1_000_001]),
        ("search.scope", ["all", "first-tasks(2)"], ["first-tasks(1)", "first", "first-tasks(0)", ""]),
        ("search.grid", [{"a": [1]}, {}], [{"a": []}, {"a": 1}, {"a": [1, 1]}]),
        ("plugins", [["a.py"]], [[""], ["a.py", "a.py"]]),
        ("data", [["a"]], [[""], ["a", "a"]]),
        ("set", [{"a": 1}, {"a": True}, {"a": "x"}, {"a": [1]}, {"a": 1.5}, {"a": {"b": 1, "c": 2}}], [{"a": None}, 3]),
        ("report", [[{"notebook": "a"}]], [[{"notebook": ""}], [{}]]),
    ],
)
def test_what_a_key_allows(path: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        Campaign.parse(with_key(path, value))
    for value in bad:
        with pytest.raises(UsageError, match=f"^campaign: {path}"):
            Campaign.parse(with_key(path, value))


@pytest.mark.parametrize("table", ["set", "search.grid", "grid.axes"])
@pytest.mark.parametrize(
    ("values", "twice"),
    [
        ({"lr": [1], "training": {"lr": [2]}}, "'lr' and 'training.lr'"),
        ({"training": {"lr": [1]}, "lr": [2]}, "'training.lr' and 'lr'"),
        ({"training.lr": [1], "training": {"lr": [2]}}, "'training.lr' and 'training.lr'"),
    ],
)
def test_a_value_is_set_once(table: str, values: dict[str, Any], twice: str) -> None:
    """Under its bare name, its dotted name, or as a table."""
    with pytest.raises(UsageError, match=f"{table}: {twice} set the same value; remove one of them"):
        Campaign.parse(with_key(table, values))
    Campaign.parse(with_key(table, {"method": {"lr": [1]}, "training": {"lr": [2]}}))


@pytest.mark.parametrize("wrapped", [lambda inner: {"a": inner}, lambda inner: [inner]])
def test_twenty_levels_are_read_and_more_refused(wrapped: Any) -> None:
    """Deeper than that is no key of a campaign."""

    def nested(levels: int) -> dict[str, Any]:
        value: Any = 1
        for _ in range(levels):
            value = wrapped(value)
        return {**LEAST, "report": [{"notebook": "n", "parameters": {"p": value}}]}

    # The file, its list of reports, a report and its parameters are four levels themselves.
    assert Campaign.parse(nested(16)).reports
    with pytest.raises(UsageError, match="^campaign: tables or lists are nested more than 20 levels deep, deeper than any key of a"):
        Campaign.parse(nested(17))


def test_unknown_keys_list_what_is_known() -> None:
    """Where nothing is near: the keys of that section, and never one that no file may give."""
    with pytest.raises(UsageError, match=r"^campaign: run.qqqqqq: unknown key. Known here: workers, device, .*, watch, read\.$") as error:
        Campaign.parse(with_key("run.qqqqqq", 1))
    assert "executors" not in str(error.value)
    with pytest.raises(UsageError, match=r"zzzzzz: unknown key. Known here: name, title, .*, set, override, search, run, report\.$"):
        Campaign.parse(with_key("zzzzzz", 1))
    for inner in ("values", "overrides", "reports"):  # names of the model, not of the file
        with pytest.raises(UsageError, match=f"{inner}: unknown key"):
            Campaign.parse(with_key(inner, {}))
    many = {**LEAST, **{f"q{n}": 1 for n in range(12)}}
    with pytest.raises(UsageError) as error:
        Campaign.parse(many, Path("x.toml"))
    assert len(str(error.value).splitlines()) == 8
    assert all(line.startswith("x.toml: q") for line in str(error.value).splitlines())


def test_files_beside_the_campaign_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They join those that are named already; an absent one is an error of the campaign."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "study"
    folder.mkdir()
    for name in ("own.py", "photo.npz"):
        (folder / name).write_text("")
    file = folder / "x.toml"
    file.write_text('name = "x"\nplugins = ["own.py"]\ndata = ["photo.npz"]\n[grid]\nscenarios = ["s"]\nmethods = ["m"]\n')
    (tmp_path / "other.npz").write_text("")
    with named(data=["other.npz"]):
        assert load_campaign("study/x.toml").withheld == ["own.py"]
        assert data_files() == [tmp_path / "other.npz", folder / "photo.npz"]
        assert plugin_files() == []
        assert load_campaign("study/x.toml", allow_code=True).withheld == []
        assert plugin_files() == [folder / "own.py"]
        assert load_campaign("study/x.toml").withheld == []
        (folder / "own.py").unlink()
        with pytest.raises(UsageError, match=r"^study/x.toml: study/own.py: no such file in "):
            load_campaign("study/x.toml", allow_code=True)


@pytest.mark.parametrize(
    ("keys", "watch", "named_file", "told"),
    [
        ('plugins = ["own.py"]', "", "", "the plugin file own.py"),
        ('plugins = ["own.py"]', "", "own.py", ""),
        ('plugins = ["./own.py"]', "", "own.py", ""),
        ('plugins = ["other/own.py"]', "", "own.py", "the plugin file other/own.py"),
        ("", '["own.py:W"]', "", "the observer own.py:W of run.watch"),
        ("", '["own.py:W=logs"]', "own.py", ""),
        ("", '["package.module:W=logs"]', "", "the observer package.module:W of run.watch"),
        ("", '["csv", "csv=logs", "tensorboard"]', "", ""),
        ('plugins = ["own.py"]', '["csv", "w.py:W"]', "", "the plugin file own.py, the observer w.py:W of run.watch"),
    ],
)
def test_code_of_a_campaign_is_refused_unless_it_is_allowed(
    keys: str, watch: str, named_file: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ``--allow-code``, or as the same file is named."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("raise SystemExit")
    run = f"[run]\nwatch = {watch}\n" if watch else ""
    (tmp_path / "x.toml").write_text(f'name = "x"\n{keys}\n[grid]\nscenarios = ["s"]\nmethods = ["m"]\n{run}')
    with named(plugins=[named_file] if named_file else []):
        campaign = load_campaign("x.toml")
        if told:
            with pytest.raises(
                UsageError, match=f"^x.toml: running this campaign executes code: {told}. Review that code, then allow it with --allow-code"
            ):
                campaign.refuse_code()
        else:
            campaign.refuse_code()
        if not keys:
            campaign.refuse_code(observers=False)
        if "other" not in keys:
            load_campaign("x.toml", allow_code=True).refuse_code()


def test_an_absent_file_suggests_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest by name, else the first five, else what a campaign is."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"^there is no campaign file a.toml. A campaign is a TOML file, for example reports/demo.toml.$"):
        load_campaign("a.toml")
    (tmp_path / "reports").mkdir()
    for n in range(6, 0, -1):
        (tmp_path / "reports" / f"study-{n}.toml").write_text("")
    (tmp_path / "reports" / "study-0.txt").write_text("")
    listed = " or ".join(f"reports/study-{n}.toml" for n in range(1, 6))
    with pytest.raises(UsageError) as error:
        load_campaign("qqqqqqqqqqqq.toml")
    assert str(error.value) == f"there is no campaign file qqqqqqqqqqqq.toml. Did you mean {listed}?"
    with pytest.raises(UsageError, match=r"x/study-6.toml. Did you mean reports/study-6.toml"):
        load_campaign("x/study-6.toml")
    (tmp_path / "reports" / "wide").mkdir()
    (tmp_path / "reports" / "wide" / "widths.toml").write_text("")
    with pytest.raises(UsageError, match=r"no campaign file widths.toml. Did you mean reports/wide/widths.toml\?$"):
        load_campaign("widths.toml")
    with pytest.raises(UsageError, match=r"^reports: cannot be read: |^reports: "):
        load_campaign("reports")
    (tmp_path / "b.toml").write_text("x = " + "9" * 5000)
    with pytest.raises(UsageError, match="^b.toml: not a TOML file: a number has thousands of digits$"):
        load_campaign("b.toml")
    (tmp_path / "b.toml").write_text("x = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(UsageError, match="^b.toml: tables or lists are nested more than 20 levels deep"):
        load_campaign("b.toml")


def test_a_search_in_words() -> None:
    """Its backbone is named where it is not the preset's."""
    search = Search(scenario="s", method="m", backbone=None, candidates=[Candidate(overrides={}, cells=[])])
    assert (search.label, search.cells) == ("s × m", [])
    assert Search(scenario="s", method="m", backbone="b", candidates=[]).label == "s × m × b"
