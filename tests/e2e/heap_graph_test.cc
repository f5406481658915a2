// What keeps the blocks of a program that knows it: memtrace report --graph, --why and
// --who-points-at of tests/tracees/kept_in_a_graph.c.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

class HeapGraphTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TempDir;
    const Result run =
        RunCommand(Traced({.arguments = {TraceePath("kept_in_a_graph")}}, directory_->path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    std::istringstream lines(run.out);
    for (std::string name, address; lines >> name >> address;) addresses_[name].push_back(address);
    trace_ = TraceOf(directory_->path(), "kept_in_a_graph");
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }

  static Json Why(const std::string& site) {
    return Report(trace_, {"--why", site, "--top", "50"}).at("why");
  }
  static Json WhoPointsAt(const std::string& address) {
    return Report(trace_, {"--who-points-at", address, "--top", "50"}).at("who_points_at");
  }
  static std::string Text(const std::vector<std::string>& options) {
    Words words = {"--width", "200"};
    words.insert(words.end(), options.begin(), options.end());
    return ReportText(trace_, words);
  }
  static const std::vector<std::string>& Addresses(const std::string& name) {
    return addresses_[name];
  }
  static std::string Address(const std::string& name) { return addresses_[name].at(0); }

  // The one keeper of a site's or a block's blocks.
  static Json OnlyKeeper(const Json& why) {
    EXPECT_EQ(why.at("keepers").size(), 1u) << why;
    return why.at("keepers").at(0);
  }

  inline static TempDir* directory_ = nullptr;
  inline static std::string trace_;
  inline static std::map<std::string, std::vector<std::string>> addresses_;
};

TEST_F(HeapGraphTest, AGlobalVariableIsNamedAndTheChainFromIt) {
  // The first node of the three is the last of the list.
  const Json why = Why(Addresses("node").at(0));
  const Json keeper = OnlyKeeper(why);
  EXPECT_EQ(keeper.at("kind"), "reachable");
  EXPECT_EQ(keeper.at("root").at("root"), "variable");
  EXPECT_EQ(keeper.at("root").at("variable"), "g_list");
  EXPECT_EQ(keeper.at("root").at("offset"), 0);
  EXPECT_THAT(keeper.at("root").at("module").get<std::string>(), HasSubstr("/kept_in_a_graph"));
  ASSERT_EQ(keeper.at("chain").size(), 3u);
  EXPECT_EQ(keeper.at("chain").at(0).at("address"), Addresses("node").at(2));
  EXPECT_EQ(keeper.at("chain").at(0).at("offset"), nullptr);
  EXPECT_EQ(keeper.at("chain").at(1).at("address"), Addresses("node").at(1));
  EXPECT_EQ(keeper.at("chain").at(1).at("offset"), 0);
  EXPECT_EQ(keeper.at("chain").at(2).at("pointer"), "start");
  // With the last node goes its payload; with the first one everything.
  EXPECT_EQ(why.at("retained").at("bytes"), 3000);
  EXPECT_EQ(Why(Addresses("node").at(2)).at("retained").at("bytes"), 9000);
  // It hangs on the nodes in front of it and on the variable.
  std::vector<std::string> held_by;
  for (const Json& holder : why.at("held_by")) {
    held_by.push_back(holder.value("address", holder.value("variable", "")));
  }
  EXPECT_THAT(held_by, testing::ElementsAre(Addresses("node").at(1), Addresses("node").at(2),
                                            "g_list"));
}

TEST_F(HeapGraphTest, TheOffsetInAVariableIsSaid) {
  const Json root = OnlyKeeper(Why(Address("paired"))).at("root");
  EXPECT_EQ(root.at("variable"), "g_pair");
  EXPECT_EQ(root.at("offset"), 8);
  EXPECT_THAT(Text({"--why", Address("paired")}), HasSubstr("variable g_pair+8 of kept_in_a_graph"));
}

