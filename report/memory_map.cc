#include "report/memory_map.h"

#include <algorithm>
#include <charconv>

namespace memtrace::report {
namespace {

std::string_view TakeWord(std::string_view* line) {
  const size_t end = std::min(line->find(' '), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  line->remove_prefix(std::min(line->find_first_not_of(' '), line->size()));
  return word;
}

bool ParseHex(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool ParseMapLine(std::string_view text, MapLine* line) {
  const std::string_view range = TakeWord(&text);
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos || !ParseHex(range.substr(0, dash), &line->begin) ||
      !ParseHex(range.substr(dash + 1), &line->end) || line->end < line->begin) {
    return false;
  }
  line->permissions = TakeWord(&text);
  TakeWord(&text);  // offset
  TakeWord(&text);  // device
  line->anonymous = TakeWord(&text) == "0";
  line->name = text;
  return line->permissions.size() == 4;
}

// The rings are shared and writable, as few files are that a program maps.
bool IsTraceMapping(const MapLine& line) {
  return line.name.find(".mtr") != std::string_view::npos && line.permissions == "rw-s";
}

// A heap of an arena is mapped at a multiple of 64 MiB and guarded behind.
bool IsGuarded(const MapLine& before, const MapLine& line) {
  return before.end == line.begin && before.permissions == "---p" && before.anonymous &&
         before.name.empty() && line.begin % (uint64_t{64} << 20) != 0;
}

MapSums SumUpMap(std::string_view text) {
  MapSums sums;
  MapLine before;
  ForEachMapLine(text, [&](const MapLine& line) {
    const uint64_t bytes = line.end - line.begin;
    const bool writable = line.permissions[1] == 'w' && line.permissions[3] == 'p';
    if (IsTraceMapping(line)) {
      sums.trace_bytes += bytes;
    } else if (line.name == "[heap]") {
      sums.heap_bytes += bytes;
    } else if (writable && line.anonymous && !line.name.starts_with("[stack")) {
      sums.anonymous_bytes += bytes;
      if (IsGuarded(before, line)) sums.thread_stack_bytes += bytes;
    }
    before = line;
  });
  return sums;
}

OtherParts::OtherParts(std::string_view map) {
  ForEachMapLine(map, [&](const MapLine& line) {
    const bool writable = line.permissions[1] == 'w' && line.permissions[3] == 'p';
    const bool shared = line.name == "/dev/zero (deleted)";
    if (shared || (line.anonymous && !writable)) parts_.emplace_back(line.begin, line.end);
  });
  // Makes the parts ascending, and none within another, even if the map is damaged.
  std::sort(parts_.begin(), parts_.end());
  uint64_t covered = 0;
  std::erase_if(parts_, [&covered](auto& part) {
    part.first = std::max(part.first, covered);
    covered = std::max(covered, part.second);
    return part.first >= part.second;
  });
}

uint64_t OtherParts::BytesIn(uint64_t begin, uint64_t end) const {
  uint64_t bytes = 0;
  auto at =
      std::upper_bound(parts_.begin(), parts_.end(), begin,
                       [](uint64_t address, const auto& part) { return address < part.second; });
  for (; at != parts_.end() && at->first < end; ++at) {
    bytes += std::min(end, at->second) - std::max(begin, at->first);
  }
  return std::min(bytes, end - begin);
}

bool MapHasAnonymous(std::string_view text, uint64_t begin, uint64_t end) {
  while (!text.empty()) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    MapLine line;
    if (ParseMapLine(text.substr(0, line_end), &line) && line.anonymous && line.begin <= begin &&
        end <= line.end) {
      return true;
    }
    text.remove_prefix(std::min(line_end + 1, text.size()));
  }
  return false;
}

void ExplainMemoryMap(const TraceMetadata& metadata, MemoryMapSummary* summary) {
  if (!metadata.map_at_start.has_value() || !metadata.map_at_end.has_value()) return;
  const MapSums start = SumUpMap(metadata.map_at_start->text);
  const MapSums end = SumUpMap(metadata.map_at_end->text);
  summary->known = true;
  summary->heap_at_start_bytes = start.heap_bytes;
  summary->heap_bytes = end.heap_bytes;
  // The tracer's own private memory is in the map like the program's.
  const uint64_t start_tool = std::min(metadata.map_at_start->tool_bytes, start.anonymous_bytes);
  const uint64_t end_tool = std::min(metadata.map_at_end->tool_bytes, end.anonymous_bytes);
  summary->anonymous_at_start_bytes = start.anonymous_bytes - start_tool;
  summary->anonymous_bytes = end.anonymous_bytes - end_tool;
  summary->thread_stack_bytes = end.thread_stack_bytes;
  summary->tool_bytes = end_tool + end.trace_bytes;
  // Unsigned, which wraps: a damaged map may say anything.
  const uint64_t heap = end.heap_bytes - start.heap_bytes - summary->heap_growth_seen_bytes;
  const uint64_t stacks = end.thread_stack_bytes - start.thread_stack_bytes;
  const uint64_t anonymous = summary->anonymous_bytes - summary->anonymous_at_start_bytes -
                             summary->mapped_blocks_bytes - summary->arena_bytes - stacks -
                             summary->program_mmap_bytes + summary->program_mmap_at_start_bytes;
  summary->unexplained_bytes = static_cast<int64_t>(heap + anonymous);
}

}  // namespace memtrace::report
