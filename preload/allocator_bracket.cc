#include "preload/allocator_bracket.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "format/notes.h"
#include "preload/allowed_calls.h"
#include "preload/append_records.h"
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

constinit std::atomic<bool> g_calls_itself{false};

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

// A call in the midst of another has given out `block`.
[[gnu::noinline, gnu::cold]] void NoteOwnBlock(const void* block) {
  ThreadState* const state = t_slot.state;
  if (state != nullptr && block != nullptr)
    state->own_blocks[state->own_block_count++ % ThreadState::kOwnBlocks] = block;
}

bool ForgetOwnBlock(const void* block) {
  ThreadState* const state = t_slot.state;
  if (state == nullptr) return false;
  for (const void*& own : state->own_blocks) {
    if (own != block) continue;
    own = nullptr;
    return true;
  }
  return false;
}

// While it lives, the thread is marked. `ends`: the block that the call ends, if it does.
class Bracket {
 public:
  [[gnu::always_inline]] explicit Bracket(const void* ends)
      : frame_(t_slot.bracket_frame), ends_(t_slot.bracket_ends), mode_(t_slot.mode) {
    t_slot.bracket_ends = ends;
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
    t_slot.bracket_ends = ends_;
  }
  Bracket(const Bracket&) = delete;
  Bracket& operator=(const Bracket&) = delete;

  // Within another one, or a handler that interrupted another one.
  bool nested() const { return frame_ != 0; }

 private:
  const uintptr_t frame_;
  const void* const ends_;
  const ThreadMode mode_;
};

// Of free() and realloc() the first argument is the block that they end.
template <typename... Arguments>
const void* Ended(Arguments...) {
  return nullptr;
}
const void* Ended(void* block) { return block; }
const void* Ended(void* block, size_t) { return block; }

template <auto kFunction, typename F>
struct BracketOf;
template <auto kFunction, typename Result, typename... Arguments>
struct BracketOf<kFunction, Result (*)(Arguments...)> {
  static Result Call(Arguments... arguments) {
    const Bracket bracket(Ended(arguments...));
    if constexpr (std::is_pointer_v<Result>) {
      const Result block = (g_bracketed.*kFunction)(arguments...);
      if (bracket.nested()) [[unlikely]] NoteOwnBlock(block);
      return block;
    } else {
      return (g_bracketed.*kFunction)(arguments...);
    }
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

// Whether the call from `site` is the allocator's own, in a bracket.
static bool IsOwnCall(const unwind::CallSite& site) {
  if (site.cfa <= t_slot.bracket_frame) return IsCaller(site.pc);
  if (t_slot.mode == ThreadMode::kInAllocator && !IsOnAlternateStack()) {
    t_slot.mode = ThreadMode::kNew;
  }
  return false;
}

static void TellAllocatorCallsItself() {
  BuildRecords<64>(
      [](format::RecordEncoder& out) { out.Counter(format::kAllocatorCallsItself, 1); },
      AppendKeptBlock{});
}

bool IsAllocatorsOwnAlloc(const unwind::CallSite& site) {
  if (!IsOwnCall(site)) return false;
  if (!g_calls_itself.exchange(true, std::memory_order_relaxed)) {
    const Section section(site.cfa);
    if (section) TellAllocatorCallsItself();
  }
  return true;
}

bool IsAllocatorsOwnFree(const void* block, const unwind::CallSite& site) {
  return IsOwnCall(site) && (block == t_slot.bracket_ends || ForgetOwnBlock(block));
}

void TellAllocatorCallsItselfAgain() {
  if (g_calls_itself.load(std::memory_order_relaxed)) TellAllocatorCallsItself();
}

}  // namespace memtrace
