"""CPython's own regression tests, of the python3.11 that Debian ships.

Needs the package libpython3.11-testsuite; no tree. Python takes its memory from malloc
(PYTHONMALLOC=malloc), so that every object passes the library, in the plain run as well.
"""

import os
import subprocess
import xml.etree.ElementTree

PYTHON = "/usr/bin/python3.11"
TESTS = "/usr/lib/python3.11/test"
# Threads, processes, signals, and what else meets an allocator or a preloaded library.
MODULES = """
test_json test_fork1 test_threading test_thread test_threadsignals test_threading_local
test_subprocess test_popen test_os test_posix test_signal test_mmap test_sqlite3 test_ctypes test_gc
test_exceptions test_faulthandler test_multiprocessing_fork test_multiprocessing_spawn
test_multiprocessing_forkserver test_multiprocessing_main_handling test_concurrent_futures
test_asyncio test_socket test_socketserver test_selectors test_select test_poll test_epoll
test_tracemalloc test_embed test_capi test_sys test_resource test_pty test_wait3 test_wait4
test_atexit test_weakref test_queue test_sched test_contextvars test_generators test_coroutines
test_io test_file test_fileio test_tempfile test_shutil test_shelve test_dbm test_zlib test_bz2
test_lzma test_hashlib test_ssl test_pickle test_struct test_array test_bytes test_unicode test_re
test_decimal test_datetime test_xml_etree_c test_expat test_cmd_line test_regrtest test_import
test_importlib test_venv test_zipfile test_tarfile test_mailbox test_readline test_locale
test_kqueue test_syslog test_support test_crashers test_repl test_runpy test_stat test_userdict
test_list test_dict test_set test_descr test_class test_float test_long test_complex test_builtin
test_compile test_ast test_dis test_audit test_call test_code test_super test_typing
""".split()


class CPython:
    name = "cpython"

    def __init__(self, directory):
        if not os.path.exists(os.path.join(TESTS, "test_threading.py")):
            raise FileNotFoundError(f"no tests in {TESTS}: install libpython3.11-testsuite")

    def title(self):
        version = subprocess.run([PYTHON, "-V"], capture_output=True, text=True).stdout
        return "CPython " + version.split()[-1]

    def pieces(self):
        return [name for name in MODULES
                if os.path.exists(os.path.join(TESTS, name)) or
                os.path.exists(os.path.join(TESTS, name + ".py"))]

    def command(self, piece, work):
        # VSOCK: without a host that answers they wait for ever.
        return ([PYTHON, "-m", "test", "--timeout", "1200", "--ignore", "*VSOCK*", "--junit-xml",
                 os.path.join(work, "junit.xml"), piece],
                {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}, work)

    def verdicts(self, piece, output, work):
        try:
            cases = xml.etree.ElementTree.parse(os.path.join(work, "junit.xml")).iter("testcase")
        except (OSError, xml.etree.ElementTree.ParseError):
            return {}
        found = {}
        for case in cases:
            name, number = case.get("name"), 1
            while (name if number == 1 else f"{name} #{number}") in found:
                number += 1  # a docstring example that several tests run
            tags = {child.tag for child in case}
            verdict = ("fail" if tags & {"error", "failure"} else
                       "skip" if "skipped" in tags or case.get("status") == "notrun" else "pass")
            found[name if number == 1 else f"{name} #{number}"] = verdict
        return found
