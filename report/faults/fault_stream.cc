#include "report/faults/fault_stream.h"

#include <algorithm>

#include "format/record_decoder.h"
#include "format/varint.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

using format::FaultTag;
using format::RecordBody;

constexpr size_t kMostOwnChanges = 1 << 20;
constexpr size_t kLongestSentence = 1000;

bool Later(const Fault& a, const Fault& b) { return a.time_ns > b.time_ns; }

FaultUsage ReadUsage(RecordBody& body) {
  FaultUsage usage;
  usage.ns = body.Number();
  usage.minor = body.Number();
  usage.major = body.Number();
  return usage;
}

}  // namespace

FaultStream::FaultStream(TraceReader* reader) : reader_(reader) {
  ReadLog();
  Refill();
}

void FaultStream::ReadLog() {
  const uint64_t start = reader_->metadata().start_monotonic_ns;
  std::vector<uint8_t> content;
  for (const FaultBlockRef& block : reader_->fault_blocks()) {
    if (!reader_->ReadFaultBlock(block, &content)) continue;
    format::RecordDecoder decoder(content.data(), content.size());
    while (decoder.Next()) {
      RecordBody& body = decoder.body();
      switch (static_cast<FaultTag>(decoder.tag())) {
        case FaultTag::kSource:
          log_.known = true;
          log_.source = static_cast<format::FaultSource>(body.Number());
          log_.at_start = log_.latest = ReadUsage(body);
          body.Number();  // errno
          log_.why = std::string(body.Bytes().substr(0, kLongestSentence));
          log_.rings = body.Number();
          log_.ring_bytes = body.Number();
          log_.ns_per_fault = body.Number();
          break;
        case FaultTag::kUsage:
          log_.latest = ReadUsage(body);
          break;
        case FaultTag::kOwnMemory: {
          OwnChange change;
          change.ns = body.Number();
          change.begin = body.Number();
          change.end = body.Number();
          change.came = body.Number() != 0;
          if (own_changes_.size() < kMostOwnChanges) own_changes_.push_back(change);
          break;
        }
        case FaultTag::kLost: {
          const uint64_t lost = body.Number(), ns = body.Number();
          if (lost == 0) break;
          log_.lost += lost;
          log_.last_lost_ns =
              std::max(log_.last_lost_ns, ns == 0 ? UINT64_MAX : ns - std::min(ns, start));
          break;
        }
        default:
          break;
      }
    }
  }
  for (OwnChange& change : own_changes_) change.ns -= std::min(change.ns, start);
  std::stable_sort(own_changes_.begin(), own_changes_.end(),
                   [](const OwnChange& a, const OwnChange& b) { return a.ns < b.ns; });
}

bool FaultStream::FrontIsOwn() {
  const Fault& fault = held_.front();
  for (; next_change_ < own_changes_.size() && own_changes_[next_change_].ns <= fault.time_ns;
       ++next_change_) {
    const OwnChange& change = own_changes_[next_change_];
    if (change.came) {
      own_now_[change.begin] = change.end;
    } else {
      own_now_.erase(change.begin);
    }
  }
  auto after = own_now_.upper_bound(fault.address);
  return after != own_now_.begin() && fault.address < std::prev(after)->second;
}

// The faults of one block.
void FaultStream::ReadFaults(const std::vector<uint8_t>& content) {
  const uint64_t start = reader_->metadata().start_monotonic_ns;
  format::RecordDecoder decoder(content.data(), content.size());
  while (decoder.Next()) {
    if (static_cast<FaultTag>(decoder.tag()) != FaultTag::kFaults) continue;
    RecordBody& body = decoder.body();
    const uint64_t until = body.Number();
    if (until > start) until_ns_ = std::max(until_ns_, until - start);
    uint64_t ns = 0, tid = 0, address = 0, pc = 0;
    while (!body.at_end()) {
      const uint64_t word = body.Number();
      ns += format::UnZigZag(word >> 2);
      tid += format::UnZigZag(body.Number());
      address += format::UnZigZag(body.Number());
      pc += format::UnZigZag(body.Number());
      if (ns < log_.at_start.ns) continue;  // of `before`
      held_.push_back({ns > start ? ns - start : 0, address, pc, static_cast<uint32_t>(tid),
                       (word & format::kFaultMajor) != 0, (word & format::kFaultInKernel) != 0});
      std::push_heap(held_.begin(), held_.end(), Later);
    }
  }
}

// Until the earliest that is held may go.
void FaultStream::Refill() {
  std::vector<uint8_t> content;
  const auto& blocks = reader_->fault_blocks();
  while (next_block_ < blocks.size() && held_.size() < kMostHeld &&
         (held_.empty() || held_.front().time_ns > until_ns_)) {
    if (reader_->ReadFaultBlock(blocks[next_block_++], &content)) ReadFaults(content);
  }
}

void FaultStream::Pop() {
  std::pop_heap(held_.begin(), held_.end(), Later);
  held_.pop_back();
  if (held_.empty() || held_.front().time_ns > until_ns_) Refill();
}

}  // namespace memtrace::report
