"""Verification of received webhooks."""
from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

Secrets = Union[str, Iterable[str]]


class InvalidSignature(Exception):
    """A webhook that failed verification: respond with 401.

    `code` is one of `no_signature`, `stale_timestamp`, `wrong_signature`, `not_json`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Webhook:
    """The content of a verified webhook."""

    payload: Any
    """The parsed body; None if empty."""
    id: str
    """Deduplicate by it: the execution's id in a callback; alerts and other webhooks have ids of their own."""
    execution_id: str
    """Empty, like `cue_id` and `scheduled_for`, in webhooks that are not callbacks."""
    cue_id: str
    scheduled_for: str
    """ISO 8601 in UTC."""
    attempt: int
    """1 for the first attempt; 0 in webhooks that are not callbacks."""
    timestamp: int
    """Epoch seconds."""


def verify_webhook(
    body: Union[bytes, str], headers: Mapping[str, Any], secrets: Secrets, *, now: Optional[float] = None, tolerance: float = 300
) -> Webhook:
    """Verifies a webhook and returns its content.

    Every signature present (`X-Service-Signature`, `webhook-signature`) must have been made with one of the secrets; there are several
    during an overlap. `body` must be the raw body, not parsed and serialised again. Raises InvalidSignature.
    """
    keys = [secrets] if isinstance(secrets, str) else list(secrets)
    if not keys or not all(_encoded(key) for key in keys):
        raise ValueError("verify_webhook needs the signing secret")
    raw = body.encode() if isinstance(body, str) else bytes(body)
    seconds = time.time() if now is None else now
    values = _lower(headers)
    webhook_id = values.get("webhook-id", "")
    schemes = [scheme for scheme in (_service(values), _standard(values, webhook_id)) if values.get(scheme[0].lower())]
    if not schemes:
        raise InvalidSignature("no_signature", "X-Service-Signature and webhook-signature are both missing.")
    for name, signatures, timestamp, prefix, digest in schemes:
        if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(seconds - int(timestamp)) > tolerance:
            raise InvalidSignature("stale_timestamp", f"The timestamp of {name} is not within {tolerance} seconds of now.")
        signed = f"{prefix}{timestamp}.".encode("latin-1", "replace") + raw
        # All pairs are compared, so that the time doesn't depend on which one matches.
        if not any([hmac.compare_digest(digest(key, signed), signature) for key in keys for signature in signatures]):
            raise InvalidSignature("wrong_signature", f"{name} does not match: another secret, or a changed body.")
    is_callback = not values.get("x-service-alert-id") and not values.get("x-service-event")
    execution_id = values.get("x-service-execution-id") or (webhook_id if is_callback else "")
    if webhook_id and execution_id and webhook_id != execution_id:
        raise InvalidSignature("wrong_signature", "webhook-id and X-Service-Execution-Id differ.")
    attempt = values.get("x-service-attempt", "")
    return Webhook(
        payload=_parse(raw),
        id=webhook_id or execution_id,
        execution_id=execution_id,
        cue_id=values.get("x-service-cue-id", ""),
        scheduled_for=values.get("x-service-scheduled-for", ""),
        attempt=int(attempt) if re.fullmatch("[0-9]{1,9}", attempt) else 0,
        timestamp=int(schemes[0][2]),
    )


# Name, signatures, timestamp, prefix of the signed text, and the function that signs it.
_Scheme = Tuple[str, List[bytes], str, str, Callable[[str, bytes], bytes]]


def _service(values: Dict[str, str]) -> _Scheme:
    """`v1=` and hex over `timestamp.body`; the key is the whole secret as text."""

    def digest(secret: str, signed: bytes) -> bytes:
        return b"v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()

    signatures = _split(values.get("x-service-signature", ""), ",")
    return "X-Service-Signature", signatures, values.get("x-service-timestamp", ""), "", digest


def _standard(values: Dict[str, str], webhook_id: str) -> _Scheme:
    """Standard Webhooks: `v1,` and base64 over `id.timestamp.body`; the key is the decoded secret."""

    def digest(secret: str, signed: bytes) -> bytes:
        encoded = _encoded(secret)
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        return b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())

    signatures = _split(values.get("webhook-signature", ""), " ")
    return "webhook-signature", signatures, values.get("webhook-timestamp", ""), f"{webhook_id}.", digest


def _encoded(secret: str) -> str:
    return secret[6:] if secret.startswith("whsec_") else secret


def _split(text: str, separator: str) -> List[bytes]:
    return [value.strip().encode("utf-8", "replace") for value in text.split(separator) if value.strip()]


def _lower(headers: Mapping[str, Any]) -> Dict[str, str]:
    """Headers of any framework, by lower-case names; those of `http.client` and `http.server` are mappings too."""
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _parse(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return json.loads(raw.decode())
    except ValueError:
        raise InvalidSignature("not_json", "The body is signed but not valid JSON.") from None
