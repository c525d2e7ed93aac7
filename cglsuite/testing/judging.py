"""The judge of a method: a process that loads no plugin, holds the hidden labels, and runs the method in further processes.

The calling process has imported plugins, and a single-module plugin has its method in memory there. It sends specs, which are plain data,
and prints the findings.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import socket
import subprocess
from types import TracebackType
from typing import Any, Self

from cglsuite.base.errors import PluginError
from cglsuite.base.helpers import Helper, module_path
from cglsuite.host import Catalogue
from cglsuite.testing.findings import CheckReport, Finding, Seen, source_of
from cglsuite.testing.streams import FINE_TUNING

__all__ = ["Judge"]


class Judge:
    """The client side of the judge; a context manager that ends its process."""

    def __init__(self) -> None:
        self._mine, theirs = socket.socketpair()
        number = theirs.fileno()
        self._process = Helper(
            "cglsuite.testing.court", str(number), pass_fds=(number,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        theirs.close()
        self._lines = self._mine.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lines.close()
        self._mine.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        self._process.kill()
        self._process.wait()

    def examine(self, name: str, catalogue: Catalogue, *, seen: Seen | None = None, **options: Any) -> CheckReport:
        """The findings about a method of the catalogue.

        Args:
            seen: called with each one immediately. options: ``quick``, ``scenarios``, ``seed``.

        Raises:
            UnknownNameError: there is no such method. PluginError: the judge's process has ended.
        """
        entries = [e for kind in ("backbone", "dataset") for e in catalogue.entries(kind) if not e.name.startswith("testing-")]
        if name != FINE_TUNING:
            entries.append(catalogue.get("method", name))
        source, copy = ("", "") if name == FINE_TUNING else (source_of(entries[-1]), entries[-1].record.installation)
        records = list({id(entry.record): entry.record for entry in entries}.values())
        blob = pickle.dumps({"name": name, "entries": entries, "records": records, "path": module_path(), **options})
        self._mine.sendall(len(blob).to_bytes(8, "big") + blob)
        findings = list[Finding]()
        for line in self._lines:
            answer = json.loads(line)
            if "refused" in answer:
                raise PluginError(f"method {name!r} cannot be judged: {answer['refused']}")
            if "check" not in answer:
                told = tuple(findings)
                return CheckReport(kind="method", name=name, provider=answer["provider"], findings=told, source=source, installation=copy)
            findings.append(Finding(**answer))
            if seen is not None:
                seen(findings[-1])
        raise PluginError(f"the process that judges method {name!r} has ended; its last output is on stderr")
