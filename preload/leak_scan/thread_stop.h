// ThreadStop: all other threads of the process stand still for a moment.
//
// Each is sent a real-time signal that the program has no handler for. Our handler is there for
// the time of the stop only. It notes the registers, tells that the thread stands and waits.
//
//   kAwaited -> kParked    by the thread, in the handler
//            -> kGivenUp   by the one that stops, when the thread did not come in time:
//                          it blocks all signals, or waits in the kernel without end
//
// A call of the kernel that the signal ends is made again, or gone on with (interrupted_call.h).
//
// A thread that blocks our signal, or that waits for it by sigwait, is not sent any, nor is one
// whose stack has no room for the frame of a signal. Threads that begin meanwhile are found by
// looking at the list again until there are no new ones.
//
// Nor is any thread while one is about to exec (exec_under_way.h).
//
// A thread may stand anywhere, inside the tracer or with a lock of libc: whoever stops threads
// calls nothing until Release() but the kernel and what waits for no lock, as the tracer does.
//
// Threads: one stops at a time; the caller has signals blocked.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_THREAD_STOP_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_THREAD_STOP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/leak_scan/by_tid.h"
#include "preload/leak_scan/interrupted_call.h"
#include "preload/leak_scan/own_tasks.h"

namespace memtrace {

struct StoppedThread {
  enum State : uint32_t { kAwaited, kParked, kGivenUp };
  int tid = 0;     // 0: it has ended
  int listed = 0;  // its number in /proc: see OwnTasks
  bool may_be_sent = false;
  bool blocks_briefly = false;  // it blocks what only libc and the tracer do, inside a call
  // At each look: in a call that no signal ends now. 0: not at the last one.
  uint64_t waits_since_ns = 0;
  bool waits_for_child = false;  // one of vfork
  SeenCall call;  // when it was looked at
  std::atomic<uint32_t> state{kAwaited};
  // Set for a thread that stands:
  uint64_t registers[arch::kRegisterCount] = {};
  uint64_t blocked = 0;  // signals, as a mask
  uintptr_t control_block = 0;
  uintptr_t alternate_begin = 0;  // its alternate signal stack, 0: none
  uintptr_t alternate_end = 0;

  uintptr_t stack_pointer() const { return registers[arch::kRsp]; }
};

// To be called in a fork child: whatever was under way was the parent's.
void ForgetStop();

class ThreadStop {
 public:
  // `allowed`: the signals that the calling thread does not block, as a mask, before it
  // blocked all for this.
  explicit ThreadStop(uint64_t allowed) : allowed_(allowed) {}
  ~ThreadStop();
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;

  // False: the threads are not known, for there is no /proc, none of theirs, or no memory. Nothing
  // stands then.
  bool Stop();
  // They go on. What was noted of them stays valid as long as the object.
  void Release();
  // The process ends now, and they stand until then; if it does not, for a tenth of a second: it
  // may need a lock that one of them has.
  void LeaveStanding();

  // When the first was asked to stand, CLOCK_MONOTONIC; 0: there is no other.
  uint64_t began_ns() const { return began_ns_; }

  // What those that stand do not block, as a mask of signals.
  uint64_t Unblocked() const;
  // None goes on.
  bool AllStand() const;
  // Those that do not stand wait in a call of the kernel's, as it tells. Before Release().
  bool NoneRuns();

  // All others, those that did not stop too.
  size_t size() const { return count_; }
  const StoppedThread& operator[](size_t i) const { return threads_[i]; }

 private:
  // Adds those that were not known. False: there is no list.
  bool ListTasks();
  bool Add(int listed);
  void ChooseSignal();
  static void NoteWaiting(const SeenTask& seen, StoppedThread* thread);
  bool MaySend(StoppedThread& thread);
  void Send(size_t index);
  bool WaitForParked();
  bool TakeTable(size_t wanted);
  void TellHandlers();
  bool IsLate() const;
  void AskFirst(size_t begin, size_t end);
  void AskAgain(size_t end);
  void GiveUpWhoDoesNotCome();

  const uint64_t allowed_;
  StoppedThread* threads_ = nullptr;
  size_t capacity_ = 0;
  size_t count_ = 0;
  OwnTasks tasks_;
  TidSet known_;               // all that are or were in threads_, as they are listed
  size_t sent_ = 0;            // to threads that are or may be parked
  bool left_pending_ = false;  // one that was sent to a thread that is not waited for any more
  int signal_ = 0;
  bool installed_ = false;
  bool standing_ = false;
  uint64_t began_ns_ = 0;
  long deadline_ns_ = 0;
  int self_ = 0;
  arch::KernelAction before_ = {};
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_THREAD_STOP_H_
