// FixtureProgram: runs a variant of fixture/ and says what its marks should give.
//
// Also small helpers of the symbolizer tests: commands, files, directories.

#ifndef MEMTRACE_TESTS_SYMBOLIZER_FIXTURE_PROGRAM_H_
#define MEMTRACE_TESTS_SYMBOLIZER_FIXTURE_PROGRAM_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "symbolizer/symbolizer.h"
#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace::symbolizer {

// Standard output of a shell command; fails the test when its status is not 0.
std::string RunCommand(const std::string& command);
// "x.cc:12" for the file name and line of a frame; "?:0" when it is not known.
std::string Place(const Frame& frame);
// "innermost < outer < outermost", each "function@file:line", inlined ones marked "+".
std::string Chain(const std::vector<Frame>& frames);

class FixtureProgram {
 public:
  // `variant` is a target of CMakeLists.txt: "fixture_gcc", "fixture_clang", ...
  explicit FixtureProgram(const std::string& variant);
  const std::string& path() const { return path_; }
  // The return address that Here(mark) printed.
  uint64_t Offset(const std::string& mark) const;
  // "shop.cc:20" of the line with "// MARK mark".
  std::string Line(const std::string& mark) const;
  const std::map<std::string, uint64_t>& offsets() const { return offsets_; }

 private:
  std::string path_;
  std::map<std::string, uint64_t> offsets_;
  std::map<std::string, std::string> lines_;
};

// The raw bytes of a file's build-id, by readelf.
std::string BuildIdOf(const std::string& path);
// DIR/.build-id/xx/yyyy.debug, with its directories made.
std::string MakeBuildIdPath(const std::string& debug_dir, const std::string& build_id);

// Asks for one return address.
ModuleResult SymbolizeOne(const Options& options, const Module& module, uint64_t offset);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_TESTS_SYMBOLIZER_FIXTURE_PROGRAM_H_
