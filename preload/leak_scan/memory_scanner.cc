// Looks through the memory of a process whose threads stand, and writes down the words that may
// point into the heap. In a copy of the process, or in itself when there is none.
//
// Calls nothing but the kernel and what needs no lock: other threads may have been stopped
// while they held one of libc's.
//
//   mappings   /proc/self/maps, each with what it is
//   cuts       parts of them that are something else: stacks, dead stacks, our own memory,
//              heaps of glibc's other arenas
//   territory  where blocks may lie: a word that does not point there is not looked at twice
//   regions    mappings cut to pieces, read page by page as /proc/self/pagemap says; of libc's
//              heap what is in use

#include <sys/mman.h>
#include <time.h>

#include <cerrno>
#include <new>

#include "format/varint.h"
#include "preload/arch/arch.h"
#include "preload/leak_scan/free_chunks.h"
#include "preload/leak_scan/heap_territory.h"
#include "preload/leak_scan/page_plan.h"
#include "preload/leak_scan/read_own_memory.h"
#include "preload/leak_scan/scan_cuts.h"
#include "preload/leak_scan/scan_job.h"
#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"
#include "preload/leak_scan/scan_territory.h"
#include "preload/leak_scan/scan_words.h"
#include "preload/leak_scan/scan_writer.h"
#include "preload/leak_scan/unseen_calls.h"
#include "preload/leak_scan/vtable_test.h"
#include "preload/process.h"
#include "preload/real_allocator.h"
#include "preload/recorder.h"
#include "preload/scan_hints.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

using format::ScanRegionKind;
using format::ScanRegionUse;
using format::ScanTag;
using format::ScanThreadState;

constexpr std::string_view kNoMemory = "no memory for the scan";  // as reports tell it
constexpr size_t kPiece = 256 << 10;  // read at a time

