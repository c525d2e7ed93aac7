"""A metric is one object: what pages, figures and commands say of it, and the words by which people find it."""

from __future__ import annotations

import pkgutil

import pytest

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.specs import METRICS, MetricSpec, metric_named

MINE = MetricSpec(name="mine", summary="s", formula="f", direction="down", factory="a:b", label="ERR (mine)", unit="steps")


def test_what_is_shown_follows_from_the_object() -> None:
    ap = METRICS["average_performance"]
    assert (ap.title, ap.symbol, ap.axis, ap.heading, ap.better) == ("AP (AA)", "AA", "AA ↑", "AP (AA) ↑", "higher")
    assert (MINE.title, MINE.symbol, MINE.axis, MINE.heading) == ("ERR (mine)", "ERR (mine)", "ERR (mine) ↓", "ERR (mine), steps ↓")
    assert MetricSpec(name="bare", summary="s", formula="f", direction="up", factory="a:b").heading == "bare ↑"


def test_a_loss_is_positive_however_the_metric_counts() -> None:
    assert METRICS["forgetting_from_diagonal"].loss(0.2) == METRICS["backward_transfer"].loss(-0.2) == 0.2


@pytest.mark.parametrize("name", METRICS)
def test_each_is_complete(name: str) -> None:
    spec = METRICS[name]
    assert spec.name == name
    assert callable(pkgutil.resolve_name(spec.factory))
    assert spec.quantity
    assert spec.formula
    assert spec.range[0] < spec.range[1]
    assert (spec.range[0] == 0.0 and spec.range[1] == 1.0) == (spec.quantity == "performance")


@pytest.mark.parametrize(
    ("word", "name"),
    [("ap", "average_performance"), ("AA", "average_performance"), ("bwt", "backward_transfer"), ("af_max", "forgetting_max"),
     ("AF (BeGin)", "forgetting_from_diagonal"), ("int", "intransigence"), ("forward_transfer", "forward_transfer")],
)  # fmt: skip
def test_a_metric_is_found_by_what_people_type(word: str, name: str) -> None:
    of_tasks = {n: spec for n, spec in METRICS.items() if "task-free" not in spec.settings}
    assert metric_named(word, of_tasks).name == name


def test_a_plugins_metric_is_found_by_the_first_word_of_its_label() -> None:
    assert metric_named("err", METRICS | {"mine": MINE}) is MINE
    named = MetricSpec(name="named", summary="s", formula="f", direction="up", factory="a:b", label="ERR two", short="E2", aliases=("e",))
    assert [metric_named(word, {"named": named}) for word in ("e2", "E", "err two")] == [named] * 3
    with pytest.raises(UnknownNameError, match="err"):
        metric_named("err", {"named": named})


def test_a_word_for_several_metrics_names_them() -> None:
    with pytest.raises(UsageError, match="'af' is ambiguous; expected one of forgetting_from_diagonal, backward_transfer, af_hard"):
        metric_named("af", METRICS)
    with pytest.raises(UnknownNameError, match="unknown thing 'fwd'"):
        metric_named("fwd", METRICS, "thing")


def test_a_direction_is_up_or_down() -> None:
    with pytest.raises(UnknownNameError, match="direction of metric 'm' 'higher'"):
        MetricSpec(name="m", summary="s", formula="f", direction="higher", factory="a:b")  # type: ignore[arg-type]
