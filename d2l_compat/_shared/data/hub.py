"""Data sets from the network, or from the folder that ``D2L_DATA`` names.

A download goes into ``NAME.part``, is resumed if it is interrupted, is checked, and only then gets
its name. So a file is never incomplete, and a failed download does not destroy an earlier file.
"""

import errno
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from d2l_compat._shared.checks import check_instance, message
from d2l_compat._shared.data.files import (
    describe_space,
    has_check_sum,
    lock_folder,
    parse_check_sum,
    rename,
    rephrase_os_errors,
    verify_check_sum,
)

DATA_URL = "https://d2l-data.s3-accelerate.amazonaws.com/"
_FASHION_URL = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
# Name: address, and SHA-1 (or MD5, SHA-256) of the file. D2L's programs add entries, and readers
# may replace them.
DATA_HUB: dict[str, tuple[str, str | None]] = {
    "aclImdb": (DATA_URL + "aclImdb_v1.tar.gz", "01ada507287d82875905620988597833ad4e0903"),
    "airfoil": (
        DATA_URL + "airfoil_self_noise.dat",
        "76e5be1548fd8222e5074cf0faae75edff8cf93f",
    ),
    "banana-detection": (
        DATA_URL + "banana-detection.zip",
        "5de26c8fce5ccdea9f91267273464dc968d20d72",
    ),
    "cifar10_tiny": (
        DATA_URL + "kaggle_cifar10_tiny.zip",
        "2068874e4b9a9f0fb07ebe0ad2b29754449ccacd",
    ),
    "ctr": (DATA_URL + "ctr.zip", "e18327c48c8e8e5c23da714dd614e390d369843f"),
    "dog_tiny": (DATA_URL + "kaggle_dog_tiny.zip", "0cb91d09b814ecdc07b50f31f8dcad3e81d6a86d"),
    "fra-eng": (DATA_URL + "fra-eng.zip", "94646ad1522d915e7b0f9296181140edcf86a4f5"),
    "glove.42b.300d": (
        DATA_URL + "glove.42B.300d.zip",
        "b5116e234e9eb9076672cfeabf5469f3eec904fa",
    ),
    "glove.6b.100d": (
        DATA_URL + "glove.6B.100d.zip",
        "cd43bfb07e44e6f27cbcc7bc9ae3d80284fdaf5a",
    ),
    "glove.6b.50d": (
        DATA_URL + "glove.6B.50d.zip",
        "0b8703943ccdb6eb788e6f091b8946e82231bc4d",
    ),
    "hotdog": (DATA_URL + "hotdog.zip", "fba480ffa8aa7e0febbb511d181409f899b9baa5"),
    "kaggle_house_test": (
        DATA_URL + "kaggle_house_pred_test.csv",
        "fa19780a7b011d9b009e8bff8e99922a8ee2eb90",
    ),
    "kaggle_house_train": (
        DATA_URL + "kaggle_house_pred_train.csv",
        "585e9cc93e70b39160e7921475f9bcd7d31219ce",
    ),
    "ml-100k": (
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "cd4dcac4241c8a4ad7badc7ca635da8a69dddb83",
    ),
    "pokemon": (DATA_URL + "pokemon.zip", "c065c0e2593b8b161a2d7873e42418bf6a21106c"),
    "ptb": (DATA_URL + "ptb.zip", "319d85e578af0cdc590547f26231e4e31cdf1e42"),
    "SNLI": (
        "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
        "9fcde07509c7e87ec61c640c1b2753d9041758e4",
    ),
    "t10k-images-idx3-ubyte": (
        _FASHION_URL + "t10k-images-idx3-ubyte.gz",
        "bef4ecab320f06d8554ea6380940ec79",
    ),
    "t10k-labels-idx1-ubyte": (
        _FASHION_URL + "t10k-labels-idx1-ubyte.gz",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    "time_machine": (
        DATA_URL + "timemachine.txt",
        "090b5e7e70c295757f55df93cb0a180b9691891a",
    ),
    "train-images-idx3-ubyte": (
        _FASHION_URL + "train-images-idx3-ubyte.gz",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    ),
    "train-labels-idx1-ubyte": (
        _FASHION_URL + "train-labels-idx1-ubyte.gz",
        "25c81989df183df01b3e8a0aad5dffbe",
    ),
    "voc2012": (
        DATA_URL + "VOCtrainval_11-May-2012.tar",
        "4e443f8a2eca6b1dac8a6c57641b67dd40621a49",
    ),
    "wiki.en": (DATA_URL + "wiki.en.zip", "c1816da3821ae9f43899be655002f6c723e91b88"),
    "wikitext-2": (
        "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",
        "3c914d17d80b1459be871a5039ac23e752a53cbe",
    ),
}


def download(url: str, folder: str | Path = "../data", sha1_hash: str | None = None) -> str:
    """Download a file into ``folder`` if it is not there yet, and return its path.

    ``url`` may also be a name in ``DATA_HUB``, which has the address and the check sum. ``http`` is replaced by
    ``https``. Without a check sum, the file is downloaded each time. If the environment variable ``D2L_DATA`` names a
    folder, the file there is checked, and ``folder`` gets a link to it; nothing is downloaded. Where
    links are not allowed, as on Windows, it gets a copy.

    Raises KeyError for a name that ``DATA_HUB`` does not have, FileNotFoundError if the folder of ``D2L_DATA`` has no
    such file, ConnectionError if the download fails, ValueError if the file's check sum is wrong or it is too large,
    OSError if it cannot be written, and ValueError or TypeError for an address or a check sum of another form. A check
    sum with a wrong number of digits causes a warning, and the file is not checked.
    """
    url, name, check_sum = _resolve(url, sha1_hash)
    check_instance("folder", folder, (str, os.PathLike), "a folder's name")
    source = _find_in_d2l_data(url, name, check_sum)
    path = Path(folder) / name
    with rephrase_os_errors("folder", path.parent, describe_space()):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        with lock_folder(path.parent):
            is_present = check_sum and path.exists() and has_check_sum(path, check_sum)
            if source and not is_present:
                _link(path, source)
            elif not is_present:
                from d2l_compat._shared.data.fetching import fetch  # imported on first use

                print(f"Downloading {path} from {url} ...")
                fetch(url, path, check_sum)
    return str(path)


def download_all() -> None:
    """Download every file in ``DATA_HUB`` into ``../data``, several gigabytes. Raises what :func:`download` raises."""
    for name in DATA_HUB:
        download(name)


def locate(name: str, folder: str | Path) -> str:
    """Return the path of a file in ``DATA_HUB`` for reading: in the folder of ``D2L_DATA``, else downloaded.

    Nothing is written if ``D2L_DATA`` is set. Raises what :func:`download` raises.
    """
    return str(_find_in_d2l_data(*_resolve(name, None)) or download(name, folder))


def _resolve(url: str, sha1_hash: str | None) -> tuple[str, str, str | None]:
    """Return the address, the file's name and its check sum for an address or a name in ``DATA_HUB``."""
    from d2l_compat._shared.data.fetching import to_https  # imported on first use

    check_instance("url", url, str, "an https address, or a name")
    if not url.startswith(("http://", "https://")):
        if url not in DATA_HUB:
            known = ", ".join(DATA_HUB)
            raise KeyError(message("url", repr(url), f"an https address, or a name: {known}"))
        url, sha1_hash = DATA_HUB[url]
    url = to_https(url)
    check_sum = parse_check_sum("sha1_hash", sha1_hash)
    name = Path(urlsplit(url).path).name
    if name in ("", ".."):
        raise ValueError(message("url", repr(url), "an address that ends in the name of a file"))
    return url, name, check_sum


def _find_in_d2l_data(url: str, name: str, check_sum: str | None) -> Path | None:
    """Return the checked file in the folder that ``D2L_DATA`` names, or None if it is not set."""
    folder = os.environ.get("D2L_DATA")
    if not folder:
        return None
    path = Path(folder).expanduser() / name  # only a POSIX shell replaces ~
    with rephrase_os_errors("D2L_DATA", path, "a file that can be read"):
        if not path.is_file():
            need = f"{name} from {url} in the folder that D2L_DATA names"
            raise FileNotFoundError(message("D2L_DATA", f"{path.parent} without that file", need))
        verify_check_sum(path, check_sum)
    return path


def _link(path: Path, source: Path) -> None:
    """Replace ``path`` in one step by a link to ``source``, or by a copy if the system or the disk allows no links."""
    if path.exists() and path.samefile(source):
        return
    link = path.with_name(f"{path.name}.link")
    link.unlink(missing_ok=True)
    try:
        link.symlink_to(source.resolve())
    except (OSError, NotImplementedError):
        shutil.copyfile(source, link)
    rename(link, path)


def extract(filename: str | Path, folder: str | Path | None = None) -> None:
    """Unpack a .zip, .tar or .tar.gz file completely, or not at all, into ``folder``, by default its own.

    Raises ValueError for another kind of file, or one that is broken, would write outside of the folder or unpack to
    too many bytes, and OSError if it cannot be read or written.
    """
    from d2l_compat._shared.data.archives import unpack  # imported on first use

    check_instance("filename", filename, (str, os.PathLike), "a file's name")
    if folder is not None:
        check_instance("folder", folder, (str, os.PathLike), "a folder's name, or None")
    path = Path(filename)
    unpack(path, Path(folder) if folder is not None else path.parent)


def download_extract(name: str, folder: str | Path | None = None) -> str:
    """Download an archive of ``DATA_HUB``, unpack it in place, and return the path of its folder.

    That is the archive's name without its suffix, or ``folder``. Raises what :func:`download` and
    :func:`extract` raise.
    """
    if folder is not None:
        check_instance("folder", folder, (str, Path), "a folder's name, or None")
    path = Path(download(name))
    extract(path)
    return str(path.parent / folder if folder else path.with_suffix(""))
