"""Runs a program that the kernel kills when the thread that started it ends.

Usage: ``python kill_with_parent.py PARENT PROGRAM ARGUMENT ...``. So a test run that is killed
leaves no broker behind. This is a program of its own, because Python code between fork and
exec can deadlock in a process with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for a signal when the parent ends, then become the program."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended before the call above.
    if os.getppid() == int(parent):
        os.execv(command[0], command)  # noqa: S606 - the point of the program


if __name__ == "__main__":
    main()
