#include "report/index/indexed_analysis.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/private_file.h"
#include "report/analysis/pass_state.h"
#include "report/index/analysis_codec.h"
#include "report/index/index_file.h"
#include "report/index/trace_identity.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report::index {
namespace {

constexpr uint64_t kMostCacheBytes = uint64_t{1} << 30;

// Chooses the states that become part of an index.
class IndexBuilder : public PassKeeper {
 public:
  IndexBuilder(IndexFile* file, const TraceStatistics& statistics, const IndexOptions& options)
      : file_(file),
        least_gap_(std::max<uint64_t>(options.least_gap_bytes, 1)),
        stored_share_(static_cast<double>(statistics.event_bytes) /
                      static_cast<double>(std::max<uint64_t>(statistics.event_content_bytes, 1))),
        every_(options.every_events) {}

  int every_events() const override { return every_; }

  bool Wants(const PassPoint& point) override {
    if (failed_) return false;
    const uint64_t gap = StoredAt(point) - std::min(StoredAt(point), stored_at_last_);
    return gap >= std::max(least_gap_, kTimes * (last_piece_bytes_ + Expected(point)));
  }

  void Keep(const PassPoint& point, std::string piece, std::string state) override {
    failed_ = !file_->Add(point, piece, state);
    stored_at_last_ = StoredAt(point);
    last_items_ = ItemsOf(point);
    last_piece_bytes_ = file_->last_piece_bytes();
    last_state_bytes_ = file_->last_state_bytes();
  }

 private:
  // A state is at least this many times its own size, and that of the piece before it, behind the
  // one before: so the index takes no more than a tenth of the trace.
  static constexpr uint64_t kTimes = 10;
  static constexpr uint64_t kBytesAnItem = 8;  // a guess, as long as no state has them

  static uint64_t ItemsOf(const PassPoint& point) { return point.live_blocks + 8 * point.sites; }
  uint64_t StoredAt(const PassPoint& point) const {
    return static_cast<uint64_t>(static_cast<double>(point.content_bytes) * stored_share_);
  }
  // The last one's size says nothing of one item's: most of a state without a live block is
  // what the threads' stacks are.
  uint64_t Expected(const PassPoint& point) const {
    const uint64_t items = ItemsOf(point);
    if (items >= last_items_) return last_state_bytes_ + kBytesAnItem * (items - last_items_);
    return static_cast<uint64_t>(static_cast<double>(last_state_bytes_) *
                                 static_cast<double>(items) / static_cast<double>(last_items_));
  }

  IndexFile* const file_;
  const uint64_t least_gap_;
  const double stored_share_;
  const int every_;
  // Of the last state; 0: there is none.
  uint64_t stored_at_last_ = 0, last_items_ = 0, last_piece_bytes_ = 0, last_state_bytes_ = 0;
  bool failed_ = false;
};

std::string PathIn(const std::string& directory, const TraceIdentity& identity) {
  return absl::StrCat(directory, "/", absl::Hex(identity.trace_id, absl::kZeroPad16),
                      kIndexKind.suffix);
}

// The part of an analysis that the series are shown with.
std::string EncodeSeries(AnalyzedTrace trace) {
  Analysis& a = trace.analysis;
  a.leak_scans.clear();
  a.live.clear();
  a.faults.samples.clear();
  a.fault_details = {};
  a.resident = {};
  a.pressure = {};
  a.exchanges.clear();
  a.block_ends.clear();
  a.checked_stacks.clear();
  for (Site& site : a.sites) {
    site.lifetimes.Clear();
    site.sizes.Clear();
  }
  return EncodeTrace(trace);
}

// The index of one trace.
class Indexer {
 public:
  Indexer(const std::string& trace, const AnalyzeOptions& options, const IndexOptions& index,
          IndexUse* use)
      : trace_(trace), options_(options), index_(index), use_(use) {}

