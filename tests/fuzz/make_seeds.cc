// Makes the seeds of tests/fuzz/corpus; README.md tells which and how.
//
//   make_fuzz_seeds DIR              writes the seeds that come from a script
//   make_fuzz_seeds --shrink IN OUT  a raw trace with its rings cut down to what they
//                                    hold, and only the first lines of its memory maps

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "format/checksum.h"
#include "format/record_decoder.h"
#include "format/record_encoder.h"
#include "report/trace/block_scanner.h"
#include "tests/report/scan_builder.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::AllocFunction;
using format::RecordTag;

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(),
                                              static_cast<std::streamsize>(bytes.size()));
  printf("%s: %zu bytes\n", path.c_str(), bytes.size());
}

std::string EveryEvent() {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x500000, 0,
               "/bin/program", "\x01\x02");
  trace.Module(2, 0, 0x7f0000000000, 0x7f0000010000, 0x7f0000000000, "/lib/plugin.so", "", 100);
  trace.MemoryMap(format::MapReason::kStart,
                  "00400000-00500000 r-xp 00000000 08:01 7 /bin/program\n"
                  "01000000-01021000 rw-p 00000000 00:00 0 [heap]\n", 4096);
  ThreadScript& main = trace.Thread(1, 4242, "main");
  main.At(1000);
  const uint32_t stack = main.Stack({0x401000, 0x402000, 0x403000});
  main.Node(7, 0x7f0000000123, stack, 2).Node(8, 1, 0, format::kNoModule);
  main.Malloc(0x10010, 100, stack, 4).Calloc(0x10110, 0, 7).Malloc(0, 1u << 31, 8);
  main.Realloc(0x10010, 0x10210, 500, stack).Realloc(0x10210, 0, 900).Realloc(0x10210, 0, 0);
  main.Wide(AllocFunction::kMalloc, 0x7f1000000010, uint64_t{5} << 32, (uint64_t{5} << 32) + 8, 7,
            0, format::kWideMapped);
  main.Wide(AllocFunction::kPosixMemalign, 0x20000, 64, 72, stack, 12);
  main.At(2000).Free(0x10110).FreeWithStack(0x20000, stack).Free(0x99990).Free(0);
  main.Mmap(0x7f2000000000, 0x4000, stack).Mmap(0x7f2000010000, 0x2000, 7, "/tmp/data");
  main.Mremap(0x7f2000000000, 0x4000, 0x7f2000020000, 0x8000, stack);
  main.Munmap(0x7f2000011000, 0x1000, stack).Munmap(0x1000, 0x1000).MunmapFailed(0x1000, 0x1000);
  main.Brk(0x1021000, 0x1042000, stack).HeapGrowth(0x1042000, 0x1021000);
  main.ArenaGrowth(0x7f3000000000, 0x21000, stack).ArenaGrowth(0x7f3000000000, 0x11000, stack);
  main.Shmat(0x7f4000000000, 0x1000, 5, stack).Shmdt(0x7f4000000000, stack);
  main.Usage(100, 2, 1 << 20, 10).Name("a name that is longer").Usage(150, 3, 2 << 20, 11);
  main.Extended(static_cast<format::ExtendedType>(99), {1, 2, 3});
  trace.ModuleUnload(2, 2500);
  trace.Record([](format::RecordEncoder& r) {
    r.Begin(static_cast<RecordTag>(200));
    r.Bytes("from the future");
    r.End();
    r.Begin(RecordTag::kNote);
    r.Bytes("a note");
    r.End();
    r.Begin(RecordTag::kRecordingStopped);
    r.Number(2);
    r.Number(3000);
    r.Number(28);
    r.End();
    r.Begin(RecordTag::kObservedEnd);
    for (const uint64_t number : {2, 9, 100, 200, 300, 1}) r.Number(number);
    r.End();
  });
  trace.End(3, 3000);
  return trace.Build();
}

// Threads that pass blocks on, with few stamps, so that the order must be found.
std::string Threads() {
  TraceBuilder trace;
  ThreadScript& a = trace.Thread(1, 11, "giver");
  ThreadScript& b = trace.Thread(2, 12, "taker");
  ThreadScript& c = trace.Thread(3);  // without a record
  a.At(1000);
  b.At(1000);
  const uint32_t stack = a.Stack({0x401000, 0x402000});
  for (uint64_t i = 0; i < 12; ++i) {
    a.Malloc(0x1000 + 16 * (i % 3), 10, stack);
    b.Free(0x1000 + 16 * (i % 3));
    c.Malloc(0x8000 + 32 * i, 20);
    if (i % 5 == 4) {
      a.At(1000 + 100 * i);
      b.ReallocIntent(0x8000 + 32 * i).ReallocResult(0x9000 + 32 * i, 30);
    }
  }
  a.Malloc(0x1000, 10, stack).Malloc(0x1000, 10, stack);  // the free is missing
  trace.End(0, 5000);
  return trace.Build();
}

