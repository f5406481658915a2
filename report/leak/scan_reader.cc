#include "report/leak/scan_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/varint.h"
#include "report/trace/record_text.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report::leak {
namespace {

using format::RecordBody;
using format::ScanTag;

constexpr uint64_t kMostRegisters = 512;

ScanBegin ReadBegin(RecordBody& body) {
  ScanBegin begin;
  begin.reason = static_cast<format::ScanReason>(body.Number());
  begin.ticks = body.Number();
  begin.monotonic_ns = body.Number();
  begin.tid = static_cast<uint32_t>(body.Number());
  begin.label = RecordText(body);
  begin.show = static_cast<format::ScanShow>(body.Number());
  begin.stood_ns = body.Number();
  begin.fork_ns = body.Number();
  begin.scanner_pid = static_cast<uint32_t>(body.Number());
  begin.note = RecordText(body);
  return begin;
}

ScanThread ReadThread(RecordBody& body) {
  ScanThread thread;
  thread.tid = static_cast<uint32_t>(body.Number());
  thread.serial = static_cast<uint32_t>(body.Number());
  thread.state = static_cast<format::ScanThreadState>(body.Number());
  thread.stack_pointer = body.Number();
  thread.stack_begin = body.Number();
  thread.stack_end = body.Number();
  const uint64_t registers = body.Number();
  for (uint64_t i = 0; i < registers && i < kMostRegisters && !body.at_end(); ++i) {
    thread.registers.push_back(body.Number());
  }
  thread.signal_stack_begin = body.Number();
  thread.signal_stack_end = body.Number();
  thread.thread_pointer = body.Number();
  return thread;
}

ScanRegion ReadRegion(RecordBody& body) {
  ScanRegion region;
  region.number = static_cast<uint32_t>(body.Number());
  region.kind = static_cast<format::ScanRegionKind>(body.Number());
  region.use = static_cast<format::ScanRegionUse>(body.Number());
  region.start = body.Number();
  region.end = body.Number();
  body.Number();  // protection
  region.thread = body.Number();
  region.path = RecordText(body);
  body.Number();  // bytes that were read
  body.Number();  // bytes of no page, or of one that was never written
  region.bytes_failed = body.Number();
  return region;
}

void ReadWords(RecordBody& body, Scan* scan, ScanVisitor* visitor) {
  const ScanRegion* region = scan->FindRegion(body.Number());
  uint64_t address = body.Number();
  uint64_t value = body.Number();
  if (region == nullptr) {
    if (scan->damage.empty()) scan->damage = "words of a region that it does not tell of";
    return;
  }
  for (;;) {
    ++scan->words;
    if (visitor != nullptr) visitor->Word(*region, address, value);
    if (body.at_end()) return;
    address += body.Number() * 8;
    if (body.at_end()) return;  // half a pair
    value += format::UnZigZag(body.Number());
  }
}

void ReadTargets(RecordBody& body, ScanVisitor* visitor) {
  if (visitor == nullptr) return;
  Target target;
  while (!body.at_end()) {
    target.address += body.Number();
    target.at_minus_8 = body.Number();
    target.has_more = body.Number() == 1;
    target.at_minus_24 = target.has_more ? body.Number() : 0;
    target.at_minus_16 = target.has_more ? body.Number() : 0;
    visitor->OnTarget(target);
  }
}

void ReadVtables(RecordBody& body, ScanVisitor* visitor) {
  if (visitor == nullptr) return;
  for (uint64_t address = 0; !body.at_end();) {
    address += body.Number();
    visitor->OnVtable(address);
  }
}

ScanDone ReadDone(RecordBody& body) {
  ScanDone done;
  for (uint64_t* field : {&done.root_bytes, &done.territory_bytes, &done.skipped_bytes,
                          &done.failed_bytes, &done.cpu_ns, &done.elapsed_ns}) {
    *field = body.Number();
  }
  return done;
}

}  // namespace

bool ReadScanRecords(std::span<const uint8_t> content, Scan* scan, ScanVisitor* visitor) {
  format::RecordDecoder decoder(content.data(), content.size());
  while (decoder.Next()) {
    RecordBody& body = decoder.body();
    switch (static_cast<ScanTag>(decoder.tag())) {
      case ScanTag::kBegin:
        if (std::exchange(scan->has_begin, true)) break;
        scan->begin = ReadBegin(body);
        break;
      case ScanTag::kThread:
        scan->threads.push_back(ReadThread(body));
        break;
      case ScanTag::kRegion: {
        ScanRegion region = ReadRegion(body);
        scan->region_index.try_emplace(region.number, scan->regions.size());
        scan->regions.push_back(std::move(region));
        break;
      }
      case ScanTag::kWords:
        ReadWords(body, scan, visitor);
        break;
      case ScanTag::kTargets:
        ReadTargets(body, visitor);
        break;
      case ScanTag::kVtables:
        ReadVtables(body, visitor);
        break;
      case ScanTag::kHint: {
        ScanHintRange hint;
        hint.kind = static_cast<format::ScanHint>(body.Number());
        hint.start = body.Number();
        hint.end = body.Number();
        scan->hints.push_back(hint);
        break;
      }
      case ScanTag::kDone:
        scan->done = ReadDone(body);
        break;
      case ScanTag::kFailed:
        scan->failure = RecordText(body);
        if (scan->failure.empty()) scan->failure = "no reason was written";
        break;
    }
  }
  return decoder.ok();
}

Scan ReadScan(TraceReader& reader, uint32_t number, ScanVisitor* visitor, bool only_begin) {
  Scan scan;
  scan.number = number;
  std::vector<uint8_t> content;
  uint32_t next = 1;
  // By scan and sequence: a program may have asked for thousands.
  const auto& blocks = reader.scan_blocks();
  auto at =
      std::lower_bound(blocks.begin(), blocks.end(), number,
                       [](const ScanBlockRef& block, uint32_t scan) { return block.scan < scan; });
  for (; at != blocks.end() && at->scan == number; ++at) {
    const ScanBlockRef& block = *at;
    if (block.sequence < next) continue;  // twice in the file
    if (block.sequence != next) {
      scan.damage = absl::StrCat("its block ", next, " is not in the trace");
      break;
    }
    ++next;
    if (!reader.ReadScanBlock(block, &content)) {
      scan.damage = "a block of it is damaged";
      break;
    }
    if (!ReadScanRecords(content, &scan, visitor)) {
      scan.damage = "a record of it is longer than its block";
      break;
    }
    // Vtables have a writer of their own, whose block may come first.
    if (only_begin && scan.has_begin) break;
  }
  return scan;
}

std::vector<uint32_t> ScanNumbers(const TraceReader& reader) {
  std::vector<uint32_t> numbers;
  for (const ScanBlockRef& block : reader.scan_blocks()) {
    if (numbers.empty() || numbers.back() != block.scan) numbers.push_back(block.scan);
  }
  return numbers;
}

}  // namespace memtrace::report::leak
