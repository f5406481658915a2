#include "preload/unwind/thread_descriptor.h"

#include "preload/arch/arch.h"

namespace memtrace::unwind {
namespace {

constexpr uintptr_t kWord = sizeof(uint64_t);

uint64_t Load(uintptr_t address) { return *reinterpret_cast<const uint64_t*>(address); }

}  // namespace

uintptr_t FindTidOffset(uintptr_t descriptor, int tid) {
  constexpr uintptr_t kUsual = 720;  // glibc 2.26 to 2.40
  const auto at = [descriptor](uintptr_t offset) {
    return *reinterpret_cast<const int*>(descriptor + offset);
  };
  if (at(kUsual) == tid) return kUsual;
  for (uintptr_t offset = 64; offset < kDescriptorBytes / 2; offset += 4) {
    if (at(offset) == tid) return offset;
  }
  return 0;
}

bool FindStackBlock(uintptr_t descriptor, uintptr_t readable_end, uintptr_t* begin,
                    uintptr_t* end, uintptr_t* guard) {
  constexpr uintptr_t kUsual = 1680;  // glibc 2.26 to 2.40
  static_assert(kUsual + 4 * kWord <= kStackBlockEnd);
  constexpr uintptr_t kLowest = uintptr_t{64} << 10;  // that a kernel maps, as a rule
  uintptr_t last = descriptor + kDescriptorBytes;
  if (last > readable_end) last = readable_end;
  const auto is_at = [&](uintptr_t at) {
    if (at + 4 * kWord > last) return false;
    const uintptr_t block = Load(at);
    const uintptr_t bytes = Load(at + kWord);
    // Below 1 TiB any pointer has the form of a size.
    if (block < kLowest || block >= descriptor || bytes < kPageBytes || bytes > uintptr_t{1} << 40)
      return false;
    if (block + bytes <= descriptor || block + bytes > descriptor + (64 << 10)) return false;
    if (Load(at + 2 * kWord) >= bytes || Load(at + 3 * kWord) > bytes) return false;
    *begin = block;
    *end = block + bytes;
    if (guard != nullptr) *guard = Load(at + 2 * kWord);
    return true;
  };
  if (is_at(descriptor + kUsual)) return true;
  for (uintptr_t at = descriptor + 512; at + 4 * kWord <= last; at += kWord) {
    if (is_at(at)) return true;
  }
  return false;
}

}  // namespace memtrace::unwind
