// Code that is written at run time: a stack ends there with a marker, whatever lay at the
// address before, is registered with the C++ runtime, or comes to lie there afterwards.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "preload/unwind/rule_table.h"
#include "preload/unwind/stack_memo.h"
#include "preload/unwind/stack_unwinder.h"

extern "C" void __register_frame(void*);
extern "C" void __deregister_frame(void*);

namespace memtrace::unwind {
namespace {

using format::StackMarker;

struct Captured {
  uint64_t keys[kMaxFrames];
  UnwindResult result;
};
Captured g_walked, g_joined;
StackUnwinder g_unwinder;
StackJoin g_join;
alignas(4096) char g_memo_memory[StackMemo::Bytes(16)];
StackMemo g_memo;
int g_memo_hits;

// The stack by the plain walk and by way of the last one; they must agree.
[[gnu::noinline]] void CaptureHere() {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const CallSite site = {reinterpret_cast<uintptr_t>(__builtin_return_address(0)), frame + 16,
                         *reinterpret_cast<uintptr_t*>(frame)};
  const StackMemo::Entry* const entry = g_memo.Find(site, g_unwinder.primary_stack());
  const bool known = entry != nullptr;
  const uint64_t known_as = known ? entry->stack : 0;
  g_memo_hits += known;
  g_walked.result = g_unwinder.Capture(site, g_walked.keys, kMaxFrames);
  if (g_unwinder.Join(site, &g_join) != StackJoin::Outcome::kRecorded) return;
  ASSERT_EQ(g_join.size(), g_walked.result.frames);
  ASSERT_EQ(g_join.marker(), g_walked.result.marker);
  for (size_t i = 0; i < g_join.size(); ++i) {
    ASSERT_EQ(g_join.key(g_join.size() - 1 - i), g_walked.keys[i]);
  }
  if (known) {
    ASSERT_EQ(known_as, g_walked.keys[g_walked.result.frames - 1] ^ g_walked.keys[0]);
  }
  if (!known) {
    g_memo.Learn(site, g_join, g_walked.keys[g_walked.result.frames - 1] ^ g_walked.keys[0]);
  }
}

using Code = void (*)(void (*)());

// sub $frame, %rsp; call *%rdi; add $frame, %rsp; ret
std::vector<uint8_t> CallingCode(uint8_t frame) {
  return {0x48, 0x83, 0xec, frame, 0xff, 0xd7, 0x48, 0x83, 0xc4, frame, 0xc3};
}

class JitCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    g_memo.Init(g_memo_memory, 16);
    page_ = static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(page_, MAP_FAILED);
  }
  void TearDown() override { munmap(page_, kBytes); }
  void Write(const std::vector<uint8_t>& code, size_t at = 0) {
    memcpy(page_ + at, code.data(), code.size());
  }
  // Calls the code at `at`; the stack must be its frame alone, and a marker.
  [[gnu::noinline]] void ExpectMarked(size_t at = 0) {
    for (volatile int round = 0; round < 3;) {
      reinterpret_cast<Code>(page_ + at)(CaptureHere);
      EXPECT_EQ(g_walked.result.marker, StackMarker::kNoUnwindInfo);
      EXPECT_EQ(g_walked.result.frames, 1u);
      EXPECT_EQ(PcOf(g_walked.keys[0]), reinterpret_cast<uintptr_t>(page_ + at + 6));
      EXPECT_EQ(InstanceOf(g_walked.keys[0]), 0u);
      const int next = round + 1;
      round = next;
    }
  }
  static constexpr size_t kBytes = 1 << 16;
  uint8_t* page_ = nullptr;
};

TEST_F(JitCodeTest, EndsInAMarker) {
  Write(CallingCode(8));
  ExpectMarked();
}

TEST_F(JitCodeTest, OverwrittenByAnotherFunctionEndsInAMarker) {
  for (const uint8_t frame : {8, 88, 24, 120}) {
    Write(CallingCode(frame));
    ExpectMarked();
  }
}

