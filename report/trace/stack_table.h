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

#ifndef MEMTRACE_REPORT_TRACE_STACK_TABLE_H_
#define MEMTRACE_REPORT_TRACE_STACK_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "format/event_words.h"
#include "format/trace_format.h"
#include "report/base/strong_id.h"
#include "report/findings/process_info.h"

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
  static constexpr size_t kMaxDepth = 1280;

  StackTable();
  // A table with these nodes, by id, callers before those they called; [0] is not used. The table
  // can be read, and takes no others. Null: a stack is deeper than there can be.
  static std::unique_ptr<StackTable> FromNodes(std::vector<StackNode> nodes);

  // The id of the node with these three parts, a new one or the old one. Of a parent at
  // kMaxDepth: of a node whose caller is a kTruncated marker.
  StackId Intern(StackId parent, uint64_t pc, uint32_t instance);

  // Asks for the memory that Intern() of these nodes (words of a kPath) will look at, each the
  // child of the one before: all at once, where one would wait for the other.
  void Prefetch(StackId parent, std::span<const uint64_t> nodes) const;

  const StackNode& node(StackId id) const { return nodes_[id.value]; }
  // Ids are 1 .. size().
  size_t size() const { return nodes_.size() - 1; }

  // Nodes of its stack.
  size_t DepthOf(StackId id) const { return depths_[id.value]; }

  // Why the stack does not reach the first frame of its thread; kNone: it does.
  // "No stack" is kNotCaptured.
  format::StackMarker MarkerOf(StackId id) const {
    return static_cast<format::StackMarker>(markers_[id.value]);
  }

 private:
  // Linear probing this far is no accident: somebody chose the addresses.
  static constexpr size_t kMaxProbes = 1024;

  size_t BucketOf(uint64_t hash, StackId parent, uint64_t pc, uint32_t instance) const;
  void Rehash(size_t buckets);

  std::vector<StackNode> nodes_;     // [0] is "no stack"
  std::vector<uint8_t> markers_;     // by id: the marker its stack ends in
  std::vector<uint16_t> depths_;     // by id: nodes of its stack
  std::vector<uint64_t> hashes_;     // by id: of its stack, so that a path's are known in advance
  std::vector<uint32_t> buckets_;    // open addressing: ids, 0 empty
  uint64_t secret_ = 0;              // of the hash; chosen when it is needed
};

// The module instance a node's pc lies in: the one it names, or for 0 the
// permanent one that covers it. The modules must outlive the index.
class ModuleIndex {
 public:
  explicit ModuleIndex(std::span<const ModuleInfo> modules);

  // nullptr: none is known (JIT code, lost record).
  const ModuleInfo* Find(uint32_t instance, uint64_t pc) const;
  // The module with this number.
  const ModuleInfo* Instance(uint32_t instance) const;
  const ModuleInfo* Find(const StackNode& node) const { return Find(node.instance, node.pc); }

 private:
  absl::flat_hash_map<uint32_t, const ModuleInfo*> by_id_;
  std::vector<const ModuleInfo*> permanent_;  // by start
};

class SlotMap {
 public:
  StackId Get(uint32_t slot) const {
    if (slot < low_.size()) [[likely]] return low_[slot];
    const size_t index = slot >> 2 * kBits;
    if (index >= pages_.size() || pages_[index] == nullptr) return {};
    const Page* page = (*pages_[index])[slot >> kBits & kMask].get();
    return page == nullptr ? StackId{} : (*page)[slot & kMask];
  }
  void Set(uint32_t slot, StackId id);  // `slot` at most format::kMaxSlot
  // Forgets slots first to last.
  void Forget(uint32_t first, uint32_t last);
  // Forgets everything.
  void Clear();

  // Calls `function` with each slot that was set and its stack, in the order of slots.
  template <typename Function>
  void ForEach(Function function) const {
    for (uint32_t slot = 0; slot < low_.size(); ++slot) {
      if (low_[slot]) function(slot, low_[slot]);
    }
    for (uint32_t i = 0; i < pages_.size(); ++i) {
      for (uint32_t j = 0; pages_[i] != nullptr && j < kEntries; ++j) {
        const Page* page = (*pages_[i])[j].get();
        for (uint32_t k = 0; page != nullptr && k < kEntries; ++k) {
          const uint32_t slot = i << 2 * kBits | j << kBits | k;
          if (slot >= low_.size() && (*page)[k]) function(slot, (*page)[k]);
        }
      }
    }
  }

 private:
  // The library gives out slots in turn: an array of those up to a few times as many as were set.
  // Others are in three levels of 8 bits each. A slot number costs a page of 1 KiB and one of the
  // level above, not the range below it; a stream without stacks nothing.
  static constexpr unsigned kBits = 8;
  static constexpr uint32_t kEntries = 1u << kBits, kMask = kEntries - 1;
  static_assert(format::kMaxSlot < 1u << 3 * kBits);
  using Page = std::array<StackId, kEntries>;
  using Pages = std::array<std::unique_ptr<Page>, kEntries>;

  void GrowLow(uint32_t slot);

  std::vector<StackId> low_;  // by slot; what pages_ has of these does not count
  uint32_t sets_ = 0;         // at most UINT32_MAX
  std::vector<std::unique_ptr<Pages>> pages_;  // as far as used
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_STACK_TABLE_H_
