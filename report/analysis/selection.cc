#include "report/analysis/selection.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/analysis/instant.h"
#include "report/model/phases.h"
#include "report/trace/event_decoder.h"

namespace memtrace::report {
namespace {

constexpr size_t kNamesInMessage = 20;

// Every name that each thread ever had.
std::map<uint32_t, std::set<std::string>> ReadNames(TraceReader& reader) {
  std::map<uint32_t, std::set<std::string>> names;
  for (const auto& [serial, record] : reader.metadata().threads) {
    names[serial].insert(record.names.begin(), record.names.end());
  }
  std::vector<uint64_t> words;
  for (const ThreadStream& stream : reader.streams()) {
    names[stream.thread];
    for (const BlockRef& block : stream.blocks) {
      if (!reader.ReadEvents(stream, block, &words)) continue;
      for (size_t i = 0; i < words.size();) {
        const uint32_t n = format::EventWords(words[i]);
        if (n == 0 || n > words.size() - i) break;
        const ExtendedEvent event(words.data() + i, n);
        if (format::KindOf(words[i]) == format::EventKind::kExtended &&
            event.type() == format::ExtendedType::kThreadName) {
          names[stream.thread].insert(std::string(event.text(1)));
        }
        i += n;
      }
    }
  }
  return names;
}

absl::Status SelectByName(TraceReader& reader, const std::string& wanted,
                          absl::flat_hash_set<uint32_t>* threads) {
  std::set<std::string> known;
  for (const auto& [serial, names] : ReadNames(reader)) {
    const auto record = reader.metadata().threads.find(serial);
    const std::string tid =
        record != reader.metadata().threads.end() ? absl::StrCat(record->second.tid) : "";
    if (names.contains(wanted) || tid == wanted) threads->insert(serial);
    known.insert(names.begin(), names.end());
    if (names.empty() && !tid.empty()) known.insert(tid);
  }
  known.erase("");
  if (!threads->empty()) return absl::OkStatus();
  std::vector<std::string> some(known.begin(), known.end());
  const bool more = some.size() > kNamesInMessage;
  if (more) some.resize(kNamesInMessage);
  return absl::NotFoundError(absl::StrCat(reader.name(), " has no thread '", wanted,
                                          "'; its threads are: ", absl::StrJoin(some, ", "),
                                          more ? " and others" : ""));
}

}  // namespace

absl::StatusOr<Selection> Select(TraceReader& reader, const AnalyzeOptions& options) {
  Selection selection;
  selection.range = options.range;
  if (options.from_share.has_value()) {
    selection.range.from_ns = Instant{.share = options.from_share}.Ns(reader);
  }
  if (options.to_share.has_value()) {
    selection.range.to_ns = Instant{.share = options.to_share}.EndNs(reader);
  }
  for (const bool end : {false, true}) {
    const std::string& name = end ? options.to_name : options.from_name;
    if (name.empty()) continue;
    const auto found = FindInstant(reader, name, end);
    if (!found.ok()) return found.status();
    (end ? selection.range.to_ns : selection.range.from_ns) = *found;
  }
  const uint64_t live = reader.live_until_ns();
  std::optional<uint64_t> end;
  if (reader.metadata().end.has_value()) {
    end = std::max(reader.clock().LastNs(), reader.clock().ToNs(reader.metadata().end->ticks));
  }
  if (selection.range.from_ns > 0) {
    const uint64_t last = end.has_value() ? *end
                          : live != 0     ? live
                                          : Instant{.share = 1.0}.Ns(reader);
    if (selection.range.from_ns > last) {
      const double s = static_cast<double>(last) / 1e9;
      return absl::InvalidArgumentError(
          end.has_value()
              ? absl::StrFormat("--from lies behind the end of %s, which ran for %.6f s",
                                reader.name(), s)
          : live != 0
              ? absl::StrFormat("--from lies behind what %s has so far, %.6f s", reader.name(), s)
              : absl::StrFormat("--from lies behind the last event of %s, at %.6f s", reader.name(),
                                s));
    }
  }
  if (end.has_value() && selection.range.to_ns > *end) selection.range.to_ns = UINT64_MAX;
  if (live != 0) selection.range.to_ns = std::min(selection.range.to_ns, live);
  selection.range.from_ns = std::max(selection.range.from_ns, reader.window_begin_ns());
  if (reader.window_begin_ns() != 0 && selection.range.to_ns <= reader.window_begin_ns()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s has only what was since %.6f s: it is of a flight recorder", reader.name(),
        static_cast<double>(reader.window_begin_ns()) / 1e9));
  }
  if (selection.range.from_ns > selection.range.to_ns) {
    return absl::InvalidArgumentError("the range ends before it begins");
  }
  if (options.thread) selection.threads.insert(options.thread.value);
  if (!options.thread_name.empty()) {
    absl::Status status = SelectByName(reader, options.thread_name, &selection.threads);
    if (!status.ok()) return status;
  }
  return selection;
}

}  // namespace memtrace::report
