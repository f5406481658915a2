// What `cmake --install` leaves behind is complete, works from wherever it is
// moved to, and can be used by another CMake project.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "tests/artifact/packaging_shell.h"

namespace memtrace::packaging {
namespace {

namespace fs = std::filesystem;

// One installation for all tests of this program.
class InstallTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TempDir;
    installed_ = new CommandResult(Shell("cmake --install '" MEMTRACE_BUILD_DIR "' --prefix '" +
                                         prefix().string() + "'"));
  }
  static void TearDownTestSuite() {
    delete installed_;
    delete directory_;
  }
  void SetUp() override { ASSERT_EQ(installed_->exit_status, 0) << installed_->output; }

  static fs::path prefix() { return *directory_ / "prefix"; }
  static fs::path scratch(const std::string& name) { return *directory_ / name; }

  static TempDir* directory_;
  static CommandResult* installed_;
};
TempDir* InstallTest::directory_;
CommandResult* InstallTest::installed_;

TEST_F(InstallTest, HasEveryPart) {
  for (const char* file :
       {"bin/memtrace", "bin/memtrace-valgrind", MEMTRACE_LIBDIR "/libmemtrace.so",
        MEMTRACE_LIBDIR "/cmake/memtrace/memtraceConfig.cmake",
        MEMTRACE_LIBDIR "/cmake/memtrace/memtraceConfigVersion.cmake",
        "share/man/man1/memtrace.1", "share/man/man1/memtrace-run.1",
        "share/man/man1/memtrace-report.1", "share/man/man1/memtrace-dump.1",
        "share/man/man1/memtrace-info.1", "share/man/man1/memtrace-pack.1",
        "include/memtrace.h", "share/man/man3/memtrace.h.3", "share/man/man1/memtrace-leaks.1",
        "share/man/man7/libmemtrace.7", "share/bash-completion/completions/memtrace",
        "share/zsh/site-functions/_memtrace", "share/fish/vendor_completions.d/memtrace.fish",
        "share/bash-completion/completions/memtrace-valgrind",
        "share/zsh/site-functions/_memtrace-valgrind",
        "share/fish/vendor_completions.d/memtrace-valgrind.fish",
        "share/doc/memtrace/LICENSE", "share/doc/memtrace/README.md"}) {
    EXPECT_TRUE(fs::is_regular_file(prefix() / file)) << file;
  }
}

// What the documents and manual pages refer to has come with them.
TEST_F(InstallTest, HasTheDocumentsThatAreReferredTo) {
  const auto find_all = [](const std::string& text, const std::string& pattern) {
    std::set<std::string> found;
    const std::regex expression(pattern);
    for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it) {
      found.insert((*it)[1]);
    }
    return found;
  };
  const fs::path documents = prefix() / "share/doc/memtrace";
  int references = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(documents)) {
    if (entry.path().extension() != ".md") continue;
    for (const std::string& link : find_all(ReadFile(entry.path().string()), "\\]\\(([^)#: ]+)[)#]")) {
      EXPECT_TRUE(fs::exists(entry.path().parent_path() / link)) << entry.path() << " refers to " << link;
      ++references;
    }
  }
  EXPECT_GE(references, 50);
  references = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(prefix() / "share/man")) {
    if (!entry.is_regular_file()) continue;
    const std::string page = std::regex_replace(ReadFile(entry.path().string()), std::regex("\\\\-"), "-");
    for (const std::string& name : find_all(page, "([A-Za-z/-]+\\.md)")) {
      EXPECT_TRUE(fs::exists(prefix() / name) || fs::exists(documents / name) ||
                  fs::exists(documents / "docs" / name)) << entry.path() << " refers to " << name;
      EXPECT_FALSE(name.starts_with("docs/")) << entry.path() << ": " << name << " is of the sources";
      ++references;
    }
  }
  EXPECT_GE(references, 5);
}

TEST_F(InstallTest, HasNothingOfTheTestsAndExamples) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(prefix())) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(name.find("test"), std::string::npos) << entry.path();
    EXPECT_NE(name, "examples") << entry.path();
  }
}

TEST_F(InstallTest, NamesNoBuildDirectoryInItsBinaries) {
  for (const char* file : {"bin/memtrace", MEMTRACE_LIBDIR "/libmemtrace.so"}) {
    const CommandResult dynamic = Shell("readelf -dW '" + (prefix() / file).string() + "'");
    EXPECT_EQ(dynamic.exit_status, 0) << dynamic.output;
    EXPECT_EQ(dynamic.output.find("RUNPATH"), std::string::npos) << dynamic.output;
    EXPECT_EQ(dynamic.output.find("RPATH"), std::string::npos) << dynamic.output;
  }
}

TEST_F(InstallTest, TracesAProgramFromWhereverItIsMovedTo) {
  const fs::path moved = scratch("moved_elsewhere");
  fs::copy(prefix(), moved, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const fs::path trace = scratch("moved.mtr");
  const std::string memtrace = "'" + (moved / "bin/memtrace").string() + "'";
  const CommandResult run =
      Shell(memtrace + " run -o '" + trace.string() + "' -- /bin/sh -c 'echo out; exit 7'");
  EXPECT_EQ(run.exit_status, 7) << run.output;
  EXPECT_NE(run.output.find("out\n"), std::string::npos) << run.output;
  const CommandResult info = Shell(memtrace + " info '" + trace.string() + "'");
  EXPECT_EQ(info.exit_status, 0) << info.output;
}

TEST_F(InstallTest, ServesAnotherCMakeProject) {
  const fs::path build = scratch("consumer");
  const CommandResult configured =
      Shell("cmake -G Ninja -DCMAKE_BUILD_TYPE=Debug -S '" MEMTRACE_SOURCE_DIR
            "/tests/artifact/packaging_consumer' -B '" + build.string() +
            "' -DCMAKE_PREFIX_PATH='" + prefix().string() + "'");
  ASSERT_EQ(configured.exit_status, 0) << configured.output;
  EXPECT_NE(configured.output.find("executable " + (prefix() / "bin/memtrace").string() +
                                   " library " +
                                   (prefix() / MEMTRACE_LIBDIR "/libmemtrace.so").string()),
            std::string::npos)
      << configured.output;
  const CommandResult tested =
      Shell("cmake --build '" + build.string() + "' && ctest --output-on-failure --test-dir '" +
            build.string() + "'");
  EXPECT_EQ(tested.exit_status, 0) << tested.output;
  EXPECT_NE(tested.output.find("100% tests passed, 0 tests failed out of 4"), std::string::npos)
      << tested.output;
}

TEST_F(InstallTest, RefusesAProjectThatWantsAnotherMajorVersion) {
  const fs::path project = scratch("future");
  fs::create_directories(project);
  std::ofstream(project / "CMakeLists.txt")
      << "cmake_minimum_required(VERSION 3.25)\nproject(future LANGUAGES NONE)\n"
         "find_package(memtrace 999 REQUIRED CONFIG)\n";
  const CommandResult configured =
      Shell("cmake -G Ninja -S '" + project.string() + "' -B '" + (project / "build").string() +
            "' -DCMAKE_PREFIX_PATH='" + prefix().string() + "'");
  EXPECT_NE(configured.exit_status, 0);
  EXPECT_NE(configured.output.find("memtrace"), std::string::npos) << configured.output;
  EXPECT_NE(configured.output.find("999"), std::string::npos) << configured.output;
}

}  // namespace
}  // namespace memtrace::packaging
