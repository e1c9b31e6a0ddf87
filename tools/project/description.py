"""Make the package's description from README, with links to this version of the repository.

A package index shows the description, in which relative links would be broken. Hatchling runs this file
(pyproject.toml) whenever a package is built, also from an sdist, which lacks the project's other modules: import none
of them.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"\]\((?!\w+:|#)([^\s()]+)\)")
IMAGE_SUFFIXES = ".svg", ".png"


class Description(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        address, version = metadata["urls"]["Repository"], metadata["version"]

        def make_absolute(link: re.Match[str]) -> str:
            view = "raw" if link[1].endswith(IMAGE_SUFFIXES) else "blob"
            return f"]({address}/{view}/v{version}/{link[1]})"

        text = RELATIVE.sub(make_absolute, readme)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