  // Null: there can be none.
  absl::StatusOr<std::unique_ptr<IndexFile>> OpenOrBuild() {
    const auto identity = IdentifyTrace(trace_);
    if (!identity.ok()) return identity.status();
    identity_ = *identity;
    if (identity_.bytes < index_.least_trace_bytes || stat(trace_.c_str(), &st_) != 0)
      return nullptr;
    for (const std::string& path : Places()) {
      auto file = IndexFile::Open(path, identity_, st_.st_uid);
      if (file != nullptr) return file;
    }
    return Build();
  }

  // It was of no use: there is another one, or none.
  absl::StatusOr<std::unique_ptr<IndexFile>> Rebuild() { return Build(); }

  // What the pass that was to make one came to before it was stopped; null: it was not.
  AnalyzedTrace* interrupted() { return interrupted_.has_value() ? &*interrupted_ : nullptr; }
  // Those of the question, which goes no further than that pass.
  AnalyzeOptions OptionsNow() const {
    AnalyzeOptions now = options_;
    if (interrupted_.has_value()) {
      const Analysis& part = interrupted_->analysis;
      now.reached = {part.range.to_ns, part.coverage.read_share};
    }
    return now;
  }

 private:
  std::vector<std::string> Places() const {
    std::vector<std::string> places;
    if (index_.beside) places.push_back(IndexPathBeside(trace_));
    if (!index_.directory.empty()) places.push_back(PathIn(index_.directory, identity_));
    return places;
  }

  absl::StatusOr<std::unique_ptr<IndexFile>> Create() {
    absl::Status why = absl::NotFoundError("there is no directory for it");
    for (const std::string& path : Places()) {
      if (path.starts_with(index_.directory + "/") && !index_.directory.empty()) {
        base::MakePrivateDirectory(index_.directory);
      }
      auto file = IndexFile::Create(path, st_.st_mode);
      if (file.ok()) return file;
      why = file.status();
    }
    return why;
  }

  absl::StatusOr<std::unique_ptr<IndexFile>> Build() {
    if (!index_.build || interrupted_.has_value()) return nullptr;
    auto reader = TraceReader::Open(trace_);
    if (!reader.ok()) return reader.status();
    if (!(*reader)->metadata().end.has_value()) return nullptr;
    auto file = Create();
    if (!file.ok()) {
      Warn(file.status());
      return nullptr;
    }
    IndexBuilder builder(file->get(), (*reader)->statistics(), index_);
    AnalyzeOptions whole;
    whole.jobs = options_.jobs;
    whole.progress = options_.progress;
    whole.stop = options_.stop;
    whole.keeper = &builder;
    auto trace = AnalyzeTrace(**reader, whole);
    if (!trace.ok()) return trace.status();
    // The part of the index that there is serves the question that was
    // interrupted, and is then dropped.
    if (trace->analysis.coverage.interrupted) {
      interrupted_ = *std::move(trace);
      return file;
    }
    const auto after = IdentifyTrace(trace_);
    if (!after.ok() || *after != identity_) return nullptr;  // it is being written
    absl::Status status = (*file)->Finish(identity_, EncodeSeries(*std::move(trace)));
    if (status.ok()) status = (*file)->Place();
    if (status.ok()) {
      use_->built = true;
      use_->path = (*file)->path();
      if (!index_.directory.empty() && use_->path.starts_with(index_.directory + "/")) {
        base::TrimPrivateDirectory(index_.directory, kIndexKind, kMostCacheBytes, use_->path);
      }
    } else {
      Warn(status);
    }
    return file;
  }

  void Warn(const absl::Status& status) const {
    if (index_.warn) index_.warn(absl::StrCat("no index is kept: ", status.message()));
  }

