"""Members of groups that leave at any moment of their joining, eight at a time."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from oslo_config import cfg

from notifier_kafka.url import TransportURL
from notifier_kafka_drivers.kafka.driver import KafkaDriver


def main() -> None:
    url, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    driver = KafkaDriver(TransportURL.parse(conf, url))

    def come_and_go(number: int) -> None:
        member = driver.subscribe([topic], f"{topic}-{number}", "earliest")
        while not member._consumer:
            member.poll(1, 0.0)
        time.sleep(number % 40 * 0.005)
        member.close()

    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(come_and_go, range(count)):
            pass


if __name__ == "__main__":
    main()
