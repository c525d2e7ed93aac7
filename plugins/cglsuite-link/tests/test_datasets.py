"""The datasets from tiny files in the true raw formats: hand-computed contents, and what bad files say."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_link.datasets import interactions
from cglsuite_link.datasets.assemble import equal_steps, first_links, load, months, ranked_steps
from cglsuite_link.datasets.bipartite import gowalla, movielens
from cglsuite_link.datasets.bitcoin import alpha, otc
from cglsuite_link.datasets.collab import ogbl_collab
from cglsuite_link.datasets.facebook import facebook
from cglsuite_link.datasets.interactions import ask_ubuntu, college_msg, math_overflow
from cglsuite_link.datasets.sizes import Sizes
from cglsuite_link.datasets.specs import FACEBOOK_CATEGORIES, MOVIE_GENRES, SIZES
from cglsuite_link.datasets.wiki_cs import wiki_cs
from link_files import (
    lenient,
    write_all,
    write_bitcoin,
    write_collab,
    write_facebook,
    write_gowalla,
    write_interactions,
    write_movielens,
    write_wiki_cs,
)

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData

DAY = 24 * 3600
UBUNTU, COLLEGE = "SXAskUbuntu/sx-askubuntu.txt.gz", "CollegeMsg/CollegeMsg.txt.gz"
LOADERS: dict[str, Callable[[DataRoot], LinkData]] = {
    "bitcoin-otc": otc,
    "bitcoin-alpha": alpha,
    "wiki-cs": wiki_cs,
    "facebook": facebook,
    "ogbl-collab": ogbl_collab,
    "ask-ubuntu": ask_ubuntu,
    "math-overflow": math_overflow,
    "college-msg": college_msg,
    "gowalla": gowalla,
    "movielens": movielens,
}


# --- steps of time -------------------------------------------------------------------------------------------------------------


def test_equal_steps_by_hand() -> None:
    """Periods of 3, 1, 0, 2 and 3 links: 9 links, of which 3, 4, 4, 6 and 9 are there; times 3 / 10: 0, 1, 1, 1 and 2."""
    period = np.array([0, 0, 0, 1, 3, 3, 4, 4, 4])
    assert equal_steps(period, 3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert equal_steps(period[::-1], 3).tolist() == [2, 2, 2, 1, 1, 1, 0, 0, 0]


def test_ranked_steps_by_hand() -> None:
    """Seven links in three steps: 7 // 3 + 1 = 3 in each but the last; equal times stay in the order of the file."""
    assert ranked_steps(np.array([50, 10, 40, 20, 20, 20, 60]), 3).tolist() == [1, 0, 1, 0, 0, 1, 2]


def test_first_links_and_months_by_hand() -> None:
    source, target, time = np.array([3, 1, 2, 1, 4]), np.array([1, 3, 2, 2, 4]), np.array([9, 5, 7, 1, 7])
    assert first_links(source, target, time).tolist() == [3, 1, 2, 4]
    ends = np.array(["2009-12-31T23:59:59", "2010-01-01T00:00:00", "2011-01-15T12:00:00"], dtype="datetime64[s]")
    assert months(ends.astype(np.int64)).tolist() == [0, 1, 13]


# --- Bitcoin -------------------------------------------------------------------------------------------------------------------


def bitcoin_rows() -> list[tuple[float, ...]]:
    """One rating of every value, a day apart, between users 5, 9, 2 and 7."""
    ratings = [*range(-10, 0), *range(1, 11)]
    users = [(5, 9), (9, 5), (2, 7), (7, 5)]
    return [(*users[i % 4], rating, 1_000_000_000.75 + i * DAY) for i, rating in enumerate(ratings)]


def test_classes_of_ratings(tmp_path: Path) -> None:
    write_bitcoin(tmp_path, "otc", bitcoin_rows())
    data = otc(lenient(tmp_path))
    assert data.y.tolist() == [0, *[1] * 9, -1, -1, 2, 3, 4, *[5] * 5]
    assert (data.n_classes, data.n_nodes, data.x) == (6, 4, None)
    assert data.links[:, :4].T.tolist() == [[1, 3], [3, 1], [0, 2], [2, 1]]  # users 2, 5, 7, 9 in order
    assert data.keys["rating"].tolist() == [*range(-10, 0), *range(1, 11)]
    assert data.keys["time"].tolist()[:2] == [1_000_000_000, 1_000_086_400]


