"""Hourly graphs of taxi trips in New York, built from the monthly trip files.

Stated in the paper (Ko et al. 2025): hourly graphs of 2018 to 2021 over the 265 taxi zones, seven borough indicators as features of a
zone, passenger counts as weights of edges, weekday or weekend as label, tasks of three months. Not stated and chosen here:

- trips are of yellow taxis and belong to the hour in which they begin, by the timestamps in the files;
- edges point from the pick-up zone to the drop-off zone; their weight is the sum of passenger counts, where missing counts are 0; pairs
  with a sum of 0 are not edges; - trips within one zone are not edges, since message passing drops self-loops; - trips that begin outside
  their file's month (meters with a wrong clock) and trips of unknown zones beyond 265 are dropped; - the seven boroughs are the values
  of the lookup table's column Borough in alphabetical order, zones without a borough (264 and 265)
  among them as Unknown; a weekend is Saturday and Sunday.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite.protocols.begin.splits import begin_array, begin_split
from cglsuite_graph.datasets.assemble import Array, check_sizes, graph_data, reading

ZONES = 265
_MONTHS = pd.period_range("2018-01", "2021-12", freq="M")
_COLUMNS = ["tpep_pickup_datetime", "passenger_count", "PULocationID", "DOLocationID"]
_BOROUGHS = 7
_READER = 1  # part of the cache key: increment it when the reader's output changes
_NOTE = "Monthly trip files of yellow taxis come from https://www.nyc.gov/site/tlc/about/tlc-trip-record-data.page, as parquet or csv"


def nyc_taxi(root: DataRoot) -> GraphData:
    """Load hourly graphs of taxi trips in New York (see the spec and the choices above).

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    name = "nyc-taxi"
    zones = root.file("NYCTaxi/raw/taxi_zone_lookup.csv", note=_NOTE)
    months = [_file(root, f"yellow_tripdata_{month}") for month in _MONTHS]
    key = {"reader": _READER, "files": [root.sha256(path) for path in months]}
    arrays = root.derived(name, key, lambda: hourly_pairs(zip(_MONTHS, months, strict=True)))
    hours = pd.date_range(_MONTHS[0].start_time, _MONTHS[-1].end_time, freq="h")
    split, task = begin_split(root, "nyctaxi"), begin_array(root, "nyctaxi", "time_splits")
    if not len(split) == len(task) == len(hours):
        raise DataError(f"begin-splits/nyctaxi_metadata_timeIL.npz has {len(split):,} entries; expected {len(hours):,}, one per hour")
    hour = arrays["hour"].astype(np.int64)
    data = graph_data(
        name,
        x=np.tile(read_boroughs(zones), (len(hours), 1)),
        edge_index=np.stack([arrays["origin"], arrays["target"]]) + hour * ZONES,
        edge_attr=arrays["passengers"][:, None],
        sizes=np.full(len(hours), ZONES),
        y=(np.asarray(hours.day_of_week) >= 5).astype(np.int64),
        n_classes=2,
        split=split,
        keys={"row": np.arange(len(hours)), "quarter": task},
        notes={"hours_without_trips": len(hours) - len(np.unique(hour))},
    )
    return check_sizes(data, root, "NYCTaxi/raw")


def hourly_pairs(months: Iterable[tuple[pd.Period, Path]]) -> dict[str, Array]:
    """Sum the passengers per hour and pair of zones, sorted by hour, origin and target.

    Returns:
        ``hour`` int32 [E] since the beginning of the first month, ``origin`` and ``target`` int16 [E] in 0..264, ``passengers`` float32
        [E].

    Raises:
        DataError: a file is damaged or lacks a column.
    """
    keys: list[Array] = [np.zeros(0, np.int64)]
    sums: list[Array] = [np.zeros(0)]
    first: pd.Timestamp | None = None
    for month, path in months:
        first = first or month.start_time
        begun, passengers, origin, target = _trips(path)
        hour = (begun - first.to_datetime64()) // np.timedelta64(1, "h")
        inside = (begun >= month.start_time.to_datetime64()) & (begun <= month.end_time.to_datetime64())
        inside &= (np.minimum(origin, target) >= 1) & (np.maximum(origin, target) <= ZONES) & (origin != target) & (passengers > 0)
        key = ((hour * ZONES + origin - 1) * ZONES + target - 1)[inside]
        unique, of = np.unique(key, return_inverse=True)
        keys.append(unique)
        sums.append(np.bincount(of, weights=passengers[inside], minlength=len(unique)))
    pairs, target = np.divmod(np.concatenate(keys), ZONES)
    hour, origin = np.divmod(pairs, ZONES)
    return {
        "hour": hour.astype(np.int32),
        "origin": origin.astype(np.int16),
        "target": target.astype(np.int16),
        "passengers": np.concatenate(sums).astype(np.float32),
    }


def read_boroughs(path: Path) -> Array:
    """Read the one-hot boroughs of the zones, in order of zone number: float32 [265, 7].

    Raises:
        DataError: the table is damaged, or has unexpected zones or numbers of boroughs.
    """
    with reading(path):
        table = pd.read_csv(path, keep_default_na=False).set_index("LocationID")["Borough"].sort_index()
    borough = table.replace({"N/A": "Unknown", "": "Unknown"})
    names, of = np.unique(borough.to_numpy(dtype=str), return_inverse=True)
    if table.index.tolist() != list(range(1, ZONES + 1)) or len(names) != _BOROUGHS:
        raise DataError(
            f"{path}: found {len(table)} zones in {len(names)} boroughs; expected zones 1..{ZONES} in {_BOROUGHS} boroughs, including "
            "Unknown"
        )
    return np.eye(_BOROUGHS, dtype=np.float32)[of]


def _file(root: DataRoot, stem: str) -> Path:
    relative = f"NYCTaxi/raw/{stem}"
    return root.find(f"{relative}.csv") or root.file(f"{relative}.parquet", note=_NOTE)


def _trips(path: Path) -> tuple[Array, Array, Array, Array]:
    """The start of each trip (datetime64), its passengers and its zones (0 if missing)."""
    with reading(path):
        if path.suffix == ".csv":
            frame = pd.read_csv(path, usecols=_COLUMNS, parse_dates=_COLUMNS[:1])
        else:
            frame = pyarrow.parquet.read_table(path, columns=_COLUMNS).to_pandas()
        numbers = frame[_COLUMNS[1:]].fillna(0).to_numpy(dtype=np.float64)
        begun: Array = frame[_COLUMNS[0]].to_numpy(dtype="datetime64[ns]")
    return begun, numbers[:, 0], numbers[:, 1].astype(np.int64), numbers[:, 2].astype(np.int64)
