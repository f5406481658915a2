// What the gate writes: text that says the verdict first and fits 80 columns, and formats that
// hold to their schemas (schemas/README.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "report/gate/formats.h"
#include "report/gate/source_root.h"
#include "report/words/escape.h"
#include "tests/report/gate/gate_made_up.h"
#include "tests/temp_dir.h"

namespace memtrace::report::gate {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kSchemas = MEMTRACE_SOURCE_DIR "/tests/report/schemas/";

// A directory of its own for the validators' input.
class Validator {
 public:
  // What the validator says; empty: nothing.
  std::string Json(const std::string& text, const std::string& schema) {
    return Run("python3 -W ignore -c 'import json, jsonschema, sys\n"
               "jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])),\n"
               "    cls=jsonschema.Draft7Validator)' " + Written(text) + " " + kSchemas + schema);
  }
  std::string Xml(const std::string& text, const std::string& schema) {
    return Run("xmllint --noout --nonet --schema " + kSchemas + schema + " " + Written(text) +
               " 2>&1 >/dev/null | grep -v ' validates$'");
  }

 private:
  std::string Written(const std::string& text) {
    const std::string path = directory_ / "input";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string Run(const std::string& command) {
    FILE* pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
    std::string said;
    char buffer[4096];
    size_t read = 0;
    while ((read = fread(buffer, 1, sizeof(buffer), pipe)) > 0) said.append(buffer, read);
    pclose(pipe);
    return said;
  }
  TempDir directory_;
};

// A gate in which everything happened that a report can tell.
class FormatsTest : public ::testing::Test {
 protected:
  FormatsTest() {
    const uint32_t app = gate.AddProcess("app");
    gate.input.processes[app].duration_ns = 1'500'000'000;
    gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Known"), 30, 3);
    gate.AcceptAll();
    gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Lost"), 2048, 2, {100, 4});
    gate.AddLeak(app, LeakKind::kIndirect, gate.Stack("Under"), 100, 4);
    gate.AddLeak(app, LeakKind::kPossible, gate.Stack("Maybe"), 5, 1);
    gate.AddLeak(app, LeakKind::kReachable, gate.Stack("Kept"), 5, 1);
    gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Forgiven"), 7, 1);
    EXPECT_TRUE(gate.suppressions.Add("leak:Forgiven\nleak:NeverSeen\n", "lsan.supp").ok());
    const uint32_t tool = gate.AddProcess("tool");
    gate.input.processes[tool].peak_bytes = 5000;
    gate.input.processes[tool].duration_ns = 250'000'000;
    gate.input.processes[tool].notes = {"thread 7 did not stop"};
    gate.AddLeak(tool, LeakKind::kDefinite,
                 gate.made_up.Stack({{"evil\x1b[31m<&\"]]>\xff", "/work/a b\x01.c", 5},
                                     {"main", "/elsewhere/main.c", 3}}),
                 64, 1);
    gate.made_up.AddSite(gate.input.losses.back().stack, 1, 1, 0);
    gate.policy.max_peak = {{"", 4096}};
    gate.input.unreadable.push_back({"bad.mtr", "not a trace"});
    gate.Judge();
  }

