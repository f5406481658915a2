// `memtrace compare` with the Valgrind that is installed, on programs that are built here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/harness.h"
#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {
namespace {

using testing::HasSubstr;

class CompareTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HaveValgrind()) GTEST_SKIP() << "valgrind is not installed";
  }

  // The trace of `program`, its memory scanned at its end.
  void Trace(const Words& program, int status = 0) {
    Words words = {ToolPath(), "run", "-q", "-o", directory_ / "a.mtr", "--"};
    words.insert(words.end(), program.begin(), program.end());
    const Result run =
        RunCommand({.arguments = words, .environment = {{"MEMTRACE_LEAK_CHECK", "exit"}}});
    ASSERT_EQ(run.exit_status, status) << run.err;
  }
  void Valgrind(const Words& options, const Words& program) {
    Words words = MemcheckCommand({"--xml=yes", "--xml-file=" + directory_ / "a.xml"});
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), program.begin(), program.end());
    const Result run = RunCommand({.arguments = words});
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  }
  Json Compared(int* status) {
    const Result compared = RunCommand({.arguments = {ToolPath(), "compare", "--format", "json",
                                                      directory_ / "a.mtr", directory_ / "a.xml"}});
    *status = compared.exit_status;
    return compared.out.empty() ? Json(compared.err) : Json::parse(compared.out);
  }

  const TempDir directory_;
};

const std::string kShowAll = "--show-leak-kinds=all";

TEST_F(CompareTest, LeaksOfEachKindAgree) {
  const Words program = {TraceePath("leaks_of_each_kind")};
  Trace(program);
  Valgrind({kShowAll}, program);
  int status = -1;
  const Json json = Compared(&status);
  EXPECT_EQ(status, 0) << json.dump(1);
  EXPECT_EQ(json["here"]["scanned"], true) << json["notes"];
  EXPECT_EQ(json["counts"]["agree"], 5) << json.dump(1);
  EXPECT_EQ(json["here"]["leaks"], json["there"]["leaks"]);
  EXPECT_EQ(json["there"]["leaks"]["definite"]["blocks"], 4);
  EXPECT_GT(json["there"]["duration_s"], json["here"]["duration_s"]);
}

TEST_F(CompareTest, ATraceInPlaceOfTheXmlIsToldByName) {
  Trace({TraceePath("counted_pairs"), "pair", "1"});
  const std::string trace = directory_ / "a.mtr";
  const auto error = [&](const std::string& first, const std::string& second) {
    const Result result = RunCommand({.arguments = {ToolPath(), "compare", first, second}});
    EXPECT_EQ(result.exit_status, 2);
    return result.err;
  };
  EXPECT_THAT(error(trace, trace), testing::HasSubstr("memtrace diff compares two traces"));
  WriteFile(directory_ / "a.xml", "<valgrindoutput/>");
  EXPECT_THAT(error(directory_ / "a.xml", trace), testing::HasSubstr("it comes first: memtrace compare TRACE XML"));
}

TEST_F(CompareTest, CutStacksAndFewerKindsAgreeAsWell) {
  const Words program = {TraceePath("leaks_of_each_kind")};
  Trace(program);
  Valgrind({"--num-callers=2"}, program);
  int status = -1;
  const Json json = Compared(&status);
  EXPECT_EQ(status, 0) << json.dump(1);
  EXPECT_GE(json["counts"]["agree"], 3) << json.dump(1);
}

TEST_F(CompareTest, LeaksOfAStrippedProgramAreToldApart) {
  const std::string stripped = directory_ / "stripped";
  ASSERT_EQ(RunCommand({.arguments = {"strip", "-o", stripped, TraceePath("leaks_of_each_kind")}})
                .Outcome(),
            "exit 0");
  Trace({stripped});
  Valgrind({kShowAll}, {stripped});
  int status = -1;
  const Json json = Compared(&status);
  EXPECT_EQ(status, 0) << json.dump(1);
  EXPECT_EQ(json["counts"]["agree"], 5) << json.dump(1);
  for (const Json& leak : json["leaks"]) {
    EXPECT_EQ(leak["matched_by"], "lines");
    EXPECT_TRUE(leak["stack"].at(1).contains("offset")) << leak.dump(1);
  }
}

