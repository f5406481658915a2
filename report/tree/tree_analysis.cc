#include "report/tree/tree_analysis.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/analysis/coverage.h"
#include "report/leak/leak_scans.h"
#include "report/trace/trace_reader.h"
#include "report/tree/add_totals.h"
#include "report/tree/trace_copies.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

// Of a command line there may be megabytes.
constexpr size_t kWordsKept = 20;
constexpr size_t kWordBytesKept = 200;

void Shorten(std::vector<std::string>* command) {
  if (command->size() > kWordsKept) command->resize(kWordsKept);
  for (std::string& word : *command) {
    word.resize(words::CutUtf8(word, kWordBytesKept).size());
  }
  command->shrink_to_fit();
}

// Notes by their text, for which there is nothing else to know them by. The times in it are told
// where they are those of one trace.
class Notes {
 public:
  explicit Notes(std::vector<TreeAnalysis::Note>* notes) : notes_(*notes) {}

  void Add(const CoverageNote& added, size_t image) {
    const auto [at, is_new] = index_.try_emplace(added.of_many(), notes_.size());
    if (is_new) {
      if (notes_.size() == TreeAnalysis::kMostNotes) {
        index_.erase(at);
        return;
      }
      notes_.push_back({added.text, 0, image});
    }
    TreeAnalysis::Note& note = notes_[at->second];
    if (note.text != added.text) note.text = added.of_many();
    ++note.images;
  }

 private:
  std::vector<TreeAnalysis::Note>& notes_;
  absl::flat_hash_map<std::string, size_t> index_;
};

// What is added up of a trace besides its image, which is the next one: its notes, what is wrong
// with it, and what it lost.
void AddFindings(const Analysis& analysis, TreeAnalysis* tree, Notes* notes) {
  const size_t image = tree->images.size();
  if (const CoverageNote stops = StopsNote(analysis.coverage); !stops.text.empty()) {
    notes->Add(stops, image);
  }
  for (const CoverageNote& note : analysis.coverage.notes) notes->Add(note, image);
  tree->not_all_recorded += AllRecorded(analysis.coverage) ? 0 : 1;
  tree->untraced_children += analysis.coverage.untraced_children.count;
  tree->invalid_frees += analysis.invalid_frees.told;
  tree->with_invalid_frees += analysis.invalid_frees.told != 0 ? 1 : 0;
  const LeakScan* scan = leak::ChooseScan(analysis, 0);
  if (scan == nullptr) return;
  for (const std::string& note : scan->notes) notes->Add({note}, image);
  ++tree->scanned;
  tree->scanned_early += leak::EndWasNotScanned(analysis) ? 1 : 0;
  for (size_t i = 0; i < kLeakKinds; ++i) {
    tree->leaks[i].bytes += scan->totals[i].bytes;
    tree->leaks[i].blocks += scan->totals[i].blocks;
  }
}

// What is kept of a trace, without its executable. Parts of the analysis are moved there.
ProcessImage ImageOf(const std::string& path, const TraceReader& reader, Analysis* analysis) {
  ProcessImage image;
  if (const LeakScan* scan = leak::ChooseScan(*analysis, 0); scan != nullptr) {
    image.leaks = scan->totals;
  } else {
    image.no_scan = leak::WhyNoScan(*analysis);
  }
  image.file = path;
  image.trace_id = reader.header().trace_id;
  image.parent_trace_id = reader.header().parent_trace_id;
  image.start_monotonic_ns = reader.metadata().start_monotonic_ns;
  image.process = std::move(analysis->process);
  Shorten(&image.process.command);
  image.totals = analysis->totals;
  image.events = analysis->coverage.events;
  image.dropped_events = analysis->coverage.dropped_events;
  image.truncated = analysis->coverage.truncated;
  image.part = RunPartText(analysis->coverage);
  image.events_missing = analysis->coverage.events_missing;
  image.damage = std::move(analysis->coverage.damage);
  return image;
}

// Events of threads that ran on behind the end make it look like an exec that failed. But
// there is the next program of the same process.
void MarkExecs(TreeAnalysis* tree) {
  for (const ImageNode& node : tree->tree.nodes) {
    if (node.link != ImageLink::kExec || node.parent == kNoImage) continue;
    ProcessImage& before = tree->images[node.parent];
    if (before.process.end != ProcessInfo::End::kCut) continue;
    before.process.end = ProcessInfo::End::kExec;
    before.process.at_work = false;
    if (before.truncated && before.damage.empty()) {
      before.truncated = false;
      --tree->truncated;
    }
  }
}

}  // namespace

