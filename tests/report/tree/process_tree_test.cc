// How traces become a tree, and a tree lines: made-up images, for what no run does on demand.

#include "report/tree/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "report/tree/merged_sites.h"
#include "report/tree/tree_rows.h"

namespace memtrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using End = ProcessInfo::End;

class ProcessTreeTest : public ::testing::Test {
 protected:
  // Starts at `start` and ends at `end`, in ns.
  ProcessImage& Add(uint32_t pid, uint32_t ppid, uint64_t start, uint64_t end = UINT64_MAX / 2) {
    ProcessImage& image = images_.emplace_back();
    image.trace_id = images_.size();
    image.start_monotonic_ns = start;
    image.process.pid = pid;
    image.process.ppid = ppid;
    image.process.duration_ns = end - start;
    image.process.end = End::kExit;
    return image;
  }
  // With the kernel's word for when process and parent were started.
  ProcessImage& Add(uint32_t pid, uint64_t boot, uint32_t ppid, uint64_t parent_boot,
                    uint64_t start) {
    ProcessImage& image = Add(pid, ppid, start);
    image.process.boot_ticks = boot;
    image.process.parent_boot_ticks = parent_boot;
    return image;
  }
  void Link() { tree_ = LinkProcesses(images_); }
  size_t ParentOf(size_t image) const { return tree_.nodes[image].parent; }
  ImageLink LinkOf(size_t image) const { return tree_.nodes[image].link; }

  std::vector<ProcessImage> images_;
  ProcessTree tree_;
};

TEST_F(ProcessTreeTest, TellsAPidThatWasUsedAgain) {
  Add(10, 100, 1, 5, 1000);  // 0: the first process with pid 10
  Add(10, 200, 1, 5, 2000);  // 1: another
  Add(20, 150, 10, 100, 2500);  // 2: a child of the first, whose trace began late
  Add(21, 210, 10, 200, 2600);  // 3: a child of the other
  Add(22, 220, 10, 300, 2700);  // 4: of a third, without a trace
  Link();
  EXPECT_EQ(ParentOf(1), kNoImage) << "no exec";
  EXPECT_EQ(ParentOf(2), 0u);
  EXPECT_EQ(LinkOf(2), ImageLink::kParent);
  EXPECT_EQ(ParentOf(3), 1u);
  EXPECT_EQ(ParentOf(4), kNoImage);
  EXPECT_EQ(tree_.processes, 5u);
}

TEST_F(ProcessTreeTest, PutsTheImagesOfAProcessInARow) {
  Add(10, 100, 1, 5, 3000);  // in any order of the files
  Add(10, 100, 1, 5, 1000);
  Add(10, 100, 1, 5, 2000);
  Add(11, 110, 10, 100, 1500);  // made by the first image
  Add(12, 120, 10, 100, 2500);  // by the second
  Link();
  EXPECT_EQ(ParentOf(2), 1u);
  EXPECT_EQ(ParentOf(0), 2u);
  EXPECT_EQ(LinkOf(0), ImageLink::kExec);
  EXPECT_EQ(tree_.nodes[1].replaced_by, 2u);
  EXPECT_EQ(ParentOf(3), 1u);
  EXPECT_EQ(ParentOf(4), 2u);
  EXPECT_THAT(tree_.roots, ElementsAre(1));
  EXPECT_EQ(tree_.processes, 3u);
}

TEST_F(ProcessTreeTest, TakesTheNearestOfTheForkLinkAndTheKernelsParent) {
  Add(10, 100, 1, 5, 1000);                              // 0: a, with a trace
  Add(11, 110, 10, 100, 2000).parent_trace_id = 1;       // 1: b, forked by a
  Add(12, 120, 11, 110, 3000).parent_trace_id = 1;       // 2: c, forked by b before b had a trace
  Add(13, 130, 1, 5, 4000).parent_trace_id = 2;          // 3: an orphan, of b
  Add(14, 140, 10, 100, 5000).parent_trace_id = 77;      // 4: the trace it names is not here
  Link();
  EXPECT_EQ(ParentOf(1), 0u);
  EXPECT_EQ(LinkOf(1), ImageLink::kFork);
  EXPECT_EQ(ParentOf(2), 1u);
  EXPECT_EQ(ParentOf(3), 1u);
  EXPECT_EQ(LinkOf(3), ImageLink::kFork);
  EXPECT_EQ(ParentOf(4), 0u);
}

TEST_F(ProcessTreeTest, LinksAProcessThatWasKilledBeforeItHadWrittenWhoItIs) {
  const auto killed = [this](uint32_t pid) -> ProcessImage& {
    ProcessImage& image = Add(pid, 0, 0);
    image.process.has_record = false;
    image.process.end = End::kCut;
    return image;
  };
  killed(11);                                      // 0: what 3 became, first in order of start
  killed(13).parent_trace_id = 3;                  // 1: forked by 2
  Add(10, 100, 1, 5, 1000).process.host = "here";  // 2
  Add(11, 110, 10, 100, 2000).process.end = End::kExec;  // 3
  Add(12, 120, 10, 100, 2100).process.end = End::kExec;  // 4: its next image is there
  Add(12, 120, 10, 100, 2200);                           // 5
  killed(12);                                            // 6: so this is of another process
  for (size_t i = 3; i < 6; ++i) images_[i].process.host = "here";
  Link();
  EXPECT_EQ(ParentOf(0), 3u);
  EXPECT_EQ(LinkOf(0), ImageLink::kExec);
  EXPECT_EQ(tree_.nodes[3].replaced_by, 0u);
  EXPECT_EQ(ParentOf(1), 2u);
  EXPECT_EQ(LinkOf(1), ImageLink::kFork);
  EXPECT_EQ(ParentOf(6), kNoImage);
  EXPECT_EQ(tree_.processes, 5u);
}

