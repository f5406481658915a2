#include "tests/report/random_trace.h"

#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "format/faults.h"
#include "format/record_encoder.h"
#include "format/varint.h"
#include "tests/report/scan_builder.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::ExtendedType;
using format::FaultTag;

class Maker {
 public:
  Maker(const RandomTraceOptions& options, std::mt19937_64& random)
      : options_(options), random_(random), trace_(BuilderOptions()) {
    exact_ = exact_next_;
    faults_ = Chance(30);
    trace_.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x480000,
                  0x400000, "/a");
    if (Chance(50)) {
      trace_.MemoryMap(format::MapReason::kStart,
                       "00400000-00480000 r-xp 00000000 08:01 11 /a\n"
                       "00800000-00900000 rw-p 00000000 00:00 0 [heap]\n");
    }
  }

  std::string Make(uint64_t* duration_ns) {
    if (faults_) FaultSource();
    for (int i = 0; i < options_.events; ++i) {
      now_ += random_() % options_.step_ns + 1;
      if (Chance(1)) now_ += 200'000'000;
      Event();
      if (faults_ && Chance(10)) Faults();
      if (Chance(1) && scans_ < 3) Scan();
    }
    for (int i = 1; i <= options_.threads; ++i) {
      if (Chance(3)) trace_.Thread(static_cast<uint32_t>(i)).LeaveInRing();
    }
    if (options_.ended) trace_.End(0, now_ + 1000);
    *duration_ns = now_;
    return trace_.Build();
  }

 private:
  TraceBuilder::Options BuilderOptions() {
    TraceBuilder::Options options;
    exact_next_ = Chance(50);
    if (exact_next_) options.stamp_rule = format::StampRule::kChangeOfOwner;
    if (Chance(15)) options.sample_bytes = 500;
    if (Chance(15)) options.file_flags |= format::kFileForked;
    return options;
  }
  bool Chance(unsigned percent) { return random_() % 100 < percent; }
  uint64_t Address() { return 0x800010 + random_() % 60 * 0x400; }
  uint64_t Page() { return 0x10000000 + random_() % 40 * 0x1000; }
  uint32_t Size() { return static_cast<uint32_t>(random_() % (Chance(10) ? 5000 : 300)); }

  uint32_t Slot(uint32_t serial) {
    if (Chance(3)) return 0;
    if (Chance(2)) return 900;  // of which nothing was told
    if (Chance(2)) return format::kStoppedSlot;
    std::array<bool, 20>& known = known_[serial % known_.size()];
    const uint32_t slot = 1 + random_() % 19;
    if (!known[slot] || Chance(5)) {
      known[slot] = true;
      const uint32_t parent = slot > 1 && known[slot / 2] ? slot / 2 : 0;
      trace_.Thread(serial).Node(slot, 0x400000 + (slot + random_() % 2 * 50) * 16, parent);
    }
    return slot;
  }

  void Event() {
    const auto serial = static_cast<uint32_t>(1 + random_() % static_cast<unsigned>(options_.threads));
    ThreadScript& thread = serial % 3 == 2 ? trace_.Thread(serial)
                                           : trace_.Thread(serial, 100 + serial, "t", now_);
    if (Chance(exact_ ? 70 : 40)) thread.At(now_);
    switch (random_() % 40) {
      default:
        thread.Malloc(Address(), Size(), Slot(serial), static_cast<uint32_t>(random_() % 20));
        break;
      case 1: thread.Calloc(Address(), Size(), Slot(serial)); break;
      case 2: case 3: case 4: case 5: case 6: case 7: case 8: case 9: case 10: case 11: case 12:
        thread.Free(Address());
        break;
      case 13: thread.Realloc(Address(), Chance(90) ? Address() : 0, Size(), Slot(serial)); break;
      case 14: thread.ReallocIntent(Address()); break;
      case 15: thread.ReallocResult(Address(), Size(), Slot(serial)); break;
      case 16:
        thread.Wide(format::AllocFunction::kMemalign, Address(), Size(), Size() + 200, Slot(serial), 6,
                    static_cast<uint8_t>(random_() % 4));
        break;
      case 17: thread.At(now_).Mmap(Page(), 0x1000 * (1 + random_() % 4), Slot(serial), Chance(30) ? "/f" : ""); break;
      case 18: thread.At(now_).Munmap(Page(), 0x1000 * (1 + random_() % 4)); break;
      case 19: thread.MunmapFailed(Page(), 0x2000); break;
      case 20: thread.At(now_).Mremap(Page(), 0x2000, Page(), 0x1000 * (1 + random_() % 4), Slot(serial)); break;
      case 21: thread.At(now_).ArenaGrowth(Page(), 0x1000 * (random_() % 5), Slot(serial)); break;
      case 22: thread.At(now_).HeapGrowth(brk_, brk_ + 0x1000, Slot(serial)); brk_ += 0x1000; break;
      case 23: thread.At(now_).Shmat(Page(), 0x2000, 7, Slot(serial)); break;
      case 24:
        minor_ += random_() % 9;
        thread.At(now_).Usage(minor_, minor_ / 7, Chance(50) ? 1 << 20 : 0, minor_ / 3);
        break;
      case 25: thread.At(now_).Name(absl::StrCat("n", random_() % 3)); break;
      case 26:
        thread.At(now_).Extended(ExtendedType::kPoolCreate, {Pool(), Slot(serial)}, Chance(70) ? "pool" : "");
        break;
      case 27:
        if (Chance(30)) thread.At(now_).Extended(ExtendedType::kPoolDestroy, {Pool(), Slot(serial)});
        break;
      case 28: case 29: case 30:
        if (client_) {
          thread.At(now_).Extended(ExtendedType::kCustomAlloc,
                                   {Address() + random_() % 8 * 16, random_() % 100,
                                    Chance(70) ? Pool() : 0, Slot(serial)});
        }
        break;
      case 31:
        if (client_) {
          thread.At(now_).Extended(ExtendedType::kCustomFree,
                                   {Address() + random_() % 8 * 16, Chance(70) ? Pool() : 0});
        }
        break;
      case 32: thread.At(now_).Extended(ExtendedType::kIgnoreBlock, {Address() + random_() % 8}); break;
      case 33: thread.At(now_).Extended(ExtendedType::kLeaksDisabled, {random_() % 2}); break;
      case 34:
        thread.At(now_).Extended(ExtendedType::kPhase, {1 + random_() % 3, Slot(serial)},
                                 absl::StrCat("p", random_() % 3));
        break;
      case 35:
        if (Chance(20)) thread.At(now_).Extended(ExtendedType::kRecordingStopped, {random_() % 2, 0});
        break;
    }
    if (Chance(12)) thread.Flush(now_);
    if (Chance(1)) thread.SkipBlocks(1);
  }

  uint64_t Pool() { return 0x700000 + random_() % 3 * 64; }

  void Begin(FaultTag tag) { out_.Begin(static_cast<format::RecordTag>(tag)); }
  void FaultSource() {
    Begin(FaultTag::kSource);
    for (const uint64_t n : {static_cast<uint64_t>(format::FaultSource::kAllEvents),
                             TraceBuilder::kStartNs, uint64_t{5}, uint64_t{0}, uint64_t{0}}) {
      out_.Number(n);
    }
    out_.Bytes("");
    for (const uint64_t n : {uint64_t{2}, uint64_t{131072}, uint64_t{500}}) out_.Number(n);
    out_.End();
    FaultBlock();
  }
  void Faults() {
    Begin(FaultTag::kFaults);
    out_.Number(TraceBuilder::kStartNs + now_);
    uint64_t ns = 0, tid = 0, address = 0, pc = 0;
    for (uint64_t left = 1 + random_() % 6; left > 0; --left) {
      const uint64_t at = TraceBuilder::kStartNs + now_ - random_() % std::min<uint64_t>(now_, 20'000);
      const uint64_t where = Chance(70) ? Address() + random_() % 600 : Page() + random_() % 4096;
      const uint64_t code = 0x400000 + random_() % 200 * 8;
      out_.Number(format::ZigZag(at - ns) << 2 | random_() % 4);
      out_.Number(format::ZigZag(101 - tid));
      out_.Number(format::ZigZag(where - address));
      out_.Number(format::ZigZag(code - pc));
      ns = at;
      tid = 101;
      address = where;
      pc = code;
    }
    out_.End();
    FaultBlock();
  }
  void FaultBlock() {
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kFaults;
    header.sequence = ++fault_blocks_;
    trace_.Block(header, {reinterpret_cast<const char*>(out_.data()), out_.size()});
    out_.Clear();
  }

  void Scan() {
    ScanBuilder scan(++scans_, trace_.TicksAt(now_));
    const uint32_t data = scan.Region(format::ScanRegionKind::kModuleData,
                                      format::ScanRegionUse::kRoot, 0x600000, 0x601000, "/a");
    for (int i = 0; i < 5; ++i) {
      scan.Word(data, 0x600010 + static_cast<uint64_t>(i) * 8, Address());
    }
    scan.Done().AddTo(&trace_);
  }

  const RandomTraceOptions& options_;
  std::mt19937_64& random_;
  bool exact_next_ = false, exact_ = false, faults_ = false, client_ = Chance(60);
  TraceBuilder trace_;
  std::array<std::array<bool, 20>, 16> known_{};
  uint64_t now_ = 1000, brk_ = 0x900000, minor_ = 5;
  uint32_t scans_ = 0, fault_blocks_ = 0;
  uint8_t buffer_[4096];
  format::RecordEncoder out_{buffer_, sizeof(buffer_)};
};

}  // namespace

std::string RandomTrace(const RandomTraceOptions& options, std::mt19937_64& random,
                        uint64_t* duration_ns) {
  return Maker(options, random).Make(duration_ns);
}

}  // namespace memtrace::report
