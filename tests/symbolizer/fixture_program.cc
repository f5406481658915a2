// Helpers of the symbolizer tests. See fixture_program.h.

#include "tests/symbolizer/fixture_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace memtrace::symbolizer {
namespace fs = std::filesystem;

std::string RunCommand(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return "";
  }
  std::string output;
  char buffer[1 << 16];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  const int status = pclose(pipe);
  EXPECT_EQ(status, 0) << command << "\n" << output;
  return output;
}

std::string Place(const Frame& frame) {
  if (frame.file.empty()) return "?:0";
  return absl::StrCat(fs::path(frame.file).filename().string(), ":", frame.line);
}

std::string Chain(const std::vector<Frame>& frames) {
  std::string text;
  for (const Frame& frame : frames) {
    absl::StrAppend(&text, text.empty() ? "" : " < ", frame.inlined ? "+" : "", frame.function,
                    "@", Place(frame));
  }
  return text;
}

FixtureProgram::FixtureProgram(const std::string& variant)
    : path_(absl::StrCat(MEMTRACE_FIXTURE_DIR, "/", variant)) {
  for (absl::string_view line : absl::StrSplit(RunCommand(path_), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    offsets_.emplace(words.at(0), std::strtoull(words.at(1).c_str(), nullptr, 16));
  }
  for (const char* name : {"main.cc", "shop.cc", "shop.h"}) {
    int number = 0;
    for (absl::string_view line :
         absl::StrSplit(ReadFile(absl::StrCat(MEMTRACE_FIXTURE_SOURCES, "/", name)), '\n')) {
      ++number;
      const std::vector<std::string> parts = absl::StrSplit(line, "// MARK ");
      if (parts.size() == 2) lines_[parts[1]] = absl::StrCat(name, ":", number);
    }
  }
}

uint64_t FixtureProgram::Offset(const std::string& mark) const {
  const auto it = offsets_.find(mark);
  EXPECT_TRUE(it != offsets_.end()) << path_ << " did not print " << mark;
  return it == offsets_.end() ? 0 : it->second;
}

std::string FixtureProgram::Line(const std::string& mark) const {
  const auto it = lines_.find(mark);
  EXPECT_TRUE(it != lines_.end()) << "no line with MARK " << mark;
  return it == lines_.end() ? "" : it->second;
}

std::string BuildIdOf(const std::string& path) {
  const std::string notes = RunCommand(absl::StrCat("readelf -n ", path, " 2>/dev/null"));
  const size_t at = notes.find("Build ID: ");
  if (at == std::string::npos) return "";
  const std::string rest = notes.substr(at + 10);
  return absl::HexStringToBytes(rest.substr(0, rest.find_first_not_of("0123456789abcdef")));
}

std::string MakeBuildIdPath(const std::string& debug_dir, const std::string& build_id) {
  const std::string hex = absl::BytesToHexString(build_id);
  const std::string directory = absl::StrCat(debug_dir, "/.build-id/", hex.substr(0, 2));
  fs::create_directories(directory);
  return absl::StrCat(directory, "/", hex.substr(2), ".debug");
}

ModuleResult SymbolizeOne(const Options& options, const Module& module, uint64_t offset) {
  const Address address = {offset, true};
  Symbolizer symbolizer(options);
  return symbolizer.Symbolize(module, {&address, 1});
}

}  // namespace memtrace::symbolizer
