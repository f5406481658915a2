#include "report/base/common_prefix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CommonPrefixTest, IsTheLongestWithAnyOtherList) {
  const std::vector<std::string> load = {"make", "parse", "load"}, save = {"make", "parse", "save"},
                                 draw = {"make", "draw"}, shorter = {"make", "parse"}, none;
  EXPECT_THAT(LongestCommonPrefixes({draw, save, none, load}), ElementsAre(1, 2, 0, 2));
  EXPECT_THAT(LongestCommonPrefixes({load, shorter, draw}), ElementsAre(2, 2, 1));
  EXPECT_THAT(LongestCommonPrefixes({load, draw, load}), ElementsAre(3, 1, 3))
      << "two that are the same";
  EXPECT_THAT(LongestCommonPrefixes({load}), ElementsAre(0));
  EXPECT_THAT(LongestCommonPrefixes({}), IsEmpty());
}

}  // namespace
}  // namespace memtrace::report
