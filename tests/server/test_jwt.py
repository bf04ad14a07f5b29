"""Tokens of an authorization server: signed here with fresh keys, published on a real loopback address.

1. A valid token is a caller with a space of their own; scopes come from `scope` and `scp`.
2. Everything else is nobody: other keys, issuers, audiences and times; `none`; a public key used as a secret; noise.
3. Keys may be rotated; nobody can make us ask the issuer often; an issuer that is down is a 503, not a 500.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from commonplace.errors import Unavailable
from commonplace.server.auth import Authentication, Gate, make_gate, metadata_address
from commonplace.server.principal import Principal
from commonplace.server.tokens import BURST, FRESH_S, KEPT_S, REFILL_S, JwtGate, PublishedKeys, space_of
from commonplace.settings import BadSetting, Settings
from commonplace.space import space_folder
from serving import get, served

ISSUER, AUDIENCE = "https://issuer.example", "https://books.example.org/mcp"
SECRET = "a secret of more than thirty-two bytes"
TO_JWK: dict[str, Any] = {"RS": RSAAlgorithm, "PS": RSAAlgorithm, "ES": ECAlgorithm, "Ed": OKPAlgorithm}


@cache
def private(name: str) -> Any:
    """A key by a name that starts with its kind, the same one for a name."""
    if name.startswith("weak"):
        return rsa.generate_private_key(public_exponent=65537, key_size=1024)
    if name.startswith("ES"):
        return ec.generate_private_key({"256": ec.SECP256R1, "384": ec.SECP384R1, "512": ec.SECP521R1}[name[2:5]]())  # type: ignore[abstract]
    if name.startswith("Ed"):
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(name: str) -> str:
    return private(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def claims(**changed: Any) -> dict[str, Any]:
    now = int(time.time())
    made = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600, **changed}
    return {name: value for name, value in made.items() if value is not None}


def signed(name: str = "RS256", algorithm: str = "", kid: str | None = None, **changed: Any) -> str:
    headers = {"kid": kid} if kid is not None else None
    return jwt.encode(claims(**changed), private(name), algorithm=algorithm or name[:5], headers=headers)


def by_hand(header: dict[str, Any], payload: bytes, sign: Callable[[bytes], bytes]) -> str:
    """A token put together without a library's scruples."""
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=") for part in (json.dumps(header).encode(), payload)]
    return b".".join([*parts, base64.urlsafe_b64encode(sign(b".".join(parts))).rstrip(b"=")]).decode()


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    made = hmac.HMAC(key, hashes.SHA256())
    made.update(message)
    return made.finalize()


def static(key: str | None = None, algorithms: str = "RS256,ES256,EdDSA") -> Gate:
    given: dict[str, Any] = {
        "auth": "jwt",
        "jwt_issuer": ISSUER,
        "jwt_audience": AUDIENCE,
        "jwt_algorithms": algorithms,
    }
    return make_gate(Settings(home=Path("unused"), jwt_key=key or pem("RS256"), **given))


def admitted(gate: Gate, token: str | None) -> Principal | None:
    return anyio.run(gate.admit, token)


