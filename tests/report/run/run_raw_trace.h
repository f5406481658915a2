// RawTrace: writes a raw trace as the library does, step by step, for tests of
// what follows one. PackedTrace: what is in a packed one, in memory.

#ifndef MEMTRACE_TESTS_REPORT_RUN_RUN_RAW_TRACE_H_
#define MEMTRACE_TESTS_REPORT_RUN_RUN_RAW_TRACE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "format/checksum.h"
#include "format/event_words.h"
#include "format/record_decoder.h"
#include "format/record_encoder.h"
#include "format/trace_format.h"
#include "report/trace/block_payload.h"
#include "report/trace/block_scanner.h"
#include "report/trace/byte_source.h"
#include "tests/temp_dir.h"

namespace memtrace::report {

// Names of all that is in the directory.
inline std::vector<std::string> FilesIn(const TempDir& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    files.push_back(std::filesystem::relative(entry.path(), directory.path()));
  }
  return files;
}

class RawTrace {
 public:
  RawTrace(const std::string& path, uint32_t pid, bool with_header = true) : path_(path) {
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    EXPECT_GE(fd_, 0) << path;
    header_ = {};
    memcpy(header_.magic, format::kFileMagic, sizeof(header_.magic));
    header_.version = format::kFormatVersion;
    header_.header_bytes = sizeof(header_);
    header_.trace_id = pid * 1000 + 7;
    header_.pid = pid;
    header_.header_checksum = format::HeaderChecksum(header_);
    if (with_header) WriteHeader();
  }
  ~RawTrace() { Close(); }

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void WriteHeader() { Write(0, &header_, sizeof(header_)); }

  // Space that a thread has reserved: the place of a block that Put...At() fills later.
  uint64_t Reserve(size_t payload_bytes) {
    const uint64_t offset = end_;
    end_ += AlignToBlock(sizeof(format::BlockHeader) + payload_bytes);
    return offset;
  }

  static std::vector<uint64_t> Mallocs(size_t count, uint64_t first_address) {
    std::vector<uint64_t> words;
    for (size_t i = 0; i < count; ++i) {
      words.push_back(format::Head(format::EventKind::kMalloc, first_address + i * 64));
      words.push_back(48);
    }
    return words;
  }

  void PutEventsAt(uint64_t offset, uint32_t thread, uint32_t sequence,
                   const std::vector<uint64_t>& words, uint32_t dropped = 0, uint32_t flags = 0) {
    format::BlockHeader header = {};
    header.flags = flags;
    header.kind = format::BlockKind::kEvents;
    header.thread = thread;
    header.sequence = sequence;
    header.dropped_events = dropped;
    PutAt(offset, header, words.data(), words.size() * sizeof(words[0]));
  }
  void AppendEvents(uint32_t thread, uint32_t sequence, const std::vector<uint64_t>& words,
                    uint32_t dropped = 0, uint32_t flags = 0) {
    PutEventsAt(Reserve(words.size() * sizeof(words[0])), thread, sequence, words, dropped, flags);
  }

  template <typename Fill>
  void AppendRecords(Fill fill) {
    uint8_t buffer[4096];
    format::RecordEncoder encoder(buffer, sizeof(buffer));
    fill(encoder);
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kMetadata;
    PutAt(Reserve(encoder.size()), header, encoder.data(), encoder.size());
  }
  void AppendNote(const std::string& text) {
    AppendRecords([&](format::RecordEncoder& e) {
      e.Begin(format::RecordTag::kNote);
      e.Bytes(text);
      e.End();
    });
  }
  // Of an exec whose failure is told by AppendExecFailed() with the same ticks.
  void AppendExec(uint64_t ticks) {
    AppendRecords([&](format::RecordEncoder& e) {
      e.Begin(format::RecordTag::kEnd);
      e.Number(static_cast<uint64_t>(format::EndReason::kExec));
      e.Number(0);
      e.Number(ticks);
      for (int i = 0; i < 5; ++i) e.Number(0);
      e.Number(1);
      e.End();
    });
  }
  void AppendExecFailed(uint64_t ticks) {
    AppendRecords([&](format::RecordEncoder& e) {
      e.Begin(format::RecordTag::kExecFailed);
      e.Number(ticks);
      e.End();
    });
  }
  void AppendEnd(format::EndReason reason) {
    AppendRecords([&](format::RecordEncoder& e) {
      e.Begin(format::RecordTag::kEnd);
      e.Number(static_cast<uint64_t>(reason));
      e.End();
    });
  }

