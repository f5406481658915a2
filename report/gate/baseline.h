// Baseline: the leaks a project knows of, in a text file in its repository.
//
//   # BUG-123: goes with the rewrite of the cache
//   definite 3f2a9c00deadbeef bytes=48 blocks=3 until=2027-01-31 program=app caller=Load  cache.c
//   definite 90aa51c2deadbeef bytes=32 blocks=1 lost_bytes=320 lost_blocks=10 program=app caller=Push  list.c
//
// A line is a leak: its kind and fingerprint, then what one process may leak there; where some of
// it was lost indirectly, also what that is together, which then is what counts, for which of them
// leads to the others is not the same in each run; for how long that is accepted (that day is the
// last), the program's file name, and for people the caller, which takes the rest of the line.
// Nothing in it changes with a rebuild or a moved line. Lines that begin with # are comments; those
// directly above a leak are about it and go with it.
//
// Update() changes no line that is still true and no order: the difference between two versions
// is what has changed.

#ifndef MEMTRACE_REPORT_GATE_BASELINE_H_
#define MEMTRACE_REPORT_GATE_BASELINE_H_

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/findings/leaks.h"
#include "report/leak/leak_kinds.h"

namespace memtrace::report::gate {

struct BaselineEntry {
  LeakKind kind = LeakKind::kUnfreed;
  std::string fingerprint;
  uint64_t bytes = 0;   // at most, in one process
  uint64_t blocks = 0;
  LeakAmount lost;      // kDefinite: with what is indirectly lost at most, if any is; else nothing
  std::string until;    // YYYY-MM-DD; empty: without end
  std::string program;  // file name of the executable; "*": any
  std::string caller;
  uint32_t line = 0;    // in the file
};

// Program, kind and fingerprint of a leak: kDefinite for what is lost, by itself or with another one,
// for which of the two it is, is not the same in each run.
using LostLeak = std::tuple<std::string, LeakKind, std::string>;
LostLeak LostLeakOf(const std::string& program, LeakKind kind, const std::string& fingerprint);

// What an update did to the file: so many leaks each.
struct BaselineChanges {
  bool is_new = false;  // there was no file, or an empty one
  uint64_t added = 0;
  uint64_t raised = 0;   // at least one number of it
  uint64_t lowered = 0;  // and none raised
  uint64_t removed = 0;
  uint64_t kept = 0;  // that would have been lowered or removed, but for `part_seen`
  uint64_t suppressed = 0;  // that would have been removed, but for `suppressed`
};
// "2 added, 1 raised", "unchanged".
std::string ChangesText(const BaselineChanges& changes);

class Baseline {
 public:
  // `file` is for messages, which name the line.
  static absl::StatusOr<Baseline> Parse(absl::string_view text, const std::string& file);

  // nullptr: not in it. One for that program comes before one for any.
  const BaselineEntry* Find(LeakKind kind, absl::string_view fingerprint,
                            absl::string_view program) const;
  const std::vector<BaselineEntry>& entries() const { return entries_; }

  // The text of the file when `leaks` are what there is now. Entries of other programs than
  // `programs`, and of other kinds than `kinds`, were not looked for: they stay. `part_seen`:
  // programs that may leak more than was seen by name, of which nothing is lowered or removed.
  // `suppressed`: what is there, and is not told; it stays.
  std::string Update(const std::vector<BaselineEntry>& leaks, const std::set<std::string>& programs,
                     LeakKindSet kinds, const std::set<std::string>& part_seen = {},
                     BaselineChanges* changes = nullptr,
                     const std::set<LostLeak>& suppressed = {}) const;

 private:
  struct Line {
    std::string text;
    size_t entry = SIZE_MAX;  // of entries_; none: a comment or an empty line
  };
  std::vector<Line> lines_;
  std::vector<BaselineEntry> entries_;
};

std::string BaselineLine(const BaselineEntry& entry);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_BASELINE_H_
