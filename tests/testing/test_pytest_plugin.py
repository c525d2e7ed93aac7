"""What pytest gets from an installed suite, seen from a package of its own."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)


@pytest.mark.nightly
def test_run_cell_in_a_strangers_tests(pytester: pytest.Pytester) -> None:
    """A cell that does not end well fails the test with its reason."""
    pytester.makepyfile(
        """
        def test_matrix(run_cell):
            record = run_cell("testing-fine-tuning")
            assert len(record.matrix) == 1 + len(record.tasks) == 4

        def test_overrides(run_cell):
            record = run_cell("testing-fine-tuning", "testing-graphs/domain-il@testing-1", overrides={"training.epochs": 2})
            assert len(record.training_curves()[0]["loss"]) == 2

        def test_unknown(run_cell, suite_catalogue):
            import pytest
            from cglsuite.base.errors import UnknownNameError

            assert "testing-nodes" in suite_catalogue.names("dataset")
            with pytest.raises(UnknownNameError):
                run_cell("testing-fine-tunin")

        def test_diverges(run_cell):
            run_cell("testing-fine-tuning", overrides={"training.lr": 1e6, "training.optimizer": "sgd"})
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*ended as diverged*"])
