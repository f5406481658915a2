#include "preload/open_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <vector>

namespace memtrace {
namespace {

constexpr long kUpFrom = 100;

// What a child asks for, in which the numbers below `open` are in use.
std::vector<long> Visited(OpenNumbers& numbers, long open) {
  std::vector<long> visited;
  numbers.ForEachInherited(kUpFrom, [&](long fd) {
    visited.push_back(fd);
    return fd < open;
  });
  return visited;
}

TEST(OpenNumbersTest, AChildAsksForTheNumbersThatWereOurs) {
  OpenNumbers numbers;
  numbers.Add(3);
  numbers.Add(kUpFrom);
  numbers.Add(3);
  numbers.Add(-1);
  EXPECT_EQ(Visited(numbers, kUpFrom), (std::vector<long>{3, kUpFrom}));
  EXPECT_EQ(Visited(numbers, kUpFrom), std::vector<long>()) << "closed by then";
}

TEST(OpenNumbersTest, WhereItCannotBeToldAChildSearchesOnce) {
  for (const bool opening : {true, false}) {
    SCOPED_TRACE(opening);
    OpenNumbers numbers;
    alignas(OpenNumbers::Opening) char place[sizeof(OpenNumbers::Opening)];
    if (opening) {
      new (place) OpenNumbers::Opening(&numbers);  // of a thread that is not in the child
    } else {
      for (long fd = 200; fd < 300; ++fd) numbers.Add(fd);
    }
    std::vector<long> visited = Visited(numbers, kUpFrom + 8);
    EXPECT_TRUE(std::count(visited.begin(), visited.end(), 0));
    EXPECT_EQ(std::count(visited.begin(), visited.end(), kUpFrom + 7), 1);
    EXPECT_LT(visited.size(), 300u);
    EXPECT_EQ(Visited(numbers, kUpFrom), std::vector<long>());
  }
}

}  // namespace
}  // namespace memtrace
