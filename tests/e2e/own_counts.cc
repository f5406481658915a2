#include "tests/e2e/own_counts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <unordered_map>

namespace memtrace::e2e {

OwnCounts::OwnCounts() {
  const int fd = open((directory_ / "counts").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* page = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof(CountsPage)) == 0) {
    page = mmap(nullptr, sizeof(CountsPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (fd >= 0) close(fd);
  if (page == MAP_FAILED) throw std::runtime_error("no page for the counts");
  page_ = static_cast<CountsPage*>(page);
}

OwnCounts::~OwnCounts() { munmap(page_, sizeof(CountsPage)); }

Words OwnCounts::Arguments(int lanes, const Words& more) const {
  Words words = {TraceePath("counts_its_own_calls"), directory_ / "counts", std::to_string(lanes)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

uint64_t OwnCounts::Returned() const {
  uint64_t sum = 0;
  for (const LaneCounts& lane : page_->lane) sum += lane.calls_returned;
  return sum;
}

uint64_t OwnCounts::Begun() const {
  uint64_t sum = 0;
  for (const LaneCounts& lane : page_->lane) sum += lane.calls_begun;
  return sum;
}

bool OwnCounts::Await(uint64_t calls) const {
  for (int i = 0; i < 100'000; ++i) {
    if (Returned(0) >= calls) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return false;
}

namespace {

// The value of ` key=` in a line of the dump; 0 when it is not there.
uint64_t ValueOf(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  return at == line.npos ? 0 : strtoull(line.data() + at + key.size(), nullptr, 0);
}

}  // namespace

OwnCounts::Comparison OwnCounts::CompareWith(const std::string& trace) const {
  return Compare(trace, true);
}
OwnCounts::Comparison OwnCounts::CompareEndWith(const std::string& trace) const {
  return Compare(trace, false);
}

OwnCounts::Comparison OwnCounts::Compare(const std::string& trace, bool from_the_beginning) const {
  Comparison result;
  const auto problem = [&result](const std::string& what) {
    if (result.problems.size() < 2000) result.problems += what + "\n";
  };
  const Result dump = RunCommand({.arguments = {ToolPath(), "dump", trace}});
  if (dump.exit_status != 0) problem("dump: " + dump.Outcome() + " " + dump.err);

  struct Seen {
    uint64_t calls = 0, releases = 0;
    uint64_t first = 0;  // number of the first call
  };
  Seen seen[kMaxLanes];
  std::map<uint64_t, int> lane_of_thread;
  std::unordered_map<uint64_t, int> live;  // address -> lane it is from
  std::string_view rest = dump.out;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    if (end == rest.npos) {
      problem("the dump ends within a line");
      break;
    }
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (line.starts_with("#")) continue;
    // TIME THREAD EVENT ADDRESS
    size_t begin = line.find(' ') + 1;
    const uint64_t thread = strtoull(line.data() + begin, nullptr, 10);
    begin = line.find(' ', begin) + 1;
    const std::string_view event = line.substr(begin, line.find(' ', begin) - begin);
    const uint64_t address = strtoull(line.data() + begin + event.size() + 1, nullptr, 16);
    if (event == "free" || event == "realloc-begin") {
      const bool known = live.erase(address) == 1;
      const auto lane = lane_of_thread.find(thread);
      // What pthread_create() frees is nobody's; without the beginning, a lane's may be unknown.
      if (known && lane != lane_of_thread.end()) ++seen[lane->second].releases;
      if (known && from_the_beginning && lane == lane_of_thread.end()) {
        problem("a thread of no lane released a block: " + std::string(line));
      }
      continue;
    }
    if (event != "malloc" && event != "calloc" && event != "realloc" &&
        event != "posix_memalign") {
      continue;
    }
    const uint64_t size = ValueOf(line, " size=");
    if (size < kFirstSize || size >= kFirstSize + kMaxLanes * 1024) continue;
    const int number = static_cast<int>((size - kFirstSize) / 1024);
    Seen& lane = seen[number];
    if (lane.calls == 0 && !from_the_beginning) {
      lane.first = (size - kFirstSize) % 1024;  // modulo kSizesOfALane
    }
    if (size != SizeOf(number, lane.first + lane.calls)) {
      problem("lane " + std::to_string(number) + ": call " + std::to_string(lane.calls) +
              " is another one: " + std::string(line));
    }
    ++lane.calls;
    const auto [at, added] = lane_of_thread.try_emplace(thread, number);
    if (!added && at->second != number) problem("thread of two lanes: " + std::string(line));
    if (!live.emplace(address, number).second) problem("live already: " + std::string(line));
  }
  for (int i = 0; i < kMaxLanes; ++i) {
    const LaneCounts& own = page_->lane[i];
    const auto between = [&](uint64_t in_trace, uint64_t returned, uint64_t begun, const char* of) {
      const bool too_few = from_the_beginning && in_trace < returned;
      if (too_few || in_trace > begun) {
        problem("lane " + std::to_string(i) + ": the trace has " + std::to_string(in_trace) + " " +
                of + ", returned " + std::to_string(returned) + ", begun " + std::to_string(begun));
      }
    };
    between(seen[i].calls, own.calls_returned, own.calls_begun, "calls");
    between(seen[i].releases, own.releases_returned, own.releases_begun, "releases");
    if (!from_the_beginning && seen[i].calls != 0) {
      // The last call in the trace is the last that returned, or one that was begun.
      const uint64_t last = (seen[i].first + seen[i].calls) % kSizesOfALane;
      if (last != own.calls_returned % kSizesOfALane && last != own.calls_begun % kSizesOfALane) {
        problem("lane " + std::to_string(i) + ": the end is missing, the trace ends at call " +
                std::to_string(last) + " modulo 1000, returned " +
                std::to_string(own.calls_returned));
      }
    }
    result.allocations += seen[i].calls;
    result.releases += seen[i].releases;
  }
  return result;
}

}  // namespace memtrace::e2e
