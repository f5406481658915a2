#include "preload/leak_scan/thread_stop.h"

#include <linux/futex.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <string_view>

#include "preload/allowed_calls.h"
#include "preload/alternate_stacks.h"
#include "preload/clock.h"
#include "preload/leak_scan/exec_under_way.h"
#include "preload/own_memory.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/unwind/stack_bounds.h"

extern "C" void memtrace_signal_restorer();
MEMTRACE_DEFINE_RESTORER("memtrace_signal_restorer");

namespace memtrace {
namespace {

// For threads to come, and for each of those there are at first: a program may make them faster
// than they are stopped.
constexpr long kLongestWaitNs = 200'000'000;
constexpr long kLongestOfThreadNs = 200'000;
// After so long without one that came it is looked why, and again after twice as long.
constexpr long kShortestWaitNs = 500'000;
constexpr long kLongestWaitForOneNs = 20'000'000;
constexpr size_t kFew = 64;
// How often a thread that blocks our signal is looked at again. One that is
// being made, or that writes a block of the trace, does so for a moment, which on a busy machine is
// several milliseconds: while a thread blocks glibc's own two signals as well, which sigfillset()
// leaves out, it is libc or the tracer that does, and it is looked at until time is up, after
// longer and longer pauses. But one that waits by a futex meanwhile, look after look, waits for one
// that stands with a lock of libc: a thread that ends blocks signals, and then puts its stack where
// the next one that is made looks for one.
constexpr int kLooks = 5;
constexpr long kPauseNs = 100'000;
constexpr int kLongestPause = 5;  // times two
constexpr uint64_t kStuckNs = 2'000'000;
// One that has made a child by vfork waits until that execs, which takes a moment, or
// ends, which may be long.
constexpr uint64_t kLongestOfVforkNs = 20'000'000;

constexpr long kClone3 = 435;

// The signal whose action is ours now; 0: none.
constinit std::atomic<int> g_taken_signal{0};

// The state that the handlers see. A stop has a number; the handler of an earlier one, which comes
// late, finds another number and goes.
constinit std::atomic<uint32_t> g_number{0};
constinit std::atomic<StoppedThread*> g_threads{nullptr};
constinit std::atomic<size_t> g_capacity{0};
constinit std::atomic<uint32_t> g_parked{0};
// How many threads are waited for. Only the last of them wakes the thread that waits, or that
// would run once for each.
constinit std::atomic<uint32_t> g_wanted{UINT32_MAX};
constinit std::atomic<uint32_t> g_released{0};  // the number of the last stop that is over
// They stand until the process is no more: see LeaveStanding().
constinit std::atomic<bool> g_ending{false};
constexpr long kLongestAtEndNs = 100'000'000;
constexpr uint32_t kNoNumber = 1u << 31;  // in g_released: no stop has such a number
// The table, and behind it the words of a TidSet, is kept for the next stop: a late handler may
// look at it.
constinit StoppedThread* g_table = nullptr;
constinit size_t g_table_capacity = 0;

long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return sys::Call(SYS_futex, reinterpret_cast<long>(&word), operation | FUTEX_PRIVATE_FLAG,
                   value, reinterpret_cast<long>(timeout));
}

void Park(StoppedThread& self, uint32_t number, void* context) {
  for (int i = 0; i < arch::kRegisterCount; ++i)
    self.registers[i] = arch::UcontextRegister(context, i);
  self.control_block = arch::ThreadPointer();
  memcpy(&self.blocked, &static_cast<const ucontext_t*>(context)->uc_sigmask, sizeof(self.blocked));
  const stack_t& alternate = static_cast<const ucontext_t*>(context)->uc_stack;
  if ((alternate.ss_flags & SS_DISABLE) == 0) {
    self.alternate_begin = reinterpret_cast<uintptr_t>(alternate.ss_sp);
    self.alternate_end = self.alternate_begin + alternate.ss_size;
  }
  uint32_t awaited = StoppedThread::kAwaited;
  if (!self.state.compare_exchange_strong(awaited, StoppedThread::kParked)) return;
  const uint32_t parked = g_parked.fetch_add(1) + 1;
  if (parked >= g_wanted.load()) Futex(g_parked, FUTEX_WAKE, 1, nullptr);
  for (;;) {
    const uint32_t released = g_released.load(std::memory_order_acquire);
    if (released == number || g_number.load(std::memory_order_relaxed) != number) return;
    const bool ending = g_ending.load(std::memory_order_relaxed);
    const timespec longest = {0, kLongestAtEndNs};
    const long waited = Futex(g_released, FUTEX_WAIT, released, ending ? &longest : nullptr);
    if (ending && waited == -ETIMEDOUT) return;
  }
}

void OnSignal(int, siginfo_t* info, void* context) {
  if (info->si_code != SI_QUEUE) return;
  const auto cookie = reinterpret_cast<uintptr_t>(info->si_value.sival_ptr);
  const auto number = static_cast<uint32_t>(cookie >> 32);
  const size_t index = cookie & 0xffffffff;
  if (number != g_number.load(std::memory_order_acquire) ||
      index >= g_capacity.load(std::memory_order_acquire)) {
    MakeInterruptedCallAgain(context, {});
    return;
  }
  StoppedThread& self = g_threads.load(std::memory_order_acquire)[index];
  Park(self, number, context);
  MakeInterruptedCallAgain(context, self.call);
}

long SetAction(int signal, const arch::KernelAction* action, arch::KernelAction* before) {
  return sys::Call(SYS_rt_sigaction, signal, reinterpret_cast<long>(action),
                   reinterpret_cast<long>(before), sizeof(uint64_t));
}

// The kernel's siginfo_t of a queued signal.
struct QueuedInfo {
  int signo, error, code, pad;
  int pid;
  unsigned uid;
  uint64_t value;
  char rest[128 - 32];
};
static_assert(sizeof(QueuedInfo) == 128);

bool IsStuck(const StoppedThread& thread) {
  const uint64_t longest = thread.waits_for_child ? kLongestOfVforkNs : kStuckNs;
  return thread.waits_since_ns != 0 && NowNs(CLOCK_MONOTONIC) - thread.waits_since_ns > longest;
}

// The stacks of other threads than the first have an end, behind which there is nothing to be read.
// One on an alternate stack would have room there; this is not seen from outside.
bool HasRoomForSignal(uintptr_t stack_pointer) {
  if (stack_pointer == 0) return true;  // not known
  const uintptr_t lowest = stack_pointer - arch::kRedZoneBytes - SignalFrameBytes();
  for (uintptr_t at = stack_pointer & ~(arch::kPageBytes - 1); at + arch::kPageBytes > lowest;
       at -= arch::kPageBytes) {
    if (!unwind::ProbeWord(at)) return false;
  }
  return true;
}

}  // namespace

