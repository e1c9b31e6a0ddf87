"""Tells Jupyter's Java kernel of this environment where the d2l classes for DJL are.

``python -m tools.run.java``, after ``mvn package`` in d2l_compat/java, rewrites the kernel's
kernel.json. DJL's native library is unpacked beside the classes, not in the user's home.
"""

import json
import os
import sys
from pathlib import Path

from tools.weave.lessons import ROOT

TARGET = ROOT / "d2l_compat" / "java" / "target"
KERNEL = Path(sys.prefix, "share", "jupyter", "kernels", "java")

SPEC = {
    # Not by JJava's launcher, which stays behind with its child when Jupyter ends it.
    "argv": [
        "java",
        "-Xmx512m",
        "-XX:+UseSerialGC",  # no threads of its own
        "-XX:TieredStopAtLevel=1",  # a lesson is over before the second compiler pays
        # The same words and figures whatever the machine speaks.
        "-Dfile.encoding=UTF-8",
        "-Duser.language=en",
        "-Duser.country=US",
        f"-Djava.util.logging.config.file={os.devnull}",  # JJava tells when its loops start
        "--enable-native-access=ALL-UNNAMED",  # from Java 24 on a warning without it
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
        # Neither reports of use nor downloads.
        "OPT_OUT_TRACKING": "true",
        "DJL_OFFLINE": "true",
    },
}


def main() -> None:
    spec = KERNEL / "kernel.json"
    # Installers link a file to its copy in their cache: what is written goes into a new one.
    spec.unlink(missing_ok=True)
    spec.write_text(json.dumps(SPEC, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
