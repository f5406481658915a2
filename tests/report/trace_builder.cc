#include "tests/report/trace_builder.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "format/checksum.h"
#include "format/word_codec.h"

namespace memtrace::report {

using format::EventKind;
using format::ExtendedType;
using format::RecordTag;

ThreadScript& ThreadScript::Word(uint64_t word) {
  words_.push_back(word);
  return *this;
}

ThreadScript& ThreadScript::At(uint64_t time_ns) {
  trace_->latest_ns_ = std::max(trace_->latest_ns_, time_ns);
  if (words_.empty()) begun_ns_ = time_ns;
  return Word(format::TimeWord(trace_->TicksAt(time_ns)));
}

ThreadScript& ThreadScript::Node(uint32_t slot, uint64_t pc, uint32_t parent, uint32_t instance) {
  Word(format::PathHead(parent, slot, 1));
  return Word(format::NodeWord(pc, instance));
}

uint32_t ThreadScript::Stack(std::initializer_list<uint64_t> pcs) {
  uint32_t parent = 0;
  for (const uint64_t pc : pcs) {
    Node(next_slot_, pc, parent);
    parent = next_slot_++;
  }
  return parent;
}

ThreadScript& ThreadScript::Short(EventKind kind, uint64_t address, uint32_t size, uint32_t slot,
                                  uint32_t waste) {
  Word(format::Head(kind, address, waste));
  return Word(size | static_cast<uint64_t>(slot) << 32);
}

ThreadScript& ThreadScript::Malloc(uint64_t address, uint32_t size, uint32_t slot,
                                   uint32_t waste) {
  return Short(EventKind::kMalloc, address, size, slot, waste);
}

ThreadScript& ThreadScript::Calloc(uint64_t address, uint32_t size, uint32_t slot,
                                   uint32_t waste) {
  return Short(EventKind::kCalloc, address, size, slot, waste);
}

ThreadScript& ThreadScript::Wide(format::AllocFunction function, uint64_t address,
                                 uint64_t requested, uint64_t usable, uint32_t slot,
                                 uint32_t alignment_log2, uint8_t flags) {
  Word(format::Head(EventKind::kWideAlloc, address, static_cast<uint32_t>(function)));
  Word(slot | static_cast<uint64_t>(alignment_log2) << 32 | static_cast<uint64_t>(flags) << 40);
  Word(requested);
  return Word(usable);
}

ThreadScript& ThreadScript::Free(uint64_t address) {
  return Word(format::Head(EventKind::kFree, address));
}

ThreadScript& ThreadScript::FreeWithStack(uint64_t address, uint32_t slot) {
  Word(format::Head(EventKind::kFree, address, 1));
  return Word(slot);
}

ThreadScript& ThreadScript::Realloc(uint64_t old_address, uint64_t address, uint32_t size,
                                    uint32_t slot, uint32_t waste) {
  return ReallocIntent(old_address).ReallocResult(address, size, slot, waste);
}

ThreadScript& ThreadScript::ReallocIntent(uint64_t old_address) {
  return Word(format::Head(EventKind::kReallocIntent, old_address));
}

ThreadScript& ThreadScript::ReallocResult(uint64_t address, uint32_t size, uint32_t slot,
                                          uint32_t waste) {
  return Short(EventKind::kRealloc, address, size, slot, waste);
}

ThreadScript& ThreadScript::Extended(ExtendedType type, const std::vector<uint64_t>& words,
                                     std::string_view text) {
  const size_t text_words = (text.size() + 7) / 8;
  Word(format::ExtendedHead(type, static_cast<uint32_t>(words.size() + text_words)));
  words_.insert(words_.end(), words.begin(), words.end());
  for (size_t i = 0; i < text_words; ++i) {
    uint64_t word = 0;
    const std::string_view part = text.substr(i * 8, 8);
    memcpy(&word, part.data(), part.size());
    Word(word);
  }
  return *this;
}

ThreadScript& ThreadScript::Mmap(uint64_t address, uint64_t length, uint32_t slot,
                                 std::string_view file) {
  const uint64_t flags = file.empty() ? 0x22 : 0x02;  // MAP_PRIVATE, MAP_ANONYMOUS
  const uint64_t fd = file.empty() ? UINT32_MAX : 3;
  return Extended(ExtendedType::kMmap,
                  {address, length, 3 | flags << 32, fd | static_cast<uint64_t>(slot) << 32, 0},
                  file);
}

ThreadScript& ThreadScript::Munmap(uint64_t address, uint64_t length, uint32_t slot) {
  return Extended(ExtendedType::kMunmap, {address, length, slot});
}

ThreadScript& ThreadScript::MunmapFailed(uint64_t address, uint64_t length) {
  return Extended(ExtendedType::kMunmapFailed, {address, length});
}

ThreadScript& ThreadScript::Mremap(uint64_t old_address, uint64_t old_length, uint64_t new_address,
                                   uint64_t new_length, uint32_t slot, uint32_t flags,
                                   bool told) {
  std::vector<uint64_t> words = {old_address, old_length, new_address, new_length,
                                 flags | static_cast<uint64_t>(slot) << 32};
  if (told) words.push_back(1);  // absent in older traces
  return Extended(ExtendedType::kMremap, words);
}

ThreadScript& ThreadScript::Brk(uint64_t old_break, uint64_t new_break, uint32_t slot) {
  return Extended(ExtendedType::kBrk, {old_break, new_break, slot});
}

ThreadScript& ThreadScript::HeapGrowth(uint64_t old_break, uint64_t new_break, uint32_t slot) {
  return Extended(ExtendedType::kHeapGrowth, {old_break, new_break, slot});
}

ThreadScript& ThreadScript::ArenaGrowth(uint64_t base, uint64_t bytes, uint32_t slot) {
  return Extended(ExtendedType::kArenaGrowth, {base, bytes, slot});
}

ThreadScript& ThreadScript::Shmat(uint64_t address, uint64_t length, int shmid, uint32_t slot) {
  return Extended(ExtendedType::kShmat, {address, length, static_cast<uint32_t>(shmid), slot});
}

ThreadScript& ThreadScript::Shmdt(uint64_t address, uint32_t slot) {
  return Extended(ExtendedType::kShmdt, {address, slot});
}

ThreadScript& ThreadScript::Usage(uint64_t minor, uint64_t major, uint64_t rss,
                                  uint64_t tool_minor) {
  return Extended(ExtendedType::kUsage, {minor, major, rss, rss, tool_minor, 0});
}

ThreadScript& ThreadScript::Name(std::string_view name) {
  return Extended(ExtendedType::kThreadName, {}, name);
}

ThreadScript& ThreadScript::Dropped(uint32_t events) {
  dropped_ = events;
  return *this;
}

ThreadScript& ThreadScript::SkipBlocks(uint32_t blocks) {
  sequence_ += blocks;
  return *this;
}

ThreadScript& ThreadScript::Flush(uint64_t time_ns) {
  if (words_.empty() && dropped_ == 0) return *this;
  if (time_ns == 0) time_ns = trace_->latest_ns_;
  trace_->latest_ns_ = std::max(trace_->latest_ns_, time_ns);
  trace_->FlushRecords();
  format::BlockHeader header = trace_->HeaderAt(format::BlockKind::kEvents, time_ns);
  header.thread = serial_;
  header.sequence = ++sequence_;
  header.dropped_events = dropped_;
  header.flags = flags_;
  trace_->Block(header, {reinterpret_cast<const char*>(words_.data()), words_.size() * 8});
  words_.clear();
  dropped_ = flags_ = 0;
  begun_ns_ = time_ns;
  return *this;
}

ThreadScript& ThreadScript::Early() {
  flags_ = format::kBlockEarly;
  return *this;
}

ThreadScript& ThreadScript::LeaveInRing(uint32_t committed_bytes, uint64_t late_ns) {
  trace_->FlushRecords();
  format::RingHeader ring{};
  ring.magic = format::kRingMagic;
  ring.thread = serial_;
  ring.sequence = sequence_ + 1;
  ring.capacity_bytes = static_cast<uint32_t>(words_.size() * 8 + 1024);
  ring.committed_bytes = committed_bytes != UINT32_MAX ? committed_bytes
                                                       : static_cast<uint32_t>(words_.size() * 8);
  ring.dropped_events = dropped_;
  ring.clock_ticks = trace_->TicksAt(begun_ns_);
  ring.monotonic_ns = TraceBuilder::kStartNs + begun_ns_;
  // The area begins at a multiple of 4096 of the file, not of the payload.
  const size_t payload_at = trace_->bytes_.size() + sizeof(format::BlockHeader);
  std::string payload(-payload_at & (format::kRingAlignment - 1), '\0');
  payload.append(reinterpret_cast<const char*>(&ring), sizeof(ring));
  payload.append(reinterpret_cast<const char*>(words_.data()), words_.size() * 8);
  payload.append(1024, '\0');
  format::BlockHeader header =
      trace_->HeaderAt(format::BlockKind::kRing, begun_ns_ - (late_ns != 0 ? 1 : 0));
  header.monotonic_ns += late_ns;
  trace_->Block(header, payload);
  words_.clear();
  ++sequence_;
  return *this;
}

TraceBuilder::TraceBuilder(const Options& options) : options_(options) {
  format::FileHeader header{};
  memcpy(header.magic, format::kFileMagic, sizeof(header.magic));
  header.version = format::kFormatVersion;
  header.header_bytes = sizeof(header);
  header.trace_id = options.trace_id;
  header.pid = options.pid;
  header.flags = options.file_flags;
  header.header_checksum = format::HeaderChecksum(header);
  bytes_.assign(reinterpret_cast<const char*>(&header), sizeof(header));
  if (!options.process_record) return;
  Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kProcess);
    r.Bytes("0.1.0");
    r.Bytes(options.executable);
    r.Bytes("\x01\x02\xab");
    r.Number(options.command.size());
    for (const std::string& argument : options.command) r.Bytes(argument);
    r.Number(options.start_realtime_ns);
    r.Number(kStartNs);
    r.Number(kStartTicks);
    r.Number(static_cast<uint64_t>(options.clock));
    r.Number(options.ticks_per_us * 1'000'000);
    r.Number(options.page_bytes);
    r.Number(1);
    r.Number(0);
    r.Bytes("6.1.0");
    r.Bytes("host");
    r.Bytes("/home/user");
    r.Number(static_cast<uint64_t>(options.allocator));
    r.Number(static_cast<uint64_t>(options.stack_mode));
    r.Number(options.sample_bytes);
    if (options.stamp_rule != format::StampRule::kUnknown) {
      r.Number(static_cast<uint64_t>(options.stamp_rule));
    }
    r.End();
  });
}

