"""Runs a program that the kernel kills when the thread that started it ends.

``python leash.py PARENT PROGRAM ARGUMENT ...``. A test run that is itself killed leaves no
broker behind. Done after the fork and before the program, by a program of its own: Python
code between fork and exec can deadlock where threads are.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent and become the program."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended before the line above.
    if os.getppid() == int(parent):
        os.execv(command[0], command)  # noqa: S606 - the point of the program


if __name__ == "__main__":
    main()
