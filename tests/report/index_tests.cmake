# Tests of report/index/.
memtrace_test(NAME pass_state_test OPTIMIZED SOURCES pass_state_test.cc history.cc random_trace.cc
  LIBS memtrace_index memtrace_trace_builder TIMEOUT 300)
memtrace_test(NAME index_test SOURCES index_file_test.cc summary_store_test.cc grouping_store_test.cc
  LIBS memtrace_index memtrace_long_trace TIMEOUT 300)