  MadeUpGate gate;
  Validator validator;
};

// There are three of the environment, for three functions.
TEST(GateTextTest, WhatTheRuntimeKeepsIsToldOnceByName) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  for (const char* function : {"setenv", "putenv"}) {
    const StackId stack = gate.made_up.Stack(
        {Libc(function), {"main", "/work/src/main.c", 3}, Libc("__libc_start_main")});
    gate.made_up.AddSite(stack, 1, 1, 0);
    gate.AddLeak(app, LeakKind::kReachable, stack, 10, 1);
  }
  gate.suppressions.AddBuiltIn();
  gate.Judge();
  EXPECT_THAT(RenderGateText(gate.Report()),
              HasSubstr("suppressed: 20 bytes in 2 blocks  runtime: environment\n"));
}

// As notes are: whoever looks for it in the file needs the name.
TEST(GateTextTest, ALongStackOfTheSystemShowsItsInnermostFramesToo) {
  MadeUpGate gate;
  std::vector<Step> steps;
  for (int i = 1; i <= 20; ++i) steps.push_back(Libc(absl::StrCat("engine_", i)));
  steps.push_back({"main", "/work/src/main.c", 3});
  const StackId stack = gate.made_up.Stack(steps);
  gate.made_up.AddSite(stack, 1, 1, 0);
  gate.AddLeak(gate.AddProcess("app"), LeakKind::kDefinite, stack, 10, 1);
  gate.Judge();
  EXPECT_THAT(RenderGateText(gate.Report()),
              HasSubstr("    engine_1  libc.so.6\n    engine_2  libc.so.6\n"
                        "    engine_3  libc.so.6\n"
                        "    (16 more frames of the system: --full)\n"
                        "    engine_20  libc.so.6\n    main  src/main.c:3\n"));
}

TEST_F(FormatsTest, NamesOfSuppressionsAreWhole) {
  const std::string used = "a_suppression_with_a_long_name_" + std::string(80, 'u');
  const std::string unused = std::string(90, 'n');
  ASSERT_TRUE(gate.suppressions.Add(absl::StrCat("{\n ", used, "\n Memcheck:Leak\n fun:malloc\n fun:Maybe\n}\n",
                                                 "{\n ", unused, "\n Memcheck:Leak\n fun:no\n}\n"),
                                    "a.supp").ok());
  gate.suppressions.ForgetMatches();
  gate.Judge();
  const std::string text = RenderGateText(gate.Report());
  EXPECT_THAT(text, HasSubstr(absl::StrCat("suppressed: 5 bytes in 1 block  ", used, "  a.supp:")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("unused suppression: ", unused, "  a.supp:")));
}

TEST_F(FormatsTest, TextSaysTheVerdictFirstAndFits) {
  const std::string text = RenderGateText(gate.Report());
  EXPECT_THAT(text, StartsWith("memtrace check: FAILED: 2 leaks that the baseline does not allow, "
                               "1 limit exceeded"));
  EXPECT_THAT(text, HasSubstr("no evidence: bad.mtr: not a trace\n"));
  EXPECT_THAT(text, HasSubstr("limit: tool: peak of 4.88 KiB, at most 4.00 KiB  tool.2.mtr\n"));
  EXPECT_THAT(text, HasSubstr("2,048 bytes in 2 blocks definitely lost  [app]\n"
                              "  new: not in the baseline\n"
                              "  and 100 bytes in 4 blocks that only these lead to\n"));
  EXPECT_THAT(text, HasSubstr("    Lost  src/Lost.c:10\n    main  src/main.c:3\n"));
  EXPECT_THAT(text, HasSubstr("  definitely lost   2,142 bytes in 6 blocks\n"));
  EXPECT_THAT(text, HasSubstr("suppressed: 7 bytes in 1 block  Forgiven  lsan.supp:1\n"));
  EXPECT_THAT(text, HasSubstr("unused suppression: NeverSeen  lsan.supp:2\n"));
  EXPECT_THAT(text, HasSubstr("note: thread 7 did not stop\n"));
  EXPECT_THAT(text, Not(HasSubstr("Known"))) << "what is accepted takes no lines";
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // The verdict is one line, for whoever greps.
    if (line.rfind("memtrace check", 0) == 0) continue;
    EXPECT_LE(words::DisplayWidth(line), 80u) << line;
  }
}

TEST_F(FormatsTest, SaysThatWhatIsLostMayHaveBeenFreedWhereThatIsNotSeen) {
  constexpr absl::string_view kNot = "\n  some frees are not seen: what is definitely lost may have been freed there\n";
  EXPECT_THAT(RenderGateText(gate.Report()), Not(HasSubstr(kNot)));
  EXPECT_EQ(Json::parse(RenderGateJson(gate.Report())).at("frees_unseen"), false);
  gate.input.processes[0].frees_unseen = true;
  gate.Judge();
  EXPECT_THAT(RenderGateText(gate.Report()), HasSubstr(kNot));
  EXPECT_EQ(Json::parse(RenderGateJson(gate.Report())).at("frees_unseen"), true);
  gate.input.processes[0].no_evidence = "it was killed";
  gate.Judge();
  EXPECT_THAT(RenderGateText(gate.Report()), Not(HasSubstr(kNot))) << "nothing is said of it at all";
}

// Ten workers that were killed are one thing to know.
TEST_F(FormatsTest, TextTellsAReasonOnceOfAProgram) {
  MadeUpGate killed;
  for (int i = 0; i < 3; ++i) {
    killed.input.processes[killed.AddProcess("server")].no_evidence = "it was killed";
    killed.input.processes[killed.AddProcess("worker")].no_evidence = "it was killed";
  }
  killed.input.processes[killed.AddProcess("server")].no_evidence = "its trace is damaged";
  killed.input.unreadable = {{"a.mtr", "not a trace"}, {"b.mtr", "not a trace"}};
  killed.Judge();
  GateReport report = killed.Report();
  EXPECT_THAT(RenderGateText(report), HasSubstr("NO EVIDENCE: no usable evidence in 9 cases\n"));
  EXPECT_THAT(RenderGateText(report), HasSubstr("\n\nno evidence: a.mtr: not a trace\n"
                                                "no evidence: b.mtr: not a trace\n"
                                                "no evidence: server.1.mtr and 2 more of server: it was killed\n"
                                                "no evidence: worker.2.mtr and 2 more of worker: it was killed\n"
                                                "no evidence: server.7.mtr: its trace is damaged\n"));
  EXPECT_EQ(Json::parse(RenderGateJson(report)).at("missing_evidence").size(), 9u);
  EXPECT_THAT(RenderGateJunit(report), HasSubstr("\nserver.5.mtr: it was killed\n"));
  report.full = true;
  EXPECT_THAT(RenderGateText(report), HasSubstr("no evidence: server.5.mtr: it was killed\n"));
}

