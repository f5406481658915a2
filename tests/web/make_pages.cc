// make_pages DIRECTORY: pages of --format html for the tests in a browser, of analyses that nobody
// had to run a program for.
//
//   ordinary.html    a program with leaks, threads, phases, faults, mappings
//   large.html       10,000 sites with 30 frames each, 150 pairs of threads that exchange blocks
//   hostile.html     names that would be markup, commands or commotion if they were not data
//   told.html        what the cards above the page say of, and names that are long and nearly the same
//   sampled.html     a sample of which nothing is left
//   estimated.html   estimates of a sample
//   late.html        what is held at the end alone
//   mismatched.html  a block of operator new that went to realloc

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "report/html/page.h"
#include "report/render/formats.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report {
namespace {

void AddTimeline(Analysis* analysis, size_t points) {
  analysis->timeline_interval_ns = analysis->process.duration_ns / points;
  for (size_t i = 1; i <= points; ++i) {
    TimelinePoint point;
    point.time_ns = i * analysis->timeline_interval_ns;
    const double part = static_cast<double>(i) / static_cast<double>(points);
    point.live_bytes = static_cast<uint64_t>(part * 8e6 + 2e6 * std::sin(part * 20) + 2e6);
    point.live_blocks = point.live_bytes / 64;
    point.max_live_bytes = point.live_bytes + 100'000;
    point.allocations = 1000 + i % 7 * 100;
    point.frees = 900 + i % 5 * 100;
    point.bytes_allocated = point.allocations * 64;
    point.rss_bytes = point.live_bytes + 4'000'000;
    point.minor_faults = i % 11 * 3;
    analysis->timeline.push_back(point);
    if (point.max_live_bytes > analysis->totals.peak_live_bytes) {
      analysis->totals.peak_live_bytes = point.max_live_bytes;
      analysis->totals.peak_live_blocks = point.live_blocks;
      analysis->totals.peak_time_ns = point.time_ns;
    }
  }
}

void AddThread(Analysis* analysis, uint32_t tid, std::string name) {
  ThreadSummary thread;
  thread.id = {tid};
  thread.tid = tid;
  thread.name = std::move(name);
  thread.allocations = tid * 100;
  thread.frees = tid * 90;
  thread.bytes_allocated = tid * 6400;
  thread.live_bytes = tid * 640;
  thread.live_blocks = tid * 10;
  thread.last_time_ns = analysis->process.duration_ns;
  analysis->threads.push_back(std::move(thread));
}

// Each site allocates evenly from its first time to its last; what it keeps it keeps from then on.
void AddSeries(Analysis* analysis) {
  constexpr uint32_t kIntervals = 100;
  analysis->series_interval_ns = analysis->process.duration_ns / kIntervals;
  for (Site& site : analysis->sites) {
    const auto first = static_cast<uint32_t>(site.first_time_ns / analysis->series_interval_ns);
    const auto last = static_cast<uint32_t>(site.last_time_ns / analysis->series_interval_ns);
    const uint32_t count = last - first + 1;
    for (uint32_t i = 0; i < count; ++i) {
      SeriesPoint point;
      point.interval = first + i;
      const auto part = [&](uint64_t all) {
        return static_cast<uint32_t>(all * (i + 1) / count - all * i / count);
      };
      point.allocations = part(site.allocations);
      point.frees = part(site.frees);
      point.live_blocks = static_cast<uint32_t>(site.live_blocks * (i + 1) / count);
      point.live_bytes = site.live_bytes * (i + 1) / count;
      point.high_bytes = point.live_bytes;
      site.series.push_back(point);
    }
    site.growth.verdict = site.live_blocks == 400 ? Growth::Verdict::kGrowing
                          : site.live_blocks > 0  ? Growth::Verdict::kHeld
                                                  : Growth::Verdict::kBounded;
    if (site.live_blocks == 400) {
      site.growth.bytes_per_s = 200'000;
      site.growth.bytes_per_s_low = 190'000;
      site.growth.bytes_per_s_high = 210'000;
      site.growth.confidence = 0.999;
    }
  }
}

// A scan for which the sites with live blocks are lost by turns.
void AddScan(Analysis* analysis) {
  LeakScan scan;
  scan.number = 1;
  scan.state = LeakScan::State::kDone;
  scan.time_ns = analysis->process.duration_ns;
  size_t turn = 0;
  for (const Site& site : analysis->sites) {
    if (site.live_blocks == 0) continue;
    LossRecord record;
    record.kind = turn++ % 3 == 0 ? LeakKind::kDefinite : LeakKind::kReachable;
    record.stack = site.stack;
    record.function = site.function;
    record.bytes = site.live_bytes;
    record.blocks = site.live_blocks;
    record.first_time_ns = site.live_first_time_ns;
    record.last_time_ns = site.live_last_time_ns;
    scan.totals[static_cast<size_t>(record.kind)].bytes += record.bytes;
    scan.totals[static_cast<size_t>(record.kind)].blocks += record.blocks;
    scan.records.push_back(record);
  }
  analysis->leak_scans.push_back(std::move(scan));
}

void Ordinary(MadeUp* made_up) {
  const std::vector<Step> main = {{"main", "/work/src/main.cc", 40}, Libc("__libc_start_main")};
  const auto stack = [&](std::vector<Step> inner) {
    inner.insert(inner.end(), main.begin(), main.end());
    return made_up->Stack(inner);
  };
  made_up->AddSite(stack({{"Parse", "/work/src/parse/parser.cc", 12}, {"Load", "/work/src/load.cc", 7}}),
                   9000, 64, 0);
  made_up->AddSite(stack({{"Keep", "/work/src/cache/cache.cc", 88}, {"Load", "/work/src/load.cc", 9}}),
                   500, 1024, 400);
  made_up->AddSite(stack({{"Forget", "/work/src/leak.cc", 3}}), 32, 128, 32);
  // Early only.
  Site& early = made_up->AddSite(stack({{"Begin", "/work/src/begin.cc", 5}}), 10, 4096, 0);
  early.last_time_ns = 150'000'000;
  for (Site& site : made_up->analysis.sites) {
    site.wasted_bytes = site.allocations * 8;
    site.temporary = site.frees / 4;
  }
  AddSeries(&made_up->analysis);
  AddTimeline(&made_up->analysis, 200);
  AddThread(&made_up->analysis, 1, "app");
  AddThread(&made_up->analysis, 2, "worker");
  AddScan(&made_up->analysis);
  Phase phase;
  phase.name = "load";
  phase.minor_faults = 256;
  phase.times = 1;
  phase.first_begin.time_ns = 500'000'000;
  made_up->analysis.phases.push_back(phase);
  MappingSite mapping;
  mapping.stack = made_up->analysis.sites[0].stack;
  mapping.calls = 2;
  mapping.bytes = mapping.live_bytes = 1 << 20;
  made_up->analysis.mappings.push_back(mapping);
  made_up->analysis.sizes.allocations[7] = 9000;
  made_up->analysis.sizes.bytes[7] = 9000 * 64;
  made_up->analysis.sizes.allocations[8] = 700;
  made_up->analysis.sizes.bytes[8] = 700 * 128;
  made_up->analysis.coverage.events = 20'000;
  made_up->analysis.faults.minor = 1234;
  FaultDetails& faults = made_up->analysis.fault_details;
  faults.known = true;
  faults.source = format::FaultSource::kAllEvents;
  faults.told.minor = faults.counted.minor = faults.by_kind[0].minor = 1234;
  const StackId code = made_up->Stack({{"Fill", "fill.c", 7}});
  faults.sites.push_back({.stack = made_up->analysis.sites[0].stack, .faults = {1200, 0},
                          .blocks = 3, .first_time_ns = 100'000'000, .last_time_ns = 200'000'000,
                          .touchers = {{code, {1190, 0}}, {StackId{}, {10, 0}}}});
  faults.touchers = faults.sites[0].touchers;
  faults.ns_per_fault = 500;
  faults.places.push_back({MemoryKind::kStack, "main thread", {34, 0}});
  PressureLane& lane = made_up->analysis.pressure;
  lane.samples = 200;
  lane.columns = {"rss_anon_bytes", "rss_file_bytes", "major_faults", "cgroup.limit_bytes"};
  for (uint64_t i = 0; i < 100; ++i) {
    lane.points.push_back({i * 20'000'000, {i << 16, 1 << 20, i / 50 * 7, PressureLane::kNotKnown}});
  }
  faults.correlation.live_minor = {.known = true, .now = 0.1, .best = 0.9, .lag_ns = 40'000'000};
}

// Nothing is left of it, and that says little.
void Sampled(MadeUp* made_up) {
  made_up->AddSite(made_up->Stack({{"Make", "/work/src/make.cc", 21}}), 100, 64, 0);
  made_up->analysis.process.sample_bytes = 1 << 20;
  made_up->analysis.coverage.events = 200;
}

// Two ways to one caller, of which some blocks were recorded.
void Estimated(MadeUp* made_up) {
  Analysis& analysis = made_up->analysis;
  analysis.process.sample_bytes = 4096;
  analysis.coverage.events = 300;
  for (const uint64_t samples : {3, 40}) {
    const std::string outer = samples == 3 ? "main" : "Again";
    Site& site = made_up->AddSite(
        made_up->Stack({{"Make", "/work/src/make.cc", 21}, {outer, "/work/src/main.cc", 3}}), 41 * samples, 100, 41 * samples);
    for (SampledSum* sum : {&site.bytes_sample.Make(), &site.live_sample.Make(),
                            &analysis.totals.bytes_sample, &analysis.totals.live_sample}) {
      for (uint64_t i = 0; i < samples; ++i) sum->Add(100, analysis.process.sample_bytes);
    }
  }
  AddSeries(&analysis);
  AddTimeline(&analysis, 100);
}

// Eight that hold something from 0.1 s to 1 s, and one that holds more than all of them in the last tenth of a second.
void Late(MadeUp* made_up) {
  Analysis& analysis = made_up->analysis;
  analysis.series_interval_ns = 20'000'000;
  for (int i = 0; i < 8; ++i) {
    Site& site = made_up->AddSite(
        made_up->Stack({{"Early" + std::to_string(i), "/work/src/early.cc", 3}}), 100, 1024, 0);
    site.series.push_back({.interval = 5, .allocations = 100, .live_blocks = 100, .live_bytes = 100 << 10});
    site.series.push_back({.interval = 50, .frees = 100});
  }
  made_up->AddSite(made_up->Stack({{"Last", "/work/src/late.cc", 3}}), 10, 64 << 10, 10)
      .series.push_back({.interval = 95, .allocations = 10, .live_blocks = 10, .live_bytes = 640 << 10});
  AddTimeline(&analysis, 100);
}

// The newest events, and blocks without a byte that are lost.
void Window(MadeUp* made_up) {
  made_up->AddSite(made_up->Stack({{"Make", "/work/src/make.cc", 21}}), 100, 0, 20);
  made_up->analysis.coverage.window_begin_ns = 500'000'000;
  made_up->analysis.coverage.events = 200;
  AddScan(&made_up->analysis);
}

// Growth at two lines by three ways, blocks that hang on lost ones, lost faults, and what the C runtime keeps.
void Told(MadeUp* made_up) {
  const std::string cache = "void svc::LruCache<std::__cxx11::basic_string<char, std::char_traits<char>, "
                            "std::allocator<char> >, svc::detail::Session>::";
  const std::string key = "(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)";
  Analysis& analysis = made_up->analysis;
  const auto add = [&](const std::string& function, uint32_t line, const std::string& outer, double rate) {
    const StackId stack = made_up->Stack({{function, "/work/src/cache.cc", line}, {outer, "/work/src/main.cc", line}});
    made_up->AddSite(stack, 100, 64, 50).growth = {
        .verdict = Growth::Verdict::kGrowing, .bytes_per_s = rate, .bytes_per_s_low = rate / 2, .confidence = 0.99};
    return stack;
  };
  const StackId put = add(cache + "Put" + key, 24, "main", 3000);
  add(cache + "Put" + key, 24, "Again", 2000);
  add(cache + "Get" + key, 25, "main", 1000);
  LeakScan& scan = analysis.leak_scans.emplace_back();
  scan.number = 1;
  scan.state = LeakScan::State::kDone;
  scan.totals = {{{1'152'064, 12'000}, {2'409'832, 48'008}, {912, 3}}};
  scan.of_runtime = {912, 3};
  scan.records.push_back({.kind = LeakKind::kDefinite, .stack = put, .bytes = 1'152'064, .blocks = 12'000,
                          .indirect_bytes = 2'409'832, .indirect_blocks = 48'008});
  analysis.totals.peak_live_bytes = 1 << 20;
  analysis.coverage.events = 300;
  FaultDetails& faults = analysis.fault_details;
  faults.known = true;
  faults.source = format::FaultSource::kAllEvents;
  faults.lost = 5000;
  faults.last_lost_ns = UINT64_MAX;
  faults.told.minor = faults.by_kind[0].minor = 100;
  faults.by_kind[static_cast<size_t>(MemoryKind::kTool)].minor = 7;
  analysis.faults.minor = faults.counted.minor = 5107;
  faults.sites.push_back({.stack = put, .faults = {100, 0}, .blocks = 1, .first_time_ns = 1'000'000,
                          .last_time_ns = 2'000'000, .touchers = {{put, {100, 0}}}});
  RssBridge bridge;
  bridge.rss = 4 << 20;
  bridge.parts[static_cast<size_t>(RssPart::kRetained)] = 3 << 20;
  bridge.parts[static_cast<size_t>(RssPart::kTool)] = 1 << 20;
  analysis.resident.bridges.push_back(bridge);
}

void Mismatched(MadeUp* made_up) {
  const StackId made = made_up->Stack({{"_Znwm"}, {"Make", "/work/src/make.cc", 21}});
  const StackId grown = made_up->Stack({{"Grow", "/work/src/grow.cc", 5}});
  for (const StackId stack : {made, grown}) made_up->AddSite(stack, 1, 16, 0);
  made_up->analysis.block_ends.push_back(
      {made, grown, format::AllocFunction::kMalloc, BlockEnds::By::kRealloc, 1234});
  InvalidFree story;
  story.times = 12;
  story.block_bytes = 2048;
  const StackId kept = made_up->Stack({{"Keep", "/work/src/keep.cc", 8}});
  made_up->AddSite(kept, 1, 16, 0);
  story.allocated = {kept, ThreadId{1}, 1'000'000, false};
  story.freed = {grown, ThreadId{1}, 2'000'000, false};
  story.again.time_ns = 3'000'000;
  made_up->analysis.invalid_frees = {{story}, 12, true, 0};
}

void Large(MadeUp* made_up) {
  constexpr size_t kSites = 10'000, kFrames = 30, kFunctions = 3000;
  uint64_t random = 1;
  const auto below = [&](uint64_t limit) {
    random = random * 6364136223846793005 + 1442695040888963407;
    return (random >> 33) % limit;
  };
  for (size_t i = 0; i < kSites; ++i) {
    std::vector<Step> steps;
    for (size_t depth = 0; depth < kFrames; ++depth) {
      // Outer frames are shared by many stacks, inner ones by few.
      const size_t choices = 1 + kFunctions * (kFrames - depth) / kFrames;
      const size_t which = depth + 1 == kFrames ? 0 : below(choices) % (kFrames - depth < 20 ? 8 * (kFrames - depth) : choices);
      steps.push_back({"project::module" + std::to_string(which % 40) + "::Function" + std::to_string(which) + "(int, char const*)",
                       "/work/src/module" + std::to_string(which % 40) + "/file" + std::to_string(which % 300) + ".cc",
                       static_cast<uint32_t>(which % 900 + 1)});
    }
    made_up->AddSite(made_up->Stack(steps), 1 + below(1000), 16 + below(4096), below(2));
  }
  AddTimeline(&made_up->analysis, 512);
  AddScan(&made_up->analysis);
  for (uint32_t tid = 1; tid <= 150; ++tid) {
    AddThread(&made_up->analysis, tid, "worker");
    made_up->analysis.exchanges.push_back({ThreadId{tid}, ThreadId{tid % 150 + 1}, 1000 - tid, 64});
  }
  made_up->analysis.exchanges_left_out = {77, 4096};
}

const char* const kHostile[] = {
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"'><svg onload=window.hacked=1>",
    "@@MEMTRACE_DATA@@",
    "-->]]><!--",
    "${window.hacked=1}`\\u003cb\\u003e",
    "right\u202eto left\u2066 isolated\u200b",
    "bell\a escape\x1b[2J tab\t newline\n return\r null-like\x01",
    "c1 \xc2\x9b controls \xc2\x85",
    "\xff\xfe not utf-8 \xc3",
    "surrogate \xed\xa0\x80 alone",
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d hebrew and \xf0\x9f\x98\x80",
    "__proto__", "constructor", "javascript:window.hacked=1",
};

void Hostile(MadeUp* made_up) {
  Analysis& analysis = made_up->analysis;
  analysis.process.command.clear();
  uint32_t line = 1;
  for (const std::string name : kHostile) {
    const StackId stack = made_up->Stack({{name, "/work/" + name + "/" + name + ".cc", line++},
                                          {"main", "/work/main.cc", 1}});
    made_up->AddSite(stack, 10, 100, 5);
    AddThread(&analysis, line, name);
    analysis.process.command.push_back(name);
    analysis.coverage.notes.push_back({name});
    analysis.coverage.counters.emplace_back(name, 7);
    Phase phase;
    phase.name = name;
    phase.times = 1;
    phase.first_begin.time_ns = line * 10'000'000;
    analysis.phases.push_back(phase);
    Mark mark;
    mark.name = name;
    mark.time_ns = line * 100'000'000;
    analysis.marks.push_back(mark);
    Pool pool;
    pool.name = name;
    pool.stack = stack;
    analysis.pools.push_back(pool);
    MappingSite mapping;
    mapping.stack = stack;
    mapping.file = name;
    mapping.calls = mapping.bytes = line;
    analysis.mappings.push_back(mapping);
    analysis.coverage.unseen_allocators.push_back({name, name, UnseenAllocator::Way::kHidden});
  }
  analysis.file = kHostile[0];
  analysis.process.host = kHostile[1];
  AddTimeline(&analysis, 50);
  AddScan(&analysis);
  analysis.leak_scans[0].notes = {kHostile[0]};
}

class FileSink : public words::Sink {
 public:
  explicit FileSink(const std::string& path) : file_(path, std::ios::binary) {}
  void Write(absl::string_view text) override {
    file_.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  bool Close() {
    file_.close();
    return file_.good();
  }

 private:
  std::ofstream file_;
};

int Main(const std::string& directory) {
  const absl::Status there = html::PageIsThere();
  if (!there.ok()) {
    std::fprintf(stderr, "%s\n", there.ToString().c_str());
    return 1;
  }
  struct Page {
    const char* name;
    void (*fill)(MadeUp*);
  };
  for (const Page& page : {Page{"ordinary", Ordinary}, Page{"large", Large}, Page{"hostile", Hostile},
                           Page{"mismatched", Mismatched}, Page{"sampled", Sampled},
                           Page{"estimated", Estimated}, Page{"late", Late}, Page{"window", Window}, Page{"told", Told}}) {
    MadeUp made_up;
    page.fill(&made_up);
    FileSink out(directory + "/" + page.name + ".html");
    render::RenderHtml(made_up.View(), render::kHtmlRows, out);
    if (!out.Close()) {
      std::fprintf(stderr, "cannot write %s/%s.html\n", directory.c_str(), page.name);
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace memtrace::report

int main(int argc, char** argv) {
  return argc == 2 ? memtrace::report::Main(argv[1]) : 2;
}
