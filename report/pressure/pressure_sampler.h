// PressureSampler: a thread of `memtrace run` that samples the program from outside.
//
// The interval begins at a tenth of the one asked for, reaches it within ten samples,
// and grows again when the program has run 600 of them: there are about
// 600 + 600 ln(run time / 600 intervals) samples, some 5000 of a day at 100 ms. What is costly
// to read is read when at least 100 times as long has passed as it took the last time.
//
// Start() and Stop() are of the thread that owns it; Take() is of one other.

#ifndef MEMTRACE_REPORT_PRESSURE_PRESSURE_SAMPLER_H_
#define MEMTRACE_REPORT_PRESSURE_PRESSURE_SAMPLER_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "report/pressure/kernel_files.h"
#include "report/pressure/oom_watch.h"
#include "report/pressure/pressure_probe.h"
#include "report/pressure/pressure_sample.h"

namespace memtrace::report::pressure {

inline constexpr uint64_t kDefaultIntervalNs = 100'000'000;

// The time from one sample to the next, when the program has run for `elapsed_ns`.
uint64_t IntervalAt(uint64_t interval_ns, uint64_t elapsed_ns);

class PressureSampler {
 public:
  // `watch` is told where the program is, by this thread until Stop().
  PressureSampler(KernelFiles files, uint32_t pid, uint64_t interval_ns, OomWatch* watch);
  ~PressureSampler();

  // Takes the first sample. All signals must be blocked or harmless in the thread.
  void Start();
  // The last sample, of what is left when the program has ended: group and system.
  void Stop();

  // Records of the samples that were not taken yet: when there are many; or, after Stop(), `all`
  // and the notes.
  std::vector<uint8_t> Take(bool all);

 private:
  void Loop();
  void Sample();

  PressureProbe probe_;
  OomWatch* const watch_;
  const uint64_t interval_ns_;
  uint64_t start_ns_ = 0;
  uint64_t costly_ns_ = 0, costly_at_ns_ = 0;  // of the last time: how long it took, and when
  uint64_t cpu_ns_ = 0;  // that samples have taken

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;                // under mutex_
  std::vector<PressureSample> samples_;  // under mutex_
};

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_PRESSURE_SAMPLER_H_
