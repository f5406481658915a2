#include "tests/report/hostile_traces.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "format/checksum.h"
#include "format/event_words.h"
#include "format/record_encoder.h"
#include "format/records.h"
#include "format/trace_format.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::RecordEncoder;
using format::RecordTag;

constexpr uint64_t kHeap = 0x550000000000;
constexpr uint32_t kMany = 200'000;

// A trace that the functions below append blocks to: one allocation of one thread.
std::string Beginning() {
  TraceBuilder trace;
  trace.Thread(1, 4242, "main").At(1000).Malloc(kHeap, 32);
  return trace.Build();
}

void AppendBlock(format::BlockHeader header, const std::string& payload, std::string* trace) {
  header.magic = format::kBlockMagic;
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  if (header.codec == format::Codec::kRaw) header.content_bytes = header.payload_bytes;
  header.clock_ticks = TraceBuilder::kStartTicks + 1'000'000'000;
  header.monotonic_ns = TraceBuilder::kStartNs + 1'000'000'000;
  if (header.kind != format::BlockKind::kRing) {
    header.payload_checksum = format::Checksum(payload.data(), payload.size());
  }
  header.header_checksum = format::HeaderChecksum(header);
  trace->append(reinterpret_cast<const char*>(&header), sizeof(header));
  trace->append(payload);
  trace->append(-trace->size() & (format::kBlockAlignment - 1), '\0');
}

void AppendEvents(uint32_t thread, const std::vector<uint64_t>& words, std::string* trace) {
  format::BlockHeader header{};
  header.kind = format::BlockKind::kEvents;
  header.thread = thread;
  header.sequence = 1;
  AppendBlock(header, {reinterpret_cast<const char*>(words.data()), words.size() * 8}, trace);
}

// As many records as `fill` writes for the numbers up to `count`.
void AppendRecords(uint32_t count, const std::function<void(uint32_t, RecordEncoder&)>& fill,
                   std::string* trace) {
  std::vector<uint8_t> buffer(1 << 20);
  for (uint32_t i = 0; i < count;) {
    RecordEncoder encoder(buffer.data(), buffer.size());
    for (uint32_t here = 0; here < 5000 && i < count; ++here, ++i) fill(i, encoder);
    format::BlockHeader header{};
    header.kind = format::BlockKind::kMetadata;
    AppendBlock(header, {reinterpret_cast<const char*>(encoder.data()), encoder.size()}, trace);
  }
}

std::string DistinctStacks() {
  TraceBuilder trace;
  auto& main = trace.Thread(1, 4242, "main");
  main.At(1000);
  for (uint32_t i = 0; i < kMany; ++i) {
    main.Node(1 + i, 0x400000 + i * 16).Malloc(kHeap + i * 64, 32, 1 + i);
    if (i % 10000 == 9999) main.Flush();
  }
  return trace.Build();
}

// One path of frames, each called by the one before; blocks allocated at many depths.
std::string DeepStacks() {
  TraceBuilder trace;
  auto& main = trace.Thread(1, 4242, "main");
  main.At(1000);
  for (uint32_t i = 1; i < kMany; ++i) {
    main.Node(i, 0x400000 + i * 16, i - 1);
    if (i % 20 == 0) main.Malloc(kHeap + i * 64, 32, i);
    if (i % 10000 == 0) main.Flush();
  }
  return trace.Build();
}

// Frames in as many modules, each of a range of its own, some of files that exist.
std::string ManyModules() {
  TraceBuilder builder;
  auto& main = builder.Thread(1, 4242, "main");
  main.At(1000);
  const auto start = [](uint32_t i) { return 0x10000000 + uint64_t{i} * 0x1000; };
  for (uint32_t i = 0; i < kMany; ++i) {
    main.Node(1 + i, start(i) + 0x10).Malloc(kHeap + i * 64, 32, 1 + i);
    if (i % 10000 == 9999) main.Flush();
  }
  std::string trace = builder.Build();
  AppendRecords(kMany, [&](uint32_t i, RecordEncoder& out) {
    out.Begin(RecordTag::kModule);
    for (const uint64_t number : {uint64_t{i} + 1, uint64_t{format::kModulePermanent}, start(i),
                                  start(i + 1), start(i)}) {
      out.Number(number);
    }
    out.Bytes(i % 2 == 0 ? "/nowhere/lib" + std::to_string(i) + ".so" : "/bin/true");
    out.Bytes("");
    out.End();
  }, &trace);
  return trace;
}

