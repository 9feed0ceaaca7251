"""The worker loop: claims executions, runs their handlers in threads and reports the outcomes."""
from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import socket
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Set

from .api import Claim, Client
from .handlers import Execution, Handlers, failure, failure_of, handler_of, run
from .transport import ApiError, pause_before

log = logging.getLogger("pgcue")

MOST_CLAIMS = 10
"""The service's maximum per claim request."""
REPORT_SECONDS = 5.0
"""Time for reports and releases after the handlers have had theirs."""
LOST = ("claim_lost", "not_execution_owner", "execution_not_found")
"""Another worker may have the execution, or it is gone."""
SETTLED = ("outcome_already_reported", "claim_lost", "execution_not_found", "invalid_state", "no_outcome")
"""There is nothing left to report."""
MALFORMED = (400, 413, 422)


class Worker:
    """Runs `tasks`, functions by task, on up to `concurrency` executions at once; `*` handles any other task.

    A function takes an `Execution` and returns an outcome, a dict such as `{"success": True, "external_id": "42"}`. An exception and
    anything else are failures. After `timeout` seconds, a failure is reported and
    `execution.cancelled` is set; the function keeps its place until it returns, since Python cannot end a thread.

    A `worker_id` belongs to one process at a time: when it starts, it releases what a former one has left behind.
    """

    def __init__(
        self, client: Client, tasks: Handlers, concurrency: int = 1, worker_id: Optional[str] = None, *,
        timeout: float = 3600.0, drain: float = 25.0, heartbeat: float = 60.0, wait: float = 30.0,
    ) -> None:
        if not tasks:
            raise ValueError("a worker needs at least one task")
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self.worker_id = worker_id or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._tasks = dict(tasks)
        self._concurrency = concurrency
        self._timeout = timeout
        self._drain = drain
        self._heartbeat = heartbeat
        self._wait = wait
        self._client = client
        self._single = client.using(retries=0)
        self._polls = client.using(retries=0).interruptible()
        self._change = threading.Condition()
        self._runs: Set[_Run] = set()
        self._stopping = threading.Event()
        self._hurrying = threading.Event()
        self._over = threading.Event()
        self._is_doubtful = False  # a claim request got no response, so it may have claimed something

    def run(self) -> None:
        """Works until `stop` is called, or SIGINT or SIGTERM arrives in the main thread. Raises ApiError if the key is invalid."""
        with self._signals():
            try:
                self._register()
                threading.Thread(target=self._beat, daemon=True).start()
                while not self._stopping.is_set():
                    self._claim()
            finally:
                self._stopping.set()
                self._end()

    def stop(self) -> None:
        """Makes `run` return: nothing more is claimed, and handlers have `drain` seconds to end; after a second call, none.

        Executions whose handlers are still running then are released, so that another worker can claim them at once.
        """
        if self._stopping.is_set():
            self._hurrying.set()
        self._stopping.set()
        self._polls.close()
        with self._change:
            self._change.notify_all()

    def _register(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                self._remove()
                return self._send_heartbeat()
            except ApiError as error:
                if 400 <= error.status < 500 and error.status != 429:
                    raise
                failures = self._pause("registration failed", failures, error)

    def _claim(self) -> None:
        """Claims as many executions as there is room for, and starts them."""
        with self._change:
            self._change.wait_for(lambda: self._stopping.is_set() or len(self._runs) < self._concurrency)
            room = self._concurrency - len(self._runs)
        failures = 0
        while not self._stopping.is_set():
            try:
                if self._is_doubtful:
                    self._settle_doubts()
                return self._start(min(room, MOST_CLAIMS))
            except ApiError as error:
                if self._stopping.is_set():
                    return
                if error.status in (401, 403):
                    raise
                self._is_doubtful = self._is_doubtful or error.sent and (error.status == 0 or error.status >= 500)
                failures = self._pause("claim failed", failures, error)

    def _start(self, limit: int) -> None:
        began = time.monotonic()
        body: Dict[str, Any] = {"worker_id": self.worker_id, "wait": self._wait, "limit": limit}
        if "*" not in self._tasks:
            body["tasks"] = list(self._tasks)
        try:
            claims: List[Claim] = self._polls.claim_next(body)["executions"]  # type: ignore[arg-type, typeddict-item]
        except ApiError as error:
            if error.code != "nothing_claimable":
                raise
            if self._wait and time.monotonic() - began < 0.5:  # the service is stopping
                self._stopping.wait(pause_before(2))
            return
        for claim in claims:
            run = _Run(self, claim)
            with self._change:
                self._runs.add(run)
            threading.Thread(target=run.keep, daemon=True).start()

    def _settle_doubts(self) -> None:
        """Releases claims whose response was lost, by removing the worker, which is safe only while it holds nothing else."""
        with self._change:
            self._change.wait_for(lambda: self._stopping.is_set() or all(run.is_settled for run in self._runs))
        if not self._stopping.is_set():
            self._remove()
            self._send_heartbeat()
            self._is_doubtful = False

    def _remove(self) -> None:
        """Releases all claims of this worker's id."""
        try:
            self._single.delete_worker(self.worker_id)
        except ApiError as error:
            if error.status != 404:
                raise

    def _send_heartbeat(self) -> None:
        self._single.heartbeat_worker({"worker_id": self.worker_id, "handlers": list(self._tasks)})

    def _beat(self) -> None:
        while not self._over.wait(self._heartbeat):
            try:
                self._send_heartbeat()
            except ApiError as error:
                log.warning("heartbeat failed: %s", error)

    def _pause(self, event: str, failures: int, error: ApiError) -> int:
        if failures == 0:
            log.warning("%s: %s", event, error)
        self._stopping.wait(pause_before(failures + 1, error))
        return failures + 1

    def _end(self) -> None:
        with self._change:
            is_idle = self._change.wait_for(lambda: not self._runs or self._hurrying.is_set(), self._drain)
            if not is_idle or self._runs:
                for run in self._runs:
                    run.give_back()
                self._change.wait_for(lambda: all(run.is_settled for run in self._runs), REPORT_SECONDS)
            unreported = [run for run in self._runs if not run.is_settled]
        self._over.set()
        if unreported:
            log.warning("%d executions not reported or released", len(unreported))
            return  # their claims last until the lease expires
        with contextlib.suppress(ApiError):
            self._client.using(retries=1, timeout=3.0).delete_worker(self.worker_id)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Stops at SIGINT and SIGTERM, in a thread: a signal may arrive while this one holds the locks that `stop` needs."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(*_: object) -> None:
            threading.Thread(target=self.stop, daemon=True).start()

        former = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)


