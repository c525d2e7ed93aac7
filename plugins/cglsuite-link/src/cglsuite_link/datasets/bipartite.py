"""Links from users to the places they visited or the films they liked: Gowalla and MovieLens-1M, in time steps of equal size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData
from cglsuite_link.datasets.assemble import Array, load, ranked_steps
from cglsuite_link.datasets.specs import MOVIE_GENRES, SIZES

_CHECKINS = "Gowalla/loc-gowalla_totalCheckins.txt.gz"
_CHECKINS_URL = "https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz"
_MOVIES = ("ratings.dat", "users.dat", "movies.dat")
_MOVIES_URL = "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
_OCCUPATIONS = 21
_OLDEST = 56  # the code of the highest age group
_LIKED = 4  # stars


def gowalla(root: DataRoot, core: int = 10, steps: int = 10) -> LinkData:
    """Load the users of Gowalla and the places where they checked in, with each pair once, at its first time (see its spec).

    Args:
        root: where ``Gowalla/`` is.
        core: users and places with fewer links than this are removed until all have at least as many.
        steps: number of time steps of equal size (key ``step``).

    Raises:
        DataError: the file is missing or damaged; no link is left.
    """

    def read(files: Mapping[str, Path]) -> dict[str, Array]:
        return _read_gowalla(files[_CHECKINS], core, steps)

    files = {_CHECKINS: root.file(_CHECKINS, urls=(_CHECKINS_URL,))}
    return load(root, "gowalla", files, read, {"core": core, "steps": steps}, sizes=None)


def movielens(root: DataRoot, steps: int = 10) -> LinkData:
    """Load the users of MovieLens-1M and the films that they rated with at least four of five stars (see its spec).

    Args:
        root: where ``MovieLens1M/raw/`` is.
        steps: number of time steps of equal size (key ``step``).

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    members = {f"MovieLens1M/raw/{name}": f"ml-1m/{name}" for name in _MOVIES}

    def read(files: Mapping[str, Path]) -> dict[str, Array]:
        ratings, users, movies = (files[name] for name in members)
        return _read_movielens(ratings, users, movies, steps)

    return load(root, "movielens", root.unpacked(members, urls=[_MOVIES_URL]), read, {"steps": steps}, sizes=SIZES["movielens"])


def _read_gowalla(path: Path, core: int, steps: int) -> dict[str, Array]:
    rows = pd.read_csv(path, sep="\t", header=None, dtype=str)
    if rows.shape[1] != 5:
        raise DataError(f"{path.name} has {rows.shape[1]} columns; expected 5: user, time, latitude, longitude, place")
    time = pd.to_datetime(rows[1], format="%Y-%m-%dT%H:%M:%SZ").to_numpy().astype("datetime64[s]").astype(np.int64)
    order = np.argsort(time, kind="stable")
    ends = np.stack([rows[column].to_numpy(dtype=np.int64)[order] for column in (0, 4)])
    _, first = np.unique(ends[0] * (ends[1].max() + 1) + ends[1], return_index=True)
    first.sort()
    ends, time = ends[:, first], time[order][first]
    while True:
        users, places = (np.unique(side, return_inverse=True, return_counts=True) for side in ends)
        stays = (users[2][users[1]] >= core) & (places[2][places[1]] >= core)
        if stays.all():
            break
        ends, time = ends[:, stays], time[stays]
    if not len(time):
        raise DataError(f"no link remains after removing users and places with fewer links than core = {core}")
    links, types = _two_kinds(users[1], places[1], len(users[0]), len(places[0]))
    return {
        "links": links,
        "n_nodes": np.array(len(types)),
        "x": np.eye(2, dtype=np.float32)[types],
        "node_types": types,
        "key.time": time,
        "key.step": ranked_steps(time, steps),
    }


