"""Scaffolds of molecules, and domains that consist of whole scaffolds."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import UnknownNameError
from cglsuite_graph.datasets.assemble import Array
from cglsuite_graph.datasets.molecules.tables import chemistry, parsed

_READER = 1  # part of the cache key: raise it when a rule changes
_ATTACHMENT = re.compile(r"\[\d+\*\]")


def murcko(molecule: Any) -> str:
    """Return the Bemis-Murcko scaffold (rings and their linkers) as a SMILES without stereo; it is empty for molecules without rings."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    scaffold: str = MurckoScaffold.MurckoScaffoldSmiles(mol=molecule, includeChirality=False)  # type: ignore[no-untyped-call]
    return scaffold


def brics(molecule: Any) -> str:
    """Return the largest fragment after breaking all BRICS bonds (Degen et al. 2008) as a SMILES without stereo.

    Attachment points are marked with ``*``. Ties between fragments go to the first SMILES in sort order.
    """
    from rdkit.Chem import BRICS

    chem = chemistry()
    broken = BRICS.BreakBRICSBonds(molecule)  # type: ignore[no-untyped-call]
    fragments = chem.GetMolFrags(broken, asMols=True)
    sizes = [fragment.GetNumHeavyAtoms() for fragment in fragments]
    texts = [chem.MolToSmiles(fragment, isomericSmiles=False) for fragment in fragments]
    _, text = min((-size, _ATTACHMENT.sub("*", text)) for size, text in zip(sizes, texts, strict=True))
    return text


RULES: dict[str, Callable[[Any], str]] = {"murcko": murcko, "brics": brics}


def scaffold_key(root: DataRoot, name: str, path: Path, smiles: Sequence[str], rule: str) -> Array:
    """Apply :func:`scaffolds_of` to the column ``smiles`` of the file ``path``, and cache the result per RDKit version.

    Raises:
        UnknownNameError: no such rule.
        DataError: RDKit is not installed.
    """
    if rule not in RULES:
        raise UnknownNameError("scaffold rule", rule, RULES)
    chemistry()
    import rdkit

    key = {"reader": _READER, "rdkit": rdkit.__version__, "sha256": root.sha256(path), "rule": rule}
    return root.derived(f"{name}-scaffolds", key, lambda: {"scaffold": scaffolds_of(smiles, RULES[rule])})["scaffold"]


def scaffolds_of(smiles: Sequence[str], rule: Callable[[Any], str]) -> Array:
    """Compute the scaffold of each row, numbered in order of first appearance: int64 [R].

    If RDKit rejects the chemistry of a molecule, the molecule is its own scaffold.
    """
    from rdkit import rdBase

    known: dict[str, int] = {}
    with rdBase.BlockLogs():
        return np.array([known.setdefault(_scaffold(text, rule), len(known)) for text in smiles], dtype=np.int64)


def _scaffold(smiles: str, rule: Callable[[Any], str]) -> str:
    molecule, checked = parsed(smiles)
    return rule(molecule) if checked and molecule.GetNumAtoms() else f"rejected {smiles}"


def balanced_domains(scaffold: Array, n_domains: int) -> Array:
    """Group whole scaffolds into domains of nearly equal size: int64 [n] in ``0..n_domains-1``.

    Scaffolds are assigned in order of size (ties by id), each to the currently smallest domain.

    Args:
        scaffold: int64 [n], the scaffold of each molecule.
    """
    ids, of, sizes = np.unique(scaffold, return_inverse=True, return_counts=True)
    domain = np.empty(len(ids), dtype=np.int64)
    heap = [(0, d) for d in range(n_domains)]
    for place in np.argsort(-sizes, kind="stable").tolist():
        size, smallest = heapq.heappop(heap)
        domain[place] = smallest
        heapq.heappush(heap, (size + int(sizes[place]), smallest))
    return domain[of]