// Whose death tests fork children that abort on purpose cannot mend that.
TEST_F(FormatsTest, TextSaysWhereMissingEvidenceMayBeAccepted) {
  constexpr absl::string_view kHow =
      "no evidence: app.2.mtr: it was killed\n"
      "(if that is meant, as in death tests: --missing-evidence report does not fail)\n";
  MadeUpGate killed;
  killed.AddProcess("app");
  killed.AddProcess("app");
  killed.input.processes[1].no_evidence = "it was killed";
  killed.Judge();
  EXPECT_THAT(RenderGateText(killed.Report()), Not(HasSubstr("--missing-evidence")))
      << "who knows what it means";
  killed.input.processes[1].was_killed = true;
  killed.Judge();
  EXPECT_THAT(RenderGateText(killed.Report()), HasSubstr(kHow));
  const GateInput one = killed.input;
  killed.input.unreadable = {{"a.mtr", "not a trace"}};
  killed.Judge();
  EXPECT_THAT(RenderGateText(killed.Report()), Not(HasSubstr("--missing-evidence"))) << "nobody means that";
  killed.input = one;
  killed.input.processes[0].no_evidence = "it was killed";
  killed.Judge();
  EXPECT_THAT(RenderGateText(killed.Report()), Not(HasSubstr("--missing-evidence"))) << "it fails all the same";
  killed.input = one;
  killed.AddLeak(0, LeakKind::kDefinite, killed.Stack("Lost"), 40, 1);
  killed.Judge();
  EXPECT_THAT(RenderGateText(killed.Report()), Not(HasSubstr("--missing-evidence"))) << "it leaks as well";
}

TEST_F(FormatsTest, WhatIsNotJudgedIsCounted) {
  EXPECT_THAT(RenderGateText(gate.Report()), Not(HasSubstr("not judged")));
  gate.input.AddOther("sh");
  gate.Judge();
  EXPECT_THAT(RenderGateText(gate.Report()), HasSubstr("\n  1 process of 1 other program not judged\n"));
  gate.input.AddOther("sh");
  gate.input.AddOther("sed");
  gate.Judge();
  EXPECT_THAT(RenderGateText(gate.Report()), HasSubstr("\n  3 processes of 2 other programs not judged\n"));
  const Json json = Json::parse(RenderGateJson(gate.Report()));
  EXPECT_EQ(json.at("other_processes"), 3);
  EXPECT_EQ(json.at("other_programs"), 2);
}

TEST_F(FormatsTest, TextNamesWhatWasFixed) {
  gate.input.losses.clear();
  gate.input.unreadable.clear();
  gate.policy.max_peak.clear();
  gate.Judge();
  const std::string text = RenderGateText(gate.Report());
  EXPECT_THAT(text, StartsWith("memtrace check: CLEAN\n"));
  EXPECT_THAT(text, HasSubstr("fixed: known:5: definite "));
  EXPECT_THAT(text, HasSubstr("--update-baseline"));
}

TEST_F(FormatsTest, TextAloneTellsWhatBecameOfTheBaseline) {
  GateReport report = gate.Report();
  EXPECT_THAT(RenderGateText(report), Not(HasSubstr("Baseline ")));
  report.baseline_changes = "2 added, 1 removed";
  EXPECT_THAT(RenderGateText(report), HasSubstr("\n\nBaseline known: 2 added, 1 removed\n\n"));
  for (const GateFormat other :
       {GateFormat::kJson, GateFormat::kJunit, GateFormat::kSarif, GateFormat::kGitlab}) {
    EXPECT_THAT(RenderGate(other, report), Not(HasSubstr("2 added")));
  }
}

