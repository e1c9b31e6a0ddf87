"""The package's description: README, with links that lead to its version in the repository.

Hatchling asks for it (pyproject.toml) wherever a package is built, from an sdist too: nothing else of this project
is there. A package index shows it, and has nothing beside it that a relative link or picture could lead to.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"\]\((?!\w+:|#)([^\s()]+)\)")
PICTURES = ".svg", ".png"


class Description(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        address, version = metadata["urls"]["Repository"], metadata["version"]

        def absolute(link: re.Match[str]) -> str:
            shown = "raw" if link[1].endswith(PICTURES) else "blob"
            return f"]({address}/{shown}/v{version}/{link[1]})"

        text = RELATIVE.sub(absolute, readme)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
