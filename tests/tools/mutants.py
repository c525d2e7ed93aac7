"""Mutation score: small faults are put into the code one at a time, and the tests must notice. Run by hand, never by CI.

    python tests/tools/mutants.py --number 150 --seed 1 --workers 2        # a sample over all rooms, in proportion to their code
    python tests/tools/mutants.py --rooms stats,reports --number 40        # of some rooms
    python tests/tools/mutants.py --modules cglsuite/stats/replication.py --number 999  # one module, all of its mutants
    python tests/tools/mutants.py --at cglsuite/stats/replication.py:85         # every mutant of a line
    python tests/tools/mutants.py --list --number 100 > frozen.jsonl        # write the sample down, run nothing
    python tests/tools/mutants.py --frozen frozen.jsonl                     # run what was written down, though lines have moved since

The sample is a function of the seed and the code. Mutants live in copies of what git knows; the checkout is not touched. The first failure
ends a mutant (a test that takes two minutes has failed); it counts only if the same test passes on the code as it is. Survivors are printed
as diffs, to be read and judged: equivalent, harmless, or a number that nobody would notice to be wrong. What counts as a fault is said in
:mod:`mutations`.

Without a record of what tests run, the tests named after the mutant's module or its folder run first, then the others of its room, then the
files of other rooms that name what the module defines. With one,

    PYTHONPATH=tests/tools MUTANTS_REACH=/tmp/reach python -m pytest -p reach -n 2 -m "not notebook" tests plugins
    python tests/tools/mutants.py --reached /tmp/reach --number 150 --seed 1

only tests that ran the mutant's line are tried: those of its room, quickest first, then those of other rooms, then those of its room that
start processes, of which the record may know nothing. Test files that have changed since run whole, and moved lines are found again.
``--likely 4`` runs only the four test files that most likely test the mutated function: a first look that takes seconds per mutant.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mutations import APPEARANCE, KINDS, Mutation, mutations_of
from reached import Reached

ROOT = Path(__file__).parents[2]
PYTEST = [
    "-x",
    "-q",
    "-Wignore::pytest.PytestAssertRewriteWarning",
    "--no-header",
    "--tb=no",
    "-p",
    "no:cacheprovider",
    "-m",
    "not notebook and not nightly",
]
TEST_S = 120
#: Of the test files of other rooms those that name a module most often.
WIDE = 15
#: A test that takes longer, or starts processes, must fail twice.
LONG_S = 5.0
#: Of the recorded tests so many, of so few files, are tried before the others are even collected.
FIRST, FIRST_FILES = 40, 3
#: Seconds of recorded tests of other rooms that run at most: many a line is run by half of all tests.
ELSEWHERE_S = 120
#: What pytest says of a test that failed or could not begin.
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.+?)?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a mutant: ``killed``, ``survived``, or ``unfinished`` where the time was up before a test failed; by which test."""

    room: str
    path: str
    line: int
    what: str
    status: str
    by: str
    seconds: float
    diff: str


def room_of(path: str) -> str:
    """``cglsuite/stats/replication.py`` is of the room stats, a plugin's module of the room that the plugin is."""
    parts = Path(path).parts
    return parts[1] if parts[0] == "plugins" else parts[1] if len(parts) > 2 else "core"


def known_files(*patterns: str) -> list[str]:
    """What git knows and the disk has, sorted."""
    words = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(n for n in set(names) if (ROOT / n).is_file())


def sampled(found: dict[str, list[Mutation]], number: int, rng: random.Random) -> list[Mutation]:
    """``number`` mutations, rooms in proportion to theirs (two of each at least), the kinds of mutation in turn within a room."""
    total = sum(map(len, found.values()))
    chosen = []
    for room in sorted(found):
        kinds = defaultdict(list)
        for mutation in found[room]:
            kinds[mutation.kind].append(mutation)
        for pool in kinds.values():
            rng.shuffle(pool)
        order = sorted(kinds)
        rng.shuffle(order)
        turns = [kinds[k].pop() for _ in range(len(found[room])) for k in order if kinds[k]]
        chosen.append(turns[: max(2, round(number * len(found[room]) / total))])
    return [m for room in chosen for m in room]


