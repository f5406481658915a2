// Loss records as Valgrind shows them: one for each kind and stack, the smallest first,
// with stacks of the frames that Valgrind would print. What the formats that its readers
// take, `memtrace compare` and the Valgrind-compatible driver have in common.
//
// Pure functions; one thread.

#ifndef MEMTRACE_REPORT_RENDER_VALGRIND_LOSSES_H_
#define MEMTRACE_REPORT_RENDER_VALGRIND_LOSSES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/findings/leaks.h"
#include "report/render/view.h"

namespace memtrace::report::render {

// A frame with the parts that Valgrind's XML has; empty or 0: not known.
struct LossFrame {
  uint64_t ip = 0;  // inside the call: a return address minus 1
  std::string object;
  std::string function;
  std::string directory;
  std::string file;
  uint32_t line = 0;
  bool inlined = false;  // into the next frame, whose address it has
  // As Frame::offset, of the return address; of frames that Valgrind wrote it is not known.
  std::optional<uint64_t> offset = std::nullopt;

  friend bool operator==(const LossFrame&, const LossFrame&) = default;
};

struct Loss {
  LeakKind kind = LeakKind::kUnfreed;
  uint64_t bytes = 0;  // direct
  uint64_t indirect_bytes = 0;
  uint64_t blocks = 0;  // direct
  // Innermost first, beginning with the function that allocates. The stack goes on
  // behind them where `cut` says so: too many callers, or unwinding failed.
  std::vector<LossFrame> stack;
  bool cut = false;
  bool suppressed = false;
  // In memtrace's terms: one of the stacks that are shown as this one.
  StackId site_stack;
  format::AllocFunction allocator = format::AllocFunction::kMalloc;
  // The chain of pointers that leads to one of the blocks begins in memory that the program mapped,
  // as far as somebody looked (report/valgrind/kept_by_mappings.h).
  bool kept_by_mapping = false;

  uint64_t total_bytes() const { return bytes + indirect_bytes; }
};

absl::string_view XmlKind(LeakKind kind);  // memcheck's, "Leak_DefinitelyLost"

// Frames of a stack that tell records apart: --leak-resolution.
enum class LeakResolution { kLow, kMed, kHigh };

inline constexpr size_t kMostCallers = 500;  // Valgrind's own limit for --num-callers

struct LossOptions {
  size_t callers = kMostCallers;  // code addresses; inlined frames come on top of that
  LeakResolution resolution = LeakResolution::kHigh;
  bool below_main = false;  // --show-below-main: what runs main, too
};

struct LossList {
  const LeakScan* scan = nullptr;  // nullptr: there was none, and all losses are kUnfreed
  std::vector<Loss> losses;        // losses[i] is loss record i + 1
  std::array<LeakAmount, kLeakKinds> totals{};  // direct, of what is not suppressed
  LeakAmount suppressed;

  // Counts anew after Loss::suppressed was set.
  void Count();
};

// The scan that a report is about; nullptr: there was none, or one behind it was not finished, or
// the program's memory is not recorded. `why`, if given, is then a sentence about why nothing is
// known.
const LeakScan* LastScan(const Analysis& analysis, std::string* why = nullptr);

// Sentences about the scan: its notes, and when it was if not at the end.
std::vector<std::string> RemarksOn(const LeakScan& scan);

// The losses of the last scan; without a scan, all unfreed blocks, of kind kUnfreed.
LossList CollectLosses(const ReportView& view, const LossOptions& options);

// The stack of an allocation by `function`, as Valgrind would print it.
Loss LossStack(const ReportView& view, StackId stack, format::AllocFunction function,
               const LossOptions& options = {});

// The function that stands in for one of the program's, as the innermost frame.
LossFrame TracerFrame(const Analysis& analysis, absl::string_view function);
// frames[from] and those that called it, as many as Valgrind would show behind the one that is in
// `stack`: none behind main, or behind the first of those that run it, which is "(below main)".
// True: the stack goes on behind them.
bool AppendCallers(const ReportView& view, const std::vector<const Frame*>& frames, size_t from,
                   const LossOptions& options, std::vector<LossFrame>* stack);

// "0x48417B4: malloc (in /usr/lib/x.so)", "0x109186: make (a.c:6)"; harmless to print.
std::string LossFrameText(const LossFrame& frame);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_VALGRIND_LOSSES_H_
