// What `memtrace leaks` sends along with the signal of MEMTRACE_LEAK_SIGNAL: in which call of the
// kernel it saw the thread before. The handler makes that call again, and cannot always know by
// itself which it was: wrappers for any call, as syscall(), and all that may be cancelled of glibc
// since 2.41 (and some of it before, where there are threads), have its number nowhere near.
//
//   bits 0-15    of the address behind the call
//   bits 16-31   of the stack pointer, without its lowest three
//   bits 32-53   of a hash of its arguments
//   bits 54-63   the number of the call
//
// 0: it saw none. A thread that has gone on since is at another place, or waits for something else:
// one instruction may be that of many calls, and a function may make two from one depth.
//
// Pure, any thread.

#ifndef MEMTRACE_FORMAT_LEAK_SIGNAL_H_
#define MEMTRACE_FORMAT_LEAK_SIGNAL_H_

#include <cstdint>

namespace memtrace::format {

inline constexpr int kCallArguments = 6;

// What tells a call from others of the same thread, beside its number.
struct CallPlace {
  uint64_t arguments[kCallArguments] = {};
  uint64_t stack_pointer = 0;
  uint64_t pc = 0;  // behind the call

  bool operator==(const CallPlace&) const = default;
};

inline uint64_t LeakSignalPlace(const CallPlace& place) {
  uint64_t hash = 0;
  for (const uint64_t argument : place.arguments) {
    hash = (hash ^ argument) * 0x9e37'79b9'7f4a'7c15;  // 2^64 by the golden ratio
    hash ^= hash >> 32;
  }
  return (place.pc & 0xffff) | (place.stack_pointer >> 3 & 0xffff) << 16 | (hash & 0x3f'ffff) << 32;
}

inline uint64_t LeakSignalValue(long call, const CallPlace& place) {
  if (call < 0 || call >= 1 << 10) return 0;
  return static_cast<uint64_t>(call) << 54 | LeakSignalPlace(place);
}

// The number of the call behind which a thread is interrupted; -1: it was not seen there.
inline long LeakSignalCall(uint64_t value, const CallPlace& place) {
  constexpr uint64_t kPlaceMask = (uint64_t{1} << 54) - 1;
  if (value == 0 || (value & kPlaceMask) != LeakSignalPlace(place)) return -1;
  return static_cast<long>(value >> 54);
}

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_LEAK_SIGNAL_H_