def test_signs_are_one_known_label(tmp_path: Path) -> None:
    write_bitcoin(tmp_path, "alpha", bitcoin_rows())
    data = alpha(lenient(tmp_path), labels="sign")
    assert data.y.flatten().tolist() == [True] * 10 + [False] * 10
    assert data.n_classes == 1
    assert data.known is not None
    assert data.known.all()
    assert data.official_split is None


def test_steps_are_whole_periods(tmp_path: Path) -> None:
    """Days 0..19 are nearest to period 0 (up to day 7, as halves go to the even number) and 1: 8 and 12 of 20 links; 2 · 8 / 21 < 1."""
    write_bitcoin(tmp_path, "alpha", bitcoin_rows())
    assert alpha(lenient(tmp_path), steps=2).keys["step"].tolist() == [0] * 8 + [1] * 12


def test_split_of_begin_or_none(tmp_path: Path) -> None:
    write_bitcoin(tmp_path, "otc")
    root = lenient(tmp_path)
    data = otc(root)
    with np.load(tmp_path / "data/begin-splits/bitcoin_metadata_allIL.npz") as archive:
        residue = archive["inner_tvt_split"]
    assert data.official_split is not None
    assert data.official_split.tolist() == np.select([residue < 8, residue == 8], [0, 1], 2).tolist()
    assert otc(root, split_source="original").official_split is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1, 2, 0, 5), "row 21 has the rating 0; expected a nonzero integer from -10 to 10"),
        ((1, 2, 11, 5), "row 21 has the rating 11"),
        ((1, 2, 2.5, 5), r"row 21 has the rating 2\.5"),
        ((1, 2, 3, ""), "row 21 has no time"),
        ((1, 2, "", 5), "row 21 has the rating nan"),
        ((1, 2, "good", 5), "bitcoin-alpha cannot be read"),
    ],
)
def test_bad_ratings(row: tuple[Any, ...], message: str, tmp_path: Path) -> None:
    path = write_bitcoin(tmp_path, "alpha", [*bitcoin_rows(), row])
    with pytest.raises(DataError, match=message) as caught:
        alpha(lenient(tmp_path))
    assert str(path) in str(caught.value)


def test_ratings_without_times(tmp_path: Path) -> None:
    write_bitcoin(tmp_path, "alpha", [row[:3] for row in bitcoin_rows()])
    with pytest.raises(DataError, match="has 3 columns; expected 4: source, target, rating, time"):
        alpha(lenient(tmp_path))


def test_the_packed_file_serves_as_well(tmp_path: Path) -> None:
    path = write_bitcoin(tmp_path, "alpha", bitcoin_rows())
    plain = alpha(lenient(tmp_path)).content_hash
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert alpha(lenient(tmp_path)).content_hash == plain


# --- interactions --------------------------------------------------------------------------------------------------------------


def stamp(day: str) -> int:
    return int(np.datetime64(day, "s").astype(np.int64))


def interaction_rows() -> list[tuple[int, int, int]]:
    return [
        (8, 3, stamp("2010-03-05")),
        (3, 8, stamp("2010-02-01")),  # earlier, the other way round
        (8, 4, stamp("2010-01-31")),
        (4, 4, stamp("2010-03-01")),  # to oneself
        (3, 8, stamp("2010-02-01")),
        (9, 3, stamp("2010-04-30")),
    ]


def test_the_earliest_interaction_is_the_link(tmp_path: Path) -> None:
    write_interactions(tmp_path, COLLEGE, interaction_rows())
    data = college_msg(lenient(tmp_path))
    assert data.links.T.tolist() == [[2, 1], [0, 2], [3, 0]]  # people 3, 4, 8, 9 in order
    assert data.keys["month"].tolist() == [0, 1, 3]
    assert data.keys["time"].tolist() == [stamp(day) for day in ("2010-01-31", "2010-02-01", "2010-04-30")]
    assert data.y.all()
    assert (data.n_nodes, data.n_classes, data.x) == (4, 1, None)


