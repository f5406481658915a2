// The walk and modules that come and go: tags in the keys, rules that must not outlive
// their module, and the code that runs before main().

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "preload/unwind/rule_table.h"
#include "preload/unwind/stack_unwinder.h"

extern "C" int EarlyLibrary();

namespace memtrace::unwind {
namespace {

using format::StackMarker;

struct Captured {
  UnwindResult result;
  uint64_t keys[kMaxFrames] = {};
};

Captured g_captured;
constinit Captured g_before_main = {};  // written before constructors run here
UnwindCounters g_counters;

[[gnu::noinline]] CallSite SiteOf(void* frame, void* return_address) {
  const auto at = reinterpret_cast<uintptr_t>(frame);
  return {reinterpret_cast<uintptr_t>(return_address), at + 16, *reinterpret_cast<uintptr_t*>(at)};
}
#define MEMTRACE_HERE() SiteOf(__builtin_frame_address(0), __builtin_return_address(0))

[[gnu::noinline]] void CaptureHere() {
  StackUnwinder unwinder;
  g_captured.result = unwinder.Capture(MEMTRACE_HERE(), g_captured.keys, kMaxFrames);
  g_counters = unwinder.counters();
}

class Plugin {
 public:
  explicit Plugin(const std::string& name) {
    const std::string path = MEMTRACE_BUILD_DIR "/tests/plugins/libplugin_" + name + ".so";
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
    call_ = reinterpret_cast<void (*)(void (*)())>(dlsym(handle_, "CallFromPlugin"));
  }
  ~Plugin() { dlclose(handle_); }
  uintptr_t address() const { return reinterpret_cast<uintptr_t>(call_); }
  [[gnu::noinline]] void Call() const {
    call_(CaptureHere);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
  }

 private:
  void* handle_;
  void (*call_)(void (*)());
};

// The module map of this test: plugins get the tag of the moment, all else is permanent.
std::atomic<uint16_t> g_plugin_tag{0};
std::atomic<bool> g_plugin_cacheable{true};
uint16_t TagPlugins(const dl_find_object* object, uintptr_t, bool* cacheable) {
  const std::string_view name = object->dlfo_link_map->l_name;
  if (name.find("libplugin_") == std::string_view::npos) return 0;
  *cacheable = g_plugin_cacheable;
  return g_plugin_tag;
}

class ModulesTest : public testing::Test {
 protected:
  void SetUp() override {
    RuleTable::ClearForTesting();
    SetInstanceOf(TagPlugins);
    g_plugin_cacheable = true;
    // How many frames the test itself has above a call.
    Frames();
  }
  void TearDown() override {
    SetInstanceOf(nullptr);
    RuleTable::ClearForTesting();
  }
  static size_t Frames() {
    CaptureHere();
    return g_captured.result.frames;
  }
  // A walk through the plugin is right when it has the plugin's frame first, with its
  // tag, and then comes home.
  static bool WalkIsRight(const Plugin& plugin, uint16_t tag) {
    const size_t own = Frames();
    plugin.Call();
    const uint64_t key = g_captured.keys[0];
    return g_captured.result.marker == StackMarker::kNone &&
           g_captured.result.frames == own + 2 && PcOf(key) - plugin.address() < 256 &&
           InstanceOf(key) == tag && InstanceOf(g_captured.keys[1]) == 0;
  }
  // The rule misses of a right walk that has been gone before, from the same calls.
  [[gnu::noinline]] static int64_t MissesAgain(const Plugin& plugin, uint16_t tag) {
    for (volatile int round = 0; round < 2;) {
      if (!WalkIsRight(plugin, tag)) return -1;
      const int next = round + 1;
      round = next;
    }
    return static_cast<int64_t>(g_counters.rule_misses);
  }
};

TEST_F(ModulesTest, KeysCarryTheTagOfTheirModule) {
  const Plugin plugin("a");
  g_plugin_tag = 41;
  EXPECT_EQ(MissesAgain(plugin, 41), 0) << "the second walk knows all rules";
}

TEST_F(ModulesTest, RulesThatMustNotBeKeptAreNot) {
  const Plugin plugin("a");
  g_plugin_tag = 42;
  g_plugin_cacheable = false;
  EXPECT_EQ(MissesAgain(plugin, 42), 1);
  g_plugin_tag = kNoTag;
  EXPECT_TRUE(WalkIsRight(plugin, 0)) << "a module without an instance";
}

TEST_F(ModulesTest, WalksWhileModulesAreClosing) {
  const Plugin plugin("a");
  g_plugin_tag = 43;
  EXPECT_EQ(MissesAgain(plugin, 43), 0);
  BeginClose();
  EXPECT_EQ(MissesAgain(plugin, 43), 1) << "looked up afresh each time";
  EndClose(false);
  EXPECT_EQ(MissesAgain(plugin, 43), 0);
}

// Unloads one plugin and loads the other at the same place, until that happens. True:
// every walk was right.
bool ReusesTheRangeAndStaysRight(bool tell, bool (*walk_is_right)(const Plugin&, uint16_t)) {
  uint16_t tag = 100;
  uintptr_t last = 0;
  int reused = 0;
  for (int round = 0; round < 40; ++round) {
    g_plugin_tag = tell ? ++tag : 0;
    if (tell) BeginClose();  // of the plugin of the round before, which is gone
    if (tell) EndClose(true);
    const Plugin plugin(round % 2 == 0 ? "a" : "b");
    reused += plugin.address() == last;
    last = plugin.address();
    if (!walk_is_right(plugin, g_plugin_tag)) return false;
    if (!walk_is_right(plugin, g_plugin_tag)) return false;
  }
  EXPECT_GT(reused, 10) << "the test does not test what it should";
  return true;
}

TEST_F(ModulesTest, ARangeThatIsUsedAgainHasNewRules) {
  EXPECT_TRUE(ReusesTheRangeAndStaysRight(true, WalkIsRight));
}

TEST_F(ModulesTest, WithoutTagsAUsedRangeWouldGoWrong) {
  // What the test above would look like if the engine did not invalidate.
  EXPECT_FALSE(ReusesTheRangeAndStaysRight(false, WalkIsRight));
}

TEST_F(ModulesTest, ThreadsWalkWhileOthersClose) {
  const Plugin plugin("a");
  g_plugin_tag = 44;
  std::atomic<bool> done{false};
  std::thread closer([&] {
    while (!done) {
      BeginClose();
      EndClose(true);
    }
  });
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(WalkIsRight(plugin, 44)) << i;
  done = true;
  closer.join();
}

TEST(ProcessEntryTest, StacksFromBeforeMainAreComplete) {
  ASSERT_EQ(EarlyLibrary(), 2);
  ASSERT_GE(g_before_main.result.frames, 5u);
  EXPECT_EQ(g_before_main.result.marker, StackMarker::kNone);
  Dl_info info = {};
  const uint64_t first = g_before_main.keys[g_before_main.result.frames - 1];
  ASSERT_NE(dladdr(reinterpret_cast<void*>(PcOf(first)), &info), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(info.dli_fbase), getauxval(AT_BASE)) << "in ld.so";
}

}  // namespace
}  // namespace memtrace::unwind

extern "C" [[gnu::visibility("default")]] void CalledBeforeMain() {
  using memtrace::unwind::g_before_main;
  memtrace::unwind::StackUnwinder unwinder;
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  g_before_main.result = unwinder.Capture({reinterpret_cast<uintptr_t>(__builtin_return_address(0)),
                                           frame + 16, *reinterpret_cast<uintptr_t*>(frame)},
                                          g_before_main.keys, memtrace::unwind::kMaxFrames);
}
