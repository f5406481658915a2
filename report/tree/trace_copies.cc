#include "report/tree/trace_copies.h"

#include <string>
#include <utility>
#include <vector>

#include "report/trace/byte_source.h"
#include "report/trace/file_header.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

// More is better, the first number before the second.
std::pair<bool, uint64_t> FullnessOf(const std::string& path) {
  const auto reader = TraceReader::Open(path);
  if (!reader.ok()) return {false, 0};
  const TraceMetadata& metadata = (*reader)->metadata();
  return {metadata.end.has_value() || metadata.observed_end.has_value(),
          (*reader)->statistics().event_content_bytes};
}

}  // namespace

absl::flat_hash_map<uint64_t, size_t> FullestCopies(const TraceSet& set) {
  absl::flat_hash_map<uint64_t, std::vector<size_t>> files_of;
  for (size_t i = 0; i < set.files.size(); ++i) {
    const auto source = FileSource::Open(set.files[i].path);
    if (!source.ok()) continue;
    if (const auto header = ReadFileHeader(**source); header.ok()) {
      files_of[header->trace_id].push_back(i);
    }
  }
  absl::flat_hash_map<uint64_t, size_t> fullest;
  for (const auto& [trace_id, files] : files_of) {
    fullest[trace_id] = files.front();
    if (files.size() == 1) continue;
    std::pair<bool, uint64_t> most = FullnessOf(set.files[files.front()].path);
    for (size_t i = 1; i < files.size(); ++i) {
      const auto its = FullnessOf(set.files[files[i]].path);
      if (its <= most) continue;
      most = its;
      fullest[trace_id] = files[i];
    }
  }
  return fullest;
}

}  // namespace memtrace::report
