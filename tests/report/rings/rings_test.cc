// memtrace rings: the tree, its branches, its formats; and the static footprint beside size(1).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/rings/rings_formats.h"
#include "report/rings/source_tree.h"
#include "report/words/escape.h"
#include "symbolizer/static_footprint.h"
#include "symbolizer/symbolizer_process.h"
#include "tests/report/render/render_made_up.h"
#include "tests/temp_dir.h"

namespace memtrace::report::rings {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Amounts Live(uint64_t bytes) {
  Amounts amounts;
  amounts.heap[static_cast<size_t>(SiteMeasure::kLive)] = bytes;
  return amounts;
}

Amounts Text(uint64_t bytes) {
  Amounts amounts;
  amounts.fixed.text = bytes;
  return amounts;
}

std::vector<std::string> Names(const Node& node, const Weight& weight = {}) {
  std::vector<std::string> names;
  for (const Node* child : SortedChildren(node, weight)) names.push_back(child->name);
  return names;
}

// Two folders below one, a file of no source, a library.
void Fill(SourceTree* tree) {
  tree->Add("/home/user/app/src/net/socket.cc", "/home/user/app/app", "Connect(int)", Live(100));
  tree->Add("/home/user/app/src/net/socket.cc", "/home/user/app/app", "Send()", Live(50));
  tree->Add("/home/user/app/src/net/http.cc", "/home/user/app/app", "Get()", Live(300));
  tree->Add("/home/user/app/src/main.cc", "/home/user/app/app", "main", Live(5));
  tree->Add("/home/user/app/src/main.cc", "/home/user/app/app", "main", Text(77));
  tree->Add("", "/lib/libx.so", "x_new", Live(7));
  tree->Add("", "/lib/libx.so", "[.eh_frame]", Text(400));
  tree->Finish();
}

TEST(SourceTreeTest, FoldersWithOneChildAreOneAndSumsAreOfAllBelow) {
  SourceTree tree;
  Fill(&tree);
  EXPECT_EQ(tree.root().sum.of(SiteMeasure::kLive), 462u);
  EXPECT_EQ(tree.root().sum.fixed.text, 477u);
  EXPECT_THAT(Names(tree.root()), ElementsAre("home/user/app/src", "[no source]"));
  const Node& src = *SortedChildren(tree.root(), {})[0];
  EXPECT_THAT(Names(src), ElementsAre("net", "main.cc"));
  EXPECT_EQ(src.sum.of(SiteMeasure::kLive), 455u);
  const Node& net = *SortedChildren(src, {})[0];
  EXPECT_THAT(Names(net), ElementsAre("http.cc", "socket.cc"));
  EXPECT_EQ(net.kind, Node::Kind::kFolder);
  EXPECT_EQ(net.children.at("socket.cc")->kind, Node::Kind::kFile);
  EXPECT_EQ(net.children.at("socket.cc")->children.at("Send()")->kind, Node::Kind::kFunction);
  EXPECT_THAT(Names(tree.root(), *ParseWeight("text")),
              ElementsAre("[no source]", "home/user/app/src"));
}

TEST(SourceTreeTest, BranchesAreFoundByPathsAndTheirEnds) {
  SourceTree tree;
  Fill(&tree);
  const auto path = [&](const std::string& branch) {
    const auto node = tree.Find(branch, "/home/user/app");
    return node.ok() ? tree.PathOf(**node) : std::string(node.status().message());
  };
  EXPECT_EQ(path("/home/user/app/src/net"), "/home/user/app/src/net");
  EXPECT_EQ(path("src/net/"), "/home/user/app/src/net");
  EXPECT_EQ(path("./src"), "/home/user/app/src");
  EXPECT_EQ(path("net"), "/home/user/app/src/net");
  EXPECT_EQ(path("socket.cc"), "/home/user/app/src/net/socket.cc");
  EXPECT_EQ(path("Send()"), "/home/user/app/src/net/socket.cc/Send()");
  EXPECT_EQ(path("[no source]/libx.so"), "[no source]/libx.so");
  EXPECT_EQ(path("user"), "/home/user/app/src") << "within a chain";
  EXPECT_EQ(path("nowhere"), "--start: no branch \"nowhere\" in the tree; it has "
                             "[no source], /home/user/app/src");
  SourceTree twice;
  twice.Add("/a/x/f.c", "", "f", Live(1));
  twice.Add("/b/x/f.c", "", "f", Live(1));
  twice.Finish();
  EXPECT_EQ(std::string(twice.Find("f.c", "/").status().message()),
            "--start: 2 branches end in \"f.c\": /a/x/f.c, /b/x/f.c");
}

TEST(SourceTreeTest, SitesBelongToTheirCallers) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"operator new(unsigned long)", "", 0, kLibc},
                                 {"Cache::Get()", "/work/cache.cc", 3},
                                 {"main", "/work/main.cc", 9}}), 5, 10, 2);
  made_up.AddSite(made_up.Stack({{"nameless", "", 0}}), 1, 7, 1);
  made_up.AddSite({}, 1, 3, 1);
  SourceTree tree;
  tree.AddSites(made_up.View());
  tree.Finish();
  EXPECT_EQ(tree.root().sum.of(SiteMeasure::kLive), made_up.analysis.totals.live_bytes);
  EXPECT_EQ(tree.root().sum.of(SiteMeasure::kAllocated), made_up.analysis.totals.bytes_allocated);
  EXPECT_EQ((*tree.Find("cache.cc/Cache::Get()", "/"))->sum.of(SiteMeasure::kAllocated), 50u);
  EXPECT_EQ((*tree.Find("[no source]/app/nameless", "/"))->sum.of(SiteMeasure::kLive), 7u);
  EXPECT_EQ((*tree.Find("[no source]/[no stack]", "/"))->sum.of(SiteMeasure::kLive), 3u);
}

