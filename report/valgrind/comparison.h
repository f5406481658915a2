// Comparison: what memtrace and Valgrind found lost in two runs of one program, side by
// side. Leaks are paired by their stacks in six stages (MatchStage): functions, files and lines;
// then calls, whatever was inlined; then files and lines alone; then functions alone; then the same
// with files alone for code of the system without names; then the functions of the project alone.
//
// Pure; one thread. docs/valgrind.md explains the reasons.

#ifndef MEMTRACE_REPORT_VALGRIND_COMPARISON_H_
#define MEMTRACE_REPORT_VALGRIND_COMPARISON_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/findings/analysis.h"
#include "report/findings/leaks.h"
#include "report/render/valgrind_losses.h"
#include "report/valgrind/stack_key.h"
#include "report/valgrind/valgrind_run.h"

namespace memtrace::report::valgrind {

enum class Verdict { kAgree, kKindDiffers, kAmountDiffers, kOnlyHere, kOnlyThere };
inline constexpr size_t kVerdicts = 5;
absl::string_view VerdictName(Verdict verdict);  // "agree", "kind differs", "only here", ...
absl::string_view StageName(MatchStage stage);   // "lines", "calls", "places", ..., "none"

// The blocks that one side lost with a stack.
struct LostOnASide {
  std::array<LeakAmount, kLeakKinds> kinds{};  // direct
  uint64_t indirect_bytes = 0;                 // that the definite ones lead to
  uint64_t records = 0;

  LeakAmount total() const;
  void Add(const render::Loss& loss);
};

struct ComparedLeak {
  Verdict verdict = Verdict::kAgree;
  MatchStage stage = MatchStage::kNone;
  LostOnASide here, there;
  std::vector<render::LossFrame> stack;  // of the side that has more of it
  // Sentences, each a reason that is known to make this difference.
  std::vector<std::string> reasons;
  // One of the reasons explains it fully: it is not counted as a difference.
  bool expected = false;
};

struct Comparison {
  std::vector<ComparedLeak> leaks;  // differences first; of these, more bytes first
  std::array<uint64_t, kVerdicts> counts{};  // of those that are not expected
  uint64_t expected = 0;
  std::array<LeakAmount, kLeakKinds> here{}, there{};
  bool scanned_here = false;  // otherwise here is kUnfreed alone, and kinds are not compared
  std::vector<std::string> notes;  // about either side as a whole

  uint64_t differences() const {
    return counts[1] + counts[2] + counts[3] + counts[4];
  }
};

// Compares the losses `here` with Valgrind's. `analysis`: what else is known of the trace.
// `allocated`: the stacks of all its sites, lost or not, where the trace is of a fork child.
Comparison Compare(const Analysis& analysis, const render::LossList& here,
                   const ValgrindRun& there, const std::vector<render::Loss>& allocated = {});

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_COMPARISON_H_