ThreadStop::~ThreadStop() { Release(); }

bool ThreadStop::Add(int listed) {
  if (count_ == capacity_) return false;
  known_.Add(listed);
  threads_[count_].~StoppedThread();
  new (&threads_[count_]) StoppedThread;
  threads_[count_].listed = listed;
  ++count_;
  return true;
}

bool ThreadStop::ListTasks() {
  const size_t before = count_;
  const bool is_listed = tasks_.ForEach([this](int listed) {
    const bool is_self = tasks_.numbers_are_ours() && listed == self_;
    if (!is_self && !known_.Has(listed)) Add(listed);
  });
  for (size_t i = before; i < count_; ++i) {
    const int tid = tasks_.OwnNumber(threads_[i].listed);
    threads_[i].tid = tid == self_ ? 0 : tid;
  }
  return is_listed;
}

// One that the program neither handles, ignores nor blocks in the calling thread: not one that it
// waits for by sigwait or by a descriptor.
void ThreadStop::ChooseSignal() {
  constexpr uint64_t kRealtime = ~uint64_t{0} << 33;
  // Who blocks all of them waits for none: such are the workers of many libraries.
  const uint64_t allowed = (allowed_ & kRealtime) == 0 ? kRealtime : allowed_;
  for (int signal = 64; signal >= 34; --signal) {
    if ((allowed >> (signal - 1) & 1) == 0) continue;
    arch::KernelAction now = {};
    if (sys::Failed(SetAction(signal, nullptr, &now)) || now.handler != nullptr) continue;
    arch::KernelAction ours = {};
    ours.handler = reinterpret_cast<void*>(&OnSignal);
    // On the alternate stack where there is one: a coroutine's own may be small.
    // But not all on one.
    ours.flags = SA_SIGINFO | SA_RESTART | arch::kHasRestorer;
    if (AlternateStacksAreOfUse()) ours.flags |= SA_ONSTACK;
    ours.restorer = &memtrace_signal_restorer;
    ours.mask = ~uint64_t{0};
    g_taken_signal.store(signal);  // first, for who is forked between
    if (sys::Failed(SetAction(signal, &ours, &before_))) {
      g_taken_signal.store(0);
      return;
    }
    signal_ = signal;
    installed_ = true;
    return;
  }
}