// Blocks that are missing, a ring whose block is there, a ring whose block is not.
std::string HolesAndRings() {
  TraceBuilder::Options options;
  options.file_flags = format::kFileForked;
  TraceBuilder trace(options);
  ThreadScript& main = trace.Thread(1, 4242, "main");
  main.At(1000).Node(1, 0x401000).Malloc(0x10010, 100, 1).Flush();
  main.Dropped(5).SkipBlocks(2).At(2000).Malloc(0x10110, 100, 1).Flush();
  main.At(3000).Free(0x10010).LeaveInRing();
  trace.Thread(2, 4243, "other").At(500).Malloc(0x20010, 7).LeaveInRing(8);
  return trace.Build();
}

// Every number as large as its field: sums and differences of them overflow.
std::string ImpossibleNumbers() {
  TraceBuilder trace;
  trace.MemoryMap(format::MapReason::kStart, "0-8000000000000000 rw-p 0 00:00 0 [heap]\n");
  trace.MemoryMap(format::MapReason::kEnd, "1-ffffffffffffffff rw-p 0 00:00 0\n");
  ThreadScript& main = trace.Thread(1, 4242, "main");
  main.At(1000);
  for (int i = 0; i < 140; ++i) main.Brk(0, uint64_t{1} << 56);
  main.ArenaGrowth(uint64_t{1} << 56, uint64_t{1} << 56).Mmap(1, UINT64_MAX).Munmap(2, UINT64_MAX);
  main.Mremap(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX).Shmat(UINT64_MAX, UINT64_MAX, -1);
  for (const uint64_t minor : {uint64_t{1}, uint64_t{1} << 63, UINT64_MAX}) {
    main.Usage(minor, minor, UINT64_MAX, UINT64_MAX);
  }
  for (int i = 0; i < 3; ++i) {
    main.Wide(AllocFunction::kMalloc, 0x1000 + 16 * i, UINT64_MAX, UINT64_MAX, UINT32_MAX, 255,
              format::kWideMapped);
  }
  main.Word(format::TimeWord(uint64_t{1} << 59)).Malloc(0x10010, UINT32_MAX).Free(0x10010);
  main.Word(format::TimeWord(UINT64_MAX)).Malloc(0x10010, UINT32_MAX).LeaveInRing();
  ThreadScript& slow = trace.Thread(2, 4243, "slow");
  slow.At(1000).Malloc(0x20010, 1).Word(format::TimeWord(uint64_t{1} << 59));
  for (uint64_t i = 0; i < 64; ++i) slow.Malloc(0x30000 + 32 * i, 1);
  slow.LeaveInRing();
  trace.End(-1, uint64_t{1} << 60);
  return trace.Build();
}

// Two memory scans with every record, the second in two blocks, and a third that failed.
std::string MemoryScans() {
  using format::ScanRegionKind;
  using format::ScanRegionUse;
  TraceBuilder::Options options;
  options.stamp_rule = format::StampRule::kChangeOfOwner;
  TraceBuilder trace(options);
  ThreadScript& main = trace.Thread(1, 4242, "main");
  main.At(1000);
  const uint32_t stack = main.Stack({0x401000, 0x402000, 0x403000});
  for (uint64_t i = 0; i < 6; ++i) {
    main.Malloc(0x10010 + 64 * i, static_cast<uint32_t>(8 * i), stack);
  }
  main.ReallocIntent(0x10050);
  for (uint32_t number = 1; number <= 2; ++number) {
    ScanBuilder scan(number, trace.TicksAt(1000 + 1000 * number), format::ScanReason::kRequest,
                     number == 1 ? format::ScanShow::kAny : format::ScanShow::kChanged, "label");
    scan.Thread(4242, 1, format::ScanThreadState::kAsking, {1, 0x10010, UINT64_MAX});
    const uint32_t data = scan.Region(ScanRegionKind::kModuleData, ScanRegionUse::kRoot, 0x600000,
                                      0x601000, "/lib/libc.so.6");
    const uint32_t heap = scan.Region(ScanRegionKind::kHeap, ScanRegionUse::kTerritory, 0x10000,
                                      0x20000, "[heap]");
    scan.Region(ScanRegionKind::kOther, ScanRegionUse::kNotScanned, 1, UINT64_MAX, "/dev/x");
    if (number == 2) scan.AddTo(&trace);
    scan.Words(data, {{0x600000, 0x10098}, {0x600010, 0x100d0}, {0x6007f8, 0x100d8}});
    scan.Words(heap, {{0x10110, 0x10150}, {0x10118, 0x10110}, {0x10150, 0x10110}});
    scan.Target(0x10098, 8).Target(0x100d8, 2, 3, 1).Vtable(0x10110).Vtable(0x10150);
    scan.Hint(format::ScanHint::kIgnored, 0x10018)
        .Hint(format::ScanHint::kRootRegion, 0x10000, 0x10020);
    scan.Raw(99, {1, 2, 3}).Done().AddTo(&trace);
    main.At(1500 + 1000 * number).Free(0x10010 + 64 * number);
  }
  ScanBuilder(3, trace.TicksAt(5000)).Failed("fork: no memory").AddTo(&trace);
  trace.End(0, 6000);
  return trace.Build();
}

