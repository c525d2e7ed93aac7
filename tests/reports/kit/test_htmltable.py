"""Numbers, settings and data frames as our pages show them."""

from __future__ import annotations

import pytest
from report_lab import Tables

from cglsuite.base.markup import Fragment, element
from cglsuite.reports.kit.tables import (
    amount_cell,
    data_table,
    definition_list,
    duration,
    exact_cell,
    folded,
    group_title,
    head_cell,
    interval_cell,
    mean_std_cell,
    number_cell,
    number_text,
    p_cell,
    row_head,
    table,
    titled,
    two_lines,
)
from cglsuite.reports.kit.text import listed, metric_words, scenario_words, value_text

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "digits", "plus", "expected"),
    [
        (-0.04, 1, False, "0.0"),
        (-1.26, 1, False, "−1.3"),
        (2, 1, True, "+2.0"),
        (0.0, 1, True, "0.0"),
        (1234567.0, 0, False, "1,234,567"),
        (100 * 0.0475 - 1e-13, 1, False, "4.8"),
        (100 * 0.0475 + 1e-13, 1, False, "4.8"),
    ],
)
def test_numbers_in_words(value: float, digits: int, plus: bool, expected: str) -> None:
    """True minus signs, none before a rounded zero, thousands apart."""
    assert number_text(value, digits, plus) == expected


def test_values_in_words() -> None:
    """Settings of any type."""
    assert [value_text(v) for v in (None, True, 1e-3, "x", [1, 2.5])] == ["–", "yes", "0.001", "x", "1, 2.5"]


def test_any_data_frame_can_be_shown() -> None:
    """Text is escaped, numbers keep their value."""
    import pandas as pd

    (table,) = Tables(str(data_table(pd.DataFrame({"name": ["<b>"], "value": [0.1]})))).tables
    assert table == [[("name", None), ("value", None)], [("<b>", None), ("0.1", 0.1)]]


@pytest.mark.parametrize(
    ("made", "source"),
    [
        (number_cell(None), '<td class="number quiet">–</td>'),
        (number_cell(float("nan"), 1), '<td class="number quiet">–</td>'),
        (number_cell(0.25), '<td class="number" data-value="0.25">0.25</td>'),
        (number_cell(2, 1, plus=True), '<td class="number" data-value="2.0">+2.0</td>'),
        (
            mean_std_cell(0.5, 0.125, scale=100.0, digits=1, remark=" *"),
            '<td class="number" data-value="0.5">50.0<span class="sd"> ± 12.5 *</span></td>',
        ),
        (mean_std_cell(0.5, float("nan"), scale=1.0, digits=3), '<td class="number" data-value="0.5">0.500<span class="sd"></span></td>'),
        (exact_cell("1 to 2", low=1, high=2.5), '<td class="number nowrap" data-low="1.0" data-high="2.5">1 to 2</td>'),
        (amount_cell(-0.256, 1, 100.0, unit="%"), '<td class="number nowrap" data-value="-0.256">−25.6%</td>'),
        (interval_cell(-0.1, 0.25, 1, 100.0, plus=True), '<td class="number nowrap" data-low="-0.1" data-high="0.25">−10.0 to +25.0</td>'),
        (p_cell(0.0004), '<td class="number" data-value="0.0004">&lt; 0.001</td>'),
        (p_cell(0.0404), '<td class="number" data-value="0.0404">0.040</td>'),
        *((made, '<td class="number quiet">–</td>') for made in (amount_cell(NAN, 1), interval_cell(NAN, NAN, 1), p_cell(NAN))),
        (folded("a<", element("i")), "<details><summary>a&lt;</summary><i></i></details>"),
        (titled("a", "b", None), "<strong>a</strong>b"),
        (row_head(element("a", "x" * 99)), f'<th class="name" scope="row"><a>{"x" * 99}</a></th>'),
        (head_cell("n", "number"), '<th class="number" scope="col">n</th>'),
        (head_cell("n"), '<th scope="col">n</th>'),
        (two_lines("AOPD", "95%"), '<th class="number nowrap" scope="col">AOPD<br><span class="quiet">95%</span></th>'),
        (row_head("ewc", "", "gcn", 3), '<th class="name" scope="row">ewc<span class="quiet"> gcn, 3</span></th>'),
        (row_head("ewc", "", None), '<th class="name" scope="row">ewc</th>'),
        (group_title("cora", 4), '<th colspan="4" scope="colgroup">cora</th>'),
        (definition_list([]), ""),
        (definition_list([("a", "b"), ("c", 1)]), '<dl class="facts"><dt>a</dt><dd>b</dd><dt>c</dt><dd>1</dd></dl>'),
    ],
)
def test_cells(made: Fragment, source: str) -> None:
    """The exact value is behind the text, in the units of the records."""
    assert made.source == source


def test_a_row_of_one_cell_is_the_title_of_those_below() -> None:
    """Unless the table has one column."""
    head, cells = [head_cell("a"), head_cell("b")], [number_cell(1), number_cell(2)]
    two = table(head, [[group_title("x", 2)], cells], "about").source
    assert two.count('<tr class="group">') == 1
    assert two.startswith('<figure class="table"><figcaption>about</figcaption><div class="scroll" tabindex="0"')
    one = table(head[:1], [cells[:1]]).source
    assert "group" not in one.replace('role="group"', "")
    assert "figcaption" not in one


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119.4, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2.0 h"), (5400 * 4, "6.0 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_frames_have_heads_and_kinds() -> None:
    """The first column of text is the rows' head; integers and floats are numbers; anything else is text as settings are."""
    import pandas as pd

    frame = pd.DataFrame({"name": ["x"], "n": [2], "on": [True], "of": [[1, 2]]})
    source = data_table(frame, "about").source
    assert '<th scope="row">x</th><td class="number" data-value="2.0">2</td><td>yes</td><td>1, 2</td>' in source
    assert '<th scope="col">name</th><th class="number" scope="col">n</th><th scope="col">on</th>' in source
    assert "<figcaption>about</figcaption>" in source


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("bitcoin-otc/class-il@begin-1", "bitcoin-otc · class-IL · BeGin 1"),
        ("cora/task-il@cglb-inter-2+16179d3d", "cora · task-IL · CGLB inter 2, modified"),
        ("cora/task-il@cglb-2, n_tasks = 3", "cora · task-IL · CGLB 2, n_tasks = 3"),
        ("mine/domain-il@lab", "mine · domain-IL · lab"),
        ("tiny/gaussian@drift-1", "tiny · gaussian · DRIFT 1"),
        ("cora", "cora"),
    ],
)
def test_presets_in_words(preset: str, words: str) -> None:
    assert scenario_words(preset) == words


def test_metrics_and_names_in_words() -> None:
    assert metric_words("average_performance", "accuracy", True) == "Average accuracy (%)"
    assert metric_words("forgetting_max", "accuracy", False) == "Forgetting max"
    assert (listed("bare"), listed(["bare", "ewc"]), listed(())) == (["bare"], ["bare", "ewc"], [])
    assert [value_text(v) for v in (False, float("nan"), 3, (), (True, None))] == ["no", "–", "3", "", "yes, –"]