TEST_F(CompareTest, AnotherRunOfItDiffers) {
  Trace({TraceePath("leaks_of_each_kind")});
  Valgrind({kShowAll}, {TraceePath("leaks_of_each_kind"), "none"});
  int status = -1;
  const Json json = Compared(&status);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(json["counts"]["only here"], 5) << json.dump(1);
}

TEST_F(CompareTest, ACutFileIsReadAsFarAsItGoes) {
  const Words program = {TraceePath("leaks_of_each_kind")};
  Trace(program);
  Valgrind({kShowAll}, program);
  const std::string xml = ReadFile(directory_ / "a.xml");
  WriteFile(directory_ / "a.xml", xml.substr(0, xml.rfind("<error>")));
  int status = -1;
  const Json json = Compared(&status);
  EXPECT_EQ(status, 1);
  EXPECT_FALSE(json["there"]["damage"].is_null());
  EXPECT_EQ(json["counts"]["agree"], 4) << json.dump(1);
}

TEST_F(CompareTest, WhatCannotBeUsedIsRefusedInOneLine) {
  Trace({TraceePath("leaks_of_each_kind")});
  for (const char* xml : {"", "not XML", "<valgrindoutput></valgrindoutput>"}) {
    WriteFile(directory_ / "a.xml", xml);
    int status = -1;
    const Json json = Compared(&status);
    EXPECT_EQ(status, 2);
    EXPECT_THAT(json.get<std::string>(), HasSubstr("a.xml: it "));
  }
}

TEST_F(CompareTest, OurXmlIsValgrindsToCompare) {
  Trace({TraceePath("leaks_of_each_kind")});
  const Result xml = RunCommand({.arguments = {ToolPath(), "report", "--format", "valgrind-xml",
                                               "-o", directory_ / "a.xml", directory_ / "a.mtr"}});
  ASSERT_EQ(xml.exit_status, 0) << xml.err;
  int status = -1;
  const Json json = Compared(&status);
  EXPECT_EQ(status, 0) << json.dump(1);
  EXPECT_EQ(json["here"]["leaks"]["indirect"], json["there"]["leaks"]["indirect"]);
}

// Its amounts are estimates: beside exact ones all would differ. Needs no Valgrind.
TEST(CompareSampleTest, ASampleIsRefusedInOneLine) {
  const TempDir directory;
  const auto trace = [&](const std::string& name, const Words& options) {
    Words words = {ToolPath(), "run", "-q", "-o", directory / name};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", TraceePath("leaks_of_each_kind")});
    const Result run =
        RunCommand({.arguments = words, .environment = {{"MEMTRACE_LEAK_CHECK", "exit"}}});
    ASSERT_EQ(run.exit_status, 0) << run.err;
  };
  trace("all.mtr", {});
  trace("sample.mtr", {"--sample-bytes", "16"});
  const Result xml = RunCommand({.arguments = {ToolPath(), "report", "--format", "valgrind-xml",
                                               "-o", directory / "a.xml", directory / "all.mtr"}});
  ASSERT_EQ(xml.exit_status, 0) << xml.err;
  const Result compared = RunCommand({.arguments = {ToolPath(), "compare",
                                                    directory / "sample.mtr", directory / "a.xml"}});
  EXPECT_EQ(compared.exit_status, 2) << compared.out;
  EXPECT_EQ(compared.out, "");
  EXPECT_THAT(compared.err, HasSubstr("sample.mtr: this is a sample, "));
  EXPECT_THAT(compared.err, HasSubstr("without --sample-bytes"));
}

}  // namespace
}  // namespace memtrace::e2e
