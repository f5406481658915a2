// OwnCounts: the file in which counts_its_own_calls tells what it did, and the comparison of a
// trace with it: 0 lost, 0 invented.

#ifndef MEMTRACE_TESTS_E2E_OWN_COUNTS_H_
#define MEMTRACE_TESTS_E2E_OWN_COUNTS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "tests/e2e/harness.h"
#include "tests/tracees/counts_its_own_calls.h"

namespace memtrace::e2e {

class OwnCounts {
 public:
  OwnCounts();  // a new file, all zeros
  ~OwnCounts();
  OwnCounts(const OwnCounts&) = delete;
  OwnCounts& operator=(const OwnCounts&) = delete;

  // The tracee with this file; `more` is END CALLS.
  Words Arguments(int lanes, const Words& more = {}) const;

  pid_t pid() const { return static_cast<pid_t>(page_->pid); }  // 0: not yet there
  uint64_t Returned() const;  // calls of all lanes that gave a block
  uint64_t Begun() const;
  uint64_t Returned(int lane) const { return page_->lane[lane].calls_returned; }
  // Waits until lane 0 had so many; false: it took more than ten seconds.
  bool Await(uint64_t calls) const;

  struct Comparison {
    std::string problems;  // empty: the trace has what had returned, once, and nothing else
    uint64_t allocations = 0, releases = 0;  // of the lanes, in the trace
  };
  // Of a whole trace, by `memtrace dump`, event by event.
  Comparison CompareWith(const std::string& trace) const;
  // Of a trace that may lack its beginning: what is there is without a gap up to the end.
  Comparison CompareEndWith(const std::string& trace) const;

 private:
  Comparison Compare(const std::string& trace, bool from_the_beginning) const;

  TempDir directory_;
  CountsPage* page_;
};

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_OWN_COUNTS_H_
