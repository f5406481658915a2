#include "preload/config.h"

#include <gtest/gtest.h>

#include <string>

namespace memtrace {
namespace {

// An environment block: entries ended by NUL, as in /proc/self/environ.
std::string Environment(std::initializer_list<const char*> entries) {
  std::string block;
  for (const char* entry : entries) block.append(entry).push_back('\0');
  return block;
}

struct Parsed {
  Config config;
  std::string said;
};

Parsed Parse(const std::string& environment) {
  testing::internal::CaptureStderr();
  Parsed parsed;
  parsed.config.Parse(environment);
  parsed.said = testing::internal::GetCapturedStderr();
  return parsed;
}

TEST(ConfigTest, HasTheDocumentedDefaults) {
  const Parsed parsed = Parse(Environment({"PATH=/bin", "HOME=/root"}));
  EXPECT_EQ(parsed.config.out.view(), "memtrace.%e.%p.mtr");
  EXPECT_TRUE(parsed.config.stacks);
  EXPECT_FALSE(parsed.config.free_stacks);
  EXPECT_TRUE(parsed.config.children);
  EXPECT_EQ(parsed.config.max_bytes, 0u);
  EXPECT_EQ(parsed.said, "");
}

TEST(ConfigTest, NotesWhereCharacterSetsAre) {
  EXPECT_EQ(Parse(Environment({"HOME=/root"})).config.gconv_path.view(), "");
  EXPECT_EQ(Parse(Environment({"GCONV_PATH=/opt/a:/opt/b"})).config.gconv_path.view(),
            "/opt/a:/opt/b");
}

// glibc may have put ends behind the tunables that it knew.
TEST(ConfigTest, NotesHugeHeaps) {
  const auto huge = [](std::initializer_list<const char*> entries) {
    return Parse(Environment(entries)).config.glibc_has_huge_heaps;
  };
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.hugetlb=2"}));
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.hugetlb=2:glibc.malloc.check=0"}));
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.check=0:glibc.malloc.hugetlb=2"}));
  EXPECT_TRUE(huge({"A=1", "GLIBC_TUNABLES=glibc.malloc.check=0", "glibc.malloc.hugetlb=2", "B=2"}));
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.check=0", ":glibc.malloc.hugetlb=2"}));
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.check=0", "x=1:glibc.malloc.hugetlb=2"}));
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.check=0::glibc.malloc.hugetlb=2"}));
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.hugetlb=2:xglibc.malloc.hugetlb=0"}));
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.hugetlb=0", "glibc.malloc.hugetlb=2"}));
  EXPECT_TRUE(huge({"GLIBC_TUNABLES=glibc.malloc.hugetlb=2", "glibc.malloc.check=0"}));
  EXPECT_FALSE(huge({"GLIBC_TUNABLES=glibc.malloc.hugetlb=1", "glibc.malloc.check=0"}));
  EXPECT_FALSE(huge({"GLIBC_TUNABLES=glibc.malloc.hugetlb=0:glibc.malloc.check=2"}));
  EXPECT_FALSE(huge({"GLIBC_TUNABLES=xglibc.malloc.hugetlb=2"}));
  EXPECT_FALSE(huge({"glibc.malloc.hugetlb=2"}));
  EXPECT_FALSE(huge({"HOME=/root"}));
}

TEST(ConfigTest, TakesEntriesThatLieAnywhere) {
  const char* const entries[] = {"HOME=/root", "GLIBC_TUNABLES=glibc.malloc.hugetlb=2",
                                 "MEMTRACE_OUT=/tmp/a.mtr", "MEMTRACE_STACKS=off", nullptr};
  Config config;
  config.Parse(entries, nullptr);
  EXPECT_EQ(config.out.view(), "/tmp/a.mtr");
  EXPECT_FALSE(config.stacks);
  EXPECT_TRUE(config.glibc_has_huge_heaps);
  EXPECT_FALSE(config.usual_stacks);
}

TEST(ConfigTest, TakesEveryVariable) {
  const Parsed parsed = Parse(Environment({"MEMTRACE_OUT=/tmp/x.mtr", "MEMTRACE_STACKS=off",
                                           "MEMTRACE_CHILDREN=off", "MEMTRACE_MAX_BYTES=500M",
                                           "MEMTRACE_FREE_STACKS=on"}));
  EXPECT_EQ(parsed.config.out.view(), "/tmp/x.mtr");
  EXPECT_FALSE(parsed.config.stacks);
  EXPECT_TRUE(parsed.config.free_stacks);
  EXPECT_FALSE(parsed.config.children);
  EXPECT_EQ(parsed.config.max_bytes, 500u << 20);
  EXPECT_EQ(parsed.said, "");
}

TEST(ConfigTest, ALimitIsNoMoreThanAFileCanHave) {
  const Parsed parsed = Parse(Environment({"MEMTRACE_MAX_BYTES=18446744073709551615"}));
  EXPECT_EQ(parsed.config.max_bytes, uint64_t{INT64_MAX});
  EXPECT_EQ(parsed.said, "");
}

TEST(ConfigTest, OnlyTheDefaultWayOfStacksIsTheUsualOne) {
  EXPECT_TRUE(Parse("").config.usual_stacks);
  for (const char* entry : {"MEMTRACE_STACKS=off", "MEMTRACE_JOIN=0", "MEMTRACE_CROSS_CHECK=1"}) {
    const Parsed parsed = Parse(Environment({entry}));
    EXPECT_FALSE(parsed.config.usual_stacks) << entry;
    EXPECT_EQ(parsed.said, "");
  }
  EXPECT_EQ(Parse(Environment({"MEMTRACE_CROSS_CHECK=250"})).config.cross_check, 250u);
  for (const char* wrong : {"MEMTRACE_CROSS_CHECK=1K", "MEMTRACE_CROSS_CHECK=",
                            "MEMTRACE_CROSS_CHECK=-1", "MEMTRACE_CROSS_CHECK=4294967296"}) {
    const Parsed parsed = Parse(Environment({wrong}));
    EXPECT_TRUE(parsed.config.usual_stacks) << wrong;
    EXPECT_NE(parsed.said, "") << wrong;
  }
}

TEST(ConfigTest, AWrongValueIsOneLineAndTheDefault) {
  const Parsed parsed = Parse(Environment({"MEMTRACE_STACKS=maybe", "MEMTRACE_OUT="}));
  EXPECT_TRUE(parsed.config.stacks);
  EXPECT_EQ(parsed.config.out.view(), "memtrace.%e.%p.mtr");
  EXPECT_EQ(parsed.said,
            "memtrace: MEMTRACE_STACKS=maybe is ignored: it takes all or off\n"
            "memtrace: MEMTRACE_OUT= is ignored: it takes a file name; %e is the program, %p the "
            "pid, %t the start time\n");
}

TEST(ConfigTest, AMisspeltNameIsOneLine) {
  for (const auto& [name, meant] :
       {std::pair("OUTPUT", "OUT"), {"STACK", "STACKS"}, {"SAMPLE", "SAMPLE_BYTES"}, {"FAULT", "FAULTS"},
        {"LEAK_CHEK", "LEAK_CHECK"}, {"CHILDERN", "CHILDREN"}, {"OTU", "OUT"}, {"CHLIDERN", ""}, {"OUT_DIR", ""}, {"SYMBOL_CACHE", ""}, {"", ""},
        {"LONG_TESTS", ""}, {"STACKS", ""}, {"KEEP", ""}, {"JOIM", "JOIN"}, {"jOIN", "JOIN"}}) {
    const std::string entry = "MEMTRACE_" + std::string(name) + "=all";
    const std::string said = Parse(Environment({entry.c_str()})).said;
    const std::string about = std::string("no variable has this name; MEMTRACE_") + meant + " has\n";
    EXPECT_EQ(said.find("no variable has this name") != std::string::npos, *meant != 0) << said;
    if (*meant != 0) {
      EXPECT_EQ(said, "memtrace: MEMTRACE_" + std::string(name) + " is ignored: " + about);
    }
  }
}

TEST(ConfigTest, AWrongValueMovesNoCursor) {
  const Parsed parsed = Parse(Environment({"MEMTRACE_STACKS=\x1b[2J\nso\r"}));
  EXPECT_NE(parsed.said.find("MEMTRACE_STACKS=?[2J?so? is ignored"), std::string::npos)
      << parsed.said;
  EXPECT_EQ(parsed.said.find('\n'), parsed.said.size() - 1);
}

TEST(ConfigTest, FaultsAreOffUnlessAskedFor) {
  EXPECT_EQ(Parse(Environment({})).config.faults, FaultMode::kOff);
  EXPECT_EQ(Parse(Environment({"MEMTRACE_FAULTS=auto"})).config.faults, FaultMode::kAuto);
  EXPECT_EQ(Parse(Environment({"MEMTRACE_FAULTS=user"})).config.faults, FaultMode::kUser);
  EXPECT_EQ(Parse(Environment({"MEMTRACE_FAULTS=snapshots"})).config.faults,
            FaultMode::kSnapshots);
  EXPECT_EQ(Parse(Environment({"MEMTRACE_FAULTS=off"})).said, "");
  const Parsed wrong = Parse(Environment({"MEMTRACE_FAULTS=on"}));
  EXPECT_NE(wrong.said.find("it takes auto, user, snapshots or off"), std::string::npos);
  EXPECT_EQ(wrong.config.faults, FaultMode::kOff);
}

TEST(ConfigTest, SamplingTakesASizeAndASeed) {
  const Parsed parsed =
      Parse(Environment({"MEMTRACE_SAMPLE_BYTES=512K", "MEMTRACE_SAMPLE_SEED=77"}));
  EXPECT_EQ(parsed.said, "");
  EXPECT_EQ(parsed.config.sample_bytes, 524288u);
  EXPECT_EQ(parsed.config.sample_seed, 77u);
  EXPECT_EQ(Parse(Environment({"MEMTRACE_SAMPLE_BYTES=0"})).config.sample_bytes, 0u);
  EXPECT_EQ(Parse(Environment({"MEMTRACE_SAMPLE_BYTES=1T"})).config.sample_bytes, uint64_t{1} << 40);
  for (const char* wrong : {"MEMTRACE_SAMPLE_BYTES=2T", "MEMTRACE_SAMPLE_BYTES=many"}) {
    const Parsed refused = Parse(Environment({wrong}));
    EXPECT_EQ(refused.config.sample_bytes, 0u) << wrong;
    EXPECT_NE(refused.said.find("is ignored: it takes a size such as 512K"), std::string::npos);
  }
}

TEST(ConfigTest, SurvivesAnEnvironmentCutAnywhere) {
  const std::string whole = Environment({"MEMTRACE_OUT=abc", "MEMTRACE_MAX_BYTES=1K", "A"});
  testing::internal::CaptureStderr();
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    Config config;
    config.Parse(std::string_view(whole).substr(0, cut));
    EXPECT_GT(config.out.size(), 0u);
  }
  testing::internal::GetCapturedStderr();
}

TEST(ParseBytesTest, UnderstandsUnitsAndRefusesTheRest) {
  uint64_t bytes = 0;
  EXPECT_TRUE(ParseBytes("4096", &bytes));
  EXPECT_EQ(bytes, 4096u);
  EXPECT_TRUE(ParseBytes("64K", &bytes));
  EXPECT_EQ(bytes, 65536u);
  EXPECT_TRUE(ParseBytes("2G", &bytes));
  EXPECT_EQ(bytes, uint64_t{2} << 30);
  bytes = 7;
  for (const char* wrong : {"", "K", ".", ".K", "-1", "1.5", "1.5B", "4X", "4KiBs", "4Ki", "1MK",
                            "1e3", "1..2M", "1.2.3M", "0x10", "inf", "nanM", "1 2", "18446744073709551616",
                            "16777216T", "99999999999999999999G"}) {
    EXPECT_FALSE(ParseBytes(wrong, &bytes)) << wrong;
  }
}

// As byte_size_test.cc has it of the options: a size that `memtrace run` takes for one of them is
// one for the variable, which it hands on.
TEST(ParseBytesTest, TakesASizeAsTheOptionsDo) {
  for (const auto& [text, bytes] :
       {std::pair<const char*, uint64_t>{"0", 0}, {"4B", 4}, {"512K", 512 << 10},
        {"64KB", 64 << 10}, {"64kib", 64 << 10}, {"64 K", 64 << 10}, {" 12 ", 12},
        {"1.5M", 3 << 19}, {"0.1k", 102}, {".5K", 512}, {"2.K", 2048}, {"2GiB", uint64_t{2} << 30},
        {"2 gb", uint64_t{2} << 30}, {"1T", uint64_t{1} << 40},
        {"1.0009765625G", (uint64_t{1} << 30) + (1 << 20)},
        {"0.9999999999999999T", uint64_t{1} << 40}, {"9007199254740993K", 9007199254740993u << 10},
        {"18446744073709551615", UINT64_MAX}}) {
    uint64_t parsed = 1;
    EXPECT_TRUE(ParseBytes(text, &parsed)) << text;
    EXPECT_EQ(parsed, bytes) << text;
  }
}

}  // namespace
}  // namespace memtrace
