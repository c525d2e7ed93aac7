"""What the host knows without waiting for an accelerator. Its part on a device: tests/cells/test_pretend_device.py."""

from __future__ import annotations

import torch

from cglsuite.graphs import counted, uploaded
from cglsuite.graphs.upload import Sent
from cglsuite.streams import Batch
from cglsuite.streams.views import on_host, sent


def test_what_is_there_is_not_copied() -> None:
    x = torch.arange(3)
    assert uploaded(x, "cpu") is x
    assert uploaded(x, torch.device("cpu")) is x


def test_counts_have_a_place_for_every_value() -> None:
    assert counted(torch.tensor([2, 0, 2]), 5).tolist() == [1, 0, 2, 0, 0]
    assert counted(torch.empty(0, dtype=torch.int64), 2).tolist() == [0, 0]


def copies(here: torch.Tensor) -> Sent:
    """As on an accelerator, where the copy is another tensor."""
    there = here.clone()
    return Sent(here, there, there._version)


def test_a_tensor_of_a_batch_is_known_on_the_host_until_somebody_writes_into_it() -> None:
    ids, allowed = copies(torch.arange(3)), copies(torch.tensor([True, False]))
    batch = Batch(graph=None, ids=ids.there, allowed=allowed.there, cache=sent(ids, allowed))
    assert on_host(batch, batch.ids) is ids.here
    assert on_host(batch, batch.allowed) is allowed.here
    equal_values = batch.ids.clone()
    assert on_host(batch, equal_values) is equal_values
    batch.ids[0] = 7
    assert on_host(batch, batch.ids) is ids.there


def test_on_the_cpu_batches_remember_nothing() -> None:
    made = Sent.of(torch.arange(3), "cpu")
    assert made.there is made.here
    assert sent(made) == {}
