// ScanCopy: the copy of the process that looks through its memory while the process goes on.
//
//   HasScanPage(), MakeScanCopy() while the threads stand; then it is at work, and is the one that
//   g_scanning_copy names, until somebody sees that it has ended: WaitForScanCopy(), ReapScan().
//
// It has no exit signal: the program's wait() and SIGCHLD know nothing of it. It is reaped where
// the tracer looks at clocks anyway. What it says of itself is on a page that it shares with the
// process; of one that dies before it is done the process writes that the scan failed.
//
// Threads: any; one copy at a time.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_COPY_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_COPY_H_

#include <atomic>
#include <cstdint>

#include "preload/leak_scan/scan_job.h"

namespace memtrace {

// A copy is waited for no longer than this.
inline constexpr uint64_t kLongestScanWaitNs = 60'000'000'000;

// The copy that is at work; 0: none.
inline constinit std::atomic<int> g_scanning_copy{0};

// The page that the process shares with g_scanning_copy. It is one page for the life of the
// process: a thread that waits for a copy may find that another one has reaped it. A thread that
// execs or exits reads it while another one makes the first.
inline constinit std::atomic<ScanPage*> g_scan_page{nullptr};
// Null: there was no scan yet. In one order with who execs, see MakeScanCopy().
inline ScanPage* TheScanPage() { return g_scan_page.load(); }
// False: no memory for it.
bool HasScanPage();

// Makes the copy and returns its pid, or the error of clone. `hurry`: somebody waits for it. The
// caller has to put the pid into g_scanning_copy.
long MakeScanCopy(ScanJob* job, bool hurry);

// Whether the copy that is at work has done, or there is none. Leaves it to WaitForScanCopy(), and
// calls nothing but the kernel: other threads may stand.
bool IsScanCopyDone();
// Waits until it has, for so long at most; or returns at once, for no reason.
void PauseForScanCopy(long ns);

// Waits until `deadline` for the copy that is at work, if it is of the scan `wanted` (0: of
// any), and ends it then.
void WaitForScanCopy(uint64_t deadline, uint32_t wanted = 0);

// Does not wait.
void ReapScan();

// To be called with an ExecUnderWay: waits until no copy has the table of descriptors that the
// program would leave behind with its locks of files (fcntl), which are those of the table.
void WaitForSharedFiles();

// To be called in a fork child: its parent's copy is not its own.
void ForgetScanCopy();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_COPY_H_