TEST(SourceTreeTest, HostilePathsAreNodesLikeOthers) {
  SourceTree tree;
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "/d";
  tree.Add(deep, "", "f", Live(1));
  tree.Add("relative/x.c", "", "f", Live(2));
  tree.Add("//", "", "f", Live(4));
  tree.Add("/a", "", "f", Live(8));
  tree.Add("/a/b", "", "f", Live(16));
  tree.Finish();
  EXPECT_EQ(tree.root().sum.of(SiteMeasure::kLive), 31u);
  EXPECT_TRUE(tree.Find("relative/x.c", "/").ok());
}

TEST(WeightTest, NamesAreMeasuresAndPartsOfTheFootprint) {
  for (const char* name : {"live", "peak", "wasted", "resident", "peak-resident", "text", "data", "bss", "static"}) {
    EXPECT_EQ(WeightName(*ParseWeight(name)), name);
  }
  EXPECT_THAT(std::string(ParseWeight("rss").status().message()),
              HasSubstr("--measure: \"rss\" is none of live, blocks"));
}

std::string TextOf(const SourceTree& tree, RingsOptions options, size_t width, bool utf8 = false) {
  options.style.width = width;
  options.style.utf8 = utf8;
  return RenderRingsText(tree, tree.root(), "app.mtr", options);
}

TEST(RingsTextTest, IsATree) {
  SourceTree tree;
  Fill(&tree);
  EXPECT_EQ(TextOf(tree, {}, 80),
            "memtrace rings  app.mtr\n\n"
            "    live   peak  total wasted   text   data    bss  source\n"
            "     462      0      0      0    477      0      0  /\n"
            "     455      0      0      0     77      0      0  + home/user/app/src\n"
            "     450      0      0      0      0      0      0  | + net\n"
            "     300      0      0      0      0      0      0  | | + http.cc\n"
            "     300      0      0      0      0      0      0  | | | ` Get()\n"
            "     150      0      0      0      0      0      0  | | ` socket.cc\n"
            "     100      0      0      0      0      0      0  | |   + Connect(int)\n"
            "      50      0      0      0      0      0      0  | |   ` Send()\n"
            "       5      0      0      0     77      0      0  | ` main.cc\n"
            "       5      0      0      0     77      0      0  |   ` main\n"
            "       7      0      0      0    400      0      0  ` [no source]\n"
            "       7      0      0      0    400      0      0    ` libx.so\n"
            "       7      0      0      0      0      0      0      + x_new\n"
            "       0      0      0      0    400      0      0      ` [.eh_frame]\n");
}

