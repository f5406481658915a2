"""redis's own tests (tests/ of its source tree, in Tcl), against the installed redis-server.

Needs a source tree of the installed version, unbuilt, and tclsh. The tests want the programs
in src/: a copy of tests/ is made, with links to those in PATH.
"""

import os
import re
import shutil
import subprocess

PROGRAMS = ("redis-server", "redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb",
            "redis-sentinel")
VERDICTS = {"ok": "pass", "err": "fail", "exception": "fail", "timeout": "fail", "skip": "skip",
            "ignore": "skip"}


class Redis:
    name = "redis"

    def __init__(self, directory):
        self.tree = directory
        if not os.path.exists(os.path.join(directory, "tests", "test_helper.tcl")):
            raise FileNotFoundError("redis=DIRECTORY: not a source tree of redis")

    def title(self):
        version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True)
        return "redis " + re.search(r"v=(\S+)", version.stdout).group(1)

    def pieces(self):
        tests = os.path.join(self.tree, "tests")
        found = []
        for group in ("unit", "unit/type", "integration"):
            for name in sorted(os.listdir(os.path.join(tests, group))):
                if name.endswith(".tcl"):
                    found.append(f"{group}/{name[:-4]}")
        return found

    def command(self, piece, work):
        shutil.copytree(os.path.join(self.tree, "tests"), os.path.join(work, "tests"))
        for name in ("redis.conf", "sentinel.conf"):
            shutil.copy(os.path.join(self.tree, name), work)
        os.mkdir(os.path.join(work, "src"))
        for program in PROGRAMS:
            if shutil.which(program):
                os.symlink(shutil.which(program), os.path.join(work, "src", program))
        os.makedirs(os.path.join(work, "tests", "tmp"), exist_ok=True)
        return (["tclsh", "tests/test_helper.tcl", "--clients", "1", "--single", piece,
                 "--timeout", "500"], {}, work)

    def verdicts(self, piece, output, work):
        found = {}
        plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
        for kind, name in re.findall(r"^\[(\w+)\]:? (.*)$", plain, re.M):
            if kind not in VERDICTS:
                continue
            name = re.sub(r" \(\d+ ms\)$", "", name)
            name = re.sub(r"\d{4,}", "N", name)  # ports, pids, amounts
            number, key = 1, name
            while key in found:
                number += 1
                key = f"{name} #{number}"
            found[key] = VERDICTS[kind]
        return found
