// One `memtrace check`, from its options to its exit status.

#ifndef MEMTRACE_REPORT_GATE_CHECK_SESSION_H_
#define MEMTRACE_REPORT_GATE_CHECK_SESSION_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace memtrace::report {

// As the user gave them; empty: not given.
struct CheckFlags {
  std::vector<std::string> words;  // traces and directories; with `run` a program and arguments
  bool run = false;
  std::string traces;              // with `run`: the directory that keeps the traces
  std::vector<std::string> programs;  // patterns, several separated by commas
  std::string fail_on = "definite";
  std::vector<std::string> suppressions;
  std::string default_suppressions = "yes";
  std::string gen_suppressions;
  std::string baseline, tolerance = "0";
  bool update_baseline = false;
  std::vector<std::string> max_leaked, max_peak, max_allocations, max_growth, max_invalid_frees,
      max_mismatched_frees;
  std::string missing_evidence = "fail";
  std::string format;
  std::vector<std::string> outputs;  // FILE, or FORMAT=FILE
  std::string source_root, sysroot;
  std::vector<std::string> debug_dirs;
  std::optional<size_t> top;
  bool full = false, quiet = false;
};

// Of `words`, those behind `check`, no flags could be made, which was told. What -o names among
// them is of an earlier run: it is removed.
void RemoveEarlierVerdicts(const std::vector<std::string>& words);

// Returns the exit status.
int CheckSession(const CheckFlags& flags);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GATE_CHECK_SESSION_H_
