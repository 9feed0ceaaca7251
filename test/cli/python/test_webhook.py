import base64
import hashlib
import hmac
import json
import os
import time
import unittest

from pgcue import InvalidSignature, verify_webhook

SIGNED = json.loads(os.environ["SIGNED"])
NOW = SIGNED["timestamp"]
NEWER, OLDER = SIGNED["secrets"]
OTHER = "whsec_b3RoZXI="
EXTRA = {"X-Service-Execution-Id": SIGNED["executionId"], "X-Service-Cue-Id": "cue_1", "X-Service-Attempt": "2"}
HEADERS = {**SIGNED["headers"], **EXTRA, "X-Service-Scheduled-For": "2030-01-01T00:00:00.000Z"}


def only(prefix):
    return {name: value for name, value in HEADERS.items() if not name.lower().startswith(prefix)}


class WebhookTest(unittest.TestCase):
    def rejected(self, body=SIGNED["body"], headers=HEADERS, secrets=NEWER, now=NOW):
        with self.assertRaises(InvalidSignature) as caught:
            verify_webhook(body, headers, secrets, now=now)
        return caught.exception.code

    def test_returns_the_content(self):
        webhook = verify_webhook(SIGNED["body"].encode(), HEADERS, NEWER, now=NOW)
        self.assertEqual(webhook.payload, {"name": "caf\u00e9"})
        self.assertEqual((webhook.id, webhook.execution_id), (SIGNED["executionId"],) * 2)
        self.assertEqual((webhook.cue_id, webhook.attempt, webhook.timestamp), ("cue_1", 2, NOW))
        self.assertEqual(webhook.scheduled_for, "2030-01-01T00:00:00.000Z")

    def test_accepts_either_scheme_either_signature_and_any_case(self):
        for headers in (HEADERS, only("x-service-signature"), only("webhook-"), {k.lower(): v for k, v in HEADERS.items()}):
            for secrets in (NEWER, OLDER, [NEWER, OTHER], (OTHER, OLDER)):
                self.assertEqual(verify_webhook(SIGNED["body"], headers, secrets, now=NOW).attempt, 2)

    def test_every_signature_present_must_match(self):
        for name in ("X-Service-Signature", "webhook-signature"):
            broken = HEADERS[name].replace("v1=", "v1=0").replace("v1,", "v1,0")
            self.assertEqual(self.rejected(headers={**HEADERS, name: broken}), "wrong_signature")
        self.assertEqual(self.rejected(headers={**HEADERS, "webhook-id": "another"}), "wrong_signature")
        self.assertEqual(self.rejected(headers={**only("webhook-"), "webhook-id": "another"}), "wrong_signature")

    def test_rejects_other_bodies_secrets_and_times(self):
        self.assertEqual(self.rejected(body=SIGNED["body"] + " "), "wrong_signature")
        self.assertEqual(self.rejected(secrets=OTHER), "wrong_signature")
        self.assertEqual(self.rejected(headers=EXTRA), "no_signature")
        for now in (NOW - 301, NOW + 301):
            self.assertEqual(self.rejected(now=now), "stale_timestamp")
            self.assertEqual(verify_webhook(SIGNED["body"], HEADERS, NEWER, now=now, tolerance=400).attempt, 2)
        self.assertEqual(self.rejected(now=None), "stale_timestamp")
        for timestamp in ("", "-1", "1e9", "\u0661", str(NOW) + "0"):
            self.assertEqual(self.rejected(headers={**HEADERS, "X-Service-Timestamp": timestamp}), "stale_timestamp")
        for odd in ("v1", "v1=\u00e9", ",,", "v0=" + "0" * 64):
            self.assertEqual(self.rejected(headers={**HEADERS, "X-Service-Signature": odd}), "wrong_signature")
        for none in ("", [], [NEWER, ""], "whsec_"):
            self.assertRaises(ValueError, verify_webhook, SIGNED["body"], HEADERS, none, now=NOW)

    def test_uses_the_current_time(self):
        timestamp, body = str(int(time.time())), b""
        for secret in (NEWER, OLDER):
            key = base64.b64decode(secret[6:])
            signature = base64.b64encode(hmac.new(key, f"alert_1.{timestamp}.".encode() + body, hashlib.sha256).digest()).decode()
            headers = {"webhook-id": "alert_1", "webhook-timestamp": timestamp, "webhook-signature": f"v1a,x v1,{signature}"}
            webhook = verify_webhook(body, {**headers, "X-Service-Alert-Id": "alert_1"}, secret)
            self.assertEqual((webhook.payload, webhook.id, webhook.execution_id, webhook.attempt), (None, "alert_1", "", 0))

    def test_a_signed_body_that_is_not_json_is_rejected(self):
        timestamp, body = str(NOW), b"\xff{"
        digest = hmac.new(NEWER.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {"x-service-signature": f"v1={digest}", "x-service-timestamp": timestamp}
        self.assertEqual(self.rejected(body=body, headers=headers), "not_json")
