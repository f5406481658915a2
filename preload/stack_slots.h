// StackSlots: the numbers under which one thread's trace knows its stacks.
//
// A node of a stack (format/event_words.h, kPath) is defined under a slot and used
// by it afterwards. Slots are given out in turn and reused in turn, so that what a
// slot means now needs no table: a node is remembered by a number that counts up
// for ever, its slot is that number modulo the slots there are, and it is still
// what its slot means while fewer nodes than that were defined since. Who finds
// that a node is not held any more defines it again, and the reader interns.
//
//   node    1, 2, ... ; 0 is no node
//   slot    1 + node % kSlots
//
// The reader's memory is a word for each slot.
//
// Threads: one object belongs to one thread; AskToRestart() alone is for any. No lock, no
// allocation.

#ifndef MEMTRACE_PRELOAD_STACK_SLOTS_H_
#define MEMTRACE_PRELOAD_STACK_SLOTS_H_

#include <atomic>
#include <cstdint>

#include "format/event_words.h"

namespace memtrace {

class StackSlots {
 public:
  static constexpr uint32_t kSlots = 1 << 18;
  static_assert(kSlots < format::kMaxSlot);

  static constexpr uint32_t SlotOf(uint64_t node) {
    return node == 0 ? format::kNoSlot : 1 + static_cast<uint32_t>(node % kSlots);
  }

  // Does the reader know this node by its slot?
  bool Holds(uint64_t node) const { return node >= first_held() && last_ - node < kSlots; }

  // Gives out `nodes` numbers with slots in a row, at most kMaxPathNodes; returns
  // the first. They are defined by one kPath event.
  uint64_t Define(uint32_t nodes) {
    uint64_t first = last_ + 1;
    const auto index = static_cast<uint32_t>(first % kSlots);
    if (index + nodes > kSlots) [[unlikely]] first += kSlots - index;
    last_ = first + nodes - 1;
    defined_ += nodes;
    return first;
  }

  // A new owner, a new trace, or definitions were lost: nothing is known any more.
  void Restart() { first_.store(last_ + 1, std::memory_order_relaxed); }

  // Any thread: from now on nothing is held, until the owner calls Restart().
  void AskToRestart() { first_.store(UINT64_MAX, std::memory_order_relaxed); }
  bool asked_to_restart() const { return first_held() == UINT64_MAX; }

  // Nodes before this one are not held. Another one once anything known was forgotten.
  uint64_t first_held() const { return first_.load(std::memory_order_relaxed); }

  uint64_t defined() const { return defined_; }

 private:
  uint64_t last_ = 0;
  std::atomic<uint64_t> first_{1};  // older ones are not held
  uint64_t defined_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_STACK_SLOTS_H_
