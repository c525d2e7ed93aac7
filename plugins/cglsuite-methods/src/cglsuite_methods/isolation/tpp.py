"""Task profiling and prompting (TPP): one frozen network, with a prompt, a head and a prototype per task; the prototype identifies the
task's items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite import Method
from cglsuite.graphs import MessageGraph, replaced, uploaded
from cglsuite.learning import Hyperparameters, Phase, PretrainingContext
from cglsuite.learning.isolation import by_task, swapped
from cglsuite.problems import Unlabelled
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.pretraining.grace import GRACE

_BELOW = 30.0
_GRACE = {"temperature": 0.5, "edges": 0.2, "features": 0.3, "items": 2048, "as_tpp": True}


class TPP(Method):
    """Pre-train a network once on the first task without labels, freeze it, and train a prompt and a head for every task (Niu et al.,
    Replay-and-Forget-Free Graph Class-Incremental Learning: A Task Profiling and Prompting Approach, NeurIPS 2024).

    The prompt of a task adds a mixture of ``prompts`` vectors to the features of each node, ``x + softmax(x A + b) P``. The first task has
    no prompt, because the network was trained on its graph. Pre-training uses GRACE as in the authors' code (:class:`GRACE`), or starts
    from the network that the cell provides (``body=given``: pre-trained or with random weights). Dropout and normalisation layers of the
    body are inactive while prompts and heads are trained. Nothing that belongs to a task changes after it, so on a graph that does not
    change its outputs are bit-identical, provided that its items are recognised.

    If the task of an item is unknown, it is inferred for each item from the nearest prototype. With ``S = D^-1/2 (A + I) D^-1/2`` and k =
    ``steps``, an item has the profile ``(D^-1/2 S^k X)_i``, a link has the mean profile of its two nodes, and a task has the mean profile
    of its training items in its graph. The item is then predicted by the prompt and head of that task, and the outputs of other tasks rank
    below all of its own.

    This differs from the published inference, which averages the profiles of all test items of one task before it searches for the
    prototype, so every item of a group gets the task of the group; the paper reports that all tasks are recognised. That option is not
    available here, because a prediction would depend on the other items in the query. The closest option without this dependence is
    ``infer=graph``, which uses the mean profile of all nodes of the query's graph. If each task is queried in a separate graph, this is the
    profile of one task.

    Design choices: the paper's code joins nodes without edges to random nodes before it computes profiles, whereas profiles here are
    computed in the unmodified graph. Pre-training uses the rate and epochs of the protocol (times ``share``); the authors' code uses 1e-3
    and 200.

    Cost: the time of fine-tuning, plus ``share`` in the first task; prompts make sparse features dense. Each task stores ``p (2 F + 1)``
    numbers for p prompts and F features, and a head. No items are stored.
    """

    state = ("prompts", "heads", "prototypes", "outputs")

    def setup(self) -> None:
        """Initialise without any tasks."""
        self.prompts: list[dict[str, Tensor]] = []
        self.heads: list[dict[str, Tensor]] = []
        self.prototypes: list[Tensor] = []
        """The mean profile of each task: float32 [F]."""
        self.outputs: list[Tensor] = []
        """The outputs of each task: bool [C]."""
        self._drawn_head = {name: value.clone() for name, value in self.model.head.state_dict().items()}
        self._prompt: dict[str, Tensor] = {}
        self._own: Tensor | None = None

    def _body(self) -> list[nn.Parameter]:
        of_head = {id(p) for p in self.model.head.parameters()}
        return [p for p in self.model.parameters() if id(p) not in of_head]

    def before_task(self, view: TaskView) -> None:
        """Create a new head and, except on the first task, a new prompt."""
        for parameter in self._body():
            parameter.requires_grad_(False)
        self.model.head.load_state_dict(self._drawn_head)
        self._own = None if bool(view.task_outputs.all()) else view.task_outputs  # asked once per task: a GPU is waited for
        self._prompt = {} if view.first else self._drawn_prompt(view.graph.n_features)

    def _drawn_prompt(self, width: int) -> dict[str, Tensor]:
        """Initialise a prompt: Glorot's bound for the vectors P [p, F], and that of a linear layer for A [F, p] and b [p]."""
        draws, p = self.context.generator("prompt"), int(self.hyperparameters.prompts)
        bounds = {"P": ((p, width), (6 / (p + width)) ** 0.5), "A": ((width, p), width**-0.5), "b": ((p,), width**-0.5)}
        return {
            name: nn.Parameter(uploaded((2 * torch.rand(*shape, generator=draws) - 1) * bound, self.problem.device))
            for name, (shape, bound) in bounds.items()
        }

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Pre-train the body before the first task, then train the prompt and head of the task."""
        if view.first and self.hyperparameters.body == "grace":
            yield self._pretraining(view)
            for parameter in self._body():
                parameter.requires_grad_(False)
        yield Phase(name="prompt")

    def _pretraining(self, view: TaskView) -> Phase:
        """Pre-train by GRACE on the task's graph: on all nodes or edges, or on the batch's if the protocol samples neighbours."""
        unlabelled = Unlabelled(self.problem)
        everything, body = unlabelled.items(view), self._body()
        for parameter in body:
            parameter.requires_grad_(True)
        scheme = GRACE(
            PretrainingContext(
                problem=self.problem,
                model=self.model,
                hyperparameters=Hyperparameters(_GRACE),
                generator=self.context.generator("grace"),
                example=everything,
            )
        )
        scheme.projection.to(self.problem.device)
        sampled = self.problem.batch_size is not None

        def loss(batch: Batch) -> Tensor:
            return scheme.loss(replace(batch, y=None, tasks=None, cache={}) if sampled else everything)

        share: float = self.hyperparameters.share
        return Phase(share=share, name="pre-training", loss=loss, parameters=[*body, *scheme.parameters()], monitor="loss")

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Return the parameters of the prompt and head of the task."""
        yield {"params": [*self._prompt.values(), *self.model.head.parameters()]}

    def before_epoch(self, epoch: int) -> None:
        """Keep the frozen body in evaluation mode."""
        self.model.eval()

    def forward(self, batch: Batch) -> Tensor:
        """Compute the raw outputs with the current prompt and head; outputs of other tasks are set to 30 below the lowest output of this
        task.
        """
        if self._prompt:
            batch = replace(batch, graph=prompted(batch.graph, self._prompt), cache={})
        outputs = super().forward(batch)
        if self._own is None:
            return outputs
        floor = outputs.detach().masked_fill(~self._own, torch.inf).amin(dim=1, keepdim=True).clamp(max=0.0) - _BELOW
        return torch.where(self._own, outputs, floor)

    @torch.no_grad()
    def after_task(self, view: TaskView) -> None:
        """Store the prompt, head and prototype of the task."""
        self.prompts = [*self.prompts, {name: value.detach().clone() for name, value in self._prompt.items()}]
        self.heads = [*self.heads, {name: value.clone() for name, value in self.model.head.state_dict().items()}]
        self.prototypes = [*self.prototypes, self._profiles(view.train).mean(dim=0)]
        self.outputs = [*self.outputs, view.task_outputs]

    def _profiles(self, batch: Batch) -> Tensor:
        """The profile of each item: float32 [n, F]."""
        profiles = smoothed(batch.graph, self.hyperparameters.steps)
        if self.hyperparameters.infer == "graph" and batch.y is None:
            return profiles.mean(dim=0).expand(len(batch), -1)
        of_items = profiles[batch.ids]
        return of_items.mean(dim=1) if batch.ids.dim() == 2 else of_items

    def inferred(self, query: Batch) -> Tensor:
        """Return the task with the nearest prototype for each item: int64 [n]. Ties go to the earlier task."""
        profiles = self._profiles(query)
        return torch.stack([(profiles - mean).square().sum(dim=1) for mean in self.prototypes], dim=1).argmin(dim=1)

    def predict(self, query: Batch) -> Tensor:
        """Return the raw outputs of each item with the prompt and head of its task, which is inferred if it is unknown."""
        if not self.prototypes:
            return self.forward(query)
        tasks = query.tasks if self.problem.task_ids else self.inferred(query)
        return by_task(self, replace(query, tasks=tasks), self._of_task, len(self.prototypes))

    @contextmanager
    def _of_task(self, k: int) -> Iterator[None]:
        before = self._prompt, self._own
        self._prompt, self._own = self.prompts[k], self.outputs[k]
        try:
            with swapped(self.model, {f"head.{name}": value for name, value in self.heads[k].items()}):
                yield
        finally:
            self._prompt, self._own = before


def prompted(graph: MessageGraph, prompt: Mapping[str, Tensor]) -> MessageGraph:
    """Replace the features of a graph by ``x + softmax(x A + b) P``, with A [F, p], b [p] and P [p, F], all float32."""
    x = graph.dense
    made: MessageGraph = replaced(graph, x + functional.softmax(x @ prompt["A"] + prompt["b"], dim=1) @ prompt["P"])
    return made


def smoothed(graph: MessageGraph, steps: int) -> Tensor:
    """Compute ``D^-1/2 S^k X`` with ``S = D^-1/2 (A + I) D^-1/2``, the degrees D of ``A + I`` and k = ``steps``: float32 [N, F]."""
    hidden = graph.dense
    for _ in range(steps):
        hidden = graph.propagate("sym", hidden)
    return hidden * graph.propagate("sum-self", torch.ones(graph.n_nodes, 1, device=graph.device)).rsqrt()
