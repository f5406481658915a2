#include "preload/unwind/stack_bounds.h"

#include <errno.h>
#include <sys/mman.h>

#include <atomic>

#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"
#include "preload/unwind/thread_descriptor.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

extern "C" {
// The stack pointer the kernel started the process with; from ld.so.
extern void* __libc_stack_end __attribute__((weak));
}

namespace memtrace::unwind {
namespace {

constexpr size_t kSignalSetBytes = 8;

// How far below the known range the stack pointer may be and still be taken for
// the primary stack that has grown. Below the main thread's stack the kernel
// keeps more free than this, so that probing cannot reach another mapping, nor
// make the stack itself grow: every page from sp upwards is part of it.
constexpr uintptr_t kMaxGrowthBytes = 64u << 20;

// Probes one thread may lose on stacks that turned out not to be its primary.
constexpr uint32_t kMaxWastedProbes = 2048;
// The same of stack pointers further below: attempts.
constexpr uint32_t kMaxFarAttempts = 16;
constexpr uintptr_t kFarStepBytes = 256u << 10;

long AskKernel(uintptr_t address) {
  return RawSystemCall(SYS_rt_sigprocmask, kNoSuchHow, static_cast<long>(address), 0,
                       kSignalSetBytes);
}

// 0 unknown, 1 the kernel looks at the set first, 2 it does not.
constinit std::atomic<int> g_probe_works{0};

bool ProbeWorks() {
  int works = g_probe_works.load(std::memory_order_relaxed);
  if (works == 0) [[unlikely]] {
    const uint64_t readable = 0;
    const bool good = AskKernel(reinterpret_cast<uintptr_t>(&readable)) == -EINVAL;
    const bool bad = AskKernel(~uintptr_t{0} << kAddressBits) == -EFAULT;
    works = good && bad ? 1 : 2;
    g_probe_works.store(works, std::memory_order_relaxed);
  }
  return works == 1;
}

uintptr_t PageOf(uintptr_t address) { return address & ~(kPageBytes - 1); }

// The same by a memory call, which takes longer: the pages come into memory, as they would
// when they are read. Linux 5.14; before, nothing counts as readable.
bool ProbeByPopulating(uintptr_t address) {
  const uintptr_t first = PageOf(address);
  const uintptr_t end = PageOf(address + sizeof(uint64_t) - 1) + kPageBytes;
  return RawSystemCall(SYS_madvise, static_cast<long>(first), static_cast<long>(end - first),
                       MADV_POPULATE_READ) == 0;
}

// Valgrind takes AskKernel() for a mistake and tells the user of it.
bool MustPopulate() {
  if (!g_under_valgrind.load(std::memory_order_relaxed)) return false;
  const uint64_t readable = 0;
  return ProbeByPopulating(reinterpret_cast<uintptr_t>(&readable));
}

// The thread pointer of the thread that runs main.
constinit std::atomic<uintptr_t> g_main_thread{0};

bool IsMainThread() {
  // The first thread of a fork child may be any thread of its parent, on the
  // stack that it had there.
  const uintptr_t known = g_main_thread.load(std::memory_order_relaxed);
  const OtherCalls calls;
  if (known != 0 || !calls) return ThreadPointer() == known;
  if (RawSystemCall(SYS_getpid) != RawSystemCall(SYS_gettid)) return false;
  g_main_thread.store(ThreadPointer(), std::memory_order_relaxed);
  return true;
}

// Is there a mapping at each page of [begin, end)? Without looking at one, which below the main
// thread's stack would make that grow: msync() does nothing here but walk over the mappings.
bool IsMapped(uintptr_t begin, uintptr_t end) {
  const OtherCalls calls;
  return calls && RawSystemCall(SYS_msync, static_cast<long>(begin), static_cast<long>(end - begin),
                                MS_ASYNC) == 0;
}

// Keeps the compiler from moving the stores that a signal handler may see.
void Fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

bool ProbeWord(uintptr_t address) {
  if (address >> kAddressBits != 0) return false;
  const OtherCalls calls;
  if (!calls && !g_probe_by_mask.load(std::memory_order_relaxed)) return ProbeByPopulating(address);
  if (MustPopulate()) return ProbeByPopulating(address);
  return ProbeWorks() && AskKernel(address) == -EINVAL;
}

bool ProbePage(uintptr_t address) { return ProbeWord(PageOf(address)); }

void FindMainThread() { IsMainThread(); }

void StackBounds::Reset() {
  hi_ = lo_;  // empty first
  Fence();
  lo_ = hi_ = 0;
  Fence();
  floor_ = 0;
  floor_is_hole_ = false;
  is_main_ = false;
  looked_ = 0;
  wasted_probes_ = 0;
  far_attempts_ = 0;
}

void StackBounds::FindPrimary() {
  uintptr_t top = ThreadPointer();
  if (IsMainThread() && &__libc_stack_end != nullptr) {
    top = reinterpret_cast<uintptr_t>(__libc_stack_end);
    is_main_ = true;
  }
  const uintptr_t page = PageOf(top);
  if (page != 0 && ProbeWord(page)) {
    uintptr_t begin, end, guard;
    if (top == ThreadPointer() && FindStackBlock(top, top + kStackBlockEnd, &begin, &end, &guard)) {
      floor_ = begin + guard;
    }
    lo_ = page + kPageBytes;
    Fence();
    hi_ = page + kPageBytes;
    Fence();
    lo_ = page;
  }
  // Last: after a handler that jumps out of here the next walk does it again. Were it not done for
  // good, the thread would have no stack of its own, on which alone it is proven that a handler
  // jumped.
  Fence();
  looked_ = 1;
}

// Within the block that libc has mapped for a thread's stack. Below the main thread's own the
// kernel keeps 1 MiB free of other mappings, so that what is mapped without a hole is its stack.
bool StackBounds::MayExtendFar(uintptr_t page) const {
  if (far_attempts_ >= kMaxFarAttempts) return false;
  return is_main_ || (floor_ != 0 && !floor_is_hole_ && page >= floor_);
}

// Extends the stack down to `page`, over what is mapped as a whole: so a look at a word here and
// there is enough. To look at each page would bring in those that the program has not touched.
bool StackBounds::ExtendFar(uintptr_t page) {
  if (!MayExtendFar(page)) return false;
  bool is_stack = !is_main_ || IsMapped(page, lo_);
  for (uintptr_t at = lo_; is_stack && at > page;) {
    at -= at - page < kFarStepBytes ? at - page : kFarStepBytes;
    is_stack = ProbeWord(at);
  }
  if (!is_stack) {
    ++far_attempts_;
    return false;
  }
  if (is_main_) {
    floor_ = 0;  // a hole was filled since
    floor_is_hole_ = false;
    Fence();
  }
  lo_ = page;
  return true;
}

bool StackBounds::ExtendPrimary(uintptr_t page) {
  if (page < lo_ && lo_ - page > kMaxGrowthBytes) return ExtendFar(page);
  if (page >= lo_ || page < floor_) {
    // Stacks that are made of mappings often lie right below a thread's own. A
    // hole may be filled since.
    if (page >= lo_ || !floor_is_hole_ || !ProbeWord(floor_)) return false;
    floor_ = 0;
  }
  if (wasted_probes_ > kMaxWastedProbes) return false;
  uint32_t probes = 0;
  for (uintptr_t at = page; at < lo_; at += kPageBytes) {
    ++probes;
    if (!ProbeWord(at)) {
      wasted_probes_ += probes;
      floor_is_hole_ = true;
      Fence();
      floor_ = at;
      return false;
    }
  }
  lo_ = page;
  return true;
}

bool StackBounds::MayBePrimary(uintptr_t address) const {
  if (!looked_) return true;
  if (address >= lo_) return address < hi_;
  if (lo_ - address > kMaxGrowthBytes) return MayExtendFar(PageOf(address));
  return (address >= floor_ || floor_is_hole_) && wasted_probes_ <= kMaxWastedProbes;
}

StackWindow StackBounds::EnterSlow(uintptr_t sp) {
  if (!looked_) FindPrimary();
  const uintptr_t page = PageOf(sp);
  if ((sp - lo_ < hi_ - lo_) || (lo_ != hi_ && ExtendPrimary(page))) return {lo_, hi_};
  if (!ProbeWord(page)) return {page, page};
  return {page, page + kPageBytes};
}

bool StackBounds::Move(uintptr_t address, StackWindow* window) {
  if (address >> kAddressBits != 0) return false;
  const uintptr_t first = PageOf(address);
  const uintptr_t last = PageOf(address + sizeof(uint64_t) - 1);
  if (address - lo_ < hi_ - lo_ && hi_ - address >= sizeof(uint64_t)) {
    *window = {lo_, hi_};
    return true;
  }
  for (uintptr_t page = first; page <= last; page += kPageBytes) {
    const bool known = page - window->lo < window->hi - window->lo;
    if (!known && !ProbeWord(page)) return false;
  }
  if (first == window->hi || (first == window->hi - kPageBytes && last == window->hi)) {
    window->hi = last + kPageBytes;  // the stack goes on upwards
  } else {
    *window = {first, last + kPageBytes};
  }
  return true;
}

}  // namespace memtrace::unwind
