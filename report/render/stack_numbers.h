// StackNumbers: stacks as numbers and tables, for a format that would otherwise repeat the same
// frames in every stack. Stacks that a reader cannot tell apart have one number.
//
// One thread. Memory: an entry for each step in which stacks differ from their outer end on.

#ifndef MEMTRACE_REPORT_RENDER_STACK_NUMBERS_H_
#define MEMTRACE_REPORT_RENDER_STACK_NUMBERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/names/frame.h"
#include "report/render/view.h"
#include "report/words/sink.h"

namespace memtrace::report::render {

class StackNumbers {
 public:
  // `view` outlives it.
  explicit StackNumbers(const ReportView* view) : view_(view) {}

  uint32_t Of(StackId stack);

  // Members of a JSON object, each with a comma before it, that tell what the numbers given until
  // then mean. Columns of equal length, an element for each number:
  //   "strings"  what the other tables name by index; 0 is empty
  //   "frames"   name (FrameName), module, file, line, flags: the FrameRole, and 8 where inlined
  //   "nodes"    a tree of frames: parent and frame; a parent comes before its children. Node 0 is
  //              above the outermost frames
  //   "stacks"   node of the innermost frame, and the part that is worth reading (CutStack), as
  //              frames from the innermost: begin, end, caller
  void WriteTables(words::Sink& out) const;

 private:
  uint32_t FrameNumber(const Frame& frame);

  struct StackEntry {
    uint32_t node = 0, begin = 0, end = 0, caller = 0;
  };
  const ReportView* const view_;
  absl::flat_hash_map<uint32_t, uint32_t> by_identity_;               // Frame::identity -> frames_
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> tree_;  // parent, frame -> nodes_
  absl::flat_hash_map<uint32_t, uint32_t> by_leaf_;                   // node -> stacks_
  std::vector<const Frame*> frames_;
  std::vector<std::pair<uint32_t, uint32_t>> nodes_{{0, 0}};  // parent, frame
  std::vector<StackEntry> stacks_;
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_STACK_NUMBERS_H_
