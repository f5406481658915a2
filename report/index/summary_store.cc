#include "report/index/summary_store.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_stamp.h"
#include "base/private_file.h"
#include "base/sealed_file.h"
#include "format/checksum.h"
#include "report/index/analysis_codec.h"
#include "report/state/packed_bytes.h"
#include "symbolizer/own_build.h"
#include "symbolizer/module_file.h"

namespace memtrace::report::index {
namespace {

using base::FileStamp;

constexpr base::PrivateKind kSummaryKind = {kSummarySuffix, "MTSUMM01"};

// All that the result depends on besides the trace. Empty: on something that
// cannot be written down.
std::string KeyOf(const AnalyzeOptions& options, const std::string& sysroot) {
  if (options.leak_observer || options.filter.sites || options.stacks != nullptr ||
      symbolizer::OwnBuildId().empty()) {
    return "";
  }
  PackedWriter key;
  key.Text(symbolizer::OwnBuildId());
  key.Number(options.range.from_ns);
  key.Number(options.range.to_ns);
  for (const auto& share : {options.from_share, options.to_share}) key.Real(share.value_or(-1));
  key.Text(options.from_name);
  key.Text(options.to_name);
  key.Number(options.thread.value);
  key.Text(options.thread_name);
  key.Number(options.keep_live_blocks ? 1 : 0);
  for (const ValueRange& range :
       {options.filter.sizes, options.filter.lifetimes, options.filter.ages}) {
    key.Number(range.low);
    key.Number(range.high);
    key.Number(range.asked ? 1 : 0);
  }
  key.Number(options.leaks.heuristics);
  key.Number(static_cast<uint64_t>(options.leaks.leader));
  key.Number(options.leaks.resolution.frames);
  for (const leak::CodeRange& range : options.leaks.resolution.operator_new) {
    for (const uint64_t number : {uint64_t{range.instance}, range.begin, range.end})
      key.Number(number);
  }
  key.Text(sysroot);
  return key.Take();
}

}  // namespace

absl::StatusOr<AnalyzedTrace> SummaryStore::Analyze(const std::string& path,
                                                    const AnalyzeOptions& options,
                                                    const std::string& sysroot,
                                                    const Complete& complete) {
  recalled_ = false;
  file_.clear();
  std::string file;
  TraceIdentity before;
  const std::string key = KeyOf(options, sysroot);
  if (!directory_.empty() && !key.empty()) {
    const auto identity = IdentifyTrace(path);
    if (!identity.ok()) return identity.status();
    before = *identity;
    if (before.bytes >= least_trace_bytes_) {
      const uint64_t parts[] = {before.trace_id, format::Checksum(key.data(), key.size())};
      file = absl::StrCat(directory_, "/",
                          absl::Hex(format::Checksum(parts, sizeof(parts)), absl::kZeroPad16),
                          kSummarySuffix);
      auto known = Recall(file, path, before);
      if (known.has_value()) {
        recalled_ = true;
        file_ = file;
        identity_ = before;
        return *std::move(known);
      }
    }
  }
  auto trace = AnalyzeByIndex(path, options, index_);
  if (!trace.ok()) return trace.status();
  if (complete) complete(&trace->analysis);
  if (!file.empty() && trace->analysis.process.end != ProcessInfo::End::kCut &&
      !trace->analysis.coverage.interrupted) {
    const auto after = IdentifyTrace(path);
    if (after.ok() && *after == before) {
      Keep(file, before, sysroot, *trace);
      file_ = file;
      identity_ = before;
    }
  }
  return trace;
}

std::optional<AnalyzedTrace> SummaryStore::Recall(const std::string& file, const std::string& trace,
                                                  const TraceIdentity& identity) const {
  std::string content;
  if (!base::ReadSealedFile(file, kSummaryKind.magic, &content)) return std::nullopt;
  PackedReader in(content);
  if (GetIdentity(&in) != identity) return std::nullopt;
  for (size_t stamps = in.Count(); stamps > 0; --stamps) {
    FileStamp stamp;
    stamp.path = std::string(in.Text());
    stamp.exists = in.Number() != 0;
    for (uint64_t* number : {&stamp.device, &stamp.inode, &stamp.bytes}) *number = in.Number();
    for (int64_t* time : {&stamp.modified_ns, &stamp.changed_ns}) *time = in.Signed();
    if (!in.ok() || FileStamp::Of(stamp.path) != stamp) return std::nullopt;
  }
  AnalyzedTrace known;
  if (!DecodeTrace(in.Text(), &known) || !in.ok()) return std::nullopt;
  known.analysis.file = trace;  // it may have been moved
  return known;
}

void SummaryStore::Keep(const std::string& file, const TraceIdentity& identity,
                        const std::string& sysroot, const AnalyzedTrace& trace) const {
  PackedWriter out;
  Put(identity, &out);
  std::set<std::string> paths;
  for (const ModuleInfo& module : trace.analysis.modules) {
    if (!module.path.starts_with("/")) continue;
    for (std::string& place : symbolizer::PlacesOf(sysroot, {module.path, module.build_id})) {
      paths.insert(std::move(place));
    }
  }
  out.Number(paths.size());
  for (const std::string& path : paths) {
    const FileStamp stamp = FileStamp::Of(path);
    out.Text(stamp.path);
    out.Number(stamp.exists ? 1 : 0);
    for (const uint64_t number : {stamp.device, stamp.inode, stamp.bytes}) out.Number(number);
    for (const int64_t time : {stamp.modified_ns, stamp.changed_ns}) out.Signed(time);
  }
  out.Text(EncodeTrace(trace));
  if (base::MakePrivateDirectory(directory_) &&
      base::WriteSealedFile(file, kSummaryKind.magic, out.bytes())) {
    base::TrimPrivateDirectory(directory_, kSummaryKind, kMostBytes, file);
  }
}

}  // namespace memtrace::report::index