def test_months_can_be_left_out(tmp_path: Path) -> None:
    write_interactions(tmp_path, UBUNTU, interaction_rows())
    root = lenient(tmp_path)
    late = ask_ubuntu(root, skip_months=2)
    assert late.links.T.tolist() == [[2, 0]]  # people 3, 4, 9; the pair of 3 and 8 met before
    assert late.keys["month"].tolist() == [1]
    assert late.n_nodes == 3
    with pytest.raises(DataError, match="no link remains after skipping the first 18 months"):
        ask_ubuntu(root)


@pytest.mark.parametrize(("skip_months", "checked"), [(0, True), (1, False), (18, False)])
def test_published_sizes_are_those_of_all_months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skip_months: int, checked: bool) -> None:
    """What is left after the first months has other numbers, which nobody prints."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(
        interactions, "load", lambda root, name, paths, read, given, sizes: asked.update(name=name, given=given, sizes=sizes)
    )
    write_interactions(tmp_path, COLLEGE, interaction_rows())
    college_msg(lenient(tmp_path), skip_months=skip_months)
    assert asked == {"name": "college-msg", "given": {"skip_months": skip_months}, "sizes": SIZES["college-msg"] if checked else None}


def test_interactions_without_times(tmp_path: Path) -> None:
    write_interactions(tmp_path, COLLEGE, [row[:2] for row in interaction_rows()])
    with pytest.raises(DataError, match="CollegeMsg.txt.gz has 2 columns; expected 3: source, target, time"):
        college_msg(lenient(tmp_path))


# --- Wiki-CS and Facebook ------------------------------------------------------------------------------------------------------


def test_areas_of_the_ends_are_the_domain(tmp_path: Path) -> None:
    labels, links = [0, 1, 9, 9, 1], [[1, 0], [0, 2], [3], [2], [1]]
    write_wiki_cs(tmp_path, features=[[float(i)] * 2 for i in range(5)], labels=labels, links=links)
    data = wiki_cs(lenient(tmp_path))
    assert data.links.T.tolist() == [[0, 1], [1, 2], [1, 4], [2, 3]]
    # Lexicographic: (0, 1) is 1; (1, 1) is 10, after the ten pairs with 0; (1, 9) is 18; (9, 9) is the last of 55.
    assert data.keys["domain"].tolist() == [1, 18, 10, 54]
    assert data.x is not None
    assert data.x[:, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [0] * 199}, "200 features, 199 labels and 200 lists of links"),
        ({"labels": [10] * 200}, r"labels are 10\.\.10; expected 0\.\.9"),
        ({"links": [[200]] + [[]] * 199}, r"links refer to nodes 200\.\.200; expected 0\.\.199"),
        ({"links": [[-1, 7]] + [[]] * 199}, r"links refer to nodes -1\.\.7; expected 0\.\.199"),
        ({"features": None}, "wiki-cs"),
    ],
)
def test_bad_wiki_cs(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_wiki_cs(tmp_path, **changes)
    with pytest.raises(DataError, match=message):
        wiki_cs(lenient(tmp_path))


def test_categories_are_domains_of_one_graph(tmp_path: Path) -> None:
    for category in FACEBOOK_CATEGORIES:
        write_facebook(tmp_path, category, [(0, 2), (1, 1)])
    data = facebook(lenient(tmp_path))
    assert data.links.T.tolist() == [[3 * d, 3 * d + 2] for d in range(8)]
    assert data.keys["domain"].tolist() == list(range(8))
    assert data.n_nodes == 24
    write_facebook(tmp_path, "tvshow", [(0, 0)])
    assert facebook(lenient(tmp_path)).n_nodes == 22
    for category in FACEBOOK_CATEGORIES:
        write_facebook(tmp_path, category, [(1, 1)])
    with pytest.raises(DataError, match="no link between two different nodes"):
        facebook(lenient(tmp_path))


def test_facebook_without_the_largest_category(tmp_path: Path) -> None:
    for category in FACEBOOK_CATEGORIES[1:]:
        write_facebook(tmp_path, category)
    assert facebook(lenient(tmp_path), categories="without-artist").keys["domain"].unique().tolist() == list(range(1, 8))
    with pytest.raises(DataError, match="artist_edges.csv") as caught:
        facebook(lenient(tmp_path))
    assert "gemsec_facebook_dataset.tar.gz" in str(caught.value)


def test_facebook_with_other_columns(tmp_path: Path) -> None:
    for category in FACEBOOK_CATEGORIES:
        write_facebook(tmp_path, category, header="a,b" if category == "company" else "node_1,node_2")
    with pytest.raises(DataError, match="company_edges.csv has the columns a, b; expected node_1, node_2"):
        facebook(lenient(tmp_path))


# --- ogbl-collab ---------------------------------------------------------------------------------------------------------------


def test_collab_joins_the_parts_of_the_split(tmp_path: Path) -> None:
    write_collab(tmp_path, years=(2016, 2017, 2018, 2019), per_year=3)
    data = ogbl_collab(lenient(tmp_path))
    assert data.keys["year"].tolist() == [2016] * 3 + [2017] * 3 + [2018] * 3 + [2019] * 3
    assert data.official_split is not None
    assert data.official_split.tolist() == [0] * 6 + [1] * 3 + [2] * 3
    train = torch.load(tmp_path / "data/ogbl_collab/split/time/train.pt", weights_only=False)
    np.testing.assert_array_equal(data.links[:, :6].T.numpy(), train["edge"])
    assert data.x is not None
    assert data.x.shape == (400, 3)


def test_collab_without_links_to_oneself(tmp_path: Path) -> None:
    write_collab(tmp_path, years=(2016, 2018, 2019), per_year=3)
    content = {"edge": np.array([[5, 5], [1, 2]]), "year": np.array([2018, 2018])}
    torch.save(content, tmp_path / "data/ogbl_collab/split/time/valid.pt")
    data = ogbl_collab(lenient(tmp_path))
    assert data.official_split is not None
    assert data.official_split.tolist() == [0] * 3 + [1] + [2] * 3
    assert data.links[:, 3].tolist() == [1, 2]


def test_collab_reads_arrays_pickled_by_an_older_numpy(tmp_path: Path) -> None:
    """NumPy 1 pickles name the module numpy.core; OGB's files are of that time."""
    write_collab(tmp_path, years=(2016, 2018, 2019), per_year=3)
    expected = ogbl_collab(lenient(tmp_path)).content_hash
    path = tmp_path / "data/ogbl_collab/split/time/train.pt"
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    old = {name: raw.replace(b"numpy._core.multiarray", b"numpy.core.multiarray") for name, raw in members.items()}
    assert old != members
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, raw in old.items():
            archive.writestr(name, raw)
    assert ogbl_collab(lenient(tmp_path)).content_hash == expected


