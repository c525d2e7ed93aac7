"""CSV is read as text and typed afterwards: words stay words, ids stay ids, dates are times, and what is doubtful is refused by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cglsuite.base.errors import DataError
from cglsuite.graphs.files.forms import Form, form_of_arrays
from cglsuite.graphs.files.options import FileOptions
from cglsuite.graphs.files.tables import read_arrays

EDGES = "source,target\na,b\nb,c\nc,a\n"


def folder(path: Path, **tables: str | bytes) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in tables.items():
        (path / f"{name}.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path, **options: Any) -> Form:
    said = FileOptions.of(options, "options")
    return form_of_arrays(path, read_arrays(path, said), said)


def message(path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as error:
        read(path, **options)
    assert str(path) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("word", ["NA", "None", "null", "nan", "N/A", "NULL", "NaN", "n/a", "-", "inf"])
def test_no_word_is_a_missing_value(tmp_path: Path, word: str) -> None:
    """As a class, and as the id of a node."""
    nodes = f"id,x,y\n{word},1,metal\nb,2,{word}\nc,3,metal\n"
    made = read(folder(tmp_path / "d", nodes=nodes, edges=f"source,target\n{word},c\nb,{word}\n"))
    assert made.classes == tuple(sorted(["metal", word]))
    assert [made.classes[number] for number in made.y] == ["metal", word, "metal"]
    assert made.edges.tolist() == [[0, 1], [2, 0]]


def test_a_column_of_numbers_with_an_empty_field(tmp_path: Path) -> None:
    made = read(folder(tmp_path / "d", nodes="id,x,y\na,1,0\nb,2,\nc,3,1\n", edges=EDGES))
    assert made.y.tolist() == [0, -1, 1]
    said = message(folder(tmp_path / "e", nodes="id,x,y\na,1,0\nb,,1\nc,3,1\n", edges=EDGES))
    assert "nodes.csv, row 3, column 'x': the cell is empty; expected a number" in said


@pytest.mark.parametrize(("one", "other"), [("7", "007"), ("1e2", "100"), ("1", "1.0"), ("1", "+1"), ("a", "A"), ("1", "１")])
def test_ids_stay_what_they_are(tmp_path: Path, one: str, other: str) -> None:
    made = read(folder(tmp_path / "d", nodes=f"id,x,y\n{one},1,0\n{other},2,1\n", edges=f"source,target\n{other},{one}\n{one},{one}\n"))
    assert made.edges.tolist() == [[1, 0], [0, 0]]
    said = message(folder(tmp_path / "e", nodes=f"id,x,y\n{one},1,0\nz,2,1\n", edges=f"source,target\nz,{other}\n"))
    assert "edges.csv, row 2, column 'target'" in said
    assert "is not an id in nodes.csv" in said


@pytest.mark.parametrize(
    ("labels", "classes", "y"),
    [
        (["007", "7", "007"], ("007", "7"), [0, 1, 0]),
        (["1e2", "100", "100"], ("100", "1e2"), [1, 0, 0]),
        (["0", "2", "1"], (), [0, 2, 1]),
        (["1.0", "0.0", ""], (), [1, 0, -1]),
        (["true", "False", "TRUE"], (), [1, 0, 1]),
    ],
)
def test_labels_are_numbers_where_all_are(tmp_path: Path, labels: list[str], classes: tuple[str, ...], y: list[int]) -> None:
    rows = "".join(f"{name},1,{label}\n" for name, label in zip("abc", labels, strict=True))
    made = read(folder(tmp_path / "d", nodes=f"id,x,y\n{rows}", edges=EDGES))
    assert (made.classes, made.y.tolist()) == (classes, y)


@pytest.mark.parametrize(
    ("texts", "numbers", "unit"),
    [
        (["2021-03-05", "2021-03-06", "2021-03-05"], [18691, 18692, 18691], "day"),
        (["1970-01-01 00:00", "1970-01-01 12:00", "1970-01-02"], [0, 43200, 86400], "second"),
        (["1970-01-01T02:00:00+02:00", "1970-01-01T00:00:01Z", "1969-12-31T22:00-0200"], [0, 1, 0], "second"),
        (["1970-01-01T00:00:00.25", "1970-01-01T00:00:01", "1970-01-01T00:00:00"], [250, 1000, 0], "millisecond"),
        (["1970-01-01T00:00:00.000000001", "1970-01-01T00:00:00", "1970-01-01"], [1, 0, 0], "nanosecond"),
        (["1970-01-01t03z", "1970-01-01T02Z", "1970-01-01"], [10800, 7200, 0], "second"),
        (["9999-12-31T23:59:59.5", "1970-01-01", "1970-01-01"], [253402300799500, 0, 0], "millisecond"),
        (["3", "1", "2"], [3, 1, 2], ""),
    ],
)
def test_dates_are_times(tmp_path: Path, texts: list[str], numbers: list[int], unit: str) -> None:
    rows = "".join(f"{name},1,0,{text}\n" for name, text in zip("abc", texts, strict=True))
    made = read(folder(tmp_path / "d", nodes=f"id,x,y,time\n{rows}", edges=EDGES))
    assert (made.keys["time"].tolist(), made.time_unit) == (numbers, unit)


def test_days_are_asked_for_by_name(tmp_path: Path) -> None:
    nodes = "id,x,y,time\n" + "".join(f"{name},1,0,2021-03-05T{hour:02}:00\n" for hour, name in enumerate("abc"))
    path = folder(tmp_path / "d", nodes=nodes, edges=EDGES)
    assert len(set(read(path).keys["time"].tolist())) == 3
    assert read(path, time_unit="day").keys["time"].tolist() == [18691] * 3
    numbers = folder(tmp_path / "e", nodes="id,x,y,time\na,1,0,3\nb,1,0,4\nc,1,1,5\n", edges=EDGES)
    assert "time_unit = day applies only to dates and times, but time contains numbers" in message(numbers, time_unit="day")
    none = folder(tmp_path / "f", nodes="id,x,y\na,1,0\nb,1,0\nc,1,1\n", edges=EDGES)
    assert "requires an array 'time' with dates, but the file has none" in message(none, time_unit="day")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "row 3, column 'time': it is empty; every item needs a time"),
        ("NaT", "row 3, column 'time': it is empty"),
        ("05/03/2021", "row 3, column 'time': '05/03/2021' is no ISO date or time"),
        ("2021-13-01", "row 3, column 'time': '2021-13-01' is not a valid time"),
        (
            "9999-12-31T23:59:59.000000001",
            "row 3, column 'time': '9999-12-31T23:59:59.000000001' is out of range; times in nanoseconds must be between the years 1677",
        ),
        (
            "2021-03-05T10:00Z",
            "row 2, column 'time': '2021-03-05T09:00' has no time zone, but '2021-03-05T10:00Z' has one; expected a time zone in "
            "all times or in none",
        ),
    ],
)
def test_a_time_that_is_none_is_named_by_row(tmp_path: Path, text: str, says: str) -> None:
    nodes = f"id,x,y,time\na,1,0,2021-03-05T09:00\nb,1,0,{text}\nc,1,1,2021-03-05T09:00\n"
    assert f"nodes.csv, {says}" in message(folder(tmp_path / "d", nodes=nodes, edges=EDGES))


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "it is empty"), ("nan", "it holds 'nan'"), ("2021-03-05", "it holds '2021-03-05'"), ("1.5", "it holds '1.5'")],
)
def test_a_time_beside_whole_numbers_is_named_by_row(tmp_path: Path, text: str, says: str) -> None:
    nodes = f"id,x,y,time\na,1,0,1\nb,1,0,{text}\nc,1,1,2\n"
    assert f"row 3, column 'time': {says}; every item needs a time" in message(folder(tmp_path / "d", nodes=nodes, edges=EDGES))


def test_the_column_of_ids(tmp_path: Path) -> None:
    """``id``, or the one that is named; one that may be it is never taken as a feature."""
    nodes = "node_id,x,y\n2,5,0\n0,6,1\n1,7,0\n"
    path = folder(tmp_path / "d", nodes=nodes, edges="source,target\n0,1\n2,0\n")
    said = message(path)
    assert "the values of column 'node_id' are unique and include the ends of all edges" in said
    assert "set id = node_id or rename the column to id" in said
    named = read(path, id="node_id")
    assert (named.x.tolist(), named.edges.tolist()) == ([[5], [6], [7]], [[1, 0], [2, 1]])
    rows = read(path, id="none")
    assert (rows.x.tolist(), rows.edges.tolist()) == ([[2, 5], [0, 6], [1, 7]], [[0, 2], [1, 0]])
    assert "id = 'nodeid' is not a column; the columns are node_id, x, y; did you mean 'node_id'?" in message(path, id="nodeid")
    floats = folder(tmp_path / "f", nodes=nodes.replace("2,5", "2.0,5"), edges="source,target\n0,1\n2.0,0\n")
    assert "the values of column 'node_id' are unique and include the ends of all edges" in message(floats)
    texts = folder(tmp_path / "e", nodes="x,y\n1,0\n2,1\n3,0\n", edges=EDGES)
    assert "edges.csv, row 2, column 'source': 'a' is not a row number, and nodes.csv has no 'id' column" in message(texts)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (",id,x,y", "column 1 has no name: it counts the rows, as DataFrame.to_csv writes it: write it with index=False, or delete it"),
        ("Unnamed: 0,id,x,y", "column 1 has no name (Unnamed: 0): it counts the rows"),
        ("n,id,,y", "column 3 has no name: name it in the header (id, where it names the nodes), or delete it"),
        ("n,id,y,y", "the header contains 'y' more than once; expected unique column names"),
    ],
)
def test_columns_without_a_name_of_their_own(tmp_path: Path, header: str, says: str) -> None:
    nodes = f"{header}\n0,a,5,0\n1,b,6,1\n2,c,7,0\n"
    assert f"nodes.csv: {says}" in message(folder(tmp_path / "d", nodes=nodes, edges=EDGES))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_and_delimiters(tmp_path: Path, encoding: str, delimiter: str, newline: str) -> None:
    def table(text: str) -> bytes:
        return text.replace(",", delimiter).replace("\n", newline).encode(encoding)

    made = read(folder(tmp_path / "d", nodes=table("id,x,y\nä,1,ü\nb, 2 ,v\n\nc,3,ü\n"), edges=table("source,target\nä,b\nc,ä\n")))
    assert (made.x.tolist(), made.y.tolist(), made.classes, made.edges.tolist()) == (
        [[1], [2], [3]],
        [1, 0, 1],
        ("v", "ü"),
        [[0, 2], [1, 0]],
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("id,x,y\na,1,Köln\n".encode("latin-1"), "nodes.csv: it is not in UTF-8 (line 2 has the byte 0xf6): save it as UTF-8"),
        ("id,x,y\na,1,0\n".encode("utf-16-le"), "nodes.csv: it holds NUL characters, as UTF-16 without a byte-order mark does"),
        ("id,x,y\na,1,é\n".encode("utf-16-be"), "nodes.csv: it holds NUL characters, as UTF-16 without a byte-order mark does"),
        (b"id,x,y\na,1,0\nb,2\nc,3,1\n", "nodes.csv, row 3 has 2 fields; expected 3, one per column of the header"),
        (b'id,x,y\n"a"b,1,0\n', "nodes.csv, row 2 is not valid CSV ("),
        (
            b"id;x;y\na;1,5;0\nb;2,5;1\nc;1;1\n",
            "nodes.csv, row 2, column 'x': '1,5' is not a number; expected numbers; decimals have a point",
        ),
        (b"id,x,y\na,1,0\n,2,1\nc,3,1\n", "nodes.csv, row 3, column 'id': the id is empty; every node needs a unique id"),
        (b"id,x,y\na,nan,0\nb,2,1\nc,3,1\n", "nodes.csv, row 2, column 'x': 'nan' is not a number; expected numbers"),
        (b"id,x,y\na,1_0,0\nb,2,1\nc,3,1\n", "nodes.csv, row 2, column 'x': '1_0' is not a number; expected numbers"),
    ],
)
def test_tables_that_are_refused_by_name(tmp_path: Path, content: bytes, says: str) -> None:
    assert says in message(folder(tmp_path / "d", nodes=content, edges=EDGES))


def test_columns_that_are_attributes_and_columns_that_are_not_used(tmp_path: Path) -> None:
    nodes = "id,x,y,region\na,1,0,north\nb,2,1,south\nc,3,1,north\n"
    edges = "source,target,weight,kind\na,b,0.5,k\nb,c,2,l\nc,a,1,k\n"
    made = read(folder(tmp_path / "d", nodes=nodes, edges=edges), keys="region")
    assert made.keys["region"].tolist() == [0, 1, 0]
    assert made.ignored == ("edges.csv: kind",)
    assert made.edge_weight.tolist() == [0.5, 2.0, 1.0]
    assert "keys = area contains 'area', which is not a column" in message(tmp_path / "d", keys="area")
    assert "column 'region': 'north' is not a number; expected numbers: encode the column, name it in the option keys" in message(
        tmp_path / "d"
    )


def test_links_with_signs_and_dates_and_nodes_of_two_types(tmp_path: Path) -> None:
    """What belongs to nodes that are no items is no feature: labels and times are named, types restrict negatives."""
    nodes = "id,node_type,age,y\na,user,30,0\nb,user,40,1\nc,item,1,1\n"
    links = "source,target,y,time,domain,rating\na,c,-1,2021-01-05 10:00,2,0.5\nb,c,1,2021-01-05 11:00,3,1\nb,c,1,2021-01-05 12:00,2,1\n"
    path = folder(tmp_path / "d", nodes=nodes, links=links)
    assert "y contains -1, 1, where -1 could be a class or mark items without a label: say unlabelled = none" in message(path)
    made = read(path, unlabelled="none")
    assert (made.level, made.y.tolist(), made.classes) == ("LC", [0, 1, 1], ("-1", "1"))
    assert np.diff(made.keys["time"]).tolist() == [3600, 3600]
    assert made.keys["domain"].tolist() == [2, 3, 2]
    assert made.node_types.tolist() == [1, 1, 0]
    assert made.x.tolist() == [[30], [40], [1]]
    assert made.ignored == ("nodes.csv: y", "rating")


def test_edge_features_and_unknown_labels_of_graphs(tmp_path: Path) -> None:
    nodes = "id,graph,x\na,0,1\nb,0,2\nc,1,3\nd,1,4\n"
    made = read(folder(tmp_path / "d", nodes=nodes, edges="source,target,length\na,b,0.5\nd,c,2\n", graphs="y_p,y_q,domain\n1,,4\n0,1,5\n"))
    assert (made.level, made.labels) == ("GC", "multi")
    assert made.y.tolist() == [[True, False], [False, True]]
    assert made.known.tolist() == [[True, False], [True, True]]
    assert made.edge_attr.tolist() == [[0.5], [2]]
    assert made.keys["domain"].tolist() == [4, 5]
