"""Sets of sequences: the seam's operations against dense ones, what training and questions hold, and what is kept between cells."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_skeleton.epochs import KEPT, EpochCache
from cglsuite_skeleton.layouts import Layout, layout_of
from cglsuite_skeleton.preparation import Preparation
from cglsuite_skeleton.sequences import SkeletonSet, SkeletonSource
from torch import Tensor

from cglsuite.base.errors import DataError, SpecError, UsageError
from cglsuite.base.hashing import digest
from cglsuite.graphs import MessageGraph
from cglsuite.testing.judge.audited import reachable, whole_storage

CHAIN = layout_of("0-1,1-2,3-2;centre=1")
LENGTHS = torch.tensor([7, 1, 30, 12, 5, 9])


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    KEPT.clear()
    yield
    KEPT.clear()


def source(
    layout: Layout = CHAIN, persons: int = 1, frames: int = 8, augmentation: str = "views", lengths: Tensor = LENGTHS
) -> SkeletonSource:
    draw = torch.Generator().manual_seed(0)
    coordinates = torch.randn(int(lengths.sum()), persons, layout.n_joints, 3, generator=draw)
    return SkeletonSource(coordinates, lengths, layout, Preparation(frames=frames, augmentation=augmentation))


def some(*ids: int) -> Tensor:
    return torch.tensor(ids, dtype=torch.int64)


def union(graphs: SkeletonSet) -> MessageGraph:
    """The disjoint union as an ordinary graph."""
    return MessageGraph(graphs.features, graphs.edges_with_loops[:, : graphs.n_edges])


# --- as graphs -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("persons", [1, 2])
def test_shapes(persons: int) -> None:
    data = source(persons=persons)
    graphs = data.queries(some(0, 2, 5), "cpu")
    assert (len(data), len(graphs), graphs.n_nodes, graphs.n_edges) == (6, 3, 12, 18)
    assert graphs.x.shape == (4, 3, persons, 8, 3)
    assert graphs.x.is_contiguous()
    assert graphs.n_features == data.n_features == graphs.features.shape[1] == persons * 8 * 3
    # Node joint * n + sequence.
    torch.testing.assert_close(graphs.features[2 * 3 + 1], graphs.x[2, 1].flatten(), rtol=0, atol=0)


def test_edges_are_bones_both_ways_then_loops() -> None:
    graphs = source().queries(some(4, 1), "cpu")
    edges = graphs.edges_with_loops
    bones = {(child * 2 + i, parent * 2 + i) for child, parent in CHAIN.edges for i in range(2)}
    proper = {tuple(edge) for edge in edges[:, : graphs.n_edges].T.tolist()}
    assert proper == bones | {(b, a) for a, b in bones}
    assert edges[:, graphs.n_edges :].tolist() == [list(range(8))] * 2


@pytest.mark.parametrize("kind", ["sum", "sum-self", "sym"])
def test_propagation_is_that_of_the_disjoint_union(kind: Any) -> None:
    graphs = source().queries(some(0, 2, 5), "cpu")
    torch.testing.assert_close(graphs.propagate(kind, graphs.features), union(graphs).propagate(kind, graphs.features))
    hidden = torch.randn(12, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: graphs.propagate(kind, h), hidden)
    assert torch.autograd.gradgradcheck(lambda h: graphs.propagate(kind, h).tanh(), hidden)
    batched = torch.randn(5, 12, 2)
    mapped = torch.func.vmap(lambda h: graphs.propagate(kind, h))(batched)
    torch.testing.assert_close(mapped, torch.stack([graphs.propagate(kind, h) for h in batched]))


def test_unknown_propagation() -> None:
    graphs = source().queries(some(0), "cpu")
    with pytest.raises(SpecError, match="expected 'sum', 'sum-self' or 'sym'"):
        graphs.propagate("mean", graphs.features)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pooling(how: Any) -> None:
    graphs = source().queries(some(0, 2, 5), "cpu")
    hidden = torch.randn(12, 5)
    of = [hidden[[joint * 3 + i for joint in range(4)]] for i in range(3)]
    expected = torch.stack([h.amax(0) if how == "max" else getattr(h, how)(0) for h in of])
    torch.testing.assert_close(graphs.pool(hidden, how), expected)
    torch.testing.assert_close(torch.func.vmap(lambda h: graphs.pool(h, how))(hidden[None])[0], expected)


def test_a_skeleton_of_one_joint() -> None:
    lonely = Layout("dot", 1, (), 0)
    graphs = source(lonely).training(some(0, 2), 0, "cpu")
    assert graphs.n_edges == 0
    assert graphs.edges_with_loops.tolist() == [[0, 1], [0, 1]]
    assert not graphs.propagate("sum", graphs.features).any()
    torch.testing.assert_close(graphs.propagate("sym", graphs.features), graphs.features)


def test_a_set_of_nothing() -> None:
    for graphs in (source().queries(some(), "cpu"), source().training(some(), 0, "cpu")):
        assert (len(graphs), graphs.features.shape, graphs.edges_with_loops.shape) == (0, (0, 24), (2, 0))
        assert len(graphs.epoch(3)) == 0


# --- augmentation ----------------------------------------------------------------------------------------------------------------


def test_an_epoch_is_a_function_of_seed_sequence_and_epoch() -> None:
    data, other = source(), source()
    x = data.training(some(0, 2, 3, 5), 7, "cpu").epoch(4).x
    again = other.training(some(5, 2), 7, "cpu").epoch(4).x
    assert torch.equal(again, x[:, [3, 1]])
    assert not torch.equal(data.training(some(0, 2, 3, 5), 7, "cpu").epoch(5).x, x)
    assert not torch.equal(data.training(some(0, 2, 3, 5), 8, "cpu").epoch(4).x, x)


def test_before_the_first_epoch_and_without_augmentation_inputs_are_those_of_queries() -> None:
    for augmentation in ("views", "none"):
        data = source(augmentation=augmentation)
        training = data.training(some(3, 0, 2), 0, "cpu")
        assert torch.equal(training.x, data.queries(some(3, 0, 2), "cpu").x)
        assert (training.epoch(2) is training) is (augmentation == "none")
    questions = data.queries(some(1, 2), "cpu")
    assert questions.epoch(9) is questions


def test_take_and_merge_commute_with_epochs() -> None:
    data = source()
    first, second = data.training(some(0, 2), 1, "cpu"), data.training(some(5, 1, 3), 1, "cpu")
    both = first.merged([second])
    assert len(both) == 5
    assert torch.equal(both.epoch(3).x, torch.cat([first.epoch(3).x, second.epoch(3).x], dim=1))
    assert torch.equal(both.x, torch.cat([first.x, second.x], dim=1))
    for chosen in (some(4, 0, 2), some(1), some()):
        assert torch.equal(both.take(chosen).epoch(3).x, both.epoch(3).x[:, chosen])
        assert torch.equal(both.epoch(3).take(chosen).x, both.epoch(3).x[:, chosen])
        assert torch.equal(both.epoch(3).take(chosen).epoch(6).x, both.epoch(6).x[:, chosen])
    assert first.merged([]) is first
    questions = data.queries(some(0, 1), "cpu").merged([data.queries(some(4), "cpu")])
    assert torch.equal(questions.x, data.queries(some(0, 1, 4), "cpu").x)
    assert torch.equal(questions.take(some(2, 0)).x, data.queries(some(4, 0), "cpu").x)


def test_what_cannot_be_merged() -> None:
    data = source()
    training = data.training(some(0), 1, "cpu")
    for other in (data.queries(some(1), "cpu"), data.training(some(1), 2, "cpu"), source(augmentation="none").training(some(1), 1, "cpu")):
        with pytest.raises(SpecError, match="can be merged"):
            training.merged([other])


# --- memory ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("persons", [1, 2])
def test_a_payload_rebuilds_the_set_and_its_epochs(persons: int) -> None:
    data = source(persons=persons)
    training = data.training(some(3, 0, 2), 5, "cpu")
    for kept in (training.take(some(2, 1)), training.epoch(1).take(some(2, 1)), training.take(some(2)).merged([training.take(some(1))])):
        payload = kept.payload()
        back = training.rebuilt(payload)
        assert torch.equal(back.x, training.x[:, [2, 1]])
        assert torch.equal(back.epoch(8).x, training.epoch(8).x[:, [2, 1]])
        assert kept.bytes() == back.bytes() == (30 + 7) * persons * 4 * 3 * 4 + 2 * 2 * 8
        assert all(value.device.type == "cpu" for value in payload.values())
    met = training.epoch(1)
    assert torch.equal(met.rebuilt(met.take(some(2, 1)).payload()).x, met.x[:, [2, 1]]), "with the augmentation of the set that rebuilds"
    questions = data.queries(some(1, 4), "cpu")
    assert torch.equal(training.rebuilt(questions.payload()).x, questions.x)
    with pytest.raises(SpecError, match="only training sets"):
        questions.rebuilt(training.payload())


# --- what can be seen ------------------------------------------------------------------------------------------------------------


def tensors(*roots: Any) -> list[Tensor]:
    found = [obj for _, obj in reachable(*roots)]
    arrays = [torch.from_numpy(np.ascontiguousarray(a)) for a in found if isinstance(a, np.ndarray) and a.dtype.kind in "if"]
    return [whole_storage(t) for t in found if isinstance(t, Tensor)] + arrays


def test_questions_hold_inputs_only() -> None:
    questions = source().queries(some(3, 0, 2), "cpu")
    assert [t.shape for t in tensors(questions)] == [(4 * 3 * 8 * 3,)]
    assert not [obj for _, obj in reachable(questions) if isinstance(obj, (SkeletonSource,))]


def test_training_holds_its_own_recordings_only() -> None:
    data = source()
    training = data.training(some(3, 0), 0, "cpu")
    training.epoch(0)
    sizes = {t.numel() for t in tensors(training)}
    assert sizes <= {2, 19 * 4 * 3}  # lengths and ids; 12 + 7 frames
    assert not [obj for _, obj in reachable(training) if isinstance(obj, SkeletonSource)]


# --- what is kept ----------------------------------------------------------------------------------------------------------------


def test_results_do_not_depend_on_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list[Tensor]:
        data = source()
        first, second = data.training(some(0, 2), 1, "cpu"), data.training(some(5, 1), 1, "cpu")
        return [s.epoch(e).x for e in (0, 1, 0) for s in (first, first.merged([second]), second.take(some(1)), second)]

    monkeypatch.setenv("CGLSUITE_AUGMENTATION_CACHE_MB", "0")
    without = run()
    assert len(KEPT) == 0
    monkeypatch.setenv("CGLSUITE_AUGMENTATION_CACHE_MB", "1")
    for _ in range(2):
        assert all(torch.equal(a, b) for a, b in zip(run(), without, strict=True))
    assert (len(KEPT), KEPT.bytes()) == (4, 2 * 2 * 2 * 4 * 8 * 3 * 4)  # two parts, two epochs, two sequences, 4 bytes


def test_cells_share_what_is_kept_and_memories_keep_nothing() -> None:
    data = source()
    training = data.training(some(0, 2), 1, "cpu")
    x = training.epoch(0).x
    assert source().training(some(0, 2), 1, "cpu").epoch(0).x is x
    for other in (
        source(frames=9).training(some(0, 2), 1, "cpu"),
        data.training(some(2, 0), 1, "cpu"),
        data.training(some(0, 2), 2, "cpu"),
    ):
        assert other.epoch(0).x is not x
    assert len(KEPT) == 4
    training.rebuilt(training.payload()).epoch(1)
    training.take(some(0)).epoch(1)
    assert len(KEPT) == 4


def test_the_least_recently_used_goes_first_and_the_bound_holds() -> None:
    made = []

    def make(n: int) -> Tensor:
        made.append(n)
        return torch.zeros(n, dtype=torch.uint8)

    cache = EpochCache(lambda device: 100)
    for key, size in (("a", 40), ("b", 40), ("a", 40), ("c", 40), ("a", 40), ("b", 40), ("big", 101), ("big", 101)):
        cache.get((key, 0), lambda size=size: make(size))
        assert cache.bytes() <= 100
    assert made == [40, 40, 40, 40, 101, 101]  # c drives b out, not a; b comes again; what is too large is never kept
    assert (len(cache), cache.bytes()) == (2, 80)


@pytest.mark.parametrize(("memory_gb", "given", "expected_mb"), [(80, "", 1600), (8, "", 256), (8, "1000", 1000)])
def test_the_bound_on_a_gpu_is_a_part_of_its_memory(memory_gb: int, given: str, expected_mb: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is set: many workers share a GPU."""
    monkeypatch.setenv("CGLSUITE_AUGMENTATION_CACHE_MB", given)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=memory_gb << 30))
    assert KEPT.limit(torch.device("cuda")) == expected_mb << 20
    assert KEPT.limit(torch.device("cpu")) == (int(given or "1600")) << 20


