"""SQLite's own tests (test/ of its source tree, in Tcl), with its testfixture.

Needs a source tree in which `./configure && make testfixture` was done: the fixture is the library,
instrumented, in an interpreter; there is no packaged one.
"""

import os
import re

SCRIPTS = """
select1 select2 select3 select4 select5 select6 select9 selectA insert update delete delete2 index
where where2 where7 join join2 trigger1 trigger2 trans trans2 savepoint savepoint2 vacuum vacuum2
attach attach2 attach4 auth collate1 collate2 conflict func cast date expr in like alter alter2
analyze autoinc autovacuum backup backup2 backup_malloc bind blob boundary1 capi2 capi3 corrupt
corrupt2 crash crash2 exclusive fkey1 fkey2 fts3aa fts3ab fts3malloc fts4aa fts4content incrblob
incrblob2 io ioerr ioerr2 journal1 json101 json102 lock lock2 lock3 malloc malloc3 malloc4 malloc5
malloc7 malloc8 mallocA mallocB mallocC mallocD mallocE mallocF mallocG mallocI mallocJ mallocK
memdb memsubsys1 mmap1 mmap2 mutex1 mutex2 pager1 pagerfault pcache pcache2 pragma printf quota
rowid rtree schema shared shared2 shared3 softheap1 sort subquery tableapi tempdb temptable
thread001 thread002 thread003 thread004 thread005 thread1 thread2 threadtest unixexcl unlock notify1
notify2 vtab1 vtab2 wal wal2 wal3 wal5 walcrash walfault walthread window1 with1 zerodamage
zeroblob
""".split()


class Sqlite:
    name = "sqlite"

    def __init__(self, directory):
        self.tree = directory
        if not os.path.exists(os.path.join(directory, "testfixture")):
            raise FileNotFoundError("sqlite=DIRECTORY: no testfixture built in it")

    def title(self):
        with open(os.path.join(self.tree, "VERSION")) as file:
            return "SQLite " + file.read().strip()

    def pieces(self):
        return [name for name in SCRIPTS
                if os.path.exists(os.path.join(self.tree, "test", name + ".test"))]

    def command(self, piece, work):
        return ([os.path.join(self.tree, "testfixture"),
                 os.path.join(self.tree, "test", piece + ".test")], {}, work)

    def verdicts(self, piece, output, work):
        found = {}
        # A test of threads prints dots for its progress.
        for name, said in re.findall(r"^\.*(\S+?)\.\.\.(.*)$", output, re.M):
            found[name] = "pass" if said.strip().startswith("Ok") else (
                "skip" if "mitted" in said else "fail")
        for name in re.findall(r"^! (\S+) (?:expected|got)", output, re.M):
            found[name] = "fail"
        return found
