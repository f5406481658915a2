#include "tests/e2e/expected_stacks.h"

#include <gtest/gtest.h>

#include <sstream>

namespace memtrace::e2e {

Told Parse(const std::string& out) {
  Told told;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "expect") {
      Expected expected;
      words >> expected.bytes >> expected.count;
      for (std::string function; words >> function;) expected.functions.push_back(function);
      told.expected.push_back(expected);
    } else {
      words >> told.numbers[kind];
    }
  }
  return told;
}

bool IsFunction(const Json& frame, const std::string& name) {
  std::string function = frame.value("function", "");
  if (const size_t arguments = function.find('(', function.find(')') + 1);
      function.starts_with("(") && arguments != std::string::npos) {
    function.resize(arguments);
  } else if (!function.starts_with("(") && function.find('(') != std::string::npos) {
    function.resize(function.find('('));
  }
  return function == name || function.ends_with("::" + name);
}

std::string Names(const Json& stack) {
  std::string names;
  for (const Json& frame : stack) names += " " + frame.value("function", "?");
  return names;
}

bool IsMarker(const Json& frame) { return frame.value("marker", false); }

void ExpectStacks(const Json& report, const std::vector<Expected>& all) {
  std::map<uint64_t, std::vector<const Json*>> sites;  // by the size of their blocks
  for (const Json& site : report.at("sites")) {
    const auto allocations = site.at("allocations").get<uint64_t>();
    const auto bytes = site.at("bytes_allocated").get<uint64_t>();
    if (allocations > 0 && bytes % allocations == 0) {
      sites[bytes / allocations].push_back(&site);
    }
  }
  for (const Expected& expected : all) {
    uint64_t count = 0;
    for (const Json* site : sites[expected.bytes]) {
      const Json& stack = site->at("stack");
      bool right = stack.size() >= expected.functions.size();
      for (size_t i = 0; right && i < expected.functions.size(); ++i) {
        right = IsFunction(stack[i], expected.functions[i]);
      }
      EXPECT_TRUE(right) << "blocks of " << expected.bytes << " bytes, by" << Names(stack);
      count += site->at("allocations").get<uint64_t>();
    }
    EXPECT_EQ(count, expected.count) << "blocks of " << expected.bytes << " bytes";
  }
}

std::map<std::string, uint64_t> Counters(const std::string& trace) {
  const Result info = RunCommand({.arguments = {ToolPath(), "info", trace}});
  EXPECT_EQ(info.Outcome(), "exit 0") << info.err;
  std::map<std::string, uint64_t> counters;
  std::istringstream lines(info.out);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(" ")) inside = line == "counters of the library";
    std::istringstream words(line);
    std::string name;
    uint64_t value;
    if (inside && words >> name >> value) counters[name] = value;
  }
  return counters;
}

}  // namespace memtrace::e2e
