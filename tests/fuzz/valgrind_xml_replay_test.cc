// The entry of valgrind_xml_fuzz over its seeds: as they are, cut, and with bits flipped.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/valgrind_xml_entry.h"

extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1"; }

namespace memtrace::report {
namespace {

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const auto& entry :
       std::filesystem::directory_iterator(MEMTRACE_SOURCE_DIR "/tests/fuzz/valgrind_xml")) {
    std::ifstream in(entry.path(), std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

bool Replay(const std::string& bytes) {
  return FuzzValgrindXml(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

TEST(ValgrindXmlReplayTest, EverySeedIsRead) {
  ASSERT_GE(Seeds().size(), 3u);
  for (const std::string& seed : Seeds()) EXPECT_TRUE(Replay(seed)) << seed;
}

TEST(ValgrindXmlReplayTest, CutAnywhereAndWithBitsFlippedNothingBreaks) {
  std::minstd_rand random(20240229);
  int read = 0;
  for (const std::string& seed : Seeds()) {
    for (size_t length = 0; length < seed.size(); length += 1 + seed.size() / 200) {
      read += Replay(seed.substr(0, length));
    }
    for (int i = 0; i < 400; ++i) {
      std::string bytes = seed;
      for (int flips = 1 + i % 4; flips > 0; --flips) {
        const size_t bit = random() % (bytes.size() * 8);
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      }
      read += Replay(bytes);
    }
  }
  EXPECT_GT(read, 200);  // most of them are still XML
}

}  // namespace
}  // namespace memtrace::report
