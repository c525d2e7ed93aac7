"""Facebook pages that like each other, by category: eight graphs combined into one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData
from cglsuite_link.datasets.assemble import Array, load, without_loops
from cglsuite_link.datasets.specs import FACEBOOK_CATEGORIES, SIZES

_FOLDER = "FacebookGEMSEC/facebook_clean_data"
_HOME = "https://raw.githubusercontent.com/benedekrozemberczki/GEMSEC/master/data"
_SHA256 = {
    "athletes": "3aa50b305eac848a598186fbe46624ffe7b315dc18ebcd8de035c2c486356970",
    "company": "b89beaaad1ae55e1f389b58c52e52af0c26cfc38ae27abdc029de5a771876f75",
    "government": "bf9357520b1f172836840490b5df6b25fd7e50a374a5a5f53b96fb1defb244d5",
    "new_sites": "d17105499793fc3426ad195bfff382b37fde32f2dce3a2c4da89969712f17c17",
    "politician": "f84fdc8d00cf84c1b89149b6c86a4383021794f8bac4bce73b04f295ece72476",
    "public_figure": "a71c2601d8e36ca050c8da72f13f1c1422d805c6c8e27098bb6e9532a3d4487a",
    "tvshow": "1c419b60787298274e22d1fe7c6e3ea907502f482cf48b4aa09476aba083bc31",
}


def facebook(root: DataRoot, categories: str = "all") -> LinkData:
    """Load the pages in the Facebook data of GEMSEC (see its spec).

    Args:
        root: where ``FacebookGEMSEC/facebook_clean_data/`` is.
        categories: ``all``: eight; ``without-artist``: the other seven, whose domains keep the numbers 1..7.

    Raises:
        DataError: a file is missing or damaged, or has other columns.
    """
    chosen = FACEBOOK_CATEGORIES[0 if categories == "all" else 1 :]
    note = "It is also in https://snap.stanford.edu/data/gemsec_facebook_dataset.tar.gz, folder facebook_clean_data/"
    files = {}
    for category in chosen:
        name = f"{category}_edges.csv"
        files[f"{_FOLDER}/{name}"] = root.file(f"{_FOLDER}/{name}", sha256=_SHA256.get(category), urls=(f"{_HOME}/{name}",), note=note)

    def read(paths: Mapping[str, Path]) -> dict[str, Array]:
        return _read(list(paths.values()), len(FACEBOOK_CATEGORIES) - len(chosen))

    sizes = SIZES["facebook" if categories == "all" else "facebook-7"]
    return load(root, "facebook", files, read, sizes=sizes)


def _read(paths: list[Path], first_domain: int) -> dict[str, Array]:
    links, domains, n = [], [], 0
    for domain, path in enumerate(paths, start=first_domain):
        rows = pd.read_csv(path, dtype=np.int64)
        if list(rows.columns) != ["node_1", "node_2"]:
            raise DataError(f"{path.name} has the columns {', '.join(rows.columns)}; expected node_1, node_2")
        ends = rows.to_numpy().T
        if not ends.size or ends.min() < 0:
            raise DataError(f"{path.name}: expected at least one link, with node ids starting at 0")
        links.append(ends + n)
        domains.append(np.full(ends.shape[1], domain))
        n += int(ends.max()) + 1
    return without_loops({"links": np.concatenate(links, axis=1), "n_nodes": np.array(n), "key.domain": np.concatenate(domains)})
