// Which function began and ended a block, by the innermost calls of its stacks.

#include <gtest/gtest.h>

#include "report/render/mismatches.h"

namespace memtrace::report::render {
namespace {

using Calls = std::vector<SiteSymbols::Call>;

constexpr char kNew[] = "operator new(unsigned long)";
constexpr char kNewArray[] = "operator new[](unsigned long)";
constexpr char kDelete[] = "operator delete(void*, unsigned long)";
constexpr char kDeleteArray[] = "operator delete[](void*)";

TEST(AllocatedByTest, WhatTheCallNamesComesFirst) {
  EXPECT_EQ(AllocatedBy({{"main", "malloc"}}), HeapCall::kMalloc);
  EXPECT_EQ(AllocatedBy({{"main", "aligned_alloc"}}), HeapCall::kMalloc);
  EXPECT_EQ(AllocatedBy({{"main", kNew}}), HeapCall::kNew) << "which jumped to malloc";
  EXPECT_EQ(AllocatedBy({{"main", kNewArray}}), HeapCall::kNewArray);
  EXPECT_EQ(AllocatedBy({{"main", "Wrapper()"}}), HeapCall::kUnknown) << "which jumped";
  EXPECT_EQ(AllocatedBy({{"main", ""}}), HeapCall::kUnknown);
  EXPECT_EQ(AllocatedBy({}), HeapCall::kUnknown);
}

TEST(AllocatedByTest, AnOperatorOnTheStackIsSoWithWhatCalledIt) {
  EXPECT_EQ(AllocatedBy({{kNew, "malloc"}, {"main", kNew}}), HeapCall::kNew);
  EXPECT_EQ(AllocatedBy({{kNew, "malloc"}, {"main", kNewArray}}), HeapCall::kNewArray);
  EXPECT_EQ(AllocatedBy({{kNew, "malloc"}, {"main", ""}}), HeapCall::kNewEither);
  EXPECT_EQ(AllocatedBy({{kNew, ""}, {"main", "Jumps()"}}), HeapCall::kNewEither);
  EXPECT_EQ(AllocatedBy({{kNew, "malloc"},
                         {"operator new[](unsigned long, std::nothrow_t const&)", kNewArray},
                         {"main", "operator new[](unsigned long, std::nothrow_t const&)"}}),
            HeapCall::kNewArray);
}

TEST(AllocatedByTest, AnOperatorOfAClassIsAFunctionLikeOthers) {
  EXPECT_EQ(AllocatedBy({{"Node::operator new(unsigned long)", "malloc"}, {"main", kNew}}),
            HeapCall::kMalloc);
}

TEST(FreedByTest, OperatorsThatJumpAreKnownByTheirCalls) {
  EXPECT_EQ(FreedBy({{"main", "free"}}), HeapCall::kFree);
  EXPECT_EQ(FreedBy({{"main", kDelete}}), HeapCall::kDelete);
  EXPECT_EQ(FreedBy({{"main", kDeleteArray}}), HeapCall::kDeleteArray);
  EXPECT_EQ(FreedBy({{"main", "Node::~Node()"}}), HeapCall::kUnknown);
  EXPECT_EQ(FreedBy({{kDelete, "free"}, {"main", ""}}), HeapCall::kDeleteEither);
  EXPECT_EQ(FreedBy({{kDelete, "free"}, {"main", kDeleteArray}}), HeapCall::kDeleteArray);
  EXPECT_EQ(FreedBy({{kDeleteArray, "free"}, {"main", ""}}), HeapCall::kDeleteArray);
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
