#include "report/pressure/pressure_sampler.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "report/base/clock.h"
#include "report/pressure/pressure_records.h"

namespace memtrace::report::pressure {
namespace {

constexpr uint64_t kGrowsAfter = 600;   // intervals
constexpr uint64_t kCostlyShare = 100;  // a hundredth of the time at most
constexpr size_t kTakeAtOnce = 64;

}  // namespace

uint64_t IntervalAt(uint64_t interval_ns, uint64_t elapsed_ns) {
  // At the start as long as the program has run, from a tenth on.
  const uint64_t first = std::clamp(elapsed_ns, interval_ns / 10, interval_ns);
  return std::max({first, elapsed_ns / kGrowsAfter, uint64_t{1}});
}

PressureSampler::PressureSampler(KernelFiles files, uint32_t pid, uint64_t interval_ns,
                                 OomWatch* watch)
    : probe_(std::move(files), pid), watch_(watch), interval_ns_(interval_ns) {}

PressureSampler::~PressureSampler() {
  if (thread_.joinable()) Stop();
}

void PressureSampler::Start() {
  start_ns_ = NowNs(CLOCK_MONOTONIC);
  Sample();
  try {
    thread_ = std::thread(&PressureSampler::Loop, this);
  } catch (const std::system_error&) {
    // No more tasks for this user: the sample before is all.
  }
}

void PressureSampler::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    const uint64_t elapsed = NowNs(CLOCK_MONOTONIC) - start_ns_;
    const bool stopping =
        wake_.wait_for(lock, std::chrono::nanoseconds(IntervalAt(interval_ns_, elapsed)),
                       [this] { return stopping_; });
    lock.unlock();
    Sample();
    if (stopping) return;
    lock.lock();
  }
}

void PressureSampler::Sample() {
  const uint64_t cpu_before = NowNs(CLOCK_THREAD_CPUTIME_ID);
  PressureSample sample;
  sample.monotonic_ns = NowNs(CLOCK_MONOTONIC);
  probe_.ReadCheap(&sample);
  watch_->Follow(probe_.cgroup());
  const uint64_t begin = NowNs(CLOCK_MONOTONIC);
  if (costly_at_ns_ == 0 || begin - costly_at_ns_ >= kCostlyShare * costly_ns_) {
    probe_.ReadCostly(&sample);
    costly_at_ns_ = NowNs(CLOCK_MONOTONIC);
    costly_ns_ = costly_at_ns_ - begin;
  }
  cpu_ns_ += NowNs(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
  sample.Set(Column::kSamplerCpu, cpu_ns_ / 1000);
  const std::lock_guard<std::mutex> lock(mutex_);
  samples_.push_back(sample);
}

void PressureSampler::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::vector<uint8_t> PressureSampler::Take(bool all) {
  std::vector<PressureSample> taken;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!all && samples_.size() < kTakeAtOnce) return {};
    taken = std::exchange(samples_, {});
  }
  std::vector<uint8_t> records;
  AppendSamples(taken, &records);
  if (all) {
    for (const std::string& note : probe_.Notes()) AppendNote(note, &records);
  }
  return records;
}

}  // namespace memtrace::report::pressure
