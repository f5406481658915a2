// Suppressions: leaks, and errors of frees, that somebody decided to live with, in the files
// of Valgrind and of LeakSanitizer as they are. docs/gate.md says what of each syntax is
// taken and how it matches.
//
// Which syntax a file has is told by its first line that is neither empty nor a comment.
// Single-threaded; a match is counted at the suppression that matched.

#ifndef MEMTRACE_REPORT_SUPPRESS_SUPPRESSIONS_H_
#define MEMTRACE_REPORT_SUPPRESS_SUPPRESSIONS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "report/leak/leak_kinds.h"
#include "report/suppress/memcheck_stack.h"

namespace memtrace::report::suppress {

struct FramePattern {
  enum class What { kFunction, kObject, kSource, kAnyFrames };
  What what = What::kFunction;
  std::string text;   // with the wildcards * and ?
  std::string original;  // kFunction: of a copy that the compiler made, the function; else empty
  std::string bare;      // kFunction: of a template with its arguments, without them; else empty
  size_t pointers = 0;   // and how many * these have, which may be wildcards all the same
  uint32_t line = 0;  // kSource: 0 any
};

struct Suppression {
  std::string name;      // Valgrind: its first line; LeakSanitizer: the pattern
  std::string file;      // empty: built in
  bool built_in = false;  // of the runtime: its "..." passes over nobody else's code
  uint32_t line = 0;     // of its first line in the file
  LeakKindSet kinds = LeakKindSet::All();
  bool of_frees = false;  // Memcheck:Free: of invalid and mismatched frees, and of no leak
  std::vector<FramePattern> frames;  // Valgrind; empty: LeakSanitizer's
  // How much it matched. For invalid and mismatched frees `records` counts each free.
  uint64_t records = 0, blocks = 0, bytes = 0;
};

class Suppressions {
 public:
  // Adds suppressions for the blocks that the C and C++ runtime by design keeps
  // until the process ends.
  void AddBuiltIn();
  absl::Status AddFile(const std::string& path);
  // `file` is for messages.
  absl::Status Add(absl::string_view text, const std::string& file);

  // The first that matches a leak of this kind with this stack; nullptr: none does. An
  // unfreed block may be of any kind: it matches whatever kinds a suppression is for. Valgrind may
  // have seen the stack with its inlined frames or without.
  Suppression* Match(LeakKind kind, const MemcheckStack& stack);

  // The first that matches an invalid or mismatched free with this stack.
  Suppression* MatchFree(const MemcheckStack& stack);

  void ForgetMatches();  // all counts are 0 again

  const std::deque<Suppression>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

 private:
  absl::Status AddValgrind(absl::string_view text, const std::string& file);
  absl::Status AddLsan(absl::string_view text, const std::string& file);

  std::deque<Suppression> all_;  // in the order of the files; elements stay where they are
};

// `pattern` with * (any characters) and, unless `only_stars`, ? (one) matches all of `text`.
bool WildcardMatches(absl::string_view pattern, absl::string_view text, bool only_stars = false);

// Matches as LeakSanitizer does: anywhere in `text`, ^ and $ for its ends, * for any characters.
bool TemplateMatches(absl::string_view pattern, absl::string_view text);

}  // namespace memtrace::report::suppress

#endif  // MEMTRACE_REPORT_SUPPRESS_SUPPRESSIONS_H_
