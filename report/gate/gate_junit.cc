// JUnit, as Jenkins and GitLab read it: a test case for each leak that is gated and each limit that
// was passed, for Jenkins shows one failure of a case; for a program that has none a case that
// passes; an error where there is no evidence.

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <pugixml.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "report/gate/baseline_of.h"
#include "report/gate/formats.h"
#include "report/leak/leak_kinds.h"
#include "report/words/escape.h"

namespace memtrace::report::gate {
namespace {

// XML 1.0 has no way to write control characters, and names may be any bytes.
std::string Xml(absl::string_view text) { return words::EscapeControls(text); }

void SetText(pugi::xml_node node, absl::string_view text) {
  std::string safe;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&safe, safe.empty() ? "" : "\n", Xml(line));
  }
  node.append_child(pugi::node_pcdata).set_value(safe.c_str());
}

pugi::xml_node AddProblem(pugi::xml_node test, const char* element, absl::string_view type,
                          absl::string_view message, absl::string_view text) {
  pugi::xml_node problem = test.append_child(element);
  problem.append_attribute("message") = Xml(message).c_str();
  problem.append_attribute("type") = Xml(type).c_str();
  SetText(problem, text);
  return problem;
}

// The results of one program.
struct Program {
  std::vector<const GateLeak*> failed;
  std::vector<const GateExcess*> excesses;
  std::vector<std::string> accepted;

  size_t failures() const { return failed.size() + excesses.size(); }
  size_t cases() const { return std::max<size_t>(failures(), 1); }
};

std::string Seconds(uint64_t ns) { return absl::StrFormat("%.3f", static_cast<double>(ns) / 1e9); }

// The same in each run, for servers keep a history of every name: no sizes, no lines.
std::string CaseName(const GateReport& report, const GateLeak& leak) {
  return absl::StrCat(leak.program, ": ", KindPhrase(leak.kind), ", ",
                      CallerWithoutLine(*report.names, leak.stack), " (", leak.fingerprint, ")");
}

std::string CaseName(const GateExcess& excess) {
  return absl::StrCat(excess.program, ": limit-", ExcessName(excess.what),
                      excess.phases.empty() ? "" : " ", excess.phases);
}

class Suite {
 public:
  explicit Suite(pugi::xml_node node) : node_(node) {}

  pugi::xml_node AddCase(absl::string_view name, uint64_t ns) {
    pugi::xml_node test = node_.append_child("testcase");
    test.append_attribute("classname") = "memtrace.leaks";
    test.append_attribute("name") = Xml(name).c_str();
    test.append_attribute("time") = Seconds(ns).c_str();
    return test;
  }

  // The first case has the time of the program, which it took once, and what is known of it.
  void AddProgram(const GateReport& report, const std::string& name, const Program& program,
                  uint64_t ns) {
    std::vector<pugi::xml_node> cases;
    if (program.failures() == 0) cases.push_back(AddCase(name, ns));
    const auto add = [&](const std::string& of) {
      return cases.emplace_back(AddCase(of, std::exchange(ns, 0)));
    };
    for (const GateLeak* leak : program.failed) {
      const std::string verdict = VerdictSentence(report, *leak);
      AddProblem(add(CaseName(report, *leak)), "failure",
                 absl::StrCat("memtrace.", KindName(leak->kind)), LeakSentence(report, *leak),
                 absl::StrCat(verdict, verdict.empty() ? "" : "\n", "fingerprint ",
                              leak->fingerprint, "\n  ",
                              absl::StrJoin(StackLines(report, *leak), "\n  ")));
    }
    for (const GateExcess* excess : program.excesses) {
      std::vector<std::string> lines = FreePlaces(report, *excess);
      lines.insert(lines.begin(), ExcessText(*excess));
      if (std::string how = HowToSeeFrees(*excess); !how.empty()) lines.push_back(std::move(how));
      lines.push_back(excess->file);
      AddProblem(add(CaseName(*excess)), "failure",
                 absl::StrCat("memtrace.limit-", ExcessName(excess->what)), ExcessText(*excess),
                 absl::StrJoin(lines, "\n"));
    }
    if (!program.accepted.empty()) {
      SetText(cases.front().append_child("system-out"), absl::StrJoin(program.accepted, "\n"));
    }
  }

 private:
  pugi::xml_node node_;
};

}  // namespace

std::string RenderGateJunit(const GateReport& report) {
  const GateResult& result = *report.result;
  std::map<std::string, Program> programs;
  for (const std::string& program : result.programs) programs[program];
  for (const GateLeak& leak : result.leaks) {
    Program& one = programs[leak.program];
    if (IsGated(leak.verdict)) {
      one.failed.push_back(&leak);
    } else if (leak.verdict == Verdict::kWithin) {
      one.accepted.push_back(absl::StrCat("known: ", LeakSentence(report, leak)));
    }
  }
  for (const GateExcess& excess : result.excesses)
    programs[excess.program].excesses.push_back(&excess);
  const bool missing = !MissingEvidence(result).empty();
  const bool errors_fail = MissingEvidenceFails(result);

  size_t cases = missing, failures = 0;
  uint64_t all_ns = 0;
  for (const auto& [name, one] : programs) {
    cases += one.cases();
    failures += one.failures();
  }
  for (const auto& [name, ns] : result.duration_ns) all_ns += ns;

  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node suites = document.append_child("testsuites");
  pugi::xml_node node = suites.append_child("testsuite");
  for (pugi::xml_node each : {suites, node}) {
    each.append_attribute("name") = "memtrace check";
    each.append_attribute("tests") = cases;
    each.append_attribute("failures") = failures;
    each.append_attribute("errors") = missing && errors_fail ? 1 : 0;
    each.append_attribute("time") = Seconds(all_ns).c_str();
  }
  Suite suite(node);
  if (missing) {
    pugi::xml_node test = suite.AddCase("(evidence)", 0);
    const std::string why = absl::StrJoin(MissingEvidence(result), "\n");
    if (errors_fail) {
      AddProblem(test, "error", "memtrace.no-evidence", "no usable evidence", why);
    } else {
      SetText(test.append_child("system-out"), why);
    }
  }
  for (const auto& [name, one] : programs) {
    const auto ns = result.duration_ns.find(name);
    suite.AddProgram(report, name, one, ns == result.duration_ns.end() ? 0 : ns->second);
  }
  std::ostringstream out;
  document.save(out, "  ", pugi::format_default, pugi::encoding_utf8);
  return out.str();
}

}  // namespace memtrace::report::gate
