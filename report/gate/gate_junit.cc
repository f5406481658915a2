// JUnit, as Jenkins and GitLab read it: a test case for each program, a failure for each leak
// that is gated, an error where there is no evidence.

#include <map>
#include <sstream>
#include <string>

#include <pugixml.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "report/gate/formats.h"
#include "report/leak_kinds.h"
#include "report/render/escape.h"

namespace memtrace::report::gate {
namespace {

// XML 1.0 has no way to write control characters, and names may be any bytes.
std::string Xml(absl::string_view text) { return render::EscapeControls(text); }

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

struct Case {
  std::string name;
  std::vector<const GateLeak*> failed;
  std::vector<const GateExcess*> excesses;
  std::vector<const GateLeak*> accepted;
  std::vector<std::string> missing;
};

}  // namespace

std::string RenderGateJunit(const GateReport& report) {
  const GateResult& result = *report.result;
  std::map<std::string, Case> cases;
  for (const std::string& program : result.programs) cases[program];
  for (const GateLeak& leak : result.leaks) {
    Case& one = cases[leak.program];
    if (IsGated(leak.verdict)) {
      one.failed.push_back(&leak);
    } else if (leak.verdict == Verdict::kWithin) {
      one.accepted.push_back(&leak);
    }
  }
  for (const GateExcess& excess : result.excesses) cases[excess.program].excesses.push_back(&excess);
  const bool missing = !result.missing_evidence.empty() || result.usable == 0;
  if (missing) cases["(evidence)"].missing = result.missing_evidence;

  size_t failures = 0, errors = 0;
  for (const auto& [name, one] : cases) {
    failures += !one.failed.empty() || !one.excesses.empty();
  }
  const bool errors_fail = result.usable == 0 || result.policy.missing_evidence_fails;
  errors = missing && errors_fail;

  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node suites = document.append_child("testsuites");
  pugi::xml_node suite = suites.append_child("testsuite");
  for (pugi::xml_node node : {suites, suite}) {
    node.append_attribute("name") = "memtrace check";
    node.append_attribute("tests") = cases.size();
    node.append_attribute("failures") = failures;
    node.append_attribute("errors") = errors;
    node.append_attribute("time") = "0";
  }
  for (const auto& [name, one] : cases) {
    pugi::xml_node test = suite.append_child("testcase");
    test.append_attribute("classname") = "memtrace.leaks";
    test.append_attribute("name") = Xml(name).c_str();
    test.append_attribute("time") = "0";
    if (name == "(evidence)" && missing) {
      const std::string why = one.missing.empty() ? "no process was looked at"
                                                  : absl::StrJoin(one.missing, "\n");
      if (errors_fail) {
        AddProblem(test, "error", "memtrace.no-evidence", "no usable evidence", why);
      } else {
        SetText(test.append_child("system-out"), why);
      }
      continue;
    }
    for (const GateLeak* leak : one.failed) {
      const std::string verdict = VerdictSentence(report, *leak);
      AddProblem(test, "failure", absl::StrCat("memtrace.", KindName(leak->kind)),
                 LeakSentence(report, *leak),
                 absl::StrCat(verdict, verdict.empty() ? "" : "\n", "fingerprint ",
                              leak->fingerprint, "\n  ",
                              absl::StrJoin(StackLines(report, *leak), "\n  ")));
    }
    for (const GateExcess* excess : one.excesses) {
      AddProblem(test, "failure", absl::StrCat("memtrace.limit-", ExcessName(excess->what)),
                 ExcessText(*excess), absl::StrCat(ExcessText(*excess), "\n", excess->file));
    }
    std::vector<std::string> accepted;
    for (const GateLeak* leak : one.accepted) {
      accepted.push_back(absl::StrCat("known: ", LeakSentence(report, *leak)));
    }
    if (!accepted.empty()) SetText(test.append_child("system-out"), absl::StrJoin(accepted, "\n"));
  }
  std::ostringstream out;
  document.save(out, "  ", pugi::format_default, pugi::encoding_utf8);
  return out.str();
}

}  // namespace memtrace::report::gate
