#include "report/trace/read_ahead.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace memtrace::report {
namespace {

// Signals are for the thread that runs the command: a worker inherits that all are blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

unsigned DefaultJobs() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
  }
  return std::max(std::thread::hardware_concurrency(), 1u);
}

ReadAhead::ReadAhead(const TraceReader* reader, unsigned workers) : reader_(reader) {
  const std::vector<ThreadStream>& streams = reader->streams();
  size_t blocks = 0;
  for (const ThreadStream& stream : streams) blocks += stream.blocks.size();
  if (workers == 0 || blocks < 2) return;
  jobs_.reserve(blocks);
  for (size_t s = 0; s < streams.size(); ++s) {
    uint64_t wanted = streams[s].first_ticks;
    for (size_t b = 0; b < streams[s].blocks.size(); ++b) {
      Job job;
      job.wanted_ticks = wanted;
      job.stream = static_cast<uint32_t>(s);
      job.block = static_cast<uint32_t>(b);
      jobs_.push_back(std::move(job));
      wanted = std::max(wanted, streams[s].blocks[b].clock_ticks);
    }
  }
  std::sort(jobs_.begin(), jobs_.end(), [](const Job& a, const Job& b) {
    if (a.wanted_ticks != b.wanted_ticks) return a.wanted_ticks < b.wanted_ticks;
    return a.stream != b.stream ? a.stream < b.stream : a.block < b.block;
  });
  job_of_.resize(streams.size());
  for (size_t s = 0; s < streams.size(); ++s) job_of_[s].resize(streams[s].blocks.size());
  for (size_t i = 0; i < jobs_.size(); ++i) {
    job_of_[jobs_[i].stream][jobs_[i].block] = static_cast<uint32_t>(i);
  }
  wanted_workers_ = static_cast<unsigned>(std::min<size_t>(workers, blocks - 1));
}

void ReadAhead::Skip(const std::vector<size_t>& first) {
  for (Job& job : jobs_) {
    if (job.block < first[job.stream]) job.state = State::kTaken;
  }
}

// With the first block that is wanted.
void ReadAhead::StartWorkers() {
  const SignalsBlocked blocked;
  for (; wanted_workers_ > 0; --wanted_workers_) {
    try {
      workers_.emplace_back(&ReadAhead::Work, this);
    } catch (const std::system_error&) {
      wanted_workers_ = 0;  // no more threads to be had: the consumer does what they would
      break;
    }
  }
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ReadAhead::Read(const Job& job, BlockPayload* payload, EventBlock* block) const {
  ReadEventBlock(*reader_, reader_->streams()[job.stream], RefOf(job), payload, block);
}

void ReadAhead::Work() {
  BlockPayload payload;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (next_ < jobs_.size() && (jobs_[next_].state != State::kWanted ||
                                    RefOf(jobs_[next_]).content_bytes > kLargestAhead)) {
      ++next_;
    }
    if (stop_ || next_ == jobs_.size()) return;
    Job& job = jobs_[next_];
    const size_t bytes = RefOf(job).content_bytes;
    if (ahead_bytes_ != 0 && ahead_bytes_ + bytes > kAheadBytes) {
      work_.wait(lock);
      continue;
    }
    job.state = State::kBegun;
    ahead_bytes_ += bytes;
    std::unique_ptr<EventBlock> block;
    if (!spare_.empty()) {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (block == nullptr) block = std::make_unique<EventBlock>();
      Read(job, &payload, block.get());
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    job.result = std::move(block);
    job.failure = std::move(failure);
    job.state = State::kReady;
    ready_.notify_one();
  }
}

void ReadAhead::Take(size_t stream, size_t block, EventBlock* out) {
  if (wanted_workers_ > 0) [[unlikely]] StartWorkers();
  if (workers_.empty()) {
    ReadEventBlock(*reader_, reader_->streams()[stream], reader_->streams()[stream].blocks[block],
                   &payload_, out);
    return;
  }
  Job& job = jobs_[job_of_[stream][block]];
  std::unique_ptr<EventBlock> result;
  {
    std::unique_lock lock(mutex_);
    if (job.state == State::kWanted || job.state == State::kTaken) {
      job.state = State::kTaken;
      lock.unlock();
      Read(job, &payload_, out);
      return;
    }
    while (job.state == State::kBegun) ready_.wait(lock);
    job.state = State::kTaken;
    ahead_bytes_ -= RefOf(job).content_bytes;
    result = std::move(job.result);
    if (job.failure != nullptr) std::rethrow_exception(job.failure);
    std::swap(*out, *result);
    if (spare_.size() < kSpareBlocks) spare_.push_back(std::move(result));
  }
  work_.notify_all();
}

}  // namespace memtrace::report
