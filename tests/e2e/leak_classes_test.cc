// The classes of real programs against Valgrind's, record by record: kind, bytes with the
// indirect ones, blocks, and the functions of the stack. A record that one of the two alone has
// is a difference, and there must be none.
//
// Not compared: what is reachable and has no frame of the program (memcheck frees the C and C++
// libraries' own memory before it looks); frames of other sources than the program's own, which
// the two name differently; a thread's vector of modules with thread-local storage, which is 16
// bytes longer here because our library is such a module.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <regex>
#include <sstream>

#include "tests/e2e/harness.h"
#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {
namespace {

using Records = std::multiset<std::string>;

std::string Unescaped(std::string text) {
  for (const auto& [from, to] : std::map<std::string, std::string>{
           {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) {
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; ++at) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

// "definite 48 in 1: AllocA < Ring < main".
std::string RecordText(const std::string& kind, uint64_t bytes, uint64_t blocks,
                       std::vector<std::string> functions) {
  for (std::string& function : functions) {
    function = function.substr(0, function.find('('));
  }
  std::ostringstream text;
  text << kind << " " << bytes << " in " << blocks << ":";
  for (const std::string& function : functions) text << " < " << function;
  return text.str();
}

// The frames of the program's own file: what both see alike.
bool IsKept(const std::string& kind, const std::vector<std::string>& functions) {
  return !functions.empty() || kind != "reachable";
}

std::string Plain(const std::string& function) {
  return std::regex_replace(function, std::regex(R"(\(anonymous namespace\)::)"), "");
}

Records OfValgrind(const std::string& program, const std::string& which, const TempDir& directory) {
  const std::string xml = directory / ("valgrind." + which + ".xml");
  const Result run = RunCommand(
      {.arguments = MemcheckCommand({"-q", "--show-leak-kinds=all", "--num-callers=50", "--xml=yes",
                              "--xml-file=" + xml, program, which})});
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  Records records;
  const std::string text = ReadFile(xml);
  static const std::regex kError(R"(<error>([\s\S]*?)</error>)");
  static const std::regex kKind("<kind>Leak_(\\w+)</kind>"),
      kBytes("<leakedbytes>(\\d+)</leakedbytes>"), kBlocks("<leakedblocks>(\\d+)</leakedblocks>"),
      kFrame(R"(<frame>([\s\S]*?)</frame>)"), kObject("<obj>(.*?)</obj>"), kFunction("<fn>(.*?)</fn>");
  static const std::map<std::string, std::string> kKinds = {
      {"DefinitelyLost", "definite"}, {"IndirectlyLost", "indirect"},
      {"PossiblyLost", "possible"}, {"StillReachable", "reachable"}};
  for (std::sregex_iterator it(text.begin(), text.end(), kError), end; it != end; ++it) {
    const std::string error = (*it)[1];
    std::smatch kind, bytes, blocks;
    if (!std::regex_search(error, kind, kKind) || !std::regex_search(error, bytes, kBytes) ||
        !std::regex_search(error, blocks, kBlocks)) {
      continue;
    }
    std::vector<std::string> functions;
    for (std::sregex_iterator frame(error.begin(), error.end(), kFrame); frame != end; ++frame) {
      const std::string inside = (*frame)[1];
      std::smatch object, function;
      static const std::regex kFile("<file>(.*?)</file>");
      std::smatch file;
      if (std::regex_search(inside, object, kObject) && object[1] == program &&
          std::regex_search(inside, file, kFile) && file[1] == "leak_cases.cc" &&
          std::regex_search(inside, function, kFunction)) {
        functions.push_back(Plain(Unescaped(function[1])));
      }
    }
    const std::string name = kKinds.at(kind[1]);
    if (error.find("<fn>allocate_dtv</fn>") != error.npos) continue;
    if (!IsKept(name, functions)) continue;
    records.insert(RecordText(name, std::stoull(bytes[1]), std::stoull(blocks[1]), functions));
  }
  return records;
}

Records OfMemtrace(const std::string& program, const std::string& which) {
  const TempDir traces;
  const Result run = RunCommand(Traced({.arguments = {program, which}}, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), ProgramName(program)), {"--full"});
  EXPECT_EQ(report.at("leak_scan"), 1) << report.at("no_leak_scan");
  Records records;
  for (const Json& leak : report.at("leaks")) {
    std::vector<std::string> functions;
    for (const Json& frame : leak.at("stack")) {
      if (frame.value("file", "").ends_with("/leak_cases.cc")) {
        functions.push_back(Plain(frame.value("function", "")));
      }
    }
    const std::string kind = leak.at("kind");
    if (leak.at("stack").dump().find("allocate_dtv") != std::string::npos) continue;
    if (!IsKept(kind, functions)) continue;
    records.insert(RecordText(kind,
                              leak.at("bytes").get<uint64_t>() +
                                  leak.at("indirect_bytes").get<uint64_t>(),
                              leak.at("blocks").get<uint64_t>(), functions));
  }
  return records;
}

void Compare(const std::string& which) {
  SCOPED_TRACE(which);
  const TempDir directory;
  const std::string program = TraceePath("leak_cases");
  EXPECT_EQ(OfMemtrace(program, which), OfValgrind(program, which, directory));
}

TEST(LeakClassesE2eTest, AreValgrinds) {
  if (!HaveValgrind()) GTEST_SKIP() << "there is no valgrind";
  for (const char* which : {"nine", "into-ring", "ends", "second-bases", "mapped", "threads"}) {
    Compare(which);
  }
}

TEST(LeakClassesE2eTest, DISABLED_AreValgrindsInEveryCase) {
  if (!HaveValgrind()) GTEST_SKIP() << "there is no valgrind";
  const Result list = RunCommand({.arguments = {TraceePath("leak_cases"), "--list"}});
  std::istringstream names(list.out);
  int cases = 0;
  for (std::string name; std::getline(names, name); ++cases) Compare(name);
  EXPECT_GE(cases, 20);
}

}  // namespace
}  // namespace memtrace::e2e
