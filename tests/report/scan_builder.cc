#include "tests/report/scan_builder.h"

#include "format/varint.h"

namespace memtrace::report {

using format::ScanTag;

namespace {

void Append(std::string* out, uint64_t value) {
  uint8_t buffer[format::kMaxVarintBytes];
  out->append(reinterpret_cast<const char*>(buffer),
              static_cast<size_t>(format::PutVarint(buffer, value) - buffer));
}

}  // namespace

void ScanBuilder::Number(uint64_t value) { Append(&body_, value); }

void ScanBuilder::Text(std::string_view text) {
  Number(text.size());
  body_ += text;
}

void ScanBuilder::End(ScanTag tag) {
  Append(&payload_, static_cast<uint64_t>(tag));
  Append(&payload_, body_.size());
  payload_ += body_;
  body_.clear();
}

ScanBuilder::ScanBuilder(uint32_t number, uint64_t ticks, format::ScanReason reason,
                         format::ScanShow show, std::string_view label)
    : number_(number) {
  Number(static_cast<uint64_t>(reason));
  Number(ticks);
  Number(ticks);
  Number(4242);
  Text(label);
  Number(static_cast<uint64_t>(show));
  Number(100'000);
  Number(200'000);
  Number(4300);
  Text("");
  End(ScanTag::kBegin);
}

uint32_t ScanBuilder::Region(format::ScanRegionKind kind, format::ScanRegionUse use,
                             uint64_t start, uint64_t end, std::string_view path,
                             uint64_t thread) {
  Number(++regions_);
  Number(static_cast<uint64_t>(kind));
  Number(static_cast<uint64_t>(use));
  Number(start);
  Number(end);
  Number(3);
  Number(thread);
  Text(path);
  Number(end - start);
  Number(0);
  Number(0);
  End(ScanTag::kRegion);
  return regions_;
}

ScanBuilder& ScanBuilder::Word(uint32_t region, uint64_t address, uint64_t value) {
  return Words(region, {{address, value}});
}

ScanBuilder& ScanBuilder::Words(uint32_t region, const std::vector<At>& words) {
  if (words.empty()) return *this;
  Number(region);
  Number(words[0].address);
  Number(words[0].value);
  for (size_t i = 1; i < words.size(); ++i) {
    Number((words[i].address - words[i - 1].address) / 8);
    Number(format::ZigZag(words[i].value - words[i - 1].value));
  }
  End(ScanTag::kWords);
  return *this;
}

ScanBuilder& ScanBuilder::Thread(uint32_t tid, uint32_t serial, format::ScanThreadState state,
                                 const std::vector<uint64_t>& registers) {
  Number(tid);
  Number(serial);
  Number(static_cast<uint64_t>(state));
  for (const uint64_t number : {0x7ffc0000, 0x7ffc0000, 0x7ffc1000}) Number(number);
  Number(registers.size());
  for (const uint64_t value : registers) Number(value);
  Number(0);
  Number(0);
  End(ScanTag::kThread);
  return *this;
}

ScanBuilder& ScanBuilder::Target(uint64_t address, uint64_t at_minus_8) {
  Number(address);
  Number(at_minus_8);
  Number(0);
  End(ScanTag::kTargets);
  return *this;
}

ScanBuilder& ScanBuilder::Target(uint64_t address, uint64_t at_minus_24, uint64_t at_minus_16,
                                 uint64_t at_minus_8) {
  for (const uint64_t number : {address, at_minus_8, uint64_t{1}, at_minus_24, at_minus_16}) {
    Number(number);
  }
  End(ScanTag::kTargets);
  return *this;
}

ScanBuilder& ScanBuilder::Vtable(uint64_t address) {
  Number(address);
  End(ScanTag::kVtables);
  return *this;
}

ScanBuilder& ScanBuilder::Hint(format::ScanHint kind, uint64_t start, uint64_t end) {
  Number(static_cast<uint64_t>(kind));
  Number(start);
  Number(end);
  End(ScanTag::kHint);
  return *this;
}

ScanBuilder& ScanBuilder::Done() {
  for (const uint64_t number : {4096, 8192, 0, 0, 1000, 2000}) Number(number);
  End(ScanTag::kDone);
  return *this;
}

ScanBuilder& ScanBuilder::Failed(std::string_view why) {
  Text(why);
  End(ScanTag::kFailed);
  return *this;
}

ScanBuilder& ScanBuilder::Raw(uint64_t tag, const std::vector<uint64_t>& numbers) {
  for (const uint64_t number : numbers) Number(number);
  End(static_cast<ScanTag>(tag));
  return *this;
}

void ScanBuilder::AddTo(TraceBuilder* trace) {
  format::BlockHeader header{};
  header.kind = format::BlockKind::kMemoryScan;
  header.thread = number_;
  header.sequence = sequence++;
  header.clock_ticks = trace->TicksAt(0);
  header.monotonic_ns = TraceBuilder::kStartNs;
  trace->Block(header, payload_);
  payload_.clear();
}

}  // namespace memtrace::report
