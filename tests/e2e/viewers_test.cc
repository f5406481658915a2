// The viewers themselves open what `memtrace report` writes for them, of a real program, and
// their totals are the report's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <regex>
#include <sstream>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

// The measures and what the JSON report calls their totals.
constexpr std::array<std::pair<const char*, const char*>, 8> kMeasures = {{
    {"live", "live_bytes"},
    {"blocks", "live_blocks"},
    {"allocated", "bytes_allocated"},
    {"allocations", "allocations"},
    {"peak", "peak_live_bytes"},
    {"peak-blocks", ""},
    {"wasted", "wasted_bytes"},
    {"temporary", "temporary_allocations"},
}};

bool IsThere(const std::string& program) {
  return RunCommand({.arguments = {"sh", "-c", "command -v " + program}}).exit_status == 0;
}

std::string WithCommas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

// Thousands of sites: inlined frames, libraries, recursion.
class ViewersTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TempDir;
    const Result run = RunCommand(
        Traced({.arguments = {"/usr/bin/python3", "-S", "-c",
                              "import json\nx = [json.dumps({str(i): i}) for i in range(500)]"},
                .environment = {{"PYTHONMALLOC", "malloc"}}},
               directory_->path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    trace_ = new std::string(TraceOf(directory_->path(), ProgramName("/usr/bin/python3")));
    report_ = new Json(Report(*trace_, {"--full"}));
  }
  static void TearDownTestSuite() {
    delete report_;
    delete trace_;
    delete directory_;
  }

  static uint64_t Total(size_t measure) {
    const std::string name = kMeasures[measure].second;
    if (!name.empty()) return (*report_)["totals"][name].get<uint64_t>();
    // The report says it of sites only.
    static const uint64_t sum = SumOfFolded(Export("folded", kMeasures[measure].first));
    return sum;
  }
  static std::string Export(const std::string& format, const std::string& measure) {
    return ReportText(*trace_, {"--format", format, "--measure", measure});
  }
  // Into a file, whose path is the result.
  static std::string ExportFile(const std::string& format, const std::string& measure) {
    const std::string path = *directory_ / (format + "." + measure);
    ReportText(*trace_, {"--format", format, "--measure", measure, "-o", path});
    return path;
  }
  static uint64_t SumOfFolded(const std::string& folded) {
    uint64_t sum = 0;
    std::istringstream lines(folded);
    for (std::string line; std::getline(lines, line);) sum += std::stoull(line.substr(line.rfind(' ')));
    return sum;
  }

  static TempDir* directory_;
  static std::string* trace_;
  static Json* report_;
};
TempDir* ViewersTest::directory_ = nullptr;
std::string* ViewersTest::trace_ = nullptr;
Json* ViewersTest::report_ = nullptr;

TEST_F(ViewersTest, TheProgramIsAGoodExample) {
  EXPECT_GT((*report_)["sites_total"], 1000);
  for (const char* key : {"live_bytes", "wasted_bytes", "temporary_allocations"}) {
    EXPECT_GT((*report_)["totals"][key], 0) << key;
  }
}

TEST_F(ViewersTest, FlamegraphDrawsFoldedStacks) {
  const std::string nytprof = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl";
  const bool in_path = IsThere("flamegraph.pl");
  if (!in_path && !Exists(nytprof)) GTEST_SKIP() << "flamegraph.pl is not installed";
  for (size_t i = 0; i < kMeasures.size(); ++i) {
    const std::string file = ExportFile("folded", kMeasures[i].first);
    EXPECT_EQ(SumOfFolded(ReadFile(file)), Total(i)) << kMeasures[i].first;
    if (i % 3 != 0) continue;  // a picture takes a second
    Words words = in_path ? Words{"flamegraph.pl"} : Words{"perl", nytprof};
    words.insert(words.end(), {"--countname", "things", file});
    const Result drawn = RunCommand({.arguments = words});
    EXPECT_EQ(drawn.Outcome(), "exit 0");
    EXPECT_EQ(drawn.err, "");
    EXPECT_THAT(drawn.out, HasSubstr("<title>all (" + WithCommas(Total(i)) + " things, 100%)"));
    EXPECT_THAT(drawn.out, HasSubstr("<title>Py_BytesMain ("));
  }
}

