"""What a part of .ci/mcp prints: a line per check, and why a check failed."""

import contextlib
import subprocess
import sys
import traceback

# How much of a problem is shown.
SHOWN_LINES, SHOWN_COLUMNS = 30, 400


class PartReport:
    """The checks of a part, and whether all of them passed."""

    def __init__(self, part):
        self.part = part
        self.has_failed = False

    def check(self, name, passed, problem="", measured=""):
        """Prints a check, with what was measured, or what is wrong if it failed."""
        self.has_failed |= not passed
        word = "ok" if passed else "FAIL"
        print(f"{word} {self.part}: {name}" + (f" ({measured})" if passed and measured else ""), flush=True)
        if not passed:
            lines = str(problem).strip().splitlines()[-SHOWN_LINES:]
            print("".join(f"    {line[:SHOWN_COLUMNS]}\n" for line in lines), end="", flush=True)

    @contextlib.contextmanager
    def guard(self, name):
        """Makes a failed check of an error, so that the checks after it still run."""
        try:
            yield
        except subprocess.TimeoutExpired as error:
            self.check(name, False, f"no end after {error.timeout:.0f}s")
        except Exception:
            self.check(name, False, traceback.format_exc())

    def exit(self):
        sys.exit(1 if self.has_failed else 0)
