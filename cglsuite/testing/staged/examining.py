"""Run the checks of all kinds of entries except methods, in a process forked for each request.

This process imports torch and the suite with its own hash seed, and does not run plugins. The first argument is the descriptor of a socket.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from cglsuite.base.errors import NotApplicable
from cglsuite.base.traces import end_with_parent
from cglsuite.host import Catalogue
from cglsuite.testing.apart import further_processes, requests_on
from cglsuite.testing.checks import OUTCOMES, examine
from cglsuite.testing.findings import Finding, error_text

_LIMIT_S = 3600.0


def main() -> None:
    """Serve requests on the socket until it is closed."""
    server, line = os.getpid(), socket.socket(fileno=int(sys.argv[1]))
    for blob, compares, answer in requests_on(line):
        if compares:
            further_processes()
        pid = os.fork()
        if pid == 0:
            end_with_parent(server)
            signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
            _answer(pickle.loads(blob), answer)  # written by the check itself
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        answer(ended=how)


def _answer(request: dict[str, Any], answer: Callable[..., None]) -> None:
    sys.path[:] = request["path"]
    for name in [name for name in os.environ if name.startswith("CGLSUITE_")]:
        del os.environ[name]
    os.environ.update(request["environment"])
    catalogue, kind, name = Catalogue(request["records"], request["entries"]), request["kind"], request["name"]

    def tell(finding: Finding) -> None:
        answer(**asdict(finding))

    if "options" in request:
        report = examine(kind, name, catalogue, on_finding=tell, **request["options"])
        answer(checks=report.checks)
        return
    try:
        answer(outcomes=list(OUTCOMES[kind](catalogue, catalogue.get(kind, name))))
    except NotApplicable as reason:
        answer(absent=str(reason))
    except Exception as error:  # noqa: BLE001 - the check detects errors in third-party code
        answer(failed=error_text(error))


if __name__ == "__main__":
    main()