class Issuer:
    """An address that publishes keys, or does not. Counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.status = 200
        self.body = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(200 if self.path == "/elsewhere" else outer.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"

    def publish(self, *names: str, **more: Any) -> None:
        entries = [
            {**TO_JWK[name[:2]].to_jwk(private(name).public_key(), as_dict=True), "kid": name, **more} for name in names
        ]
        self.status, self.body = 200, json.dumps({"keys": entries}).encode()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    thread = threading.Thread(target=issuer.server.serve_forever, args=(0.02,))
    thread.start()
    yield issuer
    issuer.server.shutdown()
    thread.join(20)
    issuer.server.server_close()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def following(issuer: Issuer, clock: Callable[[], float] = time.monotonic) -> JwtGate:
    allowed = frozenset({"RS256", "PS256", "ES256", "ES384", "EdDSA"})
    return JwtGate(ISSUER, AUDIENCE, PublishedKeys(issuer.url, allowed, clock))


def test_a_subject_has_a_space_that_nobody_else_can_name(tmp_path: Path) -> None:
    gate = static()
    ann = admitted(gate, signed())
    assert ann is not None
    assert ann.space == ann.name == space_of(ISSUER, "ann")
    spaces = {ann.space}
    for sub in ("bob", "../../etc", "default", ann.space, "Ann", "ann\0", "\ud800", "x" * 5000, "ann/", "日本"):
        other = admitted(gate, signed(sub=sub))
        assert other is not None
        assert space_folder(tmp_path, other.space).parent == tmp_path / "spaces"
        spaces.add(other.space)
    assert len(spaces) == 11
    assert space_of("a", "b c") != space_of("a b", "c")
    assert space_of('a", "b', "c") != space_of("a", 'b", "c')


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ({}, {"read"}),
        ({"scope": "openid write"}, {"write"}),
        ({"scope": "read write admin"}, {"read", "write", "admin"}),
        ({"scp": ["admin", 7, None]}, {"admin"}),
        ({"scp": "write", "scope": "read"}, {"read", "write"}),
        ({"scope": "openid profile"}, {"read"}),
        ({"scope": "administrator WRITE"}, {"read"}),
        ({"scope": {"admin": True}}, {"read"}),
        ({"scope": 7}, {"read"}),
    ],
)
def test_scopes_are_read_from_either_claim(given: dict[str, Any], held: set[str]) -> None:
    principal = admitted(static(), signed(**given))
    assert principal is not None
    assert principal.scopes == held


def test_clocks_may_differ_by_half_a_minute() -> None:
    now = int(time.time())
    assert admitted(static(), signed(exp=now - 10))
    assert admitted(static(), signed(nbf=now + 10, iat=now + 10))
    assert admitted(static(), signed(aud=["https://other.example", AUDIENCE]))


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": 1},
        {"exp": timedelta(seconds=-40)},
        {"exp": None},
        {"exp": "soon"},
        {"exp": float("inf")},
        {"nbf": timedelta(hours=1)},
        {"nbf": "later"},
        {"iss": None},
        {"iss": "https://issuer.example/"},
        {"aud": None},
        {"aud": "https://other.example"},
        {"aud": []},
        {"aud": [7]},
        {"aud": {"x": AUDIENCE}},
        {"sub": None},
        {"sub": ""},
    ],
    ids=str,
)
def test_a_token_of_another_time_issuer_or_audience_is_nobodys(changed: dict[str, Any]) -> None:
    now = int(time.time())
    moved: dict[str, Any] = {
        k: now + int(v.total_seconds()) if isinstance(v, timedelta) else v for k, v in changed.items()
    }
    assert admitted(static(), signed(**moved)) is None


def test_a_subject_that_is_no_text_is_nobody() -> None:
    payloads: list[Any] = [{**claims(), "sub": 7}, {**claims(), "iss": [ISSUER]}, [], 7]
    for payload in payloads:
        token = by_hand({"alg": "HS256"}, json.dumps(payload).encode(), lambda m: hmac_sha256(SECRET.encode(), m))
        assert admitted(static(SECRET, "HS256"), token) is None


def test_a_secret_signs_where_a_secret_was_agreed(tmp_path: Path) -> None:
    token = jwt.encode(claims(), SECRET, algorithm="HS256")
    assert admitted(static(SECRET, "HS256"), token)
    (tmp_path / "secret").write_text(SECRET + "\n", encoding="utf-8")
    assert admitted(static(f"file:{tmp_path / 'secret'}", "HS256"), token)
    assert admitted(static(SECRET[::-1], "HS256"), token) is None
    assert admitted(static(SECRET, "HS256"), signed()) is None


def test_a_public_key_may_be_written_in_several_ways(tmp_path: Path) -> None:
    text = pem("RS256")
    (tmp_path / "key.pem").write_text(text, encoding="utf-8")
    bare = "".join(text.splitlines()[1:-1])
    for key in (text, text.replace("\n", "\\n"), f"file:{tmp_path / 'key.pem'}", bare):
        assert admitted(static(key), signed())
    with pytest.raises(BadSetting, match="public key that no algorithm"):
        static(bare, "HS256")  # never a secret, though it is long enough for one
    with pytest.raises(BadSetting, match="Set jwt_algorithms to ES256"):
        static(pem("ES256"), "RS256")
    with pytest.raises(BadSetting, match="2048 bits"):
        static(pem("weak"))
    secret = private("RS256").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with pytest.raises(BadSetting, match="Only its public half"):
        static(secret)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
def test_a_token_without_a_signature_is_nobodys(algorithm: str) -> None:
    payload = json.dumps(claims()).encode()
    for gate in (static(), static(SECRET, "HS256")):
        assert admitted(gate, by_hand({"alg": algorithm, "typ": "JWT"}, payload, lambda _: b"")) is None
        assert admitted(gate, by_hand({"typ": "JWT"}, payload, lambda _: b"")) is None
        assert admitted(gate, by_hand({"alg": ["RS256"], "kid": {}}, payload, lambda _: b"x")) is None


def test_a_public_key_is_never_taken_for_a_secret(issuer: Issuer) -> None:
    issuer.publish("RS256")
    public = private("RS256").public_key()
    forms = [
        pem("RS256").encode(),
        pem("RS256").strip().encode(),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
    ]
    for form in forms:
        for header in ({"alg": "HS256"}, {"alg": "HS256", "kid": "RS256"}):
            token = by_hand(header, json.dumps(claims()).encode(), lambda m, key=form: hmac_sha256(key, m))  # type: ignore[misc]
            assert admitted(static(), token) is None
            assert admitted(following(issuer), token) is None


def test_a_key_brought_along_in_the_token_counts_for_nothing(issuer: Issuer) -> None:
    issuer.publish("RS256")
    mine = RSAAlgorithm.to_jwk(private("RS256-mine").public_key(), as_dict=True)
    for brought in ({"jwk": mine}, {"jku": issuer.url}, {"x5c": ["MII"]}, {"kid": "../../dev/null"}):
        token = jwt.encode(claims(), private("RS256-mine"), algorithm="RS256", headers=brought)
        assert admitted(static(), token) is None
        assert admitted(following(issuer), token) is None


def test_published_keys_of_every_kind_are_used_for_their_own_algorithm(issuer: Issuer) -> None:
    issuer.publish("RS256", "ES256", "ES384", "EdDSA")
    gate = following(issuer)
    for name in ("RS256", "ES256", "ES384", "EdDSA"):
        assert admitted(gate, signed(name, kid=name))
        assert admitted(gate, signed(name))
    assert admitted(gate, signed("RS256", "PS256", kid="RS256"))
    assert admitted(gate, signed("RS256", "RS512", kid="RS256")) is None  # not allowed by the settings
    assert issuer.asked == 1
    assert admitted(gate, signed("ES256", kid="ES384")) is None
    issuer.publish("RS256", alg="RS256")
    assert admitted(following(issuer), signed("RS256", "PS256", kid="RS256")) is None


def test_keys_that_are_not_for_signatures_are_passed_over(issuer: Issuer) -> None:
    issuer.publish("RS256")
    usable = json.loads(issuer.body)["keys"][0]
    secret = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET.encode()).decode(), "kid": "oct"}
    private_half = RSAAlgorithm.to_jwk(private("RS256-mine"), as_dict=True)
    weak = RSAAlgorithm.to_jwk(private("weak").public_key(), as_dict=True)
    odd = [
        secret,
        private_half,
        weak,
        {**usable, "use": "enc"},
        {"kty": "RSA"},
        {"kty": []},
        7,
        None,
        {**usable, "n": 1},
    ]
    issuer.body = json.dumps({"keys": odd}).encode()
    with pytest.raises(Unavailable):
        admitted(following(issuer), signed())
    issuer.body = json.dumps({"keys": [*odd, usable]}).encode()
    gate = following(issuer)
    assert admitted(gate, signed())
    assert admitted(gate, jwt.encode(claims(), SECRET, algorithm="HS256", headers={"kid": "oct"})) is None
    assert admitted(gate, signed("RS256-mine")) is None


def test_a_rotated_key_is_learnt_at_once_and_an_old_one_forgotten(issuer: Issuer) -> None:
    issuer.publish("RS256-old")
    clock = Clock()
    gate = following(issuer, clock)
    old, new = signed("RS256-old", kid="RS256-old"), signed("RS256-new", kid="RS256-new")
    assert admitted(gate, old)
    assert admitted(gate, new) is None
    issuer.publish("RS256-old", "RS256-new")
    assert admitted(gate, new)
    assert admitted(gate, old)
    issuer.publish("RS256-new")
    clock.now += FRESH_S + 1
    assert admitted(gate, old) is None
    assert admitted(gate, new)


def test_unknown_keys_do_not_make_us_ask_more_than_now_and_then(issuer: Issuer) -> None:
    issuer.publish("RS256")
    clock = Clock()
    gate = following(issuer, clock)
    for number in range(50):
        assert admitted(gate, signed(kid=f"unknown-{number}")) is None
    assert issuer.asked == BURST
    clock.now += REFILL_S
    for number in range(50):
        assert admitted(gate, signed(kid=f"unknown-{number}")) is None
    assert issuer.asked == BURST + 1
    assert admitted(gate, signed(kid="RS256"))


def test_many_callers_at_once_ask_once(issuer: Issuer) -> None:
    issuer.publish("RS256")
    gate, token, found = following(issuer), signed(kid="RS256"), []

    async def one() -> None:
        found.append(await gate.admit(token))

    async def many() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(one)

    anyio.run(many)
    assert len(found) == 20
    assert all(found)
    assert issuer.asked == 1


def test_known_keys_outlast_an_issuer_that_is_down_for_a_while(issuer: Issuer) -> None:
    issuer.publish("RS256")
    clock = Clock()
    gate, token = following(issuer, clock), signed(kid="RS256")
    assert admitted(gate, token)
    issuer.status = 503
    clock.now += FRESH_S + 1
    assert admitted(gate, token)
    clock.now += KEPT_S
    with pytest.raises(Unavailable, match="Try again"):
        admitted(gate, token)
    issuer.publish("RS256")
    clock.now += REFILL_S
    assert admitted(gate, token)


def test_a_key_that_cannot_be_asked_for_makes_nobody_log_in_again(issuer: Issuer) -> None:
    issuer.publish("RS256-old")
    clock = Clock()
    gate = following(issuer, clock)
    old, new = signed("RS256-old", kid="RS256-old"), signed("RS256-new", kid="RS256-new")
    assert admitted(gate, old)
    issuer.status = 503
    for _ in range(BURST + 1):
        with pytest.raises(Unavailable, match="Try again"):
            admitted(gate, new)
        assert admitted(gate, old)
    issuer.publish("RS256-old", "RS256-new")
    clock.now += REFILL_S
    assert admitted(gate, new)
    assert admitted(gate, signed(kid="made-up")) is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (503, b""),
        (404, b"{}"),
        (302, b""),
        (200, b"not json"),
        (200, b"[]"),
        (200, b'{"keys": {}}'),
        (200, b'{"keys": []}'),
        (200, b"[" * 100_000),
        (200, b" " * 600_000),
    ],
)
def test_an_issuer_that_cannot_be_read_is_a_503_with_a_sentence(issuer: Issuer, status: int, body: bytes) -> None:
    issuer.status, issuer.body = status, body
    given: dict[str, Any] = {"auth": "jwt", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE, "jwt_jwks_url": issuer.url}
    settings = Settings(home=Path("unused"), **given)

    async def unreachable(*_: Any) -> None:
        raise AssertionError("nobody was admitted")

    with served(Authentication(unreachable, make_gate(settings), metadata_address(settings))) as port:
        status, said, headers = get(port, "/mcp", {"Authorization": f"Bearer {signed()}"})
        assert (status, said["error"]["code"]) == (503, "unavailable")
        assert said["error"]["message"].endswith(".")
        assert int(headers["retry-after"]) > 0
        assert get(port, "/mcp")[0] == 401
        assert get(port, "/mcp", {"Authorization": "Bearer noise"})[0] == 401


def test_keys_are_taken_from_the_address_that_was_set_and_no_other(issuer: Issuer) -> None:
    issuer.publish("RS256")
    issuer.status = 302  # to where the same keys are
    with pytest.raises(Unavailable):
        admitted(following(issuer), signed())


def test_an_issuer_that_does_not_listen_is_unavailable(issuer: Issuer) -> None:
    issuer.server.server_close()
    with pytest.raises(Unavailable):
        admitted(following(issuer), signed())


GATES = {"RS256": static(), "HS256": static(SECRET, "HS256")}
parts = st.text() | st.from_regex(r"[A-Za-z0-9_-]{0,60}", fullmatch=True)
headers = st.fixed_dictionaries(
    {},
    optional={
        "alg": st.sampled_from(["RS256", "HS256", "none", "ES256", 7, None, ["RS256"]]),
        "kid": st.text(max_size=5) | st.integers() | st.none(),
        "crit": st.lists(st.text(max_size=3), max_size=2) | st.integers(),
        "b64": st.booleans(),
        "typ": st.text(max_size=3),
    },
)
payloads = st.binary(max_size=40) | st.just(json.dumps(claims()).encode())
made = st.builds(
    lambda head, body, tail: by_hand(head, body, lambda _: tail), headers, payloads, st.binary(max_size=64)
)
joined = st.lists(parts, max_size=5).map(".".join)
deep = st.just(base64.urlsafe_b64encode(b"[" * 9000).rstrip(b"=").decode() + ".e30.x")


@given(token=st.text() | joined | made | deep, name=st.sampled_from(sorted(GATES)))
def test_no_text_is_a_token_and_none_makes_the_gate_fail(token: str, name: str) -> None:
    assert admitted(GATES[name], token) is None


@given(cut=st.integers(0, 700), letter=st.sampled_from("Aa0-_.="))
def test_a_token_with_one_letter_changed_is_nobodys(cut: int, letter: str) -> None:
    token = signed()
    at = cut % len(token)
    changed = token[:at] + letter + token[at + 1 :]
    assert admitted(GATES["RS256"], changed) is None or changed == token
    assert admitted(GATES["RS256"], token[:at]) is None
