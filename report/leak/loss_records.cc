#include "report/leak/loss_records.h"

#include <algorithm>
#include <tuple>

namespace memtrace::report::leak {

namespace {

bool IsIn(const std::vector<CodeRange>& ranges, const StackNode& node) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const CodeRange& range) {
    // A return address may be the first behind its function.
    return node.instance == range.instance && node.pc > range.begin && node.pc <= range.end;
  });
}

}  // namespace

std::vector<uint64_t> StackKey(const StackTable& stacks, const BlockSite& site,
                               const Resolution& resolution) {
  std::vector<uint64_t> key = {static_cast<uint64_t>(site.function)};
  StackId id = site.stack;
  if (resolution.frames == 0) {
    key.push_back(id.value);
    return key;
  }
  while (id && IsIn(resolution.operator_new, stacks.node(id))) id = stacks.node(id).parent;
  // The function is the innermost frame.
  for (size_t i = 1; i < resolution.frames && id; ++i, id = stacks.node(id).parent) {
    key.push_back(stacks.node(id).pc);
    key.push_back(stacks.node(id).instance);
  }
  return key;
}

uint32_t LossRecords::GroupOf(const BlockSite& site) {
  const auto [at, is_new] = by_stack_.try_emplace({site.stack.value, site.function},
                                                  static_cast<uint32_t>(groups_.size()));
  if (!is_new) return at->second;
  if (resolution_.frames != 0) {
    const auto [known, first] = by_frames_.try_emplace(StackKey(*stacks_, site, resolution_),
                                                       static_cast<uint32_t>(groups_.size()));
    at->second = known->second;
    if (!first) return known->second;
  }
  groups_.push_back({site.stack, site.function});
  return at->second;
}

void LossRecords::Fill(const HeapGraph& graph, const Marks& marks,
                       const std::vector<BlockSite>& sites, LeakScan* scan) {
  absl::flat_hash_map<uint64_t, LossRecord> records;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const HeldBlock& block = graph.blocks().block(i);
    if (block.has(HeldBlock::kUncounted)) continue;
    const LeakKind kind = marks.kind[i];
    const uint64_t bytes = block.size();
    if (block.has(HeldBlock::kIgnored)) {
      scan->ignored.bytes += bytes;
      ++scan->ignored.blocks;
      continue;
    }
    LeakAmount& total = scan->totals[static_cast<size_t>(kind)];
    total.bytes += bytes;
    ++total.blocks;
    const uint32_t group = GroupOf(sites[block.site]);
    const auto [at, is_new] =
        records.try_emplace(uint64_t{group} << 3 | static_cast<uint64_t>(kind));
    LossRecord& record = at->second;
    if (is_new) {
      record.kind = kind;
      record.stack = groups_[group].stack;
      record.function = groups_[group].function;
      record.first_time_ns = block.time_ns;
    }
    record.bytes += bytes;
    ++record.blocks;
    record.first_time_ns = std::min(record.first_time_ns, block.time_ns);
    record.last_time_ns = std::max(record.last_time_ns, block.time_ns);
    if (kind == LeakKind::kDefinite) {
      record.indirect_bytes += marks.indirect[i].bytes;
      record.indirect_blocks += marks.indirect[i].blocks;
    } else if (kind == LeakKind::kReachable && marks.heuristic[i] != Pointer::kStart) {
      ++record.heuristic_blocks;
      LeakAmount& by = scan->by_heuristic[static_cast<size_t>(marks.heuristic[i])];
      by.bytes += bytes;
      ++by.blocks;
    }
  }

  absl::flat_hash_map<uint64_t, Amounts> now;
  for (auto& [key, record] : records) {
    const auto before = before_.find(key);
    if (before != before_.end()) {
      record.before = before->second.direct;
      record.indirect_before = before->second.indirect;
    }
    record.is_new = record.before.blocks == 0;
    now[key] = {{record.bytes, record.blocks}, {record.indirect_bytes, record.indirect_blocks}};
    scan->records.push_back(record);
  }
  // A record that is gone is told once, where changes were asked for.
  if (scan->show == format::ScanShow::kChanged) {
    for (const auto& [key, amounts] : before_) {
      if (records.contains(key)) continue;
      LossRecord& record = scan->records.emplace_back();
      record.kind = static_cast<LeakKind>(key & 7);
      record.stack = groups_[key >> 3].stack;
      record.function = groups_[key >> 3].function;
      record.before = amounts.direct;
      record.indirect_before = amounts.indirect;
    }
  }
  before_ = std::move(now);
  // memcheck's order: by all bytes, the worse kind last, by blocks. Then, so that a trace
  // has one order, by stack.
  std::sort(scan->records.begin(), scan->records.end(),
            [](const LossRecord& a, const LossRecord& b) {
              return std::tuple(a.bytes + a.indirect_bytes, b.kind, a.blocks, a.stack, a.function) <
                     std::tuple(b.bytes + b.indirect_bytes, a.kind, b.blocks, b.stack, b.function);
            });
}

bool IsShown(const LossRecord& record, format::ScanShow show) {
  switch (show) {
    case format::ScanShow::kNew:
      return record.before.blocks == 0 && record.blocks != 0;
    case format::ScanShow::kIncreased:
      return record.bytes > record.before.bytes || record.blocks > record.before.blocks ||
             record.indirect_bytes > record.indirect_before.bytes;
    case format::ScanShow::kChanged:
      return record.bytes != record.before.bytes || record.blocks != record.before.blocks ||
             record.indirect_bytes != record.indirect_before.bytes;
    case format::ScanShow::kAny:
      break;
  }
  return record.blocks != 0;
}

}  // namespace memtrace::report::leak
