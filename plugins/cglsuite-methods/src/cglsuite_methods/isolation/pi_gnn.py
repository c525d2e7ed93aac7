"""PI-GNN: parameter isolation by blocks of units, with one block trained per task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cglsuite import Method
from cglsuite.backbones import Units
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph
from cglsuite.learning import Phase
from cglsuite.learning.isolation import Held, along, by_task, frozen_units, output_wires
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.replay_items import both_losses


class PIGNN(Method):
    """Train the t-th of T equal blocks of units on task t; the block reads from all blocks so far (Zhang et al., Continual Learning on
    Dynamic Graphs via Parameter Isolation, SIGIR 2023).

    A weight from unit i to unit j exists iff ``block(i) ≤ block(j)``. A task trains what its block computes, how the head reads its block,
    and outputs that are new. Older blocks, including their normalisation layers and statistics, do not change. This equals a network that
    grows by one block per task (weights are initialised by Glorot's rule for the size of a single block). If the task is known, an item of
    task k is predicted by the blocks up to k, so its outputs never change; otherwise all blocks so far are used.

    If the task is unknown, the loss is ``L + β CE(B)`` with ``per_task`` random items B of every earlier task (at most an equal share of
    the scenario's budget), embedded in the current graph unless ``neighbourhood`` is off. If the task is known, B could not change anything
    that its predictions depend on, so nothing is stored.

    Rectification: if the graph of a new task changes the neighbourhood of some stored nodes, the old blocks are first trained for a
    ``share`` of the epochs on the stored nodes whose numbers of walks of every length up to the depth of the network are unchanged. (The
    paper uses nodes that the change does not affect; walks are this suite's test for it.)

    Cost: the time of fine-tuning, the passes over the memory and ``share``; the stored items. There are no additional parameters, because
    the width is fixed from the start. BeGin instead increases the width to an equal number of parameters.
    """

    state = ("learnt",)

    def setup(self) -> None:
        """Divide the units into blocks.

        Raises:
            NotApplicable: fewer units than tasks in a layer.
        """
        self.units = self.model.units()
        self.blocks = {u.name: blocks_of(u, self.context.n_tasks, self.problem.device) for u in self.units}
        self.wires = output_wires(self.model.head)
        self.opened = [{n: (b <= t).float() for n, b in self.blocks.items()} for t in range(self.context.n_tasks)]
        self.norms = self._norms()
        self.learnt, self.task, self.open = 0, 0, 0
        self.held = Held(self.model)
        self.masks: dict[str, Tensor] = {}
        outer, inner = self._sides()
        parameters = dict(self.model.named_parameters())
        self.exists = {n: inner[n] <= outer[n] for n in outer if n in inner}
        for name, parameter in parameters.items():
            if name in outer and parameter.dim() > 1:
                parameter.data.mul_(_rescaled(parameter, outer[name], inner.get(name)))
        self._disconnect()
        self.replay: Batch | None = None

    def _sides(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """By parameter, the blocks of the units that its entries write, and of those that they read."""
        parameters, outer, inner = dict(self.model.named_parameters()), dict[str, Tensor](), dict[str, Tensor]()
        for u in self.units:
            for side, wires in ((outer, u.writers), (inner, u.readers)):
                side.update({w.parameter: along(w, parameters[w.parameter], self.blocks[u.name]) for w in wires})
        return outer, inner

    @torch.no_grad()
    def _disconnect(self) -> None:
        """Remove weights that lead from a later block to an earlier one."""
        parameters = dict(self.model.named_parameters())
        for name, exists in self.exists.items():
            parameters[name].mul_(exists)

    def before_task(self, view: TaskView) -> None:
        """Open the block of the task and collect its replay memory."""
        self.task = self.open = view.position
        items = self.memory.all()
        self.replay = self.problem.recall(self.problem.join(items), view) if items else None
        self.masks = self._moving(view)

    def _moving(self, view: TaskView) -> dict[str, Tensor]:
        t, (outer, inner) = view.position, self._sides()
        parameters = dict(self.model.named_parameters())
        heads = {
            w.parameter: along(w, parameters[w.parameter], torch.arange(self.problem.n_outputs, device=self.problem.device))
            for w in self.wires
        }
        known = view.task_outputs if self.problem.task_ids else view.seen_outputs
        seen = self.problem.task_outputs[:t].any(dim=0)
        new = view.task_outputs & ~seen
        masks = {}
        for name, parameter in parameters.items():
            if name in heads:
                reads = inner[name] == t if name in inner else torch.ones((), dtype=torch.bool, device=parameter.device)
                mask = (known[heads[name]] & reads) | new[heads[name]]
            elif name in outer:
                mask = outer[name] == t
                if name in self.exists:
                    mask = mask & self.exists[name]
            elif name in inner:
                mask = inner[name] == t
            else:
                mask = torch.full_like(parameter, view.first, dtype=torch.bool)
            masks[name] = mask
        return masks

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Rectify the old blocks if the graph has changed, then train the new block."""
        stable = self._stable(view)
        if stable is not None:
            self.open = view.position - 1
            old = [p for n, p in self.model.named_parameters() if p.requires_grad]
            yield Phase(share=self.hyperparameters.share, name="rectify", loss=lambda _: self._on(stable), parameters=old, monitor="loss")
            self._disconnect()
            self.open = view.position
        yield Phase()

    def _on(self, stable: Batch) -> Tensor:
        self._disconnect()
        return self.problem.loss(self.forward(stable), stable)

    def _stable(self, view: TaskView) -> Batch | None:
        """The stored nodes whose neighbourhood is unchanged since then; ``None`` if all or none are, or none are stored."""
        kept = [items for items in self.memory.all() if "walks" in items.extra and items.x is None]
        if not kept:
            return None
        items = self.problem.join(kept)
        same = (walks(view.graph, items.ids, self.model.hops or 2) == items.extra["walks"]).flatten(1).all(dim=1)
        if bool(same.all()) or not bool(same.any()):
            return None
        return self.problem.recall(items.take(same.nonzero().flatten()), view)

    def forward(self, batch: Batch) -> Tensor:
        """Compute the raw outputs of the blocks up to the current one. In training mode, the normalisation statistics of all other blocks
        are frozen.
        """
        with self._active():
            return super().forward(batch)

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss on the task plus the loss on the memory."""
        if self.replay is None:
            return super().loss(batch)
        with self._active():
            own, old = both_losses(self, batch, self.replay)
        beta: float = self.hyperparameters.beta
        return own + beta * old

    @contextmanager
    def _active(self) -> Iterator[None]:
        """Within the block, gates of the blocks up to the current one and, in training, frozen statistics of fixed units."""
        outside = self.model.gates
        self.model.gates = self.opened[self.open]
        try:
            with frozen_units(self._resting() if self.model.training and not outside else {}):
                yield
        finally:
            self.model.gates = outside

    def _norms(self) -> dict[str, tuple[nn.Module, Tensor]]:
        """Every norm whose units belong to blocks, with their blocks: int64 [width]."""
        norms = {n: m for n, m in self.model.named_modules() if isinstance(m, nn.BatchNorm1d)}
        of_norm = {w.parameter.removesuffix(".weight"): self.blocks[u.name] for u in self.units for w in u.writers}
        return {n: (m, of_norm[n]) for n, m in norms.items() if n in of_norm}

    def _resting(self) -> dict[str, tuple[nn.Module, Tensor]]:
        moving = self.task if self.open == self.task else -1  # none while old blocks are rectified
        return {n: (m, blocks != moving) for n, (m, blocks) in self.norms.items()}

    def before_step(self) -> None:
        """Save the weights of earlier blocks."""
        self.held.before(self.masks)

    def after_step(self) -> None:
        """Restore the weights of earlier blocks."""
        self.held.after()

    def after_task(self, view: TaskView) -> None:
        """Store items of the task and add its block to the learnt network."""
        self.learnt, self.replay = view.position + 1, None
        if not self.problem.task_ids:
            self._keep(view)

    def _keep(self, view: TaskView) -> None:
        """Store random items of the task with facts that later reveal whether their neighbourhood has changed."""
        wanted, budget = self.hyperparameters.per_task, self.memory.budget
        wanted = wanted if budget is None else min(wanted, max(1, budget // self.context.n_tasks))
        chosen = torch.randperm(len(view.train), generator=self.context.generator("memory"))[:wanted]
        by_reference = self.hyperparameters.neighbourhood and view.keeps_nodes
        whole = isinstance(view.graph, MessageGraph) and by_reference
        extra = {"walks": walks(view.graph, view.train.ids, self.model.hops or 2)} if whole else {}
        items = self.problem.sample(view.train, chosen, "reference" if by_reference else "item", extra=extra)
        self.memory.put(f"task-{view.position}", items)

    def predict(self, query: Batch) -> Tensor:
        """Return the outputs of each item from the blocks up to its task, or from all blocks so far if the task is unknown."""
        if not self.problem.task_ids:
            with self._of_task(self.learnt - 1):
                return self.forward(query)
        return by_task(self, query, self._of_task, self.learnt)

    @contextmanager
    def _of_task(self, k: int) -> Iterator[None]:
        before, self.open = self.open, max(k, 0)
        try:
            yield
        finally:
            self.open = before


def blocks_of(units: Units, n_tasks: int, device: torch.device) -> Tensor:
    """Assign each unit to one of ``n_tasks`` blocks of nearly equal size, keeping grouped units together: int64 [width].

    Raises:
        NotApplicable: there are fewer units than tasks.
    """
    n = units.width // units.together
    if n < n_tasks:
        what = "units" if units.together == 1 else f"groups of {units.together} units"
        raise NotApplicable(
            f"pi-gnn gives each of {n_tasks} tasks a block of the layer {units.name}, but the layer has only {n} {what}; use a wider "
            "backbone"
        )
    return (torch.arange(n, device=device) * n_tasks // n).repeat_interleave(units.together)


def walks(graph: MessageGraph, ids: Tensor, hops: int) -> Tensor:
    """Count the walks of 1 to ``hops`` steps that end at each node; staying at a node counts as a step: float32 [*ids.shape, hops]."""
    counts = [torch.ones(graph.n_nodes, 1, device=graph.device)]
    for _ in range(hops):
        counts.append(graph.propagate("sum-self", counts[-1]))
    return torch.cat(counts[1:], dim=1)[ids]


def _rescaled(parameter: Tensor, outer: Tensor, inner: Tensor | None) -> Tensor:
    """The ratio of Glorot's bound for a block's own size to that for the whole layer; broadcasts to the parameter.

    The bound is ``√(6 / (inputs + outputs))``; a unit of block b reads the blocks up to b, and lies among the units of its own.
    """
    sizes = torch.bincount(outer.flatten()).float()
    n_outputs, n_inputs = float(sizes.sum()), parameter.numel() / outer.numel()
    if inner is None:
        reads = torch.full_like(sizes, n_inputs)
    else:
        reads = torch.bincount(inner.flatten(), minlength=len(sizes)).float().cumsum(0)
        n_inputs = float(reads[-1])
    return ((n_inputs + n_outputs) / (reads + sizes)).sqrt()[outer]
