"""Use the suite from Python: load data, build streams, run methods over several seeds, and compare, plot and report the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.study.data import build_stream, load_dataset
    from cglsuite.study.explorer import Explorer, explore
    from cglsuite.study.study import Study, run

__all__ = ["Explorer", "Study", "build_stream", "explore", "load_dataset", "run"]

__getattr__, __dir__ = lazily(__name__, __file__)
