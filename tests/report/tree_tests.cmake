# Tests of report/tree/: how images are linked and laid out.
memtrace_test(NAME process_tree_test SOURCES process_tree_test.cc LIBS memtrace_tree)
