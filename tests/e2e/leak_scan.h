// LeakScanTest: programs that say what keeps their blocks, and what the scans in their traces say of it.

#ifndef MEMTRACE_TESTS_E2E_LEAK_SCAN_H_
#define MEMTRACE_TESTS_E2E_LEAK_SCAN_H_

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "report/analysis/analyzer.h"
#include "report/leak/leak_check.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/scan_reader.h"
#include "report/trace/trace_reader.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {

using report::LeakKind;
using report::LeakScan;

class LeakScanTest : public ::testing::Test {
 protected:
  // False: the program cannot do that here.
  bool Run(const std::string& name, const Environment& environment = {},
           const std::string& outcome = "exit 0") {
    Command command{.arguments = {TraceePath("kept_by"), name}, .timeout_seconds = 60};
    command.environment = environment;
    const Result run = RunCommand(Traced(command, directory_.path()));
    if (run.exit_status == 77) return false;
    out_ = run.out;
    pid_ = run.pid;
    EXPECT_EQ(run.Outcome(), outcome) << run.out << run.err;
    EXPECT_EQ(run.err, "");
    EXPECT_EQ(run.out.find("unexpected"), std::string::npos) << run.out;
    return true;
  }

  // What is read of one trace.
  void Load(const std::string& trace) {
    auto analyzed = report::AnalyzeTrace(trace, {});
    ASSERT_TRUE(analyzed.ok()) << analyzed.status();
    scans_ = analyzed->analysis.leak_scans;
    auto reader = report::TraceReader::Open(trace);
    ASSERT_TRUE(reader.ok());
    raw_.clear();
    for (const uint32_t number : report::leak::ScanNumbers(**reader)) {
      raw_.push_back(report::leak::ReadScan(**reader, number, nullptr));
    }
  }

  // strikes_its_scan in each of these ways that the machine has: it ends as without us, and its scan is done.
  // `check` looks at what was found.
  void Strike(std::initializer_list<std::vector<std::string>> ways,
              const std::function<void(const std::string& how)>& check) {
    int ran = 0;
    for (const std::vector<std::string>& way : ways) {
      const std::string how = absl::StrJoin(way, " ");
      TempDir traces;
      Command command{.arguments = {TraceePath("strikes_its_scan")}, .timeout_seconds = 60};
      command.arguments.insert(command.arguments.end(), way.begin(), way.end());
      const Result run = RunCommand(Traced(command, traces.path()));
      if (run.exit_status == 77) continue;
      ++ran;
      ASSERT_EQ(run.Outcome(), "exit 0") << how << ": " << run.err;
      Load(TraceOf(traces.path(), "strikes_its_scan", run.pid));
      ASSERT_EQ(scans_.size(), 1u) << how;
      ASSERT_EQ(scans_[0].state, LeakScan::State::kDone) << how << ": " << scans_[0].failure;
      check(how);
    }
    if (ran == 0) GTEST_SKIP() << "this machine has none of these";
  }

  // Each "expect SIZE KIND" of `text` is a loss record of its own in `scan`.
  static void ExpectKinds(const LeakScan& scan, const std::string& text) {
    ASSERT_EQ(scan.state, LeakScan::State::kDone) << scan.failure;
    std::multimap<uint64_t, std::string> found;
    for (const report::LossRecord& record : scan.records) {
      for (uint64_t i = 0; i < record.blocks; ++i) {
        found.emplace(record.bytes / record.blocks, report::KindName(record.kind));
      }
    }
    std::string all;
    for (const auto& [size, kind] : found) all += std::to_string(size) + " " + kind + ", ";
    std::istringstream lines(text);
    int expected = 0;
    for (std::string word, kind; lines >> word;) {
      if (word != "expect") continue;
      uint64_t size;
      lines >> size >> kind;
      ++expected;
      const auto at = found.find(size);
      if (at == found.end()) {
        ADD_FAILURE() << "no block of " << size << " bytes: " << kind << " expected\n" << text << all;
      } else {
        EXPECT_EQ(at->second, kind) << size << " bytes\n" << text;
      }
    }
    EXPECT_GT(expected, 0);
  }

  bool RunAndCheck(const std::string& name, const Environment& environment = {}) {
    if (!Run(name, environment)) return false;
    Load(TraceOf(directory_.path(), "kept_by", pid_));
    if (scans_.empty()) {
      ADD_FAILURE() << "no scan";
    } else {
      ExpectKinds(scans_.back(), out_);
    }
    return true;
  }

  size_t Threads(format::ScanThreadState state) const {
    size_t count = 0;
    for (const auto& thread : raw_.back().threads) count += thread.state == state;
    return count;
  }

  TempDir directory_;
  std::string out_;
  pid_t pid_ = 0;
  std::vector<LeakScan> scans_;
  std::vector<report::leak::Scan> raw_;
};

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_LEAK_SCAN_H_