def _around(text: str, line: int) -> list[str]:
    """The names of the function and the classes that a line is in, innermost first, three at most."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    parts = [n for n in ast.walk(ast.parse(text)) if isinstance(n, kinds) and n.lineno <= line <= (n.end_lineno or 0)]
    names = [n.name.strip("_") for n in sorted(parts, key=lambda n: -n.lineno)]
    return [name for name in names if len(name) > 3][:3]


def _names(content: str, name: str) -> bool:
    return re.search(rf"\b_?{re.escape(name)}\b", content) is not None


class Tests:
    """Which test files run for a module, nearest first."""

    def __init__(self) -> None:
        names = [n for n in known_files("tests", "plugins") if re.search(r"tests/.*test_[^/]+\.py$", n)]
        self.text = {n: (ROOT / n).read_text() for n in names}

    def near(self, path: str) -> list[str]:
        """Those that carry the module's name, then the others of the room."""
        parts = Path(path).parts
        folder = f"plugins/{parts[1]}/tests/" if parts[0] == "plugins" else f"tests/{parts[1]}/" if len(parts) > 2 else "tests/test_"
        room = [n for n in self.text if n.startswith(folder)]
        module = ".".join(Path(path).with_suffix("").parts[-2:])
        return sorted(room, key=lambda n: (not self.is_named(n, path), module not in self.text[n], len(self.text[n])))

    @staticmethod
    def is_named(test: str, path: str) -> bool:
        """Whether a test file carries the name of a module, or of the folder within the room that the module lies in."""
        inner = Path(path).parts[2:-1] if not path.startswith("plugins/") else Path(path).parts[4:-1]
        return any(name in Path(test).stem for name in (Path(path).stem, *inner[-1:]))

    def likely(self, mutation: Mutation, text: str, number: int) -> list[str]:
        """The ``number`` files of all rooms that most likely test the mutated function: by their names and by what they name and import."""
        path = Path(mutation.path)
        inner = path.with_suffix("").parts[3 if mutation.path.startswith("plugins/") else 0 :]
        package, near = ".".join(inner[:-1]), set(self.near(mutation.path))
        around = _around(text, mutation.line)
        scores = {}
        for name, content in self.text.items():
            imported = f"{inner[-2]}.{inner[-1]}" in content or (f"from {package} import" in content and _names(content, inner[-1]))
            named = sum(6 - 2 * k for k, one in enumerate(around) if _names(content, one))
            scores[name] = 6 * imported + named + (5 if name in near else 1) * self.is_named(name, mutation.path) + 2 * (name in near)
        found = sorted((n for n, score in scores.items() if score >= 4), key=lambda n: (-scores[n], len(self.text[n])))
        return found[:number]

    def wide(self, path: str, names: set[str]) -> list[str]:
        """Those of other rooms that name the module or something that it defines."""
        module = Path(path).stem
        pattern = re.compile(r"\b(" + "|".join(map(re.escape, sorted(names | {module}, key=len, reverse=True))) + r")\b")
        near = set(self.near(path))
        mentions = {n: len(pattern.findall(text)) for n, text in self.text.items() if n not in near}
        return sorted((n for n, count in mentions.items() if count), key=lambda n: -mentions[n])[:WIDE]


@dataclass(frozen=True)
class Round:
    """Tests to run together: whole files, or of some files the ``chosen`` tests in their order and the ``whole`` ones."""

    files: list[str]
    chosen: list[str] | None = None
    whole: tuple[str, ...] = ()


