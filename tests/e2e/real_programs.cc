#include "tests/e2e/real_programs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace memtrace::e2e {
namespace {

struct Tally {
  uint64_t allocations = 0, frees = 0, bytes = 0;
  bool operator==(const Tally&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Tally& tally) {
  return out << tally.allocations << " allocations, " << tally.frees << " frees, " << tally.bytes
             << " bytes";
}

Tally TallyOf(const MemtraceCounts& counts) {
  return {.allocations = counts.allocations, .frees = counts.frees, .bytes = counts.bytes};
}

// A fork child frees blocks of its parent's: these are no frees of the trace's own
// blocks, and are counted on their own.
Tally TallyOf(const Json& report) {
  const Json& totals = report.at("totals");
  return {.allocations = totals.at("allocations"),
          .frees = totals.at("frees").get<uint64_t>() +
                   report.at("coverage").value("inherited_frees", uint64_t{0}),
          .bytes = totals.at("bytes_allocated")};
}

// "git.123" of "git.123.0": each exec of one program by one process counts anew.
std::string WithoutNumber(const std::string& file) { return file.substr(0, file.rfind('.')); }

}  // namespace

void ExpectTracesEqualCounts(const Evidence& evidence, uint64_t under_way) {
  std::map<std::string, Tally> traced, counted;
  std::set<std::string> counted_processes;
  const auto add = [](Tally* sum, const Tally& tally) {
    sum->allocations += tally.allocations;
    sum->frees += tally.frees;
    sum->bytes += tally.bytes;
  };
  for (const std::string& file : FilesIn(evidence.counts.path())) {
    MemtraceCounts counts;
    const std::string bytes = ReadFile(evidence.counts / file);
    ASSERT_EQ(bytes.size(), sizeof(counts)) << file;
    std::memcpy(&counts, bytes.data(), sizeof(counts));
    counted_processes.insert(WithoutNumber(file));
    const Tally tally = TallyOf(counts);
    if (tally == Tally{}) continue;  // a process without allocations need not have a trace
    add(&counted[WithoutNumber(file)], tally);
  }
  for (const std::string& file : FilesIn(evidence.traces.path(), ".mtr")) {
    const Json report = BriefReport(evidence.traces / file);
    std::string process = WithoutNumber(file);  // of "git.123.mtr"
    if (!counted_processes.contains(process)) process = WithoutNumber(process);  // "git.123.1.mtr"
    add(&traced[process], TallyOf(report));
    const Json& coverage = report.at("coverage");
    EXPECT_EQ(coverage.at("dropped_events"), 0) << file;
    EXPECT_EQ(coverage.at("unordered_events"), 0) << file;
  }
  std::set<std::string> processes;
  for (const auto& [process, tally] : traced) processes.insert(process);
  for (const auto& [process, tally] : counted) processes.insert(process);
  EXPECT_FALSE(processes.empty());
  for (const std::string& process : processes) {
    const Tally &trace = traced[process], &shim = counted[process];
    // A free is in the trace before the call, an allocation after it.
    if (under_way != 0 && shim.allocations - trace.allocations <= under_way &&
        trace.frees - shim.frees <= under_way) {
      continue;
    }
    EXPECT_EQ(trace, shim) << process << ": the trace, then the shim";
  }
}

Json TraceRealProgram(const Command& command, const std::string& program) {
  const Result plain = RunCommand(command);
  TempDir traces;
  const Result traced = RunCommand(Traced(command, traces.path()));
  EXPECT_EQ(traced.Outcome(), plain.Outcome());
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);

  Evidence evidence;
  const Result counted =
      RunCommand(TracedAndCounted(command, evidence.traces.path(), evidence.counts.path()));
  EXPECT_EQ(counted.Outcome(), plain.Outcome());
  EXPECT_EQ(counted.out, plain.out);
  ExpectTracesEqualCounts(evidence);
  // A compiler has a hundred thousand sites: the names of the largest do.
  return Report(TraceOf(traces.path(), program, traced.pid), {"--top", "1000"});
}

void ExpectSameCountInARunOfItsOwn(const Command& command, const std::string& program) {
  TempDir traces, counts;
  Command traced = Traced(command, traces.path());
  traced.environment.emplace_back("COUNT_DIR", counts.path());  // as many variables for both
  Command counted = Counted(command, counts.path());
  counted.environment.emplace_back("MEMTRACE_OUT", traces.path() + "/%e.%p.mtr");
  const Result traced_run = RunCommand(traced), counted_run = RunCommand(counted);
  ASSERT_EQ(traced_run.Outcome(), counted_run.Outcome());
  const Json report = BriefReport(TraceOf(traces.path(), program, traced_run.pid));
  const MemtraceCounts count = Counts(counts.path(), program, counted_run.pid);
  EXPECT_EQ(report.at("totals").at("allocations"), count.allocations);
  EXPECT_EQ(report.at("totals").at("frees"), count.frees);
}

std::string HeaderHeavySource() {
  return R"script(
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
int Count(const std::map<std::string, std::vector<int>>& m, const std::string& expression) {
  std::regex pattern(expression);
  int count = 0;
  for (const auto& [key, values] : m) {
    if (std::regex_match(key, pattern)) count += std::count(values.begin(), values.end(), 1);
  }
  return count;
}
)script";
}

}  // namespace memtrace::e2e
