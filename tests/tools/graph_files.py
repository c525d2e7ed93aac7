"""Tiny files in the true raw formats of datasets of whole graphs, for tests that build every preset without the data themselves."""

from __future__ import annotations

import csv
import gzip
import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from cglsuite_graph.datasets.specs import SIDER_CLASSES, TOX21_ASSAYS

from cglsuite.base.datafiles import DataRoot
from cglsuite.protocols.begin.splits import BEGIN_FILES

__all__ = ["BOROUGHS", "Files", "superpixel_graph", "zinc_molecule"]

BOROUGHS = ("Bronx", "Brooklyn", "EWR", "Manhattan", "Queens", "Staten Island", "Unknown")


class Files:
    """Writes below ``folder/data``; every method returns the path of what it wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def root(self) -> DataRoot:
        """Neither downloads nor compares checksums and sizes."""
        return DataRoot(self.folder / "data", self.folder / "cache", offline=True, verify=False)

    def put(self, relative: str, content: str | bytes) -> Path:
        path = self.folder / "data" / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return path

    def table(self, relative: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([columns, *rows])
        return self.put(relative, stream.getvalue())

    def begin(self, dataset: str, **arrays: Any) -> Path:
        path = self.folder / "data/begin-splits" / BEGIN_FILES[dataset].file
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **{key: np.asarray(values).astype(np.uint16) for key, values in arrays.items()})
        return path

    def aromaticity(self, rows: Sequence[Sequence[object]] | None = None, residues: Sequence[int] | None = None) -> Path:
        """30 numbers of aromatic atoms, 20 chains of carbon and oxygen of each."""
        if rows is None:
            rows = [("C" * (1 + i % 5) + "O" * (i % 3), float(count)) for count in range(30) for i in range(20)]
        self.begin("aromaticity", inner_tvt_splits=np.arange(len(rows)) if residues is None else residues)
        relative = "PubChemBioAssayAromaticity/raw/pubchem_bioassay_aromaticity.csv"
        return self.table(relative, ("cano_smiles", "aromatic_count"), rows)

    def sider(self) -> Path:
        rows = [["C" * (1 + i % 4) + "N", *((i // 2 + c) % 2 for c in range(27))] for i in range(80)]
        return self.table("MoleculeNet/sider/raw/sider.csv", ("smiles", *SIDER_CLASSES), rows)

    def tox21(self, rows: Sequence[Sequence[object]] | None = None) -> Path:
        """Every fifth label is not known."""
        if rows is None:
            labels = [["" if (i + c) % 5 == 0 else (i // 2 + c) % 2 for c in range(12)] for i in range(100)]
            rows = [[*known, f"TOX{i}", "C" * (1 + i % 4) + "Cl"] for i, known in enumerate(labels)]
        return self.table("MoleculeNet/tox21/raw/tox21.csv", (*TOX21_ASSAYS, "mol_id", "smiles"), rows)

    def molhiv(self, n: int = 600) -> Path:
        """20 domains, in each both labels in every part of the split."""
        rows = [("C" * (1 + i % 6) + "=O", "CI", i // 20 % 2) for i in range(n)]
        self.begin("ogbg-molhiv", inner_tvt_splits=np.arange(n) // 40, domain_splits=np.arange(n) % 20)
        return self.table("MoleculeNet/hiv/raw/HIV.csv", ("smiles", "activity", "HIV_active"), rows)

    def aqsol(self, targets: Sequence[object] | None = None) -> Path:
        """100 rings with a tail, of five scaffolds, and methane, which has no bond."""
        rings = ("C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "C1CCCCCC1")
        smiles = [*(rings[i % 5] + "C" * (1 + i // 5 % 4) for i in range(100)), "C"]
        targets = [-0.25 * i for i in range(101)] if targets is None else targets
        rows = [(f"A-{i}", s, y, f"G{1 + i % 5}") for i, (s, y) in enumerate(zip(smiles, targets, strict=True))]
        part = {8: "val", 9: "test"}
        self.table("AqSolDB/raw/aqsol_split.csv", ("ID", "split"), [(f"A-{i}", part.get(i % 10, "train")) for i in range(101)])
        return self.table("AqSolDB/raw/data_curated.csv", ("ID", "SMILES", "Solubility", "Group"), rows)

    def zinc_standin(self, rows: Sequence[Sequence[object]] | None = None) -> Path:
        """Chains of carbon, 60 of each size from 17 to 29, the last atom an amine."""
        if rows is None:
            rows = [("C" * (n - 1) + "N", n / 10 + i / 100, n, "train" if i < 48 else "test") for n in range(17, 30) for i in range(60)]
        return self.table("ZINC12kStandIn/raw/zinc_12k_standin.csv", ("smiles", "y", "num_nodes", "split"), rows)

    def zinc(self, per_size: int = 20, edit: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Path]:
        """Paths of 18 to 28 atoms in three pickles, the .index files naming all but the first molecule of each."""
        paths = {}
        for part in ("train", "val", "test"):
            molecules = [zinc_molecule(n, y=n / 10 + i) for n in range(18, 29) for i in range(per_size)]
            if edit is not None:
                edit(molecules[1])
            paths[part] = self.put(f"ZINC/raw/{part}.pickle", pickle.dumps([zinc_molecule(30, y=0.0), *molecules]))
            self.put(f"ZINC/raw/{part}.index", ",".join(str(i) for i in range(1, len(molecules) + 1)))
        return paths

    def superpixels(self, name: str, per_class: int = 3, content: object = None) -> Path:
        """Cycles of three and four nodes in three parts, as PyG's file of the same name has them."""
        if content is None:
            channels = {"mnist": 1, "cifar10": 3}[name]
            part = [superpixel_graph(3 + i % 2, channels, y=c, shade=c / 10) for c in range(10) for i in range(per_class)]
            content = (part, part[::-1], part)
        path = self.put(f"{name.upper()}/raw/{name.upper()}_v2.pt", b"")
        torch.save(content, path)
        return path

    def ppa(self, **changes: Sequence[object]) -> None:
        """111 graphs, all but the first sampled: paths of two and three nodes, 37 classes, 11 domains."""
        sizes = [2 + i % 2 for i in range(111)]
        self.begin("ogbg-ppa", sampled_indices=np.arange(1, 111), inner_tvt_split=np.arange(110) // 11, domain_info=np.arange(110) % 11)
        edges = [(j, j + 1) for n in sizes for j in range(n - 1)]
        content: dict[str, Sequence[object]] = {
            "edge": edges,
            "edge-feat": [[e / 10] * 7 for e in range(len(edges))],
            "num-node-list": [[n] for n in sizes],
            "num-edge-list": [[n - 1] for n in sizes],
            "graph-label": [[i % 37] for i in range(111)],
        }
        self.ogb("ogbg_ppa", content | changes)

    def ogb(self, folder: str, content: Mapping[str, Any]) -> None:
        for name, rows in content.items():
            self.put(f"{folder}/raw/{name}.csv.gz", "\n".join(",".join(map(str, row)) for row in rows) + "\n")

    def taxi(self, months: Sequence[str] | None = None, trips: Mapping[str, Sequence[Sequence[object]]] | None = None) -> None:
        """A trip on the first of every month; the months of 2018 as csv, the others as parquet."""
        zones = [(z, BOROUGHS[(z - 1) % 7] if z < 264 else "N/A" if z == 264 else "Unknown", "", "") for z in range(1, 266)]
        self.table("NYCTaxi/raw/taxi_zone_lookup.csv", ("LocationID", "Borough", "Zone", "service_zone"), zones)
        for month in months or [str(m) for m in pd.period_range("2018-01", "2021-12", freq="M")]:
            rows = (trips or {}).get(month, [(f"{month}-01 00:10:00", 2.0, 4, 7)])
            frame = pd.DataFrame(rows, columns=["tpep_pickup_datetime", "passenger_count", "PULocationID", "DOLocationID"])
            stem = f"NYCTaxi/raw/yellow_tripdata_{month}"
            if month.startswith("2018"):
                self.put(f"{stem}.csv", frame.to_csv(index=False))
            else:
                frame["tpep_pickup_datetime"] = pd.to_datetime(frame["tpep_pickup_datetime"])
                frame.to_parquet(self.put(f"{stem}.parquet", b""))

    def taxi_split(self) -> Path:
        hours = pd.date_range("2018-01-01", "2021-12-31 23:00", freq="h")
        quarter = (hours.year - 2018) * 4 + hours.quarter - 1
        return self.begin("nyctaxi", inner_tvt_splits=np.arange(len(hours)) % 10, time_splits=quarter)

    def sentiment(self, rows: Sequence[Sequence[object]] | None = None) -> Path:
        """Twelve days of May and June with 15 posts of each polarity, newest polarity first, as in the source."""
        if rows is None:
            days = pd.date_range("2009-05-26", periods=12)
            stamp = "{:%a %b %d} 10:00:00 PDT {:%Y}"
            texts = [(p, i, d) for p in (4, 0) for d in days for i in range(15)]
            rows = [(p, j, stamp.format(d, d), "NO_QUERY", f"u{i}", "word " * (2 + i % 3)) for j, (p, i, d) in enumerate(texts)]
        stream = io.StringIO()
        csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        return self.put("Sentiment140/raw/training.1600000.processed.noemoticon.csv", stream.getvalue().encode("latin-1"))

    def everything(self) -> None:
        """What all presets read."""
        for write in (self.aromaticity, self.sider, self.tox21, self.molhiv, self.aqsol, self.zinc_standin, self.zinc, self.ppa):
            write()
        self.superpixels("mnist")
        self.superpixels("cifar10")
        self.taxi()
        self.taxi_split()
        self.sentiment()


def zinc_molecule(n: int, y: float) -> dict[str, Any]:
    """A path of ``n`` carbons with single bonds, as the benchmark's pickles hold it."""
    bonds = torch.diag(torch.ones(n - 1), 1).to(torch.int32)
    return {
        "num_atom": n,
        "atom_type": torch.arange(n) % 28,
        "bond_type": bonds + bonds.T,
        "logP_SA_cycle_normalized": torch.tensor([y]),
    }


def superpixel_graph(n: int, channels: int, y: int, shade: float) -> dict[str, torch.Tensor]:
    """A directed cycle of ``n`` nodes."""
    ends = torch.arange(n)
    return {
        "x": torch.full((n, channels), shade),
        "pos": torch.stack([ends / 10, 1 - ends / 10], dim=1),
        "edge_index": torch.stack([ends, (ends + 1) % n]),
        "edge_attr": torch.arange(n) / 10,
        "y": torch.tensor([y]),
    }
