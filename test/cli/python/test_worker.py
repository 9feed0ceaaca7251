import logging
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from pgcue import ApiError, Client, Worker
from support import Proxy, client, ended, eventually, fire, name, success

logging.getLogger("pgcue").addHandler(logging.NullHandler())

PROGRAM = """
import os, sys, time
from pgcue import Client, Worker

def work(execution):
    print(execution.attempt, flush=True)
    time.sleep(60 if execution.attempt == 1 and sys.argv[3] == "hang" else 0.3)
    return {"success": True}

Worker(Client(), {sys.argv[1]: work}, worker_id=sys.argv[2]).run()
print("ended", flush=True)
"""


class WorkerTest(unittest.TestCase):
    def start(self, tasks, calls=client, **options):
        worker = Worker(calls, tasks, **{"drain": 0, **options})
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 20)
        self.addCleanup(worker.stop)
        worker.thread = thread
        return worker

    def program(self, *args):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, *args], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_runs_handlers_and_reports_their_outcomes(self):
        task, executions = name(), []

        async def later(execution):
            return {"success": True, "external_id": "async"}

        def raises(execution):
            raise ValueError("no rows\0")

        def exits(execution):
            sys.exit(3)

        def refused(shown):
            return {"success": False, "error": f'the handler returned {shown} instead of an outcome, such as {{"success": True}}'}

        returned = {
            "none": (lambda execution: executions.append(execution), refused("None")),
            "true": (lambda execution: True, refused("True")),
            "outcome": (lambda execution: {"success": True, "external_id": "42"}, {"success": True, "external_id": "42"}),
            "failed": (lambda execution: {"success": False, "error": "e"}, {"success": False, "error": "e"}),
            "async": (later, {"success": True, "external_id": "async"}),
            "raises": (raises, {"success": False, "error": "ValueError: no rows\ufffd"}),
            "exits": (exits, {"success": False, "error": "SystemExit: 3"}),
            "text": (lambda execution: "x" * 101, refused(f"'{'x' * 99}…")),
            "empty": (lambda execution: {}, refused("{}")),
            "object": (lambda execution: {"success": True, "metadata": {"a": object}}, {
                "success": False,
                "error": "the handler returned an outcome that is not JSON: Object of type type is not JSON serializable",
            }),
        }
        ids = {word: fire(f"{task}-{word}") for word in returned}
        self.start({f"{task}-{word}": handler for word, (handler, _) in returned.items()}, concurrency=3)
        for word, (_, expected) in returned.items():
            execution = ended(ids[word])
            outcome = {key: execution["outcome"].get(key) for key in ("success", "external_id", "error")}
            self.assertEqual(outcome, {"external_id": None, "error": None, **expected})
            self.assertEqual(execution["status"], "success" if expected["success"] else "failed")
        [execution] = executions
        self.assertEqual((execution.execution_id, execution.task, execution.attempt), (ids["none"], f"{task}-none", 1))
        self.assertEqual(execution.payload, {"task": f"{task}-none", "n": 1})

    def test_a_rejected_outcome_is_a_failure_with_the_reason(self):
        task = name()
        execution_id = fire(task)
        self.start({task: lambda execution: {"success": True, "external_id": "x" * 256}})
        self.assertRegex(ended(execution_id)["outcome"]["error"], "^report rejected: .*external_id")

    def test_runs_as_many_at_once_as_it_may(self):
        task, running, most = name(), [], []
        barrier = threading.Barrier(3)

        def work(execution):
            running.append(execution)
            barrier.wait(20)  # three run at once
            most.append(len(running))
            running.remove(execution)
            return {"success": True}

        ids = [fire(task) for _ in range(6)]
        self.start({task: work}, concurrency=3)
        self.assertEqual([ended(execution_id)["status"] for execution_id in ids], ["success"] * 6)
        self.assertLessEqual(max(most), 3)

    def test_a_lost_claim_cancels_the_execution(self):
        task, cancelled = name(), []

        def work(execution):
            if execution.attempt == 1:
                cancelled.append(execution.cancelled.wait(20))
                return {"success": False, "error": "too late"}
            return {"success": True}

        execution_id = fire(task)
        worker = self.start({task: work}, heartbeat=0.1)
        eventually(lambda: client.get_execution(execution_id)["status"] == "delivering")
        client.delete_worker(worker.worker_id)
        execution = ended(execution_id)
        self.assertEqual((cancelled, execution["status"], execution["attempts"]), ([True], "success", 2))

    def test_heartbeats_extend_the_lease(self):
        task, release = name(), threading.Event()
        execution_id = fire(task)
        worker = self.start({task: lambda execution: success(release.wait(20))}, heartbeat=0.1)
        eventually(lambda: client.get_execution(execution_id)["status"] == "delivering")

        def heartbeat():
            return next(row for row in client.list_workers() if row["worker_id"] == worker.worker_id)["last_heartbeat"]

        first = heartbeat()
        eventually(lambda: heartbeat() > first)
        lease = client.get_execution(execution_id)["lease_expires_at"]
        eventually(lambda: client.get_execution(execution_id)["lease_expires_at"] > lease)
        release.set()
        self.assertEqual(ended(execution_id)["status"], "success")

    def test_a_handler_that_never_returns_times_out_and_keeps_its_place(self):
        task, release, cancelled = name(), threading.Event(), threading.Event()

        def work(execution):
            if execution.payload["n"] == 1:
                execution.cancelled.wait(20)
                cancelled.set()
                release.wait(20)
            return {"success": True}

        first = fire(task)
        worker = self.start({task: work}, timeout=0.3)
        execution = ended(first)
        self.assertEqual((execution["status"], execution["outcome"]["error"]), ("failed", "timed out after 0.3 s"))
        self.assertTrue(cancelled.wait(20))
        second = fire(task, payload={"task": task, "n": 2})
        time.sleep(0.3)
        self.assertEqual(client.get_execution(second)["status"], "pending")
        release.set()
        self.assertEqual(ended(second)["status"], "success")
        worker.stop()

    def test_stop_lets_handlers_end(self):
        task, release = name(), threading.Event()
        execution_id = fire(task)
        worker = self.start({task: lambda execution: success(release.wait(20))}, drain=20)
        eventually(lambda: client.get_execution(execution_id)["status"] == "delivering")
        worker.stop()
        other = fire(task)
        release.set()
        worker.thread.join(20)
        self.assertEqual(client.get_execution(execution_id)["status"], "success")
        self.assertEqual(client.get_execution(other)["status"], "pending")
        self.assertNotIn(worker.worker_id, [row["worker_id"] for row in client.list_workers()])

    def test_releases_what_has_not_ended_when_the_time_is_over(self):
        for drain in (0.2, 60):
            task, cancelled = name(), threading.Event()
            execution_id = fire(task)
            worker = self.start({task: lambda execution: execution.cancelled.wait(20) and cancelled.set()}, drain=drain)
            eventually(lambda: client.get_execution(execution_id)["status"] == "delivering")
            worker.stop()
            if drain == 60:
                worker.stop()  # the second call does not wait
            worker.thread.join(20)
            self.assertEqual(client.get_execution(execution_id)["status"], "pending")
            self.assertTrue(cancelled.wait(20))

    def test_stop_interrupts_a_long_poll(self):
        worker = self.start({name(): print})
        eventually(lambda: worker.worker_id in [row["worker_id"] for row in client.list_workers()])
        time.sleep(0.2)
        began = time.monotonic()
        worker.stop()
        worker.thread.join(20)
        self.assertLess(time.monotonic() - began, 15)

    def test_repeats_a_report_until_it_is_accepted(self):
        for fault in ("refuse", "lose"):
            task, proxy, runs = name(), Proxy(self), []
            execution_id = fire(task)
            getattr(proxy, fault)("/outcome", 2)
            self.start({task: lambda execution: success(runs.append(1))}, calls=proxy.client)
            self.assertEqual((ended(execution_id)["status"], len(runs)), ("success", 1))
            eventually(lambda: len(proxy.met) == 2)

    def test_releases_claims_whose_response_was_lost(self):
        task, proxy, runs = name(), Proxy(self), []
        ids = [fire(task) for _ in range(2)]
        proxy.lose("/v1/executions/claim")
        self.start({task: lambda execution: success(runs.append(execution.execution_id))}, calls=proxy.client, concurrency=2)
        self.assertEqual([ended(execution_id)["status"] for execution_id in ids], ["success"] * 2)
        self.assertEqual((sorted(runs), len(proxy.met)), (sorted(ids), 1))

    def test_refuses_a_bad_key_and_no_tasks(self):
        with self.assertRaises(ApiError) as caught:
            Worker(Client(api_key="svc_sk_wrong"), {"a": print}).run()
        self.assertEqual(caught.exception.status, 401)
        self.assertRaises(ValueError, Worker, client, {})
        self.assertRaises(ValueError, Worker, client, {"a": print}, 0)

    def test_what_a_killed_worker_had_is_run_by_the_next_one_with_its_name(self):
        task, worker_id = name(), name("worker")
        execution_id = fire(task)
        process = self.program(task, worker_id, "hang")
        self.assertEqual(process.stdout.readline(), "1\n")
        process.kill()
        process.wait()
        self.program(task, worker_id, "hang")
        execution = ended(execution_id)
        self.assertEqual((execution["status"], execution["attempts"]), ("success", 2))

    def test_a_signal_lets_handlers_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            task = name()
            execution_id = fire(task)
            process = self.program(task, name("worker"), "")
            self.assertEqual(process.stdout.readline(), "1\n")
            os.kill(process.pid, number)
            self.assertEqual((process.wait(20), process.stdout.read()), (0, "ended\n"))
            self.assertEqual(client.get_execution(execution_id)["status"], "success")