def test_collab_runs_nothing_that_a_file_names(tmp_path: Path) -> None:
    class Call:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "called",))

    write_collab(tmp_path, per_year=2)
    torch.save({"edge": Call(), "year": Call()}, tmp_path / "data/ogbl_collab/split/time/valid.pt")
    with pytest.raises(DataError, match="valid.pt is truncated or does not contain arrays"):
        ogbl_collab(lenient(tmp_path))
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "valid.pt does not contain the arrays 'edge' and 'year'"),
        ({"edge": np.zeros((3, 2), dtype=np.int64)}, "does not contain the arrays 'edge' and 'year'"),
        ({"edge": np.zeros((3, 3)), "year": np.zeros(3)}, r"'edge' has shape \[3, 3\] and 'year' \[3\]; expected"),
        ({"edge": np.array([[1, 400]]), "year": np.array([2018])}, r"links contains a node outside 0\.\.399"),
    ],
)
def test_bad_collab(content: object, message: str, tmp_path: Path) -> None:
    write_collab(tmp_path, per_year=2)
    torch.save(content, tmp_path / "data/ogbl_collab/split/time/valid.pt")
    with pytest.raises(DataError, match=message):
        ogbl_collab(lenient(tmp_path))


# --- users and what they like --------------------------------------------------------------------------------------------------


