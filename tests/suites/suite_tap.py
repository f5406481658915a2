"""Suites whose scripts speak TAP: git's t/ and perl's t/ and lib/.

git needs a source tree in which `make` was done, for its test-tool; the scripts test the
installed git (GIT_TEST_INSTALLED). perl needs an unbuilt source tree of the installed version:
its tests are run with the installed perl and modules in the place of the built ones.
"""

import os
import re
import shutil
import subprocess
import tempfile
import threading


def tap_verdicts(output):
    found = {}
    for bad, number, rest in re.findall(r"^(not )?ok (\d+)\b(.*)$", output, re.M):
        directive = re.search(r"# *(skip|todo)", rest, re.I)
        verdict = "fail" if bad else "pass"
        if directive:
            verdict = "skip" if directive.group(1).lower() == "skip" else "pass"
        found[number] = verdict  # names have temporary files, addresses, process ids in them
    plan = re.search(r"^1\.\.0 *# *skip(.*)$", output, re.M | re.I)
    if plan and not found:
        found["all"] = "skip"
    return found


class Git:
    name = "git"

    def __init__(self, directory):
        self.tree = directory
        if not os.path.exists(os.path.join(directory, "t", "helper", "test-tool")):
            raise FileNotFoundError("git=DIRECTORY: no t/helper/test-tool built in it")

    def title(self):
        return "git " + subprocess.run(["git", "version"], capture_output=True,
                                       text=True).stdout.split()[2]

    def pieces(self):
        return sorted(name[:-3] for name in os.listdir(os.path.join(self.tree, "t"))
                      if re.match(r"t\d{4}-.*\.sh$", name))

    def command(self, piece, work):
        return (["sh", f"./{piece}.sh", "--root=" + work],
                {"GIT_TEST_INSTALLED": os.path.dirname(shutil.which("git")),
                 "TEST_OUTPUT_DIRECTORY": work},
                os.path.join(self.tree, "t"))

    def verdicts(self, piece, output, work):
        return tap_verdicts(output)


class Perl:
    name = "perl"

    def __init__(self, directory):
        self.tree, self.perl = directory, shutil.which("perl")
        self.modules, self.making_modules = None, threading.Lock()
        if not os.path.exists(os.path.join(directory, "t", "test.pl")):
            raise FileNotFoundError("perl=DIRECTORY: not a source tree of perl")

    def _modules(self):
        """The installed modules as a built tree has them: in one directory."""
        with self.making_modules:
            if self.modules:
                return self.modules.name
            self.modules = tempfile.TemporaryDirectory(prefix="suite-modules-")
            os.chmod(self.modules.name, 0o755)
            directories = subprocess.run(
                [self.perl, "-MConfig", "-e", r'print "$Config{privlibexp}\n$Config{archlibexp}"'],
                capture_output=True, text=True).stdout.split()
            for directory in reversed(directories):  # the architecture's own first
                for place, _, names in os.walk(directory):
                    into = os.path.join(self.modules.name, os.path.relpath(place, directory))
                    os.makedirs(into, exist_ok=True)
                    for name in names:
                        if not os.path.lexists(os.path.join(into, name)):
                            os.symlink(os.path.join(place, name), os.path.join(into, name))
            return self.modules.name

    def title(self):
        return "perl " + subprocess.run([self.perl, "-e", "printf '%vd', $^V"], capture_output=True,
                                        text=True).stdout

    def pieces(self):
        found = []
        for group in ("base", "cmd", "comp", "io", "re", "uni", "mro", "op", "lib"):
            for name in sorted(os.listdir(os.path.join(self.tree, "t", group))):
                if name.endswith(".t"):
                    found.append(f"{group}/{name[:-2]}")
        return found

    def command(self, piece, work):
        shutil.copytree(os.path.join(self.tree, "t"), os.path.join(work, "t"), symlinks=True)
        for place in ("perl", "t/perl"):
            os.symlink(self.perl, os.path.join(work, place))
        os.symlink(self._modules(), os.path.join(work, "lib"))
        return (["./perl", f"{piece}.t"], {"PERL_CORE": "1", "PERL_HASH_SEED": "0"}, os.path.join(work, "t"))

    def verdicts(self, piece, output, work):
        return tap_verdicts(output)
