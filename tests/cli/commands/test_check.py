"""``cglsuite check NAME``: what it prints, its exit status, and what it says of names it does not know."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from cglsuite.cli.commands.check import _lines
from cglsuite.cli.main import run
from cglsuite.testing import CheckReport, Finding

pytestmark = pytest.mark.plugins


def test_a_metric_that_conforms(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "average_performance"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("metric average_performance  cglsuite-metrics ")
    assert "metric average_performance conforms: 17 ok" in out


def test_json_holds_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--json", "--kind", "metric", "forward_transfer", "--only", "value"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["passed"] is True
    assert {"check", "status", "where", "message", "fix", "evidence", "replay"} == set(report["findings"][0])


def test_unknown_name_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "averag_performance"]) == 2
    assert "average_performance" in capsys.readouterr().err


def test_failures_are_grouped_and_carry_their_fix() -> None:
    findings = [
        Finding(check="learns", status="ok", where="testing-nodes/task-il@testing-1"),
        *(
            Finding(check="acts", status="failed", where=f"testing-{kind}/task-il@testing-1", message="starts a process", fix="do not")
            for kind in ("nodes", "graphs")
        ),
        Finding(
            check="learns",
            status="failed",
            where="testing-links/class-il@testing-1",
            message="too low",
            fix="lower the penalty",
            evidence="after  task 1\n    1   0.500",
            replay="cglsuite check --kind method mine --only learns --where testing-links/class-il --seed 7",
        ),
        Finding(check="device", status="skipped", where="testing-nodes/task-il@testing-1", message="no GPU"),
    ]
    report = CheckReport(kind="method", name="mine", provider="pkg 1.0", findings=tuple(findings))
    text = click.unstyle("\n".join(_lines(report)))
    assert "learns               in 1 stream" in text
    assert "acts (testing-nodes/task-il, testing-graphs/task-il): starts a process" in text
    assert "fix: do not" in text
    assert (
        "performance in testing-links/class-il\n           after  task 1\n               1   0.500\n           fix: lower the penalty"
        in text
    )
    assert "again: cglsuite check --kind method mine --only learns --where testing-links/class-il --seed 7" in text
    assert text.endswith("method mine does not conform: 1 ok, 3 failed, 1 skipped")
    brief = click.unstyle("\n".join(_lines(report, failed_only=True)))
    assert "in 1 stream" not in brief
    assert "no GPU" not in brief
    assert brief.count("FAILED") == 2


def test_the_first_line_says_which_copy_was_imported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["check", "average_performance", "--kind", "metric", "--only", "direction"]) == 0
    first = click.unstyle(capsys.readouterr().out).splitlines()[0]
    assert re.fullmatch(
        r"metric average_performance  cglsuite-metrics [\d.]+, (editable|installed): /.*/cglsuite/stats/metrics/__init__\.py", first
    )
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from cglsuite import MetricSpec, hookimpl\n\n@hookimpl\ndef cglsuite_metrics():\n"
        '    return [MetricSpec(name="mine", summary="s", formula="f", direction="up", factory="mine:mine")]\n\n'
        "def mine(matrix):\n    return 1.0\n"
    )
    run(["check", "mine", "--plugin", str(plugin), "--only", "direction", "--json"])
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["installation"], found["source"]) == ("plugin file", f"{plugin}:7")


def test_what_was_measured_is_named_with_its_stream_if_it_has_one() -> None:
    measured = [
        Finding(check="memory budget", status="ok", where="testing-links/task-il@testing-1", message="memory 3 items"),
        Finding(check="memory budget", status="ok", where="testing-nodes/task-il@testing-1", message="memory 12 items"),
        Finding(check="runs", status="ok", message="7 s"),
    ]
    lines = click.unstyle(
        "\n".join(_lines(CheckReport(kind="notebook", name="mine", provider="pkg 1.0", findings=tuple(measured))))
    ).splitlines()
    assert [line.strip() for line in lines[1:-1]] == [
        "ok       memory budget        in 2 streams",
        "the most in testing-nodes/task-il: memory 12 items",
        "ok       runs",
        "7 s",
    ]


def test_all_of_a_kind_and_of_a_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--all", "--kind", "metric", "--only", "value"]) == 0
    whole = capsys.readouterr().out
    assert whole.rstrip().splitlines()[-1] == f"{whole.count(' conforms: ')} of {whole.count(' conforms: ')} conform"
    assert whole.count(" conforms: ") > 5
    assert run(["check", "--provider", "cglsuite-metrics", "--only", "formula", "--json"]) == 0
    assert {r["kind"] for r in json.loads(capsys.readouterr().out)} == {"metric"}


@pytest.mark.nightly
def test_one_check_in_one_stream(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else is run, and nothing but failures is printed where only these are asked for."""
    assert run(["check", "replay", "--only", "learns", "--where", "testing-links/class-il", "--json", "--seed", "5"]) == 0
    ((report,),) = [json.loads(capsys.readouterr().out)]
    assert report["installation"] in ("editable", "installed")
    assert "/replay.py:" in report["source"]
    assert [(f["check"], f["status"], f["where"]) for f in report["findings"]] == [("learns", "ok", "testing-links/class-il@testing-1")]
    assert run(["check", "--kind", "metric", "--all", "--only", "direction", "--where", "class-il", "--failed"]) == 0
    (last,) = capsys.readouterr().out.splitlines()
    assert last.endswith("conform")


def test_cell_runs_the_streams_of_the_checks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By the name that a finding shows, on the data that it was found on."""
    words = ["cell", "--scenario", "testing-links/class-il", "--method", "bare", "--store", str(tmp_path), "--json"]
    drawn = []
    for seed in ("0", "7"):
        assert run([*words, "--set", f"dataset.seed={seed}"]) == 0
        drawn.append(json.loads(capsys.readouterr().out)["provenance"]["data"])
    assert drawn[0] != drawn[1]


def test_what_a_provider_has_and_was_not_checked_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_PLUGINS", "cglsuite-graph")
    assert run(["check", "--provider", "cglsuite-graph", "--kind", "dataset", "--only", "licence"]) == 0
    out = capsys.readouterr().out
    assert "not checked:\n" in out
    assert "  scenarios " in out.partition("not checked:")[2]
    assert " more: excluded by --kind" in " ".join(out.split())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["average_performance", "--only", "pur"], "unknown check 'pur'. Did you mean 'pure'"),
        (["bare", "--only", "lerns"], "unknown check 'lerns'. Did you mean 'learns'"),
        (["bare", "--only", "learns", "--where", "testing-link/class-il"], "unknown stream of the checks 'testing-link/class-il'"),
        ([], "expected exactly one of NAME, --all and --provider"),
        (["average_performance", "--all"], "expected exactly one of NAME, --all and --provider"),
        (["--provider", "cglsuite-metrics", "--kind", "dataset"], "nothing to check: cglsuite-metrics provides no dataset"),
        (["--provider", "cglsuite-metric"], "unknown distribution 'cglsuite-metric'. Did you mean 'cglsuite-metrics'"),
    ],
)
def test_what_to_check_is_said_once(given: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", *given]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
