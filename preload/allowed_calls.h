// AllowedCalls: which system calls the tracer may make.
//
// All, until the program enters a seccomp sandbox through libc (preload/confinement.h).
// From then on only those by which memory is managed: mmap, munmap, mprotect, madvise. Any other
// could be the one that the program's filter kills for.
//
// Whoever wants another call holds an OtherCalls around it and does without where it says
// no. The count lets the thread that installs a filter for all threads wait until no other
// thread is inside such a call. Slow paths only: two atomic operations each.
//
// A handler that jumps out of such a call leaves it counted. Each thread knows how many are its
// own, and takes them back where it is proven that nothing of the tracer is on its stack any more
// (nested_section.h). What is counted here last and taken back first may be one too many after a
// jump, and never one too few.
//
// Async-signal-safe. No lock: the holder of an OtherCalls waits for nobody but, a tenth of a second,
// the thread that begins the trace (AwaitStart()), which does without where it gets none.

#ifndef MEMTRACE_PRELOAD_ALLOWED_CALLS_H_
#define MEMTRACE_PRELOAD_ALLOWED_CALLS_H_

#include <atomic>
#include <cstdint>

namespace memtrace {

inline constinit std::atomic<bool> g_memory_calls_only{false};
// The filter forbids MADV_POPULATE_READ, and lets rt_sigprocmask through: for ProbeWord().
inline constinit std::atomic<bool> g_probe_by_mask{false};
// The system calls are Valgrind's to make, under a tool of its that leaves the allocator alone. Of
// clone() it knows threads and forks (vfork is one), and ends the program for anything else. A
// fork is a copy of Valgrind too, which writes its results when it ends. Of wrong arguments it
// tells the user. Set before the first event, for good.
inline constinit std::atomic<bool> g_under_valgrind{false};
inline constinit std::atomic<uint32_t> g_other_calls{0};  // OtherCalls that live and said yes
// Of these, this thread's.
inline thread_local constinit uint32_t t_other_calls __attribute__((tls_model("initial-exec"))) = 0;

// Both operations are sequentially consistent, as are those of the thread that sets
// g_memory_calls_only and then reads g_other_calls: one of the two sees the other.
class OtherCalls {
 public:
  OtherCalls() {
    g_other_calls.fetch_add(1);
    allowed_ = !g_memory_calls_only.load();
    if (allowed_) {
      ++t_other_calls;
    } else {
      g_other_calls.fetch_sub(1);
    }
  }
  ~OtherCalls() {
    if (!allowed_ || t_other_calls == 0) return;  // it was taken back
    --t_other_calls;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    g_other_calls.fetch_sub(1);
  }
  // None of this thread's lives.
  static void TakeBack() {
    const uint32_t left = t_other_calls;
    t_other_calls = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    g_other_calls.fetch_sub(left);
  }
  OtherCalls(const OtherCalls&) = delete;
  OtherCalls& operator=(const OtherCalls&) = delete;

  explicit operator bool() const { return allowed_; }

 private:
  bool allowed_;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_ALLOWED_CALLS_H_