uint64_t Nanoseconds(clockid_t clock) {
  timespec now = {};
  sys::Call(SYS_clock_gettime, clock, reinterpret_cast<long>(&now));
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

class MemoryScanner {
 public:
  explicit MemoryScanner(const ScanJob& job)
      : job_(job),
        mappings_(arena_),
        pages_(arena_, sys::Getpid() != job.pid),
        territory_(arena_),
        cuts_(job, mappings_, arena_),
        vtable_test_(mappings_, sys::Getpid() != job.pid),
        free_chunks_(mappings_) {}

  bool Run();

 private:
  bool Prepare();
  void WriteBegin();
  void WriteThreads();
  void WriteHints();
  void WriteThread(int tid, uint32_t serial, ScanThreadState state, uintptr_t stack_pointer,
                   const uint64_t* registers, OwnRange stack, OwnRange alternate,
                   uintptr_t thread_pointer);

  // A part of a mapping, and what it is.
  struct Part {
    const ScanMapping& mapping;
    uintptr_t begin, end;
    const Cut* cut;  // null: nothing special
    ScanRegionKind kind;
    ScanRegionUse use;

    bool is(Cut::What what) const { return cut != nullptr && cut->what == what; }
    bool is_own_or_dead() const { return cut != nullptr && cut->what <= Cut::kDead; }
  };
  // How many bytes of a part are what, by the plan of its pages.
  struct PartBytes {
    uint64_t read = 0, absent = 0, unreadable = 0;
  };

  void ScanMapped(const ScanMapping& mapping);
  void ScanPart(const ScanMapping& mapping, uintptr_t begin, uintptr_t end, const Cut* cut);
  void LeaveOut(Part part);
  PartBytes CountPlanned(const Part& part) const;
  void ScanRun(const Part& part, uintptr_t from, uintptr_t to);
  void LoadRun(const Part& part, uintptr_t from, uintptr_t to);
  void ReadRun(const Part& part, uintptr_t from, uintptr_t to);
  uint64_t& scanned_bytes(const Part& part) {
    return part.use == ScanRegionUse::kTerritory ? territory_bytes_ : root_bytes_;
  }
  void WriteRegion(const Part& part, const PartBytes& bytes);
  void ScanWords(const uint64_t* words, uintptr_t address, size_t count);
  void AddWord(uintptr_t address, uint64_t value);
  void CloseWords();
  void FlushBegin();
  void AddVtable(uintptr_t address);
  void Fail(std::string_view why);

  const ScanJob& job_;
  ScanArena arena_;
  ScanMappings mappings_;
  PagePlan pages_;
  ScanTerritory territory_;
  ScanCuts cuts_;
  VtableTest vtable_test_;
  FreeChunks free_chunks_;
  uint64_t* piece_ = nullptr;

  ScanWriter* out_ = nullptr;
  ScanWriter* vtables_ = nullptr;
  bool words_open_ = false;
  bool vtables_open_ = false;
  bool may_have_vtables_ = false;  // the region that is scanned
  uint64_t region_ = 0;
  uintptr_t last_word_ = 0;
  uint64_t last_value_ = 0;
  uintptr_t last_vtable_ = 0;
  uint64_t root_bytes_ = 0, territory_bytes_ = 0, absent_bytes_ = 0, unreadable_bytes_ = 0;
};

void MemoryScanner::Fail(std::string_view why) {
  if (out_ == nullptr) return;
  CloseWords();
  format::RecordEncoder& out = out_->Begin(ScanTag::kFailed);
  out.Bytes(why);
  out_->End();
  out_->Flush();
}

// --- Records ----------------------------------------------------------------

void MemoryScanner::WriteBegin() {
  format::RecordEncoder& out = out_->Begin(ScanTag::kBegin);
  out.Number(static_cast<uint64_t>(job_.reason));
  out.Number(job_.ticks);
  out.Number(job_.monotonic_ns);
  out.Number(static_cast<uint64_t>(job_.tid));
  out.Bytes(job_.label);
  out.Number(static_cast<uint64_t>(job_.show));
  out.Number(job_.progress->stood_ns.load());
  out.Number(job_.progress->fork_ns.load());
  const int self = sys::Getpid();
  out.Number(self == job_.pid ? 0 : static_cast<uint64_t>(self));
  out.Bytes(job_.note);
  out_->End();
}

void MemoryScanner::WriteThread(int tid, uint32_t serial, ScanThreadState state,
                                uintptr_t stack_pointer, const uint64_t* registers,
                                OwnRange stack, OwnRange alternate, uintptr_t thread_pointer) {
  format::RecordEncoder& out = out_->Begin(ScanTag::kThread);
  out.Number(static_cast<uint64_t>(tid));
  out.Number(serial);
  out.Number(static_cast<uint64_t>(state));
  out.Number(stack_pointer);
  out.Number(stack.begin);
  out.Number(stack.end);
  out.Number(registers != nullptr ? arch::kRegisterCount : 0);
  for (int i = 0; registers != nullptr && i < arch::kRegisterCount; ++i) out.Number(registers[i]);
  out.Number(alternate.begin);
  out.Number(alternate.end);
  out.Number(thread_pointer);
  out_->End();
  // A register may be all that points to a block, and may point into it: that is a target as well.
  for (int i = 0; registers != nullptr && i < arch::kRegisterCount; ++i) {
    territory_.Mark(registers[i]);
  }
}

void MemoryScanner::WriteThreads() {
  WriteThread(job_.tid, cuts_.SerialOf(job_.tid), ScanThreadState::kAsking, job_.stack_pointer,
              job_.has_registers ? job_.registers : nullptr, cuts_.StackOf(job_.tid),
              {job_.alternate_begin, job_.alternate_end}, job_.control_block);
  for (size_t i = 0; i < job_.others->size(); ++i) {
    const StoppedThread& thread = (*job_.others)[i];
    if (thread.tid == 0) continue;
    const bool parked = thread.state.load() == StoppedThread::kParked;
    WriteThread(thread.tid, cuts_.SerialOf(thread.tid),
                parked ? ScanThreadState::kParked : ScanThreadState::kUnparked,
                parked ? thread.stack_pointer() : 0, parked ? thread.registers : nullptr,
                cuts_.StackOf(thread.tid), {thread.alternate_begin, thread.alternate_end},
                parked ? thread.control_block : 0);
  }
  // Threads that have ended, but are not joined yet.
  cuts_.ForEachEndedStack([this](uintptr_t begin, uintptr_t end) {
    WriteThread(0, 0, ScanThreadState::kEnding, 0, nullptr, {begin, end}, {0, 0}, begin);
  });
}

// Writes what the program told of its memory (memtrace.h), and what else is known of it.
void MemoryScanner::WriteHints() {
  const auto write = [this](format::ScanHint kind) {
    return [this, kind](uintptr_t begin, uintptr_t end) {
      format::RecordEncoder& out = out_->Begin(ScanTag::kHint);
      out.Number(static_cast<uint64_t>(kind));
      out.Number(begin);
      out.Number(end);
      out_->End();
    };
  };
  g_scan_hints.ForEachRoot(write(format::ScanHint::kRootRegion));
  // Another allocator may have its blocks there.
  if (g_process.allocator_is_glibc) {
    g_scan_hints.ForEachBreak(write(format::ScanHint::kProgramBreak));
  }
  UnseenCalls unseen(mappings_, vtable_test_);
  unseen.ForEach([&](uintptr_t begin, uintptr_t end, AllocatorCall call) {
    if (call.allocates) write(format::ScanHint::kAllocatesUnseen)(begin, end);
    if (call.frees) write(format::ScanHint::kFreesUnseen)(begin, end);
  });
  if (g_usable_sizes_asked.load(std::memory_order_relaxed))
    write(format::ScanHint::kUsableSizes)(0, 0);
}

void MemoryScanner::WriteRegion(const Part& part, const PartBytes& bytes) {
  CloseWords();
  ++region_;
  const Cut* const cut = part.cut;
  format::RecordEncoder& out = out_->Begin(ScanTag::kRegion);
  out.Number(region_);
  out.Number(static_cast<uint64_t>(part.kind));
  out.Number(static_cast<uint64_t>(part.use));
  out.Number(part.begin);
  out.Number(part.end);
  out.Number(static_cast<uint64_t>(part.mapping.protection));
  out.Number(cut == nullptr ? 0 : cut->serial != 0 ? cut->serial : static_cast<uint64_t>(cut->tid));
  out.Bytes(First(part.mapping.path, 4096));
  out.Number(bytes.read);
  out.Number(bytes.absent);
  out.Number(bytes.unreadable);
  out_->End();
}

void MemoryScanner::CloseWords() {
  if (!words_open_) return;
  out_->End();
  words_open_ = false;
}

void MemoryScanner::AddWord(uintptr_t address, uint64_t value) {
  if (words_open_ && !out_->HasRoom()) CloseWords();
  if (!words_open_) {
    format::RecordEncoder& out = out_->Begin(ScanTag::kWords);
    out.Number(region_);
    out.Number(address);
    out.Number(value);
    words_open_ = true;
  } else {
    out_->encoder().Number((address - last_word_) / kWord);
    out_->encoder().Number(format::ZigZag(value - last_value_));
  }
  last_word_ = address;
  last_value_ = value;
}

// A reader looks for kBegin in the first block.
void MemoryScanner::FlushBegin() {
  if (job_.progress->blocks.load() != 0) return;
  CloseWords();
  out_->Flush();
}

void MemoryScanner::AddVtable(uintptr_t address) {
  if (vtables_open_ && !vtables_->HasRoom()) {
    vtables_->End();
    vtables_open_ = false;
    FlushBegin();
  }
  if (!vtables_open_) {
    vtables_->Begin(ScanTag::kVtables);
    vtables_open_ = true;
    last_vtable_ = 0;
  }
  vtables_->encoder().Number(address - last_vtable_);
  last_vtable_ = address;
}

// --- Words ------------------------------------------------------------------

void MemoryScanner::ScanWords(const uint64_t* words, uintptr_t address, size_t count) {
  const ScanTerritory::Granules granules = territory_.granules();
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = words[i];
    if (value >= kAddresses) continue;
    const uint8_t flags = granules.Flags(value);
    if (flags == 0) [[likely]] continue;
    if (flags & ScanTerritory::kMayBeTerritory) {
      if (territory_.Mark(value)) {
        AddWord(address + i * kWord, value);
        continue;
      }
    }
    if ((flags & ScanTerritory::kMayBeFile) != 0 && may_have_vtables_ &&
        vtable_test_.LooksLikeVtable(value)) {
      AddVtable(address + i * kWord);
    }
  }
}

