"""What ``cglsuite[jupyter]`` promises, in an environment that has nothing else: run by ``tox -e jupyter`` outside the checkout.

The notebook ``explore`` is executed with a small study. Its explorer must come with controls and with figures for front ends that show no
widgets; JupyterLab must start, with the extension that draws the controls.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import papermill

from cglsuite import load_catalogue

__all__ = ["main"]

WIDGET = "application/vnd.jupyter.widget-view+json"
FIGURES = "application/vnd.cglsuite.figures+json"
SMALL = {"dataset.n_nodes": 120, "dataset.n_classes": 4, "training.epochs": 2}


def main() -> None:
    """Raise AssertionError if a promise is broken."""
    catalogue = load_catalogue()
    source = catalogue.resolve(catalogue.get("notebook", "explore"))
    with tempfile.TemporaryDirectory() as folder:
        done = Path(folder, "done.ipynb")
        given = {"methods": "bare", "orders": 1, "overrides": SMALL, "store": str(Path(folder, "store"))}
        papermill.execute_notebook(source, done, parameters=given, kernel_name="python3", progress_bar=False, log_output=False)
        executed = nbformat.read(done, as_version=4)
    shown = [output.data for cell in executed.cells for output in cell.get("outputs", ()) if "data" in output]
    (explorer,) = (data for data in shown if WIDGET in data)
    assert FIGURES in explorer, "the explorer has no figures for front ends without widgets"
    assert "Mean performance matrix" in explorer["text/plain"]
    assert any("image/png" in data for data in shown), "study.plot() shows no figure in place"
    states = executed.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    assert {"TextModel", "SelectModel", "SelectMultipleModel", "ToggleButtonsModel"} <= {state["model_name"] for state in states}

    def command(*words: str) -> str:
        answer = subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, text=True)
        return answer.stdout + answer.stderr

    assert "jupyterlab_widgets" in command("jupyterlab.labextensions", "list")
    print(f"JupyterLab {command('jupyterlab', '--version').strip()}: explore shows its controls and its figures")


if __name__ == "__main__":
    main()
