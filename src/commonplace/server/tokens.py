"""Tokens of an authorization server, checked here and mapped to principals."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

import jwt

from commonplace.network import require_allowed
from commonplace.server.principal import Principal
from commonplace.server.signing import Keyring, PublishedKeys, SigningKey, StaticKey, algorithms_of
from commonplace.settings import BadSetting, Settings
from commonplace.store.accounts import SCOPES

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
