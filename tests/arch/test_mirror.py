"""Tests mirror the rooms: where a module has no test of its name, a line here says what tests it."""

import pathlib
import subprocess

from tests.shared.checkout import ROOT

# A module, or all modules of a room that have no test of their name, and where they are tested.
TESTED_ELSEWHERE = {
    "drivers/kafka": "tests/kafka",
    "drivers/kafka/clients": "tests/kafka/test_conformance.py",
    "drivers/kafka/clients/confluent": "tests/kafka/test_conformance.py",
    "drivers/kafka/clients/kafka_python": "tests/kafka/test_conformance.py",
    "drivers/kafka/clients/kafka_python/patches": "tests/kafka",
    "drivers/kafka/listening": "tests/kafka/test_listening.py",
    "drivers/kafka/local": "tests/long/kafka/test_cluster.py",
    "drivers/kafka/publishing": "tests/kafka/test_partitioning.py",
    "drivers/sqlite": "tests/contract/test_contract_on_sqlite.py",
    # Facades, values and oslo.messaging's names.
    "notifier_kafka": "tests/arch/test_public_names.py",
    "notifier_kafka/bytes_client": "tests/long/interop/test_plain_client.py",
    "notifier_kafka/cli": "tests/journey/test_cli.py",
    "notifier_kafka/cli/commands": "tests/unit/cli/commands/test_admin.py",
    "notifier_kafka/cli/demo": "tests/long/report/test_demo.py",
    "notifier_kafka/cli/output": "tests/journey/test_cli.py",
    "notifier_kafka/config": "tests/unit/config/test_options.py",
    "notifier_kafka/contract": "tests/contract/test_contract_on_sqlite.py",
    "notifier_kafka/jvm": "tests/unit/jvm/test_jars.py",
    "notifier_kafka/listening": "tests/unit/listening/test_listener.py",
    "notifier_kafka/publishing/channels": "tests/unit/publishing/channels/test_small_channels.py",
    "notifier_kafka/spool": "tests/unit/spool/test_spool.py",
    "notifier_kafka/testing": "tests/contract/test_plugin.py",
    "notifier_kafka/testing/conformance": "tests/long/contract/test_saboteurs.py",
    "notifier_kafka/wire": "tests/unit/wire/test_codec.py",
    "spark_sinks": "tests/arch/test_public_names.py",
    "spark_sinks/cli": "tests/spark/test_command.py",
    "spark_sinks/decode": "tests/spark/test_decode.py",
    "spark_sinks/engine": "tests/spark/test_aggregate.py",
    "spark_sinks/job": "tests/spark/test_job.py",
    "spark_sinks/language": "tests/unit/spark_sinks/language/test_metrics_file.py",
    "spark_sinks/outputs": "tests/unit/spark_sinks/outputs/test_sinks.py",
    "spark_sinks/report": "tests/report/test_page.py",
    "spark_sinks/sources": "tests/spark/test_kafka.py",
    "spark_sinks/state": "tests/unit/spark_sinks/state/test_plan.py",
}
# Tests of a room as a whole, or of a promise that several modules keep together.
OF_SEVERAL_MODULES = {
    "tests/unit/cli/commands/test_admin.py",
    "tests/unit/cli/test_promises.py",
    "tests/unit/drivers/kafka/test_ending.py",
    "tests/unit/jvm/test_jars_behind_a_proxy.py",
    "tests/unit/listening/test_listener_policies.py",
    "tests/unit/publishing/channels/test_small_channels.py",
    "tests/unit/spark_sinks/job/test_repeating.py",
    "tests/unit/spark_sinks/outputs/test_example_sink.py",
    "tests/unit/spark_sinks/outputs/test_sinks.py",
    "tests/unit/test_hostile_input.py",
    "tests/unit/wire/test_codec_properties.py",
}


def _files(*rooms: str) -> set[str]:
    command = ["git", "ls-files", *(f"{room}/*.py" for room in rooms)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {path for path in listed.stdout.split() if not path.endswith("__init__.py")}


def _mirror(module: str) -> str:
    path = pathlib.PurePath(module.removeprefix("notifier_kafka/"))
    return f"tests/unit/{path.with_name(f'test_{path.name}')}"


MODULES = _files("notifier_kafka", "drivers", "spark_sinks")
UNIT_TESTS = {path for path in _files("tests/unit") if pathlib.PurePath(path).name.startswith("test_")}


def test_each_module_has_a_test_of_its_name_or_a_line_that_says_what_tests_it() -> None:
    without = {module for module in MODULES if _mirror(module) not in UNIT_TESTS}

    rooms = {str(pathlib.PurePath(module).parent) for module in without - TESTED_ELSEWHERE.keys()}
    assert rooms <= TESTED_ELSEWHERE.keys(), f"no test and no line: {sorted(rooms - TESTED_ELSEWHERE.keys())}"
    needed = rooms | (without & TESTED_ELSEWHERE.keys())
    assert TESTED_ELSEWHERE.keys() <= needed, f"not needed: {sorted(TESTED_ELSEWHERE.keys() - needed)}"
    assert [place for place in TESTED_ELSEWHERE.values() if not (ROOT / place).exists()] == []


def test_each_unit_test_has_the_name_of_a_module_or_a_line_that_says_why_not() -> None:
    mirrors = {_mirror(module) for module in MODULES}

    assert UNIT_TESTS - mirrors == OF_SEVERAL_MODULES
