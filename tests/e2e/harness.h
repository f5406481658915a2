// What the end-to-end tests share: run a program with and without the library,
// read the report of its trace, read the counting shim's counts.
//
// Single-threaded, like the tests that use it. Nothing here decides whether a
// result is right; a step that cannot be done throws std::runtime_error, which
// fails the test with the cause.

#ifndef MEMTRACE_TESTS_E2E_HARNESS_H_
#define MEMTRACE_TESTS_E2E_HARNESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/files.h"
#include "tests/temp_dir.h"
#include "tests/tracees/counting_shim.h"

namespace memtrace::e2e {

using Json = nlohmann::json;
using Words = std::vector<std::string>;
using Environment = std::vector<std::pair<std::string, std::string>>;

// The parts under test and the tests' own helpers, in the build tree.
std::string LibraryPath();                             // lib/libmemtrace.so
std::string ToolPath();                                // bin/memtrace
std::string ShimPath();                                // the counting shim
std::string ExamplePath(const std::string& name);      // build/examples/name
std::string TraceePath(const std::string& name);       // a program of tests/tracees
std::string SourcePath(const std::string& in_source);  // a file of the source tree

// Names of the files in `directory` that end in `suffix`, sorted.
std::vector<std::string> FilesIn(const std::string& directory, const std::string& suffix = "");
bool Exists(const std::string& path);

struct Command {
  Words arguments;           // the first is looked up in PATH
  Environment environment;   // before a small fixed one, see BaseEnvironment()
  std::string directory;     // to run in; empty: the current one
  std::string input;         // file for standard input; empty: /dev/null
  int timeout_seconds = 120;
};

struct Result {
  int exit_status = -1;  // -1: ended by `signal`
  int signal = 0;
  std::string out, err;
  bool timed_out = false;
  pid_t pid = 0;
  std::string Outcome() const;  // "exit 0", "signal 11", "timed out"
};

// A program that was started and has not been waited for. Its destructor kills it.
class Process {
 public:
  explicit Process(const Command& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  // Does its standard output end in `text`, so far?
  bool HasWritten(const std::string& text) const;
  // Waits until it does, ten seconds at most. False: it did not.
  bool AwaitOutput(const std::string& text) const;
  Result Wait(int timeout_seconds);

 private:
  TempDir streams_;
  pid_t pid_;
  bool ended_ = false;
};

// PATH, HOME and LANG as the tests fix them: what a program does must not depend
// on who runs the tests.
Environment BaseEnvironment(const std::string& home);

Result RunCommand(const Command& command);

// `command` under the library; its traces go to `traces`/<program>.<pid>.mtr.
Command Traced(Command command, const std::string& traces);
// The same, and behind memtrace the counting shim, with its counts in `counts`.
Command TracedAndCounted(Command command, const std::string& traces, const std::string& counts);
// Under the counting shim alone.
Command Counted(Command command, const std::string& counts);

// `memtrace report --format json`; throws what it said if it failed.
Json Report(const std::string& trace, const Words& more = {});
// The same without leaks and sites, which take time to name: coverage, totals, threads.
Json BriefReport(const std::string& trace);
std::string ReportText(const std::string& trace, const Words& more = {});

// The counts of `program` (as the shim names it) and process `pid`; 0: any one.
MemtraceCounts Counts(const std::string& counts, const std::string& program, pid_t pid = 0);

// What %e is for a program: the name of the file that it is in the end, behind links.
std::string ProgramName(const std::string& program);

// The trace of `program` (as %e names it) and process `pid`; 0: any one.
std::string TraceOf(const std::string& traces, const std::string& program, pid_t pid = 0);

// Every function name of the report's stacks, sites and leaks.
std::vector<std::string> FunctionsOf(const Json& report);
bool NamesFunction(const Json& report, const std::string& regex);

// Allocations of the report's sites all of whose blocks are of this size.
uint64_t AllocationsOf(const Json& report, uint64_t bytes);

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_HARNESS_H_