TEST_F(ViewersTest, CallgrindAnnotateHasTheSameTotals) {
  if (!IsThere("callgrind_annotate")) GTEST_SKIP() << "valgrind is not installed";
  const std::string file = ExportFile("callgrind", "peak");
  for (size_t i = 0; i < kMeasures.size(); ++i) {
    const Result shown = RunCommand(
        {.arguments = {"callgrind_annotate", "--show=" + std::string(kMeasures[i].first),
                       "--inclusive=yes", file}});
    EXPECT_EQ(shown.Outcome(), "exit 0") << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("Events recorded:  peak live"));
    std::smatch total;
    ASSERT_TRUE(std::regex_search(shown.out, total, std::regex("([0-9,]+) .*PROGRAM TOTALS")))
        << shown.out.substr(0, 2000);
    EXPECT_EQ(total[1], WithCommas(Total(i))) << kMeasures[i].first;
    std::istringstream lines(shown.out);
    const std::regex row("^ *[0-9,]+ \\( *([0-9.]+)%\\)  ");
    for (std::string line; std::getline(lines, line);) {
      std::smatch part;
      if (!std::regex_search(line, part, row)) continue;
      EXPECT_LE(std::stod(part[1]), 100.0) << line;
    }
  }
}

// What is exclusive adds up to the total, function by function.
TEST_F(ViewersTest, CallgrindAnnotateAddsUpTheFunctions) {
  if (!IsThere("callgrind_annotate")) GTEST_SKIP() << "valgrind is not installed";
  const Result shown = RunCommand(
      {.arguments = {"callgrind_annotate", "--show=allocated", "--threshold=100",
                     ExportFile("callgrind", "allocated")}});
  uint64_t sum = 0;
  std::istringstream lines(shown.out.substr(shown.out.find("PROGRAM TOTALS") + 14));
  for (std::string line; std::getline(lines, line);) {
    std::smatch row;
    if (!std::regex_search(line, row, std::regex("^ *([0-9,]+) +\\( *[0-9.]+%\\)  "))) continue;
    sum += std::stoull(std::regex_replace(row[1].str(), std::regex(","), ""));
  }
  EXPECT_EQ(sum, (*report_)["totals"]["bytes_allocated"]);
}

TEST_F(ViewersTest, ProtocReadsPprof) {
  if (!IsThere("protoc")) GTEST_SKIP() << "protobuf-compiler is not installed";
  const Result read = RunCommand(
      {.arguments = {"sh", "-c",
                     "gzip -dc '" + ExportFile("pprof", "peak") + "' | protoc --proto_path='" +
                         SourcePath("tests/report/schemas") +
                         "' --decode=pprof.Profile profile.proto"}});
  ASSERT_EQ(read.Outcome(), "exit 0") << read.err;
  EXPECT_EQ(read.out.find("\n15:"), std::string::npos) << "a field that is not in the definition";
  std::array<uint64_t, kMeasures.size()> sums{};
  std::vector<std::string> strings;
  size_t value = 0, samples = 0, default_type = 0;
  std::istringstream lines(read.out);
  bool in_sample = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("sample {", 0) == 0) {
      EXPECT_TRUE(samples == 0 || value == sums.size());
      in_sample = true;
      value = 0;
      ++samples;
    } else if (line == "}") {
      in_sample = false;
    } else if (in_sample && line.rfind("  value: ", 0) == 0) {
      sums.at(value++) += std::stoull(line.substr(9));
    } else if (line.rfind("string_table: \"", 0) == 0) {
      strings.push_back(line.substr(15, line.size() - 16));
    } else if (line.rfind("default_sample_type: ", 0) == 0) {
      default_type = std::stoul(line.substr(21));
    }
  }
  EXPECT_EQ(samples, (*report_)["sites_total"].get<size_t>());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], Total(i)) << kMeasures[i].first;
  ASSERT_LT(default_type, strings.size());
  EXPECT_EQ(strings[default_type], "peak_space");
}

