// The profiles that Valgrind's viewers open: Massif's in ms_print, DHAT's in dh_view. Totals
// are the report's own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "report/render/formats.h"
#include "tests/report/valgrind/valgrind_made_up.h"

namespace memtrace::report::render {
namespace {

using testing::HasSubstr;

std::string Massif(MadeUp& made_up) {
  words::StringSink out;
  RenderMassif(made_up.View(), out);
  return out.text();
}

nlohmann::json Dhat(MadeUp& made_up) {
  words::StringSink out;
  RenderDhat(made_up.View(), out);
  return nlohmann::json::parse(out.text());
}

// Runs `command` with a file of `text` as its last argument; its output.
std::string Show(const std::string& command, const std::string& text, int* status) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("profile_" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "profile") << text;
  const std::string in = directory.string();
  *status = std::system((command + " " + in + "/profile > " + in + "/out 2>&1").c_str());
  std::ostringstream out;
  out << std::ifstream(directory / "out").rdbuf();
  std::filesystem::remove_all(directory);
  return out.str();
}

TEST(MassifTest, HasTreesAtThePeakAndAtTheEnd) {
  MadeUpLeaks made_up;
  made_up.analysis.timeline.push_back({.time_ns = 500'000'000, .live_bytes = 700});
  EXPECT_EQ(Massif(made_up),
            "desc: memtrace app.42.mtr\ncmd: ./app --fast 'two words'\ntime_unit: ms\n"
            "#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\nmem_heap_extra_B=0\n"
            "mem_stacks_B=0\nheap_tree=empty\n"
            "#-----------\nsnapshot=1\n#-----------\ntime=500\nmem_heap_B=700\n"
            "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n"
            "#-----------\nsnapshot=2\n#-----------\ntime=1000\nmem_heap_B=1224\n"
            "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=peak\n"
            "n3: 1224 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
            " n1: 1000 0x40104F: Inlined<int>::Make() (tree.h:7)\n"
            "  n1: 1000 0x40104F: Table::Grow(unsigned int) (a<b>&c.cc:17)\n"
            "   n0: 1000 0x40105F: main (main.cc:10)\n"
            " n1: 192 0x400FFF: MakeNode(int) (tree.cc:6)\n"
            "  n1: 192 0x40100F: Lose() (tree.cc:8)\n"
            "   n0: 192 0x40101F: main (main.cc:9)\n"
            " n1: 32 0x40106F: Cache::Get() (cache.cc:30)\n"
            "  n0: 32 0x40107F: main (main.cc:11)\n"
            "#-----------\nsnapshot=3\n#-----------\ntime=2000\nmem_heap_B=1224\n"
            "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n"
            "n3: 1224 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
            " n1: 1000 0x40104F: Inlined<int>::Make() (tree.h:7)\n"
            "  n1: 1000 0x40104F: Table::Grow(unsigned int) (a<b>&c.cc:17)\n"
            "   n0: 1000 0x40105F: main (main.cc:10)\n"
            " n1: 192 0x400FFF: MakeNode(int) (tree.cc:6)\n"
            "  n1: 192 0x40100F: Lose() (tree.cc:8)\n"
            "   n0: 192 0x40101F: main (main.cc:9)\n"
            " n1: 32 0x40106F: Cache::Get() (cache.cc:30)\n"
            "  n0: 32 0x40107F: main (main.cc:11)\n");
}

// What every tree must be: a node is as large as its children together.
void CheckTrees(const std::string& massif) {
  std::istringstream lines(massif);
  struct Open {
    size_t depth;
    uint64_t left;  // of its bytes, for children still to come
    uint64_t children;
  };
  std::vector<Open> open;
  int nodes = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t depth = line.find_first_not_of(' ');
    unsigned long long children, bytes;
    if (depth == line.npos || sscanf(line.c_str() + depth, "n%llu: %llu", &children, &bytes) != 2) {
      continue;
    }
    ++nodes;
    if (depth == 0) open.clear();
    while (!open.empty() && open.back().depth >= depth) {
      EXPECT_EQ(open.back().children, 0u) << line;
      open.pop_back();
    }
    if (!open.empty()) {
      ASSERT_GT(open.back().children, 0u) << line;
      ASSERT_GE(open.back().left, bytes) << line;
      open.back().left -= bytes;
      if (--open.back().children == 0) {
        EXPECT_EQ(open.back().left, 0u) << line;
      }
    }
    if (children > 0) open.push_back({depth, bytes, children});
  }
  EXPECT_GT(nodes, 0);
}

