// Neither of the two built files can start a shell with text from anywhere: they do not
// import what would. `memtrace run` executes the user's program, by name and arguments.

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <string>

namespace memtrace {
namespace {

std::set<std::string> Imports(const std::string& file) {
  std::set<std::string> names;
  FILE* pipe = popen(("nm -D --undefined-only --format=posix " + file).c_str(), "r");
  char line[4096];
  while (fgets(line, sizeof(line), pipe) != nullptr) {
    const std::string text = line;
    names.insert(text.substr(0, text.find_first_of(" @")));
  }
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_FALSE(names.empty()) << file;
  return names;
}

std::set<std::string> StartersIn(const std::string& file) {
  static const std::set<std::string> kStarters = {
      "system", "popen",  "wordexp", "execl",  "execlp",      "execle",       "execv",
      "execvp", "execve", "execvpe", "fexecve", "posix_spawn", "posix_spawnp", "fork",
      "vfork",  "clone",  "execveat"};
  std::set<std::string> found;
  for (const std::string& name : Imports(file)) {
    if (kStarters.contains(name)) found.insert(name);
  }
  return found;
}

TEST(NoShellTest, TheLibraryStartsNothing) {
  // The exec family is interposed: the real functions are found by dlsym.
  EXPECT_EQ(StartersIn(MEMTRACE_BUILD_DIR "/lib/libmemtrace.so"), std::set<std::string>());
}

TEST(NoShellTest, TheToolExecutesTheUsersProgramAndNoCommandLine) {
  EXPECT_EQ(StartersIn(MEMTRACE_BUILD_DIR "/bin/memtrace"),
            (std::set<std::string>{"execve", "fork"}));
}

}  // namespace
}  // namespace memtrace
