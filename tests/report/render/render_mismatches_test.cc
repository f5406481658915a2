// Which function began and ended a block, by the innermost calls of its stacks.

#include <gtest/gtest.h>

#include "report/render/mismatches.h"

namespace memtrace::report::render {
namespace {

using Calls = std::vector<SiteSymbols::Call>;

constexpr char kNew[] = "_Znwm";
constexpr char kNewArray[] = "_Znam";
constexpr char kNewArrayNothrow[] = "_ZnamRKSt9nothrow_t";
constexpr char kDelete[] = "_ZdlPvm";
constexpr char kDeleteArray[] = "_ZdaPv";

// libstdc++ as a library.
HeapCall Allocated(Calls calls) {
  for (SiteSymbols::Call& call : calls) call.in_cxx_runtime = call.function.starts_with("_Zn");
  return AllocatedBy(calls, true);
}

TEST(AllocatedByTest, CFunctionsAreKnownByTheirNames) {
  EXPECT_EQ(Allocated({{"main", "malloc"}}), HeapCall::kMalloc);
  EXPECT_EQ(Allocated({{"main", "aligned_alloc"}}), HeapCall::kMalloc);
  EXPECT_EQ(Allocated({{"main", "_Z7Wrapperv"}}), HeapCall::kUnknown) << "which jumped";
  EXPECT_EQ(Allocated({{"main", ""}}), HeapCall::kUnknown);
  EXPECT_EQ(Allocated({}), HeapCall::kUnknown);
}

TEST(AllocatedByTest, AnOperatorOnTheStackIsSoWithWhatCalledIt) {
  EXPECT_EQ(Allocated({{kNew, "malloc"}, {"main", kNew}}), HeapCall::kNew);
  EXPECT_EQ(Allocated({{kNew, "malloc"}, {"main", kNewArray}}), HeapCall::kNewArray);
  EXPECT_EQ(Allocated({{kNew, "malloc"}, {"main", ""}}), HeapCall::kNewEither);
  EXPECT_EQ(Allocated({{kNew, ""}, {"main", "_Z5Jumpsv"}}), HeapCall::kNewEither);
  EXPECT_EQ(Allocated({{kNew, "malloc"}, {kNewArrayNothrow, kNewArray}, {"main", kNewArrayNothrow}}),
            HeapCall::kNewArray);
}

TEST(AllocatedByTest, OperatorsOfTheProgramsOwnAreFunctionsLikeOthers) {
  EXPECT_EQ(Allocated({{"_ZN4NodenwEm", "malloc"}, {"main", "_ZN4NodenwEm"}}), HeapCall::kMalloc)
      << "of a class";
  EXPECT_EQ(Allocated({{"_ZnwmR4Heap", "malloc"}, {"main", "_ZnwmR4Heap"}}), HeapCall::kMalloc)
      << "another form";
  EXPECT_EQ(Allocated({{"_Z4Takem", "malloc"}, {kNew, "_Z4Takem"}, {"main", kNew}}), HeapCall::kUnknown)
      << "replaced, by way of a function";
  EXPECT_EQ(FreedBy({{"_Z4GivePv", "free"}, {kDelete, "_Z4GivePv"}, {"main", kDelete}}),
            HeapCall::kUnknown);
  EXPECT_EQ(Allocated({{"main", kNew}}), HeapCall::kUnknown) << "replaced, and jumped to malloc";
  const Calls replaced = {{kNew, "malloc"}, {"main", kNew}};
  EXPECT_EQ(AllocatedBy(replaced, /*has_cxx_runtime=*/true), HeapCall::kUnknown);
  EXPECT_EQ(AllocatedBy(replaced, /*has_cxx_runtime=*/false), HeapCall::kNew)
      << "of the runtime, linked statically";
}

TEST(FreedByTest, OperatorsThatJumpAreKnownByTheirCalls) {
  EXPECT_EQ(FreedBy({{"main", "free"}}), HeapCall::kFree);
  EXPECT_EQ(FreedBy({{"main", kDelete}}), HeapCall::kDelete);
  EXPECT_EQ(FreedBy({{"main", kDeleteArray}}), HeapCall::kDeleteArray);
  EXPECT_EQ(FreedBy({{"main", "_ZN4NodeD1Ev"}}), HeapCall::kUnknown);
  EXPECT_EQ(FreedBy({{"main", "_ZdlPvR4Heap"}}), HeapCall::kUnknown);
  EXPECT_EQ(FreedBy({{kDelete, "free"}, {"main", ""}}), HeapCall::kDeleteEither);
  EXPECT_EQ(FreedBy({{kDelete, "free"}, {"main", kDeleteArray}}), HeapCall::kDeleteArray);
  EXPECT_EQ(FreedBy({{kDeleteArray, "free"}, {"main", ""}}), HeapCall::kDeleteArray);
}

TEST(CxxOperatorsTest, WhatAllocatesAndFreesUnseenMakesPairsUnsure) {
  Analysis analysis;
  EXPECT_FALSE(CxxOperatorsOf(analysis).passed_by);
  analysis.leak_scans.emplace_back().frees_unseen = true;
  analysis.leak_scans.emplace_back().allocations_unseen = true;
  EXPECT_FALSE(CxxOperatorsOf(analysis).passed_by) << "one of both gives no address to another block";
  analysis.leak_scans.back().frees_unseen = true;
  EXPECT_TRUE(CxxOperatorsOf(analysis).passed_by);
  analysis.leak_scans.clear();
  EXPECT_FALSE(CxxOperatorsOf(analysis).passed_by);
  analysis.coverage.notes.push_back({"plug.so was opened with RTLD_DEEPBIND: what it allocates and frees by libc's malloc "
                                     "is not in this trace"});
  EXPECT_TRUE(CxxOperatorsOf(analysis).passed_by) << "without a scan";
}

TEST(AreMismatchedTest, OnlyWhatIsKnownOfBothEnds) {
  const auto mismatched = [](HeapCall allocated, std::vector<HeapCall> ends) {
    for (const HeapCall end : ends) {
      if (!AreMismatched(allocated, end)) return false;
    }
    return true;
  };
  const auto fine = [](HeapCall allocated, std::vector<HeapCall> ends) {
    for (const HeapCall end : ends) {
      if (AreMismatched(allocated, end)) return false;
    }
    return true;
  };
  using enum HeapCall;
  EXPECT_TRUE(mismatched(kMalloc, {kDelete, kDeleteArray, kDeleteEither}));
  EXPECT_TRUE(fine(kMalloc, {kFree, kRealloc, kUnknown}));
  EXPECT_TRUE(mismatched(kNew, {kFree, kRealloc, kDeleteArray}));
  EXPECT_TRUE(fine(kNew, {kDelete, kDeleteEither, kUnknown}));
  EXPECT_TRUE(mismatched(kNewArray, {kFree, kRealloc, kDelete}));
  EXPECT_TRUE(fine(kNewArray, {kDeleteArray, kDeleteEither, kUnknown}));
  EXPECT_TRUE(mismatched(kNewEither, {kFree, kRealloc}));
  EXPECT_TRUE(fine(kNewEither, {kDelete, kDeleteArray, kDeleteEither, kUnknown}));
  EXPECT_TRUE(fine(kUnknown, {kFree, kDelete, kDeleteArray, kDeleteEither, kRealloc, kUnknown}));
}

}  // namespace
}  // namespace memtrace::report::render
