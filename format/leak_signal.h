// What `memtrace leaks` sends along with the signal of MEMTRACE_LEAK_SIGNAL: in which call of the
// kernel it saw the thread before. The handler makes that call again, and cannot always know by
// itself which it was: wrappers for any call, as syscall(), and all that may be cancelled of glibc
// since 2.41 (and some of it before, where there are threads), have its number nowhere near.
//
//   bits 0-23    of the address behind the call
//   bits 24-47   of the stack pointer, without its lowest three
//   bits 48-63   the number of the call
//
// 0: it saw none. A thread that has gone on since is at another place, most often.
//
// Pure, any thread.

#ifndef MEMTRACE_FORMAT_LEAK_SIGNAL_H_
#define MEMTRACE_FORMAT_LEAK_SIGNAL_H_

#include <cstdint>

namespace memtrace::format {

inline uint64_t LeakSignalPlace(uint64_t stack_pointer, uint64_t pc) {
  constexpr uint64_t kMask = (uint64_t{1} << 24) - 1;
  return (pc & kMask) | (stack_pointer >> 3 & kMask) << 24;
}

inline uint64_t LeakSignalValue(long call, uint64_t stack_pointer, uint64_t pc) {
  if (call < 0 || call > 0xffff) return 0;
  return static_cast<uint64_t>(call) << 48 | LeakSignalPlace(stack_pointer, pc);
}

// The number of the call behind which a thread is interrupted; -1: it was not seen there.
inline long LeakSignalCall(uint64_t value, uint64_t stack_pointer, uint64_t pc) {
  constexpr uint64_t kPlaceMask = (uint64_t{1} << 48) - 1;
  if (value == 0 || (value & kPlaceMask) != LeakSignalPlace(stack_pointer, pc)) return -1;
  return static_cast<long>(value >> 48);
}

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_LEAK_SIGNAL_H_
