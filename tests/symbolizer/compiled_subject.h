// CompiledSubject: a small program of its own for a test, by the compilers of this machine.

#ifndef MEMTRACE_TESTS_SYMBOLIZER_COMPILED_SUBJECT_H_
#define MEMTRACE_TESTS_SYMBOLIZER_COMPILED_SUBJECT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "symbolizer/symbolizer.h"
#include "tests/symbolizer/fixture_program.h"

namespace memtrace::symbolizer {

class CompiledSubject : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_ / name; }
  void Write(const std::string& name, const std::string& content) const {
    WriteFile(Path(name), content);
  }
  // In the directory of the subject.
  std::string Run(const std::string& command) const {
    return RunCommand(absl::StrCat("cd ", directory_.path(), " && ", command));
  }
  // Every address of a function's code. `symbols` is the file that still has its symbol.
  std::vector<Address> AddressesOf(const std::string& symbol, const std::string& symbols) const {
    const std::string found =
        Run(absl::StrCat("nm -S ", symbols, " | awk '$4 == \"", symbol, "\" {print $1, $2}'"));
    const std::vector<std::string> words = absl::StrSplit(found, ' ');
    std::vector<Address> addresses;
    if (words.size() != 2) {
      ADD_FAILURE() << symbol << " is not in " << symbols;
      return addresses;
    }
    const uint64_t begin = std::stoull(words[0], nullptr, 16);
    const uint64_t size = std::stoull(words[1], nullptr, 16);
    for (uint64_t i = 0; i < size; ++i) addresses.push_back({begin + i, false});
    return addresses;
  }
  // What they give, each chain once; `result` has the rest.
  std::set<std::string> ChainsIn(const std::string& symbol, const std::string& file = "program",
                                 ModuleResult* result = nullptr) const {
    ModuleResult found = Symbolizer(Options()).Symbolize({.path = Path(file)},
                                                         AddressesOf(symbol, file));
    std::set<std::string> chains;
    for (const std::vector<Frame>& frames : found.frames) chains.insert(Chain(frames));
    if (result != nullptr) *result = std::move(found);
    return chains;
  }
  // The name of the innermost of all inlined functions in one, if there is one alone.
  std::string InlinedInto(const std::string& symbol, const std::string& file = "program",
                          ModuleResult* result = nullptr) const {
    ModuleResult found = Symbolizer(Options()).Symbolize({.path = Path(file)},
                                                         AddressesOf(symbol, file));
    std::set<std::string> names;
    for (const std::vector<Frame>& frames : found.frames) {
      if (!frames.empty() && frames.front().inlined) names.insert(frames.front().function);
    }
    if (result != nullptr) *result = std::move(found);
    std::string all;
    for (const std::string& name : names) absl::StrAppend(&all, all.empty() ? "" : " | ", name);
    return all;
  }

  const TempDir directory_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_TESTS_SYMBOLIZER_COMPILED_SUBJECT_H_
