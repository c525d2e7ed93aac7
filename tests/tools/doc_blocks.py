"""The blocks of code of a Markdown page, and a small shell that runs or checks them in this process.

A page is followed from top to bottom in an empty folder, as a reader would. A ``toml`` or ``python`` block with a title is that file. A
``python`` block without one is executed, in one namespace per page. The commands of a ``bash`` block are run, each program in its own way:

* ``cglsuite``: in this process.
* ``python -m pip install -e .``: the package in the folder becomes a distribution on ``sys.path``; other uses of pip are parsed only.
* ``pytest``: in a process of its own.
* what stands below ``<!-- parsed: why -->``: parsed only. A command of ``cglsuite`` must take the options, and a campaign must load.

``whole=False`` is the cheap way for what takes long: ``cell`` trains one epoch; instead of ``run`` and ``report`` the campaign is planned
(``status``), which resolves every name and setting in it; what ``check`` would examine is looked up in the catalogue; the files
that ``pytest`` would run are compiled.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from plugin_sites import Site

__all__ = ["ROOT", "Block", "Reader", "blocks", "pages"]

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("bash", "python", "toml", "pycon", "text")
_FENCE = re.compile(r"(?:^<!-- parsed: (?P<why>[^\n]+) -->\n)?^```(?P<head>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_INCLUDED = re.compile(r"^\{\{ file (\S+) \}\}\n", re.MULTILINE)
_HEAD = re.compile(r'(?P<language>\w+)(?: title="(?P<title>[^"]+)")?')


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of code of a page; ``parsed``: why it is not executed, empty where it is."""

    page: Path
    line: int
    language: str
    text: str
    title: str = ""
    parsed: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """The pages of the documentation that are written by hand."""
    return sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order.

    Raises:
        ValueError: a block has no language, or one that nothing here checks.
    """
    text, found = page.read_text(encoding="utf-8"), []
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start("head")) + 1
        head = _HEAD.fullmatch(match["head"])
        if head is None or head["language"] not in LANGUAGES:
            raise ValueError(f"{page.relative_to(ROOT)}:{line}: a block of {match['head']!r}; expected one of {', '.join(LANGUAGES)}")
        kind = {"language": head["language"], "title": head["title"] or "", "parsed": match["why"] or ""}
        content = _INCLUDED.sub(lambda included: (ROOT / included[1]).read_text(encoding="utf-8"), match["body"])
        found.append(Block(page=page, line=line, text=content, **kind))
    return found


def _commands(text: str) -> Iterator[list[str]]:
    """The words of every command of a bash block."""
    for line in text.replace("\\\n", " ").splitlines():
        for command in line.split("&&"):
            if words := shlex.split(command, comments=True):
                yield words


@dataclass(kw_only=True)
class Reader:
    """Follows a page in ``folder``; ``site`` is where packages are installed, ``whole`` whether nothing is shortened."""

    folder: Path
    site: Site
    whole: bool
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    shortened: list[str] = field(default_factory=list)

    def follow(self, block: Block) -> None:
        """Run or check one block; raises where it does not hold."""
        getattr(self, f"_{block.language}")(block)

    # --- files and Python ------------------------------------------------------------------------------------------------------

    def _toml(self, block: Block) -> None:
        tomllib.loads(block.text)
        self._write(block)

    def _python(self, block: Block) -> None:
        code = compile(block.text, str(block), "exec")
        self._write(block)
        if not block.title and not block.parsed:
            exec(code, self.namespace)

    def _text(self, block: Block) -> None:
        """Output that is shown: tests of the page compare it."""

    def _write(self, block: Block) -> None:
        if block.title:
            (self.folder / block.title).write_text(block.text, encoding="utf-8")

    # --- commands --------------------------------------------------------------------------------------------------------------

    def _bash(self, block: Block) -> None:
        for words in _commands(block.text):
            while block.parsed and re.match(r"[A-Z_]+=", words[0]):  # the environment of one command
                words = words[1:]
            program, rest = words[0], words[1:]
            if program == "sbatch" and block.parsed:  # what is submitted is parsed
                program, *rest = shlex.split(rest[rest.index("--wrap") + 1])
            if program not in _PROGRAMS:
                raise ValueError(f"{block}: the program {program!r}; the tests know {', '.join(_PROGRAMS)}")
            if block.parsed and program == "cglsuite":
                self._parse(rest)
            elif not block.parsed:
                _PROGRAMS[program](self, rest)

    def _cd(self, words: Sequence[str]) -> None:
        self.folder /= words[0]
        os.chdir(self.folder)

    def _python_program(self, words: Sequence[str]) -> None:
        if words[:4] == ["-m", "pip", "install", "-e"] and words[4].startswith("."):
            project = tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            modules = [path.relative_to(self.folder) for path in self.folder.rglob("*.py")]
            files = {str(path): (self.folder / path).read_text(encoding="utf-8") for path in modules if path.parts[0] != "tests"}
            self.site.add(project["name"], project["version"], files=files, entry_points=project["entry-points"]["cglsuite"])
        else:
            raise ValueError(f"python {shlex.join(words)}: mark it as parsed, and say why")

    def _pytest(self, words: Sequence[str]) -> None:
        files = [self.folder / word for word in words] or [*(self.folder / "tests").glob("test_*.py")]
        for path in files:
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
        if not self.whole:
            self.shortened.append("pytest")
            return
        path = os.pathsep.join([str(self.site.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
        done = subprocess.run(command, cwd=self.folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)

    def _cglsuite(self, words: Sequence[str]) -> None:
        from cglsuite.cli.main import run

        words = list(words) if self.whole else self._short(list(words))
        if words and (status := run(words)):
            raise AssertionError(f"cglsuite {shlex.join(words)} ended with status {status}")

    def _short(self, words: list[str]) -> list[str]:
        """A cheaper command that checks the same words; none where looking at them is enough."""
        if words[0] not in ("cell", "run", "report", "table", "check") or (words[0] == "check" and not {"method", "--plugin"} & {*words}):
            return words
        self.shortened.append(shlex.join(words))
        self._parse(words)
        if words[0] == "cell":
            return [*_without(words, "training.epochs"), "--set", "training.epochs=1"]
        if words[0] == "check":
            files = [w for option, file in pairwise(words) if option == "--plugin" for w in (option, file)]
            return ["show", *(["method"] if "method" in words else []), words[-1], *files]
        store = words[words.index("--store") + 1] if "--store" in words else ".cglsuite"
        Path(store).mkdir(exist_ok=True)  # as what was not run would have left it
        return ["status", words[1], "--store", store]

    def _parse(self, words: Sequence[str]) -> None:
        """The command takes these words, and a campaign that it names checks."""
        import click

        from cglsuite.campaigns.campaign import load_campaign
        from cglsuite.cli.main import cli

        command = cli.get_command(click.Context(cli, info_name="cglsuite"), words[0])
        if command is None:
            raise ValueError(f"cglsuite {words[0]}: there is no such command")
        context = command.make_context(words[0], list(words[1:]))
        for name in ("campaign", "campaign_path"):
            if path := context.params.get(name):
                here = self.folder / path
                load_campaign(here if here.is_file() else ROOT / path)


def _without(words: list[str], setting: str) -> list[str]:
    """The words without ``--set setting=...``."""
    places = [i for i, word in enumerate(words) if word.startswith(f"{setting}=")]
    return [word for i, word in enumerate(words) if i not in places and i + 1 not in places]


_PROGRAMS: dict[str, Callable[[Reader, Sequence[str]], None]] = {
    "cglsuite": Reader._cglsuite,
    "cd": Reader._cd,
    "python": Reader._python_program,
    "pytest": Reader._pytest,
    **dict.fromkeys(
        ("python3", ".", "twine", "tox", "jupyter", "jupytext", "papermill"), lambda reader, words: reader._python_program(words)
    ),
}
