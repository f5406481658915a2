// What `cpack` makes is a Debian package that keeps to Debian's layout and
// works. scripts/try-in-chroot --deb installs it on a bare Debian besides.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/artifact/packaging_shell.h"

namespace memtrace::packaging {
namespace {

namespace fs = std::filesystem;

// One package for all tests of this program.
class DebTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TempDir;
    packed_ = new CommandResult(
        Shell("umask 077; cd '" MEMTRACE_BUILD_DIR "' && cpack -G DEB -B '" +
              directory_->path() + "'"));
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_->path())) {
      if (entry.path().extension() == ".deb") deb_ = new fs::path(entry.path());
    }
  }
  static void TearDownTestSuite() {
    delete deb_;
    delete packed_;
    delete directory_;
  }
  void SetUp() override {
    ASSERT_EQ(packed_->exit_status, 0) << packed_->output;
    ASSERT_NE(deb_, nullptr) << packed_->output;
  }

  static std::string Field(const std::string& name) {
    CommandResult result = Shell("dpkg-deb -f '" + deb_->string() + "' " + name);
    while (!result.output.empty() && result.output.back() == '\n') result.output.pop_back();
    return result.output;
  }

  static TempDir* directory_;
  static CommandResult* packed_;
  static fs::path* deb_;
};
TempDir* DebTest::directory_;
CommandResult* DebTest::packed_;
fs::path* DebTest::deb_;

TEST_F(DebTest, SaysWhatItIsAndWhatItNeeds) {
  EXPECT_EQ(Field("Package"), "memtrace");
  EXPECT_EQ(Field("Section"), "devel");
  EXPECT_EQ(Field("Priority"), "optional");
  EXPECT_EQ(Field("Version").find(MEMTRACE_VERSION_STRING "-"), 0u) << Field("Version");
  EXPECT_EQ(Field("Architecture") + "\n", Shell("dpkg --print-architecture").output);
  EXPECT_NE(Field("Maintainer").find('@'), std::string::npos);
  const std::string depends = Field("Depends");  // by dpkg-shlibdeps, with versions
  EXPECT_NE(depends.find("libc6 (>= "), std::string::npos) << depends;
  EXPECT_NE(depends.find("libdw1 (>= "), std::string::npos) << depends;
  EXPECT_NE(depends.find("libzstd1 (>= "), std::string::npos) << depends;
  EXPECT_EQ(depends.find("-dev"), std::string::npos) << depends;
  EXPECT_EQ(depends.find("libunwind"), std::string::npos) << depends;
}

TEST_F(DebTest, KeepsToDebiansLayout) {
  const CommandResult listing = Shell("dpkg-deb -c '" + deb_->string() + "'");
  ASSERT_EQ(listing.exit_status, 0) << listing.output;
  std::vector<std::string> missing;
  for (const char* line :
       {"-rwxr-xr-x root/root ./usr/bin/memtrace", "-rw-r--r-- root/root ./usr/lib/libmemtrace.so",
        "-rw-r--r-- root/root ./usr/share/doc/memtrace/copyright",
        "-rw-r--r-- root/root ./usr/share/doc/memtrace/changelog.Debian.gz",
        "-rw-r--r-- root/root ./usr/share/doc/memtrace/docs/report.md",
        "-rw-r--r-- root/root ./usr/share/man/man1/memtrace.1.gz",
        "-rw-r--r-- root/root ./usr/share/man/man1/memtrace-run.1.gz",
        "-rw-r--r-- root/root ./usr/include/memtrace.h",
        "-rw-r--r-- root/root ./usr/share/man/man3/memtrace.h.3.gz",
        "-rw-r--r-- root/root ./usr/share/man/man7/libmemtrace.7.gz",
        "-rw-r--r-- root/root ./usr/share/bash-completion/completions/memtrace",
        "-rw-r--r-- root/root ./usr/share/bash-completion/completions/memtrace-valgrind",
        "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_memtrace",
        "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_memtrace-valgrind",
        "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/memtrace.fish",
        "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/memtrace-valgrind.fish"}) {
    // A line of the listing: mode owner/group size date time path
    const std::string wanted = line;
    const std::string mode_owner = wanted.substr(0, wanted.rfind(' '));
    const std::string path = wanted.substr(wanted.rfind(' '));
    bool found = false;
    std::istringstream lines(listing.output);
    for (std::string entry; std::getline(lines, entry);) {
      found |= entry.starts_with(mode_owner) && entry.ends_with(path);
    }
    if (!found) missing.push_back(wanted);
  }
  EXPECT_TRUE(missing.empty()) << testing::PrintToString(missing) << "\n" << listing.output;
  for (const char* place : {"./usr/local", "./opt", "./etc", "site-functions", "/LICENSE"}) {
    EXPECT_EQ(listing.output.find(place), std::string::npos) << listing.output;
  }
}

TEST_F(DebTest, WorksWhenUnpacked) {
  const fs::path root = *directory_ / "root";
  ASSERT_EQ(Shell("dpkg-deb -x '" + deb_->string() + "' '" + root.string() + "'").exit_status, 0);
  const std::string memtrace = "'" + (root / "usr/bin/memtrace").string() + "'";
  const std::string trace = "'" + *directory_ / "sh.mtr" + "'";
  const CommandResult run = Shell(memtrace + " run -o " + trace + " -- /bin/sh -c 'exit 3'");
  EXPECT_EQ(run.exit_status, 3) << run.output;
  const CommandResult report = Shell(memtrace + " report " + trace);
  EXPECT_EQ(report.exit_status, 0) << report.output;
}

TEST_F(DebTest, LeavesTheLibraryItsSymbolsForTheLoaderOnly) {
  const fs::path root = *directory_ / "stripped";
  ASSERT_EQ(Shell("dpkg-deb -x '" + deb_->string() + "' '" + root.string() + "'").exit_status, 0);
  const CommandResult sections =
      Shell("readelf -SW '" + (root / "usr/lib/libmemtrace.so").string() + "'");
  EXPECT_NE(sections.output.find(".dynsym"), std::string::npos) << sections.output;
  EXPECT_NE(sections.output.find(".eh_frame"), std::string::npos) << sections.output;
  EXPECT_EQ(sections.output.find(".debug_info"), std::string::npos) << sections.output;
  EXPECT_EQ(sections.output.find(" .symtab"), std::string::npos) << sections.output;
}

}  // namespace
}  // namespace memtrace::packaging
