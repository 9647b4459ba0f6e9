"""The options of the Kafka driver, group ``[drivers_kafka]``. Imports no client library.

oslo.messaging's ``[oslo_messaging_kafka]`` names are deprecated names of ours, so that
a file written for it works as it is. Not taken over are those that have no meaning
here: ``enable_auto_commit`` (it loses what a crash interrupts), ``kafka_consumer_timeout``
and ``max_poll_records`` (the listener says both with each poll).
"""

from oslo_config import cfg

GROUP = "drivers_kafka"


def _oslo(name: str) -> list[cfg.DeprecatedOpt]:
    return [cfg.DeprecatedOpt(name, group="oslo_messaging_kafka")]


CLIENT_OPTS = [
    cfg.StrOpt(
        "client",
        default="auto",
        help="The client library: kafka-python, confluent-kafka, that of another distribution, "
        "or auto, which takes confluent-kafka where it is installed.",
    ),
    cfg.StrOpt("client_id", default="notifier-kafka", help="The name that brokers see in their logs."),
    cfg.DictOpt(
        "client_properties",
        default={},
        secret=True,
        help="Anything else, by the name that Apache Kafka gives it: name:value,name:value. "
        "These win over the options above and below.",
    ),
]

PUBLISH_OPTS = [
    cfg.StrOpt(
        "acks",
        default="all",
        choices=[("all", "all in-sync replicas"), ("1", "the leader alone"), ("0", "nobody")],
        help="Who must have a record before it counts as durable.",
    ),
    cfg.BoolOpt(
        "idempotence",
        default=True,
        help="Let the broker drop what a retry sends twice. Needs acks = all and retries.",
    ),
    cfg.StrOpt(
        "partitioner",
        default="murmur2",
        help="What chooses the partition of a record: murmur2, which gives a key the same one as "
        "Java's producers do, or a function (key, partitions) -> number that a distribution names "
        "in notifier_kafka.partitioners. How many partitions there are is asked with the first "
        "record for a topic, and when the driver makes it again.",
    ),
    cfg.FloatOpt(
        "linger",
        default=0.005,
        min=0,
        deprecated_opts=_oslo("producer_batch_timeout"),
        help="Seconds that a batch waits at most for more records before it is sent.",
    ),
    cfg.IntOpt(
        "batch_size",
        default=262_144,
        min=0,
        deprecated_opts=_oslo("producer_batch_size"),
        help="Bytes of a batch to one partition at which it is sent without waiting.",
    ),
    cfg.StrOpt(
        "compression",
        default="none",
        choices=[
            ("none", "not at all"),
            ("gzip", "small and slow; every client has it"),
            ("snappy", "fast"),
            ("lz4", "fast"),
            ("zstd", "small and fast"),
        ],
        deprecated_opts=_oslo("compression_codec"),
        help="How batches are compressed. kafka-python needs the extra compression for snappy, "
        "lz4 and zstd, to listen as well; confluent-kafka brings them.",
    ),
    cfg.IntOpt(
        "retries",
        min=0,
        help="How often the client sends a batch again. 0 also switches idempotence off, as there is "
        "nothing to recognise. Not set: as long as delivery_timeout allows.",
    ),
    cfg.FloatOpt(
        "delivery_timeout",
        default=120.0,
        min=0,
        help="Seconds after which a record that no broker took is reported as failed, unless "
        "[notifications] retry is -1: then it is kept and sent when the brokers are back.",
    ),
    cfg.IntOpt(
        "max_request_size",
        default=1024 * 1024,
        min=1,
        help="Bytes of the largest record. The topic's max.message.bytes limits it as well.",
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
        help="The group of listeners without a pool.",
    ),
    cfg.IntOpt(
        "max_fetch_bytes",
        default=1024 * 1024,
        min=1,
        deprecated_opts=_oslo("kafka_max_fetch_bytes"),
        help="Bytes fetched at once from a partition. A larger record still comes, alone.",
    ),
    cfg.FloatOpt(
        "session_timeout",
        default=45.0,
        min=0,
        help="Seconds without a sign of life after which a member's partitions move on.",
    ),
    cfg.FloatOpt(
        "poll_interval",
        default=300.0,
        min=0,
        help="Seconds between two polls after which brokers count a member as stuck. Endpoints may "
        "take longer: a thread polls in the listener's place.",
    ),
    cfg.StrOpt(
        "isolation_level",
        default="read_committed",
        choices=[
            ("read_committed", "records of open and aborted transactions are held back"),
            ("read_uncommitted", "every record is delivered"),
        ],
        help="What a listener sees of transactions.",
    ),
    cfg.StrOpt(
        "group_protocol",
        default="classic",
        choices=[
            ("classic", "members agree among themselves; every client and broker has it"),
            ("consumer", "the broker assigns (KIP-848), where client and broker have it"),
        ],
        help="The protocol of groups.",
    ),
    cfg.StrOpt(
        "group_instance_id",
        help="Makes this process a static member of its group, so that a restart moves no "
        "partitions. Unique in the group.",
    ),
]

SECURITY_OPTS = [
    cfg.StrOpt(
        "security_protocol",
        default="PLAINTEXT",
        choices=[
            ("PLAINTEXT", "neither encrypted nor logged in"),
            ("SASL_PLAINTEXT", "logged in"),
            ("SSL", "encrypted"),
            ("SASL_SSL", "encrypted and logged in"),
        ],
        deprecated_opts=_oslo("security_protocol"),
        help="How connections are protected.",
    ),
    cfg.StrOpt(
        "sasl_mechanism",
        default="PLAIN",
        choices=[
            ("PLAIN", "the password itself; only over an encrypted connection"),
            ("SCRAM-SHA-256", "a proof of the password"),
            ("SCRAM-SHA-512", "a proof of the password"),
        ],
        deprecated_opts=_oslo("sasl_mechanism"),
        help="How to log in.",
    ),
    cfg.StrOpt("sasl_username", help="Who logs in, when the transport URL does not say."),
    cfg.StrOpt("sasl_password", secret=True, help="The password, when the transport URL has none."),
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
        help="PEM file of this client's certificate, where brokers ask for one.",
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
        help="The Java of local brokers ('broker start', 'demo --kafka'): a program or a JAVA_HOME. "
        "Not set: the first that suits.",
    ),
]

OPTS = CLIENT_OPTS + PUBLISH_OPTS + LISTEN_OPTS + SECURITY_OPTS


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """List the options for oslo-config-generator."""
    return [(GROUP, OPTS), (LOCAL_GROUP, LOCAL_OPTS)]
