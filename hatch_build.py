"""The wheel's console command: executable, whatever mode its source has after an archive without modes was unpacked."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleCommand(BuildHookInterface[Any]):
    """Adds `bin/planrun` to the wheel's scripts with mode 755.

    pip keeps a script's mode, and the mode is that of the source file. ZIP archives unpacked by Python, and checkouts
    with `core.fileMode=false`, lose it. The copy leaves the source as it is: it may be read-only.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the script and give it its mode before hatchling reads it."""
        self._folder = tempfile.mkdtemp()
        script = Path(shutil.copyfile(Path(self.root, "bin", "planrun"), Path(self._folder, "planrun")))
        script.chmod(0o755)
        build_data["shared_scripts"][str(script)] = "planrun"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy."""
        shutil.rmtree(self._folder, ignore_errors=True)