def _read_movielens(ratings: Path, users: Path, movies: Path, steps: int) -> dict[str, Array]:
    # A one-character separator, so every other field is empty: with "::" pandas uses a slow parser that takes a minute.
    rows = pd.read_csv(ratings, sep=":", header=None)
    if rows.shape[1] != 7:
        raise DataError(f"ratings.dat has {(rows.shape[1] + 1) // 2} columns; expected 4: user, film, stars, time")
    user, film, stars, time = rows[[0, 2, 4, 6]].to_numpy(dtype=np.int64).T
    user_features, film_features = _user_features(users), _film_features(movies)
    sides = (("user", user, user_features, "users.dat"), ("film", film, film_features, "movies.dat"))
    for what, ids, features, file in sides:
        if ids.min() < 1 or ids.max() > len(features):
            raise DataError(f"ratings.dat refers to {what} {ids.max()}, but {file} contains only ids 1 to {len(features)}")
    liked = stars >= _LIKED
    if not liked.any():
        raise DataError(f"ratings.dat contains no rating of at least {_LIKED} stars")
    links, types = _two_kinds(user[liked] - 1, film[liked] - 1, len(user_features), len(film_features))
    x = np.zeros((len(types), user_features.shape[1] + film_features.shape[1]), dtype=np.float32)
    x[: len(user_features), : user_features.shape[1]] = user_features
    x[len(user_features) :, user_features.shape[1] :] = film_features
    return {
        "links": links,
        "n_nodes": np.array(len(types)),
        "x": x,
        "node_types": types,
        "key.time": time[liked],
        "key.step": ranked_steps(time[liked], steps),
    }


def _user_features(path: Path) -> Array:
    """User features, float32 [users, 24]: female, male, age group over the highest, occupation."""
    rows = pd.read_csv(path, sep=":", header=None, dtype=str)
    if rows.shape[1] != 9:
        raise DataError(f"users.dat has {(rows.shape[1] + 1) // 2} columns; expected 5: user, gender, age, occupation, postcode")
    ids, age, occupation = rows[[0, 4, 6]].to_numpy(dtype=np.int64).T
    if occupation.min() < 0 or occupation.max() >= _OCCUPATIONS:
        raise DataError(f"users.dat: occupations are {occupation.min()}..{occupation.max()}; expected 0..{_OCCUPATIONS - 1}")
    x = np.zeros((_last(ids, "users.dat"), 3 + _OCCUPATIONS), dtype=np.float32)
    x[ids - 1, np.where(rows[2] == "F", 0, 1)] = 1
    x[ids - 1, 2] = age / _OLDEST
    x[ids - 1, 3 + occupation] = 1
    return x


def _film_features(path: Path) -> Array:
    """Film features, float32 [films, 18]: genres; all 0 for unused film numbers."""
    rows = pd.read_csv(path, sep="::", header=None, engine="python", encoding="latin-1")
    if rows.shape[1] != 3:
        raise DataError(f"movies.dat has {rows.shape[1]} columns; expected 3: film, title, genres")
    ids = rows[0].to_numpy(dtype=np.int64)
    genres = rows[2].str.get_dummies(sep="|")
    if unknown := sorted(set(genres.columns) - set(MOVIE_GENRES)):
        raise DataError(f"movies.dat has the genre {unknown[0]!r}; expected {', '.join(MOVIE_GENRES)}")
    x = np.zeros((_last(ids, "movies.dat"), len(MOVIE_GENRES)), dtype=np.float32)
    x[ids - 1] = genres.reindex(columns=MOVIE_GENRES, fill_value=0).to_numpy()
    return x


def _last(ids: Array, file: str) -> int:
    if ids.min() < 1 or len(np.unique(ids)) < len(ids):
        raise DataError(f"{file}: expected consecutive ids 1, 2, 3, ..., each exactly once")
    return int(ids.max())


def _two_kinds(source: Array, target: Array, n_sources: int, n_targets: int) -> tuple[Array, Array]:
    """Links int64 [2, M] over both node types, users first, and the type of every node: int64 [N]."""
    return np.stack([source, target + n_sources]), np.repeat(np.arange(2), [n_sources, n_targets])
