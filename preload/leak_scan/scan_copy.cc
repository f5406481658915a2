#include "preload/leak_scan/scan_copy.h"

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
#include <string_view>

#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/leak_scan/exec_under_way.h"
#include "preload/process.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

// A copy that nobody waits for may take longer.
constexpr long kLongestScanSeconds = 600;

void SetDefault(int signal) {
  const arch::KernelAction action = {};
  sys::Call(SYS_rt_sigaction, signal, reinterpret_cast<long>(&action), 0, sizeof(uint64_t));
}

// Where close_range can do so, the copy has the program's table of descriptors and then none, and
// at no time one of its own with what is in it: a lock of a file or an address that the program
// gives up is free then, and a pipe that it closes is closed.
constexpr unsigned kUnshareFiles = 2;  // CLOSE_RANGE_UNSHARE
bool CanLeaveFiles() {
#ifdef SYS_close_range
  // An empty range; Linux before 5.9: ENOSYS.
  return sys::Call(SYS_close_range, 1, 0, kUnshareFiles) == -EINVAL;
#else
  return false;
#endif
}

void CloseAll(bool shared) {
#ifdef SYS_close_range
  const long result = sys::Call(SYS_close_range, 0, UINT_MAX, shared ? kUnshareFiles : 0);
  if (!shared || !sys::Failed(result)) return;
  // Descriptors that are opened from here on must not be seen in the program.
  if (!sys::Failed(sys::Call(SYS_unshare, CLONE_FILES))) return CloseAll(/*shared=*/false);
#endif
  if (!shared) return;
  for (;;) sys::Call(SYS_exit_group, 1);
}

// Both clocks, as the process has them.
struct ClockPair {
  uint64_t ticks = g_clock.Now(), ns = g_clock.MonotonicNs();
};

// The copy runs this from its first instruction to its last.
[[noreturn]] void BeTheCopy(const ScanJob& job, bool hurry, const ClockPair& began) {
  // It may be in another time namespace than its parent, whose trace it is.
  g_clock.StandStill(began.ticks, began.ns);
  // A handler of the program must not run here, and a fault ends the copy alone.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGALRM}) {
    SetDefault(signal);
  }
  const uint64_t blocked = ~(uint64_t{1} << (SIGALRM - 1));
  sys::Call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&blocked), 0, sizeof(blocked));
  itimerval watchdog = {};
  watchdog.it_value.tv_sec =
      hurry ? static_cast<long>(kLongestScanWaitNs / 1'000'000'000) : kLongestScanSeconds;
  sys::Call(SYS_setitimer, ITIMER_REAL, reinterpret_cast<long>(&watchdog), 0);
  const uint64_t no_core[2] = {0, 0};
  sys::Call(SYS_prlimit64, 0, RLIMIT_CORE, reinterpret_cast<long>(no_core), 0);
  // The limits are for the program, not for the tables of a scan: as high as they may be.
  for (const int resource : {RLIMIT_AS, RLIMIT_DATA}) {
    uint64_t limit[2];
    if (sys::Failed(sys::Call(SYS_prlimit64, 0, resource, 0, reinterpret_cast<long>(limit))))
      continue;
    limit[0] = limit[1];
    sys::Call(SYS_prlimit64, 0, resource, reinterpret_cast<long>(limit), 0);
  }
  CloseAll(job.shares_files);
  TheScanPage()->NoteLeftFiles(job.number);
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
  if (ScanMemory(job)) TheScanPage()->NoteComplete(job.number);
  g_process.file.NoteScanFinished(job.number);
  job.progress->over.store(1);
  sys::Call(SYS_futex, reinterpret_cast<long>(&job.progress->over), FUTEX_WAKE, INT_MAX);
  for (;;) sys::Call(SYS_exit_group, 0);
}

constexpr std::string_view kTookMoreThanAMinute = "it took longer than a minute";
static_assert(kLongestScanWaitNs == 60'000'000'000 && kLongestScanSeconds == 600);

// The copy is gone and did not say that it was over. Who waits for the scan, here and
// outside, learns of it.
void TellOfDeath(const ScanProgress& progress, std::string_view why) {
  if (progress.blocks.load() == 0) {
    WriteFailedScan(progress.number, progress.reason, progress.label.view(), progress.show,
                    g_clock.Now(), why);
  }
  g_process.file.NoteScanFinished(progress.number);
}

void TellOfDeath(const ScanProgress& progress, int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {  // its own
    return TellOfDeath(progress,
                       progress.hurry ? kTookMoreThanAMinute : "it took longer than 10 minutes");
  }
  Text<128> why;
  why << "the process that scanned ";
  if (!WIFSIGNALED(status)) why << "ended";
  if (WIFSIGNALED(status)) why << "was ended by signal " << WTERMSIG(status);
  if (WTERMSIG(status) == SIGKILL) why << ", as where memory is short";
  TellOfDeath(progress, why.view());
}

// The copy of the scan `number` is gone. `status`: how it ended, if that is news here. Then
// the next one may begin.
void IsOver(int copy, uint32_t number, const int* status) {
  ScanPage* const page = TheScanPage();
  if (status != nullptr && page->now.DidNotEnd(number)) TellOfDeath(page->now, *status);
  page->NoteLeftFiles(number);
  g_scanning_copy.compare_exchange_strong(copy, 0);
}

}  // namespace