void MemoryScanner::ScanPart(const ScanMapping& mapping, uintptr_t begin, uintptr_t end,
                             const Cut* cut) {
  Part part = {mapping, begin, end, cut, mapping.kind, ScanRegionUse::kRoot};
  if (part.is(Cut::kStack)) part.kind = ScanRegionKind::kStack;
  if (mapping.part == ScanMapping::Part::kNotRead || part.is_own_or_dead()) return LeaveOut(part);
  const bool is_protected =
      (part.kind == ScanRegionKind::kHeap || part.kind == ScanRegionKind::kAnonymous) &&
      (mapping.protection & PROT_WRITE) == 0;
  if (part.is(Cut::kTerritory) || is_protected ||
      (part.kind == ScanRegionKind::kHeap && g_process.allocator_is_glibc)) {
    part.use = ScanRegionUse::kTerritory;
  }
  const PagePlan::Result plan = pages_.Make(mapping, begin, end);
  if (plan == PagePlan::kTooLarge) LeaveOut(part);
  if (plan != PagePlan::kMade) return;
  const PartBytes bytes = CountPlanned(part);
  absent_bytes_ += bytes.absent;
  unreadable_bytes_ += bytes.unreadable;
  scanned_bytes(part) += bytes.read;
  // A read-only mapping of which nothing was ever written has no data of its own.
  if (part.kind == ScanRegionKind::kRelro && bytes.read == 0) return;
  WriteRegion(part, bytes);
  // Vtables are asked for in blocks, and blocks may be anywhere in anonymous memory.
  may_have_vtables_ = mapping.kind == ScanRegionKind::kHeap ||
                      mapping.kind == ScanRegionKind::kAnonymous || g_heap_territory.used();
  const uintptr_t first_page = Down(begin, kPage);
  const size_t count = (Up(end, kPage) - first_page) / kPage;
  for (size_t page = 0; (page = pages_.SkipAbsent(page, count)) < count;) {
    size_t run = page;
    while (run < count && run - page < kPiece / kPage && pages_[run] == PagePlan::kRead) ++run;
    if (run == page) {
      ++page;
      continue;
    }
    const uintptr_t from = first_page + page * kPage, to = first_page + run * kPage;
    ScanRun(part, from < begin ? begin : from, to < end ? to : end);
    page = run;
  }
  CloseWords();
}