TEST(MassifTest, NodesAreAsLargeAsTheirChildren) {
  MadeUp made_up;
  // One that ends where another goes on, and many small ones.
  const StackId outer = made_up.Stack({{"f", "a.c", 1}});
  const StackId inner = made_up.Stack({{"f", "a.c", 1}, {"g", "a.c", 2}});
  made_up.raw(inner)[0] = made_up.raw(outer)[0];
  made_up.AddSite(outer, 1, 5000, 1);
  made_up.AddSite(inner, 1, 3000, 1);
  for (uint32_t i = 0; i < 50; ++i) {
    made_up.AddSite(made_up.Stack({{"small", "b.c", i}, {"main", "b.c", 100}}), 1, 10, 1);
  }
  made_up.analysis.totals.peak_live_bytes = 5000 + 3000 + 50 * 10 + 77;  // 77: of no site
  const std::string massif = Massif(made_up);
  EXPECT_THAT(massif, HasSubstr("n0: 5000 (the stack ends here)"));
  EXPECT_THAT(massif,
              HasSubstr("n0: 500 in 50 places, all below massif's threshold (1.00%)"));
  EXPECT_THAT(massif, HasSubstr("n0: 77 (from sites that are not shown)"));
  CheckTrees(massif);
}

TEST(ProfilesTest, SayWhatTheyAreOf) {
  MadeUpLeaks made_up;
  made_up.analysis.selection.sites = true;
  made_up.analysis.range.from_ns = 1'000'000'000;
  const ReportView view = made_up.View("tree.cc");
  words::StringSink massif, dhat;
  RenderMassif(view, massif);
  const std::string only = "only blocks allocated from 1.00 s to 2.00 s; only sites that match /tree.cc/: 1";
  EXPECT_THAT(massif.text(), testing::StartsWith("desc: memtrace app.42.mtr; " + only + "\ncmd: ./app --fast 'two words'\n"));
  RenderDhat(view, dhat);
  EXPECT_EQ(nlohmann::json::parse(dhat.text())["cmd"], "./app --fast 'two words'  # " + only);
}

TEST(MassifTest, MsPrintOpensIt) {
  if (std::system("ms_print --version > /dev/null 2>&1") != 0 &&
      std::system("command -v ms_print > /dev/null") != 0) {
    GTEST_SKIP() << "ms_print is not installed";
  }
  MadeUpLeaks made_up;
  for (uint64_t i = 1; i < 1000; ++i) {
    made_up.analysis.timeline.push_back({.time_ns = i * 2'000'000, .live_bytes = i});
  }
  int status = -1;
  made_up.analysis.selection.sizes = {1, UINT64_MAX};
  const std::string shown = Show("ms_print", Massif(made_up), &status);
  EXPECT_EQ(status, 0) << shown;
  EXPECT_THAT(shown, HasSubstr("(peak)"));
  EXPECT_THAT(shown, HasSubstr("memtrace app.42.mtr; only blocks of "));
  EXPECT_THAT(shown, HasSubstr("100.00% (1,224B) (heap allocation functions)"));
  EXPECT_THAT(shown, HasSubstr("81.70% (1,000B) 0x40104F: Table::Grow(unsigned int)"));
}

