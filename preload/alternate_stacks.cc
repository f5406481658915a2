#include "preload/alternate_stacks.h"

#include <sys/auxv.h>

#include <atomic>

#include "preload/allowed_calls.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr int kTidBits = 22;         // PID_MAX_LIMIT of the kernel is 2^22
constexpr int kGranularityBits = 6;  // with 48 bits of address the rest of a word
constexpr uint64_t kTidMask = (uint64_t{1} << kTidBits) - 1;
constexpr size_t kPlacesLog2 = 10;

constinit std::atomic<uint64_t> g_set_last[size_t{1} << kPlacesLog2] = {};
constinit std::atomic<bool> g_of_no_use{false};

}  // namespace

bool AlternateStacksAreOfUse() { return !g_of_no_use.load(std::memory_order_acquire); }

uintptr_t SignalFrameBytes() {
  constexpr uintptr_t kOurs = 1024;
  constexpr uintptr_t kLeast = 2048;
  const uintptr_t frame = getauxval(AT_MINSIGSTKSZ);
  return kOurs + (frame > kLeast ? frame : kLeast);
}

bool NoteAlternateStack(uintptr_t begin, size_t bytes) {
  const OtherCalls calls;
  if (!calls || !AlternateStacksAreOfUse()) return false;
  if (bytes < SignalFrameBytes()) return !g_of_no_use.exchange(true);
  const uint64_t stack = begin >> kGranularityBits;
  const uint64_t tid = static_cast<uint64_t>(sys::Gettid()) & kTidMask;
  const size_t place = stack * 0x9e3779b97f4a7c15 >> (64 - kPlacesLog2);
  const uint64_t before = g_set_last[place].exchange(stack << kTidBits | tid);
  const uint64_t tid_before = before & kTidMask;
  if (before >> kTidBits != (stack << kTidBits) >> kTidBits || tid_before == tid) return false;
  if (sys::Failed(sys::Tgkill(sys::Getpid(), static_cast<int>(tid_before), 0))) return false;
  return !g_of_no_use.exchange(true);
}

}  // namespace memtrace