  const std::string& trace_;
  const AnalyzeOptions& options_;
  const IndexOptions& index_;
  IndexUse* const use_;
  TraceIdentity identity_;
  struct stat st_ = {};
  std::optional<AnalyzedTrace> interrupted_;
};

// Whether the question is about a part of the time: states that are kept serve such a question.
bool AsksForAPart(const AnalyzeOptions& options) {
  return !options.range.whole() || options.from_share.has_value() ||
         options.to_share.has_value() || !options.from_name.empty() || !options.to_name.empty();
}

// Nothing: the index was of no use.
absl::StatusOr<AnalyzedTrace> Answer(const std::string& path, AnalyzeOptions options,
                                     IndexFile* file, bool* damaged) {
  *damaged = false;
  options.source = file;
  const auto gave = [file] { return file != nullptr && file->gave(); };
  // One that is not what it says may ask for any memory, and for more than any.
  const auto asks_for_too_much = [&] {
    *damaged = true;
    return absl::DataLossError("the index asks for too much memory");
  };
  try {
    auto trace = AnalyzeTrace(path, options);
    *damaged = absl::IsDataLoss(trace.status()) && gave();
    return trace;
  } catch (const std::bad_alloc&) {
    if (!gave()) throw;
    return asks_for_too_much();
  } catch (const std::length_error&) {
    if (!gave()) throw;
    return asks_for_too_much();
  }
}

void Note(const IndexFile* file, const AnalyzedTrace& trace, IndexUse* use) {
  use->event_bytes_decoded = trace.event_bytes_decoded;
  if (file == nullptr) return;
  use->used = file->gave();
  use->bytes = file->bytes();
  use->states = file->states();
}

}  // namespace

absl::StatusOr<AnalyzedTrace> AnalyzeByIndex(const std::string& path, const AnalyzeOptions& options,
                                             const IndexOptions& index, IndexUse* use) {
  IndexUse unused;
  if (use == nullptr) use = &unused;
  *use = {};
  std::unique_ptr<IndexFile> file;
  Indexer indexer(path, options, index, use);
  // Stacks of an earlier pass are of the same trace; so an observer's, which asks for its scans.
  if (index.use && AsksForAPart(options) && !options.filter.selection().needs_lifetimes()) {
    auto opened = indexer.OpenOrBuild();
    if (!opened.ok()) return opened.status();
    file = *std::move(opened);
  }
  bool damaged;
  auto trace = Answer(path, indexer.OptionsNow(), file.get(), &damaged);
  if (damaged) {
    auto again = indexer.Rebuild();
    file = again.ok() ? *std::move(again) : nullptr;
    trace = Answer(path, indexer.OptionsNow(), file.get(), &damaged);
  }
  if (damaged) {
    file = nullptr;
    trace = Answer(path, indexer.OptionsNow(), nullptr, &damaged);
  }
  if (trace.ok()) Note(file.get(), *trace, use);
  return trace;
}

absl::StatusOr<AnalyzedTrace> SeriesByIndex(const std::string& path, const AnalyzeOptions& options,
                                            const IndexOptions& index, IndexUse* use) {
  IndexUse unused;
  if (use == nullptr) use = &unused;
  *use = {};
  // The series that are kept are of the whole trace and all of its threads.
  if (index.use && !AsksForAPart(options) && !options.thread && options.thread_name.empty()) {
    Indexer indexer(path, options, index, use);
    auto file = indexer.OpenOrBuild();
    for (int i = 0; i < 2 && file.ok() && *file != nullptr; ++i) {
      if (indexer.interrupted() != nullptr) return std::move(*indexer.interrupted());
      std::string series;
      AnalyzedTrace trace;
      if ((*file)->ReadSeries(&series) && DecodeTrace(series, &trace)) {
        trace.analysis.file = path;
        Note(file->get(), trace, use);
        use->used = true;
        return trace;
      }
      if (use->built || i > 0) break;
      file = indexer.Rebuild();
    }
    if (!file.ok()) return file.status();
  }
  return AnalyzeByIndex(path, options, index, use);
}

}  // namespace memtrace::report::index