TEST(RingsTextTest, FitsTheWidthAndSaysWhatItLeavesOut) {
  SourceTree tree;
  Fill(&tree);
  RingsOptions options;
  options.top = 1;
  options.depth = 2;
  options.notes = {"something is not known"};
  for (const size_t width : {60, 80, 200}) {
    for (const bool utf8 : {false, true}) {
      const std::string text = TextOf(tree, options, width, utf8);
      for (const absl::string_view line : absl::StrSplit(text, '\n')) {
        EXPECT_LE(words::DisplayWidth(line), width) << line;
      }
      EXPECT_THAT(text, HasSubstr("and 1 more"));
      EXPECT_THAT(text, HasSubstr("! something is not known"));
    }
  }
}

// Two functions of one class template differ in what is left without its arguments.
TEST(RingsTextTest, LongNamesOfTemplatesAreToldApart) {
  SourceTree tree;
  const std::string cache = "svc::LruCache<std::__cxx11::basic_string<char, std::char_traits<char>, "
                            "std::allocator<char> >, svc::Session>::";
  const std::string key = "(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)";
  tree.Add("/work/cache.cc", "/work/app", cache + "Put" + key, Live(100));
  tree.Add("/work/cache.cc", "/work/app", cache + "Get" + key, Live(50));
  tree.Finish();
  RingsOptions options;
  for (const size_t width : {80, 120}) {
    options.style.width = width;
    const std::string text = RenderRingsText(tree, tree.root(), "app.mtr", options);
    EXPECT_THAT(text, HasSubstr("Put\n"));
    EXPECT_THAT(text, HasSubstr("Get\n"));
    EXPECT_THAT(text, HasSubstr("LruCache"));
  }
}

TEST(RingsTextTest, WhatWasNotLookedForIsNotZero) {
  SourceTree tree;
  Fill(&tree);
  RingsOptions options;
  options.footprints = false;
  EXPECT_THAT(TextOf(tree, options, 80), Not(HasSubstr("text")));
  words::StringSink out;
  RenderRingsCsv(tree, **tree.Find("src/main.cc", "/"), options, out);
  EXPECT_THAT(out.text(), HasSubstr("src/main.cc,file,5,0,0,0,0,0,0,0,0,0,,,\r\n"));
}

TEST(RingsTextTest, NamesAreHarmless) {
  SourceTree tree;
  tree.Add("/a/\x1b[31mred\n.c", "", "f\x1b]0;x\x07", Live(1));
  tree.Finish();
  EXPECT_EQ(TextOf(tree, {}, 80).find('\x1b'), std::string::npos);
}

TEST(RingsDataTest, JsonIsNodesInNodes) {
  SourceTree tree;
  Fill(&tree);
  words::StringSink out;
  RenderRingsJson(tree, **tree.Find("src/net", "/"), "app.mtr", {}, out);
  const nlohmann::json json = nlohmann::json::parse(out.text());
  EXPECT_EQ(json["schema"], "memtrace-rings/1");
  EXPECT_EQ(json["tree"]["name"], "/home/user/app/src/net");
  EXPECT_EQ(json["tree"]["live_bytes"], 450);
  EXPECT_EQ(json["tree"]["children"][1]["name"], "socket.cc");
  EXPECT_EQ(json["tree"]["children"][1]["children"][0]["kind"], "function");
  EXPECT_FALSE(json["tree"].contains("text_bytes"));
  EXPECT_TRUE(json["only"].empty());
}

TEST(RingsDataTest, SaysWhatWasChosen) {
  SourceTree tree;
  Fill(&tree);
  RingsOptions options;
  options.only = {"sites that match /net/: 2"};
  words::StringSink out;
  RenderRingsJson(tree, **tree.Find("src/net", "/"), "app.mtr", options, out);
  EXPECT_EQ(nlohmann::json::parse(out.text())["only"][0], "sites that match /net/: 2");
  EXPECT_THAT(RenderRingsText(tree, **tree.Find("src/net", "/"), "app.mtr", options),
              HasSubstr("Only sites that match /net/: 2"));
}

