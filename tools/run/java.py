"""Configure Jupyter's Java kernel in this environment, so that it finds the d2l classes for DJL.

``python -m tools.run.java``, after ``mvn package`` in d2l_compat/java, rewrites the kernel's
kernel.json. DJL unpacks its native library beside the classes, not into the user's home folder.
"""

import json
import os
import sys
from pathlib import Path

from tools.weave.lessons import ROOT

TARGET = ROOT / "d2l_compat" / "java" / "target"
KERNEL = Path(sys.prefix, "share", "jupyter", "kernels", "java")

SPEC = {
    # Not JJava's launcher, which keeps running, with its child, when Jupyter stops it.
    "argv": [
        "java",
        "-Xmx512m",
        "-XX:+UseSerialGC",  # needs no threads
        "-XX:TieredStopAtLevel=1",  # a lesson is too short for the optimizing compiler
        # Use the same messages and number formats in every locale.
        "-Dfile.encoding=UTF-8",
        "-Duser.language=en",
        "-Duser.country=US",
        f"-Djava.util.logging.config.file={os.devnull}",  # JJava logs when its loops start
        "--enable-native-access=ALL-UNNAMED",  # otherwise Java 24 and newer would warn
        "--add-opens=jdk.jshell/jdk.jshell=ALL-UNNAMED",
        "-jar",
        "{resource_dir}/jjava.jar",
        "{connection_file}",
    ],
    "display_name": "Java (jjava)",
    "language": "java",
    "interrupt_mode": "message",
    "env": {
        "JJAVA_CLASSPATH": f"{TARGET / 'd2l.jar'}{os.pathsep}{TARGET / 'lib'}/*",
        "DJL_CACHE_DIR": str(TARGET / "djl"),
        # The lessons' arrays are small: more threads would only wait for each other, for minutes.
        "OMP_NUM_THREADS": "1",
        # No usage reports and no downloads.
        "OPT_OUT_TRACKING": "true",
        "DJL_OFFLINE": "true",
    },
}


def main() -> None:
    spec = KERNEL / "kernel.json"
    # An installer may have hard-linked the file to its cache: write a new file, not into the cache.
    spec.unlink(missing_ok=True)
    spec.write_text(json.dumps(SPEC, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
