# Tests of report/tree/: how images are linked and laid out, what is said of all.
memtrace_test(NAME process_tree_test SOURCES process_tree_test.cc tree_text_test.cc
  LIBS memtrace_tree memtrace_trace_builder)
