import os
import socket
import threading
import time
import unittest
from unittest import mock

from pgcue import ApiError, Client
from support import Answers, client, fire, name

ANSWER = (200, b'{"id": "x"}')


class ClientTest(unittest.TestCase):
    def refused(self, call):
        with self.assertRaises(ApiError) as caught:
            call()
        return caught.exception

    def test_puts_updates_pauses_fires_replays_and_deletes_cues(self):
        key = f"{name()}/a b".replace(" ", "_")
        definition = {"name": "report", "cron": "0 9 * * *", "worker": True, "payload": {"task": name(), "text": "caf\u00e9 \U0001f600"}}
        cue = client.put_cue_by_key(key, definition)
        self.assertEqual((cue["key"], cue["changed"], cue["version"]), (key, True, 1))
        self.assertFalse(client.put_cue_by_key(key, definition)["changed"])
        self.assertEqual(client.get_cue_by_key(key)["payload"], definition["payload"])
        self.assertEqual(self.refused(lambda: client.put_cue_by_key(key, definition, if_none_match="*")).code, "cue_exists")
        self.assertEqual(client.update_cue(cue["id"], {"name": "other"}, if_version=1)["version"], 2)
        conflict = self.refused(lambda: client.pause_cue(cue["id"], if_version=1))
        self.assertEqual((conflict.status, conflict.code), (412, "version_conflict"))
        self.assertEqual(client.pause_cue(cue["id"], {"reason": "broken"})["pause_reason"], "broken")
        self.assertEqual(client.resume_cue(cue["id"])["status"], "active")
        first = client.fire_cue(cue["id"], {"payload_override": {"n": 2}}, idempotency_key=key)
        self.assertEqual(client.fire_cue(cue["id"], {"payload_override": {"n": 2}}, idempotency_key=key)["id"], first["id"])
        self.assertEqual(client.cancel_execution(first["id"])["status"], "failed")
        self.assertEqual(client.replay_execution(first["id"])["replayed_from"], first["id"])
        self.assertEqual(client.get_execution(first["id"])["payload"]["n"], 2)
        self.assertIsNone(client.delete_cue(cue["id"]))
        self.assertEqual(self.refused(lambda: client.get_cue(cue["id"])).code, "cue_not_found")

    def test_applies_a_set(self):
        cues = {"set": name("set"), "cues": [{"key": name("key"), "name": "a", "cron": "@daily", "worker": True}]}
        planned, done = client.apply_cues({**cues, "dry_run": True}), client.apply_cues(cues)
        self.assertEqual([len(planned["created"]), len(done["created"])], [1, 1])
        self.assertEqual(client.list_cues(set=cues["set"]).page()["total"], 1)

    def test_iterates_over_all_pages(self):
        prefix = name("page")
        for number in range(5):
            client.put_cue_by_key(f"{prefix}:{number}", {"name": "a", "cron": "@daily", "worker": True, "tags": [prefix, "a&b"]})
        cues = client.list_cues(tag=[prefix, "a&b"], limit=2)
        self.assertEqual([cue["key"][-1] for cue in cues], ["4", "3", "2", "1", "0"])
        self.assertEqual([len(cues.page()["cues"]), cues.page()["total"], cues.page()["has_more"]], [2, 5, True])
        self.assertEqual([cue["key"][-1] for cue in client.list_cues(tag=[prefix], limit=2, offset=1)], ["3", "2", "1", "0"])
        for number in range(3):
            client.put_calendar(f"{prefix}-{number}", {"dates": ["2030-12-25"]})
        calendars = [calendar["name"] for calendar in client.list_calendars(limit=2) if calendar["name"].startswith(prefix)]
        self.assertEqual(calendars, [f"{prefix}-0", f"{prefix}-1", f"{prefix}-2"])
        execution_id = fire(prefix)
        since = client.get_execution(execution_id)["scheduled_for"]
        self.assertIn(execution_id, [execution["id"] for execution in client.list_executions(from_=since, status="pending")])
        self.assertEqual([execution["id"] for execution in client.list_claimable(task=prefix)], [execution_id])

    def test_reads_the_feed_of_events(self):
        key = name("feed")
        cursor = client.list_events().page()["cursor"]
        cue = client.put_cue_by_key(key, {"name": "a", "cron": "@daily", "worker": True})
        feed = client.list_events(after=cursor, cue_id=cue["id"], wait=30)
        for event in feed:
            self.assertEqual((event["type"], event["cue_key"]), ("cue.created", key))
            break
        past = client.list_events(after=cursor, cue_id=cue["id"], limit=1)
        self.assertEqual([event["type"] for event in past], ["cue.created"])
        self.assertFalse(past.truncated)
        self.assertEqual(list(client.list_events(after=past.cursor, cue_id=cue["id"])), [])

    def test_errors_say_what_is_wrong(self):
        invalid = self.refused(lambda: client.create_cue({"name": 1, "cron": "@daily", "worker": True}))
        self.assertEqual((invalid.status, invalid.detail[0]["loc"]), (422, ["body", "name"]))
        self.assertTrue(invalid.request_id)
        self.assertEqual(self.refused(lambda: client.using(api_key="svc_sk_wrong").get_account()).status, 401)
        hidden = self.refused(lambda: Client(api_key="se\ncret"))
        self.assertEqual((hidden.code, "cret" in str(hidden)), ("unsendable", False))
        page = Answers(self, (200, b"<html>"), (302, b"", {"Location": "/login"}), (500, b'{"error": "odd"}'))
        for status in (200, 302, 500):
            error = self.refused(lambda: Client(page.url, "k").get_account())
            self.assertEqual((error.status, error.code), (status, "unexpected_answer"))
        with self.assertRaises(ValueError):
            Client("localhost:8080")

    def test_takes_address_and_key_from_the_environment(self):
        server = Answers(self, ANSWER)
        with mock.patch.dict(os.environ, {"PGCUE_BASE_URL": f"{server.url}/base/", "PGCUE_API_KEY": "from-env\n"}):
            Client().get_cue("a/b c")
        [(method, path, headers)] = server.requests
        self.assertEqual((method, path, headers["authorization"]), ("GET", "/base/v1/cues/a%2Fb%20c", "Bearer from-env"))

    @mock.patch("time.sleep")
    def test_retries_what_is_safe_to_repeat(self, _):
        busy = (503, b"")
        limited = (429, b'{"error": {"code": "rate_limit_exceeded", "message": "m"}}', {"Retry-After": "2"})
        cue = {"name": "a"}
        for call, answers, sent in [
            (lambda client: client.get_cue("x"), [None, busy, (502, b""), ANSWER], 4),
            (lambda client: client.update_cue("x", cue), [busy, ANSWER], 2),
            (lambda client: client.report_outcome("x", {"success": True}), [None, ANSWER], 2),
            (lambda client: client.create_cue(cue, idempotency_key="k"), [None, ANSWER], 2),
            (lambda client: client.fire_cue("x", {"idempotency_key": "k"}), [None, ANSWER], 2),
            (lambda client: client.apply_cues({"set": "s", "cues": [], "dry_run": True}), [None, ANSWER], 2),
            (lambda client: client.create_cue(cue), [limited, ANSWER], 2),
        ]:
            server = Answers(self, *answers)
            self.assertEqual(call(Client(server.url, "k")), {"id": "x"})
            self.assertEqual(len(server.requests), sent)
        self.assertEqual([pause.args[0] >= 2 for pause in time.sleep.mock_calls][-1], True)  # as Retry-After asks

    @mock.patch("time.sleep")
    def test_does_not_repeat_anything_else(self, _):
        late = (429, b'{"error": {"code": "rate_limit_exceeded", "message": "m"}}', {"Retry-After": "61"})
        for call, answer in [
            (lambda client: client.create_cue({"name": "a"}), None),
            (lambda client: client.create_cue({"name": "a"}), (503, b"")),
            (lambda client: client.update_cue("x", {}, if_version=1), None),
            (lambda client: client.pause_cue("x", if_version=1), (503, b"")),
            (lambda client: client.get_cue("x"), late),
            (lambda client: client.get_cue("x"), (500, b"")),
            (lambda client: client.using(retries=0).get_cue("x"), None),
        ]:
            server = Answers(self, answer, ANSWER)
            self.refused(lambda: call(Client(server.url, "k")))
            self.assertEqual(len(server.requests), 1)

    @mock.patch("time.sleep")
    def test_a_deletion_whose_response_was_lost_has_succeeded(self, _):
        gone = (404, b'{"error": {"code": "cue_not_found", "message": "m"}}')
        self.assertIsNone(Client(Answers(self, None, gone).url, "k").delete_cue("x"))
        self.assertEqual(self.refused(lambda: Client(Answers(self, gone).url, "k").delete_cue("x")).code, "cue_not_found")

    @mock.patch("time.sleep")
    def test_a_request_that_was_never_sent_is_retried(self, sleep):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
        error = self.refused(lambda: Client(url, "k").create_cue({"name": "a"}))
        self.assertEqual((error.code, error.sent, sleep.call_count), ("unreachable", False, 3))

    def test_a_slow_response_is_a_timeout(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            error = self.refused(lambda: Client(url, "k", timeout=0.1, retries=0).get_cue("x"))
        self.assertEqual((error.code, error.sent), ("timeout", True))

    def test_keeps_connections_and_notices_those_that_the_service_has_closed(self):
        server = Answers(self, ANSWER, ANSWER, (200, b'{"id": "x"}', {"Connection": "close"}), ANSWER)
        calls = Client(server.url, "k", retries=0)
        for _ in range(4):
            calls.create_cue({"name": "a"})
        self.assertEqual(len(server.connections), 2)
        # The server closes this one when it is idle.
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        answer = b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'
        closed = threading.Semaphore(0)

        def accept():
            for _ in range(2):
                connection = listener.accept()[0]
                connection.recv(65536)
                connection.sendall(answer)
                connection.close()
                closed.release()

        threading.Thread(target=accept, daemon=True).start()
        calls = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", "k", retries=0)
        for _ in range(2):
            calls.create_cue({"name": "a"})
            closed.acquire()

    def test_close_ends_calls_in_progress(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            calls = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", "k", retries=0)

            def close():
                with silent.accept()[0] as connection:
                    connection.recv(1)  # the request has been sent
                    calls.close()

            threading.Thread(target=close, daemon=True).start()
            self.assertEqual(self.refused(lambda: calls.get_cue("x")).code, "unreachable")
        self.assertEqual(self.refused(lambda: calls.get_cue("x")).code, "closed")