ThreadScript& TraceBuilder::Thread(uint32_t serial, uint32_t tid, std::string_view name,
                                   uint64_t first_ns) {
  for (ThreadScript& thread : threads_) {
    if (thread.serial() == serial) return thread;
  }
  if (tid != 0) {
    Record([&](format::RecordEncoder& r) {
      r.Begin(RecordTag::kThread);
      r.Number(serial);
      r.Number(tid);
      r.Number(TicksAt(first_ns));
      r.Bytes(name);
      r.End();
    });
  }
  return threads_.emplace_back(this, serial);
}

TraceBuilder& TraceBuilder::Record(const std::function<void(format::RecordEncoder&)>& fill) {
  std::vector<uint8_t> buffer(1 << 20);
  format::RecordEncoder encoder(buffer.data(), buffer.size());
  fill(encoder);
  records_.append(reinterpret_cast<const char*>(encoder.data()), encoder.size());
  return *this;
}

TraceBuilder& TraceBuilder::Module(uint32_t instance, uint32_t flags, uint64_t start, uint64_t end,
                                   uint64_t bias, std::string_view path,
                                   std::string_view build_id, uint64_t time_ns) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kModule);
    r.Number(instance);
    r.Number(flags);
    r.Number(start);
    r.Number(end);
    r.Number(bias);
    r.Bytes(path);
    r.Bytes(build_id);
    r.Number(TicksAt(time_ns));
    r.Bytes("");
    r.End();
  });
}

