#include "tests/e2e/cross_check.h"

#include <gtest/gtest.h>

#include <deque>
#include <iostream>
#include <map>

namespace memtrace::e2e {

std::string TempDirectory() {
  static std::deque<TempDir> directories;
  return directories.emplace_back().path();
}

Command CrossChecked(Command command, const std::string& traces, int every) {
  command.environment.emplace_back("MEMTRACE_CROSS_CHECK", std::to_string(every));
  return Traced(std::move(command), traces);
}

std::string Info(const std::string& trace) {
  const Result result = RunCommand({.arguments = {ToolPath(), "info", trace}});
  EXPECT_EQ(result.Outcome(), "exit 0") << result.err;
  return result.out;
}

void ExpectNoDifferenceIn(const std::string& traces, const std::string& name,
                          const CrossCheckExpectation& expectation) {
  std::map<std::string, uint64_t> sum;
  for (const std::string& file : FilesIn(traces, ".mtr")) {
    const Json coverage = BriefReport(traces + "/" + file).at("coverage");
    for (const auto& [counter, value] : coverage.at("counters").items()) {
      sum[counter] += value.get<uint64_t>();
    }
    sum["marked_stacks"] += coverage.at("marked_stacks").get<uint64_t>();
    sum["dropped_events"] += coverage.at("dropped_events").get<uint64_t>();
    const bool all_same = coverage.at("cross_check_differences") == 0 &&
                          coverage.at("counters").value("cross_check_went_on", 0) == 0 &&
                          coverage.at("counters").value("cross_check_gave_up", 0) == 0 &&
                          coverage.at("counters").value("cross_check_not_unwound", 0) == 0;
    EXPECT_TRUE(all_same) << Info(traces + "/" + file);
  }
  std::cout << name << ": " << sum["cross_checked"] << " stacks checked (memo "
            << sum["cross_checked_memo_hits"] << ", join " << sum["cross_checked_joined"]
            << ", walk " << sum["cross_checked_walked"] << ", generic "
            << sum["cross_checked_generic"] << "), " << sum["cross_check_differences"]
            << " differ, " << sum["cross_check_guessed_on"] << " guessed on; "
            << sum["marked_stacks"] << " allocations marked\n";
  EXPECT_GE(sum["cross_checked"], expectation.checked) << name;
  EXPECT_EQ(sum["dropped_events"], 0u) << name << ": libunwind's own must not count";
  EXPECT_EQ(sum["marked_stacks"] != 0, expectation.marked) << name;
}

void ExpectNoDifference(const Command& command, const CrossCheckExpectation& expectation) {
  TempDir traces;
  Command plain_command = command;
  if (!command.directory.empty()) plain_command.directory = TempDirectory();
  const Result traced = RunCommand(CrossChecked(command, traces.path(), expectation.every));
  if (expectation.same_behaviour) {
    const Result plain = RunCommand(plain_command);
    EXPECT_EQ(traced.Outcome(), plain.Outcome());
    EXPECT_EQ(traced.out, plain.out);
    EXPECT_EQ(traced.err, plain.err);
  }
  ExpectNoDifferenceIn(traces.path(), command.arguments[0], expectation);
}

}  // namespace memtrace::e2e
