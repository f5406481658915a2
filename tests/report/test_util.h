// Short ways to read and analyze a trace from memory.

#ifndef MEMTRACE_TESTS_REPORT_TEST_UTIL_H_
#define MEMTRACE_TESTS_REPORT_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "report/analysis/analyzer.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

inline absl::StatusOr<std::unique_ptr<TraceReader>> Read(const std::string& bytes) {
  return TraceReader::FromSource(std::make_unique<MemorySource>(bytes), "test.mtr");
}

inline AnalyzedTrace Analyze(const std::string& bytes, const AnalyzeOptions& options = {}) {
  auto reader = Read(bytes);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return {};
  auto trace = AnalyzeTrace(**reader, options);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *std::move(trace) : AnalyzedTrace();
}

// Of the blocks that were allocated from one time to the other.
inline AnalyzeOptions RangeOf(uint64_t from, uint64_t to) {
  AnalyzeOptions options;
  options.range = {from, to};
  return options;
}

// The site whose innermost frame is at `pc`; nullptr if there is none.
inline const Site* FindSite(const AnalyzedTrace& trace, uint64_t pc) {
  for (const Site& site : trace.analysis.sites) {
    if (trace.stacks->node(site.stack).pc == pc) return &site;
  }
  return nullptr;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_TEST_UTIL_H_
