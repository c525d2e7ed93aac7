"""What no command may accept: every request of a table, and whatever else a property finds, ends with one clear message and status 2."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bad_inputs
import click
import pytest
from bad_inputs import BAD, CELL, Bad, Outcome, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cglsuite.base.environment import VARIABLES, check_environment
from cglsuite.base.errors import UsageError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.specs import KINDS, Hyperparameter, ScenarioSpec, TaskFreeSpec, TrainingSpec, switches
from cglsuite.specs.levels import LEVEL_SPECS

Run = Callable[[Bad], Outcome]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """What is installed."""
    return load_catalogue()


@pytest.fixture
def tried(tmp_path: Path, capfd: pytest.CaptureFixture[str], catalogue: Catalogue) -> Run:
    """Runs a request; no cell is trained."""
    return lambda bad: outcome(bad, tmp_path, capfd.readouterr, catalogue)


def test_the_table_is_long_and_names_each_request_once() -> None:
    assert len(BAD) >= 250
    assert len({bad.name for bad in BAD}) == len(BAD)


@pytest.mark.parametrize("part", range(8))
def test_bad_requests_end_with_their_status_and_say_why(tried: Run, part: int) -> None:
    """In portions: half a thousand tests of 10 ms each would spend their time on fixtures."""
    wrong = []
    for bad in BAD[part::8]:
        found = tried(bad)
        ended = not found.traceback and not found.accepted and found.status == bad.status
        clear = re.search(bad.says, found.said, re.DOTALL) and all(line.isprintable() for line in found.said.splitlines())
        inner = re.search(r"sys\.|\w+Error\b|/cglsuite/\w+/\w+\.py", found.said)
        if not (ended and clear and len(found.said) < 1500) or inner or len(re.findall("(?m)^error: ", found.said)) != 1:
            wrong.append((bad.name, found))
        elif len([line for line in found.said.splitlines() if line.startswith("error: ")]) != 1 or not found.said.isprintable():
            wrong += [(bad.name, found)] if any(not line.isprintable() for line in found.said.splitlines()) else []
    assert wrong == []


def test_requests_that_are_fine_are_carried_out(tried: Run) -> None:
    """Otherwise the table would show nothing: the same words with good values go through."""
    good = ("--set", "training.epochs=1e1", "--set", "lr=0.5", "--threads", "2", "--order-seed", str(2**63 - 1), "--store", "somewhere/new")
    assert tried(Bad(name="cell", words=(*CELL, *good), environment={"CGLSUITE_SET": "epochs=3", "CGLSUITE_STRICT": "no"})).accepted
    campaign = f'name = "x"\n[grid]\nscenarios = ["{bad_inputs.PRESET}"]\nmethods = ["ewc"]\n[set]\ntraining.epochs = 3\n'
    assert tried(Bad(name="run", words=("run", "{campaign}", "--workers", "3"), campaign=campaign)).accepted
    assert tried(Bad(name="status", words=("status", "{campaign}"), campaign=campaign)).status == 0


# --- everything that commands and campaigns take -----------------------------------------------------------------------------------

NONSENSE = st.one_of(
    st.sampled_from(["", " ", "nan", "inf", "-inf", "1e400", "-1", "-0.5", "9" * 30, "1_0", "\u0663", "0x1", "x" * 300, "\x1b[2J", "a\nb"]),
    st.text(min_size=1, max_size=12).filter(lambda text: "\0" not in text and not text.startswith("-")),
    st.integers(max_value=-1).map(str),
    st.floats(allow_nan=True, allow_infinity=True).map(str),
)

pytestmark = pytest.mark.plugins


def _leaves(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from _leaves(inner, (*path, name))
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path, command


COMMANDS = dict(_leaves(main.cli, ()))
OPTIONS = [
    (path, option.opts[0])
    for path, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option) and not option.is_flag and not option.count
]
#: Words that make the rest of each command's line right, so that only the option under test can be wrong.
REST = {
    ("cell",): ("--scenario", bad_inputs.PRESET, "--method", "ewc"),
    ("reproduce",): ("--paper", "BeGin", "--plan-only"),
    ("new",): ("method", "some-method"),
    ("export",): (bad_inputs.PRESET,),
    **{(name,): ("good.toml",) for name in ("run", "status", "report", "results")},
}
GOOD = f'name = "x"\n[grid]\nscenarios = ["{bad_inputs.PRESET}"]\nmethods = ["ewc"]\n'
#: Options that take any text, or any path: what hypothesis makes of these may be right.
FREE = {"--author", "--store", "--out", "--into", "--output", "--only"}
FAST = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], derandomize=True)


def test_every_option_of_every_command_is_under_test() -> None:
    assert len(COMMANDS) >= 14
    assert len(OPTIONS) >= 45


TYPED = [(path, one) for path, command in COMMANDS.items() for one in command.params if not getattr(one, "count", False)]


@pytest.mark.parametrize(("path", "parameter"), TYPED, ids=lambda part: " ".join(part) if isinstance(part, tuple) else str(part.name))
def test_numbers_and_paths_are_read_alike_everywhere(path: tuple[str, ...], parameter: click.Parameter) -> None:
    """Click's own types take nan, infinity, other scripts' digits and names that no file can have."""
    kind = parameter.type
    if isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)):
        for number in ("nan", "inf", "-inf", "\u0663", "1_0", "1e400", "9" * 5000, "\uff11"):
            with pytest.raises(click.BadParameter, match="expected"):
                kind.convert(number, parameter, None)
    if isinstance(kind, click.Path):
        for name in ("x" * 300, "abcdefghi/" * 500, "a\0b", ""):
            with pytest.raises(click.BadParameter, match="expected"):
                kind.convert(name, parameter, None)


@pytest.mark.sampled(37)
@pytest.mark.parametrize(("path", "option"), OPTIONS, ids=lambda part: " ".join(part) if isinstance(part, tuple) else part)
def test_no_option_takes_nonsense(tried: Run, tmp_path: Path, path: tuple[str, ...], option: str) -> None:
    (tmp_path / "good.toml").write_text(GOOD)
    rest = REST.get(path, ())
    if path == ("reproduce",) and option in FREE:
        rest = ("--paper", "Nature")  # what follows from a known one is not the option's, and takes seconds

    @settings(FAST, max_examples=12)
    @given(value=NONSENSE)
    def check(value: str) -> None:
        found = tried(Bad(name="", words=(*path, *rest, option, value)))
        assert not found.traceback, (value, found)
        if option not in FREE and not _sensible(option, value):
            assert (found.status, found.accepted) == (2, False), (value, found)

    check()


def _sensible(option: str, value: str) -> bool:
    """Whether a number may be right for an option that takes numbers."""
    timeouts = option in {"--timeout", "--cell-timeout"}
    try:
        number = float(value) if value.isascii() and "_" not in value else -1.0
    except ValueError:
        return False
    return (timeouts and 0 <= number <= 1e9) or (number.is_integer() and 0 <= number < 2**53)


def _declared(catalogue: Catalogue) -> Iterator[tuple[str, str, Hyperparameter]]:
    """(kind, name, setting) of everything that plugins let people set."""
    for kind in KINDS:
        for entry in catalogue.entries(kind):
            for attribute in ("hyperparameters", "parameters"):
                declared = getattr(entry.spec, attribute, ())
                yield from ((kind, entry.name, setting) for setting in (declared if isinstance(declared, tuple) else ()))


WORDS = ("", " ", "\x1b[2J", "1e400", "nan", "inf", "-inf", "9" * 40, "\u0663")


def test_every_hyperparameter_refuses_nonsense_and_takes_its_default(catalogue: Catalogue) -> None:
    declared = list(_declared(catalogue))
    assert len(declared) > 150
    tried: Counter[str] = Counter()
    for kind, name, setting in declared:
        where = f"{kind} {name}"
        if setting.default is not None:
            assert setting.parse(setting.default, where) == setting.default
            assert setting.parse(str(setting.default), where) == setting.default
        for value in (*WORDS, float("nan"), float("inf"), 10**400, [], {}, b"1", ()):
            tried[setting.type.__name__] += 1
            if setting.type is str and not setting.choices and isinstance(value, str) and value.strip() and value.isprintable():
                continue
            with pytest.raises(UsageError, match=f"{setting.name} = .*expected") as message:
                setting.parse(value, where)
            assert str(message.value).isprintable()
            assert len(str(message.value)) < 1000
    assert set(tried) == {"bool", "int", "float", "str"}


@pytest.mark.parametrize("owner", [ScenarioSpec, TrainingSpec, TaskFreeSpec, *LEVEL_SPECS.values()])
def test_every_switch_that_is_a_number_has_bounds(owner: type) -> None:
    from cglsuite.specs import parse_switch

    hints = {name: hint for name, hint in owner.__annotations__.items() if not hint.startswith("Mapping")}  # those are no switches
    numbers = [name for name, hint in hints.items() if re.search(r"\b(int|float)\b", hint)]
    assert numbers
    for name in numbers:
        for value in ("1e400", "-1e300", 10**30, float("nan"), float("-inf"), "-" + "9" * 20):
            with pytest.raises(UsageError, match=f"{name} = .*expected"):
                parse_switch(owner, name, [value] if owner.__annotations__[name].startswith("tuple") else value, "here")


def test_presets_keep_to_what_switches_declare(catalogue: Catalogue) -> None:
    """The bounds refuse no published protocol: every value of every preset reads back as itself."""
    from cglsuite.specs import parse_switch

    read = 0
    for entry in catalogue.entries("scenario"):
        for part, where in (
            (entry.spec, "scenario"),
            (entry.spec.training, "training"),
            (getattr(entry.spec, "task_free", None), "stream"),
        ):  # type: ignore[attr-defined]
            for name, value in switches(part).items() if part is not None else ():
                if not name.endswith("_hyperparameters"):
                    assert parse_switch(type(part), name, value, where) == value, (entry.name, name)
                    read += 1
    assert read > 5000


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
KEYS = [
    *((key,) for key in ("name", "title", "grid", "seeds", "set", "override", "search", "run", "report")),
    *(("grid", key) for key in ("scenarios", "methods", "backbones", "axes")),
    *(("seeds", key) for key in ("order", "split", "init", "design", "orders")),
    *(("search", key) for key in ("seeds", "grid", "methods")),
    *(("run", key) for key in ("workers", "device", "timeout_s", "checkpoint_every_s", "threads", "executor", "share_prefixes")),
]


@pytest.mark.parametrize("key", KEYS, ids=".".join)
@settings(FAST, max_examples=25)
@given(value=JUNK)
def test_no_key_of_a_campaign_ends_in_a_traceback(key: tuple[str, ...], value: Any) -> None:
    """What a file may hold under any key is checked or refused; nothing but UsageError comes out, and it names the file and the key."""
    data: dict[str, Any] = {"name": "x", "grid": {"scenarios": ["s"], "methods": ["m"]}}
    table = data
    for part in key[:-1]:
        table = table.setdefault(part, {})
    table[key[-1]] = value
    message = ""
    try:
        Campaign.parse(data, Path("some.toml"))
    except UsageError as error:
        message = str(error)
    for line in message.splitlines():
        assert line.startswith("some.toml: ")
        assert key[0] in line or "nested" in line


# --- the environment, and files that are none ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_every_variable_refuses_control_characters(name: str) -> None:
    if name not in {"CGLSUITE_STORE", "CGLSUITE_READ", "CGLSUITE_CACHE", "CGLSUITE_DATA"}:
        with pytest.raises(UsageError, match=f"{name}=.*expected"):
            check_environment({name: "\x1b[2J"})
    with pytest.raises(UsageError, match=f"{name}=.*expected"):
        check_environment({name: "a\0" if name.endswith(("STORE", "READ", "CACHE", "DATA")) else "\x1b\x07"})
    check_environment({name: " "})


def test_a_variable_that_looks_like_one_of_ours_is_told(caplog: pytest.LogCaptureFixture) -> None:
    check_environment({"CGLSUITE_WORKRES": "3", "CGLSUITE_AUGMENTATION_CACHE_MB": "5"})
    assert [record.getMessage() for record in caplog.records] == [
        "the environment variable CGLSUITE_WORKRES has no effect; did you mean CGLSUITE_WORKERS?"
    ]


MAKERS: dict[str, Callable[[Path], Any]] = {
    "FIFO": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_no_file_among_the_records_is_set_aside(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    store, key = Store(tmp_path), "a" * 64
    for path in (store.record_path(key), store.checkpoint_path(key), tmp_path / "searches" / f"{key}.json"):
        path.parent.mkdir(parents=True)
        MAKERS[kind](path)
    assert list(store.digests()) == []
    assert list(store.records()) == []
    assert store.get(key) is None
    assert store.load_checkpoint(key) is None
    assert store.get_search(key) is None
    assert "not a regular file" in caplog.text
    assert any(stat.S_ISREG(path.stat().st_mode) for path in tmp_path.rglob("*")) is False
