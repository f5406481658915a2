// A sealed file gives what was put into it, or nothing.

#include "base/sealed_file.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace::base {
namespace {

TEST(SealedFileTest, GivesWhatWasPutIntoItToWhoAsksForItsKind) {
  const TempDir directory;
  const std::string path = directory / "file";
  const std::string zeros(100'000, '\0');
  for (const std::string& content : {std::string(), std::string("some"), zeros}) {
    ASSERT_TRUE(WriteSealedFile(path, "MTTEST01", content));
    std::string read = "of before";
    ASSERT_TRUE(ReadSealedFile(path, "MTTEST01", &read));
    EXPECT_EQ(read, content);
    EXPECT_FALSE(ReadSealedFile(path, "MTTEST02", &read));
  }
  EXPECT_LT(ReadFile(path).size(), 1000u);
}

TEST(SealedFileTest, ChangedInAnyByteOrCutAnywhereItIsAsIfItWereNotThere) {
  const TempDir directory;
  const std::string path = directory / "file";
  ASSERT_TRUE(WriteSealedFile(path, "MTTEST01", "what is in it"));
  const std::string whole = ReadFile(path);
  std::string read;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 1;
    WriteFile(path, changed);
    EXPECT_FALSE(ReadSealedFile(path, "MTTEST01", &read)) << "byte " << i;
    WriteFile(path, whole.substr(0, i));
    EXPECT_FALSE(ReadSealedFile(path, "MTTEST01", &read)) << "cut at " << i;
  }
  WriteFile(path, whole + "x");
  EXPECT_FALSE(ReadSealedFile(path, "MTTEST01", &read));
}

}  // namespace
}  // namespace memtrace::base
