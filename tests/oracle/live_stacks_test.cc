// Stacks of running code, frame by frame: ours against libunwind's unw_step(), both
// from the same point. The stacks come from the libraries of shapes/, each built by
// another compiler or with other flags, loaded here as plugins.
//
// Compared at every probe: the fast walk twice (the second time every rule is in the
// table), the generic interpreter alone, and the join with the stack of the last probe.

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "preload/unwind/cfi_unwinder.h"
#include "preload/unwind/stack_unwinder.h"
#include "tests/oracle/shapes/shapes.h"

namespace memtrace::unwind {
namespace {

using format::StackMarker;

struct OracleFrame {
  uintptr_t pc;
  uintptr_t sp;
  bool after_signal;  // what lies inside of it is a signal trampoline
};

// unw_is_signal_frame() does not say so reliably; the code does.
bool IsTrampoline(uintptr_t pc) {
  static const uint8_t kCode[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  return memcmp(reinterpret_cast<const void*>(pc), kCode, sizeof(kCode)) == 0;
}

size_t g_joined_frames;
std::map<std::string, int> g_probes;  // per shape; written by one thread at a time

std::string Describe(uintptr_t pc) {
  Dl_info info = {};
  char text[256];
  dladdr(reinterpret_cast<void*>(pc - 1), &info);
  const char* file = info.dli_fname == nullptr ? "?" : info.dli_fname;
  snprintf(text, sizeof(text), "%lx %s (%s+0x%lx)", pc,
           info.dli_sname == nullptr ? "?" : info.dli_sname, file,
           pc - reinterpret_cast<uintptr_t>(info.dli_fbase));
  return text;
}

// libunwind's frames from the caller of the probe outwards.
std::vector<OracleFrame> OracleStack(const CallSite& site) {
  std::vector<OracleFrame> frames;
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  bool inside = false;
  bool after_signal = false;
  do {
    unw_word_t pc;
    unw_word_t sp;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    inside |= pc == site.pc && sp == site.cfa;
    if (inside && pc != 0) frames.push_back({pc, sp, after_signal});
    after_signal = pc != 0 && IsTrampoline(pc);
  } while (unw_step(&cursor) > 0 && frames.size() < kMaxFrames);
  return frames;
}

// The generic interpreter alone, from this frame.
std::vector<uint64_t> GenericStack(const CallSite& site, StackMarker* marker) {
  std::vector<uint64_t> keys;
  StackBounds bounds;
  CfiUnwinder walk(CurrentRegisters(), &bounds);
  FrameInfo info;
  bool inside = false;
  StepResult step = StepResult::kStepped;
  while (step == StepResult::kStepped) {
    inside |= walk.pc() == site.pc && walk.sp() == site.cfa;
    const uintptr_t pc = walk.pc();
    const bool exact = walk.exact();
    step = walk.Step(&info);
    if (inside) keys.push_back(pc + (exact || info.trampoline));
  }
  *marker = walk.marker();
  return keys;
}

void Compare(const char* shape, const char* walk, const std::vector<uint64_t>& keys,
             StackMarker marker, const std::vector<OracleFrame>& oracle) {
  std::string story = std::string(shape) + ", " + walk + ":";
  for (size_t i = 0; i < std::max(keys.size(), oracle.size()); ++i) {
    story += "\n  ours " + (i < keys.size() ? Describe(PcOf(keys[i])) : "-");
    story += "\n    theirs " + (i < oracle.size() ? Describe(oracle[i].pc) : "-");
  }
  SCOPED_TRACE(story);
  // (Only in these two shapes: elsewhere the count of frames decides.)
  ASSERT_EQ(marker == StackMarker::kContextEnd, strncmp(shape, "context", 7) == 0);
  if (marker == StackMarker::kContextEnd) {
    // libunwind takes what lies above the first frame of a context for a frame.
    ASSERT_GE(oracle.size(), keys.size());
  } else {
    ASSERT_EQ(marker, StackMarker::kNone);
    ASSERT_EQ(oracle.size(), keys.size());
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool context = marker == StackMarker::kContextEnd && i + 1 == keys.size();
    const bool past_byte = oracle[i].after_signal || IsTrampoline(oracle[i].pc) || context;
    ASSERT_EQ(PcOf(keys[i]), oracle[i].pc + past_byte) << "frame " << i;
  }
}

[[gnu::noinline]] void ProbeHere(const char* shape) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const CallSite site = {reinterpret_cast<uintptr_t>(__builtin_return_address(0)), frame + 16,
                         *reinterpret_cast<uintptr_t*>(frame)};
  thread_local StackUnwinder unwinder;
  thread_local StackJoin join;
  const std::vector<OracleFrame> oracle = OracleStack(site);
  ASSERT_FALSE(oracle.empty());
  ++g_probes[shape];
  uint64_t keys[kMaxFrames];
  for (const char* walk : {"first walk", "second walk"}) {
    const UnwindResult result = unwinder.Capture(site, keys, kMaxFrames);
    Compare(shape, walk, {keys, keys + result.frames}, result.marker, oracle);
  }
  if (unwinder.Join(site, &join) == StackJoin::Outcome::kRecorded) {
    std::vector<uint64_t> joined;
    for (size_t i = join.size(); i > 0; --i) joined.push_back(join.key(i - 1));
    Compare(shape, "joined", joined, join.marker(), oracle);
    g_joined_frames += join.shared();
  }
  StackMarker marker;
  const std::vector<uint64_t> generic = GenericStack(site, &marker);
  Compare(shape, "generic", generic, marker, oracle);
}

class LiveStacksTest : public testing::TestWithParam<const char*> {};

TEST_P(LiveStacksTest, EqualsLibunwindFrameByFrame) {
  const std::string path =
      std::string(MEMTRACE_BUILD_DIR "/tests/shapes/libshapes_") + GetParam() + ".so";
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* run = reinterpret_cast<RunShapesFunction*>(dlsym(library, "RunShapes"));
  ASSERT_NE(run, nullptr);
  g_probes.clear();
  g_joined_frames = 0;
  run(ProbeHere);
  if (std::string(GetParam()) == "lazy_caller") {
    EXPECT_EQ(g_probes["lazy_binding"], 1);
    return;
  }
  for (const char* shape :
       {"recursion", "many_registers", "alloca", "vla", "realigned", "realigned_plain",
        "huge_frame", "virtual", "lambda", "qsort", "bsearch", "dl_iterate_phdr", "pthread_once",
        "std_sort", "catch", "nested_catch", "destructor_while_unwinding", "signal_handler",
        "sigaltstack", "nested_signal", "fault", "context", "context_switched", "pthread",
        "std_thread", "tls_destructor", "noreturn_call"}) {
    EXPECT_GE(g_probes[shape], 1) << shape;
  }
  EXPECT_GT(g_joined_frames, 200u) << "nothing was joined";
}

INSTANTIATE_TEST_SUITE_P(Builds, LiveStacksTest, testing::Values(MEMTRACE_SHAPES),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace memtrace::unwind
