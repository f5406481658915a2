// The registers of a frame, and the stack words they are found in.
//
// A register of an outer frame is a *location* as long as possible: a push of rbp
// only moves it. The word is read when a rule asks for it, through a StackReader,
// which reads nothing that could fault.
//
// Threads: objects of one walk, on its own stack.

#ifndef MEMTRACE_PRELOAD_UNWIND_REGISTERS_H_
#define MEMTRACE_PRELOAD_UNWIND_REGISTERS_H_

#include <cstdint>
#include <cstring>

#include "preload/arch/arch.h"
#include "preload/unwind/stack_bounds.h"

namespace memtrace::unwind {

class StackReader {
 public:
  StackReader(StackBounds* bounds, uintptr_t sp) : bounds_(bounds), window_(bounds->Enter(sp)) {}

  // After a signal frame: the walk goes on on another stack.
  void Enter(uintptr_t sp) { window_ = bounds_->Enter(sp); }

  bool Read(uintptr_t address, uint64_t* value) {
    if (!window_.Contains(address) && !bounds_->Move(address, &window_)) return false;
    memcpy(value, reinterpret_cast<const void*>(address), sizeof(*value));
    return true;
  }

  // Whether the window has the address, without asking for more.
  bool Contains(uintptr_t address) const { return window_.Contains(address); }
  bool on_primary_stack() const { return bounds_->IsPrimary(window_); }

 private:
  StackBounds* bounds_;
  StackWindow window_;
};

class Registers {
 public:
  bool known(int reg) const { return where_[reg] != Where::kUnknown; }

  bool Read(int reg, StackReader* reader, uint64_t* value) const {
    if (where_[reg] == Where::kMemory) return reader->Read(word_[reg], value);
    *value = word_[reg];
    return where_[reg] == Where::kValue;
  }

  void SetUnknown(int reg) { Set(reg, Where::kUnknown, 0); }
  void SetValue(int reg, uint64_t value) { Set(reg, Where::kValue, value); }
  void SetMemory(int reg, uintptr_t address) { Set(reg, Where::kMemory, address); }
  void Copy(int reg, const Registers& other, int source) {
    Set(reg, other.where_[source], other.word_[source]);
  }

 private:
  enum class Where : uint8_t { kUnknown, kValue, kMemory };
  void Set(int reg, Where where, uint64_t word) {
    where_[reg] = where;
    word_[reg] = word;
  }

  uint64_t word_[kRegisterCount] = {};  // the value, or the address it is saved at
  Where where_[kRegisterCount] = {};
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_REGISTERS_H_