TraceBuilder& TraceBuilder::ModuleUnload(uint32_t instance, uint64_t time_ns) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kModuleUnload);
    r.Number(instance);
    r.Number(TicksAt(time_ns));
    r.End();
  });
}

TraceBuilder& TraceBuilder::MemoryMap(format::MapReason reason, std::string_view text,
                                      uint64_t time_ns, uint64_t tool_bytes) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kMemoryMap);
    r.Number(static_cast<uint64_t>(reason));
    r.Number(TicksAt(time_ns));
    r.Bytes(text);
    if (tool_bytes != 0) r.Number(tool_bytes);
    r.End();
  });
}

TraceBuilder& TraceBuilder::End(int exit_status, uint64_t time_ns, format::EndReason reason, bool doubtful) {
  latest_ns_ = std::max(latest_ns_, time_ns);
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kEnd);
    r.Number(static_cast<uint64_t>(reason));
    r.Number(static_cast<uint64_t>(exit_status));
    r.Number(TicksAt(time_ns));
    r.Number(kStartNs + time_ns);
    r.Number(300);
    r.Number(2);
    r.Number(5 << 20);
    if (doubtful) r.Number(1);
    r.End();
  });
}

TraceBuilder& TraceBuilder::ExecBegins(uint64_t time_ns) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kEnd);
    r.Number(static_cast<uint64_t>(format::EndReason::kExec));
    r.Number(0);
    r.Number(TicksAt(time_ns));
    r.Number(kStartNs + time_ns);
    for (int i = 0; i < 4; ++i) r.Number(0);
    r.Number(1);
    r.End();
  });
}