// Of a part that is not looked through it is told that it is there.
void MemoryScanner::LeaveOut(Part part) {
  // Every small piece of ours would say nothing to anybody.
  if (part.is(Cut::kOwn)) return;
  part.use = part.is(Cut::kDead) ? ScanRegionUse::kDead : ScanRegionUse::kNotScanned;
  absent_bytes_ += part.end - part.begin;
  WriteRegion(part, {.absent = part.end - part.begin});
}

MemoryScanner::PartBytes MemoryScanner::CountPlanned(const Part& part) const {
  const uintptr_t first_page = Down(part.begin, kPage);
  const size_t count = (Up(part.end, kPage) - first_page) / kPage;
  uint64_t bytes[4] = {};
  for (size_t i = 0; (i = pages_.SkipAbsent(i, count)) < count; ++i) {
    const uintptr_t page = first_page + i * kPage;
    const uintptr_t from = page < part.begin ? part.begin : page;
    const uintptr_t to = page + kPage < part.end ? page + kPage : part.end;
    bytes[pages_[i]] += to - from;
  }
  const uint64_t read = bytes[PagePlan::kRead], unreadable = bytes[PagePlan::kUnreadable];
  return {
      .read = read, .absent = part.end - part.begin - read - unreadable, .unreadable = unreadable};
}

// [from, to) is on pages of the part that are read.
void MemoryScanner::ScanRun(const Part& part, uintptr_t from, uintptr_t to) {
  from = Up(from, kWord);
  to = Down(to, kWord);
  if (from >= to) return;
  if (pages_.can_load()) {
    LoadRun(part, from, to);
  } else {
    ReadRun(part, from, to);
  }
}

// Where it lies. Of libc's heap what is in use.
void MemoryScanner::LoadRun(const Part& part, uintptr_t from, uintptr_t to) {
  territory_.NoteLoaded(from, to);
  const auto scan = [this](uintptr_t at, uintptr_t at_end) {
    ScanWords(reinterpret_cast<const uint64_t*>(at), at, (at_end - at) / kWord);
    return at_end - at;
  };
  if (part.kind == ScanRegionKind::kHeap && part.use == ScanRegionUse::kTerritory) {
    territory_bytes_ -= to - from;
    free_chunks_.ForEachUsed(from, to, part.begin, part.end, [&](uintptr_t at, uintptr_t at_end) {
      territory_bytes_ += scan(at, at_end);
    });
  } else {
    scan(from, to);
  }
}

// Copied by the kernel, which says where that cannot be. It could when the pages were planned,
// which is what the region says.
void MemoryScanner::ReadRun(const Part& part, uintptr_t from, uintptr_t to) {
  const uintptr_t unreadable = ReadOwnMemory(
      from, to, piece_,
      [this](const uint64_t* words, uintptr_t at, size_t count) { ScanWords(words, at, count); });
  unreadable_bytes_ += unreadable;
  scanned_bytes(part) -= unreadable;
}

