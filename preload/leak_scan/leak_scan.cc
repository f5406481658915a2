#include "preload/leak_scan/leak_scan.h"

#include <dlfcn.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "format/leak_signal.h"
#include "preload/allowed_calls.h"
#include "preload/alternate_stacks.h"
#include "preload/bootstrap_arena.h"
#include "preload/clock.h"
#include "preload/leak_scan/beginning.h"
#include "preload/leak_scan/call_again.h"
#include "preload/leak_scan/exit_call.h"
#include "preload/leak_scan/interrupted_call.h"
#include "preload/leak_scan/kept_from_forks.h"
#include "preload/leak_scan/scan_copy.h"
#include "preload/leak_scan/scan_job.h"
#include "preload/leak_scan/thread_stop.h"
#include "preload/leak_scan/userfault.h"
#include "preload/nested_section.h"
#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/recording_switch.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

extern "C" void memtrace_signal_restorer();

namespace memtrace {
namespace {

constexpr size_t kMostLabelBytes = 256;

constinit std::atomic<uint32_t> g_last_number{0};
// The thread that began the scan at the exit, by its thread pointer.
constinit std::atomic<uintptr_t> g_late_by{0};
// The value of StatusArea::scan_request that was answered last.
constinit std::atomic<uint64_t> g_answered{0};

// To who asked from outside: `asked` is StatusArea::scan_request.
void Answer(uint64_t asked, uint32_t number) {
  g_process.file.AnswerScan((asked & 0xffffffff) | uint64_t{number} << 32);
}

bool IsAtEnd(format::ScanReason reason) {
  return reason == format::ScanReason::kExitLate || reason == format::ScanReason::kExitEarly;
}

std::string_view WhyNever() {
  if (g_process.config.sample_bytes != 0) {
    return "only a sample of the allocations is recorded (MEMTRACE_SAMPLE_BYTES)";
  }
  if (g_process.file.keeps_newest()) {
    return "the trace keeps no more than the newest events (MEMTRACE_KEEP=newest), so what is live "
           "is not known";
  }
  // No copy can be made for it (allowed_calls.h). Here it would be in Valgrind's profile of the
  // program, and take what is left in Valgrind's own memory for pointers.
  if (g_under_valgrind.load(std::memory_order_relaxed)) {
    return "the program runs under Valgrind, whose own memory lies among the program's (run it "
           "without)";
  }
  return {};
}

// From the next event of any thread on, its time is later than this.
uint64_t TakeInstant(ThreadState& state) {
  BeginEpoch();
  state.events_to_stamp = 1;
  const uint64_t instant = g_clock.OrderedNow();
  // A coarse clock may say the same to the next who asks, until its next tick: which comes in 10
  // ms; but the process may have gone to a time namespace whose clock is days behind (setns()).
  constexpr int kMostReads = 1000, kMostPauses = 200;
  const timespec pause = {0, 100'000};
  for (int i = 0; g_clock.Now() <= instant && i < kMostReads + kMostPauses; ++i) {
    if (i >= kMostReads) sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
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

constexpr std::string_view kNotLent =
    "memory that the program keeps from its fork children (MADV_DONTFORK) was not looked through: "
    "what only that points to counts as lost";

// What is lent must be the same memory when it is given back. A process that ends has no use for
// it.
bool MayLend(format::ScanReason reason, ThreadStop& stop) {
  return IsAtEnd(reason) || stop.NoneRuns();
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

// The registers and the alternate stack of the thread that asks.
void NoteCaller(const ScanCaller& caller, ScanJob* job) {
  job->stack_pointer = caller.stack_pointer;
  job->has_registers = caller.has_registers;
  for (int i = 0; caller.has_registers && i < arch::kRegisterCount; ++i) {
    arch::KeptRegister(caller.registers, i, &job->registers[i]);
  }
  if (caller.interrupted != nullptr) {
    job->has_registers = true;
    for (int i = 0; i < arch::kRegisterCount; ++i) {
      job->registers[i] = arch::UcontextRegister(caller.interrupted, i);
    }
    job->stack_pointer = job->registers[arch::kRsp];
    job->red_zone = arch::kRedZoneBytes;
  }
  stack_t alternate = {};
  sys::Call(SYS_sigaltstack, 0, reinterpret_cast<long>(&alternate));
  if ((alternate.ss_flags & SS_DISABLE) == 0) {
    job->alternate_begin = reinterpret_cast<uintptr_t>(alternate.ss_sp);
    job->alternate_end = job->alternate_begin + alternate.ss_size;
  }
}

// All that is known before the threads stand, in memory of its own. Null: there is none.
ScanJob* NewJob(uint32_t number, format::ScanReason reason, std::string_view label,
                format::ScanShow show, const ScanCaller& caller) {
  auto* const memory = OwnMap(sizeof(ScanJob), /*touch=*/false);
  if (memory == nullptr || !HasScanPage()) {
    if (memory != nullptr) OwnUnmap(memory, sizeof(ScanJob));
    return nullptr;
  }
  auto* const job = new (memory) ScanJob;
  job->progress = new (&TheScanPage()->now) ScanProgress;
  job->progress->number = number;
  job->progress->reason = reason;
  job->progress->show = show;
  job->progress->label << label;
  job->number = number;
  job->reason = reason;
  job->show = show;
  job->label = label;
  job->pid = g_process.pid;
  job->tid = sys::Gettid();
  job->control_block = arch::ThreadPointer();
  NoteCaller(caller, job);
  return job;
}

// What came of a scan while the threads stood.
struct Attempt {
  long copy = 0;    // the process that scans from now on; 0: none does
  long failed = 0;  // -errno of making it, where nothing scanned instead
  ScanResult::State state = ScanResult::kFailed;
  std::string_view why;
};

// Makes a copy of the process, which scans. Where that cannot be, the process scans itself if it
// ends and none of its threads goes on. `stop_began`: CLOCK_MONOTONIC.
Attempt ScanWhileTheyStand(ScanJob& job, ThreadStop& stop, bool must_not_clone, bool wait,
                           uint64_t stop_began) {
  const bool may_copy = g_process.file.is_shared_with_copies() && !must_not_clone;
  KeptFromForks kept;
  if (may_copy && g_keeps_from_forks.load(std::memory_order_relaxed) &&
      (!MayLend(job.reason, stop) || !kept.Lend(job))) {
    job.note = kNotLent;
  }
  const uint64_t fork_began = NowNs(CLOCK_MONOTONIC);
  long copy = may_copy ? MakeScanCopy(&job, /*hurry=*/wait) : -EPERM;
  if (sys::Failed(copy) && kept.size() != 0) {  // with what is lent it may have been too large
    kept.GiveBack();
    job.note = kNotLent;
    copy = MakeScanCopy(&job, /*hurry=*/wait);
  }
  job.progress->fork_ns.store(NowNs(CLOCK_MONOTONIC) - fork_began);
  if (!sys::Failed(copy)) return {.copy = copy};
  if (!IsAtEnd(job.reason) || !stop.AllStand()) return {.failed = copy};
  job.note = "no process could be made to scan: this one did, and its threads stood meanwhile";
  job.progress->stood_ns.store(NowNs(CLOCK_MONOTONIC) - stop_began);
  const bool complete = ScanMemory(job);
  return {.state = complete ? ScanResult::kComplete : ScanResult::kFailed,
          .why = "the scan was cut short"};
}

// Of Attempt::failed; empty: it is 0.
std::string_view WhyNothingScanned(long failed, format::ScanReason reason) {
  if (failed == 0) return {};
  if (failed == -EINVAL) {  // never Linux's word for it
    return "no process can be made to scan: this kind of clone() is not known here, as under "
           "qemu-x86_64 (run it without that)";
  }
  if (IsAtEnd(reason)) {
    return "no process could be made to scan, and this one cannot do it: a thread of it did not "
           "stop, and may change the memory meanwhile";
  }
  if (failed == -EAGAIN) return "no process can be made to scan: too many processes";
  if (failed == -EPERM) {
    return "no process may be made to scan: it would be the first of a namespace, or a "
           "userfaultfd would be told of it";
  }
  return "no process can be made to scan: no memory for it";
}

// After ThreadStop::Stop() has failed.
std::string_view WhyThreadsUnknown() {
  switch (WhoseNumbersInProc()) {
    case ProcNumbers::kOfOtherNamespace:
      return "the threads of the process are not known: /proc is another pid namespace's";
    case ProcNumbers::kNotThere:
      return "the threads of the process are not known: /proc is not there";
    case ProcNumbers::kOurs:
    case ProcNumbers::kOfOuterNamespace:
      break;
  }
  return "the threads of the process are not known: no memory for them, or /proc/self/task cannot "
         "be read";
}

// In a section, with g_beginning taken, signals blocked and no copy at work. `unblocked`:
// see AnswerScanRequest().
Begun BeginScan(ThreadState& state, uint64_t unblocked, format::ScanReason reason,
                std::string_view label, format::ScanShow show, bool wait,
                const ScanCaller& caller) {
  const uint32_t number = g_last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  const auto fail = [&](std::string_view why) { return Fail(number, reason, label, show, why); };
  if (const std::string_view why = WhyNever(); !why.empty()) return fail(why);
  const OtherCalls calls;
  if (!calls) {
    return fail(
        "the program has installed a seccomp filter, which may not allow what a scan needs");
  }
  const OwnFaultsScope faults;
  ScanJob* const job = NewJob(number, reason, label, show, caller);
  if (job == nullptr) return fail("no memory");
  // Asked each time: it may have been closed since.
  const bool must_not_clone =
      g_process.must_not_clone.load(std::memory_order_relaxed) || HasUserfaultfd();
  Begun begun = {{ScanResult::kFailed, number, {}}, false};
  Attempt attempt;
  {
    const uint64_t stop_began = NowNs(CLOCK_MONOTONIC);
    ThreadStop own(unblocked);
    ThreadStop& stop = caller.stop != nullptr ? caller.stop->threads() : own;
    const bool stopped = stop.Stop();
    if (stopped) {
      job->others = &stop;
      job->ticks = TakeInstant(state);
      job->monotonic_ns = g_clock.MonotonicNs();
      FindOwnMemory(*job);
      attempt = ScanWhileTheyStand(*job, stop, must_not_clone, wait, stop_began);
    }
    if (caller.stop == nullptr) stop.Release();
    const uint64_t stood_ns =
        NowNs(CLOCK_MONOTONIC) - (stop.began_ns() != 0 ? stop.began_ns() : stop_began);
    if (attempt.copy > 0) job->progress->stood_ns.store(stood_ns);
    begun.result.state = attempt.state;
    begun.result.why = attempt.why;
    const std::string_view why =
        stopped ? WhyNothingScanned(attempt.failed, reason) : WhyThreadsUnknown();
    if (!why.empty()) begun = fail(why);
  }
  if (attempt.copy > 0) {
    begun.copy = true;
    begun.result.state = ScanResult::kUnderWay;
    g_scanning_copy.store(static_cast<int>(attempt.copy), std::memory_order_release);
  }
  OwnUnmap(job, sizeof(ScanJob));
  return begun;
}

// Not in a vfork child, which has its parent's memory.
bool MayScan() {
  if (g_switch.recording.load(std::memory_order_relaxed) == 0) return false;
  const OtherCalls calls;
  return !calls || !IsVforkChild();
}

enum class Asked { kDone, kAnotherIsBegun, kCopyAtWork };

// Begins it, if that can be now.
Asked TryScan(format::ScanReason reason, std::string_view label, format::ScanShow show, bool wait,
              const ScanCaller& caller, Begun* begun) {
  const Section section(caller.stack_pointer);
  if (caller.stop != nullptr) caller.stop->BlockSignals();
  Beginning mine;
  if (!mine) return Asked::kAnotherIsBegun;
  ReapScan();
  if (g_scanning_copy.load(std::memory_order_acquire) != 0) return Asked::kCopyAtWork;
  if (section) {
    *begun = BeginScan(section.state(), mine.unblocked(), reason, First(label, kMostLabelBytes),
                       show, wait, caller);
    if (caller.stop != nullptr && caller.stop->has_threads()) mine.HandOver();
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
  const uint64_t deadline = NowNs(CLOCK_MONOTONIC) + kLongestScanWaitNs;
  Begun begun;
  for (int pauses = 0;;) {
    const Asked asked = TryScan(reason, label, show, wait, caller, &begun);
    if (asked == Asked::kDone) break;
    if (caller.stop != nullptr) caller.stop->Release();
    if (asked == Asked::kCopyAtWork) {
      if (wait && NowNs(CLOCK_MONOTONIC) < deadline) {
        WaitForScanCopy(deadline);
        continue;
      }
      return {ScanResult::kFailed, 0, "the scan before this one is still under way"};
    }
    // Another thread begins one: a moment. At the end it may be this thread's own, in a handler.
    if (++pauses > kMostPauses) {
      constexpr std::string_view kWhy = "another scan was being begun, and did not come to it";
      if (!IsAtEnd(reason)) return {ScanResult::kFailed, 0, kWhy};
      return Fail(g_last_number.fetch_add(1, std::memory_order_relaxed) + 1, reason,
                  First(label, kMostLabelBytes), show, kWhy)
          .result;
    }
    const timespec pause = {0, 1'000'000};
    const OtherCalls calls;
    if (calls) sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  }
  if (begun.copy && wait) {
    if (caller.stop != nullptr) caller.stop->AwaitScanCopy();
    WaitForScanCopy(deadline, begun.result.number);
    begun.result.state = TheScanPage()->IsComplete(begun.result.number) ? ScanResult::kComplete
                                                                        : ScanResult::kFailed;
    begun.result.why = "the scan was cut short";
  }
  return begun.result;
}

// A handler that leaves during the scan at the exit: most are over by then, and nobody is held.
static void WaitShortly() {
  constexpr uint64_t kLongestNs = 200'000'000;
  const OtherCalls calls;
  if (!calls) return;
  const uint64_t deadline = NowNs(CLOCK_MONOTONIC) + kLongestNs;
  while (!IsScanCopyDone()) {
    if (NowNs(CLOCK_MONOTONIC) >= deadline) return;
    PauseForScanCopy(1'000'000);
  }
  FinishScan();
}

// Which another thread began, or who asked from outside: signals come meanwhile.
static void FinishScanOfOthers(ExitStop* stop) {
  if (g_scanning_copy.load(std::memory_order_acquire) == 0) return;
  if (stop != nullptr) stop->Release();
  FinishScan();
}

void ScanAtExit(format::ScanReason reason, const ScanCaller& caller, ExitStop* stop,
                bool final) {
  if (!MayScan()) return;
  const LeakCheck check = g_process.config.leak_check;
  const bool early = reason == format::ScanReason::kExitEarly;
  if (!early && check.late && final) {
    uintptr_t before = 0;
    const uintptr_t self = arch::ThreadPointer();  // in a sandbox one may not ask for the id
    if (!g_late_by.compare_exchange_strong(before, self)) {
      before == self ? WaitShortly() : FinishScanOfOthers(stop);
      return;
    }
  }
  if (early ? check.early : check.late) {
    ScanCaller who = caller;
    who.stop = stop;
    const ScanResult scan = RequestScan(reason, {}, format::ScanShow::kAny, /*wait=*/true, who);
    uint64_t answered = g_answered.load();
    const uint64_t asked = g_process.file.status().scan_request();
    if (scan.number == 0 || asked == answered ||
        !g_answered.compare_exchange_strong(answered, asked))
      return;
    // Who asked from outside is told of this one: of one more nobody would wait for the end.
    Answer(asked, scan.number);
    g_process.file.NoteScanFinished(scan.number);
  } else if (!early) {
    FinishScanOfOthers(stop);
  }
}

bool IsScanRequested() {
  return g_process.file.status().scan_request() != g_answered.load(std::memory_order_relaxed);
}

[[gnu::noinline]] void AnswerScanRequest(ThreadState& state, uint64_t unblocked,
                                         const void* interrupted) {
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
    Answer(asked, begun.result.number);
    if (!begun.copy) g_process.file.NoteScanFinished(begun.result.number);
  }
  g_beginning.store(false, std::memory_order_release);
}

namespace {

// In which call the thread was seen by who sent it the signal.
SeenCall CallSeenBySender(const siginfo_t* info, const void* context) {
  if (info->si_code != SI_QUEUE) return {};
  const auto value = reinterpret_cast<uintptr_t>(info->si_value.sival_ptr);
  const format::CallPlace place = PlaceOfCall(context, arch::UcontextPc(context));
  const long call = format::LeakSignalCall(value, place);
  return call < 0 ? SeenCall{} : SeenCall{call, place};
}

// All signals are blocked, from the handler's first instruction on: one of the program's that came
// before the call is made again would have ended the call, and be over.
void OnLeakSignal(int, siginfo_t* info, void* context) {
  if (g_switch.recording.load(std::memory_order_relaxed) != 0 && IsScanRequested()) {
    uint64_t blocked = 0;  // in a CallAgain() all that may be: no signal is known to be free then
    memcpy(&blocked, MaskOf(context), sizeof(blocked));
    const Section section;
    if (section) AnswerScanRequest(section.state(), ~blocked, context);
  }
  // Not in the section: handlers of the program that come while it waits are recorded as ever.
  if (MayCall()) MakeInterruptedCallAgain(context, CallSeenBySender(info, context));
}

}  // namespace

void FinishScan() {
  if (g_scanning_copy.load(std::memory_order_acquire) == 0) return;
  const OtherCalls calls;
  if (calls && MayScan()) WaitForScanCopy(NowNs(CLOCK_MONOTONIC) + kLongestScanWaitNs);
}

void ForgetScans() {
  ForgetStop();
  g_late_by.store(0, std::memory_order_relaxed);
  g_last_number.store(0, std::memory_order_relaxed);
  g_beginning.store(false, std::memory_order_relaxed);
  g_answered.store(0, std::memory_order_relaxed);
  ForgetScanCopy();
}

void PrepareScans() {
  FindExit();
  PrepareLeakSignal();
}

uint64_t OwnLeakSignal() {
  const int signal = static_cast<int>(g_process.config.leak_signal);
  if (signal == 0) return 0;
  // The program may have taken the signal for itself meanwhile.
  arch::KernelAction action = {};
  sys::Call(SYS_rt_sigaction, signal, 0, reinterpret_cast<long>(&action), sizeof(uint64_t));
  if (action.handler != reinterpret_cast<void*>(&OnLeakSignal)) return 0;
  return uint64_t{1} << (signal - 1);
}

void PrepareLeakSignal() {
  const int signal = static_cast<int>(g_process.config.leak_signal);
  if (signal == 0) return;
  if (!AlternateStacksAreOfUse() && OwnLeakSignal() == 0) return;
  arch::KernelAction action = {};
  action.handler = reinterpret_cast<void*>(&OnLeakSignal);
  action.flags = SA_SIGINFO | SA_RESTART | arch::kHasRestorer;
  if (AlternateStacksAreOfUse()) action.flags |= SA_ONSTACK;
  action.restorer = &memtrace_signal_restorer;
  action.mask = SignalsBlocked::AllButRaised();
  sys::Call(SYS_rt_sigaction, signal, reinterpret_cast<long>(&action), 0, sizeof(uint64_t));
}

}  // namespace memtrace