// Tables that are registered with libgcc are not looked at: the frame ends in a marker
// before, meanwhile and after, and no rule is left behind.
TEST_F(JitCodeTest, RegisteredWithTheRuntimeEndsInAMarker) {
  Write(CallingCode(40));
  ExpectMarked();
  // CIE: version 1, "zR", code 1, data -8, ra 16; absolute pointers; CFA rsp+8, ra at c-8.
  std::vector<uint8_t> tables = {20, 0,    0,  0, 0, 0,    0, 0, 1,    'z', 'R', 0,
                                 1,  0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1,   0,   0};
  const size_t fde = tables.size();
  const auto put = [&](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) tables.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  put(28, 4);
  put(fde + 4, 4);
  put(reinterpret_cast<uintptr_t>(page_), 8);
  put(11, 8);
  // augmentation length, advance 4, CFA offset 48, advance 6, CFA offset 8
  for (const uint8_t byte : {0, 0x44, 0x0e, 48, 0x46, 0x0e, 8, 0}) tables.push_back(byte);
  put(0, 4);
  __register_frame(tables.data());
  ExpectMarked();
  __deregister_frame(tables.data());
  ExpectMarked();
}

uint16_t g_tag;
uint16_t TagPlugins(const dl_find_object* object, uintptr_t, bool*) {
  const std::string_view name = object->dlfo_link_map->l_name;
  return name.find("libplugin_") == std::string_view::npos ? uint16_t{0} : g_tag;
}

// A module comes to lie where code was written, and the other way round.
TEST_F(JitCodeTest, ChangesPlacesWithModules) {
  RuleTable::ClearForTesting();
  SetInstanceOf(TagPlugins);
  size_t met = 0;
  for (int round = 0; round < 20; ++round) {
    g_tag = static_cast<uint16_t>(200 + round);
    const char* path = round % 2 == 0 ? MEMTRACE_BUILD_DIR "/tests/plugins/libplugin_a.so"
                                      : MEMTRACE_BUILD_DIR "/tests/plugins/libplugin_b.so";
    void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(plugin, nullptr) << dlerror();
    const auto call = reinterpret_cast<Code>(dlsym(plugin, "CallFromPlugin"));
    for (int i = 0; i < 3; ++i) {
      call(CaptureHere);
      ASSERT_EQ(g_walked.result.marker, StackMarker::kNone);
      ASSERT_EQ(InstanceOf(g_walked.keys[0]), g_tag);
      ASSERT_GT(g_walked.result.frames, 3u);
    }
    const uintptr_t pc = PcOf(g_walked.keys[0]);
    BeginClose();
    ASSERT_EQ(dlclose(plugin), 0);
    EndClose(true);
    // The same return address, now in code without CFI.
    auto* page = reinterpret_cast<uint8_t*>(pc & ~uintptr_t{4095}) - 4096;
    void* got = mmap(page, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(got, page);
    const std::vector<uint8_t> code = CallingCode(56);
    memcpy(reinterpret_cast<void*>(pc - 6), code.data(), code.size());
    for (int i = 0; i < 3; ++i) {
      reinterpret_cast<Code>(pc - 6)(CaptureHere);
      ASSERT_EQ(PcOf(g_walked.keys[0]), pc);
      ASSERT_EQ(InstanceOf(g_walked.keys[0]), 0u);
      ASSERT_EQ(g_walked.result.frames, 1u);
      ASSERT_EQ(g_walked.result.marker, StackMarker::kNoUnwindInfo);
    }
    munmap(page, 3 * 4096);
    ++met;
  }
  EXPECT_EQ(met, 20u);
  EXPECT_GT(g_memo_hits, 0) << "the memo took part";
  SetInstanceOf(nullptr);
  RuleTable::ClearForTesting();
}

}  // namespace
}  // namespace memtrace::unwind