TEST_F(HeapGraphTest, AThreadLocalVariableIsNamedAndItsThread) {
  const Json root = OnlyKeeper(Why(Address("cached"))).at("root");
  EXPECT_EQ(root.at("root"), "thread-local");
  EXPECT_EQ(root.at("variable"), "t_cache");
  EXPECT_EQ(root.at("offset"), 8);
  EXPECT_EQ(root.at("thread"), "worker");
}

TEST_F(HeapGraphTest, AStackIsNamedByItsThreadAndThePlaceInIt) {
  const Json root = OnlyKeeper(Why(Address("on_stack"))).at("root");
  EXPECT_EQ(root.at("root"), "stack");
  EXPECT_EQ(root.at("thread"), "stacker");
  EXPECT_EQ(root.at("variable"), nullptr);
  // A function that calls nothing has its variables in the red zone, 128 bytes below.
  EXPECT_GE(root.at("offset").get<int64_t>(), -128);
  EXPECT_LT(root.at("offset").get<int64_t>(), 8192);
  EXPECT_THAT(root.at("text").get<std::string>(),
              testing::AnyOf(HasSubstr(" bytes above its stack pointer"),
                             HasSubstr(" bytes below its stack pointer")));
}

TEST_F(HeapGraphTest, WhereAWordIsIsSaidInANarrowTerminalToo) {
  const std::string address = Address("on_stack");
  const std::string place = OnlyKeeper(Why(address)).at("root").at("text");
  for (const char* const question : {"--why", "--who-points-at"}) {
    std::istringstream lines(ReportText(trace_, {"--width", "60", question, address}));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      const size_t begin = line.find_first_not_of(' ');
      if (begin != line.npos) text += line.substr(begin) + " ";
      if (begin == 4 || begin == 6) {
        // The columns of UTF-8: an ellipsis is one.
        const auto begins = [](char c) { return (c & 0xc0) != 0x80; };
        EXPECT_LE(std::count_if(line.begin(), line.end(), begins), 60) << line;
      }
    }
    EXPECT_THAT(text, HasSubstr(place)) << question;
  }
}

// The path is what a narrow line has no room for.
TEST_F(HeapGraphTest, TheFileAndLineOfABlockAreSaidInANarrowTerminalToo) {
  const std::vector<std::string>& ring = Addresses("ring");
  const std::string address = std::min(ring.at(0), ring.at(1));  // the one that is definitely lost
  for (const char* const question : {"--why", "--who-points-at"}) {
    for (const char* const width : {"60", "80"}) {
      std::istringstream lines(ReportText(trace_, {"--width", width, question, address}));
      std::string text;
      for (std::string line; std::getline(lines, line);) {
        text += line.substr(std::min(line.find_first_not_of(' '), line.size())) + " ";
      }
      EXPECT_THAT(text, testing::ContainsRegex("malloc in MakeRing [^/ ]*c:[0-9]+[, ]"))
          << question << " " << width;
    }
  }
}

TEST_F(HeapGraphTest, ARegisterIsNamed) {
  const Json root = OnlyKeeper(Why(Address("in_register"))).at("root");
  EXPECT_EQ(root.at("root"), "register");
  EXPECT_EQ(root.at("register"), "r13");
  EXPECT_EQ(root.at("thread"), "spinner");
  EXPECT_EQ(root.at("address"), nullptr);
}

TEST_F(HeapGraphTest, ALostRingHasNoRootButAFirstBlock) {
  std::vector<std::string> ring = Addresses("ring");
  std::sort(ring.begin(), ring.end());  // of equal length: the lower address leads
  const Json lower = Why(ring.at(0)), upper = Why(ring.at(1));
  EXPECT_EQ(OnlyKeeper(lower).at("kind"), "definite");
  EXPECT_EQ(OnlyKeeper(lower).at("root"), nullptr);
  EXPECT_EQ(OnlyKeeper(upper).at("kind"), "indirect");
  ASSERT_EQ(OnlyKeeper(upper).at("chain").size(), 2u);
  EXPECT_EQ(OnlyKeeper(upper).at("chain").at(0).at("address"), ring.at(0));
  EXPECT_EQ(lower.at("retained").at("bytes"), 14000);
  EXPECT_EQ(upper.at("retained").at("bytes"), 7000);
  const std::string text = Text({"--why", ring.at(0)});
  EXPECT_THAT(text, HasSubstr("definitely lost: no root leads there"));
  EXPECT_THAT(text, HasSubstr("lost with them")) << "it cannot become so";
  EXPECT_THAT(text, Not(HasSubstr("would be unreachable")));
}

