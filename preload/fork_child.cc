#include "preload/fork_child.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/records.h"
#include "preload/allocator_bracket.h"
#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"
#include "preload/clock.h"
#include "preload/confinement.h"
#include "preload/coverage_notes.h"
#include "preload/descriptor_table.h"
#include "preload/faults/faults.h"
#include "preload/faults/page_snapshot.h"
#include "preload/foreign_runtime.h"
#include "preload/kept_records.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/memory_map_record.h"
#include "preload/module_map.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/thread_state.h"
#include "preload/trace_begin.h"

namespace memtrace {
namespace {

// The process that has closed what was its parent's: what is open later is its own.
constinit std::atomic<int> g_closed_in{0};

// To begin a trace takes some KiB of stack, and the child of a clone() may have been given not
// more than it needs itself.
[[gnu::noinline]] bool OnOwnStack(bool (*function)(uint64_t), uint64_t argument) {
  constexpr size_t kBytes = 64 << 10;
  void* const stack = OwnMap(kBytes, /*touch=*/false);
  if (stack == nullptr) return function(argument);
  struct Job {
    bool (*function)(uint64_t);
    uint64_t argument;
    bool result;
  } job = {function, argument, false};
  arch::CallOnStack(
      static_cast<char*>(stack) + kBytes,
      [](void* data) {
        auto* const job = static_cast<Job*>(data);
        job->result = job->function(job->argument);
      },
      &job);
  OwnUnmap(stack, kBytes);
  return job.result;
}

}  // namespace

void CloseParentsFiles() {
  const OtherCalls calls;
  if (!calls) return;
  // A process that has a trace of its own has done so already.
  const int pid = sys::Getpid();
  if (g_process.pid == pid || g_closed_in.exchange(pid, std::memory_order_relaxed) == pid) return;
  g_process.file.CloseInherited();
  CloseInheritedDescriptors();
}

bool StartForkChild() {
  const uint64_t parent = g_process.trace_id;
  CloseParentsFiles();
  g_process.file.Forsake();
  g_process.must_not_clone.store(g_under_valgrind.load(std::memory_order_relaxed),
                                 std::memory_order_relaxed);
  g_process.ended_for_itself.store(false, std::memory_order_relaxed);
  g_clock.BeginInChild();
  ForgetThreads();
  ForgetOwnMinorFaults();
  ForgetConfinement();
  ForgetScans();
  ForgetFaults();
  ForgetPageSnapshots();
  ForgetMemoryMaps();
  g_kept_records.Forget();
  if (!g_process.config.children) return false;
  // It could create no file. What it forks has the same filter.
  if (g_memory_calls_only.load(std::memory_order_relaxed)) return false;
  const OwnFaultsScope faults;
  return OnOwnStack([](uint64_t parent_trace_id) {
    if (!BeginTrace(parent_trace_id)) return false;
    // Without this the children of one parent would all sample the same way.
    if (g_process.config.sample_seed == 0) t_slot.random ^= g_process.trace_id;
    WriteModulesAgain();
    WriteCoverageNotesAgain();
    TellAllocatorCallsItselfAgain();
    WriteMemoryMap(format::MapReason::kStart);
    OpenFaults();
    return true;
  }, parent);
}

}  // namespace memtrace