TraceBuilder& TraceBuilder::ExecFailed(uint64_t begin_ns) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kExecFailed);
    r.Number(TicksAt(begin_ns));
    r.End();
  });
}

TraceBuilder& TraceBuilder::ObservedEnd(format::ObservedEndKind kind, int status_or_signal,
                                        uint64_t time_ns) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kObservedEnd);
    r.Number(static_cast<uint64_t>(kind));
    r.Number(static_cast<uint64_t>(status_or_signal));
    if (time_ns != 0) r.Number(options_.start_realtime_ns + time_ns);
    r.End();
  });
}

TraceBuilder& TraceBuilder::Counter(std::string_view name, uint64_t value) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kCounter);
    r.Bytes(name);
    r.Number(value);
    r.End();
  });
}

TraceBuilder& TraceBuilder::Note(std::string_view text) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kNote);
    r.Bytes(text);
    r.End();
  });
}

TraceBuilder& TraceBuilder::Stopped(format::RecordingStop why, int error, uint64_t time_ns) {
  return Record([&](format::RecordEncoder& r) {
    r.Begin(RecordTag::kRecordingStopped);
    r.Number(static_cast<uint64_t>(why));
    r.Number(TicksAt(time_ns));
    r.Number(static_cast<uint64_t>(error));
    r.End();
  });
}

format::BlockHeader TraceBuilder::HeaderAt(format::BlockKind kind, uint64_t time_ns) const {
  format::BlockHeader header{};
  header.kind = kind;
  header.clock_ticks = TicksAt(time_ns);
  header.monotonic_ns = kStartNs + time_ns;
  return header;
}

TraceBuilder& TraceBuilder::Status(format::StatusArea area) {
  area.magic = format::kStatusMagic;
  area.bytes = sizeof(area);
  FlushRecords();
  return Block(HeaderAt(format::BlockKind::kStatus, 0),
               {reinterpret_cast<const char*>(&area), sizeof(area)});
}

TraceBuilder& TraceBuilder::Block(format::BlockHeader header, std::string_view payload) {
  header.magic = format::kBlockMagic;
  header.codec = format::Codec::kRaw;
  header.content_bytes = static_cast<uint32_t>(payload.size());
  std::vector<uint8_t> encoded;
  if (header.kind == format::BlockKind::kEvents &&
      options_.event_codec == format::Codec::kWords) {
    std::vector<uint64_t> words(payload.size() / sizeof(uint64_t));
    memcpy(words.data(), payload.data(), payload.size());
    uint64_t table[format::kWordTable];
    encoded.resize(format::EncodedWordsRoom(words.size()));
    const size_t bytes = format::EncodeWords(words.data(), words.size(), table, encoded.data());
    payload = {reinterpret_cast<const char*>(encoded.data()), bytes};
    header.codec = format::Codec::kWords;
  }
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  header.payload_checksum = header.kind == format::BlockKind::kRing
                                ? 0
                                : format::Checksum(payload.data(), payload.size());
  header.header_checksum = format::HeaderChecksum(header);
  bytes_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes_.append(payload);
  bytes_.append(-bytes_.size() & (format::kBlockAlignment - 1), '\0');
  return *this;
}

TraceBuilder& TraceBuilder::Gap(size_t bytes, char fill) {
  FlushRecords();
  bytes_.append(bytes, fill);
  return *this;
}

void TraceBuilder::FlushRecords() {
  if (records_.empty()) return;
  const std::string records = std::move(records_);
  records_.clear();
  Block(HeaderAt(format::BlockKind::kMetadata, latest_ns_), records);
}

std::string TraceBuilder::Build() {
  for (ThreadScript& thread : threads_) thread.Flush();
  FlushRecords();
  return bytes_;
}

bool TraceBuilder::WriteTo(const std::string& path) {
  const std::string bytes = Build();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return out.good();
}

}  // namespace memtrace::report
