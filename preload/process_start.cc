#include "preload/process_start.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "format/records.h"
#include "preload/allocator_bracket.h"
#include "preload/bootstrap_arena.h"
#include "preload/clock.h"
#include "preload/confinement.h"
#include "preload/coverage_notes.h"
#include "preload/descriptor_table.h"
#include "preload/faults/faults.h"
#include "preload/first_process.h"
#include "preload/foreign_runtime.h"
#include "preload/memory_map_record.h"
#include "preload/module_map.h"
#include "preload/own_memory.h"
#include "preload/proc_file.h"
#include "preload/process.h"
#include "preload/process_record.h"
#include "preload/raw_log.h"
#include "preload/real_allocator.h"
#include "preload/recording_switch.h"
#include "preload/sampled_set.h"
#include "preload/sys.h"
#include "preload/text.h"
#include "preload/trace_begin.h"
#include "preload/unwind/stack_bounds.h"
#include "preload/unwind/stack_memo.h"
#include "preload/usage_samples.h"

namespace memtrace {
namespace {

// Has the kernel wipe the switch in fork children. Where it cannot (Linux before 4.14,
// emulations of it), a child would take its parent's rings for its own, which are not
// there: nothing is recorded.
bool TellForkChildren() {
  const long told = sys::Madvise(&g_switch, sizeof(g_switch), MADV_WIPEONFORK);
  if (!sys::Failed(told)) return true;
  if (MaySay()) {
    RawLog("the kernel has no MADV_WIPEONFORK (Linux 4.14), which tells fork children that they "
           "are such: ", ErrorText(told), "; the program runs untraced");
  }
  return false;
}

void NoteOtherDefinition() {
  const OtherDefinition other = FindOtherDefinition();
  if (other.function == nullptr) return;
  Text<512> note;
  if (other.module[0] == 0) {
    note << "the program has a " << other.function
         << " of its own: what is allocated with it is not in this trace, only its mappings and "
            "what libraries get from libc";
  } else {
    note << other.module << " comes before libmemtrace.so and has a " << other.function
         << " of its own: what is allocated with it is not in this trace (name libmemtrace.so "
            "first in LD_PRELOAD)";
  }
  AddCoverageNote(note.view());
}

// False: they are not to be had. What was asked for is not known then: where to
// write, for one thing.
bool ReadSettings() {
  const ProcFile file("/proc/self/environ", 4 << 20);
  if (file.error() == 0) {
    g_process.config.Parse(file.text(), MaySay);
    return true;
  }
  // If a program may be executed but not read, its files in /proc belong to root.
  if (environ == nullptr || environ[0] == nullptr) {
    if (MaySay()) {
      RawLog(
          "off: this process may not read its own /proc/self/environ, and so no setting (is its "
          "program "
          "executable and not readable?)");
    }
    return false;
  }
  g_process.config.Parse(environ, MaySay);
  return true;
}

// The kernel's peak is that of a process, which may have been a larger program.
void NoteInheritedPeak() {
  rusage usage;
  const auto resident_kb = static_cast<long>(ResidentBytes() >> 10);
  if (resident_kb == 0 || sys::Failed(sys::Getrusage(RUSAGE_SELF, &usage))) return;
  constexpr long kLeastKb = 8 << 10;
  if (usage.ru_maxrss > 2 * resident_kb + kLeastKb) g_process.inherited_peak_kb = usage.ru_maxrss;
}

}  // namespace

bool StartProcess() {
  // First: where all descriptors are in use, files are read by a process of our own.
  LookWhereFirstChildrenGo();
  if (const std::string_view why = WhyNotInThisProcess(); !why.empty()) {
    if (MaySay()) RawLog(why);
    return false;
  }
  if (IsUnderValgrind()) {
    g_under_valgrind.store(true, std::memory_order_relaxed);
    g_process.must_not_clone.store(true, std::memory_order_relaxed);
  }
  const OwnFaultsScope faults;
  if (getauxval(AT_SECURE) != 0) return false;
  if (!ReadSettings()) return false;
  g_clock.Init();
  unwind::FindMainThread();
  unwind::StackMemo::faults_of_a_page_read_first = FaultsOfPageReadFirst();
  ReadProgram();
  const bool is_glibc = RealAllocatorIsGlibc();
  g_process.allocator_is_glibc = is_glibc && !g_process.config.glibc_has_huge_heaps;
  if (!is_glibc) {
    RealAllocatorModule(&g_process.other_allocator.begin, &g_process.other_allocator.bytes);
    BracketRealAllocator();
  }
  if (!g_process.config.children && LookAtParent() == Parent::kTraced) return false;
  if (!TellForkChildren()) return false;
  if (!BeginTrace(/*parent_trace_id=*/0)) return false;
  if (g_process.config.sample_bytes != 0) {
    g_sampled.Begin();
    // Blocks that the bootstrap arena gave out must not reach the real free.
    g_sampled.Watch(g_bootstrap_arena.begin(), g_bootstrap_arena.used_end());
  }
  ReadPermanentModules();
  NoteInheritedPeak();
  NoteOtherDefinition();
  WriteMemoryMap(format::MapReason::kStart);
  OpenFaults();
  return true;
}

}  // namespace memtrace