TEST_F(ViewersTest, GoToolPprofHasTheSameTotals) {
  if (!IsThere("go")) GTEST_SKIP() << "golang-go is not installed";
  const std::string file = ExportFile("pprof", "allocated");
  const std::pair<const char*, size_t> kTypes[] = {
      {"inuse_space", 0}, {"inuse_objects", 1}, {"alloc_space", 2},     {"alloc_objects", 3},
      {"peak_space", 4},  {"peak_objects", 5},  {"wasted_space", 6},    {"temporary_objects", 7}};
  for (const auto& [type, i] : kTypes) {
    const bool bytes = std::string(type).ends_with("space");
    Words words = {"go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0"};
    words.push_back("-sample_index=" + std::string(type));
    if (bytes) words.push_back("-unit=B");
    words.push_back(file);
    const Result shown = RunCommand({.arguments = words});
    ASSERT_EQ(shown.Outcome(), "exit 0") << shown.err;
    const std::string unit = bytes ? "B" : "";
    EXPECT_THAT(shown.out, HasSubstr("Showing nodes accounting for " + std::to_string(Total(i)) +
                                     unit + ", 100% of " + std::to_string(Total(i)) + unit +
                                     " total"))
        << type;
    EXPECT_THAT(shown.out, HasSubstr("Type: " + std::string(type)));
  }
  const Result by_default = RunCommand({.arguments = {"go", "tool", "pprof", "-top", file}});
  EXPECT_THAT(by_default.out, HasSubstr("Type: alloc_space"));
  const Result tags = RunCommand({.arguments = {"go", "tool", "pprof", "-tags", file}});
  EXPECT_THAT(tags.out, HasSubstr("allocator: Total"));
  EXPECT_THAT(tags.out, HasSubstr("malloc"));
}

TEST_F(ViewersTest, SpeedscopeIsWhatItsSchemaAsksFor) {
  // The validator takes its time: a part of the sites will do.
  const std::string part = *directory_ / "part.json";
  ReportText(*trace_, {"--format", "speedscope", "--match", "PyList_", "-o", part});
  const Result valid = RunCommand(
      {.arguments = {"python3", "-W", "ignore", "-c",
                     "import json, jsonschema, sys\n"
                     "jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])),\n"
                     "    cls=jsonschema.Draft7Validator)", part,
                     SourcePath("tests/report/schemas/speedscope.json")}});
  EXPECT_EQ(valid.Outcome(), "exit 0") << valid.err;
  EXPECT_GT(Json::parse(ReadFile(part))["profiles"].size(), 1u);
  const Json file = Json::parse(ReadFile(ExportFile("speedscope", "wasted")));
  const Json& profiles = file["profiles"];
  std::map<std::string, uint64_t> sums;
  for (const Json& profile : profiles) {
    uint64_t sum = 0;
    for (const Json& weight : profile["weights"]) sum += weight.get<uint64_t>();
    EXPECT_EQ(profile["samples"].size(), profile["weights"].size());
    EXPECT_EQ(profile["endValue"], sum);
    sums[profile["name"]] = sum;
  }
  for (size_t i = 0; i < kMeasures.size(); ++i) {
    EXPECT_EQ(sums[kMeasures[i].first], Total(i)) << kMeasures[i].first;
  }
  EXPECT_EQ(profiles[file["activeProfileIndex"].get<size_t>()]["name"], "wasted");
}

// Against the schema that speedscope itself ships. In the long set: npm fetches it.
TEST_F(ViewersTest, DISABLED_SpeedscopeIsWhatItsOwnSchemaAsksFor) {
  if (!IsThere("npm")) GTEST_SKIP() << "npm is not installed";
  const std::string package = *directory_ / "speedscope";
  const Result installed = RunCommand(
      {.arguments = {"sh", "-c", "cp -r '" + SourcePath("tests/e2e/speedscope") + "' '" + package +
                                     "' && cd '" + package + "' && npm ci --ignore-scripts"},
       .timeout_seconds = 300});
  if (installed.exit_status != 0) GTEST_SKIP() << "npm could not fetch it: " << installed.err;
  const Result valid = RunCommand(
      {.arguments = {"python3", "-W", "ignore", "-c",
                     "import json, jsonschema, sys\n"
                     "jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))",
                     ExportFile("speedscope", "live"),
                     package + "/node_modules/speedscope/dist/release/file-format-schema.json"},
       .timeout_seconds = 300});
  EXPECT_EQ(valid.Outcome(), "exit 0") << valid.err;
}