std::string ManyThreads() {
  std::string trace = Beginning();
  for (uint32_t i = 2; i <= kMany / 2; ++i) {
    AppendEvents(i, {format::TimeWord(TraceBuilder::kStartTicks + i),
                     format::PathHead(0, 1, 1), format::NodeWord(0x400000, 0),
                     format::Head(format::EventKind::kMalloc, kHeap + i * 64), 32 | uint64_t{1} << 32},
                 &trace);
  }
  return trace;
}

// Threads that all wait for one another: each frees what the next will allocate.
std::string ThreadsThatWait() {
  std::string trace = Beginning();
  for (uint32_t i = 2; i <= kMany / 2; ++i) {
    AppendEvents(i, {format::TimeWord(TraceBuilder::kStartTicks + 10),
                     format::Head(format::EventKind::kFree, kHeap + (i + 1) * 64),
                     format::Head(format::EventKind::kMalloc, kHeap + i * 64), 32},
                 &trace);
  }
  return trace;
}

// Each perhaps of as many slots as there are.
std::string ManyHoles() {
  TraceBuilder trace;
  auto& main = trace.Thread(1, 4242, "main");
  for (uint32_t i = 0; i < 20'000; ++i) {
    main.At(1000 + i).Node(5 + i % 2, 0x400000).Malloc(kHeap, 1, 5).Free(kHeap).Flush();
    main.SkipBlocks(31);
  }
  return trace.Build();
}

std::string ManyMappings() {
  TraceBuilder trace;
  auto& main = trace.Thread(1, 4242, "main");
  main.At(1000);
  for (uint64_t i = 0; i < kMany; ++i) {
    main.Mmap(0x10000000 + i * 0x2000, 0x1000, 0, "/file" + std::to_string(i));
    if (i % 10000 == 9999) main.Flush();
  }
  for (uint64_t i = 0; i < kMany; ++i) main.Munmap(0x10000000 + i * 0x2000, 0x80000);
  return trace.Build();
}