void ThreadStop::NoteWaiting(const SeenTask& seen, StoppedThread* thread) {
  const long call = seen.call_known ? seen.call.number : -1;
  thread->blocks_briefly = (seen.blocked & SignalsBlocked::kOfLibc) == SignalsBlocked::kOfLibc;
  thread->waits_for_child =
      seen.sleeps_deeply && (call == SYS_vfork || call == SYS_clone || call == kClone3);
  if (!thread->waits_for_child && !(thread->blocks_briefly && call == SYS_futex)) {
    thread->waits_since_ns = 0;
  } else if (thread->waits_since_ns == 0) {
    thread->waits_since_ns = NowNs(CLOCK_MONOTONIC);
  }
}

// Not a thread that blocks the signal, which would stay pending; nor one that waits for it
// by sigwait, which would take it for the program's; nor one in an exec that we were not told of.
// One that has ended is not there any more: the first thread of a program may have, and is listed
// all the same.
bool ThreadStop::MaySend(StoppedThread& thread) {
  const int tid = thread.tid;
  if (tid == 0) return false;
  const SeenTask seen = tasks_.LookAt(thread.listed);
  NoteWaiting(seen, &thread);
  const bool has_ended = seen.known ? seen.ended : sys::Tgkill(sys::Getpid(), tid, 0) == -ESRCH;
  if (has_ended || (thread.blocks_briefly && tasks_.IsOfKernel(thread.listed))) {
    thread.tid = 0;
    return false;
  }
  if (!seen.known || (seen.blocked >> (signal_ - 1) & 1) != 0) return false;
  if (!seen.call_known) return true;
  thread.call = seen.call;
  const long call = seen.call.number;
  return call != SYS_rt_sigtimedwait && call != SYS_execve && call != SYS_execveat &&
         (tid == sys::Getpid() || HasRoomForSignal(seen.call.place.stack_pointer));
}

void ThreadStop::Send(size_t index) {
  QueuedInfo info = {};
  info.signo = signal_;
  info.code = SI_QUEUE;
  info.pid = sys::Getpid();
  info.value = uint64_t{g_number.load(std::memory_order_relaxed)} << 32 | index;
  const long result = SendUnlessExec([&] {
    return sys::Call(SYS_rt_tgsigqueueinfo, info.pid, threads_[index].tid, signal_,
                     reinterpret_cast<long>(&info));
  });
  if (sys::Failed(result)) {
    threads_[index].state.store(StoppedThread::kGivenUp);
    if (result == -ESRCH) threads_[index].tid = 0;  // it has ended
  } else {
    ++sent_;
  }
}

// A thread that ended after it was sent the signal does not come, nor does one that blocked all
// meanwhile and waits for one that stands: when there are few left it is looked for these.
void ThreadStop::GiveUpWhoDoesNotCome() {
  const bool are_few = sent_ - g_parked.load() <= kFew;
  for (size_t i = 0; i < count_; ++i) {
    StoppedThread& thread = threads_[i];
    uint32_t awaited = StoppedThread::kAwaited;
    if (thread.state.load() != awaited || thread.tid == 0) continue;
    bool has_ended = sys::Tgkill(sys::Getpid(), thread.tid, 0) == -ESRCH;
    if (!has_ended) {
      if (!are_few) continue;
      // The call of this look must not go into thread.call, where the handler reads in which call
      // the thread was seen before the signal was sent.
      const SeenTask seen = tasks_.LookAt(thread.listed);
      NoteWaiting(seen, &thread);
      has_ended = seen.ended;  // the first thread stays listed
      if (!has_ended && !IsStuck(thread)) continue;
    }
    if (!thread.state.compare_exchange_strong(awaited, StoppedThread::kGivenUp)) continue;
    if (has_ended) thread.tid = 0;
    left_pending_ |= !has_ended;
    --sent_;
  }
}