TEST_F(ProcessTreeTest, AProcessWhoseRecordIsDamagedHasItsChildren) {
  ProcessImage& damaged = Add(10, 0, 0);
  damaged.process.has_record = false;
  damaged.events = 100;
  Add(11, 110, 10, 100, 2000).parent_trace_id = 1;
  Link();
  EXPECT_EQ(ParentOf(1), 0u);
  EXPECT_EQ(LinkOf(1), ImageLink::kFork);
}

TEST_F(ProcessTreeTest, FallsBackToPidsAndTimes) {
  Add(10, 1, 1000, 2000);                          // 0
  Add(10, 1, 3000).process.end = End::kExec;       // 1: the pid again
  Add(20, 10, 1500);                               // 2: a child of 0
  Add(21, 10, 2500);                               // 3: nobody with pid 10 lived then
  Add(22, 10, 3500);                               // 4: a child of 1
  Add(10, 1, 4000);                                // 5: what 1 became
  Link();
  EXPECT_EQ(ParentOf(1), kNoImage) << "0 ended, it executed nothing";
  EXPECT_EQ(ParentOf(2), 0u);
  EXPECT_EQ(LinkOf(2), ImageLink::kTime);
  EXPECT_EQ(ParentOf(3), kNoImage);
  EXPECT_EQ(ParentOf(4), 1u);
  EXPECT_EQ(ParentOf(5), 1u);
  EXPECT_EQ(LinkOf(5), ImageLink::kExec);
}

TEST_F(ProcessTreeTest, HostsAndNamespacesAreWorldsOfTheirOwn) {
  Add(10, 100, 1, 5, 1000).process.host = "a";
  Add(20, 200, 10, 100, 2000).process.host = "b";
  Add(21, 210, 10, 100, 3000).process.host = "a";
  images_.back().process.pid_namespace = 7;
  Link();
  EXPECT_EQ(tree_.roots.size(), 3u);
}

TEST_F(ProcessTreeTest, WhateverTracesSayThereIsNoCycle) {
  for (uint32_t i = 0; i < 50; ++i) {
    ProcessImage& image = Add(i % 7, i % 5, (i + 1) % 7, i % 5, i * 7919 % 31);
    image.parent_trace_id = (i * 31) % 50 + 1;
    image.trace_id = i % 40 + 1;
  }
  Link();
  for (size_t i = 0; i < images_.size(); ++i) {
    size_t steps = 0;
    for (size_t at = i; at != kNoImage; at = ParentOf(at)) ASSERT_LE(++steps, images_.size());
  }
  uint64_t shown = 0;
  for (const TreeRow& row : LayOutTree(images_, tree_, SIZE_MAX, SIZE_MAX).rows) {
    shown += row.more == 0;
  }
  EXPECT_EQ(shown, images_.size());
}

TEST_F(ProcessTreeTest, AChainOfAHundredThousandIsNoProblem) {
  for (uint32_t i = 0; i < 100'000; ++i) {
    Add(i + 2, i + 100, i + 1, i == 0 ? 0 : i + 99, i + 1);
  }
  Link();
  EXPECT_EQ(tree_.roots.size(), 1u);
  // Each row has what is drawn before it: with so deep a tree only the first are laid out.
  const TreeRows rows = LayOutTree(images_, tree_, 10, 500);
  EXPECT_EQ(rows.rows.size(), 500u);
  EXPECT_EQ(rows.images_left_out, 100'000u - 500);
}

TEST_F(ProcessTreeTest, ManyAlikeAreOneLine) {
  Add(1, 1, 0, 0, 1).totals.bytes_allocated = 1;
  for (uint32_t i = 0; i < 1000; ++i) {
    ProcessImage& image = Add(i + 10, i + 10, 1, 1, i + 10);
    image.totals.bytes_allocated = i % 100;
    image.totals.live_bytes = 2;
    image.executable = 1;
  }
  Add(5000, 5000, 1, 1, 6000).executable = 2;
  Link();
  const TreeRows rows = LayOutTree(images_, tree_, 10, 500);
  ASSERT_EQ(rows.rows.size(), 1u + 10 + 1 + 1);
  uint64_t more = 0, live = 0;
  for (const TreeRow& row : rows.rows) {
    if (row.more == 0 && images_[row.image].executable == 1) {
      EXPECT_EQ(row.bytes, 99u) << "the largest are shown";
    }
    more += row.more;
    live += row.live;
  }
  EXPECT_EQ(more, 990u);
  EXPECT_EQ(live, 2000u) << "the sum is in the line";
  EXPECT_EQ(images_[rows.rows.back().image].executable, 2u);
  EXPECT_TRUE(rows.rows.back().last);
}

TEST(NumberRunsTest, CountsNumbersOnce) {
  NumberRuns a, b;
  for (uint32_t i = 0; i < 1000; ++i) a.Add(i);
  a.Add(999);
  for (uint32_t i = 500; i < 2000; i += 2) b.Add(i);
  EXPECT_EQ(a.size(), 1000u);
  EXPECT_EQ(b.size(), 750u);
  const NumberRuns* const both[] = {&a, &b};
  EXPECT_EQ(NumberRuns::SizeOfUnion(both), 1000u + 500);
}

}  // namespace
}  // namespace memtrace::report