TEST(RingsDataTest, CsvHasARowForEachNode) {
  SourceTree tree;
  Fill(&tree);
  words::StringSink out;
  RenderRingsCsv(tree, **tree.Find("src/main.cc", "/"), {}, out);
  EXPECT_EQ(out.text(),
            "path,kind,live_bytes,live_blocks,bytes_allocated,allocations,bytes_at_peak,"
            "blocks_at_peak,wasted_bytes,temporary,resident_bytes,resident_bytes_at_peak,text_bytes,"
            "data_bytes,bss_bytes\r\n"
            "/home/user/app/src/main.cc,file,5,0,0,0,0,0,0,0,0,0,77,0,0\r\n"
            "/home/user/app/src/main.cc/main,function,5,0,0,0,0,0,0,0,0,0,77,0,0\r\n");
}

symbolizer::StaticFootprint FootprintOf(const symbolizer::Module& module) {
  return symbolizer::SymbolizerProcess({}).FindFootprint(module);
}

class FootprintTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(directory_ / "one.c")
        << "char big[10000];\nint table[100] = {1};\n"
           "const char text[2000] = \"constant\";\n"
           "static __thread char local[64];\n"
           "int used(int i) { static char buffer[300]; buffer[i] = 1; local[i] = 2;\n"
           "  return table[i] + buffer[i / 2] + local[i / 2]; }\n";
    std::ofstream(directory_ / "two.c")
        << "extern char big[]; extern const char text[]; int used(int);\n"
           "static int private_numbers[50] = {2};\n"
           "int main(int argc, char** argv) { (void)argv; private_numbers[argc] = argc;\n"
           "  return used(argc) + big[argc] + text[argc] + private_numbers[argc] == 5; }\n";
  }

  std::string Build(const std::string& options) {
    const std::string program = directory_ / "program";
    const std::string command = absl::StrCat("cd ", directory_.path(), " && cc -O1 ", options,
                                             " -o program one.c two.c");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return program;
  }

  static std::string Output(const std::string& command) {
    std::string out;
    std::FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) out.append(buffer, n);
    pclose(pipe);
    return out;
  }

  // What size(1) says, both ways, is what the footprint adds up to.
  static void ExpectSizes(const std::string& file, const symbolizer::StaticFootprint& footprint) {
    std::istringstream lines(Output("size '" + file + "'"));
    std::string header;
    std::getline(lines, header);
    symbolizer::FootprintBytes expected;
    lines >> expected.text >> expected.data >> expected.bss;
    EXPECT_EQ(footprint.total.text, expected.text);
    EXPECT_EQ(footprint.total.data, expected.data);
    EXPECT_EQ(footprint.total.bss, expected.bss);
    uint64_t sections = 0;
    std::istringstream all(Output("size -A '" + file + "'"));
    for (std::string line; std::getline(all, line);) {
      std::istringstream words(line);
      std::string name;
      uint64_t bytes = 0, address = 0;
      // What is not loaded has the address 0.
      if (words >> name >> bytes >> address && address != 0) sections += bytes;
    }
    EXPECT_EQ(footprint.total.total(), sections);
    symbolizer::FootprintBytes items;
    for (const symbolizer::FootprintItem& item : footprint.items) items.Add(item.bytes);
    EXPECT_EQ(items, footprint.total);
  }

  // "file/name" -> bytes.
  static std::map<std::string, symbolizer::FootprintBytes> Items(
      const symbolizer::StaticFootprint& footprint) {
    std::map<std::string, symbolizer::FootprintBytes> items;
    for (const symbolizer::FootprintItem& item : footprint.items) {
      items[absl::StrCat(fs::path(item.unit).filename().string(), "/", item.name)].Add(item.bytes);
    }
    return items;
  }

  TempDir directory_;
};