bool ThreadStop::WaitForParked() {
  for (long longest = kShortestWaitNs;; longest = std::min(2 * longest, kLongestWaitForOneNs)) {
    g_wanted.store(static_cast<uint32_t>(sent_));
    const uint32_t parked = g_parked.load();
    if (parked >= sent_) return true;
    const long left = deadline_ns_ - static_cast<long>(NowNs(CLOCK_MONOTONIC));
    if (left <= 0) return false;
    const timespec pause = {0, std::min(left, longest)};
    Futex(g_parked, FUTEX_WAIT, parked, &pause);
    if (g_parked.load() == parked) GiveUpWhoDoesNotCome();
  }
}

bool ThreadStop::Stop() {
  self_ = sys::Gettid();
  if (!tasks_.Open()) return false;
  struct stat tasks;
  // The directory has as many links as there are threads, and two more.
  if (sys::Failed(sys::Call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>("/proc/self/task"),
                            reinterpret_cast<long>(&tasks), 0))) {
    return false;
  }
  standing_ = true;
  if (tasks.st_nlink == 3) return true;  // this one alone
  if (!TakeTable(tasks.st_nlink * 2 + 64)) return false;
  TellHandlers();
  ChooseSignal();
  if (!ListTasks()) return false;
  deadline_ns_ = static_cast<long>(NowNs(CLOCK_MONOTONIC)) + kLongestWaitNs +
                 static_cast<long>(count_) * kLongestOfThreadNs;
  for (size_t asked = 0; asked < count_;) {
    const size_t end = count_;
    AskFirst(asked, end);
    asked = end;
    WaitForParked();
    AskAgain(end);
    const bool late = IsLate();
    ListTasks();  // one that had begun to make a thread has made it
    if (late) break;
  }
  for (size_t i = 0; i < count_; ++i) {
    uint32_t awaited = StoppedThread::kAwaited;
    threads_[i].state.compare_exchange_strong(awaited, StoppedThread::kGivenUp);
  }
  return true;
}

// Room for so many threads. False: there is no memory.
bool ThreadStop::TakeTable(size_t wanted) {
  if (g_table_capacity < wanted) {
    const size_t words = TidSet::WordsFor(wanted);
    void* const table =
        OwnMap(wanted * sizeof(StoppedThread) + words * sizeof(int), /*touch=*/false);
    if (table == nullptr) return false;
    g_table = static_cast<StoppedThread*>(table);
    g_table_capacity = wanted;
  }
  threads_ = g_table;
  capacity_ = g_table_capacity;
  auto* const known = reinterpret_cast<int*>(threads_ + capacity_);
  const size_t words = TidSet::WordsFor(capacity_);
  memset(known, 0, words * sizeof(int));
  known_.Use(known, words);
  return true;
}

// From here on a handler finds this stop, and that it is under way.
void ThreadStop::TellHandlers() {
  g_parked.store(0);
  g_wanted.store(UINT32_MAX);
  g_threads.store(threads_, std::memory_order_release);
  g_capacity.store(capacity_, std::memory_order_release);
  g_ending.store(false);
  g_number.fetch_add(1);
  g_stop_under_way.store(true, std::memory_order_relaxed);
}

bool ThreadStop::IsLate() const {
  return static_cast<long>(NowNs(CLOCK_MONOTONIC)) >= deadline_ns_;
}

// Asks threads_[begin, end) to stop. Those that may not be sent a signal now are in state kGivenUp
// and may be asked again.
void ThreadStop::AskFirst(size_t begin, size_t end) {
  // All that has to be known of each thread is asked before the first one stands.
  for (size_t i = begin; i < end; ++i) {
    threads_[i].may_be_sent = installed_ && !IsLate() && MaySend(threads_[i]);
  }
  if (began_ns_ == 0) began_ns_ = NowNs(CLOCK_MONOTONIC);
  for (size_t i = begin; i < end; ++i) {
    if (threads_[i].may_be_sent) {
      Send(i);
    } else {
      threads_[i].state.store(StoppedThread::kGivenUp);
    }
  }
}

