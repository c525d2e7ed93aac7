"""A method's state is plain values: it survives a ``weights_only`` load to the bit, and its fingerprint notices every bit."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from tiny_streams import BusyMethod, tiny_data, tiny_runner, tiny_stream
from torch import nn

from cglsuite import Method
from cglsuite.base.errors import PluginError
from cglsuite.learning.reproducibility.state import collect, fingerprint, restore


def used(*, sparse: bool = False) -> BusyMethod:
    """A method that has learnt two tasks."""
    runner = tiny_runner(tiny_stream(tiny_data(sparse=sparse), n_tasks=2), BusyMethod)
    runner.run()
    assert isinstance(runner.method, BusyMethod)
    return runner.method


def fresh(method: type[Method] = BusyMethod, *, sparse: bool = False, init_seed: int = 1) -> Any:
    return tiny_runner(tiny_stream(tiny_data(sparse=sparse), n_tasks=2), method, init_seed=init_seed).method


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    loaded: dict[str, Any] = torch.load(buffer, weights_only=True)
    return loaded


@pytest.mark.parametrize("sparse", [False, True], ids=["dense memory", "sparse memory"])
def test_a_method_comes_back_from_a_file(sparse: bool) -> None:
    method, other = used(sparse=sparse), fresh(sparse=sparse)
    assert fingerprint(other) != fingerprint(method)
    restore(other, through_a_file(collect(method)))
    assert fingerprint(other) == fingerprint(method)
    assert other.seen == 2
    assert other.history == method.history
    assert other.table.keys() == method.table.keys()
    assert other.memory.usage() == method.memory.usage()
    assert isinstance(other.teacher, nn.Module)
    assert not other.teacher.training
    assert all(not p.requires_grad for p in other.teacher.parameters())
    graph = tiny_stream(tiny_data(sparse=sparse)).view(0).graph
    assert method.teacher is not None
    assert torch.equal(other.teacher(graph), method.teacher(graph))
    assert torch.equal(other.model.eval()(graph), method.model.eval()(graph))


def test_a_restored_teacher_is_its_own() -> None:
    other = fresh()
    restore(other, through_a_file(collect(used())))
    before = fingerprint(other)
    assert not {id(p) for p in other.teacher.parameters()} & {id(p) for p in other.model.parameters()}
    with torch.no_grad():
        next(other.model.parameters()).add_(1)
    assert fingerprint(other) != before


def test_a_module_of_another_kind_comes_back_too() -> None:
    """A discriminator or a projection is a module as well, though not of the model's architecture."""

    class Critical(Method):
        state = ("critic",)

        def setup(self) -> None:
            self.critic = nn.Linear(3, 1)

    method, other = fresh(Critical, init_seed=1), fresh(Critical, init_seed=2)
    assert not torch.equal(method.critic.weight, other.critic.weight)
    restore(other, through_a_file(collect(method)))
    assert torch.equal(method.critic.weight, other.critic.weight)
    assert fingerprint(method) == fingerprint(other)


CHANGES: dict[str, Any] = {
    "a weight": lambda m: next(m.model.parameters()).data.view(-1)[0].add_(1e-6),
    "a running mean": lambda m: m.model.norms[0].running_mean[0].add_(1e-6),
    "the number of batches": lambda m: m.model.norms[0].num_batches_tracked.add_(1),
    "a number": lambda m: setattr(m, "seen", m.seen + 1),
    "an item of a list": lambda m: m.history.__setitem__(0, -m.history[0]),
    "a longer list": lambda m: m.history.append(0.0),
    "a tensor in a dictionary in a dictionary": lambda m: next(iter(m.table.values()))["mean"][3].add_(1e-6),
    "a text": lambda m: next(iter(m.table.values())).update(note="other"),
    "a key": lambda m: m.table.update(other=m.table.pop(next(iter(m.table)))),
    "a weight of a teacher": lambda m: m.teacher.head.bias.data[0].add_(1e-6),
    "no teacher": lambda m: setattr(m, "teacher", None),
    "a label in memory": lambda m: m.memory["task-0"].y[0].add_(1),
    "a feature in memory": lambda m: m.memory["task-0"].x[0, 0].add_(1e-3),
    "a shelf": lambda m: m.memory.drop("task-0"),
    "a shelf's name": lambda m: (m.memory.put("other", m.memory["task-0"]), m.memory.drop("task-0")),
    "the type of a number": lambda m: setattr(m, "seen", float(m.seen)),
    "the shape of a tensor": lambda m: next(iter(m.table.values())).update(mean=next(iter(m.table.values()))["mean"].view(1, -1)),
}


@pytest.fixture(scope="module")
def learnt() -> BusyMethod:
    return used()


@pytest.mark.parametrize("change", CHANGES)
def test_the_fingerprint_notices(learnt: BusyMethod, change: str) -> None:
    other = fresh()
    restore(other, through_a_file(collect(learnt)))
    before = fingerprint(other)
    assert fingerprint(other) == before == fingerprint(learnt)
    with torch.no_grad():
        CHANGES[change](other)
    assert fingerprint(other) != before, change


def test_the_fingerprint_does_not_depend_on_where_numbers_lie(learnt: BusyMethod) -> None:
    other = copy.copy(learnt)
    other.table = {k: dict(v) for k, v in reversed(learnt.table.items())}
    for value in other.table.values():
        value["mean"] = torch.stack([value["mean"], value["mean"]], dim=1)[:, 0]  # the same numbers, not contiguous
    assert fingerprint(other) == fingerprint(learnt)


def test_sparse_items_are_part_of_the_fingerprint() -> None:
    method = used(sparse=True)
    before = fingerprint(method)
    x = method.memory["task-0"].x
    assert x is not None
    assert x.layout == torch.sparse_csr
    x.values()[0] += 1
    assert fingerprint(method) != before


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (object(), "object"),
        ({1.5: 2}, "dict"),
        ([1, {"a": {3, 4}}], "set"),
        (b"bytes", "bytes"),
        (lambda: None, "function"),
    ],
)
def test_what_is_no_plain_value_is_named(value: Any, named: str) -> None:
    class Odd(Method):
        state = ("kept",)

        def setup(self) -> None:
            self.kept = value

    with pytest.raises(
        PluginError, match=rf"Odd\.kept contains a {named}, which cannot be saved. A method's state may contain tensors, modules, str"
    ):
        collect(fresh(Odd))


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "text", [1, [2.0, None]], {"a": {1: torch.ones(2)}}, torch.zeros(0), torch.tensor(4)]
)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    class Keeper(Method):
        state = ("kept",)

        def setup(self) -> None:
            self.kept: Any = "nothing"

    method, other = fresh(Keeper), fresh(Keeper)
    method.kept = value
    restore(other, through_a_file(collect(method)))
    assert fingerprint(other) == fingerprint(method)
    assert type(other.kept) is type(value)
    assert str(other.kept) == str(value)


def test_tensors_lose_their_gradients_only() -> None:
    class Keeper(Method):
        state = ("kept",)

        def setup(self) -> None:
            self.kept = torch.ones(2, requires_grad=True) * 3

    state = collect(fresh(Keeper))
    assert state["attributes"]["kept"].tolist() == [3.0, 3.0]
    assert not state["attributes"]["kept"].requires_grad
