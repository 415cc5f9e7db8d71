"""Finds the toolq program."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ._errors import BinaryNotFoundError

NAME = "toolq"


def find_binary() -> str:
    """Return the path of the toolq program.

    It is the one that was installed with this package, else the one that the variable `TOOLQ_BINARY` names, else the first on
    `PATH`.

    Raises `BinaryNotFoundError` if there is none.
    """
    for path in _installed_paths():
        if _is_program(path):
            return str(path)
    named = os.environ.get("TOOLQ_BINARY")
    if named:
        found = shutil.which(named)
        if found is None:
            raise BinaryNotFoundError(
                f"TOOLQ_BINARY is {named!r}, which is not a program: name the toolq program, or unset the variable"
            )
        return str(Path(found).absolute())
    found = shutil.which(NAME)
    if found is None:
        raise BinaryNotFoundError(
            "no toolq program: not beside this package, not in TOOLQ_BINARY, and not on PATH. "
            "Install the wheel for this platform, set TOOLQ_BINARY, or pass binary=…"
        )
    return str(Path(found).absolute())


def _installed_paths() -> Iterator[Path]:
    package = Path(__file__).resolve().parent
    # Only the scripts of the place that this package itself is in: a copy in a checkout has none.
    for scheme in sysconfig.get_scheme_names():
        if os.name == "posix" and not scheme.startswith(("posix", "osx", "venv", "deb")):
            continue
        paths = sysconfig.get_paths(scheme)
        if Path(paths["purelib"]).resolve() == package.parent or Path(paths["platlib"]).resolve() == package.parent:
            yield Path(paths["scripts"]) / NAME
    # `pip install --target DIR` puts programs into DIR/bin.
    yield package.parent / "bin" / NAME
    if package.is_relative_to(Path(sys.prefix).resolve()):
        yield Path(sysconfig.get_path("scripts")) / NAME


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
