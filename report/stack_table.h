// StackTable: every distinct stack of a trace, once, as a tree of frames.
//
// A stack is the id of its innermost node; a node is a return address, the module
// instance it lies in, and its parent: the frame that called it. Two threads that
// came the same way get the same id. Id 0 is "no stack".
//
//   for (StackId id = site.stack; id; id = stacks.node(id).parent) { ... }
//
// goes from the innermost frame outwards. A marker node (is_marker()) can only
// be the outermost of a stack and says why the stack does not go on.
//
// SlotMap: what a thread's slots mean now; see format/event_words.h, kPath.
//
// Single-threaded while it is filled; afterwards constant.

#ifndef MEMTRACE_REPORT_STACK_TABLE_H_
#define MEMTRACE_REPORT_STACK_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/event_words.h"
#include "format/trace_format.h"
#include "report/analysis.h"
#include "report/strong_id.h"

namespace memtrace::report {

struct StackNode {
  uint64_t pc = 0;      // a return address; for a marker the format::StackMarker
  StackId parent;       // the caller's frame; none for the outermost
  uint32_t instance = 0;  // 0: the permanent module that covers pc; format::kNoModule: marker

  bool is_marker() const { return instance == format::kNoModule; }
  format::StackMarker marker() const {
    return is_marker() ? static_cast<format::StackMarker>(pc) : format::StackMarker::kNone;
  }
  friend bool operator==(const StackNode&, const StackNode&) = default;
};

class StackTable {
 public:
  StackTable();

  // The id of the node with these three parts, a new one or the old one.
  StackId Intern(StackId parent, uint64_t pc, uint32_t instance);

  const StackNode& node(StackId id) const { return nodes_[id.value]; }
  // Ids are 1 .. size().
  size_t size() const { return nodes_.size() - 1; }

  // Why the stack does not reach the first frame of its thread; kNone: it does.
  // "No stack" is kNotCaptured.
  format::StackMarker MarkerOf(StackId id) const {
    return static_cast<format::StackMarker>(markers_[id.value]);
  }

 private:
  void Grow();

  std::vector<StackNode> nodes_;     // [0] is "no stack"
  std::vector<uint8_t> markers_;     // by id: the marker its stack ends in
  std::vector<uint32_t> buckets_;    // open addressing: ids, 0 empty
};

// The module instance a node's pc lies in: the one it names, or for 0 the
// permanent one that covers it. nullptr: none is known (JIT code, lost record).
const ModuleInfo* FindModule(std::span<const ModuleInfo> modules, const StackNode& node);

class SlotMap {
 public:
  StackId Get(uint32_t slot) const {
    const size_t index = slot >> kPageBits;
    if (index >= pages_.size() || pages_[index] == nullptr) return {};
    return (*pages_[index])[slot & (kPageSlots - 1)];
  }
  void Set(uint32_t slot, StackId id);
  // Forgets everything: definitions were lost.
  void Clear();

 private:
  static constexpr unsigned kPageBits = 12;
  static constexpr uint32_t kPageSlots = 1u << kPageBits;
  using Page = std::array<StackId, kPageSlots>;

  // By slot / kPageSlots, as far as used. A hostile slot number costs one page, not
  // the range below it; a stream without stacks nothing.
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_STACK_TABLE_H_