// Looks again at those of threads_[0, end) that were not asked, as long as one of them may come.
void ThreadStop::AskAgain(size_t end) {
  for (int look = 0; installed_; ++look) {
    bool some = false;
    for (size_t i = 0; i < end; ++i) {
      if (threads_[i].tid == 0 || threads_[i].state.load() != StoppedThread::kGivenUp) continue;
      if (IsLate()) break;
      if (MaySend(threads_[i])) {
        threads_[i].state.store(StoppedThread::kAwaited);
        Send(i);
      } else {
        some |= threads_[i].tid != 0 &&
                (look + 1 < kLooks || (threads_[i].blocks_briefly && !IsStuck(threads_[i])));
      }
    }
    if (!WaitForParked() || !some) break;
    const timespec pause = {0, kPauseNs << std::clamp(look - kLooks, 0, kLongestPause)};
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  }
}

uint64_t ThreadStop::Unblocked() const {
  uint64_t unblocked = 0;
  for (size_t i = 0; i < count_; ++i) {
    if (threads_[i].state.load() == StoppedThread::kParked) unblocked |= ~threads_[i].blocked;
  }
  return unblocked;
}

bool ThreadStop::AllStand() const {
  for (size_t i = 0; i < count_; ++i) {
    const StoppedThread& thread = threads_[i];
    if (thread.tid == 0 || thread.state.load() == StoppedThread::kParked) continue;
    if (sys::Tgkill(sys::Getpid(), thread.tid, 0) != -ESRCH) return false;  // or it has ended since
  }
  return true;
}

bool ThreadStop::NoneRuns() {
  for (size_t i = 0; i < count_; ++i) {
    const StoppedThread& thread = threads_[i];
    if (thread.tid == 0 || thread.state.load() == StoppedThread::kParked) continue;
    const SeenTask seen = tasks_.LookAt(thread.listed);
    const bool waits = seen.call_known && seen.call.number >= 0;
    if (!seen.ended && !waits && sys::Tgkill(sys::Getpid(), thread.tid, 0) != -ESRCH) return false;
  }
  return true;
}

void ThreadStop::Release() {
  if (!standing_) return;
  standing_ = false;
  g_stop_under_way.store(false, std::memory_order_relaxed);
  if (threads_ == nullptr) return;
  const bool all_came = g_parked.load() >= sent_ && !left_pending_;
  g_released.store(g_number.load(), std::memory_order_release);
  Futex(g_released, FUTEX_WAKE, INT_MAX, nullptr);
  if (!installed_) return;
  // The program may have set another meanwhile, by a thread that did not stand.
  arch::KernelAction now = {};
  SetAction(signal_, nullptr, &now);
  const bool is_ours = now.handler == reinterpret_cast<void*>(&OnSignal);
  if (!all_came) {
    // A signal that is still pending would end the process under the action that it had: to ignore
    // it for a moment takes it away.
    arch::KernelAction ignore = {};
    ignore.handler = reinterpret_cast<void*>(SIG_IGN);
    SetAction(signal_, &ignore, nullptr);
  }
  if (is_ours || !all_came) SetAction(signal_, is_ours ? &before_ : &now, nullptr);
  g_taken_signal.store(0);
  installed_ = false;
}

void ThreadStop::LeaveStanding() {
  if (!standing_) return;
  standing_ = false;
  g_stop_under_way.store(false, std::memory_order_relaxed);
  if (threads_ == nullptr) return;
  g_ending.store(true);
  g_released.fetch_xor(kNoNumber);  // for who has looked at g_ending already, and waits next
  Futex(g_released, FUTEX_WAKE, INT_MAX, nullptr);  // from now on they look at their clocks
}

void ForgetStop() {
  g_ending.store(false);
  g_stop_under_way.store(false, std::memory_order_relaxed);
  ForgetExecs();
  const int signal = g_taken_signal.exchange(0);
  if (signal == 0) return;
  const OtherCalls calls;
  if (!calls) return;
  // One that had its default action: others are not taken.
  arch::KernelAction now = {};
  const arch::KernelAction standard = {};
  if (!sys::Failed(SetAction(signal, nullptr, &now)) &&
      now.handler == reinterpret_cast<void*>(&OnSignal)) {
    SetAction(signal, &standard, nullptr);
  }
}

}  // namespace memtrace