TEST_F(FootprintTest, UnitsComeFromDebugInformation) {
  const std::string program = Build("-g");
  const auto footprint = FootprintOf({program, ""});
  EXPECT_EQ(footprint.state, symbolizer::ModuleState::kDebugInfo) << footprint.message;
  ExpectSizes(program, footprint);
  const auto items = Items(footprint);
  EXPECT_EQ(items.at("one.c/big").bss, 10000u);
  EXPECT_EQ(items.at("one.c/table").data, 400u);
  EXPECT_EQ(items.at("one.c/text").text, 2000u);
  EXPECT_EQ(items.at("two.c/private_numbers").data, 200u);
  EXPECT_GT(items.at("one.c/used").text, 10u);
  EXPECT_GT(items.at("two.c/main").text, 10u);
  EXPECT_GT(items.at("/[.eh_frame]").text, 0u);
  EXPECT_EQ(items.at("/[.tbss]").bss, 64u);
  uint64_t buffer = 0;
  for (const auto& [name, bytes] : items) {
    if (absl::StartsWith(name, "one.c/buffer")) buffer += bytes.bss;
  }
  EXPECT_EQ(buffer, 300u);
  for (const symbolizer::FootprintItem& item : footprint.items) {
    if (item.name == "main") { EXPECT_EQ(item.unit, directory_ / "two.c"); }
  }
}

TEST_F(FootprintTest, WithoutDebugInformationLocalSymbolsHaveFiles) {
  const std::string program = Build("");
  const auto footprint = FootprintOf({program, ""});
  EXPECT_EQ(footprint.state, symbolizer::ModuleState::kSymbolsOnly);
  ExpectSizes(program, footprint);
  const auto items = Items(footprint);
  EXPECT_EQ(items.at("/big").bss, 10000u);
  EXPECT_EQ(items.at("two.c/private_numbers").data, 200u);
}

TEST_F(FootprintTest, AStrippedFileIsItsSections) {
  const std::string program = Build("-s");
  const auto footprint = FootprintOf({program, ""});
  ExpectSizes(program, footprint);
  EXPECT_GE(Items(footprint).at("/[.bss]").bss, 10300u);
}

TEST_F(FootprintTest, LargeFilesAddUpToo) {
  for (const std::string& file : {std::string(MEMTRACE_BUILD_DIR "/bin/memtrace"),
                                 std::string("/usr/bin/python3.11")}) {
    if (!fs::exists(file)) continue;
    const auto footprint = FootprintOf({file, ""});
    ExpectSizes(file, footprint);
    EXPECT_GT(footprint.items.size(), 100u);
  }
}

// Where the addresses, names and types of variables are is each compiler's and linker's choice.
TEST_F(FootprintTest, UnitsOfWhateverWayOfDebugInformation) {
  const char* const kWays[] = {
      "cc -O1 -g -gsplit-dwarf -o program one.c two.c",
      "cc -O1 -gdwarf-4 -gsplit-dwarf -o program one.c two.c",
      "clang -O1 -g -o program one.c two.c",
      "clang -O1 -gdwarf-4 -o program one.c two.c",
      "clang -O1 -g -gsplit-dwarf -c one.c two.c && clang -o program one.o two.o",
      "cc -O0 -g -flto -o program one.c two.c",
      "cc -O1 -g -o program one.c two.c && cp program other && dwz -m common program other",
  };
  for (const char* way : kWays) {
    const std::string program = directory_ / "program";
    fs::remove(program);
    ASSERT_EQ(std::system(absl::StrCat("cd ", directory_.path(), " && ", way, " 2>&1").c_str()), 0) << way;
    const auto footprint = FootprintOf({program, ""});
    ExpectSizes(program, footprint);
    EXPECT_EQ(footprint.missed, "") << way;
    auto items = Items(footprint);
    EXPECT_EQ(items["one.c/big"].bss, 10000u) << way;
    EXPECT_EQ(items["one.c/table"].data, 400u) << way;
    EXPECT_EQ(items["one.c/text"].text, 2000u) << way;
    EXPECT_EQ(items["two.c/private_numbers"].data, 200u) << way;
    EXPECT_GT(items["one.c/used"].text, 10u) << way;
    EXPECT_GT(items["two.c/main"].text, 10u) << way;
    for (const auto& item : footprint.items) EXPECT_THAT(item.unit, Not(HasSubstr("artificial"))) << way;
  }
}