std::string NotReadText(const TreeAnalysis& tree) {
  if (tree.not_read == 0) return "";
  return absl::StrCat("the reading was interrupted: this is of ",
                      tree.images.size() == 1
                          ? "the first trace"
                          : absl::StrCat("the first ", tree.images.size(), " traces"),
                      "; ", words::Plural(tree.not_read, "file"),
                      tree.not_read == 1 ? " was not read" : " were not read");
}

std::string NoteText(const TreeAnalysis& tree, const TreeAnalysis::Note& note) {
  return absl::StrCat(
      note.images == 1 ? tree.images[note.first].file : words::Plural(note.images, "trace"), ": ",
      note.text);
}

TreeAnalysis AnalyzeTree(const TraceSet& set, const std::function<void(double)>& progress,
                         const SeeTrace& see, const TreeOptions& how) {
  TreeAnalysis tree;
  Notes notes(&tree.notes);
  UnseenAllocatorsByProgram allocators(how.find_names);
  tree.spools = set.spools;
  const absl::flat_hash_map<uint64_t, size_t> fullest = FullestCopies(set);
  uint64_t bytes_before = 0;
  for (size_t number = 0; number < set.files.size(); ++number) {
    const TraceSet::File& file = set.files[number];
    const auto stopped = [&] { return how.stop && how.stop(); };
    if (stopped()) {
      tree.not_read = set.files.size() - number;
      break;
    }
    const auto report = [&](double share) {
      if (set.total_bytes == 0) return;
      progress((static_cast<double>(bytes_before) + share * static_cast<double>(file.bytes)) /
               static_cast<double>(set.total_bytes));
    };
    report(0);
    const auto skip = [&](absl::string_view why, bool is_copy = false) {
      // "t.mtr: No such file", "t.mtr is empty": whoever tells of it names the file.
      if (!absl::ConsumePrefix(&why, absl::StrCat(file.path, ": "))) {
        absl::ConsumePrefix(&why, absl::StrCat(file.path, " "));
      }
      tree.skipped.push_back({file.path, std::string(why), is_copy});
      bytes_before += file.bytes;
    };
    auto reader = TraceReader::Open(file.path);
    if (!reader.ok()) {
      skip(reader.status().message());
      continue;
    }
    const format::FileHeader header = (*reader)->header();
    if (const auto one = fullest.find(header.trace_id);
        one != fullest.end() && one->second != number) {
      skip(absl::StrCat("the same trace as ", set.files[one->second].path), true);
      continue;
    }
    AnalyzeOptions options;
    options.jobs = how.jobs;
    options.stop = how.stop;
    options.leaks.leader = how.leader;
    options.progress = [&](const ReadProgress& progress) { report(progress.share()); };
    auto trace = AnalyzeTrace(**reader, options);
    if (!trace.ok()) {
      skip(trace.status().message());
      continue;
    }
    if (trace->analysis.coverage.interrupted || stopped()) {
      tree.not_read = set.files.size() - number;
      break;
    }
    bytes_before += file.bytes;
    Analysis& analysis = trace->analysis;
    if (how.find_names) allocators.Fill(&analysis);
    AddFindings(analysis, &tree, &notes);
    const size_t executable = tree.sites.Add(*trace);
    if (see) see(tree.images.size(), *trace, tree.sites);
    ProcessImage image = ImageOf(file.path, **reader, &analysis);
    image.executable = executable;
    image.process.build_id = tree.sites.executables()[executable].build_id;
    AddTotals(image.totals, &tree.totals);
    tree.totals.peak_live_bytes =
        std::max(tree.totals.peak_live_bytes, image.totals.peak_live_bytes);
    tree.events += image.events;
    tree.dropped_events += image.dropped_events;
    tree.truncated += image.truncated;
    tree.waste_is_known &= image.process.waste_is_known();
    tree.sample_bytes = std::max(tree.sample_bytes, image.process.sample_bytes);
    tree.images.push_back(std::move(image));
  }
  tree.sites.CompleteSamples();
  if (tree.sample_bytes != 0) {
    for (const ProcessImage& image : tree.images) {
      if (image.process.sample_bytes != 0) continue;
      tree.totals.bytes_sample.exact += static_cast<double>(image.totals.bytes_allocated);
      tree.totals.live_sample.exact += static_cast<double>(image.totals.live_bytes);
    }
  }
  tree.tree = LinkProcesses(tree.images);
  MarkExecs(&tree);
  return tree;
}

}  // namespace memtrace::report