std::string Shrink(const std::string& in) {
  std::string out = in.substr(0, sizeof(format::FileHeader));
  MemorySource source(in);
  BlockScanner scanner(&source);
  uint64_t at = out.size();
  for (auto found = scanner.Find(at); found.ok() && found->has_value(); found = scanner.Find(at)) {
    const ScannedBlock block = **found;
    at = block.end();
    format::BlockHeader header = block.header;
    std::string payload = in.substr(block.payload_offset(), header.payload_bytes);
    if (header.kind == format::BlockKind::kRing) {
      const uint64_t old = (block.payload_offset() + 4095) & ~uint64_t{4095};
      format::RingHeader ring;
      if (old + sizeof(ring) > in.size()) break;
      memcpy(&ring, in.data() + old, sizeof(ring));
      ring.capacity_bytes = ring.committed_bytes;
      payload.assign(-(out.size() + sizeof(header)) & 4095, '\0');
      payload.append(reinterpret_cast<const char*>(&ring), sizeof(ring));
      payload += in.substr(old + sizeof(ring), ring.committed_bytes);
    } else if (header.kind == format::BlockKind::kMetadata) {
      std::string kept;
      format::RecordDecoder records(reinterpret_cast<const uint8_t*>(payload.data()),
                                    payload.size());
      for (size_t begin = 0; records.Next(); begin = records.offset()) {
        if (records.tag() != static_cast<uint64_t>(RecordTag::kMemoryMap)) {
          kept += payload.substr(begin, records.offset() - begin);
          continue;
        }
        uint8_t buffer[2048];
        format::RecordEncoder shorter(buffer, sizeof(buffer));
        shorter.Begin(RecordTag::kMemoryMap);
        shorter.Number(records.body().Number());
        shorter.Number(records.body().Number());
        const std::string_view text = records.body().Bytes();
        shorter.Bytes(text.substr(0, text.rfind('\n', 900) + 1));
        shorter.Number(records.body().Number());
        shorter.End();
        kept.append(reinterpret_cast<const char*>(buffer), shorter.size());
      }
      payload = kept;
    }
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(payload.size());
    if (header.kind != format::BlockKind::kRing) {
      header.payload_checksum = format::Checksum(payload.data(), payload.size());
    }
    header.header_checksum = format::HeaderChecksum(header);
    out.append(reinterpret_cast<const char*>(&header), sizeof(header));
    out += payload;
    out.resize(AlignToBlock(out.size()));
  }
  return out;
}

}  // namespace
}  // namespace memtrace::report

int main(int argc, char** argv) {
  using namespace memtrace::report;
  if (argc == 4 && strcmp(argv[1], "--shrink") == 0) {
    std::ifstream in(argv[2], std::ios::binary);
    Write(argv[3],
          Shrink({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}));
    return 0;
  }
  if (argc != 2) return 2;
  const std::string directory = argv[1];
  Write(directory + "/script-every-event.mtr", EveryEvent());
  Write(directory + "/script-threads.mtr", Threads());
  Write(directory + "/script-holes-and-rings.mtr", HolesAndRings());
  Write(directory + "/script-impossible-numbers.mtr", ImpossibleNumbers());
  Write(directory + "/script-memory-scans.mtr", MemoryScans());
  return 0;
}