TEST_F(ViewersTest, HeaptrackPrintHasTheSameTotals) {
  if (!IsThere("heaptrack_print")) GTEST_SKIP() << "heaptrack is not installed";
  const std::string file = *directory_ / "app.heaptrack";
  ReportText(*trace_, {"--format", "heaptrack", "-o", file});
  const Json& totals = (*report_)["totals"];
  for (const auto& [cost, key] : {std::pair("leaked", "live_bytes"),
                                  std::pair("peak", "peak_live_bytes"),
                                  std::pair("allocations", "allocations")}) {
    const std::string stacks = *directory_ / cost;
    const Result shown = RunCommand(
        {.arguments = {"heaptrack_print", "--disable-builtin-suppressions", "-f", file, "-F",
                       stacks, "--flamegraph-cost-type", cost}});
    ASSERT_EQ(shown.Outcome(), "exit 0") << shown.err;
    EXPECT_EQ(SumOfFolded(ReadFile(stacks)), totals[key]) << cost;
    EXPECT_THAT(shown.out, HasSubstr("calls to allocation functions: " +
                                     std::to_string(totals["allocations"].get<uint64_t>())));
    EXPECT_THAT(ReadFile(stacks), HasSubstr("Py_BytesMain"));
  }
}

TEST_F(ViewersTest, MassifAndDhatHaveTheSameTotals) {
  const Json& totals = (*report_)["totals"];
  const std::string massif = ReportText(*trace_, {"--format", "massif"});
  std::smatch peak;
  ASSERT_TRUE(std::regex_search(
      massif, peak, std::regex("mem_heap_B=([0-9]+)\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
                               "heap_tree=peak\nn[0-9]+: ([0-9]+) ")));
  EXPECT_EQ(peak[1], std::to_string(totals["peak_live_bytes"].get<uint64_t>()));
  EXPECT_EQ(peak[2], peak[1]);
  const Json dhat = Json::parse(ReportText(*trace_, {"--format", "dhat"}));
  uint64_t bytes = 0, blocks = 0, at_peak = 0, at_end = 0;
  for (const Json& point : dhat["pps"]) {
    bytes += point["tb"].get<uint64_t>();
    blocks += point["tbk"].get<uint64_t>();
    at_peak += point["gb"].get<uint64_t>();
    at_end += point["eb"].get<uint64_t>();
  }
  EXPECT_EQ(bytes, totals["bytes_allocated"]);
  EXPECT_EQ(blocks, totals["allocations"]);
  EXPECT_EQ(at_peak, totals["peak_live_bytes"]);
  EXPECT_EQ(at_end, totals["live_bytes"]);
}

TEST_F(ViewersTest, CsvHasTheSameTotals) {
  const Result sum = RunCommand(
      {.arguments = {"python3", "-c",
                     "import csv, sys\n"
                     "rows = list(csv.DictReader(open(sys.argv[1], newline='')))\n"
                     "print(*[sum(int(row[key]) for row in rows) for key in sys.argv[2:]])",
                     [] {
                       const std::string path = *directory_ / "sites.csv";
                       ReportText(*trace_, {"--format", "csv", "-o", path});
                       return path;
                     }(),
                     "bytes_allocated", "allocations", "frees", "live_bytes", "live_blocks"}});
  const Json& totals = (*report_)["totals"];
  std::ostringstream expected;
  expected << totals["bytes_allocated"] << " " << totals["allocations"] << " " << totals["frees"]
           << " " << totals["live_bytes"] << " " << totals["live_blocks"] << "\n";
  EXPECT_EQ(sum.out, expected.str()) << sum.err;
}

TEST_F(ViewersTest, MeasuresAreForPicturesOnly) {
  const Result refused = RunCommand(
      {.arguments = {ToolPath(), "report", *trace_, "--measure", "live"}});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_EQ(refused.err, "memtrace: --measure: is for --format folded, pprof, speedscope and callgrind; text does not "
                         "show one number of each site\n");
  const Result wrong = RunCommand(
      {.arguments = {ToolPath(), "report", *trace_, "--format", "folded", "--measure", "size"}});
  EXPECT_THAT(wrong.err, HasSubstr("--measure: \"size\" is none of live, blocks"));
}

}  // namespace
}  // namespace memtrace::e2e