// The code's sources are known still, and what is missing is said.
TEST_F(FootprintTest, WithoutItsSplitUnits) {
  const std::string program = Build("-g -gsplit-dwarf");
  for (const auto& entry : fs::directory_iterator(directory_.path())) {
    if (entry.path().extension() == ".dwo") fs::remove(entry.path());
  }
  const auto footprint = FootprintOf({program, ""});
  ExpectSizes(program, footprint);
  EXPECT_GT(Items(footprint)["two.c/main"].text, 10u);
  EXPECT_THAT(footprint.missed, HasSubstr(".dwo was not found"));
}

// rustc's units are parts of a crate, whatever file a function is in; here cc's with another language.
TEST_F(FootprintTest, InACrateOfRustTheDeclarationsHaveTheSource) {
  const std::string command = absl::StrCat(
      "cd ", directory_.path(), " && cc -O0 -g -S -dA -o two.s two.c"
      " && sed -i -e '/DW_AT_language/s/0x1d/0x1c/' -e 's|string \"two.c\"|string \"lib.rs/@/0.cgu\"|' two.s"
      " && cc -O1 -g -o program one.c two.s");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto footprint = FootprintOf({directory_ / "program", ""});
  auto items = Items(footprint);
  EXPECT_GT(items["two.c/main"].text, 10u);
  EXPECT_EQ(items["two.c/private_numbers"].data, 200u);
  for (const auto& item : footprint.items) EXPECT_THAT(item.unit, Not(HasSubstr("@")));
}

// A version is no part of a name; tcc's "malloc@plt" has none, and is not what it leads to.
TEST_F(FootprintTest, AStubKeepsItsName) {
  const std::string program = Build("-g");
  const std::string command = absl::StrCat("objcopy --redefine-sym used=malloc@plt "
                                           "--redefine-sym table=table@@V1 ", program);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto items = Items(FootprintOf({program, ""}));
  EXPECT_GT(items.at("one.c/malloc@plt").text, 10u);
  EXPECT_EQ(items.at("one.c/table").data, 400u);
}

TEST_F(FootprintTest, WhatIsNoModuleIsSaid) {
  EXPECT_EQ(FootprintOf({"/nowhere", ""}).state,
            symbolizer::ModuleState::kNotFound);
  EXPECT_EQ(FootprintOf({"/etc/passwd", ""}).state,
            symbolizer::ModuleState::kUnreadable);
  // As /proc/PID/maps marks a file whose directory entry went, and another took its place.
  const std::string built = Build("");
  EXPECT_EQ(FootprintOf({built + " (deleted)", ""}).total,
            FootprintOf({built, ""}).total);
  const auto other = FootprintOf({built, "another build-id"});
  EXPECT_THAT(other.message, HasSubstr("replaced since the trace: build-id "));
  EXPECT_EQ(other.state, symbolizer::ModuleState::kBuildIdDiffers);
  EXPECT_TRUE(other.items.empty());
  // Cut anywhere it is read, or refused.
  const std::string program = Build("-g");
  std::ostringstream whole;
  whole << std::ifstream(program, std::ios::binary).rdbuf();
  for (size_t bytes = 0; bytes < whole.str().size(); bytes += 1999) {
    const std::string cut = directory_ / "cut";
    std::ofstream(cut, std::ios::binary) << whole.str().substr(0, bytes);
    const auto footprint = FootprintOf({cut, ""});
    symbolizer::FootprintBytes items;
    for (const symbolizer::FootprintItem& item : footprint.items) items.Add(item.bytes);
    EXPECT_EQ(items, footprint.total) << bytes;
  }
}

TEST_F(FootprintTest, TheTreeHasItInItsFolders) {
  const std::string program = Build("-g");
  SourceTree tree;
  const auto footprint = FootprintOf({program, ""});
  tree.AddFootprint(program, footprint);
  tree.Finish();
  EXPECT_EQ(tree.root().sum.fixed, footprint.total);
  const auto one = tree.Find("one.c", directory_.path());
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_GE((*one)->sum.fixed.bss, 10300u);
  EXPECT_EQ((*one)->children.at("big")->sum.fixed.bss, 10000u);
}

}  // namespace
}  // namespace memtrace::report::rings
