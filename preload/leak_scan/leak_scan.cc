#include "preload/leak_scan/leak_scan.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include "preload/allowed_calls.h"
#include "preload/alternate_stacks.h"
#include "preload/bootstrap_arena.h"
#include "preload/clock.h"
#include "preload/exported.h"
#include "preload/exported_symbol.h"
#include "preload/leak_scan/scan_job.h"
#include "preload/leak_scan/thread_stop.h"
#include "preload/leak_scan/userfault.h"
#include "preload/nested_section.h"
#include "preload/next_functions.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

extern "C" void memtrace_signal_restorer();

// exit() keeps what it was called with, and jumps to libc's.
extern "C" {
[[gnu::used]] void* memtrace_real_exit = nullptr;
}

namespace memtrace {
namespace {

void FindExit() {
  memtrace_real_exit = reinterpret_cast<void*>(Next().exit);
}

constexpr uint64_t kLongestWaitNs = 60'000'000'000;
// A copy that nobody waits for may take longer.
constexpr long kLongestScanSeconds = 600;
constexpr size_t kMostLabelBytes = 256;

constinit std::atomic<uint32_t> g_last_number{0};
constinit std::atomic<bool> g_beginning{false};  // a scan: one thread at a time
// Of g_scanning_copy. One page for the life of the process: who waits for a copy may find that
// another thread has reaped it.
constinit ScanPage* g_page = nullptr;
// The value of StatusArea::scan_request that was answered last.
constinit std::atomic<uint64_t> g_answered{0};

// The latest call of exit().
struct ExitCall {
  std::atomic<uintptr_t> control_block{0};  // of the thread that made it
  ScanCaller caller;
};
constinit ExitCall g_exit_call;

bool IsAtEnd(format::ScanReason reason) {
  return reason == format::ScanReason::kExitLate || reason == format::ScanReason::kExitEarly;
}

std::string_view WhyNever() {
  if (g_process.config.sample_bytes != 0) {
    return "only a sample of the allocations is recorded (MEMTRACE_SAMPLE_BYTES)";
  }
  if (g_process.file.keeps_newest()) {
    return "the oldest events are written over (MEMTRACE_KEEP=newest), so what is live is not known";
  }
  return {};
}

// From the next event of any thread on, its time is later than this.
uint64_t TakeInstant(ThreadState& state) {
  uintptr_t sharing = g_switch.sharing.load(std::memory_order_relaxed);
  while (sharing != 0) {
    const uintptr_t next = (sharing & ~kEpochMask) | ((sharing + 1) & kEpochMask);
    if (g_switch.sharing.compare_exchange_weak(sharing, next)) break;
  }
  state.events_to_stamp = 1;
  const uint64_t instant = g_clock.OrderedNow();
  // A coarse clock may say the same to the next who asks.
  while (g_clock.Now() <= instant) {
  }
  return instant;
}

void FindOwnMemory(ScanJob& job) {
  job.own_count = OwnRanges(job.own, ScanJob::kMostOwn);
  const auto add = [&job](const void* begin, size_t bytes) {
    if (job.own_count == ScanJob::kMostOwn) return;
    const auto address = reinterpret_cast<uintptr_t>(begin);
    job.own[job.own_count++] = {address, address + bytes};
  };
  for (ThreadState* state = FirstThread(); state != nullptr; state = state->next_state) {
    add(state, sizeof(*state));
  }
  add(job.progress, arch::kPageBytes);
  dl_find_object object;
  if (_dl_find_object(&g_process, &object) == 0) {
    job.library_begin = reinterpret_cast<uintptr_t>(object.dlfo_map_start);
    job.library_end = reinterpret_cast<uintptr_t>(object.dlfo_map_end);
    job.bootstrap_begin = reinterpret_cast<uintptr_t>(g_bootstrap_arena.begin());
    job.bootstrap_end = reinterpret_cast<uintptr_t>(g_bootstrap_arena.used_end());
  }
}

void NoteFinished(uint32_t number) {
  g_process.file.NoteScanFinished(number);
}

void SetDefault(int signal) {
  const arch::KernelAction action = {};
  sys::Call(SYS_rt_sigaction, signal, reinterpret_cast<long>(&action), 0, sizeof(uint64_t));
}

// Where close_range can do so, the copy has the program's table of descriptors and then none, and at no time one of its
// own with what is in it: a lock of a file or an address that the program gives up is free then, and a pipe that
// it closes is closed.
constexpr unsigned kUnshareFiles = 2;  // CLOSE_RANGE_UNSHARE
bool CanLeaveFiles() {
#ifdef SYS_close_range
  return sys::Call(SYS_close_range, 1, 0, kUnshareFiles) == -EINVAL;  // an empty range; Linux before 5.9: ENOSYS
#else
  return false;
#endif
}

void CloseAll(bool shared) {
#ifdef SYS_close_range
  const long result = sys::Call(SYS_close_range, 0, UINT_MAX, shared ? kUnshareFiles : 0);
  if (!shared || !sys::Failed(result)) return;
  // What is opened next must not be seen in the program.
  if (!sys::Failed(sys::Call(SYS_unshare, CLONE_FILES))) return CloseAll(/*shared=*/false);
#endif
  if (!shared) return;
  for (;;) sys::Call(SYS_exit_group, 1);
}

// What the copy does, from its first instruction to its last.
[[noreturn]] void BeTheCopy(const ScanJob& job, bool hurry) {
  // A handler of the program must not run here, and a fault ends the copy alone.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGALRM}) {
    SetDefault(signal);
  }
  const uint64_t blocked = ~(uint64_t{1} << (SIGALRM - 1));
  sys::Call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&blocked), 0, sizeof(blocked));
  itimerval watchdog = {};
  watchdog.it_value.tv_sec =
      hurry ? static_cast<long>(kLongestWaitNs / 1'000'000'000) : kLongestScanSeconds;
  sys::Call(SYS_setitimer, ITIMER_REAL, reinterpret_cast<long>(&watchdog), 0);
  const uint64_t no_core[2] = {0, 0};
  sys::Call(SYS_prlimit64, 0, RLIMIT_CORE, reinterpret_cast<long>(no_core), 0);
  // The limits are for the program, not for the tables of a scan: as high as they may be.
  for (const int resource : {RLIMIT_AS, RLIMIT_DATA}) {
    uint64_t limit[2];
    if (sys::Failed(sys::Call(SYS_prlimit64, 0, resource, 0, reinterpret_cast<long>(limit)))) continue;
    limit[0] = limit[1];
    sys::Call(SYS_prlimit64, 0, resource, reinterpret_cast<long>(limit), 0);
  }
  CloseAll(job.shares_files);
  g_page->NoteLeftFiles(job.number);
  const long fd = sys::Open("/proc/self/oom_score_adj", O_WRONLY);
  if (!sys::Failed(fd)) {
    sys::Write(fd, "1000", 4);
    sys::Close(fd);
  }
  if (!hurry) {
    // Behind the program, whatever class the thread is of that made it, and on any processor.
    const int no_priority = 0;
    sys::Call(SYS_sched_setscheduler, 0, SCHED_OTHER, reinterpret_cast<long>(&no_priority));
    sys::Call(SYS_setpriority, PRIO_PROCESS, 0, 10);
    uint64_t everywhere[16];
    memset(everywhere, 0xff, sizeof(everywhere));
    sys::Call(SYS_sched_setaffinity, 0, sizeof(everywhere), reinterpret_cast<long>(everywhere));
  }
  if (ScanMemory(job)) g_page->NoteComplete(job.number);
  NoteFinished(job.number);
  job.progress->over.store(1);
  sys::Call(SYS_futex, reinterpret_cast<long>(&job.progress->over), FUTEX_WAKE, INT_MAX);
  for (;;) sys::Call(SYS_exit_group, 0);
}

