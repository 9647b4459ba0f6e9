"""The file of metrics: what it may say, and which line is at fault when it may not."""

import pathlib
import re
import subprocess
import sys
from importlib import resources

import pytest

from notifier_kafka.errors import ConfigurationError
from spark_sinks import language
from spark_sinks.language import field_paths, metrics_file
from spark_sinks.language.field_paths import FieldPath
from spark_sinks.language.metrics import Condition, Constant, Duration, Latency, Metric, Selection, Window
from tests.shared.checkout import ROOT

ETC = ROOT / "etc" / "notifier_kafka"

EVERYTHING = """
metrics:
  - name: vcpus
    kind: sum
    unit: vcpu
    event_type: [compute.instance.*, "!*.exists"]
    publisher: compute.*
    priority: [info, WARN]
    where:
      - {path: $.payload.state, equals: active}
      - {path: "$.payload.flavor['memory mb']", above: 512}
      - {path: $.payload.tags, exists: false}
      - {path: host, one_of: [a, b]}
    value: $.payload.flavor.vcpus
    group_by: [host, {project: $.payload.tenant_id}]
    window: {width: 5m, every: 1m}
    rollups: [1h, 1d]
  - {name: slow, kind: percentiles, percentiles: [50, 99.9], value: latency, window: 30s}
  - name: reboot
    kind: max
    value: {start: "*.start", end: "*.end", key: [$.payload.id, $.context.request_id], within: 2h}
  - {name: sizes, kind: histogram, buckets: [0, 1.5, 10], value: "$.payload.disks[0].size"}
  - {name: five, kind: sum, value: 5}
  - {name: who, kind: top, k: 3, value: publisher}
"""


def write(directory: pathlib.Path, text: str) -> str:
    path = directory / "metrics.yaml"
    path.write_text(text)
    return str(path)


def test_everything_a_file_may_say(tmp_path: pathlib.Path) -> None:
    vcpus, slow, reboot, sizes, five, who = metrics_file.read(write(tmp_path, EVERYTHING), 10)
    minute, hour, day = Window(300, 60), Window(3600, 3600), Window(86400, 86400)

    assert vcpus == Metric(
        "vcpus",
        "sum",
        "vcpu",
        Selection(
            ("compute.instance.*", "!*.exists"),
            ("compute.*",),
            ("INFO", "WARN"),
            (
                Condition(FieldPath("payload", ("state",)), "equals", "active"),
                Condition(FieldPath("payload", ("flavor", "memory mb")), "above", 512),
                Condition(FieldPath("payload", ("tags",)), "exists", operand=False),
                Condition(FieldPath("host"), "one_of", ("a", "b")),
            ),
        ),
        FieldPath("payload", ("flavor", "vcpus")),
        (("host", FieldPath("host")), ("project", FieldPath("payload", ("tenant_id",)))),
        (minute, hour, day),
    )
    assert (slow.value, slow.percentiles, slow.windows) == (Latency(), (50.0, 99.9), (Window(30, 30),))
    keys = (FieldPath("payload", ("id",)), FieldPath("context", ("request_id",)))
    assert (reboot.value, reboot.windows) == (Duration(".start", ".end", keys, 7200), (Window(10, 10),))
    assert (sizes.value, sizes.bounds) == (FieldPath("payload", ("disks", 0, "size")), (0.0, 1.5, 10.0))
    assert five.value == Constant(5)
    assert (who.value, who.k) == (FieldPath("publisher_id"), 3)


