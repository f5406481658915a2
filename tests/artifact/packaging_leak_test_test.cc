// memtrace_add_leak_test of an installed memtrace, in another CMake project, under ctest itself:
// a program that leaks is red, a clean one green, and one that fails keeps its failure.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "tests/artifact/packaging_shell.h"

namespace memtrace::packaging {
namespace {

namespace fs = std::filesystem;

const std::string kSource = MEMTRACE_SOURCE_DIR "/tests/artifact/leak_consumer";

class LeakTestTest : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_ / name; }

  void Configure() {
    const CommandResult installed = Shell("cmake --install '" MEMTRACE_BUILD_DIR "' --prefix '" +
                                          path("prefix").string() + "'");
    ASSERT_EQ(installed.exit_status, 0) << installed.output;
    fs::copy(kSource, path("project"));
    Reconfigure();
  }
  void Reconfigure() {
    const CommandResult built =
        Shell("cmake -G Ninja -DCMAKE_BUILD_TYPE=Debug -S '" + path("project").string() + "' -B '" +
              path("build").string() + "' -DCMAKE_PREFIX_PATH='" + path("prefix").string() +
              "' && cmake --build '" + path("build").string() + "'");
    ASSERT_EQ(built.exit_status, 0) << built.output;
  }
  // What ctest says of each test: "Passed", "***Failed", ...
  std::map<std::string, std::string> RunCtest(const std::string& options, std::string* output) {
    const CommandResult result =
        Shell("ctest -j2 --output-on-failure --test-dir '" + path("build").string() + "' " + options);
    std::map<std::string, std::string> verdicts;
    const std::regex line("Test +#[0-9]+: ([a-z_-]+) \\.+ *([A-Za-z*]+)");
    for (std::sregex_iterator it(result.output.begin(), result.output.end(), line), end; it != end;
         ++it) {
      verdicts[(*it)[1]] = (*it)[2];
    }
    *output = result.output;
    return verdicts;
  }

  TempDir directory_;
};

TEST_F(LeakTestTest, IsRedForLeaksGreenForCleanAndKeepsFailures) {
  Configure();
  std::string output;
  const auto verdicts = RunCtest("", &output);
  const std::map<std::string, bool> green = {
      {"clean", true}, {"takes-words", true}, {"takes_words", true}, {"leaks", false}, {"fails_and_leaks", false}, {"crashes", false},
      {"n", true}, {"suppressed", true}, {"only_reachable_fails", false}, {"keeps", true},
      {"within_its_limit", true}, {"over_its_limit", false}, {"peaks", false},
      {"told_by_environment", true}, {"before_its_program", true}, {"of_the_system", true}};
  ASSERT_EQ(verdicts.size(), green.size()) << output;
  for (const auto& [name, passed] : green) {
    ASSERT_TRUE(verdicts.contains(name)) << name;
    EXPECT_EQ(verdicts.at(name) == "Passed", passed) << name << ": " << verdicts.at(name) << "\n" << output;
  }
  EXPECT_NE(output.find("lose_a_block"), std::string::npos) << output;
  EXPECT_NE(output.find("this is fail"), std::string::npos) << "the program's own output";
  // The labels, and a report for each test.
  for (const char* name : {"clean", "leaks", "fails_and_leaks", "takes-words", "takes_words"}) {
    EXPECT_TRUE(fs::exists(path("build") / "reports" / (std::string(name) + ".xml"))) << name;
  }
  EXPECT_FALSE(fs::exists(path("project/reports"))) << "a relative name is of the build tree";
  EXPECT_NE(ReadFile(path("build/reports/leaks.xml")).find("<failure"), std::string::npos);
  EXPECT_EQ(ReadFile(path("build/reports/clean.xml")).find("<failure"), std::string::npos);
  EXPECT_EQ(RunCtest("-L '^nightly$'", &output).size(), 1u) << output;
  EXPECT_EQ(RunCtest("-L leak -N", &output).size(), 0u);
  EXPECT_NE(output.find("Total Tests: 16"), std::string::npos) << output;
  // The failure of the program is what the test fails with.
  const CommandResult verbose =
      Shell("ctest -R '^fails_and_leaks$' -V --test-dir '" + path("build").string() + "'");
  const CommandResult status = Shell(
      "cd '" + path("build").string() + "' && '" + path("prefix/bin/memtrace").string() +
      "' check --run -- ./app fail >/dev/null 2>&1");
  EXPECT_EQ(status.exit_status, 3) << verbose.output;
}

TEST_F(LeakTestTest, AcceptsWhatTheBaselineKnows) {
  Configure();
  const std::string check = "cd '" + path("project").string() + "' && '" +
                            path("prefix/bin/memtrace").string() + "' check --run --baseline ";
  const CommandResult made =
      Shell(check + "leaks.baseline --update-baseline -- '" + path("build/app").string() + "' leak");
  ASSERT_TRUE(fs::exists(path("project/leaks.baseline"))) << made.output;
  // The leak moves down in its file, and the program is built anew.
  const std::string source = ReadFile(path("project/app.c"));
  std::ofstream(path("project/app.c")) << "\n\n/* moved */\n\n" << source;
  Reconfigure();
  std::string output;
  EXPECT_EQ(RunCtest("-R known", &output)["known"], "Passed") << output;

  // As a project begins: there is none, the test says how it is made, and it can be made by ctest.
  fs::remove(path("project/leaks.baseline"));
  EXPECT_NE(RunCtest("-R known", &output)["known"], "Passed") << output;
  EXPECT_NE(output.find("MEMTRACE_UPDATE_BASELINE=1"), std::string::npos) << output;
  setenv("MEMTRACE_UPDATE_BASELINE", "1", 1);
  const auto updated = RunCtest("-R 'known|^clean$|^leaks$'", &output);
  unsetenv("MEMTRACE_UPDATE_BASELINE");
  EXPECT_EQ(updated, (std::map<std::string, std::string>{{"known", "Passed"}, {"clean", "Passed"},
                                                         {"leaks", "***Failed"}})) << output;
  EXPECT_TRUE(fs::exists(path("project/leaks.baseline")));
  EXPECT_EQ(RunCtest("-R known", &output)["known"], "Passed") << output;
}

TEST_F(LeakTestTest, RefusesWhatItDoesNotKnow) {
  const fs::path project = path("wrong");
  fs::create_directories(project);
  for (const char* arguments : {"NAME x", "COMMAND app", "NAME x y COMMAND app", "NAME x COMMAND app TIMEOUT"}) {
    std::ofstream(project / "CMakeLists.txt")
        << "cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES NONE)\n"
           "include(" MEMTRACE_SOURCE_DIR "/cmake/MemtraceLeakTest.cmake)\n"
           "memtrace_add_leak_test(" << arguments << ")\n";
    const CommandResult configured = Shell("cmake -G Ninja -S '" + project.string() + "' -B '" +
                                           (project / "build").string() + "'");
    EXPECT_NE(configured.exit_status, 0) << arguments;
    EXPECT_NE(configured.output.find("memtrace_add_leak_test"), std::string::npos) << configured.output;
  }
}

}  // namespace
}  // namespace memtrace::packaging
