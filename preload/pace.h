// Pace: how often a thing may be done whose price is not known before: so seldom that all of it
// together takes no more than a fiftieth of a processor, and after `most` at the latest. Its price
// is the lower one of the last two times: who was stopped meanwhile looks as if it had cost that.
// getrusage() adds up all threads of the process: 1.3 us with one, 0.7 ms with ten thousand.
//
//   if (!pace.IsDue(now)) return;
//   ... the thing ...
//   pace.Took(now, g_clock.Now(), most);     // kLongestPauseUs, in ticks
//
// Times are ticks of one clock, and may be of other threads: what is earlier than what
// another has said is not due. Threads: any; several may find it due at once. By a coarse
// clock the thing costs nothing.

#ifndef MEMTRACE_PRELOAD_PACE_H_
#define MEMTRACE_PRELOAD_PACE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace memtrace {

inline constexpr uint64_t kLongestPauseUs = 100'000;

class Pace {
 public:
  bool IsDue(uint64_t now) const {
    return static_cast<int64_t>(now - due_.load(std::memory_order_relaxed)) >= 0;
  }
  void Took(uint64_t from, uint64_t to, uint64_t most) {
    const uint64_t now_took = to - from;
    const uint64_t took = std::min(now_took, took_.exchange(now_took, std::memory_order_relaxed));
    due_.store(to + (took < most / kTimes ? kTimes * took : most), std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kTimes = 50;
  std::atomic<uint64_t> due_{0};
  std::atomic<uint64_t> took_{0};
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_PACE_H_
