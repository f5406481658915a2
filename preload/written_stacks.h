// WrittenStacks: what a reader of the trace makes of one thread's stack nodes.
//
// It is fed with the words that went into the ring, and keeps to what
// docs/trace-format.md says of slots: a node holds until its slot is defined again, and
// stays the parent of what was built on it. The cross-check asks it which stack a slot
// means, so that what is checked is what will be read, whichever way it was found.
//
// A node lives as long as its slot or a child: memory follows the slots, which are
// bounded. All of it is own memory.
//
// Only the thread that owns it touches it.

#ifndef MEMTRACE_PRELOAD_WRITTEN_STACKS_H_
#define MEMTRACE_PRELOAD_WRITTEN_STACKS_H_

#include <cstddef>
#include <cstdint>

#include "format/trace_format.h"

namespace memtrace {

class WrittenStacks {
 public:
  // Takes the kPath events of [begin, end); other events are passed over. False: no
  // memory, or no events; the object knows nothing any more.
  bool Read(const uint64_t* begin, const uint64_t* end);

  // Nothing is defined: a new thread, or definitions that never reached the reader.
  void Forget();

  struct Stack {
    size_t frames = 0;  // keys written, innermost first
    format::StackMarker marker = format::StackMarker::kNone;
    bool defined = false;  // false: a reader would know no such stack
  };
  // The stack that `slot` means, its frames as keys of unwind/stack_unwinder.h.
  Stack Find(uint32_t slot, uint64_t* keys, size_t max) const;

  size_t nodes() const { return live_; }  // kept now
  size_t mapped_bytes() const { return nodes_.bytes + slots_.bytes; }

 private:
  struct Node {
    uint64_t key;         // pc, and the instance in the upper 16 bits
    uint32_t parent;      // 0: outermost. In the free list: the next
    uint32_t references;  // its slot, and its children
  };
  // An array in own memory that doubles.
  struct Array {
    void* data = nullptr;
    size_t bytes = 0;
    bool Reserve(size_t wanted);
  };

  Node& node(uint32_t index) const { return static_cast<Node*>(nodes_.data)[index]; }
  uint32_t& slot(uint32_t index) const { return static_cast<uint32_t*>(slots_.data)[index]; }
  uint32_t SlotOrNone(uint32_t index) const {
    return (size_t{index} + 1) * sizeof(uint32_t) <= slots_.bytes ? slot(index) : 0;
  }
  bool DefinePath(const uint64_t* words);
  bool Define(uint32_t slot, uint32_t parent, uint64_t key, uint32_t* index);
  uint32_t Take();
  void Release(uint32_t index);

  Array nodes_;
  Array slots_;
  size_t used_ = 1;  // nodes ever taken; 0 is none
  size_t live_ = 0;
  uint32_t free_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_WRITTEN_STACKS_H_
