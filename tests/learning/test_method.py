"""The base class is fine-tuning; settings are read by attribute or key."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from tiny_streams import tiny_runner, tiny_stream

from cglsuite import Method
from cglsuite.learning import Hyperparameters, Phase


def test_settings_by_attribute_and_key() -> None:
    hyperparameters = Hyperparameters({"lambda": 0.5, "sampler": "cm"})
    assert hyperparameters["lambda"] == 0.5
    assert hyperparameters.sampler == "cm"
    assert dict(hyperparameters) == {"lambda": 0.5, "sampler": "cm"}
    assert len(hyperparameters) == 2
    with pytest.raises(AttributeError, match="no hyperparameter 'budget'; declared: lambda, sampler"):
        _ = hyperparameters.budget
    with pytest.raises(AttributeError, match="declared: none"):
        _ = Hyperparameters({}).x
    with pytest.raises(KeyError):
        hyperparameters["budget"]


def test_settings_do_not_follow_what_they_were_made_from() -> None:
    values = {"a": 1}
    hyperparameters = Hyperparameters(values)
    values["a"] = 2
    assert hyperparameters.a == 1


def test_importing_the_base_class_imports_no_torch() -> None:
    code = "import sys, cglsuite.learning, cglsuite; cglsuite.Method; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_the_base_class_is_fine_tuning() -> None:
    stream = tiny_stream()
    method = tiny_runner(stream).method
    view = stream.view(0)
    method.problem.arrive(view)
    assert type(method) is Method
    assert list(method.training_views(view)) == [view]
    assert list(method.phases(view)) == [Phase(share=1.0)]
    method.model.eval()
    expected = torch.nn.functional.cross_entropy(method.model(view.graph)[view.train.ids][:, :2], view.train.y)
    torch.testing.assert_close(method.loss(view.train), expected)
    assert method.state == ()
    assert len(method.memory) == 0


def test_a_method_gets_its_context() -> None:
    seen = {}

    class Curious(Method):
        def setup(self) -> None:
            seen.update(model=self.model, hyperparameters=self.hyperparameters, n_tasks=self.context.n_tasks)

    method = tiny_runner(tiny_stream(), Curious, {"strength": 2}).method
    assert seen["model"] is method.model
    assert seen["hyperparameters"].strength == 2
    assert seen["n_tasks"] == 3
