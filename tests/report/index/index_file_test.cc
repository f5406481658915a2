// FILE.idx: made once, of use afterwards, and as if it were not there when it is not what it should be.

#include "report/index/indexed_analysis.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "report/index/analysis_codec.h"
#include "tests/report/long_trace.h"
#include "tests/temp_dir.h"

namespace memtrace::report::index {
namespace {

namespace fs = std::filesystem;

std::string Content(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class IndexFileTest : public testing::Test {
 protected:
  void SetUp() override {
    trace_ = Path("a.mtr");
    LongTraceOptions options;
    options.events = 400'000;
    options.threads = 2;
    options.live_blocks = 200;
    options.sites = 4;
    LongTraceFacts facts;
    ASSERT_TRUE(WriteLongTrace(trace_, options, &facts).ok());
    index_.use = true;
    index_.directory = Path("cache");
    index_.least_trace_bytes = 0;
    index_.least_gap_bytes = 16 << 10;
    index_.warn = [this](const std::string& why) { warnings_.push_back(why); };
    options_.keep_live_blocks = true;
    options_.from_share = 0.6;
    options_.to_share = 0.65;
    auto plain = AnalyzeTrace(trace_, options_);
    ASSERT_TRUE(plain.ok());
    expected_ = EncodeTrace(*plain);
    plain_bytes_ = plain->event_bytes_decoded;
  }

  std::string Path(const std::string& name) const { return directory_ / name; }

  // True: the answer is the right one.
  bool Ask() {
    const auto trace = AnalyzeByIndex(trace_, options_, index_, &use_);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace.ok() && EncodeTrace(*trace) == expected_;
  }
  // Names in the directory besides the trace.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(directory_.path())) {
      if (file.path() != trace_) names.push_back(file.path().filename().string());
    }
    return names;
  }

  TempDir directory_;
  std::string trace_;
  IndexOptions index_;
  AnalyzeOptions options_;
  IndexUse use_;
  std::string expected_;
  uint64_t plain_bytes_ = 0;
  std::vector<std::string> warnings_;
};

TEST_F(IndexFileTest, AQuestionReadsASmallPart) {
  EXPECT_TRUE(Ask());
  EXPECT_TRUE(use_.built);
  EXPECT_TRUE(use_.used);
  EXPECT_EQ(Files(), std::vector<std::string>{"a.mtr.idx"});
  EXPECT_TRUE(Ask());
  EXPECT_FALSE(use_.built);
  EXPECT_TRUE(use_.used);
  EXPECT_GE(use_.states, 2u);
  // All of the 65 % before its end without an index, with one its 5 % and what is before the next
  // state.
  EXPECT_LT(use_.event_bytes_decoded * 3, plain_bytes_);
  EXPECT_LT(use_.bytes * 4, fs::file_size(trace_));
  options_ = {};
  options_.to_share = 0.9;
  const auto plain = AnalyzeTrace(trace_, options_);
  ASSERT_TRUE(plain.ok());
  expected_ = EncodeTrace(*plain);
  EXPECT_TRUE(Ask());
  EXPECT_LT(use_.event_bytes_decoded * 5, plain->event_bytes_decoded);
}

TEST_F(IndexFileTest, WithoutAnIndexNothingIsWritten) {
  index_.use = false;
  EXPECT_TRUE(Ask());
  EXPECT_FALSE(use_.used);
  EXPECT_TRUE(Files().empty());
}

TEST_F(IndexFileTest, ADamagedIndexChangesNoAnswer) {
  EXPECT_TRUE(Ask());
  const std::string file = Path("a.mtr.idx"), good = Content(file);
  std::mt19937_64 random(20261127);
  for (int i = 0; i < 30; ++i) {
    std::string bad = good;
    const size_t at = i % 3 == 0   ? random() % 80
                      : i % 3 == 1 ? bad.size() - 1 - random() % 500
                                   : random() % bad.size();
    bad[at] ^= static_cast<char>(1 << random() % 8);
    if (i % 10 == 9) bad.resize(random() % bad.size());
    std::ofstream(file, std::ios::trunc) << bad;
    EXPECT_TRUE(Ask()) << i;
    EXPECT_TRUE(use_.used) << i;
  }
}

// Thrown in the place of a state that is not what it says.
TEST_F(IndexFileTest, AnIndexThatAsksForTooMuchMemoryChangesNoAnswer) {
  EXPECT_TRUE(Ask());
  for (const bool more_than_any : {false, true}) {
    bool thrown = false;
    options_.progress = [&](const ReadProgress& read) {
      if (read.done != read.total || std::exchange(thrown, true)) return;
      if (more_than_any) throw std::length_error("vector::reserve");
      throw std::bad_alloc();
    };
    EXPECT_TRUE(Ask()) << more_than_any;
    EXPECT_TRUE(thrown);
    EXPECT_TRUE(use_.built);
  }
}

TEST_F(IndexFileTest, AChangedTraceHasANewIndex) {
  EXPECT_TRUE(Ask());
  const struct timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, trace_.c_str(), times, 0), 0);
  EXPECT_TRUE(Ask());
  EXPECT_TRUE(use_.built);
  EXPECT_TRUE(Ask());
  EXPECT_FALSE(use_.built);
}