TEST_F(FormatsTest, OfAProgramThatFailedNothingIsSurelyFixed) {
  MadeUpGate fixed;
  const uint32_t app = fixed.AddProcess("app");
  fixed.AddLeak(app, LeakKind::kDefinite, fixed.Stack("Known"), 30, 3);
  fixed.AcceptAll();
  fixed.input.losses.clear();
  fixed.Judge();
  GateReport report = fixed.Report();
  EXPECT_THAT(RenderGateText(report), HasSubstr("These are gone: --update-baseline"));
  report.unfinished = {"app"};
  EXPECT_THAT(RenderGateText(report), Not(HasSubstr("These are gone")));
  EXPECT_THAT(RenderGateText(report), HasSubstr("These may be gone, or what failed"));
}

TEST_F(FormatsTest, JsonHasEverything) {
  const Json json = Json::parse(RenderGateJson(gate.Report()));
  EXPECT_EQ(json.at("schema"), "memtrace-check/1");
  EXPECT_EQ(json.at("outcome"), "failed");
  EXPECT_EQ(json.at("exit_code"), 1);
  EXPECT_EQ(json.at("gated_leaks"), 2);
  EXPECT_EQ(json.at("leaks").size(), 6u);
  EXPECT_EQ(json.at("leaks")[0].at("indirect_bytes"), 100);
  EXPECT_EQ(json.at("leaks")[0].at("stack")[0].at("function"), "Lost");
  EXPECT_EQ(json.at("totals").at("suppressed").at("bytes"), 7);
  EXPECT_EQ(json.at("limits")[0].at("limit"), "peak");
  EXPECT_EQ(json.at("suppressions").size(), 2u);
  EXPECT_EQ(json.at("missing_evidence")[0], "bad.mtr: not a trace");
}

TEST_F(FormatsTest, JunitHoldsToItsSchema) {
  const std::string xml = RenderGateJunit(gate.Report());
  EXPECT_EQ(validator.Xml(xml, "junit.xsd"), "");
  EXPECT_THAT(xml, HasSubstr("tests=\"4\" failures=\"3\" errors=\"1\" time=\"1.750\""));
  // A leak a case: of several failures in one Jenkins shows the first.
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"memtrace.leaks\" name=\"app: definitely lost, "
                             "Lost  Lost.c ("));
  EXPECT_THAT(xml, HasSubstr("name=\"tool: limit-peak\" time=\"0.000\""));
  EXPECT_THAT(xml, HasSubstr("time=\"1.500\">"));
  for (size_t at = xml.find("<failure"); at != xml.npos; at = xml.find("<failure", at + 1)) {
    EXPECT_LT(xml.find("</testcase>", at), xml.find("<failure", at + 1));
  }
  EXPECT_THAT(xml, HasSubstr("type=\"memtrace.definite\""));
  EXPECT_THAT(xml, HasSubstr("type=\"memtrace.limit-peak\""));
  EXPECT_THAT(xml, HasSubstr("known: definitely lost: 30 bytes in 3 blocks"));
  EXPECT_NE(validator.Xml("<testsuites name=\"x\"/>", "junit.xsd"), "") << "the schema refuses";
}

TEST_F(FormatsTest, SarifHoldsToItsSchema) {
  const std::string text = RenderGateSarif(gate.Report());
  EXPECT_EQ(validator.Json(text, "sarif.json"), "");
  const Json run = Json::parse(text).at("runs")[0];
  const Json& rules = run.at("tool").at("driver").at("rules");
  for (const Json& result : run.at("results")) {
    EXPECT_EQ(rules.at(result.at("ruleIndex").get<size_t>()).at("id"), result.at("ruleId"));
  }
  const Json& lost = run.at("results")[0];
  EXPECT_EQ(lost.at("ruleId"), "memtrace/definite");
  EXPECT_EQ(lost.at("level"), "error");
  EXPECT_EQ(lost.at("baselineState"), "new");
  const Json& place = lost.at("locations")[0].at("physicalLocation");
  EXPECT_EQ(place.at("artifactLocation").at("uri"), "src/Lost.c");
  EXPECT_EQ(place.at("region").at("startLine"), 10);
  const Json& flow = lost.at("codeFlows")[0].at("threadFlows")[0].at("locations");
  ASSERT_EQ(flow.size(), 2u);
  EXPECT_EQ(flow[0].at("location").at("message").at("text"), "main") << "from the outside in";
  EXPECT_EQ(lost.at("stacks")[0].at("frames").size(), 3u);
  const Json& invocation = run.at("invocations")[0];
  EXPECT_EQ(invocation.at("executionSuccessful"), true);
  EXPECT_EQ(invocation.at("toolExecutionNotifications")[0].at("message").at("text"),
            "bad.mtr: not a trace");
  EXPECT_NE(validator.Json("{\"version\": \"2.0.0\", \"runs\": []}", "sarif.json"), "");
}

