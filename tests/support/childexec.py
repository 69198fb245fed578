"""Turns itself into a cluster component: records its pid, ties its life to its owner, then execs.

Run as a script by `instances.py`, before any other import of the project, so it uses the standard library only:

    python -I -S childexec.py PIDFILE OWNER_PID PRIVILEGES COMMAND ARG...

The pid file is written before the exec, by the process itself. So there is no moment in which a component runs and
no file tells of it, however suddenly the owner dies. OWNER_PID 0 means: live on without the owner. PRIVILEGES are
`same`, or `none`: no capability is left, and none can be had again, as in a container that drops all of them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_MORE_THAN_ALL_CAPABILITIES = 64


def main(arguments: list[str]) -> None:
    pid_file, owner_pid, privileges, command = arguments[0], int(arguments[1]), arguments[2], arguments[3:]
    if owner_pid:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The owner may have died before the call above; the kernel then sends nothing.
        if os.getppid() != owner_pid:
            os._exit(1)
    if privileges == "none":
        _give_up_privileges()
    partial = f"{pid_file}.partial"
    with open(partial, "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.replace(partial, pid_file)
    os.execv(command[0], command)


def _give_up_privileges() -> None:
    """For the program that follows. Who has none to begin with is refused the first part, and has nothing to lose."""
    prctl = ctypes.CDLL(None).prctl
    for capability in range(_MORE_THAN_ALL_CAPABILITIES):
        prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
