// BlockPayload: reads the payload of a block, checks it and decodes it. One
// object is used for many blocks and keeps its buffers.

#ifndef MEMTRACE_REPORT_TRACE_BLOCK_PAYLOAD_H_
#define MEMTRACE_REPORT_TRACE_BLOCK_PAYLOAD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "report/trace/block_scanner.h"
#include "report/trace/event_columns.h"

struct ZSTD_DCtx_s;

namespace memtrace::report {

class BlockPayload {
 public:
  BlockPayload() = default;
  ~BlockPayload();
  BlockPayload(const BlockPayload&) = delete;
  BlockPayload& operator=(const BlockPayload&) = delete;

  // Replaces `*content` by the decoded payload. DataLoss: the payload is cut, fails
  // its checksum or does not decode; Unimplemented: an unknown codec. The message
  // names the byte offset. Not for kRing blocks, whose payload has no checksum.
  absl::Status Read(const ByteSource& source, const ScannedBlock& block,
                    std::vector<uint8_t>* content);
  // The same of events, as whole words.
  absl::Status ReadWords(const ByteSource& source, const ScannedBlock& block,
                         std::vector<uint64_t>* words);
  // The time stamps in what ReadWords() gave last, as EventColumns::stamps(). Empty: not known.
  std::span<const EventColumns::Stamp> stamps() { return columns_.stamps(); }
  void ForgetStamps() { columns_.stamps().clear(); }

 private:
  // `Content` is a vector of bytes or of words.
  template <typename Content>
  absl::Status ReadInto(const ByteSource& source, const ScannedBlock& block, Content* content);
  bool DecodeColumns(std::span<const uint8_t> payload, std::span<uint64_t> words);

  std::vector<uint8_t> compressed_;
  EventColumns columns_;
  ZSTD_DCtx_s* zstd_ = nullptr;
};

// The last events of a thread, which were still in its ring: the content of a kRing block.
struct RingRemains {
  format::RingHeader header;
  std::vector<uint8_t> events;  // whole words

  std::vector<uint64_t> Words() const;
};

// Reads a kRing block; `remains->events` is empty when the ring holds nothing. With `events`
// false it reads only the header.
absl::Status ReadRing(const ByteSource& source, const ScannedBlock& block, bool events,
                      RingRemains* remains);
// The same, of a process that may live, and begin to fill the ring anew while it is read: then it
// is read again. What is of no one number even so has no events.
absl::Status ReadSteadyRing(const ByteSource& source, const ScannedBlock& block,
                            RingRemains* remains);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_BLOCK_PAYLOAD_H_
