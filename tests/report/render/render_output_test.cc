#include "report/render/output.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "report/render/progress.h"
#include "tests/temp_dir.h"

namespace memtrace::report::render {
namespace {

namespace fs = std::filesystem;

class OutputTest : public testing::Test {
 protected:
  size_t Files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_.path()), {}));
  }
  static std::string Read(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  TempDir directory_;
};

TEST_F(OutputTest, AFileAppearsWholeAndReadable) {
  const fs::path path = directory_ / "report.json";
  {
    auto out = Output::Open(path);
    ASSERT_TRUE(out.ok());
    out->Write(std::string(200000, 'x'));
    EXPECT_FALSE(fs::exists(path));
    ASSERT_TRUE(out->Commit().ok());
  }
  EXPECT_EQ(Read(path), std::string(200000, 'x'));
  EXPECT_EQ(Files(), 1u);
  const mode_t mask = umask(0);
  umask(mask);
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask);
}

TEST_F(OutputTest, WithoutCommitTheOldFileStaysAndNothingIsLeftBehind) {
  const fs::path path = directory_ / "report.json";
  std::ofstream(path) << "old";
  {
    auto out = Output::Open(path);
    ASSERT_TRUE(out.ok());
    out->Write(std::string(200000, 'x'));
  }
  EXPECT_EQ(Read(path), "old");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(OutputTest, ADirectoryThatDoesNotExistIsAnErrorThatNamesIt) {
  const auto out = Output::Open(directory_ / "none/x");
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().message().find("none/x: No such file or directory"),
            absl::string_view::npos)
      << out.status();
  EXPECT_FALSE(Output::Open(directory_.path()).ok());
}

TEST_F(OutputTest, AFullDeviceIsAnError) {
  auto out = Output::Open("/dev/full");
  ASSERT_TRUE(out.ok());
  out->Write("x");
  EXPECT_FALSE(out->Commit().ok());
}

TEST(ProgressTest, TheLineShowsTheShare) {
  EXPECT_EQ(ProgressLine("reading", 0.5),
            "memtrace: reading     [########        ]  50 %");
  EXPECT_EQ(ProgressLine("reading", -1).size(), ProgressLine("reading", 7).size());
}

TEST(ProgressTest, TheLineShowsTheRateAndTheRest) {
  EXPECT_EQ(ProgressLine("reading", 0.25, 152'800'000, 4),
            "memtrace: reading     [####            ]  25 %, 38.2 M events/s, 0:12 left");
  EXPECT_EQ(ProgressLine("symbolizing", 0.5, 0, 4000),
            "memtrace: symbolizing [########        ]  50 %, 1:06:40 left");
  // Nothing is foretold from the first moments, or from nothing.
  EXPECT_EQ(ProgressLine("reading", 0.01, 1000, 0.5), ProgressLine("reading", 0.01));
  EXPECT_EQ(ProgressLine("reading", 0, 0, 60), ProgressLine("reading", 0));
  EXPECT_LE(ProgressLine("symbolizing", 1e-9, 10'000'000, 1e9).size(), 80u);
}

}  // namespace
}  // namespace memtrace::report::render
