"""Checks of metrics, notebooks, pre-training and scenarios on made-up values, on both sides of what they allow."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
import torch

from cglsuite.base.hashing import plain
from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.kinds import backbones, datasets, metrics, notebooks, scenarios


def message(check: Any, *given: Any) -> str:
    """What a check says; empty where it holds."""
    try:
        check(*given)
    except CheckFailed as failed:
        return str(failed) if failed.fix else "a failure without a fix"
    return ""


# --- metrics -------------------------------------------------------------------------------------------------------------------------


def test_the_matrices_that_metrics_are_tried_on() -> None:
    """Chance before a task, then what was reached, less what is lost per later task, never below 0; no answers before in class-IL."""
    assert metrics._matrix("task-il", 3, reached=0.9, lost=0.25) == [
        [0.2, 0.2, 0.2],
        [0.9, 0.2, 0.2],
        [pytest.approx(0.65), 0.9, 0.2],
        [pytest.approx(0.4), pytest.approx(0.65), 0.9],
    ]
    assert metrics._matrix("task-il", 3, reached=0.3, lost=0.25)[3] == [0.0, pytest.approx(0.05), 0.3]
    before = metrics._matrix("class-il", 2, reached=0.9, lost=0.0)
    assert [[math.isnan(v) for v in row] for row in before] == [[True, True], [False, True], [False, False]]


def test_facts_that_metrics_are_given() -> None:
    """Of the tasks where they need them, of arrivals in a task-free stream: ten items of each latent task, one after the other."""
    given: list[Any] = []
    catalogue: Any = SimpleNamespace(resolve=lambda entry: lambda matrix, joint, **more: given.append(more) or 1)
    for needs, setting in ((False, "task-il"), (True, "task-il"), (False, "task-free")):
        entry: Any = SimpleNamespace(spec=SimpleNamespace(reference="", needs_tasks=needs))
        metrics._value(catalogue, entry, setting, [[0.5, 0.5]] * 3)
    facts = [{"name": str(k), "classes": [k], "n_train": 10, "n_validation": 5, "n_test": 5} for k in range(2)]
    arrivals = {"evaluations": [0, 10, 20], "delivered": [[0, 0], [10, 0], [10, 10]], "tasks": facts}
    assert plain(given) == [{}, {"stream": {"tasks": facts}}, {"stream": arrivals}]


@pytest.mark.parametrize(
    ("values", "undefined", "said"),
    [
        ((0.0, 1.0, 0.5), "", ""),
        ((math.nan, 1.0, 0.5), "", ""),  # one task may have no value
        ((0.5, math.nan, 0.5), "", "the metric is NaN for a complete matrix of 2 tasks"),
        ((0.5, 0.5, math.nan), "", "the metric is NaN for a complete matrix of 4 tasks"),
        ((0.5, math.nan, 0.5), "nothing is forgotten", ""),
        ((1.01, 0.5, 0.5), "", "the metric is 1.01 for a matrix of 1 tasks, outside its range (0, 1)"),
        ((0.5, 0.5, -0.01), "", "the metric is -0.01 for a matrix of 4 tasks, outside its range (0, 1)"),
    ],
)
def test_values_lie_in_the_declared_range(values: tuple[float, ...], undefined: str, said: str) -> None:
    by_size = dict(zip((1, 2, 4), values, strict=True))
    spec = SimpleNamespace(range=(0, 1), undefined=undefined)
    assert message(metrics._has_values, spec, lambda matrix: by_size[len(matrix[0])]) == said


@pytest.mark.parametrize(
    ("direction", "good", "bad", "fails"),
    [
        ("up", 0.9, 0.5, False),
        ("up", 0.5, 0.5, False),
        ("up", 0.4, 0.5, True),
        ("down", 0.4, 0.5, False),
        ("down", 0.5, 0.5, False),
        ("down", 0.6, 0.5, True),
        ("up", math.nan, 0.5, False),
        ("down", 0.9, math.nan, False),
    ],
)
def test_directions(direction: str, good: float, bad: float, fails: bool) -> None:
    """Keeping 0.9 of everything must not be worse than reaching half and losing it."""
    seen: list[Any] = []

    def measure(matrix: Any) -> float:
        seen.append(matrix)
        return good if len(seen) == 1 else bad

    said = message(metrics._directed, SimpleNamespace(direction=direction), measure)
    assert bool(said) is fails
    assert seen == [metrics._matrix("task-il", 4, reached=0.9, lost=0.0), metrics._matrix("task-il", 4, reached=0.5, lost=0.15)]


def test_a_metric_that_answers_otherwise_the_second_time() -> None:
    values = iter([0.5, 0.25])
    assert message(metrics._pure, lambda matrix: next(values)) == "two calls return 0.5 and 0.25"
    assert message(metrics._pure, lambda matrix: math.nan) == ""


@pytest.mark.parametrize("write", [lambda m: m[0].fill(1.0), lambda m: m[-1].sort(), lambda m: m.__setitem__(0, 1.0)])
def test_a_metric_that_writes_to_its_matrix(write: Any) -> None:
    entry = SimpleNamespace(spec=SimpleNamespace(reference="", needs_tasks=False))
    catalogue = SimpleNamespace(resolve=lambda entry: lambda matrix, joint=None: write(matrix) or 0.5)
    matrix = metrics._matrix("task-il", 4, reached=0.9, lost=0.1)
    assert message(metrics._value, catalogue, entry, "task-il", matrix) == "the metric modifies its input matrix"


# --- notebooks -----------------------------------------------------------------------------------------------------------------------


def cells(*sources: str, **more: Any) -> Any:
    made = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})
    made.cells = [nbformat.v4.new_code_cell(source, **more) for source in sources]
    return made


def test_notebooks_are_stored_clean() -> None:
    def said(notebook: Any) -> str:
        return message(notebooks._clean, SimpleNamespace(path="page.ipynb", notebook=notebook))

    made = cells("1", "2")
    assert said(made) == ""
    made.cells[1].execution_count = 3
    assert said(made) == "page.ipynb: cell 2 has stored outputs; expected none"
    made.cells[0].outputs = [nbformat.v4.new_output("stream", text="x")]
    assert said(made) == "page.ipynb: cell 1 has stored outputs; expected none"


def test_notebooks_have_the_kernel_of_this_python() -> None:
    made = cells("1")
    assert message(notebooks._file, SimpleNamespace(path="page.ipynb", notebook=made)) == ""
    made.metadata.kernelspec.name = "ir"
    assert (
        message(notebooks._file, SimpleNamespace(path="page.ipynb", notebook=made)) == "page.ipynb: the kernel is 'ir'; expected 'python3'"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# %%\n1\n\n# %%\n2\n", ""),
        ("# %%\n1\n\n# %%\n3\n", "cell 2 of page.ipynb differs from that of {}"),
        ("# %%\n1\n", "page.ipynb has 2 cells and {} has 1"),
        ('# %% tags=["parameters"]\n1\n\n# %%\n2\n', "cell 1 of page.ipynb differs from that of {}"),
    ],
)
def test_the_text_form_has_the_same_cells(tmp_path: Path, text: str, said: str) -> None:
    """The same sources, kinds and tags, in order."""
    (tmp_path / "page.py").write_text(text)
    trial = SimpleNamespace(path=tmp_path / "page.ipynb", notebook=cells("1", "2"))
    assert message(notebooks._text_form, trial) == said.format(tmp_path / "page.py")


def test_names_that_a_cell_reads() -> None:
    """Not those that it assigns; magics are left out, and a cell that is no Python reads nothing."""
    assert notebooks._names("%matplotlib inline\n!ls\nx = y + f(z)\n") == {"y", "f", "z"}
    assert notebooks._names("  %time a\nb") == {"b"}
    assert notebooks._names("this is no code") == set()


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<p>x</p><table>", ""),
        ("<img>", ""),
        ("<pre>1</pre>", ""),
        ("<svg>", ""),
        ("<p>only words</p>", "page.ipynb: the page has no output"),
        ("<pre>Traceback (most recent call last)</pre>", "page.ipynb: the page shows a traceback"),
    ],
)
def test_pages_have_an_output_and_no_traceback(tmp_path: Path, page: str, said: str) -> None:
    (tmp_path / "page.html").write_text(page)
    trial = SimpleNamespace(path="page.ipynb", rendered=SimpleNamespace(path=tmp_path / "page.html"))
    assert message(notebooks._page, trial) == said


def test_a_notebook_that_stops_is_told_with_its_reason() -> None:
    trial = SimpleNamespace(path="page.ipynb", rendered=SimpleNamespace(done=True, seconds=61.4, reason=""))
    assert notebooks._runs(trial) == "61 s"  # type: ignore[arg-type]
    trial.rendered = SimpleNamespace(done=False, seconds=1.0, reason="cell 3: boom")
    assert message(notebooks._runs, trial) == "page.ipynb: cell 3: boom"


# --- pre-training --------------------------------------------------------------------------------------------------------------------


def scheme(losses: list[float], state: dict[str, float], again: dict[str, float] | None = None) -> Any:
    def tensors(values: dict[str, float]) -> Any:
        return {name: torch.tensor([value]) for name, value in values.items()}

    tags = [("body", "conv.weight", None), ("head", "head.weight", None)]
    return SimpleNamespace(
        pretrained=SimpleNamespace(curve=SimpleNamespace(loss=losses), state=tensors(state)),
        run=lambda: SimpleNamespace(state=tensors(again if again is not None else state)),
        model=lambda: SimpleNamespace(tagged_parameters=lambda: tags),
    )


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([1.0, 0.9], ""),
        ([1.0, 0.9, 2.0], ""),
        ([1.0, 1.0], "the loss never falls below its value in the first epoch, 1"),
        ([1.0], "the loss never falls below its value in the first epoch, 1"),
    ],
)
def test_a_scheme_lowers_its_loss(losses: list[float], said: str) -> None:
    assert message(backbones._learns, scheme(losses, {})) == said


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"conv.weight": 1.0}, ""),
        ({"conv.weight": 1.0, "norm.running_mean": 2.0}, ""),
        ({"norm.running_mean": 2.0}, "the weights of the body do not change"),
        ({"conv.weight": 1.0, "head.weight": 1.0}, "pre-training changes the head, which has no meaning until there are labels"),
    ],
)
def test_a_scheme_changes_the_body_alone(state: dict[str, float], said: str) -> None:
    assert message(backbones._changes_only_body, scheme([1.0], state)) == said


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ({"a": 1.0, "b": 2.0}, ""),
        ({"a": 1.0, "b": 3.0}, "a second run gives different weights (b)"),
        ({"a": 1.0}, "a second run gives different weights (b)"),
        ({"a": 1.0, "b": 2.0, "c": 3.0}, "a second run gives different weights ()"),
    ],
)
def test_a_scheme_gives_the_same_weights_twice(again: dict[str, float], said: str) -> None:
    assert message(backbones._repeatable, scheme([1.0], {"a": 1.0, "b": 2.0}, again)) == said


# --- scenarios -----------------------------------------------------------------------------------------------------------------------


class Stream(SimpleNamespace):
    """Tasks by the ids of their parts."""

    def __len__(self) -> int:
        return len(self.parts)

    def members(self, k: int, part: str) -> torch.Tensor:
        return torch.tensor(self.parts[k].get(part, []), dtype=torch.int64)


def stream(*parts: dict[str, list[int]], setting: str = "task-il", outputs: list[list[int]] | None = None) -> Any:
    table = torch.tensor(outputs or torch.eye(len(parts), dtype=torch.int64).tolist())
    return Stream(parts=parts, spec=SimpleNamespace(setting=setting), task_outputs=table)


def part(*ids: int) -> dict[str, list[int]]:
    return {"train": [ids[0]], "validation": [ids[1]], "test": [ids[2]]}


SHARED = [[1, 1, 0], [0, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (stream(part(0, 1, 2), part(3, 4, 5)), ""),
        (stream(part(0, 1, 2) | {"validation": []}, part(3, 4, 5)), ""),
        (stream(part(0, 1, 2) | {"test": []}, part(3, 4, 5)), "task 1 of 2 has no test items"),
        (stream(part(0, 1, 2), part(3, 4, 5) | {"train": []}), "task 2 of 2 has no train items"),
        (stream(part(0, 1, 2), part(3, 4, 3)), "the parts of task 2 overlap"),
        (stream(part(0, 1, 2), part(3, 4, 0)), "1 test items of task 2 are training items of another task"),
        (stream(part(0, 1, 2), part(3, 4, 2)), ""),  # asked of in both
        (
            stream(part(0, 1, 2), part(3, 4, 5), part(6, 7, 8), outputs=SHARED),
            "class 1 is in 2 tasks (1, 3); expected every class in a single task for task-il",
        ),
        (stream(part(0, 1, 2), part(3, 4, 5), part(6, 7, 8), outputs=SHARED, setting="domain-il"), ""),
    ],
)
def test_parts_of_tasks(made: Any, said: str) -> None:
    assert message(scenarios._parts, made) == said


# --- backbones and data sets -----------------------------------------------------------------------------------------------------------


def test_gradients_are_those_of_training() -> None:
    """A parameter that is used in training alone has one; one that is never used has none."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.in_training, self.spare = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))

        def forward(self) -> torch.Tensor:
            return self.used * self.in_training if self.training else self.used

    def trial(model: Model) -> Any:
        return SimpleNamespace(build=lambda: model, outputs=lambda given, training: given.train(training)())

    assert message(backbones._gradients, trial(Model())).startswith("the parameters spare of ")
    model = Model()
    model.spare.requires_grad_(False)
    assert message(backbones._gradients, trial(model)) == ""


@pytest.mark.parametrize(
    ("error", "folder", "said"),
    [
        (
            "a is absent:\n  x.npz from URL\n  y.npz\nput them there",
            "",
            " (x.npz from URL and 1 more); set CGLSUITE_DATA to the folder that",
        ),
        ("a is absent:\n  x.npz", "/data", " (x.npz); the folder searched is $CGLSUITE_DATA"),
        ("a is absent", "", "; set CGLSUITE_DATA to the folder that holds them"),
    ],
)
def test_absent_files_in_one_line(monkeypatch: pytest.MonkeyPatch, error: str, folder: str, said: str) -> None:
    """The first of the loader's indented lines, and how many there are besides."""
    monkeypatch.delenv("CGLSUITE_DATA", raising=False)
    if folder:
        monkeypatch.setenv("CGLSUITE_DATA", folder)
    assert datasets._absent("a", error).startswith(f"the raw files of a are not on this machine{said}")