# The line at fault is the one with the mark, and what is said about it.
REFUSED = [
    ("metrics:\n- {name: a, kind: cuont} #!", "unknown kind 'cuont'; did you mean 'count'?"),
    ("metrics:\n- name: a\n  kind: count\n  gruop_by: host #!", "'gruop_by'; did you mean 'group_by'?"),
    ("metrics:\n- name: a\n  kind: count\n  colour: red #!", "unknown key 'colour'; known are name, kind"),
    ("metrics:\n- {name: a, kind: count}\n- {name: a, kind: sum} #!", "'a' is taken by the metric on line 2"),
    ("metrics:\n- name: a\n  name: b #!\n  kind: sum", "the key 'name' occurs twice"),
    ("metrics:\n- name: a\n  kind: sum\n  value: $.payload[*].x #!", "wildcards, filters and slices"),
    ("metrics:\n- name: a\n  kind: sum\n  value: $.paylod.x #!", "no 'paylod'; did you mean payload?"),
    ("metrics:\n- name: a\n  kind: sum\n  value: $ #!", "begins with one of payload"),
    ("metrics:\n- name: a\n  kind: sum\n  value: $[0] #!", "begins with one of payload"),
    ("metrics:\n- name: a\n  kind: sum\n  value: $.event_type.x #!", "is text and has nothing below"),
    ("metrics:\n- name: a\n  kind: sum\n  value: \"$.payload['a\\\"'b']\" #!", "is not .name"),
    ("metrics:\n- name: a\n  kind: sum\n  value: true #!", "value is not a number"),
    ("metrics:\n- name: a\n  kind: sum\n  value: .nan #!", "value is not a number"),
    (f"metrics:\n- name: a\n  kind: sum\n  value: {'9' * 400} #!", "value is too large"),
    (f"metrics:\n- name: a\n  kind: sum\n  value: 0x{'f' * 400} #!", "value is too large"),
    (
        f"metrics:\n- name: a\n  kind: histogram\n  value: latency\n  buckets: [-{'9' * 400}] #!",
        "buckets is too large",
    ),
    ("metrics:\n- {name: a, kind: distinct} #!", "distinct needs a value"),
    ("metrics:\n- {name: a, kind: gap, value: latency} #!", "gap takes no value"),
    (
        "metrics:\n- {name: a, kind: top, value: {start: '*.a', end: '*.b', key: host}} #!",
        "cannot count durations",
    ),
    ("metrics:\n- {kind: count} #!", "a metric needs a name"),
    ("metrics:\n- {name: a} #!", "a metric needs a kind"),
    ("metrics:\n- name: a b #!\n  kind: count", "name 'a b' is not made of"),
    ("metrics:\n- name: 5 #!\n  kind: count", "name is not text"),
    ("metrics:\n- name: a\n  kind: count\n  window: 1 minute #!", "'1 minute' is not a time span such as"),
    ("metrics:\n- name: a\n  kind: count\n  window: 0s #!", "'0s' is not a time span"),
    (
        "metrics:\n- name: a\n  kind: count\n  window: {width: 5m, every: 2m} #!",
        "must be a multiple of every",
    ),
    ("metrics:\n- name: a\n  kind: count\n  window: {width: 1d, every: 1s} #!", "at most 100 times"),
    ("metrics:\n- name: a\n  kind: count\n  window: {width: 1d} #!", "needs width and every"),
    ("metrics:\n- name: a\n  kind: count\n  window: 1h\n  rollups: [1d, 1m] #!", "a roll-up must be wider"),
    ("metrics:\n- name: a\n  kind: count\n  priority: [info, worn] #!", "'worn'; did you mean 'warn'?"),
    (
        "metrics:\n- name: a\n  kind: count\n  where:\n  - path: $.payload.x #!",
        "needs a path and one of equals",
    ),
    (
        "metrics:\n- name: a\n  kind: count\n  where: {path: host, above: x} #!",
        "where is a mapping, not a list",
    ),
    ("metrics:\n- name: a\n  kind: count\n  where:\n  - {path: host, above: x} #!", "above is not a number"),
    (
        "metrics:\n- name: a\n  kind: count\n  where:\n  - {path: host, exists: x} #!",
        "neither true nor false",
    ),
    ("metrics:\n- name: a\n  kind: count\n  group_by: [host, host] #!", "'host' is taken"),
    ("metrics:\n- name: a\n  kind: count\n  group_by: [{le: host}] #!", "'le' is taken"),
    ("metrics:\n- name: a\n  kind: count\n  group_by: [] #!", "group_by is empty"),
    (
        "metrics:\n- name: a\n  kind: count\n  percentiles: [50] #!",
        "belongs to the kind percentiles, and this metric's kind is count",
    ),
    ("metrics:\n- name: a\n  kind: percentiles\n  percentiles: [99, 50] #!\n  value: latency", "ascending"),
    (
        "metrics:\n- name: a\n  kind: percentiles\n  percentiles: [0] #!\n  value: latency",
        "above 0 and at most",
    ),
    ("metrics:\n- name: a\n  kind: sum\n  value: 1.0e+25 #!", "value must be below 1e+18: larger sums"),
    ("metrics:\n- name: a\n  kind: top\n  k: 0 #!\n  value: host", "k must be a whole number from 1"),
    ("metrics:\n- name: a\n  kind: max\n  value: #!\n    start: '*.s'\n    end: '*.e'", "key is missing"),
    (
        "metrics:\n- name: a\n  kind: max\n  value: {start: a, end: '*.e', key: host} #!",
        "'a' is not an ending of event types, such as *.start",
    ),
    ("metrics:\n- name: a\n  kind: max\n  value: {start: '*.e', end: '*.e', key: host} #!", "are the same"),
    ("metrics: [ #!", "not YAML"),
    ("metrics: {} #!", "metrics is a mapping, not a list"),
    ("metrics: [] #!", "metrics is empty"),
    ("metrics: [] #!\nmetric: []", "either 'metrics' or Ceilometer's"),
    ("mertics: [] #!", "unknown key 'mertics'; did you mean 'metrics'?"),
    ("- a #!", "the file is not a mapping"),
    ("metrics: !!python/object:os.system {} #!", "metrics is a mapping"),
    ("metrics: !!int x #!", "cannot be read as int"),
    ("metrics: &a [*a] #!", "nested too deeply"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refusals_name_the_line(tmp_path: pathlib.Path, text: str, reason: str) -> None:
    file = write(tmp_path, text)
    line = 1 + next(number for number, each in enumerate(text.split("\n")) if "#!" in each)
    with pytest.raises(ConfigurationError) as caught:
        metrics_file.read(file)
    said = str(caught.value)
    assert said.startswith(f"{file}, line {line}: ")
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "is empty"), (b"\xff\xfe\x00", "not "), (b"\x00", "not YAML")]
)
def test_files_that_are_none(tmp_path: pathlib.Path, content: bytes, reason: str) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ConfigurationError, match=reason):
        metrics_file.read(str(tmp_path / "m"))
    with pytest.raises(ConfigurationError, match="missing cannot be read: No such file"):
        metrics_file.read(str(tmp_path / "missing"))