TEST_F(FormatsTest, SarifRulesHaveWhatGithubShows) {
  const Json sarif = Json::parse(RenderGateSarif(gate.Report()));
  std::set<std::string> helps;
  for (const Json& rule : sarif.at("runs")[0].at("tool").at("driver").at("rules")) {
    const auto shorter = rule.at("shortDescription").at("text").get<std::string>();
    const auto full = rule.at("fullDescription").at("text").get<std::string>();
    EXPECT_THAT(full, StartsWith(shorter));
    EXPECT_GT(full.size(), shorter.size());
    EXPECT_LE(full.size(), 1024u) << "more is cut off";
    helps.insert(rule.at("help").at("text").get<std::string>());
  }
  EXPECT_GT(helps.size(), 3u);
}

// Without a fingerprint of theirs GitHub makes one of the text of the line.
TEST_F(FormatsTest, LeaksByOneLineAreAlertsOfTheirOwn) {
  MadeUpGate one;
  const auto lost = [&one](const std::string& program, std::vector<Step> callers) {
    std::vector<Step> steps = {{"Wrap", "/work/src/wrap.c", 7}};
    steps.insert(steps.end(), callers.begin(), callers.end());
    steps.push_back({"main", "/work/src/main.c", 3});
    const StackId stack = one.made_up.Stack(steps);
    one.made_up.AddSite(stack, 1, 1, 0);
    one.AddLeak(one.AddProcess(program), LeakKind::kDefinite, stack, 40, 1);
  };
  const Step load = {"Load", "/work/src/load.c", 4}, save = {"Save", "/work/src/save.c", 5},
             index = {"Index", "/work/src/index.c", 6};
  lost("app", {load});
  lost("app", {save, index});
  lost("app", {save});
  lost("tool", {load});
  one.Judge();
  const auto results = Json::parse(RenderGateSarif(one.Report())).at("runs")[0].at("results");
  ASSERT_EQ(results.size(), 4u);
  std::set<std::string> hashes, texts, described;
  for (const Json& result : results) {
    EXPECT_EQ(result.at("locations")[0].at("physicalLocation").at("region").at("startLine"), 7);
    hashes.insert(result.at("partialFingerprints").at("primaryLocationLineHash").get<std::string>());
    texts.insert(result.at("message").at("text").get<std::string>());
  }
  EXPECT_EQ(hashes.size(), 4u);
  const std::string what = ": definitely lost: 40 bytes in 1 block, allocated by malloc in Wrap";
  EXPECT_THAT(texts, testing::UnorderedElementsAre("app" + what + ", on behalf of Load.",
                                                   "app" + what + ", on behalf of Index.",
                                                   "app" + what + ", on behalf of main.",
                                                   "tool" + what + ", on behalf of Load."));
  for (const Json& entry : Json::parse(RenderGateGitlab(one.Report()))) {
    described.insert(entry.at("description").get<std::string>() + ".");
  }
  EXPECT_EQ(described, texts);
  // The same leak is the same alert in another run, whatever else there is.
  MadeUpGate later;
  const StackId stack = later.made_up.Stack({{"Wrap", "/work/src/wrap.c", 70},
                                             {"Load", "/work/src/load.c", 40},
                                             {"main", "/work/src/main.c", 30}});
  later.made_up.AddSite(stack, 1, 1, 0);
  later.AddLeak(later.AddProcess("tool"), LeakKind::kDefinite, stack, 80, 2);
  later.Judge();
  const auto moved = Json::parse(RenderGateSarif(later.Report())).at("runs")[0].at("results")[0];
  EXPECT_TRUE(hashes.contains(
      moved.at("partialFingerprints").at("primaryLocationLineHash").get<std::string>()));
  EXPECT_EQ(moved.at("message").at("text"),
            "tool: definitely lost: 80 bytes in 2 blocks, allocated by malloc in Wrap.");
}

// A server makes an alert of each result, whatever its level.
TEST_F(FormatsTest, SarifHasWhatGitlabHasAndNothingThatDoesNotFail) {
  const Json sarif = Json::parse(RenderGateSarif(gate.Report())).at("runs")[0].at("results");
  const Json gitlab = Json::parse(RenderGateGitlab(gate.Report()));
  ASSERT_EQ(sarif.size(), gitlab.size());
  for (size_t i = 0; i < sarif.size(); ++i) {
    EXPECT_EQ(sarif[i].at("ruleId"), gitlab[i].at("check_name"));
    EXPECT_EQ(sarif[i].at("level"), "error");
  }
  MadeUpGate green;
  const uint32_t app = green.AddProcess("app");
  green.AddLeak(app, LeakKind::kDefinite, green.Stack("Known"), 30, 3);
  green.AcceptAll();
  green.AddLeak(app, LeakKind::kPossible, green.Stack("Maybe"), 5, 1);
  EXPECT_EQ(green.Judge().exit_code(), 0);
  EXPECT_EQ(green.result.leaks.size(), 2u);
  const std::string text = RenderGateSarif(green.Report());
  EXPECT_EQ(validator.Json(text, "sarif.json"), "");
  const Json run = Json::parse(text).at("runs")[0];
  EXPECT_EQ(run.at("results"), Json::array());
  EXPECT_FALSE(run.at("tool").at("driver").at("rules").empty());
  GateReport report = green.Report();
  report.source_roots = {"/elsewhere"};
  EXPECT_EQ(WhyNothingIsBelow(report, ""), "") << "no place is shown";
}

