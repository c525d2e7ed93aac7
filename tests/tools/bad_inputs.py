"""Requests that no command may accept: a table, with the exit status and a piece of the message that each must give.

``outcome`` runs one in this process with everything real but the training: a cell that would be trained raises :class:`Accepted`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

__all__ = ["BAD", "Accepted", "Bad", "Outcome", "outcome"]

PRESET, FREE = "synthetic-csbm/class-il@begin-1", "synthetic-csbm/task-free@drift-1"
CELL = ("cell", "--scenario", PRESET, "--method", "ewc")
LONG = "a" * 300
HUGE = "9" * 20
NOT_A_NUMBER = "expected a finite number"


class Accepted(Exception):
    """A request that would have been carried out."""


@dataclass(frozen=True, kw_only=True)
class Bad:
    """One request: its words, environment, and campaign file (``{campaign}`` in the words); what it must end with."""

    name: str
    words: tuple[str, ...]
    says: str = ""
    status: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)
    campaign: str | bytes | None = None


@dataclass(frozen=True)
class Outcome:
    """How a request ended: exit status, what stderr and stdout say, and whether a cell would have been trained."""

    status: int
    said: str
    accepted: bool

    @property
    def traceback(self) -> bool:
        """Whether an error came out that nobody had foreseen."""
        return "(unexpected:" in self.said or "Traceback" in self.said or self.status not in {0, 1, 2, 3, 4}


def _overrides() -> Iterator[Bad]:
    whole = {
        "training.epochs": ("0", "-1", "1000001"),
        "training.batch_size": ("0", "-5"),
        "training.plateau_patience": ("-1",),
        "scenario.n_tasks": ("0", "-1"),
        "scenario.classes_per_task": ("0", "-2"),
        "scenario.memory_budget": ("-1",),
        "scenario.hits_k": ("0",),
        "scenario.negatives": ("0",),
        "scenario.replicas": ("0", "-1"),
        "scenario.min_class_size": ("-1",),
        "backbone.width": ("0", "-1", "65537"),
        "backbone.layers": ("0", "1001"),
        "dataset.n_nodes": ("3",),
    }
    for key, further in whole.items():
        for value in (*further, "1e400", HUGE, "2.5", "nan", "inf", "many", "\u0663", "1_0", "0x10", "9" * 5000, "-" + HUGE):
            yield Bad(name=f"{key}={value[:24]}", words=(*CELL, "--set", f"{key}={value}"), says=f"{key.partition('.')[2]} = .*expected")
    real = {
        "training.lr": ("0", "-1"),
        "training.weight_decay": ("-0.1",),
        "training.plateau_factor": ("-1", "2"),
        "training.stop_ratio": ("-1", "2"),
        "method.lambda": ("-1",),
        "backbone.dropout": ("-0.1", "1"),
        "dataset.homophily": ("-0.1", "1.1"),
    }
    for key, further in real.items():
        for value in (*further, "1e400", "inf", "-inf", "nan", "fast", "\u0661.\u0665", "1_0.5", "1e31"):
            yield Bad(name=f"{key}={value}", words=(*CELL, "--set", f"{key}={value}"), says=f"{key.partition('.')[2]} = .*expected")
    for key, values in {
        "training.class_balanced": ("maybe", "2", "none"),
        "scenario.undirected": ("-1", "ja"),
        "scenario.split_ratio": ("1", "0.5,0.5", "nan,0.5,0.5", "2,-1,0", "inf,0,0", "0.6,,0.4", "a,b,c"),
        "training.fan_out": ("0", "1,0", "1e400,1", "a", "1,,2"),
        "scenario.task_bins": ("3,1", "1,1", "x", "1e400"),
        "scenario.class_order": ("sideways", "3;1", "-1,2", "1,,2", "\u0663,1"),
        "scenario.edge_policy": ("some", "\x1b[31mfull"),
        "training.optimizer": ("adamw", ""),
        "training.backbone": ("gcnn", " "),
    }.items():
        for value in values:
            yield Bad(name=f"{key}={value!r}", words=(*CELL, "--set", f"{key}={value}"), says="expected|unknown|No |Did you mean|empty")
    for key in (
        "epoch",
        "training.epoch",
        "training.",
        ".epochs",
        "trainig.epochs",
        "scenario.setting",
        "method.width",
        "a.b.c",
        "training.lr.x",
    ):
        yield Bad(name=f"key {key}", words=(*CELL, "--set", f"{key}=1"), says="unknown switch or hyperparameter")
    for pair in ("epochs", "=1", "", " ", "==", "\x1b[2J"):
        yield Bad(name=f"--set {pair!r}", words=(*CELL, "--set", pair), says="expected key=value|empty")
    for one, other in (
        ("training.epochs=1", "epochs=2"),
        ("epochs=1", "epochs=2"),
        ("lr=1", "training.lr=1"),
        ("method.lambda=1", "lambda=2"),
        ("width=3", "backbone.width=4"),
    ):
        yield Bad(name=f"{one} and {other}", words=(*CELL, "--set", one, "--set", other), says="given twice")
    two = ("--backbone", "gcn", "--set", "training.backbone=gat")
    yield Bad(name="two backbones", words=(*CELL, *two), says="set only one of them")
    yield Bad(name="--tasks and n_tasks", words=(*CELL, "--tasks", "2", "--set", "n_tasks=3"), says="--tasks 2 and --set")


def _options() -> Iterator[Bad]:
    for axis in ("order", "split", "init"):
        for value in ("-1", str(2**63), "100000000000000000000", "1e20", "1.5", "one", "\u0663", "1_0", "nan", ""):
            yield Bad(name=f"--{axis}-seed {value}", words=(*CELL, f"--{axis}-seed", value), says="expected")
    for value in ("0", "-1", "100000", HUGE, "two", "\u0664", "", "1e400"):
        yield Bad(name=f"--threads {value}", words=(*CELL, "--threads", value), says="expected")
        yield Bad(name=f"--tasks {value}", words=(*CELL, "--tasks", value if value != "100000" else "1000001"), says="expected")
        yield Bad(
            name=f"reproduce --seeds {value}",
            words=("reproduce", "--paper", "BeGin", "--plan-only", "--seeds", value.replace("100000", "1000001")),
            says="expected",
        )
        yield Bad(
            name=f"reproduce --workers {value}", words=("reproduce", "--paper", "BeGin", "--plan-only", "--workers", value), says="expected"
        )
    for value in ("0", "-1", "nan", "inf", "1e400", "soon", "", "\u0663"):
        yield Bad(name=f"doctor --timeout {value}", words=("plugins", "doctor", "--timeout", value), says="expected")
        if value != "0":
            yield Bad(name=f"report --cell-timeout {value}", words=("report", "x.toml", "--cell-timeout", value), says="expected")
    for option in ("--store", "--backbone", "--device", "--scenario", "--method"):
        yield Bad(name=f"{option} empty", words=(*CELL, option, ""), says="empty")
        yield Bad(name=f"{option}= empty", words=(*CELL, f"{option}="), says="empty")
    for option in ("--paper", "--dataset", "--setting", "--method", "--out", "--store", "--device"):
        yield Bad(name=f"reproduce {option} empty", words=("reproduce", "--plan-only", "--paper", "BeGin", option, ""), says="empty")
    for option, value in (("--scenario", "nowhere"), ("--method", "ewcc"), ("--backbone", "\x1b[31mgcn"), ("--backbone", "gcn\u202e")):
        yield Bad(name=f"{option} {value!r}", words=(*CELL, option, value), says="unknown")
    yield Bad(name="--device gpu", words=(*CELL, "--device", "gpu"), says="expected one of auto, cpu, cuda, or cuda:N")
    paths: dict[str, tuple[str, ...]] = {
        "cell --store": (*CELL, "--store"),
        "results --store": ("results", "--store"),
        "results --output": ("results", "--output"),
        "run --store": ("run", "x.toml", "--store"),
        "run --out": ("run", "x.toml", "--out"),
        "status --store": ("status", "x.toml", "--store"),
        "report --out": ("report", "x.toml", "--out"),
        "report --store": ("report", "x.toml", "--store"),
        "export --out": ("export", PRESET, "--out"),
        "reproduce --out": ("reproduce", "--paper", "BeGin", "--plan-only", "--out"),
        "new --into": ("new", "method", "some-method", "--into"),
        "status CAMPAIGN": ("status",),
        "run CAMPAIGN": ("run",),
        "report CAMPAIGN": ("report",),
    }
    for name, words in paths.items():
        for message, value in (("long", LONG), ("long below", f"x/{LONG}/y"), ("NUL", "a\0b"), ("empty", "")):
            yield Bad(name=f"{name} {message}", words=(*words, value), says="shorter|NUL|empty")
    lines = (
        f"list methodz|show method ewcc|show cat x|lst|check ewc --all|check|check --provider nobody|scenarios diff {PRESET} x",
        f"new method Bad|new metric {LONG}-|new method|export nowhere|export {PRESET} --set training.epochs=3|--verbos list",
        "results --format xls|results --store nowhere|reproduce --paper Nature --plan-only",
    )
    for line in "|".join(lines).split("|"):
        yield Bad(name=line[:60], words=tuple(line.split()))


def _environment() -> Iterator[Bad]:
    for name, values in {
        "CGLSUITE_PLUGINS_TIMEOUT": ("abc", "0", "-1", "nan", "inf", "1e400", "\u0663"),
        "CGLSUITE_WORKERS": ("abc", "0", "-1", "\u00b2", "\u0663", "1e9", "2.5"),
        "CGLSUITE_DEVICE": ("gpu", "CPU!"),
        "CGLSUITE_OFFLINE": ("maybe", "2"),
        "CGLSUITE_STRICT": ("maybe", "2"),
        "CGLSUITE_STORE": (LONG,),
        "CGLSUITE_CACHE": (LONG,),
        "CGLSUITE_DATA": (LONG,),
    }.items():
        for value in values:
            yield Bad(name=f"{name}={value[:12]}", words=("list", "methods"), environment={name: value}, says=f"{name}=.*expected")
    for value in ("epochs", "epochs=0", "epochs=1;training.epochs=2", "=", "epoch=3"):
        yield Bad(name=f"CGLSUITE_SET={value}", words=CELL, environment={"CGLSUITE_SET": value}, says="expected|twice|unknown")


def _campaigns() -> Iterator[Bad]:
    good = f'name = "x"\n[grid]\nscenarios = ["{PRESET}"]\nmethods = ["ewc"]\n'
    below: dict[str, str] = {
        "epochs 0": "[set]\ntraining.epochs = 0",
        "epochs inf": "[set]\ntraining.epochs = inf",
        "lr nan": "[set]\ntraining.lr = nan",
        "lr 1e400": "[set]\ntraining.lr = 1e400",
        "lr text": '[set]\ntraining.lr = "fast"',
        "lr date": "[set]\ntraining.lr = 2020-01-01",
        "lr list": "[set]\ntraining.lr = [1, 2]",
        "twice": '[set]\n"training.epochs" = 1\nepochs = 2',
        "twice by table": '[set]\n"training.epochs" = 1\n[settings.training]\nepochs = 2',
        "unknown setting": "[set]\ntraining.epoch = 3",
        "unknown table": "[settinks]\na = 1",
        "budget": "[set]\nscenario.memory_budget = -1",
        "width": "[set]\nbackbone.width = 99999999999999999999",
        "axis": '[grid.axes]\n"training.epochs" = [0, 1]',
        "axis twice": '[grid.axes]\n"training.epochs" = [1]\nepochs = [2]',
        "axis empty": '[grid.axes]\n"training.epochs" = []',
        "override": '[[override]]\nmatch = {method = "ewc"}\nset = {"method.lambda" = -1}',
        "override nobody": '[[override]]\nmatch = {method = "mas"}\nset = {"method.lambda" = 1}',
        "search": '[search.grid]\n"training.lr" = [0.0, 1.0]',
        "search method": '[search.methods.mas]\n"method.lambda" = [1, 2]',
        "seed negative": "[seeds]\norder = [-1]",
        "seed 2^63": "[seeds]\ninit = [9223372036854775808]",
        "seed 1e20": "[seeds]\nsplit = [100000000000000000000]",
        "seed float": "[seeds]\norder = [1.5]",
        "seed true": "[seeds]\norder = [true]",
        "seed text": '[seeds]\norder = ["1"]',
        "seeds empty": "[seeds]\norder = []",
        "seeds unequal": "[seeds]\norder = [0, 1]\ninit = [0, 1, 2]",
        "orders": '[seeds]\norders = "sideways"',
        "design": '[seeds]\ndesign = "star"',
        "workers 0": "[run]\nworkers = 0",
        "workers huge": "[run]\nworkers = 100000",
        "threads huge": "[run]\nthreads = 100000",
        "threads text": '[run]\nthreads = "2"',
        "timeout inf": "[run]\ntimeout_s = inf",
        "timeout nan": "[run]\ntimeout_s = nan",
        "timeout 0": "[run]\ntimeout_s = 0",
        "device": '[run]\ndevice = "gpu"',
        "executor": '[run]\nexecutor = ""',
        "report": '[[report]]\nnotebook = ""',
        "report key": '[[report]]\nnotebok = "x"',
        "no toml": "[[[",
        "digits": "[seeds]\norder = [" + "9" * 5000 + "]",
        "nested arrays": "[[report]]\nnotebook = \"x\"\nparameters = {a = " + "[" * 2000 + "]" * 2000 + "}",
        "nested keys": "[set]\n" + "a." * 2000 + "b = 1",
        "nested tables": "[set]\nx = " + "{a = " * 2000 + "1" + "}" * 2000,
        "nested less": "[set]\nx = " + "[" * 40 + "]" * 40,
    }  # fmt: skip
    for name, text in below.items():
        yield Bad(name=f"campaign {name}", words=("status", "{campaign}"), campaign=f"{good}{text}\n", says=r"bad\.toml")
    whole = {
        "empty": "",
        "empty scenario": good.replace(PRESET, ""),
        "empty backbone": good + 'backbones = [""]\n',
        "unknown method": good.replace("ewc", "ewcc"),
        "no methods": good.replace('["ewc"]', "[]"),
        "name with escape": good.replace('"x"', '"x\\u001b[31m"'),
        "name empty": good.replace('"x"', '""'),
        "number for name": good.replace('"x"', "3"),
        "latin-1": good.encode() + b'description = "\xe9"\n',
        "NUL": good.encode() + b"\0",
        "BOM and zeros": b"\xff\xfe" + b"\0" * 64,
    }
    for name, content in whole.items():
        yield Bad(name=f"campaign {name}", words=("status", "{campaign}"), campaign=content, says=r"bad\.toml")
    for pair in ("epochs=0", "lr=inf", "epochs=1e400", "epoch=1", "epochs"):
        yield Bad(name=f"status --set {pair}", words=("status", "{campaign}", "--set", pair), campaign=good, says="expected|unknown")
    for only in ("metod=ewc", "ewc", "=", ""):
        yield Bad(name=f"run --only {only}", words=("run", "{campaign}", "--only", only), campaign=good, says="expected|unknown|empty")
    for workers in ("0", "100000", "x"):
        yield Bad(name=f"run --workers {workers}", words=("run", "{campaign}", "--workers", workers), campaign=good, says="expected")
    for path in ("/dev/zero", "/dev/full", "/", "nowhere.toml"):
        yield Bad(name=f"status {path}", words=("status", path), says="")


BAD: Sequence[Bad] = tuple({bad.name: bad for part in (_overrides, _options, _environment, _campaigns) for bad in part()}.values())


@contextmanager
def _nothing_is_run(folder: Path) -> Iterator[None]:
    from cglsuite.campaigns.executors import supervisor

    def refuse(*_: Any, **__: Any) -> Any:
        raise Accepted

    with ExitStack() as stack:
        stack.enter_context(mock.patch("cglsuite.cells.obtain.obtain_record", refuse))
        stack.enter_context(mock.patch.object(supervisor.LocalExecutor, "run", refuse))
        stack.enter_context(mock.patch("cglsuite.cells.export.make_export", refuse))
        stack.enter_context(mock.patch("cglsuite.reports.site.index.render_campaign", refuse))
        stack.enter_context(mock.patch("cglsuite.cli.commands.check._copy_template", refuse))
        stack.enter_context(mock.patch("cglsuite.cli.commands.catalogue.diagnose", refuse))
        stack.enter_context(mock.patch("cglsuite.campaigns.reference.reproduction.Reproduction.plan", refuse))
        kept = {k: v for k, v in os.environ.items() if not re.match("CGLSUITE_(SET|WORKERS|DEVICE|STORE|STRICT|PLUGINS_)", k)}
        stack.enter_context(mock.patch.dict(os.environ, kept, clear=True))
        here = os.getcwd()
        stack.callback(os.chdir, here)
        os.chdir(folder)
        yield


def outcome(bad: Bad, folder: Path, read: Any, catalogue: Any = None) -> Outcome:
    """Run a request in ``folder``; ``read()`` gives what was printed on stdout and stderr since the last call."""
    from cglsuite.cli import main
    from cglsuite.cli.options import Session

    words = bad.words
    if bad.campaign is not None:
        path = folder / "bad.toml"
        path.write_bytes(bad.campaign if isinstance(bad.campaign, bytes) else bad.campaign.encode("utf-8", "surrogatepass"))
        words = tuple(word.replace("{campaign}", str(path)) for word in words)
    accepted: list[BaseException] = []
    message = main._log_error

    def watch(error: Exception) -> int:
        if isinstance(error, Accepted):
            accepted.append(error)
            return 0
        return message(error)

    with ExitStack() as stack:
        stack.enter_context(_nothing_is_run(folder))
        stack.enter_context(mock.patch.dict(os.environ, bad.environment))
        stack.enter_context(mock.patch.object(main, "_log_error", watch))
        if catalogue is not None:
            stack.enter_context(mock.patch.object(Session, "catalogue", return_value=catalogue))
        read()
        try:
            status = main.run(words)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return Outcome(-1, f"Traceback {type(error).__name__}: {error}", False)
        out, err = read()
    return Outcome(status, err + ("\nTraceback" if "Traceback" in out else ""), bool(accepted) or status == 0)