TEST(DhatTest, TotalsAreTheReports) {
  MadeUpLeaks made_up;
  const nlohmann::json dhat = Dhat(made_up);
  EXPECT_EQ(dhat["dhatFileVersion"], 2);
  EXPECT_EQ(dhat["te"], 2'000'000);
  EXPECT_EQ(dhat["tg"], 1'000'000);
  uint64_t bytes = 0, blocks = 0, peak = 0, end = 0;
  std::set<std::vector<size_t>> stacks;
  for (const nlohmann::json& point : dhat["pps"]) {
    bytes += point["tb"].get<uint64_t>();
    blocks += point["tbk"].get<uint64_t>();
    peak += point["gb"].get<uint64_t>();
    end += point["eb"].get<uint64_t>();
    EXPECT_TRUE(stacks.insert(point["fs"].get<std::vector<size_t>>()).second);
    for (const size_t frame : point["fs"]) EXPECT_LT(frame, dhat["ftbl"].size());
  }
  EXPECT_EQ(bytes, made_up.analysis.totals.bytes_allocated);
  EXPECT_EQ(blocks, made_up.analysis.totals.allocations);
  EXPECT_EQ(peak, made_up.analysis.totals.peak_live_bytes);
  EXPECT_EQ(end, made_up.analysis.totals.live_bytes);
}

TEST(DhatTest, LifetimesAreOfFreedBlocksAndOfThoseThatAreLive) {
  MadeUp made_up;
  Site& site = made_up.AddSite(made_up.Stack({{"f", "a.c", 1}}), 3, 10, 1);
  site.freed_lifetime_ns = 5'000'000;            // of two blocks
  site.live_time_sum_ns = 500'000'000;           // of one, that lives until 2 s
  EXPECT_EQ(Dhat(made_up)["pps"][0]["tl"], 5'000 + 1'500'000);
}

TEST(DhatTest, SitesThatLookTheSameAreOnePoint) {
  MadeUp made_up;
  const StackId a = made_up.Stack({{"f", "a.c", 1}});
  made_up.AddSite(a, 2, 10, 1);
  made_up.AddSite(a, 3, 10, 1);
  const nlohmann::json points = Dhat(made_up)["pps"];
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0]["tbk"], 5);
}

// The loader and the tree of dh_view.js itself, without the page around them.
constexpr char kNode[] = R"(
const fs = require('fs'), vm = require('vm');
let script = fs.readFileSync(process.argv[2], 'utf8');
script = script.replace(/^"use strict";/m, '');
const option = { selected: true, disabled: false };
const context = vm.createContext({ document: { title: '', body: {} }, console, Intl,
                                   window: {}, performance: { now: () => 0 } });
vm.runInContext(script + `
  gSelect = { childNodes: { entries: () => gSelectData.map((d, i) => [i, {}])[Symbol.iterator]() },
              selectedIndex: 0 };
  gSelect.childNodes = gSelectData.map(() => ({ disabled: false }));
  gMainDiv = {};
`, context);
context.text = fs.readFileSync(process.argv[3], 'utf8');
const out = vm.runInContext(`
  gData = JSON.parse(text);
  buildTree();
  [gRoot._totalBytes, gRoot._totalBlocks, gRoot._atTGmaxBytes, gRoot._atTEndBytes,
   gRoot._atTEndBlocks, Math.round(gRoot._totalLifetimes)].join(' ')
`, context);
console.log(out);
)";

TEST(DhatTest, TheViewerBuildsItsTree) {
  const std::string viewer = "/usr/libexec/valgrind/dh_view.js";
  if (access(viewer.c_str(), R_OK) != 0 || std::system("command -v node > /dev/null") != 0) {
    GTEST_SKIP() << "dh_view.js or node is not installed";
  }
  MadeUpLeaks made_up;
  words::StringSink out;
  RenderDhat(made_up.View(), out);
  const std::filesystem::path script =
      std::filesystem::path(testing::TempDir()) / ("dh_view_" + std::to_string(getpid()) + ".js");
  std::ofstream(script) << kNode;
  int status = -1;
  const std::string shown = Show("node " + script.string() + " " + viewer, out.text(), &status);
  std::filesystem::remove(script);
  EXPECT_EQ(status, 0) << shown;
  // 115 blocks, 9 of them live for two seconds.
  EXPECT_EQ(shown, "6920 115 1224 1224 9 18000000\n");
}

}  // namespace
}  // namespace memtrace::report::render