def rounds_of(mutation: Mutation, text: str, tests: Tests, reached: Reached | None) -> list[Round]:
    """What to run for a mutant of the module whose text this is, one after the other."""
    near, path = tests.near(mutation.path), mutation.path
    named = [n for n in near if tests.is_named(n, path)]
    if reached is None:
        return [Round(named), Round([n for n in near if n not in named]), Round(tests.wide(path, mutation.names))]
    ran = [t for t in reached.tests(path, text, mutation.line) if t.split("::")[0] in tests.text]
    at_home = sorted((t for t in ran if t.split("::")[0] in near), key=lambda t: t.split("::")[0] not in named)
    changed = tuple(n for n in near if not reached.is_known(n, tests.text[n]))
    away, seconds = [], 0.0
    for test in (t for t in ran if t.split("::")[0] not in near):
        seconds += reached.seconds[test]
        if seconds < ELSEWHERE_S:
            away.append(test)
    first: list[str] = []
    for test in at_home:
        begun = {t.split("::")[0] for t in first}
        if len(first) < FIRST and (len(begun) < FIRST_FILES or test.split("::")[0] in begun):
            first.append(test)
    rest = [t for t in at_home if t not in set(first)]
    known = set(ran)
    starting = [t for t in reached.starts - known if t.split("::")[0] in near and t.split("::")[0] not in changed]
    new = tuple(n for n in changed if n in named)
    found = [Round(list(new))] if new else []
    changed = tuple(n for n in changed if n not in new)
    for chosen, whole in ((first, ()), (rest, changed), (away, ()), (sorted(starting, key=lambda t: reached.seconds[t]), ())):
        files = list(dict.fromkeys([t.split("::")[0] for t in chosen] + list(whole)))
        found.append(Round(files, chosen, whole))
    if not at_home:  # the record may miss what tests of its own room run in processes of their own
        found += [Round(named), Round([n for n in near if n not in named])]
    found.append(Round([n for n in tests.wide(path, mutation.names) if not reached.is_known(n, tests.text[n])]))
    return found