bool HasScanPage() {
  if (TheScanPage() != nullptr) return true;
  void* const page =
      sys::Mmap(nullptr, arch::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  if (sys::MmapFailed(page)) return false;
  static_assert(sizeof(ScanPage) <= arch::kPageBytes);
  g_scan_page.store(new (page) ScanPage);  // with TheScanPage()
  return true;
}

long MakeScanCopy(ScanJob* job, bool hurry) {
  ScanPage* const page = TheScanPage();
  g_process.file.LetCopyAppend(true);
  page->now.hurry = hurry;
  // First it says so, and then looks for execs; who execs, the other way round
  // (WaitForSharedFiles).
  page->shares_files.store(job->number);
  job->shares_files = !IsExecUnderWay() && CanLeaveFiles();
  const ClockPair began;
  // This is a fork without what libc does about it; with no signal at its end, and nothing for who
  // traces this process: gdb would announce a new thread.
  const long copy =
      sys::Call(SYS_clone, CLONE_UNTRACED | (job->shares_files ? CLONE_FILES : 0), 0, 0, 0, 0);
  if (copy == 0) BeTheCopy(*job, hurry, began);
  if (sys::Failed(copy) || !job->shares_files) page->NoteLeftFiles(job->number);
  g_process.file.LetCopyAppend(false);
  return copy;
}

bool IsScanCopyDone() {
  const int copy = g_scanning_copy.load(std::memory_order_acquire);
  ScanPage* const page = TheScanPage();
  if (copy == 0 || page == nullptr || page->now.over.load() != 0) return true;
  siginfo_t ended = {};
  return sys::Failed(sys::Call(SYS_waitid, P_PID, copy, reinterpret_cast<long>(&ended),
                               WEXITED | WNOHANG | WNOWAIT | __WALL, 0)) ||
         ended.si_pid != 0;
}

void PauseForScanCopy(long ns) {
  ScanPage* const page = TheScanPage();
  if (page == nullptr) return;
  const timespec pause = {0, ns};
  sys::Call(SYS_futex, reinterpret_cast<long>(&page->now.over), FUTEX_WAIT, 0,
            reinterpret_cast<long>(&pause));
}

void WaitForScanCopy(uint64_t deadline, uint32_t wanted) {
  const int copy = g_scanning_copy.load(std::memory_order_acquire);
  ScanPage* const page = TheScanPage();
  if (copy == 0 || page == nullptr) return;
  ScanProgress* const progress = &page->now;
  const uint32_t number = progress->number.load();
  if (wanted != 0 && number != wanted) return;  // another thread saw it end, and has begun the next
  long reaped = 0;
  int status = 0;
  bool late = false;
  for (;;) {
    const bool over = late || progress->over.load() != 0;
    reaped = sys::Call(SYS_wait4, copy, reinterpret_cast<long>(&status),
                       over ? __WALL : __WALL | WNOHANG, 0);
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
  if (reaped == copy && late && progress->DidNotEnd(number))
    TellOfDeath(*progress, kTookMoreThanAMinute);
  IsOver(copy, number, reaped == copy && !late ? &status : nullptr);
}

void ReapScan() {
  const int copy = g_scanning_copy.load(std::memory_order_acquire);
  if (copy == 0) return;
  const OtherCalls calls;
  if (!calls || IsVforkChild()) return;
  const uint32_t number = TheScanPage()->now.number.load();
  int status = 0;
  const long reaped =
      sys::Call(SYS_wait4, copy, reinterpret_cast<long>(&status), __WALL | WNOHANG, 0);
  if (reaped == 0 || reaped == -EINTR) return;
  IsOver(copy, number, reaped == copy ? &status : nullptr);
}

void WaitForSharedFiles() {
  constexpr int kMostPauses = 10'000;  // a second
  ScanPage* const page = TheScanPage();
  for (int i = 0; i < kMostPauses && page != nullptr && page->shares_files.load() != 0; ++i) {
    const OtherCalls calls;
    if (!calls || IsVforkChild()) return;
    const timespec pause = {0, 100'000};
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  }
}

void ForgetScanCopy() {
  g_scanning_copy.store(0, std::memory_order_relaxed);
  ScanPage* const page = g_scan_page.exchange(nullptr, std::memory_order_relaxed);
  if (page != nullptr) sys::Munmap(page, arch::kPageBytes);
}

}  // namespace memtrace
