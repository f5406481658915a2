#include "report/model/mapping_model.h"

#include <algorithm>
#include <utility>

#include "report/base/page.h"
#include "report/findings/analysis.h"
#include "report/model/memory_map.h"

namespace memtrace::report {
namespace {

constexpr uint64_t kAddressEnd = uint64_t{1} << 56;

}  // namespace

uint32_t MappingModel::SiteOf(const Call& call) {
  // Mappings outside the selection are followed, and belong to no site.
  if (!call.counted) return UINT32_MAX;
  const uint64_t key = uint64_t{call.stack.value} << 8 | static_cast<uint64_t>(call.kind);
  const auto [at, added] = site_index_.try_emplace({key, std::string(call.file)},
                                                   static_cast<uint32_t>(sites_.size()));
  if (added) {
    MappingSite site;
    site.kind = call.kind;
    site.stack = call.stack;
    site.file = std::string(call.file);
    sites_.push_back(std::move(site));
  }
  return at->second;
}

void MappingModel::Insert(uint64_t begin, const Range& range) {
  if (begin >= range.end || range.end > kAddressEnd) return;
  Erase(begin, range.end, nullptr);
  ranges_[begin] = range;
  if (range.site != UINT32_MAX) sites_[range.site].live_bytes += range.end - begin;
}

void MappingModel::Erase(uint64_t begin, uint64_t end,
                         std::vector<std::pair<uint64_t, Range>>* taken) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin()) --at;
  while (at != ranges_.end() && at->first < end) {
    const uint64_t its_begin = at->first;
    const Range range = at->second;
    if (range.end <= begin) {
      ++at;
      continue;
    }
    const uint64_t cut_begin = std::max(begin, its_begin), cut_end = std::min(end, range.end);
    at = ranges_.erase(at);
    if (its_begin < cut_begin) {
      ranges_[its_begin] = range;
      ranges_[its_begin].end = cut_begin;
    }
    if (cut_end < range.end) ranges_[cut_end] = range;
    if (range.site != UINT32_MAX) sites_[range.site].live_bytes -= cut_end - cut_begin;
    if (taken != nullptr) {
      taken->push_back({cut_begin, range});
      taken->back().second.end = cut_end;
    }
    at = ranges_.lower_bound(cut_end);
  }
}

const MappingSite* MappingModel::Find(uint64_t address) const {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const Range& range = std::prev(after)->second;
  return address < range.end && range.site != UINT32_MAX ? &sites_[range.site] : nullptr;
}

MappingModel::Stretch MappingModel::At(uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  if (after != ranges_.begin()) {
    const Range& range = std::prev(after)->second;
    if (address < range.end) {
      return {range.site != UINT32_MAX ? &sites_[range.site] : nullptr, range.end};
    }
  }
  return {nullptr, after != ranges_.end() ? after->first : UINT64_MAX};
}

void MappingModel::Map(uint64_t address, uint64_t length, const Call& call) {
  if (length == 0 || length > kAddressEnd || address > kAddressEnd) return;
  const uint32_t site = SiteOf(call);
  if (site != UINT32_MAX) {
    ++sites_[site].calls;
    sites_[site].bytes += length;
  }
  Insert(address, {address + length, site, call.anonymous, call.kind});
}

void MappingModel::Unmap(size_t stream, uint64_t address, uint64_t length) {
  auto& taken = last_unmapped_[stream];
  taken.clear();
  if (length > kAddressEnd || address > kAddressEnd) return;
  Erase(address, address + WholePages(length), &taken);
}

void MappingModel::UnmapFailed(size_t stream, uint64_t address) {
  auto& taken = last_unmapped_[stream];
  for (const auto& [begin, range] : taken) {
    if (begin >= address) Insert(begin, range);
  }
  taken.clear();
}

