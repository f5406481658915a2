// `memtrace pages` as a user calls it.

#include <sys/mman.h>

#include <nlohmann/json.hpp>

#include "tests/report/run/run_e2e.h"

namespace memtrace::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

// A child that stands still, with 100 pages of its own under a name.
class Still {
 public:
  Still() : pid_(fork()) {
    if (pid_ == 0) {
      const int memory = memfd_create("still <&>", 0);
      if (ftruncate(memory, 400 << 10) != 0) _exit(1);
      char* const at = static_cast<char*>(
          mmap(nullptr, 400 << 10, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
      for (int i = 0; i < 100; ++i) at[i << 12] = 1;
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
  }
  ~Still() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::string pid() const { return std::to_string(pid_); }

 private:
  pid_t pid_;
};

class PagesCommandTest : public RunTest {
 protected:
  Outcome Pages(std::vector<std::string> words) {
    words.insert(words.begin(), {RUN_MEMTRACE, "pages"});
    return Running(words, directory_.path()).Wait();
  }
  Still still_;
};

TEST_F(PagesCommandTest, ShowsWhatAProcessHas) {
  const Outcome text = Pages({still_.pid(), "--maps", "--width", "120"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out, StartsWith("memtrace pages  of " + still_.pid()));
  for (const char* part : {"User pages ", "PROCESS ", "program text", "program data", "libraries text",
                           "heap", "stack", "UNITS", "memfd:still <&>", ". not resident"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  EXPECT_THAT(text.out, HasSubstr(std::string(100, 'f'))) << "its page map";
}

TEST_F(PagesCommandTest, WritesEveryFormat) {
  const Json json = Json::parse(Pages({still_.pid(), "--format", "json"}).out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["schema"], "memtrace-pages/1");
  EXPECT_GT(json["user_pages"], 100);
  uint64_t resident = 0, of_regions = 0;
  bool named = false;
  for (const Json& mapping : json["processes"][0]["mappings"]) {
    resident += mapping["figures"]["rss_bytes"].get<uint64_t>();
    if (mapping["name"] == "/memfd:still <&>") {
      named = true;
      EXPECT_EQ(mapping["figures"]["rss_bytes"], 400 << 10);
      EXPECT_EQ(mapping["region"], "shared");
      EXPECT_EQ(mapping["deleted"], true);
      EXPECT_EQ(mapping["page_map"]["characters"], std::string(100, 'f'));
    }
  }
  for (const Json& region : json["processes"][0]["regions"]) {
    of_regions += region["figures"]["rss_bytes"].get<uint64_t>();
  }
  EXPECT_TRUE(named);
  EXPECT_EQ(resident, of_regions);
  EXPECT_EQ(resident, json["processes"][0]["figures"]["rss_bytes"]);

  for (const auto& [table, first] : std::vector<std::pair<std::string, std::string>>{
           {"regions", "pid,process,owner,region,"}, {"mappings", "pid,start,end,rights,"},
           {"units", "unit,device,inode,processes,"}, {"alerts", "alert,unit,region,pages,"}}) {
    const std::string csv = Pages({still_.pid(), "--format", "csv", "--table", table}).out;
    EXPECT_THAT(csv, StartsWith(first));
    // As many fields as names: no name in these mappings holds a comma.
    const auto fields = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
    const size_t line = csv.find("\r\n");
    if (line + 2 < csv.size()) {
      EXPECT_EQ(fields(csv.substr(0, line)), fields(csv.substr(line + 2, csv.find("\r\n", line + 2) - line - 2))) << table;
    }
  }

  const std::string raw = Pages({still_.pid(), "--format", "raw"}).out;
  EXPECT_EQ(static_cast<uint64_t>(std::count(raw.begin(), raw.end(), '\n')) > resident / 4096, true);

  for (const char* format : {"svg", "html"}) {
    const std::string file = directory_ / (std::string("pages.") + format);
    EXPECT_EQ(Pages({still_.pid(), "--format", format, "-o", file}).status, 0);
    const Outcome parsed = Running({"python3", "-c",
                                    "import sys, html.parser, xml.dom.minidom as x\n"
                                    "t = open(sys.argv[1]).read()\n"
                                    "x.parseString(t) if sys.argv[1].endswith('svg') else "
                                    "html.parser.HTMLParser().feed(t)\nprint('memfd:still &lt;&amp;&gt;' in t)",
                                    file}, directory_.path()).Wait();
    EXPECT_EQ(parsed.out, "True\n") << parsed.err;
  }
}

TEST_F(PagesCommandTest, ReadsEveryProcess) {
  const Outcome all = Pages({"--all", "--format", "json", "--no-compare"});
  EXPECT_EQ(all.status, 0) << all.err;
  const Json json = Json::parse(all.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  const auto& processes = json["processes"];
  EXPECT_GT(processes.size(), 1u);
  EXPECT_TRUE(std::any_of(processes.begin(), processes.end(), [&](const Json& process) {
    return std::to_string(process["pid"].get<int>()) == still_.pid();
  }));
}

TEST_F(PagesCommandTest, SaysWhatIsWrong) {
  for (const auto& [words, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "whose pages? Give process ids, or --all"},
           {{"--all", "1"}, "leave the numbers out"},
           {{"none.mtr"}, "'none.mtr' is no process id and no file"},
           {{"1", "--snapshot", "2"}, "--snapshot is of a trace"},
           {{"1", "--width", "0"}, "0 is not from 60 to 200"},
           {{"1", "--color", "green"}, "--color: green"},
           {{"0"}, "is no process id"},
           {{"4000000"}, "there is no process 4000000"},
           {{"1", "--format", "pdf"}, "pdf"}}) {
    const Outcome outcome = Pages(words);
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("memtrace: "), HasSubstr(why)));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_THAT(Pages({still_.pid(), "-o", "/nowhere/x"}).err, HasSubstr("/nowhere/x"));
}

TEST_F(PagesCommandTest, OneThatIsMissingAmongOthersIsAnError) {
  const Outcome outcome = Pages({still_.pid(), "4000000"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("process 4000000 is not shown: "));
  EXPECT_THAT(outcome.out, HasSubstr(still_.pid())) << "the other is";
}

TEST_F(PagesCommandTest, CountsNothingWhenToldSo) {
  const Json json = Json::parse(Pages({still_.pid(), "--format", "json", "--no-counts"}).out, nullptr, false);
  EXPECT_EQ(json["counted"], false);
  EXPECT_EQ(json["user_pages_by"], "shares");
  EXPECT_THAT(json["notes"].dump(), HasSubstr("was not counted (not asked for)"));
}

}  // namespace
}  // namespace memtrace::report
