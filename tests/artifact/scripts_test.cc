// The scripts of a newcomer, as far as they can be tried without installing anything: apt-get, dpkg-query and
// sudo are made up. scripts/try-in-chroot runs the real ones.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/artifact/packaging_shell.h"

namespace memtrace::packaging {
namespace {

namespace fs = std::filesystem;

class ScriptsTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::permissions(directory_.path(), fs::perms(0755));
    fs::create_directories(tree());
    fs::copy(MEMTRACE_SOURCE_DIR "/scripts", tree() / "scripts", fs::copy_options::recursive);
    fs::create_directories(fakes());
    fs::create_directories(calls());
    fs::permissions(calls(), fs::perms(0777));
    Fake("dpkg-query", "exit 1");  // nothing is installed
    Fake("apt-get", "echo \"$*\" >>'" + (calls() / "apt-get").string() + "'");
    // It wants a password, and asks for it where it may.
    Fake("sudo",
         "case $1 in -v) echo asks >>'" + (calls() / "sudo").string() + "' ;;\n"
         "  --) shift; exec \"$@\" ;;\n"
         "  *) echo 'sudo: a password is required' >&2; exit 1 ;;\nesac");
    ASSERT_EQ(Shell("chmod -R a+rX '" + directory_.path() + "'").exit_status, 0);
  }

  fs::path tree() const { return directory_ / "tree"; }
  fs::path fakes() const { return directory_ / "fakes"; }
  fs::path calls() const { return directory_ / "calls"; }

  void Fake(const std::string& name, const std::string& body) {
    std::ofstream(fakes() / name) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(fakes() / name, fs::perms(0755));
  }
  std::string Calls(const std::string& name) const {
    return fs::exists(calls() / name) ? ReadFile((calls() / name).string()) : "";
  }
  // `command` of an ordinary user in the tree.
  std::string AsUser(const std::string& command) const {
    return std::string(geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "") +
           "env PATH='" + fakes().string() + "':\"$PATH\" TMPDIR=/tmp bash '" +
           (tree() / "scripts").string() + "/" + command;
  }

  TempDir directory_;
};

TEST_F(ScriptsTest, SetupAsksForThePasswordOfSudoOnATerminal) {
  std::ofstream(directory_ / "command.sh") << AsUser("setup' build") << "\n";
  const CommandResult setup =
      Shell("script -qec 'sh " + (directory_ / "command.sh") + "' /dev/null </dev/null");
  EXPECT_EQ(setup.exit_status, 0) << setup.output;
  EXPECT_EQ(Calls("sudo"), "asks\n") << setup.output;
  EXPECT_NE(Calls("apt-get").find("install -y"), std::string::npos) << setup.output;
}

TEST_F(ScriptsTest, SetupSaysWhatToDoWhereNobodyCanBeAsked) {
  const CommandResult setup = Shell(AsUser("setup' build") + " </dev/null");
  EXPECT_EQ(setup.exit_status, 1) << setup.output;
  EXPECT_EQ(Calls("apt-get"), "") << setup.output;
  EXPECT_NE(setup.output.find("there is no terminal"), std::string::npos) << setup.output;
  EXPECT_NE(setup.output.find("as root: apt-get install"), std::string::npos) << setup.output;
}

// What README's "Install" needs, and what would compile everything anew if it came later.
TEST_F(ScriptsTest, PackagesOfTheBuildAreThoseOfThePackageToo) {
  const CommandResult packages = Shell(
      "bash -c 'source " MEMTRACE_SOURCE_DIR "/scripts/lib.sh; packages_of build'");
  for (const char* name : {"cmake\n", "dpkg-dev\n", "file\n", "ccache\n"}) {
    EXPECT_NE(packages.output.find(name), std::string::npos) << name << packages.output;
  }
}

TEST_F(ScriptsTest, DemoSaysAtOnceThatNothingCanBePreloadedFromThere) {
  const fs::path with_space = fs::path(directory_ / "with space");
  fs::create_directories(with_space);
  fs::copy(tree() / "scripts", with_space / "scripts", fs::copy_options::recursive);
  const CommandResult demo =
      Shell("env PATH='" + fakes().string() + "':\"$PATH\" bash '" +
            (with_space / "scripts/demo").string() + "' </dev/null");
  EXPECT_EQ(demo.exit_status, 1) << demo.output;
  EXPECT_NE(demo.output.find("cannot be preloaded"), std::string::npos) << demo.output;
  EXPECT_EQ(Calls("apt-get"), "") << demo.output;
}

// npm's own words: what is wrong is not always the network.
TEST_F(ScriptsTest, ConfiguringSaysWhatNpmFoundWrong) {
  std::ofstream(directory_ / "try.cmake")
      << "include(" MEMTRACE_SOURCE_DIR "/web/npm_error.cmake)\n"
         "foreach(said IN ITEMS \"npm ERR! code EACCES\\nnpm ERR! syscall mkdir\\n"
         "npm ERR! Your cache [has] \\\"root\\\" files\\nnpm ERR! more\\n\" \"sh: npm: not found\\n\" \"\")\n"
         "  memtrace_npm_error(\"${said}\" why)\n  message(\"<${why}>\")\nendforeach()\n";
  EXPECT_EQ(Shell("cmake -P '" + (directory_ / "try.cmake") + "'").output,
            "<EACCES: Your cache  has   root  files>\n<sh: npm: not found>\n<>\n");
}

}  // namespace
}  // namespace memtrace::packaging
