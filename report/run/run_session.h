// One `memtrace run`, from its options to its exit status.

#ifndef MEMTRACE_REPORT_RUN_RUN_SESSION_H_
#define MEMTRACE_REPORT_RUN_RUN_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace memtrace::report {

// The options as the user gave them; empty: not given, so that the variables of
// the environment hold.
struct RunOptions {
  std::string output;
  std::string stacks, children, leak_check, sample_bytes, max_bytes, keep, cross_check;
  bool free_stacks = false;
  std::string faults;
  std::string library;
  std::string sample_interval;  // as absl::ParseDuration() takes it
  bool no_samples = false;      // of the pressure lane
  std::string finish;  // a spool directory; then nothing is run
  bool quiet = false;
  bool passing = false;  // the output is read by the caller and then removed
  bool verbose = false;
  std::vector<std::string> command;
};

struct RunOutcome {
  bool started = false;  // else `missing` says why not
  // The exit status is the traced program's own, and not that of one that did not start or was not
  // traced.
  bool is_the_programs = false;
  int end_signal = 0;  // that ended the program
  std::vector<std::string> traces;  // the files that it wrote
  // What is not in the output.
  struct Missing {
    std::string program;  // file name of the executable; empty: it is not known
    std::string why;      // a sentence
    uint32_t pid = 0;     // of a process that runs on
    std::string was;      // what this was before it became `program`, where that has a trace
  };
  std::vector<Missing> missing;
  bool failed = false;  // some of these could not be read or written; the others still run
};

// Returns the exit status. Single-threaded when called; prints to stderr only.
int RunSession(const RunOptions& options, RunOutcome* outcome = nullptr);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_RUN_SESSION_H_
