#include "report/suppress/suppress_records.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "report/leak/keep_paths.h"
#include "report/suppress/memcheck_stack.h"

namespace memtrace::report::suppress {
namespace {

void Take(uint64_t bytes, uint64_t blocks, LeakAmount* from) {
  from->bytes -= std::min(from->bytes, bytes);
  from->blocks -= std::min(from->blocks, blocks);
}

void Suppress(LossRecord* record, LeakScan* scan) {
  record->suppressed = true;
  ++scan->suppressed_records;
  scan->suppressed.bytes += record->bytes;
  scan->suppressed.blocks += record->blocks;
  Take(record->bytes, record->blocks, &scan->totals[static_cast<size_t>(record->kind)]);
}

// Which record of a scan each block is in.
class RecordOfBlock {
 public:
  RecordOfBlock(const leak::HeldScan& held, const StackTable& stacks,
                const leak::Resolution& resolution, LeakScan* scan)
      : held_(held), stacks_(stacks), resolution_(resolution) {
    for (LossRecord& record : scan->records) {
      std::vector<uint64_t> key =
          leak::StackKey(stacks, {record.stack, record.function}, resolution);
      key.push_back(static_cast<uint64_t>(record.kind));
      records_[std::move(key)] = &record;
    }
  }

  // nullptr: it is not counted.
  LossRecord* Of(uint32_t block) {
    const HeldBlock& held = held_.graph.blocks().block(block);
    if (held.has(HeldBlock::kUncounted) || held.has(HeldBlock::kIgnored)) return nullptr;
    const LeakKind kind = held_.marks.kind[block];
    const auto [at, is_new] = by_site_.try_emplace({held.site, kind}, nullptr);
    if (is_new) {
      std::vector<uint64_t> key = leak::StackKey(stacks_, held_.sites[held.site], resolution_);
      key.push_back(static_cast<uint64_t>(kind));
      const auto record = records_.find(key);
      if (record != records_.end()) at->second = record->second;
    }
    return at->second;
  }

 private:
  const leak::HeldScan& held_;
  const StackTable& stacks_;
  const leak::Resolution& resolution_;
  absl::flat_hash_map<std::vector<uint64_t>, LossRecord*> records_;
  absl::flat_hash_map<std::pair<uint32_t, LeakKind>, LossRecord*> by_site_;
};

}  // namespace

void SuppressRecords(const render::ReportView& view, Suppressions* suppressions, LeakScan* scan) {
  suppressions->ForgetMatches();
  for (LossRecord& record : scan->records) {
    if (record.blocks == 0) continue;
    const std::vector<const Frame*> frames = view.Frames(record.stack);
    Suppression* match =
        suppressions->Match(record.kind, AsMemcheckSees(record.function, frames));
    if (match == nullptr) continue;
    ++match->records;
    match->blocks += record.blocks;
    match->bytes += record.bytes;
    Suppress(&record, scan);
  }
}

bool RuntimesOwn::Has(const render::ReportView& view, StackId stack,
                      format::AllocFunction function) {
  const std::vector<const Frame*> frames = view.Frames(stack);
  return rules_.Match(LeakKind::kPossible, AsMemcheckSees(function, frames)) != nullptr;
}

void MarkOfRuntime(const render::ReportView& view, LeakScan* scan) {
  RuntimesOwn own;
  scan->of_runtime = {};
  for (LossRecord& record : scan->records) {
    record.of_runtime = false;
    if (record.kind != LeakKind::kPossible || record.blocks == 0 || record.suppressed) continue;
    if (!own.Has(view, record.stack, record.function)) continue;
    record.of_runtime = true;
    scan->of_runtime.bytes += record.bytes;
    scan->of_runtime.blocks += record.blocks;
  }
}

void SuppressWhatTheyLeadTo(const leak::HeldScan& held, const StackTable& stacks,
                            const leak::Resolution& resolution, LeakScan* scan) {
  RecordOfBlock records(held, stacks, resolution, scan);
  const uint32_t count = held.graph.size();
  const auto kind = [&](uint32_t block) { return held.marks.kind[block]; };
  std::vector<bool> met(count);
  std::vector<uint32_t> stack;
  for (uint32_t block = 0; block < count; ++block) {
    const LossRecord* record = records.Of(block);
    if (record == nullptr || !record->suppressed || kind(block) == LeakKind::kReachable) continue;
    met[block] = true;
    stack.push_back(block);
  }
  std::vector<uint32_t> gone;
  while (!stack.empty()) {
    const uint32_t block = stack.back();
    stack.pop_back();
    for (const leak::HeapEdge& edge : held.graph.EdgesOf(block)) {
      if (met[edge.to] || kind(edge.to) == LeakKind::kReachable) continue;
      met[edge.to] = true;
      stack.push_back(edge.to);
      gone.push_back(edge.to);
    }
  }
  const std::vector<uint32_t> leaders = leak::FinalLeaders(held.marks);
  for (const uint32_t block : gone) {
    LossRecord* const record = records.Of(block);
    if (record == nullptr || record->suppressed) continue;
    const uint64_t bytes = held.graph.blocks().bytes(block);
    record->bytes -= std::min(record->bytes, bytes);
    record->blocks -= std::min<uint64_t>(record->blocks, 1);
    Take(bytes, 1, &scan->totals[static_cast<size_t>(record->kind)]);
    scan->suppressed.bytes += bytes;
    ++scan->suppressed.blocks;
    // An indirectly lost block is taken off its leader, if that stays.
    LossRecord* const leader =
        kind(block) == LeakKind::kIndirect ? records.Of(leaders[block]) : nullptr;
    if (leader == nullptr || met[leaders[block]]) continue;
    leader->indirect_bytes -= std::min(leader->indirect_bytes, bytes);
    leader->indirect_blocks -= std::min<uint64_t>(leader->indirect_blocks, 1);
  }
  // With a leader that goes, what hung on it is no other's.
  for (const uint32_t block : gone) {
    LossRecord* const record = records.Of(block);
    if (record == nullptr || record->suppressed || kind(block) != LeakKind::kDefinite) continue;
    const LeakAmount& hung = held.marks.indirect[block];
    record->indirect_bytes -= std::min(record->indirect_bytes, hung.bytes);
    record->indirect_blocks -= std::min(record->indirect_blocks, hung.blocks);
  }
}

std::vector<UsedSuppression> Used(const Suppressions& suppressions) {
  std::vector<UsedSuppression> used;
  for (const Suppression& each : suppressions.all()) {
    // Built in, or of no leak.
    if (each.records == 0 && (each.file.empty() || each.of_frees)) continue;
    used.push_back({each.name, each.file, each.line, each.records, {each.bytes, each.blocks}});
  }
  return used;
}

}  // namespace memtrace::report::suppress
