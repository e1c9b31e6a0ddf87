"""``python -m tools.project.published``: check that links, buttons and first cells work for readers.

Run this after the project has been published or moved. It needs a network: it opens the project's addresses and a page
of each service, and it runs git and pip as a reader without an account would.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tools.weave.launch import (
    BINDER,
    BRANCH,
    COLAB,
    KAGGLE,
    PROJECT,
    REPOSITORY,
    SOURCE,
    get_project_path,
)
from tools.weave.lessons import list_notebooks

SETTING = "set `{}` in pyproject.toml, and run `make`"
# Binder builds its image from these files.
BINDER_FILES = "environment.yml", "apt.txt", "postBuild"
TIMEOUT = 60  # seconds
# Some services accept only browsers.
BROWSER = {"User-Agent": "Mozilla/5.0"}


def main() -> int:
    """Print a sentence for each problem, with what to change; return 1 if there are any."""
    notebooks = list(list_notebooks())
    services = (SOURCE, COLAB, KAGGLE, BINDER)
    links = {service.name: service.link(notebooks[0]) for service in services}
    files = [*BINDER_FILES, "LICENSE", *map(get_project_path, notebooks)]
    problems = [
        *check_addresses(PROJECT["urls"]),
        *check_repository(REPOSITORY, files),
        *check_services(links),
    ]
    print(*problems or [f"Everything is published: {REPOSITORY}"], sep="\n")
    return 1 if problems else 0


def check_addresses(addresses: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each address that does not answer or has moved; keys are names in pyproject.toml."""
    for name, address in addresses.items():
        setting = SETTING.format(name)
        try:
            final_address = _open(address)
        except URLError as error:
            network = "" if isinstance(error, HTTPError) else "check the network, "
            yield f"{address} does not answer ({_describe_error(error)}): {network}make it public or, if it is elsewhere, {setting}."
            continue
        if final_address.rstrip("/") != address.rstrip("/"):
            yield f"{address} has moved: {setting}, to {final_address}."


def check_repository(address: str, files: Iterable[str]) -> Iterator[str]:
    """Yield a sentence if the branch cannot be cloned, lacks files, or cannot be installed by pip."""
    with TemporaryDirectory() as folder:
        clone = ["git", "-c", "credential.helper=", "clone", "--quiet", f"--branch={BRANCH}"]
        names_only = ["--bare", "--depth=1", "--filter=blob:none"]
        if error := _run([*clone, *names_only, address, folder]):
            setting = "push it, or set `BRANCH` in tools/weave/launch.py"
            yield f"git cannot clone the branch {BRANCH} of {address} ({error}): {setting}."
            return
        list_files = ["git", "-C", folder, "ls-tree", "-r", "-z", "--name-only", "HEAD"]
        listing = subprocess.run(list_files, capture_output=True, text=True, check=True).stdout
    published_files = listing.split("\0")
    missing = [file for file in files if file not in published_files]
    if missing:
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        yield f"The branch {BRANCH} of {address} lacks {missing[0]}{more}: commit what `make` writes, and push it."
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    no_dependencies = ["--no-deps", "--no-build-isolation"]
    if error := _run([*install, *no_dependencies, f"git+{address}@{BRANCH}"]):
        yield f"pip cannot install git+{address}, as a notebook's first cell does ({error}): fix it there, and push."


def check_services(links: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each service that does not open its link to a notebook; keys are the services' names."""
    for name, link in links.items():
        try:
            _open(link)
        except URLError as error:
            setting = (
                "if no browser opens it either, set the service's address in tools/weave/launch.py"
            )
            yield f"{name} does not open {link} ({_describe_error(error)}): {setting}."


def _open(address: str) -> str:
    """Open an address; return the final one, after redirects. Raise URLError if that fails."""
    try:
        with urlopen(Request(address, headers=BROWSER), timeout=TIMEOUT) as response:
            return str(response.url)
    except TimeoutError as error:
        raise URLError(error) from None


def _describe_error(error: URLError) -> str:
    return str(error.code) if isinstance(error, HTTPError) else str(error.reason)


def _run(command: list[str]) -> str:
    """Run a command that cannot ask for a password; return the last line of its error, or ""."""
    environment = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    process = subprocess.run(
        command,
        cwd=Path.home(),  # not in this project, which pip would find without a network
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
    return lines[-1] if process.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
