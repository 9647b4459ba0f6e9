"""The options of the Kafka driver, group ``[drivers_kafka]``. Imports no client library.

The names of oslo.messaging's ``[oslo_messaging_kafka]`` are deprecated names of ours, so a file that was
written for it works as it is. Those without a meaning here are left out: ``enable_auto_commit`` (it loses
what a crash interrupts), ``kafka_consumer_timeout`` and ``max_poll_records`` (each poll has them as
arguments).
"""

from oslo_config import cfg

GROUP = "drivers_kafka"


def _oslo(name: str) -> list[cfg.DeprecatedOpt]:
    return [cfg.DeprecatedOpt(name, group="oslo_messaging_kafka")]


CLIENT_OPTS = [
    cfg.StrOpt(
        "client",
        default="auto",
        help="The client library: kafka-python, confluent-kafka, one from another distribution, or auto: "
        "confluent-kafka if it is installed, else kafka-python.",
    ),
    cfg.StrOpt(
        "client_id", default="notifier-kafka", help="The name of this client in the logs of the brokers."
    ),
    cfg.DictOpt(
        "client_properties",
        default={},
        secret=True,
        help="Other properties, by their names in Apache Kafka: name:value,name:value. "
        "They override the other options of this group.",
    ),
]

PUBLISH_OPTS = [
    cfg.StrOpt(
        "acks",
        default="all",
        choices=[("all", "all in-sync replicas"), ("1", "only the leader"), ("0", "no broker")],
        help="Which brokers must confirm a record before it counts as delivered.",
    ),
    cfg.BoolOpt(
        "idempotence",
        default=True,
        help="Let the broker drop duplicates that a retry sends. Needs acks = all and retries.",
    ),
    cfg.StrOpt(
        "partitioner",
        default="murmur2",
        help="What chooses the partition of a record: murmur2, which gives a key the same partition as "
        "Java's producers do, or the name of a function (key, partitions) -> number in the entry points "
        "notifier_kafka.partitioners. The number of partitions is asked for with the first record of a "
        "topic, and when the driver creates the topic again.",
    ),
    cfg.FloatOpt(
        "linger",
        default=0.005,
        min=0,
        deprecated_opts=_oslo("producer_batch_timeout"),
        help="The longest time in seconds that a batch waits for more records.",
    ),
    cfg.IntOpt(
        "batch_size",
        default=262_144,
        min=0,
        deprecated_opts=_oslo("producer_batch_size"),
        help="The size in bytes at which a batch for one partition is sent without waiting.",
    ),
    cfg.StrOpt(
        "compression",
        default="none",
        choices=[
            ("none", "no compression"),
            ("gzip", "small and slow; every client has it"),
            ("snappy", "fast"),
            ("lz4", "fast"),
            ("zstd", "small and fast"),
        ],
        deprecated_opts=_oslo("compression_codec"),
        help="How batches are compressed. For snappy, lz4 and zstd, kafka-python needs the extra "
        "compression, to listen as well; confluent-kafka includes them.",
    ),
    cfg.IntOpt(
        "retries",
        min=0,
        help="How often the client retries a batch. 0 also disables idempotence, which is for retries. "
        "Not set: as often as delivery_timeout allows.",
    ),
    cfg.FloatOpt(
        "delivery_timeout",
        default=120.0,
        min=0,
        help="Seconds after which a record that no broker confirmed is reported as failed, unless "
        "[notifications] retry is -1: then it is kept and sent when the brokers are back.",
    ),
    cfg.IntOpt(
        "max_request_size",
        default=1024 * 1024,
        min=1,
        help="The largest record in bytes: value, key and headers. The topic has its own max.message.bytes.",
    ),
    cfg.IntOpt(
        "topic_partitions",
        default=-1,
        min=-1,
        help="Partitions of a topic that is created on first use; -1 is the broker's default.",
    ),
    cfg.IntOpt(
        "topic_replication",
        default=-1,
        min=-1,
        help="Replicas of a topic that is created on first use; -1 is the broker's default.",
    ),
]

