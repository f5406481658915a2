// A summary is taken for the trace, options and modules that it was made for, and for no others; a
// damaged one is as if it were not there.

#include "report/index/summary_store.h"

#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "report/index/analysis_codec.h"
#include "tests/report/long_trace.h"
#include "tests/report/trace_builder.h"
#include "tests/temp_dir.h"

namespace memtrace::report::index {
namespace {

namespace fs = std::filesystem;

class SummaryStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    trace_ = directory_ / "a.mtr";
    LongTraceOptions options;
    options.events = 20'000;
    options.live_blocks = 500;
    options.sites = 50;
    LongTraceFacts facts;
    ASSERT_TRUE(WriteLongTrace(trace_, options, &facts).ok());
  }

  // The bytes of the analysis; `recalled_` tells where it is from.
  std::string Report(const AnalyzeOptions& options = {}, const std::string& sysroot = "") {
    SummaryStore store(directory_ / "cache", 0);
    const auto trace = store.Analyze(trace_, options, sysroot, [&](Analysis* analysis) {
      ++completed_;
      analysis->coverage.modules_not_examined = 7;
    });
    EXPECT_TRUE(trace.ok()) << trace.status();
    recalled_ = store.recalled();
    return trace.ok() ? EncodeTrace(*trace) : "";
  }
  fs::path Stored() const {
    for (const auto& file : fs::directory_iterator(directory_ / "cache")) {
      if (file.path().extension() == ".sum") return file.path();
    }
    return {};
  }

  TempDir directory_;
  std::string trace_;
  bool recalled_ = false;
  int completed_ = 0;
};

TEST_F(SummaryStoreTest, TheSecondReportIsTheFirst) {
  const std::string first = Report();
  EXPECT_FALSE(recalled_);
  EXPECT_TRUE(Report() == first);
  EXPECT_TRUE(recalled_);
  EXPECT_EQ(completed_, 1);
}

TEST_F(SummaryStoreTest, OtherOptionsHaveOtherSummaries) {
  Report();
  AnalyzeOptions part;
  part.range.to_ns = 1'000'000;
  Report(part);
  EXPECT_FALSE(recalled_);
  AnalyzeOptions kept;
  kept.keep_live_blocks = true;
  Report(kept);
  EXPECT_FALSE(recalled_);
  Report({}, directory_ / "sysroot");
  EXPECT_FALSE(recalled_);
  Report(part);
  EXPECT_TRUE(recalled_);
}

TEST_F(SummaryStoreTest, AChangedTraceIsReadAgain) {
  Report();
  const struct timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, trace_.c_str(), times, 0), 0);
  Report();
  EXPECT_FALSE(recalled_);
  Report();
  EXPECT_TRUE(recalled_);
  std::ofstream(trace_, std::ios::app) << std::string(64, '\0');
  Report();
  EXPECT_FALSE(recalled_);
}

// The last that is looked for, when all events were read, is which frees were invalid.
TEST_F(SummaryStoreTest, OfWhatWasInterruptedNothingIsKept) {
  TraceBuilder builder;
  ThreadScript& thread = builder.Thread(1, 4242, "main");
  for (uint64_t i = 1; i <= 20'000; ++i) {
    thread.At(10 * i).Malloc(0x10010, 18).At(10 * i + 5).Free(0x10010);
    if (i % 500 == 0) thread.Flush();
  }
  thread.At(300'000).Free(0x10010).At(300'010);
  builder.End(0, 300'010);
  ASSERT_TRUE(builder.WriteTo(trace_));
  AnalyzeOptions options;
  options.jobs = 1;
  int asked = 0;
  options.stop = [&] {
    ++asked;
    return false;
  };
  const std::string whole = Report(options);
  fs::remove(Stored());
  const int all = asked;
  for (const int stop_at : {1, all}) {
    asked = 0;
    options.stop = [&] { return ++asked >= stop_at; };
    EXPECT_FALSE(Report(options) == whole) << stop_at;
    EXPECT_EQ(Stored(), fs::path()) << stop_at;
  }
  options.stop = nullptr;
  EXPECT_TRUE(Report(options) == whole);
  EXPECT_FALSE(recalled_);
}

TEST_F(SummaryStoreTest, ADamagedSummaryIsNotThere) {
  const std::string first = Report();
  std::stringstream content;
  content << std::ifstream(Stored()).rdbuf();
  const std::string good = content.str();
  std::mt19937_64 random(20261126);
  for (int i = 0; i < 40; ++i) {
    std::string bad = good;
    bad[i < 20 ? random() % 64 : random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    if (i % 8 == 7) bad.resize(random() % bad.size());
    std::ofstream(Stored(), std::ios::trunc) << bad;
    EXPECT_TRUE(Report() == first);
    EXPECT_FALSE(recalled_) << i;
  }
}

}  // namespace
}  // namespace memtrace::report::index