def checkin(user: int, place: int, time: str = "2010-10-19T23:55:27Z") -> str:
    return f"{user}\t{time}\t30.2\t-97.7\t{place}"


def test_gowalla_keeps_the_core_at_its_first_times(tmp_path: Path) -> None:
    rows = [checkin(u, p, f"2010-0{1 + u}-01T00:00:0{p % 10}Z") for u in (0, 1, 2) for p in (70, 81, 92)]
    rows += [checkin(0, 70, "2009-01-01T00:00:00Z"), checkin(5, 70), checkin(5, 99), checkin(6, 99)]
    write_gowalla(tmp_path, rows)
    data = gowalla(lenient(tmp_path), core=3, steps=2)
    assert (data.n_items, data.n_nodes) == (9, 6)
    assert data.links[:, 0].tolist() == [0, 3]  # the check-in of 2009
    assert data.keys["time"][0] == stamp("2009-01-01")
    assert data.keys["step"].tolist() == [0] * 5 + [1] * 4
    assert data.node_types is not None
    assert data.node_types.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.x is not None
    assert data.x.tolist() == [[1, 0]] * 3 + [[0, 1]] * 3


def test_a_core_falls_like_dominoes(tmp_path: Path) -> None:
    """Without place 99 user 6 has one place left, and falls out too; the rest keeps two each."""
    rows = [checkin(u, p) for u in (0, 1) for p in (7, 8)] + [checkin(6, 99), checkin(6, 7)]
    write_gowalla(tmp_path, rows)
    assert gowalla(lenient(tmp_path), core=2).n_items == 4
    with pytest.raises(DataError, match="no link remains after removing users and places with fewer links than core = 10"):
        gowalla(lenient(tmp_path))


def test_bad_gowalla(tmp_path: Path) -> None:
    write_gowalla(tmp_path, ["1\t2010-10-19T23:55:27Z\t7"])
    with pytest.raises(DataError, match="has 3 columns; expected 5: user, time, latitude, longitude, place"):
        gowalla(lenient(tmp_path))
    write_gowalla(tmp_path, [checkin(1, 2, "yesterday")])
    with pytest.raises(DataError, match="gowalla cannot be read"):
        gowalla(lenient(tmp_path))