  void AppendRing(uint32_t thread, uint32_t sequence, const std::vector<uint64_t>& words) {
    const uint64_t capacity = 16 << 10;
    const uint64_t offset = end_;
    format::BlockHeader header = {};
    header.magic = format::kBlockMagic;
    header.kind = format::BlockKind::kRing;
    header.thread = thread;
    header.payload_bytes = header.content_bytes =
        static_cast<uint32_t>(format::kRingAlignment + capacity - sizeof(header));
    header.header_checksum = format::HeaderChecksum(header);
    Write(offset, &header, sizeof(header));
    const uint64_t ring = (offset + sizeof(header) + format::kRingAlignment - 1) /
                          format::kRingAlignment * format::kRingAlignment;
    format::RingHeader ring_header = {};
    ring_header.magic = format::kRingMagic;
    ring_header.thread = thread;
    ring_header.sequence = sequence;
    ring_header.committed_bytes = static_cast<uint32_t>(words.size() * sizeof(words[0]));
    ring_header.capacity_bytes = static_cast<uint32_t>(capacity - sizeof(ring_header));
    Write(ring, &ring_header, sizeof(ring_header));
    Write(ring + sizeof(ring_header), words.data(), ring_header.committed_bytes);
    end_ = offset + format::kRingAlignment + capacity;
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(end_)), 0);
  }

  void Write(uint64_t offset, const void* data, size_t bytes) {
    ASSERT_EQ(pwrite(fd_, data, bytes, static_cast<off_t>(offset)), static_cast<ssize_t>(bytes));
  }

  const std::string& path() const { return path_; }
  uint64_t end() const { return end_; }

 private:
  void PutAt(uint64_t offset, format::BlockHeader header, const void* payload, size_t bytes) {
    header.magic = format::kBlockMagic;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(bytes);
    header.clock_ticks = ++clock_;
    header.monotonic_ns = clock_ * 1000;
    header.payload_checksum = format::Checksum(payload, bytes);
    header.header_checksum = format::HeaderChecksum(header);
    Write(offset, &header, sizeof(header));
    Write(offset + sizeof(header), payload, bytes);
  }

  std::string path_;
  int fd_ = -1;
  format::FileHeader header_;
  uint64_t end_ = sizeof(format::FileHeader);
  uint64_t clock_ = 0;
};

struct PackedTrace {
  bool packed = false;
  uint32_t pid = 0;
  std::map<uint32_t, std::vector<uint64_t>> events;  // by thread, without kTime words
  std::vector<std::string> notes;
  std::vector<uint64_t> observed_end;  // the fields of kObservedEnd
  std::vector<uint64_t> tags;          // of all records, kClockPairs left out
  uint64_t dropped = 0;
  uint64_t gaps = 0;                   // places where a block should be and is not

  static PackedTrace Read(const std::string& path) {
    PackedTrace trace;
    auto source = FileSource::Open(path);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return trace;
    format::FileHeader header;
    uint8_t* header_bytes = reinterpret_cast<uint8_t*>(&header);
    EXPECT_EQ((*source)->ReadAt(0, {header_bytes, sizeof(header)}).value_or(0), sizeof(header));
    trace.packed = (header.flags & format::kFilePacked) != 0;
    trace.pid = header.pid;
    BlockScanner scanner(source->get());
    BlockPayload payload;
    std::vector<uint8_t> content;
    uint64_t position = sizeof(header);
    while (position < (*source)->Size()) {
      ScannedBlock block;
      const auto state = scanner.At(position, &block);
      if (!state.ok() || *state != BlockState::kBlock ||
          !payload.Read(**source, block, &content).ok()) {
        ++trace.gaps;
        const auto next = scanner.Find(position + format::kBlockAlignment);
        if (!next.ok() || !next->has_value()) break;
        position = (*next)->offset;
        continue;
      }
      trace.Add(block.header, content);
      position = block.end();
    }
    return trace;
  }

 private:
  void Add(const format::BlockHeader& header, const std::vector<uint8_t>& content) {
    if (header.kind == format::BlockKind::kEvents) {
      dropped += header.dropped_events;
      std::vector<uint64_t> words(content.size() / 8);
      memcpy(words.data(), content.data(), words.size() * 8);
      for (size_t i = 0; i < words.size();) {
        const uint32_t length = format::EventWords(words[i]);
        ASSERT_GT(length, 0u);
        if (format::KindOf(words[i]) != format::EventKind::kTime) {
          events[header.thread].insert(events[header.thread].end(), &words[i], &words[i] + length);
        }
        i += length;
      }
      return;
    }
    format::RecordDecoder records(content.data(), content.size());
    while (records.Next()) {
      if (records.tag() == static_cast<uint64_t>(format::RecordTag::kClockPairs)) continue;
      tags.push_back(records.tag());
      if (records.tag() == static_cast<uint64_t>(format::RecordTag::kNote)) {
        notes.emplace_back(records.body().Bytes());
      }
      if (records.tag() == static_cast<uint64_t>(format::RecordTag::kObservedEnd)) {
        while (!records.body().at_end()) observed_end.push_back(records.body().Number());
      }
    }
  }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_RUN_RUN_RAW_TRACE_H_