void MappingModel::Remap(size_t stream, const Move& move, const Call& call) {
  if (std::max({move.old_address, move.old_length, move.new_address, move.new_length}) >
      kAddressEnd) {
    return;
  }
  // With an old length of 0, mremap makes a second mapping of memory that others see as well.
  if (move.keeps_old || move.old_length == 0) {
    const auto after = ranges_.upper_bound(move.old_address);
    Call second = call;
    if (after != ranges_.begin() && std::prev(after)->second.end > move.old_address) {
      second.anonymous = std::prev(after)->second.anonymous;
    }
    return Map(move.new_address, move.new_length, second);
  }
  const uint64_t old_end = move.old_address + WholePages(move.old_length);
  std::vector<std::pair<uint64_t, Range>> moved;
  if (move.was_unmapped) {
    moved.swap(last_unmapped_[stream]);
    // A handler may have come between the two halves and unmapped something else.
    std::erase_if(moved, [&](const auto& piece) {
      return piece.first < move.old_address || piece.second.end > old_end;
    });
  } else {
    Erase(move.old_address, old_end, &moved);
  }
  // Its owner stays the site that mapped it; what it grew by belongs to the mremap.
  uint64_t kept = std::min(move.old_length, move.new_length);
  bool anonymous = call.anonymous;
  if (!moved.empty()) {
    Range owner = moved.front().second;
    anonymous = owner.anonymous;
    owner.end = move.new_address + kept;
    Insert(move.new_address, owner);
  } else {
    kept = 0;
  }
  if (move.new_length > kept) {
    Call grown = call;
    grown.anonymous = anonymous;
    Map(move.new_address + kept, move.new_length - kept, grown);
  }
}

void MappingModel::Break(uint64_t old_break, uint64_t new_break, const Call& call) {
  if (std::max(old_break, new_break) > kAddressEnd) return;
  break_growth_ += new_break - old_break;
  if (new_break > old_break) {
    Map(old_break, new_break - old_break, call);
  } else {
    Erase(new_break, old_break, nullptr);
  }
}

void MappingModel::Arena(uint64_t base, uint64_t bytes, const Call& call) {
  if (std::max(base, bytes) > kAddressEnd) return;
  // The bytes that the heap has beyond its last range were added just now; if it ends before that
  // range does, it was trimmed.
  uint64_t end = base;
  for (auto at = ranges_.find(base); at != ranges_.end() && at->first == end; ++at) {
    if (at->second.kind != Kind::kArenaGrowth) break;
    end = at->second.end;
  }
  if (base + bytes > end) {
    Map(end, base + bytes - end, call);
  } else {
    Erase(base + bytes, end, nullptr);
  }
}

void MappingModel::Detach(size_t stream, uint64_t address) {
  auto& taken = last_unmapped_[stream];
  taken.clear();
  const auto at = ranges_.find(address);
  if (at != ranges_.end()) Erase(address, at->second.end, &taken);
}

void MappingModel::Finish(std::string_view map_at_end, Analysis* analysis) const {
  MemoryMapSummary& summary = analysis->memory_map;
  summary.heap_growth_seen_bytes = static_cast<int64_t>(break_growth_) > 0 ? break_growth_ : 0;
  const OtherParts other(map_at_end);
  uint64_t counted_to = 0;  // a range may end within a page, and what it grew by begin there
  for (const auto& [begin, range] : ranges_) {
    if (range.site == UINT32_MAX) continue;
    const Kind kind = sites_[range.site].kind;
    if (kind == Kind::kArenaGrowth) summary.arena_bytes += range.end - begin;
    if (kind != Kind::kMmap || !range.anonymous) continue;
    const uint64_t from = std::max(begin, std::exchange(counted_to, WholePages(range.end)));
    if (from >= counted_to) continue;
    const uint64_t other_bytes = other.BytesIn(from, counted_to);
    summary.program_other_mmap_bytes += other_bytes;
    summary.program_mmap_bytes += counted_to - from - other_bytes;
  }
  analysis->mappings.insert(analysis->mappings.end(), sites_.begin(), sites_.end());
}

}  // namespace memtrace::report