class _Run:
    """One claim: its handler runs in one thread, and a second one keeps the claim and reports."""

    def __init__(self, worker: Worker, claim: Claim) -> None:
        self.is_settled = False  # there is nothing left to send
        self._worker = worker
        self._claim = claim
        self._id = claim["execution_id"]
        self._calls = worker._client.using(api_key=claim["execution_token"], retries=0)
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._outcome: Optional[Dict[str, Any]] = None
        self.execution = Execution(
            execution_id=self._id, cue_id=claim["cue_id"], task=claim["task"], payload=claim["payload"], attempt=claim["attempt"],
            scheduled_for=claim["scheduled_for"], token=claim["execution_token"],
        )

    def give_back(self) -> None:
        """Ends the wait for the handler. Its claim is released."""
        self._wake.set()

    def keep(self) -> None:
        worker = self._worker
        threading.Thread(target=self._handle, daemon=True).start()
        try:
            outcome = self._await_outcome()
            if outcome is not None:
                self._report(outcome)
        except Exception:
            log.exception("run failed (execution_id=%s)", self._id)
        with worker._change:
            self.is_settled = not worker._over.is_set()
            worker._change.notify_all()
        self._ended.wait()  # the handler keeps its place
        with worker._change:
            worker._runs.discard(self)
            worker._change.notify_all()

    def _handle(self) -> None:
        try:
            handler = handler_of(self._worker._tasks, self.execution.task)
            self._outcome = run(handler, self.execution) if handler else failure(f"no handler for task {self.execution.task}")
        except BaseException as error:  # such as SystemExit
            self._outcome = failure_of(error)
        finally:
            self._ended.set()
            self._wake.set()

    def _await_outcome(self) -> Optional[Dict[str, Any]]:
        """Sends heartbeats until the handler has ended. Returns None if the claim is lost or released."""
        interval = min(self._worker._heartbeat, self._claim["lease_seconds"] / 3)
        now = time.monotonic()
        deadline, beat_at = now + self._worker._timeout, now + interval
        while not self._wake.wait(max(0.0, min(deadline, beat_at) - now)):
            now = time.monotonic()
            if now >= deadline:
                self.execution.cancelled.set()
                return failure(f"timed out after {self._worker._timeout:g} s")
            if now >= beat_at:
                beat_at = now + interval
                if not self._extend():
                    self.execution.cancelled.set()
                    return None
        if self._outcome is None:
            self.execution.cancelled.set()
            self._release()
        return self._outcome

    def _extend(self) -> bool:
        try:
            self._calls.heartbeat_execution(self._id, claim_token=self._claim["claim_token"])
        except ApiError as error:
            if error.code in LOST:
                log.warning("claim lost: %s (execution_id=%s)", error.code, self._id)
                return False
        return True

    def _release(self) -> None:
        try:
            calls = self._worker._client.using(retries=1, timeout=3.0)
            calls.release_execution(self._id, claim_token=self._claim["claim_token"])
            log.info("released (execution_id=%s)", self._id)
        except ApiError as error:
            log.warning("not released: %s (execution_id=%s)", error, self._id)

    def _report(self, outcome: Dict[str, Any]) -> None:
        """Repeats the report until the service has accepted it, or has no use for it. A malformed one becomes a failure with the reason."""
        calls, failures = self._calls, 0
        while not self._worker._over.is_set():
            try:
                calls.report_outcome(self._id, outcome, claim_token=self._claim["claim_token"])  # type: ignore[arg-type]
                return log.info("reported (execution_id=%s, success=%s)", self._id, outcome["success"])
            except ApiError as error:
                if error.code in SETTLED:
                    return log.info("not reported: %s (execution_id=%s)", error.code, self._id)
                if error.status in MALFORMED:
                    log.warning("report rejected: %s (execution_id=%s)", error, self._id)
                    if str(outcome.get("error")).startswith("report rejected"):
                        return
                    outcome = failure(f"report rejected: {error.message}")
                    continue
                if error.status in (401, 403) and calls is self._calls:
                    calls = self._worker._single  # the execution's token has expired; the worker's own key may still report
                    continue
                if failures == 0:
                    log.warning("report delayed: %s (execution_id=%s)", error, self._id)
                failures += 1
                self._worker._over.wait(pause_before(failures, error))
