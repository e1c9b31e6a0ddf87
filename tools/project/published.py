"""``python -m tools.project.published``: is everything there that links, buttons and first cells look for?

For when the project was published or moved. It asks the network: the project's addresses, git and pip as a reader
without an account has them, and of each service the page that a button opens.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tools.weave.launch import BINDER, BRANCH, COLAB, KAGGLE, PROJECT, REPOSITORY, SOURCE, path
from tools.weave.lessons import editions

SETTING = "set `{}` in pyproject.toml, and run `make`"
# What Binder makes its machine of, beside the notebooks.
OF_BINDER = "environment.yml", "apt.txt", "postBuild"
PATIENCE = 60  # seconds
# Some services turn away what does not say that it is a browser.
BROWSER = {"User-Agent": "Mozilla/5.0"}


def main() -> int:
    """The exit code: 0, or 1 where something is to be set; each fault is a sentence."""
    all_editions = list(editions())
    links = {each.name: each.link(all_editions[0]) for each in (SOURCE, COLAB, KAGGLE, BINDER)}
    files = [*OF_BINDER, "LICENSE", *map(path, all_editions)]
    faults = [
        *of_addresses(PROJECT["urls"]),
        *of_repository(REPOSITORY, files),
        *of_services(links),
    ]
    print(*faults or [f"All is there: {REPOSITORY}"], sep="\n")
    return 1 if faults else 0


def of_addresses(addresses: Mapping[str, str]) -> Iterator[str]:
    """By their names in pyproject.toml."""
    for name, address in addresses.items():
        setting = SETTING.format(name)
        try:
            found = _open(address)
        except URLError as error:
            network = "" if isinstance(error, HTTPError) else "see that there is a network, "
            yield f"{address} does not answer ({_why(error)}): {network}make it public or, if it is elsewhere, {setting}."
            continue
        if found.rstrip("/") != address.rstrip("/"):
            yield f"{address} has moved: {setting}, to {found}."


def of_repository(address: str, files: Iterable[str]) -> Iterator[str]:
    """What a clone of the branch lacks, and whether pip can install it."""
    with TemporaryDirectory() as folder:
        clone = ["git", "-c", "credential.helper=", "clone", "--quiet", f"--branch={BRANCH}"]
        only_its_list = ["--bare", "--depth=1", "--filter=blob:none"]
        if fault := _fault([*clone, *only_its_list, address, folder]):
            setting = "push it, or set `BRANCH` in tools/weave/launch.py"
            yield f"git cannot clone the branch {BRANCH} of {address} ({fault}): {setting}."
            return
        listed = ["git", "-C", folder, "ls-tree", "-r", "-z", "--name-only", "HEAD"]
        there = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    missing = [file for file in files if file not in there.split("\0")]
    if missing:
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        yield f"The branch {BRANCH} of {address} lacks {missing[0]}{more}: commit what `make` writes, and push it."
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    only_this = ["--no-deps", "--no-build-isolation"]
    if fault := _fault([*install, *only_this, f"git+{address}@{BRANCH}"]):
        yield f"pip cannot install git+{address}, as a notebook's first cell does ({fault}): mend it there, and push."


def of_services(links: Mapping[str, str]) -> Iterator[str]:
    """By the services' names: do they know a notebook's link?"""
    for name, link in links.items():
        try:
            _open(link)
        except URLError as error:
            setting = "if it opens in no browser either, set the service's address in tools/weave/launch.py"
            yield f"{name} does not open {link} ({_why(error)}): {setting}."


def _open(address: str) -> str:
    """The address that answers, after what may have led there. Raises URLError."""
    try:
        with urlopen(Request(address, headers=BROWSER), timeout=PATIENCE) as answer:
            return str(answer.url)
    except TimeoutError as error:
        raise URLError(error) from None


def _why(error: URLError) -> str:
    return str(error.code) if isinstance(error, HTTPError) else str(error.reason)


def _fault(command: list[str]) -> str:
    """What a command says at last, if it fails; it can ask nobody for a password."""
    alone = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    run = subprocess.run(
        command,
        cwd=Path.home(),  # not where it would be found without a network
        env=os.environ | alone,
        capture_output=True,
        text=True,
        check=False,
    )
    said = run.stderr.strip().splitlines() or [f"exit code {run.returncode}"]
    return said[-1] if run.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