TEST_F(IndexFileTest, ALinkIsNotFollowedAndAStrangersFileStays) {
  const std::string victim = Path("victim");
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, Path("a.mtr.idx"));
  EXPECT_TRUE(Ask());
  EXPECT_TRUE(use_.path.starts_with(Path("cache/"))) << use_.path;
  EXPECT_EQ(Content(victim), "precious");
  EXPECT_TRUE(fs::is_symlink(Path("a.mtr.idx")));
  fs::remove(Path("a.mtr.idx"));
  fs::remove_all(Path("cache"));
  std::ofstream(Path("a.mtr.idx")) << "not an index";
  EXPECT_TRUE(Ask());
  EXPECT_TRUE(use_.path.starts_with(Path("cache/")));
  EXPECT_EQ(Content(Path("a.mtr.idx")), "not an index");
}

TEST_F(IndexFileTest, WhereItCannotBeWrittenOneLineSaysSo) {
  index_.beside = false;
  index_.directory = "/proc/nowhere";
  EXPECT_TRUE(Ask());
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(Files().empty());
}

TEST_F(IndexFileTest, AnInterruptedBuildLeavesNothing) {
  int asked = 0;
  options_.stop = [&] { return ++asked > 10; };
  const auto trace = AnalyzeByIndex(trace_, options_, index_, &use_);
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->analysis.coverage.interrupted);
  EXPECT_TRUE(Files().empty());
}

// As without an index, and no less: the part of it that there is knows how to come there.
TEST_F(IndexFileTest, AnInterruptedBuildAnswersFromWhatWasReached) {
  int asked = 0;
  const auto stop = [&] { return ++asked >= 30; };
  AnalyzeOptions whole;
  whole.stop = stop;
  const auto part = AnalyzeTrace(trace_, whole);
  ASSERT_TRUE(part.ok());
  ASSERT_TRUE(part->analysis.coverage.interrupted);
  const Range reached = part->analysis.range;
  const double share = part->analysis.coverage.read_share;
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.8);

  options_ = {};
  options_.stop = stop;
  options_.to_share = 0.9;  // behind it
  asked = 0;
  auto trace = AnalyzeByIndex(trace_, options_, index_, &use_);
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->analysis.coverage.interrupted);
  EXPECT_EQ(trace->analysis.coverage.read_share, share);
  EXPECT_EQ(trace->analysis.range.to_ns, reached.to_ns);
  EXPECT_EQ(trace->analysis.totals.allocations, part->analysis.totals.allocations);
  EXPECT_EQ(trace->analysis.totals.live_bytes, part->analysis.totals.live_bytes);
  EXPECT_TRUE(use_.used);

  options_.to_share = 0.2;  // before it: there is nothing that it lacks
  asked = 0;
  trace = AnalyzeByIndex(trace_, options_, index_, &use_);
  ASSERT_TRUE(trace.ok());
  EXPECT_FALSE(trace->analysis.coverage.interrupted);
  options_.stop = nullptr;
  const auto plain = AnalyzeTrace(trace_, options_);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(EncodeTrace(*trace), EncodeTrace(*plain));

  options_.stop = stop;
  options_.to_share = std::nullopt;
  options_.from_share = 0.95;  // of which nothing was reached
  asked = 0;
  trace = AnalyzeByIndex(trace_, options_, index_, &use_);
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->analysis.coverage.interrupted);
  EXPECT_LE(trace->analysis.range.to_ns, trace->analysis.range.from_ns);
  EXPECT_EQ(trace->analysis.totals.allocations, 0u);

  options_.from_share = std::nullopt;
  asked = 0;
  trace = SeriesByIndex(trace_, options_, index_, &use_);
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->analysis.coverage.interrupted);
  EXPECT_EQ(trace->analysis.range.to_ns, reached.to_ns);
  EXPECT_EQ(trace->analysis.totals.allocations, part->analysis.totals.allocations);
  EXPECT_TRUE(Files().empty());
}

TEST_F(IndexFileTest, WhatIsNotToBeMadeIsNotMade) {
  index_.build = false;
  EXPECT_TRUE(Ask());
  EXPECT_FALSE(use_.used);
  EXPECT_TRUE(Files().empty());
  index_.build = true;
  EXPECT_TRUE(Ask());
  index_.build = false;
  EXPECT_TRUE(Ask());
  EXPECT_TRUE(use_.used);
}