TEST_F(HeapGraphTest, WhatTwoRootsShareIsRetainedByNeither) {
  const Json shared = Why(Address("shared"));
  EXPECT_THAT(OnlyKeeper(shared).at("root").at("variable").get<std::string>(),
              testing::AnyOf("g_left", "g_right"));
  EXPECT_TRUE(shared.at("held_by").empty()) << shared;
  EXPECT_EQ(Why(Addresses("side").at(0)).at("retained").at("bytes"), 8000);
  // Both of the site together retain it.
  const Json side = Report(trace_, {"--who-points-at", Address("shared")}).at("who_points_at");
  ASSERT_EQ(side.at("blocks").size(), 2u);
  EXPECT_TRUE(side.at("roots").empty()) << side;
  std::map<std::string, uint64_t> offsets;
  for (const Json& block : side.at("blocks")) {
    offsets[block.at("address")] = block.at("offset").get<uint64_t>();
    EXPECT_EQ(block.at("pointer"), "start");
  }
  EXPECT_EQ(offsets[Addresses("side").at(0)], 16u);
  EXPECT_EQ(offsets[Addresses("side").at(1)], 32u);
  const std::string fingerprint = side.at("blocks").at(0).at("fingerprint");
  const Json graph = Report(trace_, {"--graph", "--top", "100"}).at("graph");
  const Json* site = nullptr;
  for (const Json& each : graph.at("sites")) {
    if (each.at("fingerprint") == fingerprint) site = &each;
  }
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(site->at("own").at("bytes"), 16000);
  EXPECT_EQ(site->at("retained").at("bytes"), 24500);
  EXPECT_EQ(site->at("retained_is_exact"), true);
  EXPECT_EQ(Why(fingerprint).at("retained").at("bytes"), 24500);
  EXPECT_GE(graph.at("shared").at("bytes").get<uint64_t>(), 8500u);
}

TEST_F(HeapGraphTest, RootsAreRankedByWhatTheyKeep) {
  const Json graph = Report(trace_, {"--graph", "--top", "100"}).at("graph");
  std::map<std::string, Json> roots;
  for (const Json& root : graph.at("roots")) {
    if (root.at("variable").is_string()) roots[root.at("variable")] = root;
  }
  EXPECT_EQ(roots["g_list"].at("retained").at("bytes"), 9000);
  EXPECT_EQ(roots["g_list"].at("retained").at("blocks"), 6);
  EXPECT_EQ(roots["g_list"].at("words"), 1);
  EXPECT_EQ(roots["t_cache"].at("retained").at("bytes"), 4000);
  EXPECT_EQ(roots["g_left"].at("retained").at("bytes"), 8000);
  EXPECT_EQ(roots["g_inside"].at("retained").at("bytes"), 9000);
  EXPECT_EQ(graph.at("lost").at("bytes"), 14000);
}

TEST_F(HeapGraphTest, APointerIntoABlockIsSaidToBeOne) {
  const std::string address = Address("inside");
  const Json pointers = WhoPointsAt(address);
  ASSERT_EQ(pointers.at("roots").size(), 1u) << pointers;
  EXPECT_EQ(pointers.at("roots").at(0).at("variable"), "g_inside");
  EXPECT_EQ(pointers.at("roots").at(0).at("pointer"), "interior");
  EXPECT_EQ(pointers.at("block").at("kind"), "possible");
  // Any address in the block asks about it.
  char within[32];
  snprintf(within, sizeof(within), "0x%llx", std::stoull(address, nullptr, 16) + 8999);
  EXPECT_EQ(WhoPointsAt(within).at("block").at("address"), address);
  EXPECT_THAT(Text({"--who-points-at", within}), HasSubstr("8999 bytes behind its begin"));
}