class Warm:
    """A process that runs pytest, with libraries imported beforehand (see :mod:`warm`)."""

    def __init__(self, environment: dict[str, str]) -> None:
        words = [sys.executable, str(Path(__file__).with_name("warm.py"))]
        self._process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, asked: dict[str, Any], limit_s: float) -> int | None:
        """The exit status; None: the time was up."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        pid, late = int(self._process.stdout.readline()), threading.Event()

        def end() -> None:
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

        clock = threading.Timer(limit_s, end)
        clock.start()
        status = int(self._process.stdout.readline())
        clock.cancel()
        return None if late.is_set() else status


class Copy:
    """A copy of the checkout in which one mutant lives at a time."""

    def __init__(self, folder: Path, files: list[str]) -> None:
        self.folder = folder
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        source = [str(folder), *map(str, sorted((folder / "plugins").glob("*/src")))]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(source),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MPLBACKEND": "Agg",
        }
        self._turn = 0
        self._warm = Warm(self.environment)

    def put(self, path: str, text: str) -> None:
        """Write a module; no byte-code of another text with the same size and second can be taken for its own."""
        self._turn += 1
        (self.folder / path).write_text(text)
        os.utime(self.folder / path, (self._turn, self._turn))

    def failing(self, tests: Round, limit_s: float, without: list[str] | None = None) -> tuple[str, str]:
        """``passed``, ``failed`` or ``unfinished``, and the first test that failed."""
        files = [f for f in tests.files if f not in (without or ())]
        words = [*PYTEST, "--timeout", str(TEST_S), *files, *(f"--deselect={t}" for t in without or [])]
        environment = self.environment
        if tests.chosen is not None:
            choice = self.folder.parent / f"{self.folder.name}.json"
            choice.write_text(json.dumps({"tests": tests.chosen, "whole": tests.whole}))
            words += ["-p", "chosen"]
            source = os.pathsep.join([str(Path(__file__).parent), environment["PYTHONPATH"]])
            environment = {**environment, "PYTHONPATH": source, "MUTANTS_CHOSEN": str(choice)}
        out = self.folder.parent / f"{self.folder.name}.out"
        asked = {"words": words, "folder": str(self.folder), "environment": environment, "out": str(out)}
        status = self._warm.run(asked, limit_s)
        if status is None:
            return "unfinished", ""
        text = out.read_text(errors="replace")
        if status in (0, 5):  # 5: nothing was left to run
            return "passed", ""
        test = FAILED.search(text)
        if not test:
            raise RuntimeError(f"pytest ended with status {status} and named no test:\n{text[-3000:]}")
        return "failed", test[1]


class Examination:
    """Runs mutants, several at a time."""

    def __init__(self, folder: Path, workers: int, limit_s: float, only: list[str], reached: Reached | None, likely: int = 0) -> None:
        files, self.limit_s, self.only, self.reached, self.likely = known_files(), limit_s, only, reached, likely
        self.text = {name: (ROOT / name).read_text() for name in files if name.endswith(".py")}  # the checkout may move on meanwhile
        self.copies: SimpleQueue[Copy] = SimpleQueue()
        for i in range(workers):
            self.copies.put(Copy(folder / str(i), files))
        self.tests = Tests()
        self._passes: dict[str, bool] = {}
        self._lock = threading.Lock()

    def diff(self, mutation: Mutation) -> str:
        """What the mutation changes."""
        original = self.text[mutation.path]
        mutant = mutation.applied(original)
        lines = difflib.unified_diff(original.splitlines(), mutant.splitlines(), mutation.path, "mutant", lineterm="", n=2)
        return "\n".join(lines)

    def outcome(self, mutation: Mutation) -> Outcome:
        """Put the mutant into a free copy, ask the tests, and take it out again."""
        copy, started = self.copies.get(), time.monotonic()
        original = self.text[mutation.path]
        mutant = mutation.applied(original)
        try:
            status, by = self._examined(copy, mutation, original, mutant)
        finally:
            copy.put(mutation.path, original)
            self.copies.put(copy)
        return Outcome(
            room=room_of(mutation.path),
            path=mutation.path,
            line=mutation.line,
            what=mutation.kind,
            status=status,
            by=by,
            seconds=round(time.monotonic() - started, 1),
            diff=self.diff(mutation),
        )

    def _examined(self, copy: Copy, mutation: Mutation, original: str, mutant: str) -> tuple[str, str]:
        skipped: list[str] = []
        ended = "survived"
        rounds = [Round(self.only)] if self.only else self._rounds(mutation, original)
        for tests in rounds:
            while set(tests.files) - set(skipped):
                copy.put(mutation.path, mutant)
                found, by = copy.failing(tests, self.limit_s, skipped)
                if found != "failed":
                    ended = "unfinished" if found == "unfinished" else ended
                    break
                if self._passes_without(copy, mutation.path, original, by) and self._fails_again(copy, mutation.path, mutant, by):
                    return "killed", by
                skipped.append(by)
        return ended, ""

    def _rounds(self, mutation: Mutation, text: str) -> list[Round]:
        if not self.likely:
            return rounds_of(mutation, text, self.tests, self.reached)
        first, *others = [[n] for n in self.tests.likely(mutation, text, self.likely)] or [[]]
        return [Round(first), Round([n for one in others for n in one])]

    def _fails_again(self, copy: Copy, path: str, mutant: str, test: str) -> bool:
        """On a busy machine a test of processes fails by itself now and then."""
        if self.reached is not None and test not in self.reached.starts and self.reached.seconds.get(test, LONG_S) < LONG_S:
            return True
        copy.put(path, mutant)
        return copy.failing(Round([test]), self.limit_s)[0] != "passed"

    def _passes_without(self, copy: Copy, path: str, original: str, test: str) -> bool:
        if test not in self._passes:
            copy.put(path, original)
            self._passes[test] = copy.failing(Round([test]), self.limit_s)[0] == "passed"
        return self._passes[test]


def at_line(found: dict[str, list[Mutation]], place: str) -> list[Mutation]:
    """Every mutation of a line, given as ``path:line``."""
    path, _, line = place.rpartition(":")
    return [m for room in found.values() for m in room if m.path == path and m.line == int(line)]


def frozen(found: dict[str, list[Mutation]], file: Path) -> list[Mutation]:
    """The mutations that ``--list`` wrote to a file: of equal ones in a module, that which is nearest to the line of then.

    Raises:
        SystemExit: the code has changed so that one can no longer be made.
    """
    alike = defaultdict(list)
    for mutation in (m for room in found.values() for m in room):
        alike[mutation.path, mutation.kind, mutation.old, mutation.new].append(mutation)
    chosen = []
    for path, line, *change in map(json.loads, file.read_text().splitlines()):
        if not (pool := alike[path, *change]):
            raise SystemExit(f"{file}: {path}:{line}: {change} is no mutation of the code as it is now")
        chosen.append(min(pool, key=lambda m: abs(m.line - line)))
    return chosen


def main() -> int:
    """Draw the sample, run it, print the score of each room and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", default="", help="comma-separated; all by default")
    parser.add_argument(
        "--modules", default="", help="comma-separated beginnings of paths, as cglsuite/stats/replication.py; all by default"
    )
    parser.add_argument("--at", action="append", default=[], help="path:line, in place of a sample")
    parser.add_argument("--frozen", type=Path, help="a file that --list wrote, in place of a sample")
    parser.add_argument("--tests", default="", help="the test files or tests to run, separated by blanks, in place of those that belong")
    parser.add_argument("--marks", default=PYTEST[-1], help="which tests may run, by their marks: 'not notebook' are both rounds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300, help="seconds for a mutant's own room, and again for the others")
    parser.add_argument("--out", type=Path, help="outcomes as JSON lines, written as they come; those in it are not run again")
    parser.add_argument(
        "--likely", type=int, default=0, help="run only so many test files: those that most likely test the mutated function"
    )
    parser.add_argument("--reached", type=Path, action="append", default=[], help="a folder that the plugin reach wrote; may be repeated")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"comma-separated; {APPEARANCE} is the one that is left out by default")
    parser.add_argument("--list", action="store_true", help="show the sample and stop")
    asked = parser.parse_args()
    PYTEST[-1] = asked.marks

    kinds = asked.kinds.split(",")
    listed = {json.loads(line)[0] for line in asked.frozen.read_text().splitlines()} if asked.frozen else set()
    found: dict[str, list[Mutation]] = defaultdict(list)
    for name in known_files("cglsuite/*.py", "plugins/*/src/*.py"):
        if asked.at and not any(place.startswith(f"{name}:") for place in asked.at):
            continue
        if not name.startswith(tuple(asked.modules.split(","))) or (listed and name not in listed):
            continue
        if not asked.rooms or room_of(name) in asked.rooms.split(","):
            text = (ROOT / name).read_text()
            mutations = (m for m in mutations_of(name, text) if asked.at or m.kind in kinds)
            found[room_of(name)] += [m for m in mutations if listed or m.applied(text) != text]
    places = [m for place in asked.at for m in at_line(found, place)]
    sample = places if asked.at else sampled(found, asked.number, random.Random(asked.seed))
    if asked.frozen:
        sample = frozen(found, asked.frozen)
    if asked.list:
        print(*(json.dumps([m.path, m.line, m.kind, m.old, m.new]) for m in sample), sep="\n")
        return 0
    random.Random(asked.seed).shuffle(sample)
    outcomes = [Outcome(**json.loads(line)) for line in asked.out.read_text().splitlines()] if asked.out and asked.out.exists() else []
    before = {(o.path, o.diff) for o in outcomes}
    texts = {name: (ROOT / name).read_text() for name in known_files("*.py")}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(asked.workers) as pool:
        reached = Reached(asked.reached, texts) if asked.reached else None
        examination = Examination(Path(folder), asked.workers, asked.limit, asked.tests.split(), reached, asked.likely)
        waiting = [m for m in sample if (m.path, examination.diff(m)) not in before]
        for done in as_completed([pool.submit(examination.outcome, mutation) for mutation in waiting]):
            outcome = done.result()
            outcomes.append(outcome)
            print(
                f"{len(outcomes)}/{len(sample)} {outcome.status} {outcome.path}:{outcome.line} {outcome.by} {outcome.seconds} s", flush=True
            )
            if asked.out:
                with asked.out.open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
    report(outcomes)
    return 0


def report(outcomes: list[Outcome]) -> None:
    """Survivors as diffs, then the score of each room: what was noticed, of all."""
    for o in outcomes:
        if o.status != "killed":
            print(f"\n{o.status}: {o.path}:{o.line} ({o.what})\n{o.diff}")
    print()
    total, survived = Counter(o.room for o in outcomes), Counter(o.room for o in outcomes if o.status != "killed")
    for room in sorted(total):
        print(f"{room:20} {total[room] - survived[room]:4} of {total[room]:4}")
    n, left = len(outcomes), sum(survived.values())
    print(f"{'all':20} {n - left:4} of {n:4}  {(n - left) / max(n, 1):.1%}")


if __name__ == "__main__":
    sys.exit(main())