METER = """
metric:
  - name: memory
    event_type: ["compute.instance.create.end", "compute.instance.exists"]
    type: gauge
    unit: MB
    volume: $.payload.memory_mb
    resource_id: $.payload.instance_id
    project_id: $.payload.tenant_id
    user_id: $.payload.user_id
    metadata: {host: $.payload.host}
  - {name: image.download, event_type: image.send, type: delta, unit: B, volume: $.payload.bytes_sent}
  - {name: image, event_type: image.*, type: gauge, unit: image, volume: 1}
"""


def test_ceilometers_meters(tmp_path: pathlib.Path) -> None:
    memory, download, image = metrics_file.read(write(tmp_path, METER))
    assert memory == Metric(
        "memory",
        "last",
        "MB",
        Selection(("compute.instance.create.end", "compute.instance.exists")),
        FieldPath("payload", ("memory_mb",)),
        (
            ("resource_id", FieldPath("payload", ("instance_id",))),
            ("project_id", FieldPath("payload", ("tenant_id",))),
            ("user_id", FieldPath("payload", ("user_id",))),
            ("metadata.host", FieldPath("payload", ("host",))),
        ),
    )
    assert (download.kind, image.value) == ("sum", Constant(1))


# In the style of the file that Ceilometer brings: common members by reference, and expressions.
STOCK = """
metric:
  - name: server.memory
    event_type: &server
      - server.change.*
      - 'server\\.exists'
      - .*\\.server\\..*
    type: gauge
    unit: MB
    volume: $.payload.memory
    metadata: &common
      host: $.payload.host
      flavour: $.payload.flavour
  - name: server.cores
    event_type: *server
    type: gauge
    unit: core
    volume: $.payload.cores
    metadata:
      <<: *common
      host: $.payload.node
  - name: disk
    event_type: "volume*"
    type: delta
    unit: GB
    volume: 1
    metadata: {<<: [{a: $.payload.x}, {a: $.payload.y, b: $.payload.z}]}
"""


def test_the_style_of_ceilometers_own_file(tmp_path: pathlib.Path) -> None:
    memory, cores, disk = metrics_file.read(write(tmp_path, STOCK))
    assert memory.selection.event_types == ("server.change.*", "server.exists", "*.server.*")
    assert cores.selection == memory.selection
    assert dict(cores.group_by) == {
        "metadata.host": FieldPath("payload", ("node",)),
        "metadata.flavour": FieldPath("payload", ("flavour",)),
    }
    assert disk.selection.event_types == ("volume*",)
    assert dict(disk.group_by) == {
        "metadata.a": FieldPath("payload", ("x",)),
        "metadata.b": FieldPath("payload", ("z",)),
    }


