#include "report/model/memory_map.h"

#include <algorithm>
#include "report/base/page.h"

namespace memtrace::report {
namespace {

bool IsPrivateWritable(const MapLine& line) {
  return line.permissions[1] == 'w' && line.permissions[3] == 'p';
}

// Of MapSums::anonymous_bytes.
bool IsAnonymousMemory(const MapLine& line) {
  return IsPrivateWritable(line) && line.anonymous() && line.name != "[heap]" &&
         !line.name.starts_with("[stack");
}

// Address space only: a guard page, or what a heap of an arena has not used yet.
bool IsReserved(const MapLine& line) {
  return line.anonymous() && line.permissions == "---p" && line.name.empty();
}

// Whether lines[at] is what is used of a heap, and the rest of it is reserved by the line behind.
bool HasReserve(const std::vector<MapLine>& lines, size_t at) {
  if (at + 1 >= lines.size()) return false;
  const MapLine& behind = lines[at + 1];
  return IsReserved(behind) && behind.begin == lines[at].end && behind.end % kArenaBytes == 0;
}

// glibc maps a heap of an arena at a multiple of its size, and what is not used of it is reserved.
// A heap that is used up has nothing behind it, and is known by the reserve of the heap before. A
// stack that begins at such a place has a guard page of its own there, with no heap before it.
bool IsArenaHeap(const std::vector<MapLine>& lines, size_t at) {
  const auto begins_heap = [&lines](size_t line) {
    return IsAnonymousMemory(lines[line]) && lines[line].begin % kArenaBytes == 0;
  };
  if (!begins_heap(at)) return false;
  return HasReserve(lines, at) || (at > 1 && begins_heap(at - 2) && HasReserve(lines, at - 2));
}

}  // namespace

// The rings are shared and writable, as few files are that a program maps.
bool IsTraceMapping(const MapLine& line) {
  return line.name.find(".mtr") != std::string_view::npos && line.permissions == "rw-s";
}

bool IsGuarded(const std::vector<MapLine>& lines, size_t at) {
  return at > 0 && IsReserved(lines[at - 1]) && lines[at - 1].end == lines[at].begin &&
         !IsArenaHeap(lines, at);
}

MapSums SumUpMap(std::string_view text) {
  MapSums sums;
  const std::vector<MapLine> lines = LinesOf(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const uint64_t bytes = lines[i].end - lines[i].begin;
    if (IsTraceMapping(lines[i])) {
      sums.trace_bytes += bytes;
    } else if (lines[i].name == "[heap]") {
      sums.heap_bytes += bytes;
    } else if (IsAnonymousMemory(lines[i])) {
      sums.anonymous_bytes += bytes;
      if (IsGuarded(lines, i)) sums.thread_stack_bytes += bytes;
    }
  }
  return sums;
}

uint64_t AnonymousBytesIn(std::string_view text, uint64_t begin, uint64_t end) {
  uint64_t bytes = 0;
  ForEachMapLine(text, [&](const MapLine& line) {
    const uint64_t from = std::max(begin, line.begin), to = std::min(end, line.end);
    if (IsAnonymousMemory(line) && from < to) bytes += to - from;
  });
  return bytes;
}

bool HasPrivateMemoryOf(std::string_view text, uint64_t bytes) {
  bool found = false;
  ForEachMapLine(text, [&](const MapLine& line) {
    const uint64_t size = line.end - line.begin;
    found |= line.anonymous() && line.permissions[3] == 'p' && line.name != "[heap]" &&
             !line.name.starts_with("[stack") && size >= bytes &&
             !(IsReserved(line) && size < kArenaBytes);
  });
  return found;
}

OtherParts::OtherParts(std::string_view map) {
  ForEachMapLine(map, [&](const MapLine& line) {
    const bool shared = line.name == "/dev/zero (deleted)";
    if (shared || (line.anonymous() && !IsPrivateWritable(line))) {
      parts_.emplace_back(line.begin, line.end);
    }
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

void ExplainMemoryMap(const TraceMetadata& metadata, MemoryMapSummary* summary) {
  if (!metadata.map_at_start.has_value() || !metadata.map_at_end.has_value()) return;
  const MapSums start = SumUpMap(metadata.map_at_start->text);
  const MapSums end = SumUpMap(metadata.map_at_end->text);
  summary->known = true;
  summary->heap_at_start_bytes = start.heap_bytes;
  summary->heap_bytes = end.heap_bytes;
  // The tracer's own private memory is in the map like the program's, in whole pages.
  const auto tool_bytes = [](const MapRecord& map, const MapSums& sums) {
    return std::min(WholePages(map.tool_bytes), sums.anonymous_bytes);
  };
  const uint64_t start_tool = tool_bytes(*metadata.map_at_start, start);
  const uint64_t end_tool = tool_bytes(*metadata.map_at_end, end);
  summary->anonymous_at_start_bytes = start.anonymous_bytes - start_tool;
  summary->anonymous_bytes = end.anonymous_bytes - end_tool;
  summary->thread_stack_bytes = end.thread_stack_bytes;
  summary->tool_bytes = end_tool + end.trace_bytes;
  // Unsigned, which wraps: a damaged map may say anything.
  const uint64_t heap =
      end.heap_bytes - start.heap_bytes - WholePages(summary->heap_growth_seen_bytes);
  const uint64_t stacks = end.thread_stack_bytes - start.thread_stack_bytes;
  const uint64_t anonymous = summary->anonymous_bytes - summary->anonymous_at_start_bytes -
                             summary->mapped_blocks_bytes - summary->arena_bytes - stacks -
                             summary->program_mmap_bytes + summary->program_mmap_at_start_bytes;
  summary->unexplained_bytes = static_cast<int64_t>(heap + anonymous);
}

}  // namespace memtrace::report
