#include "preload/leak_scan/exit_call.h"

#include <atomic>

#include "preload/exported.h"
#include "preload/exported_symbol.h"
#include "preload/nested_section.h"
#include "preload/next_functions.h"
#include "preload/process_end.h"
#include "preload/recorder.h"

// exit() keeps what it was called with, and jumps to libc's.
extern "C" {
[[gnu::used]] void* memtrace_real_exit = nullptr;
}

namespace memtrace {
namespace {

// The latest call of exit().
struct ExitCall {
  std::atomic<uintptr_t> control_block{0};  // of the thread that made it
  ScanCaller caller;
};
constinit ExitCall g_exit_call;

// libc calls its exit() itself as well: when main returns, and in err(), error() and others.
// Then what lies above the frames of exit() is found by its return addresses.
uintptr_t StackPointerOfExit(uintptr_t pc, uintptr_t stack_pointer, uintptr_t frame_pointer) {
  constexpr uintptr_t kLongestExit = 64;  // bytes of code of exit()
  constexpr uintptr_t kFarthest = 16 << 10;
  const auto code = reinterpret_cast<uintptr_t>(memtrace_real_exit);
  if (code == 0 || t_slot.mode != ThreadMode::kRecording) return stack_pointer;
  const Section section(stack_pointer);
  if (!section) return stack_pointer;
  ThreadState& state = section.state();
  const unwind::CallSite here = {pc, stack_pointer, frame_pointer};
  const unwind::UnwindResult stack =
      state.unwinder.CaptureUncounted(here, state.keys, unwind::kMaxFrames);
  size_t frame = 0;
  while (frame < stack.frames && unwind::PcOf(state.keys[frame]) - code > kLongestExit) ++frame;
  if (frame + 1 >= stack.frames) return stack_pointer;
  // Each return address lies above the one before it.
  uintptr_t at = stack_pointer;
  const uintptr_t end = stack_pointer + kFarthest;
  for (size_t i = 1; i <= frame + 1; ++i) {
    const uintptr_t wanted = unwind::PcOf(state.keys[i]);
    while (at < end && *reinterpret_cast<const uintptr_t*>(at) != wanted) at += sizeof(uintptr_t);
    if (at == end) return stack_pointer;
    at += sizeof(uintptr_t);
  }
  return at;
}

}  // namespace

void FindExit() {
  memtrace_real_exit = reinterpret_cast<void*>(Next().exit);
}

ScanCaller CallerOfExit(uintptr_t pc, uintptr_t stack_pointer, uintptr_t frame_pointer) {
  if (g_exit_call.control_block.load(std::memory_order_acquire) == arch::ThreadPointer()) {
    return g_exit_call.caller;
  }
  return {StackPointerOfExit(pc, stack_pointer, frame_pointer)};
}

}  // namespace memtrace

extern "C" [[gnu::used]] ENTERED void memtrace_before_exit(int status) {
  using namespace memtrace;
  ScanCaller caller = {0, true, arch::CurrentRegisters()};
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  caller.stack_pointer = frame + arch::kObservedCallerOffset;
  caller.registers.rsp = caller.stack_pointer;
  caller.registers.rbp = *reinterpret_cast<const uintptr_t*>(frame);
  FindExit();
  g_exit_call.caller = caller;
  g_exit_call.control_block.store(arch::ThreadPointer(), std::memory_order_release);
  ExitIsCalled(status, caller);
  ScanAtExit(format::ScanReason::kExitEarly, caller);
}