TEST_F(FormatsTest, GitlabHoldsToItsSchema) {
  const std::string text = RenderGateGitlab(gate.Report());
  EXPECT_EQ(validator.Json(text, "gitlab-code-quality.json"), "");
  const Json json = Json::parse(text);
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[3].at("check_name"), "memtrace/no-evidence") << "of bad.mtr";
  EXPECT_EQ(json[0].at("location").at("path"), "src/Lost.c");
  EXPECT_EQ(json[0].at("check_name"), "memtrace/definite");
  std::set<std::string> fingerprints;
  for (const Json& one : json) fingerprints.insert(one.at("fingerprint").get<std::string>());
  EXPECT_EQ(fingerprints.size(), json.size());
  EXPECT_NE(validator.Json("[{\"description\": \"x\"}]", "gitlab-code-quality.json"), "");
}

TEST_F(FormatsTest, ACleanGateHoldsToTheSchemasToo) {
  MadeUpGate clean;
  clean.AddProcess("app");
  clean.Judge();
  EXPECT_EQ(validator.Xml(RenderGateJunit(clean.Report()), "junit.xsd"), "");
  EXPECT_THAT(RenderGateJunit(clean.Report()),
              HasSubstr("<testcase classname=\"memtrace.leaks\" name=\"app\" time=\"0.000\" />"));
  EXPECT_EQ(validator.Json(RenderGateSarif(clean.Report()), "sarif.json"), "");
  EXPECT_EQ(RenderGateGitlab(clean.Report()), "[]\n");
  EXPECT_THAT(RenderGateText(clean.Report()), StartsWith("memtrace check: CLEAN\n"));
  MadeUpGate blind;
  blind.Judge();
  EXPECT_EQ(validator.Xml(RenderGateJunit(blind.Report()), "junit.xsd"), "");
  EXPECT_THAT(RenderGateJunit(blind.Report()), HasSubstr("errors=\"1\""));
  EXPECT_EQ(validator.Json(RenderGateSarif(blind.Report()), "sarif.json"), "");
  // Servers compare the entries: without any, all that was there before is mended.
  EXPECT_THAT(RenderGateSarif(blind.Report()), HasSubstr("no usable evidence: no process was looked at."));
  EXPECT_THAT(RenderGateGitlab(blind.Report()), HasSubstr("memtrace/no-evidence"));
  EXPECT_THAT(RenderGateText(blind.Report()), StartsWith("memtrace check: NO EVIDENCE"));
}

TEST_F(FormatsTest, PlacesAreBelowTheSourceRoot) {
  EXPECT_EQ(BelowRoot("/work", "/work/src/a.c"), "src/a.c");
  EXPECT_EQ(BelowRoot("/work/", "/work//./a.c"), "a.c");
  EXPECT_EQ(BelowRoot("/work/.", "/work/a.c"), "a.c");
  EXPECT_EQ(BelowRoot("/work", "/workshop/a.c"), "");
  EXPECT_EQ(BelowRoot("/work", "/work/../etc/a.c"), "");
  EXPECT_EQ(BelowRoot("", "/a.c"), "");
  GateReport report = gate.Report();
  EXPECT_EQ(PlaceOf(report, gate.result.leaks[0]).path, "src/Lost.c");
  EXPECT_EQ(WhyNothingIsBelow(report, ""), "") << "it ran above its sources";
  const std::string ran_in = gate.result.leaks[0].working_directory;
  for (GateLeak& leak : gate.result.leaks) leak.working_directory = "/work/build";
  EXPECT_THAT(WhyNothingIsBelow(report, ""), HasSubstr("below /work/build, where the program ran; one was /work/src/"));
  for (GateLeak& leak : gate.result.leaks) leak.working_directory = ran_in;
  report.source_roots = {"/work/src"};
  EXPECT_EQ(PlaceOf(report, gate.result.leaks[0]).path, "Lost.c");
  EXPECT_EQ(WhyNothingIsBelow(report, "/work/src"), "");
  report.source_roots = {"/no/such/root"};
  EXPECT_EQ(PlaceOf(report, gate.result.leaks[0]).path, "");
  EXPECT_THAT(WhyNothingIsBelow(report, "/no/such/root"), HasSubstr("/work/src/Lost.c"));
  EXPECT_THAT(WhyNothingIsBelow(report, "/no/such/root"), HasSubstr("no directory here"));
  EXPECT_THAT(WhyNothingIsBelow(report, "/"), Not(HasSubstr("no directory here")));
}

