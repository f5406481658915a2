#include "format/record_decoder.h"
#include "format/record_encoder.h"

#include <gtest/gtest.h>

#include <string>

namespace memtrace::format {
namespace {

TEST(VarintTest, KeepsEveryBitLength) {
  for (int bits = 0; bits <= 64; ++bits) {
    const uint64_t value = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    uint8_t buffer[kMaxVarintBytes];
    const uint8_t* end = PutVarint(buffer, value);
    uint64_t read = 0;
    EXPECT_EQ(GetVarint(buffer, end, &read), end);
    EXPECT_EQ(read, value);
    EXPECT_EQ(GetVarint(buffer, end - 1, &read), nullptr) << "cut by a byte";
  }
}

TEST(VarintTest, RefusesMoreThanSixtyFourBits) {
  const uint8_t too_long[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
  uint64_t value;
  EXPECT_EQ(GetVarint(too_long, too_long + sizeof(too_long), &value), nullptr);
}

TEST(ZigZagTest, SmallDifferencesAreSmallNumbers) {
  EXPECT_EQ(ZigZag(0), 0u);
  EXPECT_EQ(ZigZag(uint64_t{0} - 1), 1u);
  EXPECT_EQ(ZigZag(1), 2u);
  EXPECT_EQ(ZigZag(uint64_t{1} << 63), UINT64_MAX);
  for (unsigned bit = 0; bit < 64; ++bit) {
    const uint64_t difference = uint64_t{1} << bit;
    EXPECT_EQ(UnZigZag(ZigZag(difference)), difference);
    EXPECT_EQ(UnZigZag(ZigZag(0 - difference)), 0 - difference);
  }
}

TEST(RecordTest, ReadsBackWhatWasWritten) {
  uint8_t buffer[256];
  RecordEncoder encoder(buffer, sizeof(buffer));
  encoder.Begin(RecordTag::kModule);
  encoder.Number(7);
  encoder.Bytes("/lib/libc.so.6");
  encoder.End();
  encoder.Begin(RecordTag::kNote);
  encoder.Bytes("");
  encoder.End();

  RecordDecoder decoder(encoder.data(), encoder.size());
  ASSERT_TRUE(decoder.Next());
  EXPECT_EQ(decoder.tag(), static_cast<uint64_t>(RecordTag::kModule));
  EXPECT_EQ(decoder.body().Number(), 7u);
  EXPECT_EQ(decoder.body().Bytes(), "/lib/libc.so.6");
  EXPECT_TRUE(decoder.body().at_end());
  EXPECT_EQ(decoder.body().Number(), 0u) << "a field the writer did not know";
  ASSERT_TRUE(decoder.Next());
  EXPECT_EQ(decoder.body().Bytes(), "");
  EXPECT_FALSE(decoder.Next());
  EXPECT_TRUE(decoder.ok());
}

TEST(RecordTest, TakesBackTheRecordThatDoesNotFit) {
  uint8_t buffer[32];
  RecordEncoder encoder(buffer, sizeof(buffer));
  encoder.Begin(RecordTag::kNote);
  encoder.Bytes("fits");
  encoder.End();
  const size_t before = encoder.size();
  encoder.Begin(RecordTag::kNote);
  encoder.Bytes(std::string(100, 'x'));
  encoder.End();
  EXPECT_TRUE(encoder.overflowed());
  EXPECT_EQ(encoder.size(), before);
}

TEST(RecordTest, EveryCutIsSeenOrLeavesWholeRecords) {
  uint8_t buffer[64];
  RecordEncoder encoder(buffer, sizeof(buffer));
  for (int i = 0; i < 3; ++i) {
    encoder.Begin(RecordTag::kNote);
    encoder.Bytes("text");
    encoder.End();
  }
  const size_t record = encoder.size() / 3;
  for (size_t cut = 0; cut <= encoder.size(); ++cut) {
    RecordDecoder decoder(encoder.data(), cut);
    size_t whole = 0;
    while (decoder.Next()) ++whole;
    EXPECT_EQ(whole, cut / record);
    EXPECT_EQ(decoder.ok(), cut % record == 0);
  }
}

}  // namespace
}  // namespace memtrace::format
