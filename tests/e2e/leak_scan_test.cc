// What memory scans find of programs that know what keeps their blocks: in registers, on stacks,
// in mappings, in threads of all kinds; and that the programs notice nothing of it.

#include <gtest/gtest.h>
#include <sys/personality.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "tests/e2e/check_command.h"
#include "tests/e2e/leak_scan.h"

namespace memtrace::e2e {
namespace {

#define RUN_AND_CHECK(name) \
  if (!RunAndCheck(name)) GTEST_SKIP() << "this machine does not let it"

TEST_F(LeakScanTest, WordsOfModules) { RUN_AND_CHECK("globals"); }

TEST_F(LeakScanTest, StacksAndThreadLocals) {
  RUN_AND_CHECK("threads");
  EXPECT_EQ(Threads(format::ScanThreadState::kParked), 2u);
}

#ifdef __x86_64__
TEST_F(LeakScanTest, ARegisterAndNothingElse) { RUN_AND_CHECK("register"); }
#endif

#ifdef __x86_64__
// The program break of an hour ago lies in the midst of a block now.
TEST_F(LeakScanTest, NoCallLeavesTheBreakInARegister) {
  const std::string program = Compile(directory_, "registers", R"(
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// uint64_t CallAndLook(void* function, uint64_t a, uint64_t b, uint64_t registers[9])
__asm__(
    ".globl CallAndLook\n"
    "CallAndLook:\n"
    ".cfi_startproc\n"
    "pushq %rbx\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset %rbx, -16\n"
    "movq %rcx, %rbx\n"
    "movq %rdi, %rax\n"
    "movq %rsi, %rdi\n"
    "movq %rdx, %rsi\n"
    "call *%rax\n"
    "movq %rax, (%rbx)\n"
    "movq %rcx, 8(%rbx)\n"
    "movq %rdx, 16(%rbx)\n"
    "movq %rsi, 24(%rbx)\n"
    "movq %rdi, 32(%rbx)\n"
    "movq %r8, 40(%rbx)\n"
    "movq %r9, 48(%rbx)\n"
    "movq %r10, 56(%rbx)\n"
    "movq %r11, 64(%rbx)\n"
    "popq %rbx\n"
    ".cfi_def_cfa_offset 8\n"
    "ret\n"
    ".cfi_endproc\n");
uint64_t CallAndLook(void* function, uint64_t a, uint64_t b, uint64_t registers[9]);

static int found, looked;

static uint64_t Look(void* function, uint64_t a, uint64_t b) {
  uint64_t registers[9];
  const uint64_t before = (uint64_t)sbrk(0);
  const uint64_t result = CallAndLook(function, a, b, registers);
  if ((uint64_t)sbrk(0) != before) return result;  // it moved: where it was is in no block yet
  ++looked;
  for (int i = 0; i < 9; ++i) found += registers[i] == before;
  return result;
}

int main(void) {
  for (int i = 0; i < 300; ++i) {
    uint64_t block = Look((void*)malloc, 40 + i, 0);
    block = Look((void*)realloc, block, 90 + i);
    Look((void*)free, block, 0);
    block = Look((void*)calloc, 1, 70 + i);
    Look((void*)free, block, 0);
    block = Look((void*)aligned_alloc, 64, 128);
    Look((void*)free, block, 0);
  }
  printf("found %d of %d\n", found, looked);
  return 0;
}
)");
  const Result run = RunCommand(Traced({.arguments = {program}, .timeout_seconds = 60}, directory_.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  int found = -1, looked = 0;
  ASSERT_EQ(sscanf(run.out.c_str(), "found %d of %d", &found, &looked), 2) << run.out;
  EXPECT_EQ(found, 0);
  EXPECT_GT(looked, 2000);
}
#endif

// Neither is sent a signal: the second would take it for the program's.
TEST_F(LeakScanTest, ThreadsThatBlockAllSignals) {
  RUN_AND_CHECK("signals_blocked");
  EXPECT_EQ(Threads(format::ScanThreadState::kUnparked), 2u);
}

TEST_F(LeakScanTest, AThreadOnItsSignalStack) { RUN_AND_CHECK("signal_stack"); }

TEST_F(LeakScanTest, ASignalStackThatWasFreedAndIsOtherBlocksNow) { RUN_AND_CHECK("freed_signal_stack"); }

TEST_F(LeakScanTest, SignalStacksThatOnlyTheKernelKnows) { RUN_AND_CHECK("kept_signal_stacks"); }

TEST_F(LeakScanTest, WhatTheUsableSizeOfABlockHasRoomFor) { RUN_AND_CHECK("usable_size"); }

// All of its heap counts as roots; but what malloc keeps there of its own is none.
TEST_F(LeakScanTest, AForkChildWhoseArenaGrows) {
  ASSERT_TRUE(Run("forks_from_a_thread"));
  const size_t child = out_.find("child ");
  ASSERT_NE(child, out_.npos);
  Load(TraceOf(directory_.path(), "kept_by", std::stoi(out_.substr(child + 6))));
  ASSERT_EQ(scans_.size(), 1u);
  ASSERT_EQ(scans_[0].state, LeakScan::State::kDone) << scans_[0].failure;
  EXPECT_EQ(scans_[0].totals[static_cast<size_t>(report::LeakKind::kDefinite)].blocks, 60u);
  EXPECT_EQ(scans_[0].totals[static_cast<size_t>(report::LeakKind::kPossible)].blocks, 0u);
}

// As frameworks of tests do that fork for each: the child loses a list, and has freed a table of
// pointers to it, which hid that. What a block of its parent's leads to is there still. Where the
// child may have blocks that nobody knows, freed memory keeps what it leads to.
TEST_F(LeakScanTest, WhatAForkChildHasFreedKeepsNothing) {
  const std::string program = Compile(directory_, "forked", R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);
struct node { struct node* next; char data[200]; };
static void** parents;
static void* volatile sink;

static __attribute__((noinline)) void clean_the_stack(void) {
  volatile char frames[32 << 10];
  for (size_t i = 0; i < sizeof(frames); ++i) frames[i] = 0;
}

static __attribute__((noinline)) void lose(void) {
  struct node* head = NULL;
  for (int i = 0; i < 20; ++i) {
    struct node* const node = calloc(1, sizeof(*node));
    node->next = head;
    head = node;
  }
  void** const table = malloc(64 * sizeof(void*));
  for (int i = 0; i < 64; ++i) table[i] = head;
  sink = table;
  free(sink);
  sink = NULL;
}

static __attribute__((noinline)) void keep(void) {
  parents[7] = malloc(777);
  free(parents[8]);  // the parent's; then it is the child's
  void** const own = malloc(1000);
  memset(own, 0, 1000);
  own[50] = malloc(778);
  parents[8] = own;
}

int main(int argc, char** argv) {
  const char how = argc > 1 ? argv[1][0] : 'f';
  parents = calloc(64, sizeof(void*));
  parents[8] = calloc(1, 1000);
  const pid_t child = how == 'x' ? 0 : fork();
  if (child == 0) {
    if (how == 'u') sink = __libc_malloc(10);
    lose();
    keep();
    clean_the_stack();
    exit(0);
  }
  waitpid(child, NULL, 0);
  printf("%d\n", (int)child);
  return 0;
}
)");
  for (const std::string how : {"forked", "x: not at all", "unseen"}) {
    SCOPED_TRACE(how);
    const TempDir traces;
    const Command command{.arguments = {program, how}, .timeout_seconds = 60};
    const Result run = RunCommand(Traced(command, traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    Load(TraceOf(traces.path(), "forked", how[0] == 'x' ? run.pid : std::stoi(run.out)));
    ASSERT_EQ(scans_.size(), 1u);
    ASSERT_EQ(scans_[0].state, LeakScan::State::kDone) << scans_[0].failure;
    std::map<LeakKind, uint64_t> of_list;
    for (const report::LossRecord& record : scans_[0].records) {
      if (record.bytes == 208 * record.blocks) of_list[record.kind] += record.blocks;
    }
    const bool unseen = how == "unseen";
    using Blocks = std::map<LeakKind, uint64_t>;
    EXPECT_EQ(of_list, unseen ? Blocks({{LeakKind::kReachable, 20}})
                              : Blocks({{LeakKind::kDefinite, 1}, {LeakKind::kIndirect, 19}}));
    ExpectKinds(scans_[0], "expect 777 reachable expect 1000 reachable expect 778 reachable");
    const std::string notes = absl::StrJoin(scans_[0].notes, "; ");
    EXPECT_EQ(notes.find("has never had a block itself") != notes.npos, how == "forked") << notes;
    EXPECT_EQ(notes.find("all of the heap outside of known blocks") != notes.npos, unseen) << notes;
  }
}

// They block all signals, and are not waited for: they never run the program's code.
TEST_F(LeakScanTest, ThreadsOfTheKernels) {
  RUN_AND_CHECK("io_uring");
  EXPECT_EQ(raw_.back().threads.size(), 1u);
  EXPECT_LT(raw_.back().begin.stood_ns, 100'000'000u);
}

TEST_F(LeakScanTest, LittleAddressSpace) {
  RUN_AND_CHECK("tight");
  RUN_AND_CHECK("tight_until_raised");
}

TEST_F(LeakScanTest, StacksOfThreadsThatHaveEnded) {
  RUN_AND_CHECK("ended_threads");
  EXPECT_EQ(Threads(format::ScanThreadState::kEnding), 1u);
}

// With glibc 2.43 all of these were taken to be wanted still, for the thread id of a joined thread
// is that of any that has ended.
TEST_F(LeakScanTest, WhatThreadsReturned) {
  RUN_AND_CHECK("returned_blocks");
  EXPECT_EQ(Threads(format::ScanThreadState::kEnding), 1u);
}

TEST_F(LeakScanTest, StacksThatAreGuardedByARegion) { RUN_AND_CHECK("guard_regions"); }

TEST_F(LeakScanTest, StacksAtLowAddresses) { RUN_AND_CHECK("low_stacks"); }

TEST_F(LeakScanTest, Mappings) {
  RUN_AND_CHECK("mappings");
  EXPECT_GE(raw_.back().regions.size(), 8u);
}

TEST_F(LeakScanTest, ASparseMappingCostsNothing) {
  RUN_AND_CHECK("sparse");
  EXPECT_LT(raw_.back().done->root_bytes, 16u << 20);
}

// It took 1.1 s for each TiB, a step for each page that is not there.
TEST_F(LeakScanTest, NeitherDoTebibytes) {
  RUN_AND_CHECK("tebibytes");
  EXPECT_LT(raw_.back().done->root_bytes, 64u << 20);
  EXPECT_LT(raw_.back().done->cpu_ns, 6'000'000'000u);
}

// It took 4 s for each TiB between the first word that something points to and the last, and so was
// cut short.
TEST_F(LeakScanTest, NorDoPointersToTheEndsOfTebibytes) {
  RUN_AND_CHECK("tebibyte_ends");
  EXPECT_LT(raw_.back().done->root_bytes, 64u << 20);
  EXPECT_LT(raw_.back().done->cpu_ns, 6'000'000'000u);
}

// Nobody waits for a page that is not there.
TEST_F(LeakScanTest, ASparseSharedMappingIsLookedThroughWhereItHasData) {
  RUN_AND_CHECK("sparse_shared");
  EXPECT_LT(raw_.back().done->root_bytes, 16u << 20);
}

// The tables of a copy have none of them: all that they kept counted as lost.
TEST_F(LeakScanTest, SharedHugePages) {
  RUN_AND_CHECK("shared_huge_pages");
  ASSERT_EQ(scans_.size(), 2u);
  ExpectKinds(scans_[0], out_);
}

// With huge pages, which the machine need not have, libc's allocator is one of which nothing is known:
// what lay in the same 64 KiB as a block was no root.
TEST_F(LeakScanTest, WhatTheProgramMapsBesideLargeBlocks) {
  RUN_AND_CHECK("beside_blocks");
  ASSERT_TRUE(RunAndCheck("beside_blocks", {{"GLIBC_TUNABLES", "glibc.malloc.hugetlb=2"}}));
}

// Two million pointers are read, and not written down.
TEST_F(LeakScanTest, PointersIntoMemoryOfTheProgramsOwnCostNothing) {
  RUN_AND_CHECK("own_heap");
  EXPECT_GT(raw_.back().done->root_bytes, 16u << 20);
  EXPECT_LT(raw_.back().words, 20'000u);
}

// Of 45 MB some 40 were freed.
TEST_F(LeakScanTest, WhatWasFreedCostsNothing) {
  RUN_AND_CHECK("freed_heap");
  EXPECT_GT(raw_.back().done->territory_bytes, 5'000'000u);  // what is kept
  EXPECT_LT(raw_.back().done->territory_bytes, 6'000'000u);
}

TEST_F(LeakScanTest, ABlockThatGrewOverTheRemainderOfASplit) { RUN_AND_CHECK("remainder"); }

TEST_F(LeakScanTest, ABreakThatTheProgramMoved) { RUN_AND_CHECK("own_break"); }

// All of it was a root, and what was freed kept what it had pointed to.
TEST_F(LeakScanTest, ABreakThatCannotGrow) { RUN_AND_CHECK("blocked_break"); }

// Without randomized addresses, as under a debugger, the heap follows the .bss: all of it was taken for heap,
// and what global variables pointed to was lost.
TEST_F(LeakScanTest, AHeapThatIsOneMappingWithTheBss) {
  const int before = personality(0xffffffff);
  if (personality(static_cast<unsigned long>(before) | ADDR_NO_RANDOMIZE) == -1) GTEST_SKIP() << "not allowed here";
  const bool ran = RunAndCheck("heap_behind_bss");
  personality(static_cast<unsigned long>(before));
  if (!ran) GTEST_SKIP() << "they are two";
}

TEST_F(LeakScanTest, BlocksWhereTheProgramHadAMapping) {
  RUN_AND_CHECK("mapped_before");
  EXPECT_EQ(out_.find("elsewhere"), std::string::npos) << out_;
}

// V8 has its heap there: what only that pointed to was lost.
TEST_F(LeakScanTest, MemoryThatForkChildrenDoNotGet) {
  utsname system;
  ASSERT_EQ(uname(&system), 0);
  int major = 0, minor = 0;
  ASSERT_EQ(sscanf(system.release, "%d.%d", &major, &minor), 2);
  if (std::pair(major, minor) < std::pair(5, 10)) GTEST_SKIP() << "Linux " << system.release;
  RUN_AND_CHECK("kept_from_forks");
}

TEST_F(LeakScanTest, GuardPages) { RUN_AND_CHECK("guard_pages"); }

// It is no root, as for memcheck, and its blocks are blocks.
TEST_F(LeakScanTest, MemoryThatWasProtectedWhenItWasFilled) { RUN_AND_CHECK("read_only"); }

TEST_F(LeakScanTest, WhatIsBelowTheStackPointerOfAThreadThatWaits) {
  RUN_AND_CHECK("stale_below");
  uint64_t lost = 0;
  for (const report::LossRecord& record : scans_.back().records) {
    if (record.kind == report::LeakKind::kDefinite && record.bytes == 4999 * record.blocks) {
      lost += record.blocks;
    }
  }
  EXPECT_EQ(lost, 10u);
}

TEST_F(LeakScanTest, AProgramThatWaitsForItsChildrenSeesNone) { RUN_AND_CHECK("wait_loop"); }

TEST_F(LeakScanTest, AStormOfSignals) { RUN_AND_CHECK("storm"); }

TEST_F(LeakScanTest, ThreadsThatComeAndGo) {
  RUN_AND_CHECK("churn");
  EXPECT_EQ(scans_.size(), 201u);
  // What ended while it was being stopped is no thread that did not stop.
  const auto has_unparked = [](const report::leak::Scan& scan) {
    return std::any_of(scan.threads.begin(), scan.threads.end(),
                       [](const auto& thread) { return thread.state == format::ScanThreadState::kUnparked; });
  };
  EXPECT_LT(std::count_if(raw_.begin(), raw_.end(), has_unparked), 50);
}

// Without us a thread has microseconds between the last destructor and the end of the process: it must
// not run on among what is destroyed for as long as a scan takes.
TEST_F(LeakScanTest, OtherThreadsStandAtTheExitUntilTheScanIsOver) {
  for (const std::string way : {"plain", "worker", "blocked", "child"}) {
    SCOPED_TRACE(way);
    const TempDir traces;
    const std::string file = traces / "turns";
    const Command command{.arguments = {TraceePath("runs_on_at_exit"), file, way},
                          .timeout_seconds = 60};
    const Result run = RunCommand(Traced(command, traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    Load(TraceOf(traces.path(), "runs_on_at_exit", run.pid));
    ASSERT_EQ(scans_.size(), 1u);
    ASSERT_EQ(scans_[0].state, LeakScan::State::kDone) << scans_[0].failure;
    uint64_t turns = 0;  // of a millisecond at least
    std::ifstream written(file, std::ios::binary);
    ASSERT_TRUE(written.read(reinterpret_cast<char*>(&turns), sizeof(turns)));
    EXPECT_LT(turns * 1'000'000, scans_[0].cost.elapsed_ns / 2);
  }
}

// daemon() ends the process that calls it, but not yet, and not if it fails.
TEST_F(LeakScanTest, ADaemonHasNoHandlerOfOurs) {
  const std::string file = directory_ / "handled";
  const Command command{.arguments = {TraceePath("runs_on_at_exit"), file, "daemon"},
                        .timeout_seconds = 60};
  const Result run = RunCommand(Traced(command, directory_.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  uint64_t handled = 0;
  for (int i = 0; handled == 0 && i < 1000; ++i) {  // a daemon is not waited for
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&handled), sizeof(handled));
  }
  EXPECT_EQ(handled, 1u);
}

TEST_F(LeakScanTest, WhatCouldNotBecomeADaemonIsScannedAtItsEnd) {
  const Command command{
      .arguments = {TraceePath("runs_on_at_exit"), directory_ / "nothing", "no_daemon"},
      .timeout_seconds = 60};
  const Result run = RunCommand(Traced(command, directory_.path()));
  if (run.Outcome() != "exit 0") GTEST_SKIP() << "needs root: " << run.Outcome();
  Load(TraceOf(directory_.path(), "runs_on_at_exit", run.pid));
  ASSERT_EQ(scans_.size(), 2u);
  ASSERT_EQ(scans_[1].state, LeakScan::State::kDone) << scans_[1].failure;
  // The last one may be where a register or the stack has it still.
  EXPECT_GE(scans_[1].totals[static_cast<size_t>(LeakKind::kDefinite)].bytes, 99'000u);
}

TEST_F(LeakScanTest, ManyThreadsHaveItScanned) {
  RUN_AND_CHECK("scanned_by_many");
  ASSERT_EQ(scans_.size(), 321u);
  for (const LeakScan& scan : scans_) EXPECT_EQ(scan.state, LeakScan::State::kDone) << scan.number << ": " << scan.failure;
}

TEST_F(LeakScanTest, AForkChildThatEndsByUnderscoreExit) {
  ASSERT_TRUE(Run("fork"));
  const size_t child = out_.find("child\n");
  ASSERT_NE(child, std::string::npos);
  for (const std::string& file : FilesIn(directory_.path(), ".mtr")) {
    SCOPED_TRACE(file);
    const bool parent = file.find("." + std::to_string(pid_) + ".") != std::string::npos;
    Load(directory_ / file);
    ASSERT_EQ(scans_.size(), 1u);
    ExpectKinds(scans_[0], parent ? out_.substr(0, child) : out_.substr(child));
  }
}

// It scans itself, and says so.
TEST_F(LeakScanTest, NoProcessCanBeMade) {
  RUN_AND_CHECK("no_process");
  EXPECT_EQ(raw_.back().begin.scanner_pid, 0u);
  EXPECT_NE(raw_.back().begin.note, "");
}

// Memory that comes and goes meanwhile ended the process that looked at it.
TEST_F(LeakScanTest, NoProcessCanBeMadeAndAThreadGoesOn) {
  for (int i = 0; i < 5; ++i) {
    if (!Run("busy_alone")) GTEST_SKIP() << "this machine does not let it";
    Load(TraceOf(directory_.path(), "kept_by", pid_));
    ASSERT_EQ(scans_.size(), 1u);
    EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
    EXPECT_NE(scans_[0].failure.find("a thread of it did not stop"), std::string::npos) << scans_[0].failure;
  }
}

TEST_F(LeakScanTest, AfterASeccompFilterThereIsNone) {
  if (!Run("seccomp")) GTEST_SKIP() << "no seccomp filter here";
  Load(TraceOf(directory_.path(), "kept_by"));
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
  EXPECT_NE(scans_[0].failure.find("seccomp"), std::string::npos) << scans_[0].failure;
}

TEST_F(LeakScanTest, AfterChrootToWhereThereIsNoProc) {
  if (!Run("chroot")) GTEST_SKIP() << "chroot is root's";
  Load(TraceOf(directory_.path(), "kept_by"));
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
  EXPECT_NE(scans_[0].failure.find("/proc"), std::string::npos) << scans_[0].failure;
}

TEST_F(LeakScanTest, ProcessesThatEndAtOnce) {
  ASSERT_TRUE(Run("_exit", {}, "exit 3"));
  Load(TraceOf(directory_.path(), "kept_by"));
  ASSERT_EQ(scans_.size(), 1u);
  ExpectKinds(scans_[0], out_);
}

// Stopped there all at once, they would come back as one another.
TEST_F(LeakScanTest, ThreadsThatShareAnAlternateSignalStack) {
  for (int i = 0; i < 5; ++i) {
    const TempDir own;
    const Result run =
        RunCommand(Traced({.arguments = {TraceePath("shares_a_signal_stack")}}, own.path()));
    EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
    EXPECT_EQ(run.out + run.err, "bye\n");
    Load(TraceOf(own.path(), "shares_a_signal_stack"));
    ASSERT_EQ(scans_.size(), 1u);
    EXPECT_EQ(scans_[0].totals[static_cast<size_t>(LeakKind::kDefinite)].blocks, 0u);
    EXPECT_GE(scans_[0].totals[static_cast<size_t>(LeakKind::kReachable)].blocks, 60u);
  }
}

TEST_F(LeakScanTest, WhenItIsDone) {
  using format::ScanReason;
  const auto reasons = [&](const char* value) {
    std::vector<ScanReason> found;
    const TempDir own;
    Command command{.arguments = {TraceePath("kept_by"), "globals"}};
    command.environment = {{"MEMTRACE_LEAK_CHECK", value}};
    const Result run = RunCommand(Traced(command, own.path()));
    EXPECT_EQ(run.Outcome(), "exit 0");
    Load(TraceOf(own.path(), "kept_by"));
    for (const LeakScan& scan : scans_) {
      found.push_back(scan.reason);
      ExpectKinds(scan, run.out);
    }
    return found;
  };
  EXPECT_EQ(reasons("exit"), (std::vector{ScanReason::kExitLate}));
  EXPECT_EQ(reasons("exit-early"), (std::vector{ScanReason::kExitEarly}));
  EXPECT_EQ(reasons("both"), (std::vector{ScanReason::kExitEarly, ScanReason::kExitLate}));
  EXPECT_EQ(reasons("off"), std::vector<ScanReason>{});
}

TEST_F(LeakScanTest, UnderMemtraceRun) {
  const std::string trace = directory_ / "run.mtr";
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o",
                                               trace, "--", TraceePath("kept_by"), "threads"}});
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  Load(trace);
  ASSERT_EQ(scans_.size(), 1u);
  ExpectKinds(scans_[0], run.out);
}

// gdb stops at nothing that the program did not do, and announces no thread or process of ours.
TEST_F(LeakScanTest, ADebuggerSeesNoNewThread) {
  for (int i = 0; i < 5; ++i) {
    Command command{.arguments = {"gdb", "-nx", "-batch", "-ex", "set startup-with-shell off", "-ex",
                                  "set environment LD_PRELOAD " + LibraryPath(), "-ex",
                                  "set environment MEMTRACE_OUT " + (directory_ / "%e.%p.mtr"), "-ex", "run",
                                  "--args", TraceePath("kept_by"), "globals"}};
    const Result gdb = RunCommand(command);
    ASSERT_EQ(gdb.Outcome(), "exit 0") << gdb.err;
    EXPECT_EQ(gdb.out.find("[New "), std::string::npos) << gdb.out;
    EXPECT_NE(gdb.out.find("exited normally"), std::string::npos) << gdb.out;
  }
  EXPECT_EQ(FilesIn(directory_.path(), ".mtr").size(), 5u);
}

// A signal that is sent to the thread that execs would end the program that it begins.
TEST_F(LeakScanTest, AnExecMeanwhileIsNotHarmed) {
  for (int i = 0; i < 60; ++i) {
    TempDir traces;
    const Result run = RunCommand(Traced(
        {.arguments = {TraceePath("execs_while_scanned"), std::to_string(500 * i)}}, traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << "after " << 500 * i << " us: " << run.err;
  }
}

// Guard regions and pages with a protection key look like memory: the copy died of them, and where the
// process scanned itself, the program.
TEST_F(LeakScanTest, PagesThatCannotBeRead) {
  Strike({{"guard"}, {"guard", "alone"}, {"key"}, {"key", "alone"}}, [&](const std::string& how) {
    for (const report::LossRecord& record : scans_[0].records) {
      EXPECT_EQ(record.kind, LeakKind::kReachable) << how << ": " << record.bytes;
    }
  });
}

// Within a block, that words point to. Where the process scans itself and another thread fills them, it stood
// there for ever.
TEST_F(LeakScanTest, PagesBeforeAPlaceInABlockThatCannotBeRead) {
  Strike({{"block"}, {"block", "alone"}, {"userfault"}}, [&](const std::string& how) {
    EXPECT_EQ(scans_[0].totals[static_cast<size_t>(LeakKind::kDefinite)].blocks, 0u) << how;
  });
}

// It is opened without the system call of that name, and its reader stands when it is told of the copy.
TEST_F(LeakScanTest, AUserfaultfdOfTheDevice) {
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("strikes_its_scan"), "device"}, .timeout_seconds = 60}, directory_.path()));
  if (run.exit_status == 77) GTEST_SKIP() << "this machine has none";
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  Load(TraceOf(directory_.path(), "strikes_its_scan", run.pid));
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].state, LeakScan::State::kDone) << scans_[0].failure;
  EXPECT_EQ(raw_.back().begin.scanner_pid, 0u);
}

// It was told as if none had been asked for.
TEST_F(LeakScanTest, ACopyThatIsKilledIsTold) {
  struct Killed {
    const char* how;
    const char* failure;
  };
  for (const Killed& killed :
       {Killed{"killed", "the process that scanned was ended by signal 9, as where memory is short"},
        Killed{"late", "it took longer than a minute"}}) {
    const Result run = RunCommand(
        Traced({.arguments = {TraceePath("strikes_its_scan"), killed.how}, .timeout_seconds = 60}, directory_.path()));
    if (run.exit_status == 77) GTEST_SKIP() << "the kernel tells no children";
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    Load(TraceOf(directory_.path(), "strikes_its_scan", run.pid));
    ASSERT_EQ(scans_.size(), 1u);
    EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
    EXPECT_EQ(scans_[0].failure, killed.failure);
  }
}

// They were not found, and nothing said so. The launcher is traced as well: its filter is there after exec.
TEST_F(LeakScanTest, CallsPastTheLibraryWhereAContainerRefusesProcessVmReadv) {
  for (const bool refused : {false, true}) {
    TempDir traces;
    Command command{.arguments = {TraceePath("libc_malloc_by_name")}};
    if (refused) command.arguments.insert(command.arguments.begin(), TraceePath("without_readv"));
    const Result run = RunCommand(Traced(command, traces.path()));
    if (refused && run.exit_status == 3) GTEST_SKIP() << "a filter of system calls cannot be set here";
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    Load(TraceOf(traces.path(), "libc_malloc_by_name", run.pid));
    ASSERT_EQ(scans_.size(), 1u);
    EXPECT_EQ(scans_[0].state, LeakScan::State::kDone) << scans_[0].failure;
    EXPECT_TRUE(scans_[0].frees_unseen) << refused;
    EXPECT_NE(absl::StrJoin(scans_[0].notes, "; ").find("what libc_malloc_by_name freed past"), std::string::npos);
  }
}

}  // namespace
}  // namespace memtrace::e2e
