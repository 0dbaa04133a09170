"""Options of a source of kind `kafka`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from ragwatch.sources.messages import Address, BrokerOptions, consumer_name

_TOPIC = r"^[A-Za-z0-9._-]{1,249}$"


class Options(BrokerOptions):
    """Options of a source of kind `kafka`."""

    servers: Address = Field("127.0.0.1:9092", description="Addresses of some brokers, separated by commas.")
    tls: bool = Field(default=False, description="Encrypt connections.")
    ca_file: Path | None = Field(None, description="Certificates of authorities to trust.")
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="How username and password are sent."
    )
    username: str | None = Field(None, description="User.")
    password: SecretStr | None = Field(None, description="Password.")
    topic: str = Field(pattern=_TOPIC, description="Topic, which has to exist.")
    group: str = Field("ragwatch", min_length=1, description="Consumer group, which workers share.")
    consumer: str | None = Field(
        None, min_length=1, description="Static member of the group, another for each worker; null for the machine's."
    )
    dead_letters: str | None = Field(
        None, pattern=_TOPIC, description="Topic for dead letters; null leaves them in their topic only."
    )
    properties: dict[str, SecretStr] = Field(
        {}, description="Further properties of librdkafka, such as ssl.key.location."
    )

    def client_properties(self) -> dict[str, str]:
        """How the client connects, in the terms of librdkafka."""
        known = {"bootstrap.servers": self.servers, "client.id": f"ragwatch-{self.name}"}
        if self.ca_file is not None:
            known["ssl.ca.location"] = str(self.ca_file)
        if self.username is not None and self.password is not None:
            known |= {"sasl.mechanism": self.sasl_mechanism, "sasl.username": self.username}
            known["sasl.password"] = self.password.get_secret_value()
        transport = "ssl" if self.tls else "plaintext"
        known["security.protocol"] = f"sasl_{transport}" if self.username is not None else transport
        return known | {name: value.get_secret_value() for name, value in self.properties.items()}

    def group_properties(self) -> dict[str, str]:
        """How the group is read: nothing is committed that is not stored."""
        return {
            "group.id": self.group,
            "group.instance.id": consumer_name(self.consumer),
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": "true",
            "partition.assignment.strategy": "cooperative-sticky",
        }