TEST_F(FormatsTest, SarifHasARuleOfItsOwnForEachLimit) {
  MadeUpGate passed;
  passed.Judge();
  passed.result.excesses.clear();
  for (size_t what = 0; what < GateExcess::kWhatCount; ++what) {
    passed.result.excesses.emplace_back().what = static_cast<GateExcess::What>(what);
    ASSERT_NE(ExcessName(passed.result.excesses.back().what), "") << what;
  }
  std::set<std::string> rules;
  const Json sarif = Json::parse(RenderGateSarif(passed.Report()));
  for (const Json& found : sarif.at("runs")[0].at("results")) {
    rules.insert(found.at("ruleId").get<std::string>());
  }
  for (const GateExcess& excess : passed.result.excesses) {
    const std::string rule = "memtrace/limit-" + std::string(ExcessName(excess.what));
    EXPECT_TRUE(rules.contains(rule)) << rule;
  }
}

TEST_F(FormatsTest, WrongFreesAreShownWhereTheyAre) {
  MadeUpGate wrong;
  const uint32_t app = wrong.AddProcess("app");
  const StackId elsewhere = wrong.made_up.Stack({{"Made", "/usr/src/made.c", 4}});
  wrong.made_up.AddSite(elsewhere, 1, 1, 0);
  const auto freed_at = [&](StackId from, StackId to) {
    wrong.input.ends = {{app,
                         true,
                         {from, to, format::AllocFunction::kMalloc, BlockEnds::By::kFree, 1}}};
    wrong.Judge();
  };
  const auto place = [&] {
    return Json::parse(RenderGateGitlab(wrong.Report())).at(0).at("location").dump();
  };
  const StackId make = wrong.Stack("Make", 3), drop = wrong.Stack("Drop", 9);
  freed_at(make, drop);
  EXPECT_EQ(place(), R"({"lines":{"begin":9},"path":"src/Drop.c"})");
  EXPECT_THAT(Json::parse(RenderGateGitlab(wrong.Report())).at(0).at("description"),
              testing::AllOf(StartsWith("app: 1 invalid free, at most 0: malloc at Make src/Make.c:3, "),
                             HasSubstr("free at Drop src/Drop.c:9")));
  EXPECT_THAT(RenderGateText(wrong.Report()), Not(HasSubstr("MEMTRACE_FREE_STACKS")));
  const Json sarif = Json::parse(RenderGateSarif(wrong.Report()));
  EXPECT_EQ(sarif.at("runs")[0].at("results")[0].at("locations")[0].at("physicalLocation").dump(),
            R"({"artifactLocation":{"uri":"src/Drop.c","uriBaseId":"%SRCROOT%"},)"
            R"("region":{"startLine":9}})");
  EXPECT_EQ(validator.Json(RenderGateSarif(wrong.Report()), "sarif.json"), "");
  freed_at(make, {});
  EXPECT_EQ(place(), R"({"lines":{"begin":3},"path":"src/Make.c"})") << "no stacks of frees";
  EXPECT_THAT(RenderGateText(wrong.Report()),
              HasSubstr("limit:   malloc at Make src/Make.c:3, free\n"
                        "Where they were freed is recorded by memtrace run --free-stacks\n"
                        "(MEMTRACE_FREE_STACKS=on).\n"));
  EXPECT_THAT(RenderGateJunit(wrong.Report()), HasSubstr("(MEMTRACE_FREE_STACKS=on).\napp.1.mtr"));
  freed_at(make, elsewhere);
  EXPECT_EQ(place(), R"({"lines":{"begin":3},"path":"src/Make.c"})");
  freed_at(elsewhere, elsewhere);
  EXPECT_EQ(place(), R"({"lines":{"begin":1},"path":"app"})");
  EXPECT_THAT(WhyNothingIsBelow(wrong.Report(), ""),
              HasSubstr("wrong free was below /work, where the program ran; one was /usr/src/"));
  GateReport rooted = wrong.Report();
  rooted.source_roots = {"/usr"};
  EXPECT_EQ(Json::parse(RenderGateJson(rooted)).at("limits")[0].at("places")[0],
            "malloc at Made src/made.c:4, free at Made src/made.c:4");
}

