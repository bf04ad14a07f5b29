"""Bearer tokens of an authorization server: their keys, their signatures, and whom they let in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import http.client
import json
import logging
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key
from jwt import PyJWTError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from commonplace.errors import Unavailable
from commonplace.network import require_allowed
from commonplace.server.principal import Principal
from commonplace.settings import BadSetting, Settings
from commonplace.store.accounts import SCOPES

FRESH_S = 300.0
"""The seconds that published keys are used without fetching again: so long a withdrawn key still counts."""
KEPT_S = 3600.0
"""The seconds that they are used while the issuer does not answer."""
FETCH_S = 5.0
BURST, REFILL_S = 4, 15.0
"""A burst of fetches, then one in `REFILL_S`: tokens with unknown keys cannot make us flood an issuer."""
LARGEST_SET = 512 * 1024
MOST_KEYS = 100
SMALLEST_RSA = 2048

_SECRETS = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The algorithms of shared secrets, and the bytes a secret must have."""
_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_KNOWN = {*_SECRETS, *_RSA, *_CURVES.values(), "EdDSA"}
_FROM_JWK: dict[str, Any] = {
    "RSA": RSAAlgorithm.from_jwk,
    "EC": ECAlgorithm.from_jwk,
    "OKP": OKPAlgorithm.from_jwk,
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key to check signatures with, and the only algorithms it may be used for."""

    id: str | None
    material: Any
    algorithms: frozenset[str]


class Keyring(Protocol):
    """A source of signing keys."""

    async def find(self, key_id: str | None, algorithm: str) -> list[SigningKey]:
        """Return the keys that may have signed a token with this header. Raise Unavailable if none can be read now."""
        ...


def algorithms_of(setting: str) -> frozenset[str]:
    """Return the algorithms a setting allows. Raise BadSetting for unknown ones, or secrets beside public keys."""
    names = frozenset(name for part in setting.split(",") if (name := part.strip()))
    unknown = sorted(names - _KNOWN)
    if unknown or not names:
        allowed = ", ".join(sorted(_KNOWN))
        raise BadSetting(f"jwt_algorithms must name some of {allowed}, not {', '.join(unknown) or 'nothing'}.")
    if names & set(_SECRETS) and names - set(_SECRETS):
        raise BadSetting(
            "jwt_algorithms mixes HS… with others. HS… is for a secret, the others for public keys: keep one."
        )
    return names


class StaticKey:
    """The keyring of the one key in the settings."""

    def __init__(self, setting: str, allowed: frozenset[str]) -> None:
        text = _read(setting)
        material = _public_key(text)
        if material is None:
            self._key = SigningKey(None, text.encode(), _for_secret(text, allowed))
            return
        usable = fitting(material) & allowed
        if not usable:
            names = ", ".join(sorted(fitting(material)))
            wanted = f"Set jwt_algorithms to {names}." if names else f"RSA needs {SMALLEST_RSA} bits at least."
            raise BadSetting(f"jwt_key is a public key that no algorithm of jwt_algorithms can use. {wanted}")
        self._key = SigningKey(None, material, usable)

    async def find(self, key_id: str | None, algorithm: str) -> list[SigningKey]:
        return [self._key] if algorithm in self._key.algorithms else []


class PublishedKeys:
    """The keys at an issuer's address: cached, and fetched again when a token names an unknown one."""

    def __init__(self, url: str, allowed: frozenset[str], clock: Callable[[], float] = time.monotonic) -> None:
        if allowed & set(_SECRETS):
            raise BadSetting("jwt_algorithms names HS…, but published keys are public. Use RS256, ES256 or EdDSA.")
        self._url, self._allowed, self._clock = _secure(url), allowed, clock
        self._keys: list[SigningKey] = []
        self._fetched = float("-inf")
        self._tries, self._counted = float(BURST), clock()
        self._asked = 0
        self._failed = False
        """Whether the last fetch failed."""
        self._asking = anyio.Lock()

    async def find(self, key_id: str | None, algorithm: str) -> list[SigningKey]:
        if algorithm not in self._allowed:
            return []
        is_stale = self._age() > FRESH_S and (not self._asking.locked() or self._age() > KEPT_S)
        if is_stale:
            await self._ask()
        keys = self._fitting(key_id, algorithm)
        if not keys and not is_stale:
            await self._ask()
            keys = self._fitting(key_id, algorithm)
        if self._age() > KEPT_S or (self._failed and not keys):
            raise Unavailable("The authorization server's keys cannot be read at the moment. Try again in a minute.")
        return keys

    def _fitting(self, key_id: str | None, algorithm: str) -> list[SigningKey]:
        return [
            key
            for key in self._keys
            if algorithm in key.algorithms and (key_id is None or key.id is None or key.id == key_id)
        ]

    def _age(self) -> float:
        return self._clock() - self._fetched

    async def _ask(self) -> None:
        """Fetch the keys, one request at a time and not too often. A failure keeps those that are here."""
        before = self._asked
        async with self._asking:
            if self._asked != before or not self._may_ask():
                return  # someone else has just asked, or many have
            self._asked += 1
            try:
                with anyio.fail_after(FETCH_S):
                    keys = await anyio.to_thread.run_sync(
                        _fetch, self._url, self._allowed, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
                    )
            except (OSError, ValueError, http.client.HTTPException) as error:  # a time limit is an OSError
                log.warning("The keys at %s cannot be read: %s", self._url, str(error) or type(error).__name__)
                self._failed = True
                return
            self._keys, self._fetched, self._failed = keys, self._clock(), False

    def _may_ask(self) -> bool:
        now = self._clock()
        self._tries = min(float(BURST), self._tries + (now - self._counted) / REFILL_S)
        self._counted = now
        if self._tries < 1:
            return False
        self._tries -= 1
        return True


def published(document: bytes, allowed: frozenset[str]) -> list[SigningKey]:
    """Return the usable keys of a JWK set, ignoring others. Raise ValueError for a set without any."""
    try:
        entries = json.loads(document)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("it is no JSON Web Key Set") from None
    keys = [key for entry in _listed(entries)[:MOST_KEYS] if (key := _entry(entry, allowed))]
    if not keys:
        raise ValueError("it holds no key that may be used")
    return keys


def fitting(material: Any) -> frozenset[str]:
    """Return the algorithms a public key can be used for; none for private or weak keys and unknown curves."""
    if isinstance(material, RSAPublicKey):
        return _RSA if material.key_size >= SMALLEST_RSA else frozenset()
    if isinstance(material, EllipticCurvePublicKey):
        return frozenset({_CURVES[material.curve.name]} if material.curve.name in _CURVES else ())
    return frozenset({"EdDSA"} if isinstance(material, Ed25519PublicKey | Ed448PublicKey) else ())


def _listed(entries: Any) -> list[Any]:
    return entries if isinstance(entries, list) else []


def _entry(entry: Any, allowed: frozenset[str]) -> SigningKey | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or str(entry.get("kty")) not in _FROM_JWK:
        return None
    try:
        material = _FROM_JWK[entry["kty"]](entry)
    except (PyJWTError, ValueError, TypeError, KeyError, UnsupportedAlgorithm):
        return None
    usable = fitting(material) & allowed
    if entry.get("alg") is not None:
        usable &= {str(entry["alg"])}
    key_id = entry.get("kid")
    return SigningKey(key_id if isinstance(key_id, str) else None, material, usable) if usable else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirect: keys come from the address that was set."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _fetch(url: str, allowed: frozenset[str]) -> list[SigningKey]:
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310  it was checked
    try:
        with urllib.request.build_opener(_NoRedirects()).open(request, timeout=FETCH_S) as reply:
            document: bytes = reply.read(LARGEST_SET + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(f"the answer has HTTP status {error.code}") from None
    if len(document) > LARGEST_SET:
        raise ValueError(f"it is larger than {LARGEST_SET} bytes")
    return published(document, allowed)


def _secure(url: str) -> str:
    try:
        place = urlsplit(url)
        local = place.hostname in ("localhost", "127.0.0.1", "::1")
    except ValueError:
        raise BadSetting(f"jwt_jwks_url is no address: {url!r}. Write it as https://….") from None
    if not place.hostname or place.scheme not in ("https", "http") or (place.scheme == "http" and not local):
        raise BadSetting(f"jwt_jwks_url must be an https address (http on this machine only), not {url!r}.")
    return url


def _read(setting: str) -> str:
    if not setting.startswith("file:"):
        return setting.replace("\\n", "\n").strip()  # a PEM squeezed into one line of an environment file
    path = Path(os.path.expanduser(setting.removeprefix("file:")))
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise BadSetting(f"jwt_key names {path}, which cannot be read: {error}. Correct the path.") from error


def _public_key(text: str) -> Any:
    """Return the public key in a text, as PEM or bare base64 DER; None for a secret. Raise BadSetting for others."""
    if "PRIVATE KEY" in text:
        raise BadSetting("jwt_key is a private key. Only its public half belongs here: set jwt_key to that.")
    try:
        if "-----BEGIN" in text:
            return load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise BadSetting(
            "jwt_key looks like PEM and holds no public key. Write it as -----BEGIN PUBLIC KEY-----…."
        ) from None
    if text.startswith(("ssh-", "ecdsa-sha2-", "{")):
        raise BadSetting("jwt_key is a key in a form that is not read here. Write a public key in PEM.")
    try:
        return load_der_public_key(base64.b64decode("".join(text.split()), validate=True))
    except (ValueError, binascii.Error, UnsupportedAlgorithm):
        return None


def _for_secret(text: str, allowed: Iterable[str]) -> frozenset[str]:
    wanted = [name for name in sorted(allowed) if name in _SECRETS]
    if not wanted:
        raise BadSetting("jwt_key is a secret, which is for HS256, HS384 or HS512. Name one in jwt_algorithms.")
    for name in wanted:
        if len(text.encode()) < _SECRETS[name]:
            raise BadSetting(f"jwt_key is too short for {name}: a secret of {_SECRETS[name]} bytes or more is needed.")
    return frozenset(wanted)


LEEWAY_S = 30
LONGEST_TOKEN = 16 * 1024
MOST_TRIED = 4
"""The number of keys that are tried for a token that names none."""


class JwtGate:
    """A gate that admits bearers of tokens which the issuer signed for the audience and which are valid now."""

    def __init__(self, issuer: str, audience: str, keys: Keyring) -> None:
        self._issuer, self._audience, self._keys = issuer, audience, keys

    async def admit(self, token: str | None) -> Principal | None:
        if not token or len(token) > LONGEST_TOKEN or not token.isascii():
            return None
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            return None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
            return None
        for key in (await self._keys.find(key_id, algorithm))[:MOST_TRIED]:
            claims = self._claims(token, key)
            if claims:
                return _principal(self._issuer, claims)
        return None

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def _claims(self, token: str, key: SigningKey) -> dict[str, Any] | None:
        try:
            return jwt.decode(
                token,
                key.material,
                algorithms=sorted(key.algorithms),
                issuer=self._issuer,
                audience=self._audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            return None


def make_jwt_gate(settings: Settings) -> JwtGate:
    """Return the gate that the settings describe. Raise BadSetting for one that is missing or wrong."""
    if not settings.jwt_issuer or not settings.jwt_audience:
        missing = "jwt_audience" if settings.jwt_issuer else "jwt_issuer"
        raise BadSetting(f"auth is jwt and {missing} is not set. Set it to what the tokens carry.")
    if bool(settings.jwt_jwks_url) == bool(settings.jwt_key):
        raise BadSetting("auth is jwt and needs exactly one of jwt_jwks_url and jwt_key.")
    allowed = algorithms_of(settings.jwt_algorithms)
    keys: Keyring = (
        PublishedKeys(settings.jwt_jwks_url, allowed) if settings.jwt_jwks_url else StaticKey(settings.jwt_key, allowed)
    )
    if settings.jwt_jwks_url:  # whose form the line above has checked
        require_allowed(urlsplit(settings.jwt_jwks_url).hostname or "", "jwt_jwks_url", offline=settings.offline)
    return JwtGate(settings.jwt_issuer, settings.jwt_audience, keys)


def space_of(issuer: str, subject: str) -> str:
    """Return the space of a subject. It is a hash, so that no subject can spell another's space, or a path."""
    return "jwt-" + hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()[:48]


def _principal(issuer: str, claims: dict[str, Any]) -> Principal | None:
    subject = claims["sub"]
    if not isinstance(subject, str) or not subject:
        return None
    space = space_of(issuer, subject)
    return Principal(space, space, _scopes(claims))


def _scopes(claims: dict[str, Any]) -> frozenset[str]:
    """Return our scopes among the `scope` and `scp` claims, lists or texts with blanks; `read` where there is none."""
    names: set[str] = set()
    for claim in (claims.get("scope"), claims.get("scp")):
        words = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
        names.update(word for word in words if isinstance(word, str))
    return frozenset(names & set(SCOPES)) or frozenset({"read"})
