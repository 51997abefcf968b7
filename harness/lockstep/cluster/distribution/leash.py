"""Runs a command that must not outlive the process that started it, even if that process is killed -9.

A line on standard input asks the command to stop. The end of standard input, which the kernel signals when the other
end dies, kills it. Run as a script of its own, so it imports nothing of Lockstep.
"""

from __future__ import annotations

import subprocess
import sys
import threading


def main(argv: list[str]) -> int:
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    threading.Thread(target=_obey, args=(child,), daemon=True).start()
    return child.wait()


def _obey(child: subprocess.Popen[bytes]) -> None:
    for _ in sys.stdin:
        child.terminate()
    child.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) & 0xFF)