// -ffile-prefix-map=DIR=. makes such names, which no repository has.
TEST_F(FormatsTest, RelativePlacesBeginWithTheirFolder) {
  MadeUpGate relative;
  const StackId stack = relative.made_up.Stack({{"Lost", "./src/Lost.c", 10}, {"main", "./src/main.c", 3}});
  relative.made_up.AddSite(stack, 1, 1, 0);
  relative.AddLeak(relative.AddProcess("server"), LeakKind::kDefinite, stack, 40, 1);
  relative.Judge();
  EXPECT_EQ(PlaceOf(relative.Report(), relative.result.leaks[0]).path, "src/Lost.c");
  EXPECT_EQ(Json::parse(RenderGateGitlab(relative.Report()))[0].at("location").at("path"), "src/Lost.c");
}

// The compiler ran in a directory of the project, which the map put before the name.
TEST_F(FormatsTest, RelativePlacesAreLookedForBelowTheSourceRoot) {
  const TempDir directory;
  std::filesystem::create_directories(directory / "src/b");
  for (const char* name : {"src/a.c", "src/b/c.c", "c.c"}) std::ofstream(directory / name) << "\n";
  const std::vector<std::string> roots = {"/no/such/root", directory.path()};
  const auto below = [&](const std::string& file, FrameRole role = FrameRole::kProject) {
    Frame frame;
    frame.file = file;
    frame.role = role;
    return BelowRoots(roots, frame);
  };
  EXPECT_EQ(below("./build/src/a.c"), "src/a.c");
  EXPECT_EQ(below("../src/a.c"), "src/a.c");
  EXPECT_EQ(below("x/src/b/c.c"), "src/b/c.c") << "as much of it as possible";
  EXPECT_EQ(below("libx-1.0/c.c"), "") << "of another project, which has a file of that name too";
  EXPECT_EQ(below("./libx-1.0/c.c"), "");
  EXPECT_EQ(below("src/c.c"), "");
  EXPECT_EQ(below("./src/c.c"), "c.c") << "the compiler ran in src";
  EXPECT_EQ(below("c.c"), "c.c");
  EXPECT_EQ(below("./../c.c"), "c.c");
  EXPECT_EQ(below("src/b"), "") << "a directory";
  EXPECT_EQ(below("build/gone.c"), "");
  EXPECT_EQ(below("./src/a.c", FrameRole::kSystem), "") << "of a library's own sources";
  EXPECT_EQ(below(directory / "src/a.c"), "src/a.c");
  EXPECT_EQ(below("/elsewhere/src/a.c"), "") << "a whole name is one place";

  MadeUpGate relative;
  const StackId stack =
      relative.made_up.Stack({{"Lost", "./build/src/a.c", 10}, {"main", "./build/gone.c", 3}});
  relative.made_up.AddSite(stack, 1, 1, 0);
  relative.AddLeak(relative.AddProcess("server"), LeakKind::kDefinite, stack, 40, 1);
  relative.Judge();
  GateReport report = relative.Report();
  report.source_roots = {directory.path()};
  EXPECT_EQ(PlaceOf(report, relative.result.leaks[0]).path, "src/a.c");
  EXPECT_THAT(RenderGateSarif(report), HasSubstr("\"src/a.c\""));
  EXPECT_THAT(RenderGateText(report), HasSubstr("Lost  src/a.c:10\n"));
  EXPECT_EQ(WhyNothingIsBelow(report, directory.path()), "");
  report.source_roots = {directory / "src/b"};
  EXPECT_THAT(WhyNothingIsBelow(report, directory / "src/b"), HasSubstr("one was ./build/src/a.c"));
  report.source_roots = {"/no/such/root"};
  EXPECT_EQ(WhyNothingIsBelow(report, "/no/such/root"), "") << "nothing is here to judge by";
  EXPECT_EQ(PlaceOf(report, relative.result.leaks[0]).path, "build/src/a.c");
}

// Debug information has the one or the other, by how the compiler was called.
TEST_F(FormatsTest, ASourceRootIsItsSymbolicLinkToo) {
  const TempDir directory;
  const std::filesystem::path real = directory / "real", link = directory / "link";
  std::filesystem::create_directory(real);
  std::filesystem::create_directory_symlink(real, link);
  const std::vector<std::string> roots = SourceRoots(link);
  EXPECT_EQ(BelowRoots(roots, real / "a.c"), "a.c");
  EXPECT_EQ(BelowRoots(roots, link / "b/a.c"), "b/a.c");
  EXPECT_EQ(SourceRoots("/no/such/root"), std::vector<std::string>{"/no/such/root"});
  EXPECT_TRUE(SourceRoots("").empty());
}

}  // namespace
}  // namespace memtrace::report::gate
