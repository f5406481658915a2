#include "preload/allocator_bracket.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"
#include "preload/real_allocator.h"
#include "preload/recorder.h"
#include "preload/thread_state.h"

namespace memtrace {
namespace {

// Behind the brackets.
constinit RealAllocator g_bracketed = {};

// Where the allocator's own calls return to.
struct CodeRange {
  uintptr_t begin = 0;
  size_t bytes = 0;
};
constexpr size_t kMostModules = 10;  // one for each function, and the library
constinit CodeRange g_callers[kMostModules];
constinit size_t g_caller_count = 0;

bool IsCaller(uintptr_t pc) {
  for (size_t i = 0; i < g_caller_count; ++i) {
    if (pc - g_callers[i].begin < g_callers[i].bytes) return true;
  }
  return false;
}

CodeRange ModuleAt(const void* code) {
  dl_find_object module;
  if (_dl_find_object(const_cast<void*>(code), &module) != 0) return {};
  const auto begin = reinterpret_cast<uintptr_t>(module.dlfo_map_start);
  return {begin, reinterpret_cast<uintptr_t>(module.dlfo_map_end) - begin};
}

void AddCaller(CodeRange module) {
  if (module.bytes != 0 && !IsCaller(module.begin)) g_callers[g_caller_count++] = module;
}

void KeepOrder() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// A handler's stack may lie above the bracket that it interrupted.
[[gnu::noinline, gnu::cold]] bool IsOnAlternateStack() {
  const OtherCalls calls;
  stack_t now = {};
  return calls &&
         arch::RawSystemCall(SYS_sigaltstack, 0, reinterpret_cast<long>(&now)) == 0 &&
         (now.ss_flags & SS_ONSTACK) != 0;
}

// The call was made by a thread that records, and has come back into the child of a fork that a
// handler made, where there is no state yet. The event of the call needs one, or the end of the
// recording.
[[gnu::noinline, gnu::cold]] void TakeStateAgain() { const Section section; }

// While it lives, the thread is marked.
class Bracket {
 public:
  [[gnu::always_inline]] Bracket() : frame_(t_slot.bracket_frame), mode_(t_slot.mode) {
    t_slot.bracket_frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    KeepOrder();
    if (!IsInside(mode_)) t_slot.mode = ThreadMode::kInAllocator;
    KeepOrder();
  }
  [[gnu::always_inline]] ~Bracket() {
    KeepOrder();
    if (!IsInside(mode_)) {
      t_slot.mode = mode_;
      if (mode_ == ThreadMode::kRecording && t_slot.state == nullptr) [[unlikely]]
        TakeStateAgain();
    }
    KeepOrder();
    t_slot.bracket_frame = frame_;
  }
  Bracket(const Bracket&) = delete;
  Bracket& operator=(const Bracket&) = delete;

 private:
  const uintptr_t frame_;
  const ThreadMode mode_;
};

template <auto kFunction, typename F>
struct BracketOf;
template <auto kFunction, typename Result, typename... Arguments>
struct BracketOf<kFunction, Result (*)(Arguments...)> {
  static Result Call(Arguments... arguments) {
    const Bracket bracket;
    return (g_bracketed.*kFunction)(arguments...);
  }
};

// Where a function is libc's, though others are not, none calls another by name; and libc's calls
// are none of the allocator's. One of this library (`own`) is a bracket.
template <auto kFunction>
void BracketFunction(CodeRange own, CodeRange libc) {
  auto& real = g_real.*kFunction;
  const CodeRange module = ModuleAt(reinterpret_cast<void*>(real));
  if (module.begin == own.begin || module.begin == libc.begin) return;
  AddCaller(module);
  g_bracketed.*kFunction = real;
  KeepOrder();  // a handler may call it
  real = BracketOf<kFunction, std::remove_reference_t<decltype(real)>>::Call;
}

}  // namespace

void BracketRealAllocator() {
  const CodeRange own = ModuleAt(reinterpret_cast<void*>(&BracketRealAllocator));
  // Nobody interposes this one.
  const CodeRange libc = ModuleAt(reinterpret_cast<void*>(&__errno_location));
  AddCaller(own);
  BracketFunction<&RealAllocator::malloc>(own, libc);
  BracketFunction<&RealAllocator::calloc>(own, libc);
  BracketFunction<&RealAllocator::realloc>(own, libc);
  BracketFunction<&RealAllocator::free>(own, libc);
  BracketFunction<&RealAllocator::posix_memalign>(own, libc);
  BracketFunction<&RealAllocator::aligned_alloc>(own, libc);
  BracketFunction<&RealAllocator::memalign>(own, libc);
  BracketFunction<&RealAllocator::valloc>(own, libc);
  BracketFunction<&RealAllocator::pvalloc>(own, libc);
}

bool IsAllocatorsOwnCall(const unwind::CallSite& site) {
  if (site.cfa <= t_slot.bracket_frame) return IsCaller(site.pc);
  if (t_slot.mode == ThreadMode::kInAllocator && !IsOnAlternateStack()) {
    t_slot.mode = ThreadMode::kNew;
  }
  return false;
}

}  // namespace memtrace
