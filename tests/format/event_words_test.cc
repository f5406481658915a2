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

TEST(EventWordsTest, NodeKeepsSlotParentAndInstance) {
  const uint32_t instance = 0xfabc;
  const uint64_t head = NodeHead(0x7f0012345678, instance);
  const uint64_t link = NodeLink(0xabcdef, 0x123456, instance);
  EXPECT_EQ(AddressOf(head), 0x7f0012345678u);
  EXPECT_EQ(NodeSlot(link), 0xabcdefu);
  EXPECT_EQ(NodeParentSlot(link), 0x123456u);
  EXPECT_EQ(NodeInstance(head, link), instance);
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
