// StackTrie: the stacks of one thread, as slots that the trace can name.
//
// A stack is a path of nodes from the outermost frame to the innermost; a node
// is (parent, frame key). The trie is a bounded two-way cache of nodes: a node
// that was evicted is simply defined again, under whatever slot it then gets,
// and the reader interns. Memory stays bounded however many stacks a program has.
//
//   slot   index in the cache, what events and node definitions name; reused
//   uid    number of this definition; never reused (32 bits, see Rebase)
//
// A child is found by its parent's uid, not by its slot, so a child never
// survives the eviction of its parent under a false one.
//
// Only the thread that owns it touches it.

#ifndef MEMTRACE_PRELOAD_STACK_TRIE_H_
#define MEMTRACE_PRELOAD_STACK_TRIE_H_

#include <cstddef>
#include <cstdint>

#include "preload/own_memory.h"

namespace memtrace {

struct StackNode {
  uint64_t key;         // frame key: pc and module instance
  uint32_t parent_uid;
  uint32_t uid;         // 0: empty
};
static_assert(sizeof(StackNode) == 16);

class StackTrie {
 public:
  static constexpr size_t kSmallest = 512;  // 8 KiB: two pages for a thread with few stacks

  // `largest`: nodes it may grow to, a power of two.
  bool Init(size_t largest) {
    largest_ = largest;
    return Allocate(kSmallest);
  }

  // A new owner, a new trace: nothing defined before is known any more.
  void Restart() { root_uid_ = NextUid(); }

  // A position in the trie: start with Root(), descend by Child().
  struct Cursor {
    uint32_t slot;
    uint32_t uid;
  };
  Cursor Root() const { return {0, root_uid_}; }

  // Is the node still the one that was defined, and known to the present reader?
  bool Holds(Cursor cursor) const {
    return cursor.slot - 1 <= mask_ && nodes_[cursor.slot - 1].uid == cursor.uid &&
           cursor.uid - root_uid_ <= INT32_MAX;
  }

  // Moves to the child of `cursor` for `key`. True when the node is new: its
  // slot must be defined in the trace (parent slot: the cursor's before).
  bool Child(Cursor* cursor, uint64_t key) {
    const size_t set = Hash(cursor->uid, key) & mask_ & ~size_t{1};
    for (size_t way = 0; way < 2; ++way) {
      const StackNode& node = nodes_[set + way];
      if (node.key == key && node.parent_uid == cursor->uid && node.uid != 0) [[likely]] {
        *cursor = {static_cast<uint32_t>(set + way + 1), node.uid};
        return false;
      }
    }
    *cursor = Insert(set, cursor->uid, key);
    return true;
  }

  // Between stacks: a bigger cache when evictions show that this one is too
  // small. Everything is then defined again.
  void GrowIfPressed() {
    if (evictions_ > mask_ / 2 && mask_ + 1 < largest_) [[unlikely]] Grow();
  }

  uint64_t defined() const { return defined_; }
  size_t capacity() const { return mask_ + 1; }

 private:
  static size_t Hash(uint32_t parent_uid, uint64_t key) {
    const uint64_t mixed = (key ^ parent_uid * uint64_t{0x9e3779b97f4a7c15}) *
                           uint64_t{0xd6e8feb86659fd93};
    return mixed >> 40;
  }

  Cursor Insert(size_t set, uint32_t parent_uid, uint64_t key) {
    size_t way = 0;
    if (nodes_[set].uid != 0) {
      // The way that was defined longer ago goes.
      way = nodes_[set + 1].uid == 0 || nodes_[set + 1].uid - nodes_[set].uid > INT32_MAX;
      if (nodes_[set + way].uid != 0) ++evictions_;
    }
    const uint32_t uid = NextUid();
    nodes_[set + way] = {key, parent_uid, uid};
    ++defined_;
    return {static_cast<uint32_t>(set + way + 1), uid};
  }

  uint32_t NextUid() {
    if (++last_uid_ == 0) Rebase();
    return last_uid_;
  }

  bool Allocate(size_t nodes);
  void Grow();
  void Rebase();  // after 2^32 definitions: forget all, begin again at 1

  StackNode* nodes_ = nullptr;
  size_t mask_ = 0;
  size_t largest_ = kSmallest;
  uint32_t last_uid_ = 0;
  uint32_t root_uid_ = 0;
  size_t evictions_ = 0;
  uint64_t defined_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_STACK_TRIE_H_