std::string LongTexts() {
  const std::string text(500'000, 't');
  TraceBuilder::Options options;
  options.executable = std::string(100'000, 'e');
  options.command = {std::string(100'000, 'c'), "a b " + std::string(100'000, ' ')};
  options.command.resize(kMany / 10, "argument");
  TraceBuilder trace(options);
  trace.Thread(1, 4242, text).At(1000).Node(1, 0x401000).Malloc(kHeap, 32, 1);
  trace.Thread(1).Mmap(0x10000000, 0x1000, 1, std::string(400'000, 'f'));
  trace.Thread(1).Name(std::string(400'000, 'n'));
  trace.Module(1, format::kModulePermanent, 0x400000, 0x500000, 0, text, text);
  trace.Note(text).Note(text + "2").Counter(text, 1);
  trace.MemoryMap(format::MapReason::kStart, text).MemoryMap(format::MapReason::kEnd, text);
  return trace.Build();
}

// Counters, names of a thread, notes: each a few bytes.
std::string ManyRecords() {
  std::string trace = Beginning();
  AppendRecords(kMany, [](uint32_t i, RecordEncoder& out) {
    out.Begin(RecordTag::kNote);
    out.Bytes("note " + std::to_string(i));
    out.End();
    out.Begin(RecordTag::kCounter);
    out.Bytes("counter " + std::to_string(i));
    out.Number(i);
    out.End();
    out.Begin(RecordTag::kThread);
    for (const uint64_t number : {1, 4242, 0}) out.Number(number);
    out.Bytes("name " + std::to_string(i));
    out.End();
  }, &trace);
  return trace;
}

std::string Compressed(const std::string& content) {
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 1));
  return packed;
}

// A block of a few kilobytes that expands to `content`, `count` times.
std::string Bomb(format::BlockKind kind, const std::string& content, uint32_t count) {
  std::string trace = Beginning();
  const std::string packed = Compressed(content);
  for (uint32_t i = 0; i < count; ++i) {
    format::BlockHeader header{};
    header.kind = kind;
    header.codec = format::Codec::kZstd;
    header.content_bytes = static_cast<uint32_t>(content.size());
    header.thread = kind == format::BlockKind::kEvents ? 1 : 0;
    header.sequence = 2 + i;
    AppendBlock(header, packed, &trace);
  }
  return trace;
}

constexpr size_t kBombBytes = 64 << 20;

std::string BombOfNotes() {
  std::string record;
  for (const char byte : {static_cast<char>(RecordTag::kNote), char{2}, char{1}, 'n'}) record += byte;
  std::string content;
  while (content.size() + record.size() <= kBombBytes) content += record;
  return Bomb(format::BlockKind::kMetadata, content, 20);
}

std::string BombOfThreads() {
  std::string content;
  for (uint32_t serial = 1; content.size() + 8 <= kBombBytes / 4; ++serial) {
    content += static_cast<char>(RecordTag::kThread);
    content += char{4};
    for (int i = 0; i < 4; ++i) content += static_cast<char>((serial >> 7 * i & 0x7f) | (i < 3) << 7);
  }
  return Bomb(format::BlockKind::kMetadata, content, 1);
}

// Stamps and nothing else, for every event block.
std::string BombOfEvents() {
  std::string content(kBombBytes, '\0');
  const uint64_t word = format::TimeWord(TraceBuilder::kStartTicks + 1);
  for (size_t i = 0; i < content.size(); i += 8) memcpy(content.data() + i, &word, 8);
  return Bomb(format::BlockKind::kEvents, content, 10);
}

// As many blocks live as a few kilobytes can say: one address after the other.
std::string BombOfBlocks() {
  std::string content;
  for (uint64_t i = 0; content.size() + 16 <= kBombBytes; ++i) {
    const uint64_t words[] = {format::Head(format::EventKind::kMalloc, kHeap + i * 32, 0), 16};
    content.append(reinterpret_cast<const char*>(words), sizeof(words));
  }
  return Bomb(format::BlockKind::kEvents, content, 1);
}

// The highest slot there is, and others far apart, in every thread.
std::string SparseSlots() {
  TraceBuilder trace;
  for (uint32_t thread = 1; thread <= 200; ++thread) {
    auto& script = trace.Thread(thread, thread, "");
    script.At(thread);
    for (uint32_t i = 1; i <= 500; ++i) script.Node(i * 32768, 0x400000 + i);
    script.Malloc(kHeap + thread * 64, 32, 32768).Flush();
  }
  return trace.Build();
}

// Times at both ends of what there is, clocks that jump.
std::string WildTimes() {
  TraceBuilder trace;
  auto& main = trace.Thread(1, 4242, "main");
  for (int bit = 0; bit < 62; ++bit) {
    main.At(uint64_t{1} << bit).Malloc(kHeap + bit * 64, 32).Usage(bit, bit, 1 << bit % 31).Flush();
  }
  main.Word(format::TimeWord(1)).Free(kHeap).Word(format::TimeWord(UINT64_MAX >> 4)).Flush();
  return trace.Build();
}

// Rings and no blocks, all of one thread, the last first.
std::string ManyRings() {
  std::string trace = Beginning();
  for (uint32_t i = 0; i < 4000; ++i) {
    format::RingHeader ring{};
    ring.magic = format::kRingMagic;
    ring.thread = 1;
    ring.sequence = 20'000 - 2 * i;
    ring.committed_bytes = ring.capacity_bytes = 64;
    format::BlockHeader header{};
    header.kind = format::BlockKind::kRing;
    // The ring begins at the next multiple of its alignment in the file.
    std::string payload(-(trace.size() + sizeof(header)) & (format::kRingAlignment - 1), '\0');
    payload.append(reinterpret_cast<const char*>(&ring), sizeof(ring));
    for (int word = 0; word < 8; ++word) payload.append("\x01\0\0\0\0\0\x01\0", 8);
    AppendBlock(header, payload, &trace);
  }
  return trace;
}

// Addresses that the table of live blocks would keep in one place: its hash is the high
// bits of a product with the golden ratio, and these products are nearly 0. Address and
// product are small together for a lattice of pairs: two of its short vectors are found
// as Euclid's algorithm finds them, and summed up.
std::string CollidingAddresses() {
  std::string trace = Beginning();
  // Vectors (x, x * k mod 2^64), as signed numbers.
  __int128 x0 = 0, y0 = static_cast<__int128>(1) << 64;
  __int128 x1 = 1, y1 = 0x9e3779b97f4a7c15;
  while (x1 < (int64_t{1} << 24) && x1 > -(int64_t{1} << 24)) {
    const __int128 q = y0 / y1;
    const __int128 x2 = x0 - q * x1, y2 = y0 - q * y1;
    x0 = x1, y0 = y1, x1 = x2, y1 = y2;
  }
  // |x| about 2^24, y below 2^40: a multiple of up to 2^16 keeps the product below 2^56,
  // which is 2^-8 of a table; of a table of 2^17 slots a few hundred.
  const auto step = static_cast<uint64_t>(x1 < 0 ? -x1 : x1);
  std::vector<uint64_t> words = {format::TimeWord(TraceBuilder::kStartTicks + 10)};
  for (uint64_t i = 1; i <= kMany && i * step < (uint64_t{1} << 44); ++i) {
    words.push_back(format::Head(format::EventKind::kMalloc, i * step << 4));
    words.push_back(32);
  }
  AppendEvents(2, words, &trace);
  return trace;
}

}  // namespace

std::vector<HostileTrace> HostileTraces() {
  return {
      {"distinct_stacks", DistinctStacks},
      {"deep_stacks", DeepStacks},
      {"many_modules", ManyModules},
      {"many_threads", ManyThreads},
      {"threads_that_wait", ThreadsThatWait},
      {"many_holes", ManyHoles},
      {"many_mappings", ManyMappings},
      {"long_texts", LongTexts},
      {"many_records", ManyRecords},
      {"bomb_of_notes", BombOfNotes},
      {"bomb_of_threads", BombOfThreads},
      {"bomb_of_events", BombOfEvents},
      {"bomb_of_blocks", BombOfBlocks},
      {"sparse_slots", SparseSlots},
      {"wild_times", WildTimes},
      {"many_rings", ManyRings},
      {"colliding_addresses", CollidingAddresses},
      {"hostile_texts", TraceOfHostileTexts},
  };
}

std::string HostileText(const std::string& field) {
  return "=" + field +
         "!\x1b]0;title\x07\x1b[31m\x1b[2J\r\n\tX: y\n`touch hurt` $(touch hurt) ; | & \" ' \\ "
         "<script>alert(1)</script> ]]> -- , \xe2\x80\xae" "gnp\xe2\x80\xa8 \xc2\x9b" "31m \xc0\xaf "
         "\xff\xfe \xed\xa0\x80 \xf4\x90\x80\x80 \x7f %s%n {{ }}";
}

std::string TraceOfHostileTexts() {
  TraceBuilder::Options options;
    TraceBuilder trace(options);
  trace.Record([](RecordEncoder& out) {
    out.Begin(RecordTag::kProcess);
    out.Bytes(HostileText("version"));
    out.Bytes(HostileText("executable"));
    out.Bytes(HostileText("build-id").substr(0, 20));
    out.Number(2);
    out.Bytes(HostileText("command"));
    out.Bytes(HostileText("argument"));
    for (const uint64_t number : {uint64_t{1}, TraceBuilder::kStartNs, TraceBuilder::kStartTicks,
                                  uint64_t{3}, uint64_t{1'000'000'000}, uint64_t{4096}, uint64_t{1},
                                  uint64_t{0}}) {
      out.Number(number);
    }
    out.Bytes(HostileText("kernel"));
    out.Bytes(HostileText("host"));
    out.Bytes("/" + HostileText("directory"));
    out.End();
  });
  auto& main = trace.Thread(1, 4242, HostileText("thread"));
  trace.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x500000, 0,
               "/" + HostileText("module"), HostileText("id").substr(0, 20));
  trace.Module(2, format::kModulePermanent, 0x600000, 0x700000, 0, HostileText("relative"));
  trace.Module(3, 0, 0x800000, 0x900000, 0, "/proc/self/" + HostileText("proc"));
  main.At(1000).Node(1, 0x401000).Node(2, 0x601000, 1).Node(3, 0x801000, 2, 3);
  main.Malloc(kHeap, 100, 3).Malloc(kHeap + 256, 200, 2).Malloc(kHeap + 512, 50, 1);
  main.Free(kHeap).At(2000).Name(HostileText("renamed"));
  main.Mmap(0x10000000, 0x10000, 2, "/" + HostileText("mapped"));
  main.Usage(100, 2, 1 << 20).At(3000).Usage(200, 3, 1 << 21);
  trace.Note(HostileText("note")).Counter(HostileText("counter"), 7);
  const std::string map = "400000-500000 r-xp 00000000 00:00 1 /" + HostileText("map") + "\n";
  trace.MemoryMap(format::MapReason::kStart, map).MemoryMap(format::MapReason::kEnd, map);
  trace.Record([](RecordEncoder& out) {
    out.Begin(RecordTag::kCrossCheck);
    for (const uint64_t number : {1, 1, 70, 1, 0x401000, 0x7ff0, 0, 0, 0, 0, 2, 2, 2, 0x401000, 0,
                                  0x601000, 0, 2, 0x401000, 0x7ff0, 0, 0x801000, 0x7ff8, 1}) {
      out.Number(number);
    }
    out.End();
  });
  trace.End(3, 4000);
  return trace.Build();
}

}  // namespace memtrace::report