TEST_F(HeapGraphTest, ANumberOfALossRecordIsASite) {
  // Largest first: the ring, 14000 bytes.
  const Json why = Why("1");
  EXPECT_EQ(why.at("kinds").at("definite").at("bytes"), 7000) << why;
  EXPECT_EQ(why.at("kinds").at("indirect").at("bytes"), 0);
}

TEST_F(HeapGraphTest, TheTextShowsTheWholeGraph) {
  const std::string text = Text({"--graph", "--tables", "leaks", "--top", "100"});
  for (const char* part : {"LOSS RECORDS", "HEAP GRAPH", "KEPT BY ROOT", "RETAINED BY SITE",
                           "variable g_list of kept_in_a_graph",
                           "thread-local variable t_cache of kept_in_a_graph, thread ",
                           "\"worker\"", "registers of thread ", "\"spinner\"", "MakeNode"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(Text({"--why", "1"}), Not(HasSubstr("LOSS RECORDS")));
}

TEST_F(HeapGraphTest, WhatIsNotThereIsAnErrorThatSaysWhatIs) {
  const auto error = [&](const std::vector<std::string>& options) {
    Words words = {ToolPath(), "report", trace_};
    words.insert(words.end(), options.begin(), options.end());
    const Result run = RunCommand({.arguments = words});
    EXPECT_EQ(run.exit_status, 2) << run.err;
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_THAT(error({"--why", "99"}), HasSubstr("the loss records shown are 1 to "));
  EXPECT_THAT(error({"--why", "abc"}), HasSubstr("is neither the number"));
  EXPECT_THAT(error({"--why", "0x10"}), HasSubstr("no block was live at 0x10"));
  EXPECT_THAT(error({"--why", "0123456789abcdef"}), HasSubstr("fingerprint 0123456789abcdef"));
  EXPECT_THAT(error({"--who-points-at", "12"}), HasSubstr("is no address such as 0x"));
  EXPECT_THAT(error({"--graph", "--format", "csv"}), HasSubstr("are for --format text and json"));
}

TEST_F(HeapGraphTest, WhyVariablesHaveNoNamesIsTold) {
  const TempDir directory;
  const std::string stripped = directory / "stripped";
  ASSERT_EQ(RunCommand({.arguments = {"strip", "-o", stripped, TraceePath("kept_in_a_graph")}})
                .Outcome(), "exit 0");
  const Result run = RunCommand(Traced({.arguments = {stripped}}, directory.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string trace = TraceOf(directory.path(), "stripped");
  const std::string why = stripped + ": no symbol table, so of its variables only exported ones have names";
  const Json report = Report(trace, {"--graph"});
  EXPECT_THAT(report.at("unnamed_variables").get<Words>(), testing::Contains(why));
  EXPECT_THAT(ReportText(trace, {"--graph", "--width", "200"}),
              AllOf(HasSubstr("of stripped without a symbol"), HasSubstr(why)));
  // The program as it was built has names for all of them.
  const Json whole = Report(trace_, {"--graph"});
  for (const Json& line : whole.at("unnamed_variables")) {
    EXPECT_THAT(line.get<std::string>(), Not(HasSubstr("kept_in_a_graph")));
  }
}

TEST_F(HeapGraphTest, DeadMemoryIsNotSaidToBeMissing) {
  const Json report = Report(trace_);
  ASSERT_FALSE(report.at("leak_scans").empty());
  for (const Json& scan : report.at("leak_scans")) {
    for (const Json& note : scan.at("notes")) {
      EXPECT_THAT(note.get<std::string>(), Not(HasSubstr("not scanned"))) << note;
    }
  }
}

}  // namespace
}  // namespace memtrace::e2e
