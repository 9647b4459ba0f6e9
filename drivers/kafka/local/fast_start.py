"""Makes brokers start faster, with files that one broker prepares and that stay in the user's cache.

- ``classes.jsa``: the classes of a started broker, which a JVM maps into memory instead of
  reading them from the jars (class data sharing). It belongs to one build of Java and to these jars.
- ``bootstrap.checkpoint``: what ``StorageTool format`` writes for a cluster without SCRAM users.

Nothing depends on these files: where they cannot be made, brokers start as without them.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from notifier_kafka.errors import MessagingException, TransportUnavailable
from notifier_kafka.jvm import cache_directory

from . import java_command
from .broker_node import BOOTSTRAP_CHECKPOINT, BrokerNode
from .broker_users import Security
from .certificates import Authority
from .java_command import Runtime
from .listener_properties import properties, security_properties
from .saved_state import SavedState

LOG = logging.getLogger(__name__)

CLASS_ARCHIVE = "classes.jsa"
_STEP_TIMEOUT_SECONDS = 120.0
_RETRY_SECONDS = 24 * 3600.0
_KEEP_SECONDS = 30 * 24 * 3600.0
# Each takes 60 MB. A program in the place of java, as the tests have some, counts as a build of its own.
_KEEP_BUILDS = 4


def prepare(runtime: Runtime) -> Runtime:
    """Return ``runtime`` with the files that make a start faster; make them if the cache has none.

    Blocks while another process makes them.
    """
    try:
        kept = _kept(runtime)
        if not _is_made(kept):
            with _locked(kept):
                # Another process may have made them while this one waited.
                if not _is_made(kept):
                    _make(runtime, kept)
    except OSError as error:
        LOG.debug("Brokers start without a class archive: %s", error)
        return runtime
    archive, checkpoint = kept / CLASS_ARCHIVE, kept / BOOTSTRAP_CHECKPOINT
    return dataclasses.replace(
        runtime,
        class_archive=archive if archive.exists() else None,
        bootstrap_checkpoint=checkpoint if checkpoint.exists() else None,
    )


def _kept(runtime: Runtime) -> Path:
    """Return the directory in the cache for this build of Java and these jars."""
    # By path, time and size, because the JVM refuses an archive when one of them has changed.
    files = [runtime.java.resolve(), *map(Path, runtime.classpath.split(":"))]
    described = json.dumps([(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files])
    return cache_directory.directory("fast-start") / hashlib.sha256(described.encode()).hexdigest()[:16]


def _is_made(kept: Path) -> bool:
    if (kept / CLASS_ARCHIVE).exists():
        return True
    # An attempt that failed, perhaps on a machine that was too busy, is not repeated at each start.
    return kept.is_dir() and 0 <= time.time() - kept.stat().st_mtime < _RETRY_SECONDS


@contextlib.contextmanager
def _locked(kept: Path) -> Iterator[None]:
    # For the owner alone, because nothing verifies the classes in an archive later.
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with kept.with_name(f"{kept.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(runtime: Runtime, kept: Path) -> None:
    _remove_old(kept.parent)
    # Beside the target, so that one rename moves all files there.
    with tempfile.TemporaryDirectory(prefix=f"{kept.name}.part-", dir=kept.parent) as made:
        work, result = Path(made), Path(made, "result")
        result.mkdir(mode=0o700)
        try:
            _make_files(runtime, work, result)
        except (MessagingException, OSError, subprocess.SubprocessError) as error:
            LOG.debug("Brokers start without a class archive: %s", error)
        shutil.rmtree(kept, ignore_errors=True)
        os.replace(result, kept)


def _remove_old(directory: Path) -> None:
    """Remove what was made long ago, or for too many builds. What is still in use is made again."""
    made: list[tuple[float, Path]] = []
    for entry in directory.iterdir():
        # Another process may remove its temporary directory meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if entry.is_dir():
                made.append((entry.stat().st_mtime, entry))
    # A name with a dot is the temporary directory of a process that is at work, or was killed.
    kept = [entry for _, entry in sorted(made, reverse=True) if "." not in entry.name]
    # One less, because another is about to be made.
    surplus = kept[_KEEP_BUILDS - 1 :]
    for modified, entry in made:
        if entry in surplus or time.time() - modified > _KEEP_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)


def _make_files(runtime: Runtime, work: Path, result: Path) -> None:
    state = SavedState.new(1, 0, Security(), {})
    node = BrokerNode(work / "node", 1, None, ends_with_parent=True)
    node.configure(
        properties(1, node.data, state.ports, secured=False)
        | security_properties(state.security, state.passwords, Authority(work))
    )
    node.format(runtime, state.cluster_id, [])
    shutil.copyfile(node.data / BOOTSTRAP_CHECKPOINT, result / BOOTSTRAP_CHECKPOINT)
    classes = work / "classes"
    try:
        node.launch(runtime, "-Xshare:off", f"-XX:DumpLoadedClassList={classes}")
        node.wait_ready(time.monotonic() + _STEP_TIMEOUT_SECONDS)
        node.kill(signal.SIGTERM)
        node.end(_STEP_TIMEOUT_SECONDS)
    finally:
        node.kill()
    _dump(runtime, classes, result / CLASS_ARCHIVE)


def _dump(runtime: Runtime, classes: Path, archive: Path) -> None:
    part = archive.with_suffix(".part")
    options = ("-Xshare:dump", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={part}")
    command = runtime.command("kafka.Kafka", options=options)
    ran = java_command.run(command, classes.with_suffix(".arguments"), _STEP_TIMEOUT_SECONDS)
    if ran.returncode:
        raise TransportUnavailable(f"Java dumped no classes: exit code {ran.returncode}: {ran.stderr[-200:]}")
    os.replace(part, archive)
