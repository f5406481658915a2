// The event path takes no lock, allocates nothing and never calls the loader: shown of
// the machine code of libmemtrace.so, by what each interposed function can reach.
//
// The path is everything but the functions in kSlow, which run once for a process,
// a thread or a module and are documented as slow where they are declared. Those that
// only make system calls (a full ring, a time stamp, a new thread) are not excepted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/artifact/call_graph.h"

namespace memtrace {
namespace {

using testing::HasSubstr;

const std::string kLibrary = MEMTRACE_BUILD_DIR "/lib/libmemtrace.so";
const std::string kPlanted = MEMTRACE_BUILD_DIR "/tests/artifact/libplanted_calls.so";

// Functions that the path may call and that are not looked into, by the begin of their name.
const std::map<std::string, std::string> kSlow = {
    {"memtrace::EnsureRecording(", "the process's first event: finds the real functions"},
    {"memtrace::CrossCheck::Finish(", "libunwind, with MEMTRACE_CROSS_CHECK only"},
    {"memtrace::FindNextFunctions(", "the process's first call of all, if it is of a mapping function"},
};

// What the path may import, with the reason. None takes a lock or allocates.
const std::map<std::string, std::string> kHarmless = {
    {"_dl_find_object", "finds unwind tables; lock-free, async-signal-safe by contract"},
    {"getauxval", "reads a table made at start"},
    {"memchr", "bytes"},
    {"memcmp", "bytes"},
    {"memcpy", "bytes"},
    {"memmove", "bytes"},
    {"memset", "bytes"},
    {"bcmp", "bytes"},
    {"strlen", "bytes"},
    {"strnlen", "bytes"},
    {"makecontext", "its address, to know where contexts begin; never called"},
    {"__errno_location", "reallocarray sets ENOMEM, as it must"},
};

// Functions that call by a pointer, and what that can be. (The exported functions call the next
// definition by pointer.) Some can only call memtrace::InstanceOf; with spare descriptors, what said
// that there is none is done again.
constexpr const char* kAskForTheInstance[] = {"memtrace::unwind::InstanceOfModule(",
                                              "memtrace::unwind::TagIsCurrent("};
using Pointers = std::multimap<std::string, std::string>;
Pointers PointersOf(const CallGraph& graph) {
  Pointers pointers;
  for (const char* caller : kAskForTheInstance) {
    const std::string name = graph.NameFrom(caller);
    if (!name.empty()) pointers.emplace(name, graph.NameFrom("memtrace::InstanceOf("));
  }
  if (const std::string now = graph.NameFrom("memtrace::NowNs("); !now.empty()) {
    // Or the vDSO's function, which is no code of ours: stamps, when a ring is full.
    for (const std::string& time : graph.NamesFrom("memtrace::", "AskKernelForTime(int, timespec*)")) {
      pointers.emplace(now, time);
    }
  }
  const std::string spare = "memtrace::CallWithSpareDescriptors(void (*)(void*), void*)";
  for (const std::string& there : graph.NamesFrom(spare, "::_FUN(void*)")) {
    pointers.emplace(spare, there);
    for (const std::string& again : graph.NamesFrom("memtrace::WithSpareDescriptors<", "::_FUN(void*)")) {
      pointers.emplace(there, again);
    }
  }
  return pointers;
}

struct Interposed {
  std::string name;
  enum Kind { kAllocator, kMapping, kState } kind;
};
const std::vector<Interposed> kInterposed = {
#define MEMTRACE_INTERPOSED(name, kind) {#name, Interposed::kind},
#include "preload/interposed_functions.inc"
#undef MEMTRACE_INTERPOSED
};

// What is wrong with the functions that `entry` reaches; empty: nothing.
std::vector<std::string> FaultsOf(const CallGraph& graph, const std::string& entry) {
  const auto is_slow = [](const std::string& function) {
    for (const auto& [name, reason] : kSlow) {
      if (function.starts_with(name)) return true;
    }
    return false;
  };
  const auto is_interposed = [](const std::string& function) {
    for (const Interposed& one : kInterposed) {
      if (one.name == function) return true;
    }
    return false;
  };
  // What the exported functions jump to (preload/interpose_allocation.h): it is these that
  // call the next definition.
  const auto is_their_body = [](const std::string& function) {
    return function.starts_with("memtrace::Recorded") || function.starts_with("memtrace::Slow");
  };
  std::vector<std::string> faults;
  const Pointers pointers = PointersOf(graph);
  const CallGraph::Reached reached = graph.ReachedFrom(entry, is_slow, pointers);
  for (const auto& [function, from] : reached) {
    if (is_slow(function)) continue;
    if (function.ends_with("@plt")) {
      const std::string name = function.substr(0, function.find_first_of("@"));
      if (kHarmless.count(name) == 0) {
        faults.push_back("import: " + CallGraph::PathTo(reached, function));
      }
    } else if (!graph.Has(function)) {
      faults.push_back("unknown code: " + CallGraph::PathTo(reached, function));
    } else if (!graph.at(function).pointer_calls.empty() && !is_interposed(function) &&
               !is_their_body(function) &&
               pointers.count(function) == 0) {
      faults.push_back("call by pointer: " + CallGraph::PathTo(reached, function) +
                       graph.at(function).pointer_calls.front());
    }
  }
  return faults;
}

TEST(EventPathTest, ReachesNoLockNoAllocationNoLoader) {
  const CallGraph graph(kLibrary);
  ASSERT_GT(graph.size(), 100u);
  for (const Interposed& function : kInterposed) {
    if (function.kind == Interposed::kState) continue;
    ASSERT_TRUE(graph.Has(function.name)) << function.name;
    const std::vector<std::string> faults = FaultsOf(graph, function.name);
    EXPECT_THAT(faults, testing::IsEmpty()) << "in " << function.name;
  }
}

// Neither do the functions of memtrace.h, but for the one that scans memory.
TEST(EventPathTest, NorDoWhatTheProgramTells) {
  const CallGraph graph(kLibrary);
  for (const char* function :
       {"IsActive(", "IgnoreObject(", "Disable(", "Enable(", "RootRegion(", "UnrootRegion(",
        "PoolCreate(", "PoolDestroy(", "PoolAlloc(", "PoolFree(", "BlockAlloc(", "BlockFree(",
        "PhaseBegin(", "PhaseEnd(", "Mark(", "Start(", "Stop("}) {
    const std::string name =
        graph.NameFrom("memtrace::(anonymous namespace)::" + std::string(function));
    ASSERT_NE(name, "") << function;
    EXPECT_THAT(FaultsOf(graph, name), testing::IsEmpty()) << "in " << name;
  }
}

// dlsym() takes the loader's lock: what is found is found before there is a second thread.
TEST(LoaderLockPathTest, NamesAreLookedUpAtTheStartAlone) {
  const std::set<std::string> kAtStart = {
      "memtrace::FindRealAllocator()",           "memtrace::FindNextFunctions()",
      "memtrace::RealAllocatorIsGlibc()",        "memtrace::(anonymous namespace)::DefinedBeforeOurs(char const*)",
      "memtrace::OpenLibunwind()",
  };
  const CallGraph graph(kLibrary);
  std::set<std::string> callers;
  for (const std::string& name : graph.NamesFrom("", "")) {
    if (graph.at(name).callees.count("dlsym@plt") != 0) callers.insert(name);
  }
  EXPECT_THAT(callers, testing::IsSubsetOf(kAtStart));
  EXPECT_EQ(callers.count("memtrace::FindNextFunctions()"), 1u);
}

// Nor does anything but the start look at the list of modules, which has a lock of its own.
TEST(LoaderLockPathTest, TheListOfModulesIsReadAtTheStartAlone) {
  const CallGraph graph(kLibrary);
  std::set<std::string> callers;
  for (const std::string& name : graph.NamesFrom("", "")) {
    if (graph.at(name).callees.count("dl_iterate_phdr@plt") != 0) callers.insert(name);
  }
  EXPECT_THAT(callers, testing::ElementsAre("memtrace::ReadPermanentModules()"));
}

// What is said of the event path is worth something only if the path was seen.
TEST(EventPathTest, FollowsTheWholePath) {
  const CallGraph graph(kLibrary);
  const auto none = [](const std::string&) { return false; };
  const CallGraph::Reached reached = graph.ReachedFrom("malloc", none, PointersOf(graph));
  std::string all;
  for (const auto& [function, from] : reached) all += function + "\n";
  for (const char* part :
       {"memtrace::CaptureStack(", "memtrace::SpoolThread(", "memtrace::AttachThread(",
        "memtrace::Stamp(", "memtrace::RecordWideAlloc(", "memtrace::RecordHeapGrowth(",
        "StackJoin::Capture(", "StackMemo::Learn(", "StackUnwinder::Capture(", "FastWalk::Miss(",
        "FastWalk::Unusual(", "ResolveRule(", "CfiUnwinder::Step(", "RuleTable::Insert(",
        "StackBounds::Move(", "memtrace::InstanceOf(", "TraceFile::Append(", "_dl_find_object@plt",
        "RuleTable::Grow(", "memtrace::RecordedMalloc(", "memtrace::SlowMalloc(",
        "memtrace::DrawDistance(", "memtrace::WithSpareDescriptors<", "memtrace::OpenNestedSection(", "SampledSet::Insert("}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

class PlantedCallTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(PlantedCallTest, IsFlagged) {
  const auto [function, fault] = GetParam();
  const std::vector<std::string> faults = FaultsOf(CallGraph(kPlanted), function);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0], HasSubstr(fault));
}

INSTANTIATE_TEST_SUITE_P(
    Calls, PlantedCallTest,
    testing::Values(std::pair("malloc", "malloc > Locks > pthread_mutex_lock@plt"),
                    std::pair("free", "free > Looks > dlsym@plt"),
                    std::pair("calloc", "calloc > UsesDynamicTls > __tls_get_addr@plt"),
                    std::pair("realloc", "call by pointer: realloc > CallsAPointer"),
                    std::pair("valloc", "valloc > dl_iterate_phdr@plt"),
                    std::pair("pvalloc", "pvalloc > malloc@plt"),
                    std::pair("aligned_alloc", "aligned_alloc > Prints > printf@plt")),
    [](const auto& info) { return std::string(info.param.first); });

TEST(PlantedCallTest, NothingElseIsFlagged) {
  EXPECT_THAT(FaultsOf(CallGraph(kPlanted), "memalign"), testing::IsEmpty());
}

}  // namespace
}  // namespace memtrace