// Each of many threads holds a block of events from the first one on, most of it still to come.
TEST_F(IndexFileTest, ManyThreadsDoNotMakeItUseless) {
  LongTraceOptions long_trace;
  long_trace.events = 800'000;
  long_trace.threads = 24;
  long_trace.live_blocks = 300;
  long_trace.sites = 4;
  LongTraceFacts facts;
  ASSERT_TRUE(WriteLongTrace(trace_, long_trace, &facts).ok());
  options_ = {};
  for (const double share : {0.95, 0.55}) {
    options_.to_share = share;
    const auto plain = AnalyzeTrace(trace_, options_);
    ASSERT_TRUE(plain.ok());
    expected_ = EncodeTrace(*plain);
    EXPECT_TRUE(Ask());
    EXPECT_TRUE(use_.used);
    EXPECT_GE(use_.states, 2u);
    EXPECT_LT(use_.event_bytes_decoded * 2, plain->event_bytes_decoded);
  }
  EXPECT_LT(use_.bytes * 4, fs::file_size(trace_));
}

TEST_F(IndexFileTest, ADirectoryThatIsNoneIsTold) {
  index_.beside = false;
  index_.directory = Path("plain");
  std::ofstream(index_.directory) << "precious";
  EXPECT_TRUE(Ask());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(warnings_[0].ends_with("Not a directory")) << warnings_[0];
  EXPECT_EQ(Content(index_.directory), "precious");
}

TEST_F(IndexFileTest, BuildersAtTheSameTimeDoNotHurtEachOther) {
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (size_t i = 0; i < right.size(); ++i) {
    threads.emplace_back([&, i] {
      IndexUse use;
      const auto trace = AnalyzeByIndex(trace_, options_, index_, &use);
      right[i] = trace.ok() && EncodeTrace(*trace) == expected_;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(Files(), std::vector<std::string>{"a.mtr.idx"});
  EXPECT_TRUE(Ask());
  EXPECT_FALSE(use_.built);
}

TEST_F(IndexFileTest, SeriesAreThereWithoutEvents) {
  options_ = {};
  EXPECT_TRUE(SeriesByIndex(trace_, options_, index_, &use_).ok());
  EXPECT_TRUE(use_.built);
  const auto series = SeriesByIndex(trace_, options_, index_, &use_);
  ASSERT_TRUE(series.ok());
  EXPECT_FALSE(use_.built);
  EXPECT_EQ(use_.event_bytes_decoded, 0u);
  const auto whole = AnalyzeTrace(trace_, options_);
  ASSERT_TRUE(whole.ok());
  ASSERT_EQ(series->analysis.sites.size(), whole->analysis.sites.size());
  for (size_t i = 0; i < whole->analysis.sites.size(); ++i) {
    const Site& a = series->analysis.sites[i];
    const Site& b = whole->analysis.sites[i];
    EXPECT_EQ(a.stack, b.stack);
    ASSERT_EQ(a.series.size(), b.series.size());
    uint64_t bytes = 0, allocations = 0;
    for (const SeriesPoint& point : a.series) {
      bytes += point.bytes_allocated;
      allocations += point.allocations;
    }
    EXPECT_EQ(bytes, b.bytes_allocated);
    EXPECT_EQ(allocations, b.allocations);
    if (!a.series.empty()) {
      EXPECT_EQ(a.series.back().live_bytes, b.live_bytes);
    }
  }
}

TEST_F(IndexFileTest, SeriesOfAThreadAreNotThoseOfAll) {
  options_ = {};
  const auto all = SeriesByIndex(trace_, options_, index_, &use_);
  ASSERT_TRUE(all.ok());
  ASSERT_GT(all->analysis.threads.size(), 1u);
  options_.thread_name = std::to_string(all->analysis.threads[0].tid);
  const auto one = SeriesByIndex(trace_, options_, index_, &use_);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->analysis.totals.allocations, all->analysis.threads[0].allocations);
  options_.thread_name = "nobody";
  EXPECT_FALSE(SeriesByIndex(trace_, options_, index_, &use_).ok());
}

// Of a trace without an end nobody knows whether it is still written.
TEST_F(IndexFileTest, ATraceWithoutAnEndHasNoIndex) {
  fs::resize_file(trace_, fs::file_size(trace_) * 3 / 4);
  const auto plain = AnalyzeTrace(trace_, options_);
  ASSERT_TRUE(plain.ok());
  if (plain->analysis.process.end != ProcessInfo::End::kCut) GTEST_SKIP() << "its end is in front";
  expected_ = EncodeTrace(*plain);
  EXPECT_TRUE(Ask());
  EXPECT_FALSE(use_.used);
  EXPECT_TRUE(Files().empty());
}

}  // namespace
}  // namespace memtrace::report::index
