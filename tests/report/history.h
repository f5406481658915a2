// History: what the threads of an imaginary program did, in the order in which they
// did it; the trace of it, with as many time stamps as wanted; and the truth about
// it, found by a model so slow and simple that it is right.
//
// Addresses come from a pool: where it is small they pass from thread to thread as
// fast as they can.

#ifndef MEMTRACE_TESTS_REPORT_HISTORY_H_
#define MEMTRACE_TESTS_REPORT_HISTORY_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "format/event_words.h"

namespace memtrace::report {

struct Action {
  enum Kind { kAlloc, kFree, kIntent, kResult } kind;
  uint32_t thread;    // 1 ..
  uint64_t time_ns;   // strictly increasing
  uint64_t address;   // kResult: 0 failed
  uint64_t old_address = 0;  // kResult
  uint32_t size = 0;
  uint32_t waste = 0;
  uint32_t site = 0;  // 1 ..: its stack is one frame at PcOf(site)
  bool calloc = false;
};

inline uint64_t PcOf(uint32_t site) { return 0x400000 + site * 16; }

struct HistoryOptions {
  int actions = 1000;
  int threads = 3;
  int addresses = 40;
  bool scattered = false;  // the addresses lie anywhere, not in a row
  bool large = false;      // three of four actions allocate at first; at last three of four free
  int sites = 5;
  uint64_t longest_step_ns = 100;
  bool reallocs = true;
  bool awkward_reallocs = true;  // that fail, or are not finished at the end
  bool failures = false;         // of malloc and calloc
  // The chance that a thread is descheduled after an action, and for how many others.
  double sleep_chance = 0;
  int sleep_actions = 200;
};

std::vector<Action> MakeHistory(const HistoryOptions& options, std::mt19937_64& random);

struct TraceOptions {
  double stamp_before = 1, stamp_after = 1;  // chances
  double flush = 0.02;                       // chance of ending a block after an action
  // A stamp before each event of an address whose event before was another thread's, and the
  // trace says so.
  bool stamp_changes_of_owner = false;
};

// The bytes of its trace.
std::string TraceOf(const std::vector<Action>& history, const TraceOptions& options,
                    std::mt19937_64& random);

struct TrueBlock {
  uint64_t size, waste, time_ns;
  uint32_t thread, site;
  bool calloc;
};

struct TrueSite {
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0, live_bytes = 0, live_blocks = 0;
  uint64_t peak_bytes = 0, bytes_at_peak = 0, blocks_at_peak = 0, wasted = 0, live_wasted = 0;
  uint64_t temporary = 0, freed_by_other = 0, largest = 0;
};

struct Truth {
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0, failed = 0, reallocations = 0;
  uint64_t peak_bytes = 0, peak_blocks = 0, peak_time_ns = 0, wasted = 0, temporary = 0;
  std::map<uint64_t, TrueBlock> live;
  std::map<std::pair<uint32_t, int>, TrueSite> sites;  // by site and function
};

Truth TruthOf(const std::vector<Action>& history);

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_HISTORY_H_