LISTEN_OPTS = [
    cfg.StrOpt(
        "consumer_group",
        deprecated_opts=_oslo("consumer_group"),
        sample_default="[listener] group",
        help="The consumer group of listeners without a pool.",
    ),
    cfg.IntOpt(
        "max_fetch_bytes",
        default=1024 * 1024,
        min=1,
        deprecated_opts=_oslo("kafka_max_fetch_bytes"),
        help="How many bytes are fetched at once from a partition. A larger record comes alone.",
    ),
    cfg.FloatOpt(
        "session_timeout",
        default=45.0,
        min=0,
        help="Seconds without a heartbeat after which a member's partitions move to other members.",
    ),
    cfg.FloatOpt(
        "poll_interval",
        default=300.0,
        min=0,
        help="Seconds without a poll after which the group removes a member. Endpoints may take longer: "
        "a thread polls in the listener's place.",
    ),
    cfg.StrOpt(
        "isolation_level",
        default="read_committed",
        choices=[
            ("read_committed", "without records of open and aborted transactions"),
            ("read_uncommitted", "every record"),
        ],
        help="Which records a listener gets.",
    ),
    cfg.StrOpt(
        "group_protocol",
        default="classic",
        choices=[
            ("classic", "members assign partitions among themselves; every client and broker has it"),
            ("consumer", "the broker assigns partitions (KIP-848); client and broker must have it"),
        ],
        help="The protocol of consumer groups.",
    ),
    cfg.StrOpt(
        "group_instance_id",
        help="Makes this process a static member of its group: a restart does not move partitions. "
        "Must be unique in the group.",
    ),
]

SECURITY_OPTS = [
    cfg.StrOpt(
        "security_protocol",
        default="PLAINTEXT",
        choices=[
            ("PLAINTEXT", "no encryption, no login"),
            ("SASL_PLAINTEXT", "login"),
            ("SSL", "encryption"),
            ("SASL_SSL", "encryption and login"),
        ],
        deprecated_opts=_oslo("security_protocol"),
        help="Whether connections are encrypted and log in.",
    ),
    cfg.StrOpt(
        "sasl_mechanism",
        default="PLAIN",
        choices=[
            ("PLAIN", "sends the password itself: use it over encrypted connections only"),
            ("SCRAM-SHA-256", "a proof of the password"),
            ("SCRAM-SHA-512", "a proof of the password"),
        ],
        deprecated_opts=_oslo("sasl_mechanism"),
        help="How to log in.",
    ),
    cfg.StrOpt("sasl_username", help="The user of the login, if the transport URL has none."),
    cfg.StrOpt(
        "sasl_password", secret=True, help="The password of the login, if the transport URL has none."
    ),
    cfg.StrOpt(
        "ssl_cafile",
        deprecated_opts=_oslo("ssl_cafile"),
        help="PEM file of the authorities that may sign a broker's certificate. Not set: the system's.",
    ),
    cfg.BoolOpt(
        "ssl_check_hostname",
        default=True,
        help="Refuse a broker whose certificate is for another host name.",
    ),
    cfg.StrOpt(
        "ssl_client_cert_file",
        deprecated_opts=_oslo("ssl_client_cert_file"),
        help="PEM file of this client's certificate, if the brokers require one.",
    ),
    cfg.StrOpt(
        "ssl_client_key_file",
        deprecated_opts=_oslo("ssl_client_key_file"),
        help="PEM file of the certificate's private key.",
    ),
    cfg.StrOpt(
        "ssl_client_key_password",
        secret=True,
        deprecated_opts=_oslo("ssl_client_key_password"),
        help="The password of the private key.",
    ),
]

LOCAL_GROUP = "broker"
LOCAL_OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "java",
        help="The Java for local brokers ('broker start', 'demo --kafka'): a program or a JAVA_HOME. "
        "Not set: the first one found that is suitable.",
    ),
]

OPTS = CLIENT_OPTS + PUBLISH_OPTS + LISTEN_OPTS + SECURITY_OPTS


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """List the options for oslo-config-generator."""
    return [(GROUP, OPTS), (LOCAL_GROUP, LOCAL_OPTS)]
