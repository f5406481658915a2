"""Runs one piece of a suite in one way and keeps what it found: a verdict for each test, what the
piece's exit status was, and what a sample of the traces says of itself."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

LOSSES = ("dropped events", "lost blocks", "unordered events", "missed_events")
SAMPLE_LARGEST, SAMPLE_RANDOM, SAMPLE_BYTES = 3, 17, 2 << 30


def file_name(piece):
    return piece.replace("/", "_")


def end_session(session):
    """Ends what a piece left behind: the processes of its session."""
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.getsid(int(entry)) == session:
                os.kill(int(entry), signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


class PieceRunner:
    def __init__(self, library, tool, results, prefix, timeout, keep_traces):
        self.library, self.tool, self.results = library, tool, results
        self.prefix, self.timeout, self.keep_traces = prefix, timeout, keep_traces
        self.sessions, self.cancelled = set(), False

    def cancel(self):
        """Ends what is running; its results are not kept."""
        self.cancelled = True
        for session in list(self.sessions):
            end_session(session)

    def is_done(self, suite, piece, way):
        return os.path.exists(os.path.join(self.results, suite.name, way,
                                           file_name(piece) + ".json"))

    def run(self, suite, piece, way):
        directory = os.path.join(self.results, suite.name, way)
        result_file = os.path.join(directory, file_name(piece) + ".json")
        os.makedirs(directory, exist_ok=True)
        # Each way in a directory of the same name length: paths are in what tests allocate and print.
        work = tempfile.mkdtemp(prefix=f"suite-{suite.name}-")
        traces = tempfile.mkdtemp(prefix="suite-traces-")
        for place in (work, traces):
            os.chmod(place, 0o1777)  # some tests change their user
        try:
            result = self._run(suite, piece, way, work, traces,
                               os.path.join(directory, file_name(piece) + ".log"))
            if not self.cancelled:
                with open(result_file, "w") as out:
                    json.dump(result, out, indent=1)
        finally:
            shutil.rmtree(work, ignore_errors=True)
            if not self.keep_traces:
                shutil.rmtree(traces, ignore_errors=True)

    def _run(self, suite, piece, way, work, traces, log):
        command, added, directory = suite.command(piece, work)
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": work,
                       "LANG": "C.UTF-8", "TMPDIR": work}
        environment.update(added)
        out = os.path.join(traces, "%e.%p.%t.mtr")
        if way == "preload":
            command = ["env", "LD_PRELOAD=" + self.library, "MEMTRACE_OUT=" + out] + command
        elif way == "run":
            command = [self.tool, "run", "-o", out, "--"] + command
        started = time.monotonic()
        timed_out = False
        with open(log, "wb") as log_file:
            process = subprocess.Popen(self.prefix + command, cwd=directory, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=log_file,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            self.sessions.add(process.pid)
            try:
                process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                end_session(process.pid)
                process.wait()
                self.sessions.discard(process.pid)
        seconds = time.monotonic() - started
        with open(log, "rb") as log_file:
            output = log_file.read().decode("utf-8", "replace")
        return {"status": "timed out" if timed_out else process.returncode,
                "seconds": round(seconds, 1),
                "verdicts": suite.verdicts(piece, output, work),
                "traces": self._traces(traces)}

    def _traces(self, directory):
        files = [os.path.join(place, name) for place, _, names in os.walk(directory)
                 for name in names if name.endswith(".mtr")]
        # An empty one is of a process that was killed as it started.
        files = [file for file in files if os.path.getsize(file)]
        files.sort(key=os.path.getsize, reverse=True)
        rest = files[SAMPLE_LARGEST:]
        sample = files[:SAMPLE_LARGEST] + random.Random(0).sample(
            rest, min(len(rest), SAMPLE_RANDOM))
        told = {"count": len(files), "bytes": sum(map(os.path.getsize, files)),
                "read": 0, "events": 0, "unreadable": [], "losses": {}}
        budget = SAMPLE_BYTES
        for file in sample:
            budget -= os.path.getsize(file)
            if budget < 0:
                continue
            info = subprocess.run([self.tool, "info", file], capture_output=True, text=True)
            told["read"] += 1
            if info.returncode != 0:
                told["unreadable"].append(os.path.basename(file) + ": " + info.stderr.strip()[-300:])
                continue
            told["events"] += int(re.search(r"^  events +(\d+)", info.stdout, re.M).group(1))
            for loss in LOSSES:
                found = re.search(rf"^  {loss} +(\d+)", info.stdout, re.M)
                if found and int(found.group(1)):
                    told["losses"].setdefault(loss, []).append(
                        f"{os.path.basename(file)}: {found.group(1)}")
        return told