void MemoryScanner::ScanMapped(const ScanMapping& mapping) {
  // The rings, where they are not hidden from copies.
  if (mapping.shared && mapping.path == g_process.file.path()) return;
  uintptr_t at = mapping.begin;
  while (at < mapping.end && !out_->failed()) {
    uintptr_t end = mapping.end;
    const Cut* const here = cuts_.At(at, &end);
    if (end - at > PagePlan::kMostBytes) end = at + PagePlan::kMostBytes;
    ScanPart(mapping, at, end, here);
    at = end;
  }
}

bool MemoryScanner::Prepare() {
  piece_ = arena_.Array<uint64_t>(kPiece / kWord);
  if (piece_ == nullptr || !pages_.Prepare() || !vtable_test_.Prepare(arena_) ||
      !territory_.Find(mappings_)) {
    return false;
  }
  if (g_process.allocator_is_glibc) {
    for (size_t i = 0; i < mappings_.size(); ++i) {
      if (mappings_[i].kind != ScanRegionKind::kHeap) continue;
      free_chunks_.Begin(mappings_[i].begin, reinterpret_cast<uintptr_t>(__curbrk));
      break;
    }
  }
  const auto self = reinterpret_cast<uintptr_t>(this);
  cuts_.Find({self, self + sizeof(*this)}, arena_, pages_);
  return !arena_.failed();
}

bool MemoryScanner::Run() {
  const uint64_t began_ns = Nanoseconds(CLOCK_MONOTONIC);
  const uint64_t began_cpu_ns = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  const int parent = sys::Getpid() == job_.pid ? 0 : job_.pid;
  void* const buffers[] = {arena_.Allocate(ScanWriter::kBytes),
                           arena_.Allocate(ScanWriter::kBytes)};
  if (buffers[0] == nullptr || buffers[1] == nullptr) {
    WriteFailedScan(job_.number, job_.reason, job_.label, job_.show, job_.ticks,
                    kNoMemory);
    return false;
  }
  ScanWriter::CountIn(job_.progress->blocks);
  ScanWriter out(job_.number, buffers[0], parent), vtables(job_.number, buffers[1], parent);
  out_ = &out;
  vtables_ = &vtables;
  // The process tells how long its threads stood: they go on in this moment.
  for (int i = 0; parent != 0 && i < 100 && job_.progress->stood_ns.load() == 0; ++i) {
    const timespec pause = {0, 20'000};
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  }
  WriteBegin();
  // The large tables come after: they are not in it.
  if (!mappings_.Read()) {
    if (arena_.failed()) {
      Fail(kNoMemory);
      return false;
    }
    Text<128> why;
    why << "/proc/self/maps cannot be read";
    if (mappings_.error() != 0) why << ": " << ErrorText(mappings_.error());
    // A process that was made to scan has room for one: here there was none, or it may have none.
    if (mappings_.error() == -EMFILE) why << " (raise RLIMIT_NOFILE)";
    Fail(why.view());
    return false;
  }
  if (!Prepare()) {
    Fail(kNoMemory);
    return false;
  }
  WriteThreads();
  WriteHints();
  for (size_t i = 0; i < mappings_.size() && !out.failed(); ++i) {
    if (mappings_[i].part != ScanMapping::Part::kNone) ScanMapped(mappings_[i]);
  }
  CloseWords();
  FlushBegin();
  if (vtables_open_) vtables.End();
  vtables.Flush();
  territory_.WriteTargets(out);
  format::RecordEncoder& done = out.Begin(ScanTag::kDone);
  done.Number(root_bytes_);
  done.Number(territory_bytes_);
  done.Number(absent_bytes_);
  done.Number(unreadable_bytes_);
  done.Number(Nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - began_cpu_ns);
  done.Number(Nanoseconds(CLOCK_MONOTONIC) - began_ns);
  out.End();
  out.Flush();
  return !out.failed() && !vtables.failed();
}

}  // namespace

bool ScanMemory(const ScanJob& job) {
  const arch::EveryProtectionKey readable;
  // Large: not on the stack of the program.
  ScanArena memory;
  void* const place = memory.Allocate(sizeof(MemoryScanner));
  if (place == nullptr) {
    WriteFailedScan(job.number, job.reason, job.label, job.show, job.ticks, kNoMemory);
    return false;
  }
  auto* const scanner = new (place) MemoryScanner(job);
  const bool done = scanner->Run();
  scanner->~MemoryScanner();
  return done;
}

}  // namespace memtrace
