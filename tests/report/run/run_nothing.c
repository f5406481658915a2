// A shared library that can be preloaded and does nothing: stands for one that
// did not get to trace.
int memtrace_run_nothing(void) { return 0; }
