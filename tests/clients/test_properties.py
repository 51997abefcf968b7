"""Client properties as people have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.clients.access import Access, SecurityProtocol
from lockstep.clients.properties import client_properties, ignored_properties, read_client_properties
from lockstep.errors import UsageError
from lockstep.spec.cluster import Mechanism

JAVA = r"""
# as in Kafka's own documentation
bootstrap.servers=one:9092,two:9092
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="alice" \
    password="a \\"quoted\\" one";
ssl.truststore.type=PEM
ssl.truststore.location={ca}
"""

LIBRDKAFKA = """
metadata.broker.list: one:9092,two:9092
security.protocol = sasl_ssl
sasl.mechanisms=SCRAM-SHA-256
sasl.username=alice
sasl.password=a "quoted" one
ssl.ca.location={ca}
"""

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.touch()
    return path


def file(directory: Path, text: str) -> Path:
    path = directory / "client.properties"
    path.write_text(text)
    return path


@pytest.mark.parametrize("words", [JAVA, LIBRDKAFKA], ids=["java", "librdkafka"])
def test_both_families_of_clients_are_understood(words: str, ca: Path) -> None:
    assert read_client_properties(file(ca.parent, words.format(ca=ca))) == Access(
        bootstrap="one:9092,two:9092",
        protocol=SecurityProtocol.SASL_SSL,
        mechanism=Mechanism.SCRAM_256,
        username="alice",
        password='a "quoted" one',
        ca=ca,
    )


def test_servers_that_are_given_win(tmp_path: Path) -> None:
    path = file(tmp_path, "bootstrap.servers=one:9092")
    assert read_client_properties(path, "two:9092") == Access(bootstrap="two:9092")


def test_what_is_written_is_read_again(ca: Path) -> None:
    access = Access(
        bootstrap="one:9092",
        protocol=SecurityProtocol.SASL_SSL,
        mechanism=Mechanism.PLAIN,
        username="bob",
        password='back\\slash "quote" = : #',
        ca=ca,
    )
    assert read_client_properties(file(ca.parent, client_properties(access)), "one:9092") == access


def test_what_does_not_concern_access_is_ignored_and_named(ca: Path) -> None:
    """As people copy them from an application; a key store without a value is none."""
    others = """
client.id=payments
acks=1
session.timeout.ms=10000
ssl.endpoint.identification.algorithm=HTTPS
ssl.protocol=TLSv1.3
ssl.truststore.password=s3cret
ssl.keystore.location=
sasl.login.refresh.window.factor=0.8
"""
    application = file(ca.parent, JAVA.format(ca=ca) + others)
    assert ignored_properties(application) == [
        "acks",
        "client.id",
        "sasl.login.refresh.window.factor",
        "session.timeout.ms",
        "ssl.protocol",
        "ssl.truststore.password",
    ]
    access = read_client_properties(application)
    assert ignored_properties(file(ca.parent, JAVA.format(ca=ca))) == []
    assert read_client_properties(ca.parent / "client.properties") == access


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "names no servers: add bootstrap.servers=host:port"),
        ("bootstrap.servers=one", "'one' is not a bootstrap server: write host:port"),
        (
            "acks=all\nssl.keystore.location=k.jks\nssl.key.password=s3cret\nsecurity.providers=x",
            r"client certificates \(mTLS\) are not supported yet, so ssl.key.password, ssl.keystore.location cannot be",
        ),
        ("ssl.certificate.location=me.pem", r"client certificates \(mTLS\) are not supported yet"),
        (
            "acks=all\nssl.truststore.certificates=s3cret",
            "ssl.truststore.certificates would change how Lockstep connects",
        ),
        (
            "sasl.client.callback.handler.class=a.B",
            "sasl.client.callback.handler.class would change how Lockstep connects",
        ),
        (
            "enable.ssl.certificate.verification=false",
            "enable.ssl.certificate.verification would change how Lockstep connects",
        ),
        (
            "config.providers=file",
            "config.providers would change how Lockstep connects or authenticates, and is not supported",
        ),
        ("ssl.endpoint.identification.algorithm=", "whether a certificate names its host is always checked: leave out"),
        ("bootstrap.servers=a:1\nsecurity.protocol=TLS", "security.protocol is one of PLAINTEXT, SSL, .* not 'TLS'"),
        ("bootstrap.servers=a:1\nsasl.mechanism=GSSAPI", "sasl.mechanism is one of PLAIN, .* not 'GSSAPI'"),
        ("bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL", "SASL_SSL needs a SASL mechanism, a user name and a"),
        (
            "bootstrap.servers=a:1\nsasl.mechanism=PLAIN\nsasl.mechanisms=PLAIN",
            "has both sasl.mechanism and sasl.mechanisms: keep one",
        ),
        (
            "bootstrap.servers=a:1\nsasl.jaas.config=x required;",
            "has sasl.jaas.config and no sasl.mechanism: add it",
        ),
        (
            f'bootstrap.servers=a:1\nsasl.mechanism=PLAIN\nsasl.jaas.config={SCRAM_MODULE} required username="x";',
            "sasl.jaas.config for PLAIN reads org.apache.kafka.common.security.plain.PlainLoginModule required",
        ),
        (
            f'bootstrap.servers=a:1\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={SCRAM_MODULE} required x="s3cret',
            "sasl.jaas.config for SCRAM-SHA-256 reads ",
        ),
        ("bootstrap.servers=a:1\nssl.truststore.location=trust.jks", "only a PEM trust store can be read"),
        ("bootstrap.servers=a:1\nssl.ca.location=/nowhere/ca.pem", "there is no file /nowhere/ca.pem"),
        ("bootstrap.servers=\\u12", "client properties cannot be read"),
    ],
)
def test_what_is_not_understood_is_said_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as refused:
        read_client_properties(file(tmp_path, text))
    assert "\n" not in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"client properties cannot be read from .*/none: FileNotFoundError"):
        read_client_properties(tmp_path / "none")
