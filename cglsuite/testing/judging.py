"""The judge of a method: a process that loads no plugin, holds the hidden labels, and runs the method in further processes.

The calling process has imported plugins, and a single-module plugin has its method in memory there. It sends specs, which are plain data,
and prints the findings.
"""

from __future__ import annotations

from typing import Any

from cglsuite.base.errors import PluginError
from cglsuite.base.helpers import module_path
from cglsuite.host import Catalogue
from cglsuite.testing.apart import Apart, Ended
from cglsuite.testing.findings import CheckReport, Finding, Seen, source_of
from cglsuite.testing.streams import FINE_TUNING

__all__ = ["Judge"]


class Judge(Apart):
    """The client side of the judge; a context manager that ends its process."""

    def __init__(self) -> None:
        super().__init__("cglsuite.testing.court")

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
        findings = list[Finding]()
        try:
            for answer in self.ask(name=name, entries=entries, records=records, path=module_path(), **options):
                if "refused" in answer:
                    raise PluginError(f"method {name!r} cannot be judged: {answer['refused']}")
                if "check" not in answer:
                    break
                findings.append(Finding(**answer))
                if seen is not None:
                    seen(findings[-1])
        except Ended:
            raise PluginError(f"the process that judges method {name!r} has ended; its last output is on stderr") from None
        told = tuple(findings)
        return CheckReport(kind="method", name=name, provider=answer["provider"], findings=told, source=source, installation=copy)