def test_movielens_keeps_what_was_liked(tmp_path: Path) -> None:
    write_movielens(tmp_path, ratings="1::2::5::30\n2::1::4::10\n2::6::3::20\n20::23::4::5\n")
    data = movielens(lenient(tmp_path), steps=3)
    assert data.links.T.tolist() == [[0, 61], [1, 60], [19, 82]]  # 60 users, then films 1..43
    assert data.keys["time"].tolist() == [30, 10, 5]
    assert data.keys["step"].tolist() == [1, 0, 0]  # 3 // 3 + 1 = 2 in the first
    assert data.n_nodes == 103
    assert data.x is not None
    assert data.x.shape == (103, 42)
    first = data.x[0]  # user 1: M, 18 years or more, occupation 1
    assert first.nonzero().flatten().tolist() == [1, 2, 4]
    assert float(first[2]) == pytest.approx(18 / 56)
    genres = [MOVIE_GENRES[i - 24] for i in data.x[60].nonzero().flatten().tolist()]
    assert genres == ["Animation", "Children's", "Comedy"]
    assert not data.x[62].any()  # no film has the number 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ratings": "1::2::5\n"}, "ratings.dat has 3 columns; expected 4"),
        ({"ratings": "61::2::5::3\n"}, "ratings.dat refers to user 61, but users.dat contains only ids 1 to 60"),
        ({"ratings": "1::44::5::3\n"}, "ratings.dat refers to film 44, but movies.dat contains only ids 1 to 43"),
        ({"ratings": "1::2::3::3\n"}, "no rating of at least 4 stars"),
        ({"ratings": "1::2::x::3\n"}, "movielens cannot be read"),
        ({"users": "1::F::1::10\n"}, "users.dat has 4 columns; expected 5"),
        ({"users": "1::F::1::21::48067\n"}, "occupations are 21..21"),
        ({"movies": "1::Toy Story::Heist\n"}, "movies.dat has the genre 'Heist'"),
        ({"movies": "1::Toy Story\n"}, "movies.dat has 2 columns; expected 3"),
        ({"movies": "1::A::War\n1::B::War\n"}, "movies.dat: expected consecutive ids 1, 2, 3, ..., each exactly once"),
    ],
)
def test_bad_movielens(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    write_movielens(tmp_path, **changes)
    with pytest.raises(DataError, match=message):
        movielens(lenient(tmp_path))


# --- all ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("all")
    write_all(folder)
    return folder


@pytest.mark.parametrize("name", LOADERS)
def test_what_comes_from_the_cache_is_the_same(name: str, everything: Path) -> None:
    one, again = LOADERS[name](lenient(everything)), LOADERS[name](lenient(everything))
    assert one.content_hash == again.content_hash
    assert one.name == name


@pytest.mark.parametrize("name", LOADERS)
def test_absent_files_say_what_to_put_where(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent(.|\n)*set CGLSUITE_DATA") as caught:
        LOADERS[name](DataRoot(None, tmp_path, offline=True))
    assert "http" in str(caught.value)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("wiki-cs", "WikiCS/raw/data.json"),
        ("ogbl-collab", "ogbl_collab/raw/node-feat.csv.gz"),
        ("ogbl-collab", "ogbl_collab/split/time/test.pt"),
        ("ask-ubuntu", UBUNTU),
        ("college-msg", COLLEGE),
        ("gowalla", "Gowalla/loc-gowalla_totalCheckins.txt.gz"),
        ("facebook", "FacebookGEMSEC/facebook_clean_data/tvshow_edges.csv"),
        ("movielens", "MovieLens1M/raw/users.dat"),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_truncated_files_are_named(name: str, file: str, share: float, tmp_path: Path) -> None:
    write_all(tmp_path)
    path = tmp_path / "data" / file
    raw = path.read_bytes()
    cut = raw[: int(share * len(raw))]
    path.write_bytes(cut if path.suffix != ".csv" and path.suffix != ".dat" else cut + b"\n7,")
    with pytest.raises(DataError, match=path.name):
        LOADERS[name](lenient(tmp_path))


@pytest.mark.parametrize("name", [name for name in LOADERS if name not in ("ask-ubuntu", "gowalla")])
def test_files_of_another_dataset_are_refused(name: str, everything: Path) -> None:
    """Tiny files have neither the checksums nor the sizes of the datasets."""
    strict = DataRoot(everything / "data", everything / "strict", offline=True)
    with pytest.raises(DataError, match="wrong checksum|found .* nodes.* expected .* nodes"):
        LOADERS[name](strict)


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        (None, ""),
        (Sizes(4, 3), ""),
        (Sizes(4, None), ""),
        (Sizes(4, 5), "4 nodes, 3 links; expected 4 nodes, 5 links"),
        (Sizes(5, None), "4 nodes; expected 5 nodes"),
    ],
)
def test_sizes_of_what_was_read_are_the_published_ones(tmp_path: Path, sizes: Sizes | None, found: str) -> None:
    """Of nodes, and of links where their number is published."""
    file = tmp_path / "raw.txt"
    file.write_text("x")
    arrays = {"links": np.array([[0, 1, 2], [1, 2, 3]]), "n_nodes": np.array(4), "x": np.ones((4, 2), dtype=np.float32)}
    root = DataRoot(tmp_path, cache=tmp_path / "cache")
    if found:
        with pytest.raises(DataError, match=f"^a: found {found}. These files do not belong to this dataset"):
            load(root, "a", {"raw.txt": file}, lambda files: arrays, sizes=sizes)
    else:
        assert load(root, "a", {"raw.txt": file}, lambda files: arrays, sizes=sizes).n_items == 3
