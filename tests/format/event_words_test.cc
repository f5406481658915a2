#include "format/event_words.h"

#include <gtest/gtest.h>

namespace memtrace::format {
namespace {

TEST(EventWordsTest, HeadKeepsItsParts) {
  const uint64_t head = Head(EventKind::kMalloc, 0x7fffdeadbeef, 0xabc);
  EXPECT_EQ(KindOf(head), EventKind::kMalloc);
  EXPECT_EQ(AddressOf(head), 0x7fffdeadbeefu);
  EXPECT_EQ(DetailOf(head), 0xabcu);
  EXPECT_EQ(EventWords(head), 2u);
}

TEST(EventWordsTest, TimeKeepsSixtyBits) {
  const uint64_t ticks = 0x0fedcba987654321;
  EXPECT_EQ(TicksOf(TimeWord(ticks)), ticks);
  EXPECT_EQ(KindOf(TimeWord(ticks)), EventKind::kTime);
}

TEST(EventWordsTest, APathKeepsItsSlotsAndNodes) {
  const uint64_t head = PathHead(0x123456, 0xabcdef, 1025);
  EXPECT_EQ(KindOf(head), EventKind::kPath);
  EXPECT_EQ(PathParent(head), 0x123456u);
  EXPECT_EQ(PathFirst(head), 0xabcdefu);
  EXPECT_EQ(PathNodes(head), 1025u);
  EXPECT_EQ(EventWords(head), 1026u);
  const uint64_t node = NodeWord(0x7f0012345678, 0xfabc);
  EXPECT_EQ(NodePc(node), 0x7f0012345678u);
  EXPECT_EQ(NodeInstance(node), 0xfabcu);
}

TEST(EventWordsTest, APathWithoutNodesIsInvalid) {
  EXPECT_EQ(EventWords(PathHead(1, 2, 0)), 0u);
}

TEST(EventWordsTest, ExtendedTellsItsLength) {
  const uint64_t head = ExtendedHead(ExtendedType::kMmap, 9);
  EXPECT_EQ(ExtendedTypeOf(head), ExtendedType::kMmap);
  EXPECT_EQ(EventWords(head), 10u);
}

TEST(EventWordsTest, AFreeMayCarryAStack) {
  EXPECT_EQ(EventWords(Head(EventKind::kFree, 16, 0)), 1u);
  EXPECT_EQ(EventWords(Head(EventKind::kFree, 16, 1)), 2u);
}

}  // namespace
}  // namespace memtrace::format
