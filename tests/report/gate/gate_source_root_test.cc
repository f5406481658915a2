// A checkout has as many names as links lead to it: places are below its root by each of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "report/gate/source_root.h"
#include "report/names/frame.h"
#include "tests/temp_dir.h"

namespace memtrace::report::gate {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Not;

// real/checkout/src/a.c, and link, which leads to real. A working directory and a $PWD of its own.
class SourceRootTest : public ::testing::Test {
 protected:
  SourceRootTest() : before_(fs::current_path()) {
    fs::create_directories(real_ / "src");
    std::ofstream(real_ / "src/a.c") << "\n";
    fs::create_directory_symlink(real_.parent_path(), link_.parent_path());
    if (const char* pwd = std::getenv("PWD")) pwd_ = pwd;
  }
  ~SourceRootTest() override {
    fs::current_path(before_);
    setenv("PWD", pwd_.c_str(), 1);
  }
  // As `cd` does in a shell.
  static void Enter(const fs::path& directory) {
    fs::current_path(directory);
    setenv("PWD", directory.c_str(), 1);
  }
  static std::string Below(const std::vector<std::string>& roots, const std::string& file) {
    Frame frame;
    frame.file = file;
    frame.role = FrameRole::kProject;
    return BelowRoots(roots, frame);
  }

  const TempDir directory_;
  const fs::path top_ = directory_.path();
  const fs::path real_ = top_ / "real/checkout", link_ = top_ / "link/checkout";
  const fs::path before_;
  std::string pwd_;
};

TEST_F(SourceRootTest, TheWorkingDirectoryHasTheShellsNameToo) {
  Enter(link_);
  // These sources are gone: no link can be followed to them.
  const std::vector<std::string> roots = SourceRoots(".");
  EXPECT_EQ(Below(roots, link_ / "gone/b.c"), "gone/b.c");
  EXPECT_EQ(Below(roots, real_ / "gone/b.c"), "gone/b.c");
  EXPECT_EQ(Below(SourceRoots("src"), link_ / "src/gone.c"), "gone.c");
  EXPECT_EQ(Below(SourceRoots("src"), link_ / "gone/gone.c"), "");
  EXPECT_EQ(Below(SourceRoots("gone"), link_ / "gone/b.c"), "b.c") << "it need not be there";
  EXPECT_EQ(Below(SourceRoots(real_), link_ / "gone/b.c"), "gone/b.c");
  EXPECT_EQ(Below(SourceRoots(real_ / "src"), link_ / "src/gone/b.c"), "gone/b.c");
  EXPECT_EQ(Below(SourceRoots(top_), link_ / "gone/b.c"), "link/checkout/gone/b.c");
  Enter(link_ / "src");
  EXPECT_EQ(Below(SourceRoots(".."), link_ / "gone/b.c"), "gone/b.c");
}

TEST_F(SourceRootTest, ANameOfAnotherDirectoryIsNotTheShells) {
  Enter(link_);
  fs::current_path(top_);  // $PWD is as it was
  EXPECT_THAT(SourceRoots("."), Not(Contains(link_.string())));
  EXPECT_EQ(Below(SourceRoots("."), link_ / "gone/b.c"), "link/checkout/gone/b.c");
  unsetenv("PWD");
  EXPECT_THAT(SourceRoots("."), Contains(top_.string()));
  // What is above a link by its name is not above where it leads.
  fs::create_directory(top_ / "elsewhere");
  fs::create_directory_symlink(real_ / "src", top_ / "elsewhere/src");
  Enter(top_ / "elsewhere/src");
  EXPECT_THAT(SourceRoots(".."), Contains(real_.string()));
  EXPECT_EQ(Below(SourceRoots(".."), top_ / "elsewhere/b.c"), "");
}

TEST_F(SourceRootTest, ASourceMayBeBelowByALink) {
  Enter(top_);
  const std::vector<std::string> roots = SourceRoots(real_);
  EXPECT_EQ(Below(roots, link_ / "src/a.c"), "src/a.c");
  EXPECT_EQ(Below(roots, link_ / "src/../src/a.c"), "src/a.c");
  EXPECT_EQ(Below(roots, link_ / "gone/b.c"), "") << "nobody knows where that was";
  EXPECT_EQ(Below(roots, top_ / "b.c"), "");
  // One of the project's own directories that is elsewhere has its name in the project.
  fs::create_directory(top_ / "shared");
  fs::create_directory_symlink(top_ / "shared", real_ / "shared");
  EXPECT_EQ(Below(roots, real_ / "shared/c.c"), "shared/c.c");
  EXPECT_EQ(Below(roots, top_ / "shared/c.c"), "");
  // Without --source-root, too.
  EXPECT_EQ(Below({real_}, link_ / "src/a.c"), "src/a.c");
}

}  // namespace
}  // namespace memtrace::report::gate
