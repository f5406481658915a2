#include "preload/leak_scan/scan_writer.h"

#include "preload/clock.h"
#include "preload/leak_scan/scan_job.h"
#include "preload/process.h"
#include "preload/sys.h"

namespace memtrace {

constinit std::atomic<uint32_t>* ScanWriter::blocks_ = nullptr;

void ScanWriter::Flush() {
  if (encoder_.size() == 0) return;
  // An orphan has nobody to scan for.
  if (parent_ != 0 && sys::Getppid() != parent_) {
    for (;;) sys::Call(SYS_exit_group, 0);
  }
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMemoryScan;
  header.thread = number_;
  header.sequence = blocks_->fetch_add(1) + 1;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(encoder_.size());
  if (!failed_ && !g_process.file.Append(header, encoder_.data())) {
    failed_ = true;
    g_process.file.NoteLostScan(number_);
  }
  encoder_.Clear();
}

void WriteFailedScan(uint32_t number, format::ScanReason reason, std::string_view label,
                     format::ScanShow show, uint64_t ticks, std::string_view why) {
  uint8_t buffer[1024];
  format::RecordEncoder out(buffer, sizeof(buffer));
  out.Begin(static_cast<format::RecordTag>(format::ScanTag::kBegin));
  out.Number(static_cast<uint64_t>(reason));
  out.Number(ticks);
  out.Number(g_clock.MonotonicNs());
  const OtherCalls calls;
  out.Number(calls ? static_cast<uint64_t>(sys::Gettid()) : 0);
  out.Bytes(First(label, 255));
  out.Number(static_cast<uint64_t>(show));
  out.Number(0);
  out.Number(0);
  out.Number(0);
  out.Bytes("");
  out.End();
  out.Begin(static_cast<format::RecordTag>(format::ScanTag::kFailed));
  out.Bytes(why);
  out.End();
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMemoryScan;
  header.thread = number;
  header.sequence = 1;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(out.size());
  if (!g_process.file.Append(header, buffer)) g_process.file.NoteLostScan(number);
}

}  // namespace memtrace
