// Packed traces of the programs of bench/peers: at most a byte and a half an event.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

// What `memtrace info` says of the packed trace of a program that ends well.
double BytesAnEvent(const Command& program) {
  TempDir traces;
  const std::string trace = traces / "packed.mtr";
  Command traced = program;
  traced.arguments.insert(traced.arguments.begin(), {ToolPath(), "run", "-q", "-o", trace, "--"});
  const Result run = RunCommand(traced);
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string info = RunCommand({.arguments = {ToolPath(), "info", trace}}).out;
  constexpr char kLabel[] = "bytes an event";
  const size_t at = info.find(kLabel);
  EXPECT_NE(at, std::string::npos) << info;
  return at == std::string::npos ? 0 : std::atof(info.c_str() + at + sizeof(kLabel) - 1);
}

void ExpectFewBytes(const Command& program) {
  const double bytes = BytesAnEvent(program);
  EXPECT_GT(bytes, 0.01);
  EXPECT_LE(bytes, 1.5);
}

TEST(PackedSizeTest, TheCompiler) {
  const Result found = RunCommand({.arguments = {"g++", "-print-prog-name=cc1plus"}});
  const std::string compiler = found.out.substr(0, found.out.find('\n'));
  ExpectFewBytes({.arguments = {compiler, "-quiet", "-imultiarch", "x86_64-linux-gnu",
                                "-D_GNU_SOURCE", "-std=c++20", "-O1",
                                SourcePath("bench/workloads/headers.cc"), "-o",
                                "/dev/null"}});
}

TEST(PackedSizeTest, Python) {
  ExpectFewBytes({.arguments = {"/usr/bin/python3", "-s", "-B",
                                SourcePath("bench/workloads/json_workload.py"), "30000"},
                  .environment = {{"PYTHONMALLOC", "malloc"}, {"PYTHONHASHSEED", "0"}}});
}

TEST(PackedSizeTest, Sqlite) {
  TempDir work;
  std::string sql = ReadFile(SourcePath("bench/workloads/in_memory.sql"));
  for (size_t at; (at = sql.find(":rows")) != std::string::npos;) sql.replace(at, 5, "100000");
  WriteFile(work / "in.sql", sql);
  ExpectFewBytes({.arguments = {"sqlite3", "-batch", ":memory:"}, .input = work / "in.sql"});
}

}  // namespace
}  // namespace memtrace::e2e
