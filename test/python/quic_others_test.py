"""The backend quic and independent implementations of QUIC, aioquic and qh3, as its client and as its server."""

import asyncio
import datetime
import importlib
import ssl
import struct

import numpy
import pytest

import hawser

from conftest import SCALE
from quic_test import WHY_NOT, ports_of_this_process

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")

PROTOCOL = "hawser-quic/1"
# Of versions 900 to 901, which nobody speaks: it is answered by a hello that refuses.
HELLO = b"HWSR" + struct.pack("<HHH", 204, 900, 901) + bytes(200)
ED25519 = 0x0807  # RFC 8446, section 4.2.3.
OPEN = {"security": "none"}  # Whoever comes is let in as far as the hello; both ends show certificates all the same.


@pytest.fixture(params=["aioquic", "qh3"])
def other(request):
    """The name of a package; both have the same interface."""
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Files of a self-signed certificate and key of Ed25519, as agents have them."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody")])
    day = datetime.timedelta(days=1)
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(now - day).not_valid_after(now + day).sign(key, None))
    folder = tmp_path_factory.mktemp("certificate")
    (folder / "crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                                   serialization.NoEncryption()))
    return str(folder / "crt"), str(folder / "key")


def configuration(other, certificate, is_client, protocol=PROTOCOL):
    kind = importlib.import_module(f"{other}.quic.configuration").QuicConfiguration
    made = kind(is_client=is_client, alpn_protocols=[protocol], verify_mode=ssl.CERT_NONE)
    if other == "qh3":
        made.signature_algorithms = [ED25519]  # It leaves that out where nobody asks for it.
    if certificate is not None:
        made.load_cert_chain(*certificate)
    return made


async def talk(other, port, made, said):
    """Connects, says something on a stream, and gives what came back until the stream's end."""
    connect = importlib.import_module(f"{other}.asyncio.client").connect
    async with connect("127.0.0.1", port, configuration=made) as client:
        reader, writer = await client.create_stream()
        writer.write(said)
        writer.write_eof()
        try:
            return await reader.read()
        except ConnectionResetError:  # So qh3 tells of a stream that was reset.
            return b""


@pytest.fixture
def agent():
    before = set(ports_of_this_process())
    with hawser.Agent("a", backends=["quic"], settings=OPEN) as opened:
        opened.port = (set(ports_of_this_process()) - before).pop()
        yield opened


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20 * SCALE))


def test_a_client_shakes_hands_and_what_is_no_hello_is_turned_away(agent, other, certificate):
    """After a Retry, for it shows no card. Its bytes reach the port, and the answer comes back."""
    answer = run(talk(other, agent.port, configuration(other, certificate, True), HELLO))
    assert answer.startswith(b"HWSR") and b"version" in answer, answer
    assert run(talk(other, agent.port, configuration(other, certificate, True), b"GET / HTTP/1.1" + bytes(200))) == b""
    # The agent goes on.
    own = agent.empty(64, numpy.uint8, name="m")
    with hawser.Agent("b", backends=["quic"], settings=OPEN) as reader:
        target = reader.empty(64, numpy.uint8, name="m")
        own[:] = 7
        agent.write(agent.add_peer(reader.card()), own, agent.add_peer(reader.card()).range("m", 0, 64)).wait(20 * SCALE)
        assert (target == 7).all()


def test_a_client_without_a_certificate_or_of_another_protocol_is_refused(agent, other, certificate):
    """A client of TLS 1.3 is through before the server has seen that it shows no certificate."""
    with pytest.raises(ConnectionError):
        run(talk(other, agent.port, configuration(other, certificate, True, "h3"), b"hello"))
    try:
        answer = run(talk(other, agent.port, configuration(other, None, True), HELLO))
    except ConnectionError:
        answer = b""
    assert answer == b""


def test_a_stranger_as_client_gets_no_word_where_a_card_is_needed(other, certificate):
    before = set(ports_of_this_process())
    with hawser.Agent("a", backends=["quic"]):
        port = (set(ports_of_this_process()) - before).pop()
        with pytest.raises((ConnectionError, asyncio.TimeoutError)):
            asyncio.run(asyncio.wait_for(talk(other, port, configuration(other, certificate, True), b"hello"), 3 * SCALE))


class Echo:
    """A server that keeps what it heard."""

    def __init__(self, other, certificate, port):
        self.heard, self.streams = bytearray(), 0
        self.made, self.port = configuration(other, certificate, False), port
        self.serve = importlib.import_module(f"{other}.asyncio.server").serve

    async def __aenter__(self):
        def on_stream(reader, writer):
            self.streams += 1
            asyncio.ensure_future(self.listen(reader))

        self.server = await self.serve("127.0.0.1", self.port, configuration=self.made, stream_handler=on_stream)
        return self

    async def listen(self, reader):
        while data := await reader.read(4096):
            self.heard += data

    async def __aexit__(self, *_):
        self.server.close()


def test_as_a_client_it_shakes_hands_and_knows_that_a_server_is_not_its_peer(other, certificate):
    """The server answers where the peer was, with a key of its own: the opener finds that out before it says a word."""
    before = set(ports_of_this_process())
    with hawser.Agent("gone", backends=["quic"], settings=OPEN) as gone:
        card, port = gone.card(), (set(ports_of_this_process()) - before).pop()

    async def meet():
        async with Echo(other, certificate, port) as server:
            with hawser.Agent("a", backends=["quic"], settings=OPEN) as agent:
                peer = agent.add_peer(card)
                with pytest.raises(hawser.Error) as caught:
                    await asyncio.to_thread(peer.connect, timeout=5 * SCALE)
                return str(caught.value) + str(caught.value.__cause__), bytes(server.heard)

    told, heard = run(meet())
    assert "key" in told, told
    assert heard == b""