bool HasPage() {
  if (g_page != nullptr) return true;
  void* const page =
      sys::Mmap(nullptr, arch::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  if (sys::MmapFailed(page)) return false;
  static_assert(sizeof(ScanPage) <= arch::kPageBytes);
  g_page = new (page) ScanPage;
  return true;
}

// The copy is gone and did not say that it was over. Who waits for the scan, here and outside, learns of it.
void TellOfDeath(const ScanProgress& progress, std::string_view why) {
  if (progress.blocks.load() == 0) {
    WriteFailedScan(progress.number, progress.reason, progress.label.view(), progress.show, g_clock.Now(), why);
  }
  NoteFinished(progress.number);
}

void TellOfDeath(const ScanProgress& progress, int status) {
  Text<128> why;
  why << "the process that scanned ";
  if (!WIFSIGNALED(status)) why << "ended";
  if (WIFSIGNALED(status)) why << "was ended by signal " << WTERMSIG(status);
  if (WTERMSIG(status) == SIGKILL) why << ", as where memory is short";
  if (WTERMSIG(status) == SIGALRM) why << ", for it took too long";
  TellOfDeath(progress, why.view());
}

// Waits until `deadline` for the copy that is at work, if it is of the scan `wanted` (0: of any), and ends it then.
void WaitForCopy(uint64_t deadline, uint32_t wanted = 0) {
  const int copy = g_scanning_copy.load(std::memory_order_acquire);
  if (copy == 0 || g_page == nullptr) return;
  ScanProgress* const progress = &g_page->now;
  const uint32_t number = progress->number.load();
  if (wanted != 0 && number != wanted) return;  // another thread saw it end, and has begun the next
  long reaped = 0;
  int status = 0;
  bool late = false;
  for (;;) {
    const bool over = late || progress->over.load() != 0;
    reaped = sys::Call(SYS_wait4, copy, reinterpret_cast<long>(&status), over ? __WALL : __WALL | WNOHANG, 0);
    if (reaped == copy || (reaped != 0 && reaped != -EINTR)) break;
    if (over) continue;
    if (progress->number.load() != number) return;
    if (NowNs(CLOCK_MONOTONIC) >= deadline) {
      sys::Call(SYS_kill, copy, SIGKILL);
      late = true;
      continue;
    }
    const timespec pause = {0, 50'000'000};
    sys::Call(SYS_futex, reinterpret_cast<long>(&progress->over), FUTEX_WAIT, 0,
              reinterpret_cast<long>(&pause));
  }
  // Before the next one may begin.
  if (reaped == copy && progress->DidNotEnd(number)) {
    late ? TellOfDeath(*progress, "it took longer than a minute") : TellOfDeath(*progress, status);
  }
  g_page->NoteLeftFiles(number);
  int expected = copy;
  g_scanning_copy.compare_exchange_strong(expected, 0);
}

struct Begun {
  ScanResult result;
  bool copy = false;
};

Begun Fail(uint32_t number, format::ScanReason reason, std::string_view label,
           format::ScanShow show, std::string_view why) {
  WriteFailedScan(number, reason, label, show, g_clock.Now(), why);
  return {{ScanResult::kFailed, number, why}, false};
}

// In a section, with g_beginning taken, signals blocked and no copy at work. `unblocked`: see AnswerScanRequest().
Begun BeginScan(ThreadState& state, uint64_t unblocked, format::ScanReason reason, std::string_view label,
                format::ScanShow show, bool wait, const ScanCaller& caller) {
  const uint32_t number = g_last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  const auto fail = [&](std::string_view why) { return Fail(number, reason, label, show, why); };
  if (const std::string_view why = WhyNever(); !why.empty()) return fail(why);
  const OtherCalls calls;
  if (!calls) {
    return fail("the program has installed a seccomp filter, which may not allow what a scan needs");
  }
  const OwnFaultsScope faults;
  auto* const memory = OwnMap(sizeof(ScanJob), /*touch=*/false);
  if (memory == nullptr || !HasPage()) {
    if (memory != nullptr) OwnUnmap(memory, sizeof(ScanJob));
    return fail("no memory");
  }
  auto& job = *new (memory) ScanJob;
  job.progress = new (&g_page->now) ScanProgress;
  job.progress->number = number;
  job.progress->reason = reason;
  job.progress->show = show;
  job.progress->label << label;
  job.number = number;
  job.reason = reason;
  job.show = show;
  job.label = label;
  job.pid = g_process.pid;
  job.tid = sys::Gettid();
  job.control_block = arch::ThreadPointer();
  job.stack_pointer = caller.stack_pointer;
  job.has_registers = caller.has_registers;
  for (int i = 0; caller.has_registers && i < arch::kRegisterCount; ++i) {
    arch::KeptRegister(caller.registers, i, &job.registers[i]);
  }
  if (caller.interrupted != nullptr) {
    job.has_registers = true;
    for (int i = 0; i < arch::kRegisterCount; ++i) {
      job.registers[i] = arch::UcontextRegister(caller.interrupted, i);
    }
    job.stack_pointer = job.registers[arch::kRsp];
    job.red_zone = arch::kRedZoneBytes;
  }
  stack_t alternate = {};
  sys::Call(SYS_sigaltstack, 0, reinterpret_cast<long>(&alternate));
  if ((alternate.ss_flags & SS_DISABLE) == 0) {
    job.alternate_begin = reinterpret_cast<uintptr_t>(alternate.ss_sp);
    job.alternate_end = job.alternate_begin + alternate.ss_size;
  }

  // Asked each time: it may have been closed since.
  const bool must_not_clone = g_process.must_not_clone.load(std::memory_order_relaxed) || HasUserfaultfd();

  Begun begun = {{ScanResult::kFailed, number, {}}, false};
  long copy = 0;
  long failed = 0;
  {
    const uint64_t stop_began = NowNs(CLOCK_MONOTONIC);
    ThreadStop stop(unblocked);
    const bool stopped = stop.Stop();
    if (stopped) {
      job.others = &stop;
      job.ticks = TakeInstant(state);
      job.monotonic_ns = g_clock.MonotonicNs();
      FindOwnMemory(job);
      const uint64_t fork_began = NowNs(CLOCK_MONOTONIC);
      const bool may_copy = g_process.file.is_shared_with_copies() && !must_not_clone;
      if (may_copy) {
        g_process.file.LetCopyAppend(true);
        // As fork, without what libc does about it; with no signal at its end, and nothing for who
        // traces this process: gdb would announce a new thread.
        // First it says so, and then looks for execs; who execs, the other way round (WaitForSharedFiles).
        g_page->shares_files.store(number);
        job.shares_files = !IsExecUnderWay() && CanLeaveFiles();
        copy = sys::Call(SYS_clone, CLONE_UNTRACED | (job.shares_files ? CLONE_FILES : 0), 0, 0, 0, 0);
        if (copy == 0) BeTheCopy(job, wait);
        if (sys::Failed(copy) || !job.shares_files) g_page->NoteLeftFiles(number);
        g_process.file.LetCopyAppend(false);
      }
      const uint64_t fork_ns = NowNs(CLOCK_MONOTONIC) - fork_began;
      job.progress->fork_ns.store(fork_ns);
      if (!may_copy || sys::Failed(copy)) {
        failed = may_copy ? copy : -EPERM;
        if (IsAtEnd(reason) && stop.AllStand()) {
          job.note = "no process could be made to scan: this one did, and its threads stood meanwhile";
          job.progress->stood_ns.store(NowNs(CLOCK_MONOTONIC) - stop_began);
          begun.result.state = ScanMemory(job) ? ScanResult::kComplete : ScanResult::kFailed;
          begun.result.why = "the scan was cut short";
          failed = 0;
        }
        copy = 0;
      }
    }
    stop.Release();
    const uint64_t stood_ns =
        NowNs(CLOCK_MONOTONIC) - (stop.began_ns() != 0 ? stop.began_ns() : stop_began);
    if (copy > 0) job.progress->stood_ns.store(stood_ns);
    if (!stopped) {
      begun = fail("the threads of the process are not known: /proc is not there");
    } else if (failed != 0 && IsAtEnd(reason)) {
      begun = fail("no process could be made to scan, and this one cannot do it: a thread of it did not stop, "
                   "and may change the memory meanwhile");
    } else if (failed != 0) {
      begun = fail(failed == -EAGAIN  ? "no process can be made to scan: too many processes"
                   : failed == -EPERM ? "no process may be made to scan: it would be the first of a namespace, "
                                        "or a userfaultfd would be told of it"
                                      : "no process can be made to scan: no memory for it");
    }
  }
  if (copy > 0) {
    begun.copy = true;
    begun.result.state = ScanResult::kUnderWay;
    g_scanning_copy.store(static_cast<int>(copy), std::memory_order_release);
  }
  OwnUnmap(memory, sizeof(ScanJob));
  return begun;
}

// Not in a vfork child, which has its parent's memory.
bool MayScan() {
  if (g_switch.recording.load(std::memory_order_relaxed) == 0) return false;
  const OtherCalls calls;
  return !calls || g_process.pid == sys::Getpid();
}

// The right to begin a scan, one thread's at a time. A handler that came meanwhile and jumped out would keep it
// for ever: so none runs until it is given back.
class Beginning {
 public:
  Beginning() : mine_(!g_beginning.exchange(true, std::memory_order_acquire)) {}
  ~Beginning() {
    if (mine_) g_beginning.store(false, std::memory_order_release);
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

  explicit operator bool() const { return mine_; }
  uint64_t unblocked() const { return ~no_handler_.before(); }

 private:
  const SignalsBlocked no_handler_;
  const bool mine_;
};

enum class Asked { kDone, kAnotherIsBegun, kCopyAtWork };

// Begins it, if that can be now.
Asked TryScan(format::ScanReason reason, std::string_view label, format::ScanShow show, bool wait,
              const ScanCaller& caller, Begun* begun) {
  const Section section(caller.stack_pointer);
  const Beginning mine;
  if (!mine) return Asked::kAnotherIsBegun;
  ReapScan();
  if (g_scanning_copy.load(std::memory_order_acquire) != 0) return Asked::kCopyAtWork;
  if (section) {
    *begun = BeginScan(section.state(), mine.unblocked(), reason, First(label, kMostLabelBytes), show, wait, caller);
  } else {
    begun->result.why = "nothing is recorded in this process";
  }
  return Asked::kDone;
}

}  // namespace

ScanResult RequestScan(format::ScanReason reason, std::string_view label, format::ScanShow show,
                       bool wait, const ScanCaller& caller) {
  if (!MayScan()) return {ScanResult::kFailed, 0, "nothing is recorded in this process"};
  constexpr int kMostPauses = 1000;
  const uint64_t deadline = NowNs(CLOCK_MONOTONIC) + kLongestWaitNs;
  Begun begun;
  for (int pauses = 0;;) {
    const Asked asked = TryScan(reason, label, show, wait, caller, &begun);
    if (asked == Asked::kDone) break;
    if (asked == Asked::kCopyAtWork) {
      if (wait && NowNs(CLOCK_MONOTONIC) < deadline) {
        WaitForCopy(deadline);
        continue;
      }
      return {ScanResult::kFailed, 0, "the scan before this one is still under way"};
    }
    // Another thread begins one: a moment. At the end it may be this thread's own, in a handler.
    if (++pauses > kMostPauses) {
      constexpr std::string_view kWhy = "another scan was being begun, and did not come to it";
      if (!IsAtEnd(reason)) return {ScanResult::kFailed, 0, kWhy};
      return Fail(g_last_number.fetch_add(1, std::memory_order_relaxed) + 1, reason, First(label, kMostLabelBytes),
                  show, kWhy).result;
    }
    const timespec pause = {0, 1'000'000};
    const OtherCalls calls;
    if (calls) sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  }
  if (begun.copy && wait) {
    WaitForCopy(deadline, begun.result.number);
    begun.result.state = g_page->IsComplete(begun.result.number) ? ScanResult::kComplete : ScanResult::kFailed;
    begun.result.why = "the scan was cut short";
  }
  return begun.result;
}

void ScanAtExit(format::ScanReason reason, const ScanCaller& caller) {
  if (!MayScan()) return;
  const LeakCheck check = g_process.config.leak_check;
  const bool early = reason == format::ScanReason::kExitEarly;
  if (early ? check.early : check.late) {
    RequestScan(reason, {}, format::ScanShow::kAny, /*wait=*/true, caller);
  } else if (!early) {
    FinishScan();
  }
}

namespace {

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

ScanCaller CallerOfExit(uintptr_t pc, uintptr_t stack_pointer, uintptr_t frame_pointer) {
  if (g_exit_call.control_block.load(std::memory_order_acquire) == arch::ThreadPointer()) {
    return g_exit_call.caller;
  }
  return {StackPointerOfExit(pc, stack_pointer, frame_pointer)};
}

bool IsScanRequested() {
  return g_process.file.status().scan_request() != g_answered.load(std::memory_order_relaxed);
}

[[gnu::noinline]] void AnswerScanRequest(ThreadState& state, uint64_t unblocked, const void* interrupted) {
  if (g_beginning.exchange(true, std::memory_order_acquire)) return;
  ReapScan();
  TraceStatus& status = g_process.file.status();
  const uint64_t asked = status.scan_request();
  if (g_scanning_copy.load(std::memory_order_acquire) == 0 && asked != g_answered.load()) {
    g_answered.store(asked);
    ScanCaller caller = {MEMTRACE_KEPT_REGISTERS_ON_STACK()};
    caller.interrupted = interrupted;
    const Begun begun =
        BeginScan(state, unblocked, format::ScanReason::kOutside, "memtrace leaks",
                  static_cast<format::ScanShow>(asked >> 32), /*wait=*/false, caller);
    g_process.file.AnswerScan((asked & 0xffffffff) | uint64_t{begun.result.number} << 32);
    if (!begun.copy) NoteFinished(begun.result.number);
  }
  g_beginning.store(false, std::memory_order_release);
}

namespace {

void OnLeakSignal(int, siginfo_t*, void* context) {
  if (g_switch.recording.load(std::memory_order_relaxed) == 0 || !IsScanRequested()) return;
  const Section section;
  const SignalsBlocked no_handler;
  if (section) AnswerScanRequest(section.state(), ~no_handler.before(), context);
}

}  // namespace

void WaitForSharedFiles() {
  constexpr int kMostPauses = 10'000;  // a second
  for (int i = 0; i < kMostPauses && g_page != nullptr && g_page->shares_files.load() != 0; ++i) {
    const OtherCalls calls;
    if (!calls || g_process.pid != sys::Getpid()) return;
    const timespec pause = {0, 100'000};
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  }
}

void FinishScan() {
  if (g_scanning_copy.load(std::memory_order_acquire) == 0) return;
  const OtherCalls calls;
  if (calls && MayScan()) WaitForCopy(NowNs(CLOCK_MONOTONIC) + kLongestWaitNs);
}

void ReapScan() {
  const int copy = g_scanning_copy.load(std::memory_order_acquire);
  if (copy == 0) return;
  const OtherCalls calls;
  if (!calls || g_process.pid != sys::Getpid()) return;
  const uint32_t number = g_page->now.number.load();
  int status = 0;
  const long reaped = sys::Call(SYS_wait4, copy, reinterpret_cast<long>(&status), __WALL | WNOHANG, 0);
  if (reaped == 0 || reaped == -EINTR) return;
  // Before the next one may begin.
  if (reaped == copy && g_page->now.DidNotEnd(number)) TellOfDeath(g_page->now, status);
  g_page->NoteLeftFiles(number);
  int expected = copy;
  g_scanning_copy.compare_exchange_strong(expected, 0);
}

void ForgetScans() {
  ForgetStop();
  g_last_number.store(0, std::memory_order_relaxed);
  g_beginning.store(false, std::memory_order_relaxed);
  g_scanning_copy.store(0, std::memory_order_relaxed);
  g_answered.store(0, std::memory_order_relaxed);
  if (g_page != nullptr) sys::Munmap(g_page, arch::kPageBytes);
  g_page = nullptr;
}

void PrepareScans() {
  FindExit();
  PrepareLeakSignal();
}

void PrepareLeakSignal() {
  const int signal = static_cast<int>(g_process.config.leak_signal);
  if (signal == 0) return;
  arch::KernelAction action = {};
  if (!AlternateStacksAreOfUse()) {
    // The program may have taken the signal for itself meanwhile.
    sys::Call(SYS_rt_sigaction, signal, 0, reinterpret_cast<long>(&action), sizeof(uint64_t));
    if (action.handler != reinterpret_cast<void*>(&OnLeakSignal)) return;
  }
  action.handler = reinterpret_cast<void*>(&OnLeakSignal);
  action.flags = SA_SIGINFO | SA_RESTART | arch::kHasRestorer;
  if (AlternateStacksAreOfUse()) action.flags |= SA_ONSTACK;
  action.restorer = &memtrace_signal_restorer;
  sys::Call(SYS_rt_sigaction, signal, reinterpret_cast<long>(&action), 0, sizeof(uint64_t));
}

}  // namespace memtrace

extern "C" [[gnu::used]] ENTERED void memtrace_before_exit(int) {
  using namespace memtrace;
  ScanCaller caller = {0, true, arch::CurrentRegisters()};
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  caller.stack_pointer = frame + arch::kObservedCallerOffset;
  caller.registers.rsp = caller.stack_pointer;
  caller.registers.rbp = *reinterpret_cast<const uintptr_t*>(frame);
  FindExit();
  g_exit_call.caller = caller;
  g_exit_call.control_block.store(arch::ThreadPointer(), std::memory_order_release);
  ScanAtExit(format::ScanReason::kExitEarly, caller);
}