@pytest.mark.parametrize(
    "pattern",
    [
        "server.(?!create|update).*",
        "(a.b|c.d)",
        "^a.b",
        "a.b$",
        "a.+",
        "a.[bc]",
        "a.b{2}",
        "servers?",
        "a\\d",
        "!a",
    ],
)
def test_expressions_that_are_no_patterns(tmp_path: pathlib.Path, pattern: str) -> None:
    """Taken for a pattern of ours, they would select nothing, and nobody would know."""
    meter = f"metric:\n- name: a\n  event_type: [b.c, '{pattern}']\n  type: gauge\n  unit: u\n  volume: 1\n"
    with pytest.raises(ConfigurationError, match=re.escape(f"line 3: event_type {pattern!r}: of regular")):
        metrics_file.read(write(tmp_path, meter))


@pytest.mark.parametrize("merged", ["<<: x", "<<: [x]", "<<: [{a: 1}, [b]]"])
def test_what_cannot_be_merged(tmp_path: pathlib.Path, merged: str) -> None:
    with pytest.raises(ConfigurationError, match=r"line 2: << is not a mapping"):
        metrics_file.read(write(tmp_path, f"metrics:\n- {{name: a, {merged}}}\n"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("lookup: [name]", "Ceilometer's 'lookup' is not supported"),
        ("timestamp: $.payload.when", "Ceilometer's 'timestamp' is not supported"),
        ("multi: [name]", "'multi'"),
        ("user_metadata: $.payload.metadata", "'user_metadata'"),
        ("project_id: {fields: $.payload.a, plugin: {name: split}}", "'plugin' and 'fields'"),
        (
            "volume: {fields: $.payload.a, plugin: {name: split}}",
            "volume: Ceilometer's 'plugin' and 'fields'",
        ),
        ("resource_id: $.payload.*.id", "wildcards"),
        ("resource_id: 5 * 3", "arithmetic is not supported"),
        ("colour: red", "unknown key 'colour'"),
    ],
)
def test_what_of_ceilometers_is_refused(tmp_path: pathlib.Path, change: str, reason: str) -> None:
    volume = "" if change.startswith("volume") else "volume: 1"
    meter = f"metric:\n- name: a\n  event_type: e\n  type: gauge\n  unit: u\n  {volume}\n  {change}\n"
    with pytest.raises(ConfigurationError) as caught:
        metrics_file.read(write(tmp_path, meter))
    assert reason in str(caught.value)
    assert ", line 7: " in str(caught.value)


@pytest.mark.parametrize("name", ["\\e]0;owned\\a\\e[2J\\nforged", "5xx", "a b", "é"])
def test_a_meter_is_named_as_a_metric_is(tmp_path: pathlib.Path, name: str) -> None:
    meter = f'metric:\n- event_type: e\n  type: gauge\n  unit: u\n  volume: 1\n  name: "{name}"\n'
    with pytest.raises(
        ConfigurationError, match=r"line 6: name '.*' is not made of letters, digits"
    ) as caught:
        metrics_file.read(write(tmp_path, meter))
    assert str(caught.value).isprintable()


def test_paths_are_spelled_as_they_are_read() -> None:
    for text in ("$.payload.a", "$.payload['a b'][0]", '$.context["it\'s"].x', "host", "$.event_type"):
        path = field_paths.parse(text)
        assert field_paths.parse(str(path)) == path
    assert field_paths.parse("$.payload['a b'][0].c").below == "$['a b'][0]['c']"


def test_the_sample_is_the_default_set() -> None:
    installed = resources.files(language) / "default_metrics.yaml"

    assert (ETC / "metrics.yaml").read_text() == installed.read_text()
    assert metrics_file.read(str(ETC / "metrics.yaml")) == metrics_file.default()


@pytest.mark.parametrize(
    ("window", "widths"), [(30, (30, 3600, 86_400)), (3600, (3600, 86_400)), (7200, (7200, 86_400))]
)
def test_the_default_set_has_windows_of_any_width(window: int, widths: tuple[int, ...]) -> None:
    for metric in metrics_file.default(window):
        assert metric.windows == tuple(map(Window.tumbling, widths))


def test_a_file_is_validated_without_spark() -> None:
    program = (
        "import sys, spark_sinks.language.metrics_file; "
        "print('pyspark' in sys.modules, 'yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
