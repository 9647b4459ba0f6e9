"""What ``[drivers_kafka]`` and the URL say, as typed values. A field is an option, by its name."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class KafkaSettings:
    """The options of the Kafka driver."""

    client: str
    client_id: str
    client_properties: dict[str, str] = field(repr=False)
    acks: str
    idempotence: bool
    partitioner: str
    linger: float
    batch_size: int
    compression: str
    retries: int | None
    delivery_timeout: float
    max_request_size: int
    topic_partitions: int
    topic_replication: int
    consumer_group: str | None
    max_fetch_bytes: int
    session_timeout: float
    poll_interval: float
    isolation_level: str
    group_protocol: str
    group_instance_id: str | None
    security_protocol: str
    sasl_mechanism: str
    sasl_username: str | None
    sasl_password: str | None = field(repr=False)
    ssl_cafile: str | None
    ssl_check_hostname: bool
    ssl_client_cert_file: str | None
    ssl_client_key_file: str | None
    ssl_client_key_password: str | None = field(repr=False)