@pytest.mark.parametrize("wrong", ["many", "nan"])
def test_a_bound_that_is_no_number(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_AUGMENTATION_CACHE_MB", wrong)
    with pytest.raises(UsageError, match=r"CGLSUITE_AUGMENTATION_CACHE_MB=.*: expected a finite number \(megabytes"):
        source().training(some(0), 0, "cpu").epoch(0)


# --- bad input -------------------------------------------------------------------------------------------------------------------


def test_bad_recordings_are_named() -> None:
    x, lengths, how = torch.randn(9, 1, 4, 3), some(4, 5), Preparation(frames=3)
    last, first = x.clone(), x.clone()
    last[3, 0, 2, 1] = torch.nan  # the last frame of the first sequence, and the first frame of the next
    first[4, 0, 2, 1] = torch.inf
    for coordinates, sizes, message in (
        (x[:, 0], lengths, "expected float32"),
        (x.double(), lengths, "expected float32"),
        (x[:, :, :3], lengths, "the recordings have 3 joints, but the layout '0-1,1-2,3-2;centre=1' has 4"),
        (x, some(4, 0, 5), "sequence 1 has no frames"),
        (x, some(4, 4), "sum to 8; expected 9"),
        (last, lengths, "sequence 0 has a NaN"),
        (first, lengths, "sequence 1 has a NaN"),
    ):
        with pytest.raises(DataError, match=message):
            SkeletonSource(coordinates, sizes, CHAIN, how)
    with pytest.raises(SpecError, match="set augmentation = none"):
        SkeletonSource(x[..., :2].contiguous(), lengths, CHAIN, how)
    flat = SkeletonSource(x[..., :2].contiguous(), lengths, CHAIN, Preparation(frames=3, augmentation="none"))
    assert flat.training(some(1), 0, "cpu").features.shape == (4, 6)


def test_content_hash_covers_data_layout_and_preparation() -> None:
    hashes = {s.content_hash for s in (source(), source(frames=9), source(augmentation="none"), source(lengths=LENGTHS.flip(0)))}
    other = layout_of("0-1,1-2,3-1;centre=1")
    assert len(hashes | {source(other).content_hash}) == 5
    assert source().content_hash in hashes
    data = source(persons=2)
    how = {"layout": asdict(data.layout), "preparation": asdict(data.preparation), "centre": data.centre}
    arrays = [(data._all.coordinates.numpy(), "|<f4(3, 4, 2, 64)|"), (data._all.lengths.numpy(), "|<i8(6,)|")]
    by_hand = digest(how).encode() + b"".join(head.encode() + array.tobytes() for array, head in arrays)
    assert data.content_hash == hashlib.sha256(by_hand).hexdigest()
