# Tests of report/gate/: suppressions, baselines, verdicts, and what CI servers read.
find_package(nlohmann_json REQUIRED)
memtrace_test(NAME gate_test
  SOURCES gate_baseline_test.cc gate_formats_test.cc gate_input_test.cc gate_judge_test.cc gate_policy_test.cc
    gate_suppressions_test.cc
  LIBS memtrace_gate memtrace_trace_builder nlohmann_json::nlohmann_json
  LABELS unit)
