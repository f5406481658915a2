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
//   regions    mappings cut to pieces, read page by page as /proc/self/pagemap says

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <cstring>
#include <new>

#include "preload/arch/arch.h"
#include "preload/bootstrap_arena.h"
#include "preload/clock.h"
#include "preload/leak_scan/heap_territory.h"
#include "preload/leak_scan/scan_job.h"
#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"
#include "preload/leak_scan/scan_writer.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/scan_hints.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

using format::ScanRegionKind;
using format::ScanRegionUse;
using format::ScanTag;
using format::ScanThreadState;

constexpr uintptr_t kPage = arch::kPageBytes;
constexpr uintptr_t kWord = sizeof(uint64_t);
constexpr uintptr_t kAddresses = uintptr_t{1} << arch::kAddressBits;
constexpr int kMapShift = 20;
// glibc's struct pthread is smaller, and so is where its fields are looked for.
constexpr uintptr_t kDescriptorBytes = 2304;
constexpr size_t kPiece = 256 << 10;  // read at a time

constexpr uintptr_t Down(uintptr_t value, uintptr_t to) { return value & ~(to - 1); }
constexpr uintptr_t Up(uintptr_t value, uintptr_t to) { return Down(value + to - 1, to); }
constexpr uint64_t Zigzag(uint64_t difference) {
  return difference << 1 ^ static_cast<uint64_t>(static_cast<int64_t>(difference) >> 63);
}
uint64_t Load(uintptr_t address) { return *reinterpret_cast<const uint64_t*>(address); }

uint64_t Nanoseconds(clockid_t clock) {
  timespec now = {};
  sys::Call(SYS_clock_gettime, clock, reinterpret_cast<long>(&now));
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// A part of the address space that is not what its mapping is.
struct Cut {
  enum What : uint8_t { kOwn, kDead, kStack, kTerritory } what;  // the first wins over the others
  uintptr_t begin, end;
  uint32_t serial;
  int tid;
};

struct Territory {
  uintptr_t begin, end;
  bool direct;      // its words can be loaded
  uint64_t* words;  // a bit for each word of it that something points to, or null
  size_t first = SIZE_MAX, last = 0;  // of `words`, what has bits
};

class MemoryScanner {
 public:
  explicit MemoryScanner(const ScanJob& job)
      : job_(job), mappings_(arena_), cuts_(arena_), territory_(arena_) {}

  bool Run();

 private:
  bool Prepare();
  void WriteBegin();
  void WriteThreads();
  void WriteHints();
  void WriteThread(int tid, uint32_t serial, ScanThreadState state, uintptr_t stack_pointer,
                   const uint64_t* registers, uintptr_t alternate_begin, uintptr_t alternate_end);
  void CutOwnMemory();
  void CutThreads();
  void CutThread(int tid, uintptr_t control_block, uintptr_t stack_pointer,
                 uintptr_t alternate_begin, uintptr_t alternate_end);
  void CutDeadStacks();
  void CutDeadStack(uintptr_t descriptor, const ScanMapping& mapping);
  void CutArenaHeaps();
  void FindTerritory();
  void AddTerritory(uintptr_t begin, uintptr_t end, bool direct);
  bool LiveTask(int tid) const;
  uint32_t SerialOf(int tid) const;

  void ScanMapped(const ScanMapping& mapping);
  void ScanPart(const ScanMapping& mapping, uintptr_t begin, uintptr_t end, const Cut* cut);
  void WriteRegion(const ScanMapping& mapping, uintptr_t begin, uintptr_t end, const Cut* cut,
                   ScanRegionKind kind, ScanRegionUse use, uint64_t read, uint64_t absent,
                   uint64_t unreadable);
  void PlanPages(const ScanMapping& mapping, uintptr_t begin, uintptr_t end);
  bool Pagemap(uintptr_t begin, size_t pages);
  void TestPages(uintptr_t begin, size_t pages, const ScanMapping& mapping);
  void ScanWords(const uint64_t* words, uintptr_t address, size_t count);
  bool LooksLikeVtable(uint64_t value);
  bool ReadsAsVtable(uint64_t value);
  void AddWord(uintptr_t address, uint64_t value);
  void CloseWords();
  void FlushBegin();
  void AddVtable(uintptr_t address);
  void MarkTarget(uint64_t value, Territory& territory);
  void WriteTargets();
  Territory* InTerritory(uint64_t value);
  void Fail(std::string_view why);

  const ScanJob& job_;
  ScanArena arena_;
  ScanMappings mappings_;
  ScanArray<Cut> cuts_;
  ScanArray<Territory> territory_;
  Territory* last_territory_ = nullptr;

  // For each MiB of the address space what it may have.
  enum : uint8_t { kMayBeTerritory = 1, kMayBeFile = 2 };
  uint8_t* flags_ = nullptr;

  ScanWriter* out_ = nullptr;
  ScanWriter* vtables_ = nullptr;
  bool words_open_ = false;
  bool vtables_open_ = false;
  uint64_t region_ = 0;
  uintptr_t last_word_ = 0;
  uint64_t last_value_ = 0;
  uintptr_t last_vtable_ = 0;
  bool in_territory_ = false;  // the region that is scanned

  // A value that was looked at, and the answer in its lowest bit.
  static constexpr size_t kVtableCache = 4096;
  uint64_t* vtable_cache_ = nullptr;

  enum PagePlan : uint8_t { kAbsent, kRead, kUnreadable };
  uint8_t* plan_ = nullptr;
  size_t plan_capacity_ = 0;
  uint64_t* entries_ = nullptr;  // of pagemap
  static constexpr size_t kEntries = 64 << 10;
  uint64_t* piece_ = nullptr;
  long pagemap_ = -1;
  bool planned_by_pagemap_ = false;  // plan_: what is to be read can be loaded
  static constexpr size_t kTested = 512;
  iovec tested_parts_[kTested];
  size_t tested_pages_[kTested];
  char tested_bytes_[kTested];

  uint64_t root_bytes_ = 0, territory_bytes_ = 0, absent_bytes_ = 0, unreadable_bytes_ = 0;
};

// Where in struct pthread the thread id is: found in the one that is ours.
uintptr_t FindTidOffset(uintptr_t descriptor, int tid) {
  constexpr uintptr_t kUsual = 720;  // glibc 2.26 to 2.40
  const auto at = [descriptor](uintptr_t offset) {
    return *reinterpret_cast<const int*>(descriptor + offset);
  };
  if (at(kUsual) == tid) return kUsual;
  for (uintptr_t offset = 64; offset < kDescriptorBytes / 2; offset += 4) {
    if (at(offset) == tid) return offset;
  }
  return 0;
}

// A stack made by or given to pthread_create, as the descriptor at its upper end says
// (struct pthread: stackblock, stackblock_size, guardsize, reported_guardsize).
bool FindStackBlock(uintptr_t descriptor, uintptr_t readable_end, uintptr_t* begin,
                    uintptr_t* end) {
  uintptr_t last = descriptor + kDescriptorBytes;
  if (last > readable_end) last = readable_end;
  for (uintptr_t at = descriptor + 512; at + 4 * kWord <= last; at += kWord) {
    const uintptr_t block = Load(at);
    const uintptr_t bytes = Load(at + kWord);
    if (block >= descriptor || bytes < 4096 || bytes > uintptr_t{1} << 40) continue;
    if (block + bytes <= descriptor || block + bytes > descriptor + (64 << 10)) continue;
    if (Load(at + 2 * kWord) >= bytes || Load(at + 3 * kWord) > bytes) continue;
    *begin = block;
    *end = block + bytes;
    return true;
  }
  return false;
}

void MemoryScanner::Fail(std::string_view why) {
  if (out_ == nullptr) return;
  CloseWords();
  format::RecordEncoder& out = out_->Begin(ScanTag::kFailed);
  out.Bytes(why);
  out_->End();
  out_->Flush();
}

uint32_t MemoryScanner::SerialOf(int tid) const {
  uint32_t serial = 0;
  ForEachThread([&](const ThreadState& state) {
    if (state.owner_tid.load(std::memory_order_relaxed) == tid && state.handlers_of == 0) {
      serial = state.serial;
    }
  });
  return serial;
}

bool MemoryScanner::LiveTask(int tid) const {
  if (tid == job_.tid) return true;
  for (size_t i = 0; i < job_.others->size(); ++i) {
    if ((*job_.others)[i].tid == tid) return true;
  }
  return false;
}

// --- Cuts -------------------------------------------------------------------

void MemoryScanner::CutOwnMemory() {
  for (size_t i = 0; i < job_.own_count; ++i) {
    cuts_.Add({Cut::kOwn, job_.own[i].begin, Up(job_.own[i].end, kPage), 0, 0});
  }
  for (size_t i = 0; i < arena_.size(); ++i) {
    cuts_.Add({Cut::kOwn, arena_[i].begin, arena_[i].end, 0, 0});
  }
  const auto self = reinterpret_cast<uintptr_t>(this);
  cuts_.Add({Cut::kOwn, self, Up(self + sizeof(*this), kPage), 0, 0});
  // All of the library but what it lent to the program before libc's allocator was known.
  cuts_.Add({Cut::kOwn, job_.library_begin, job_.bootstrap_begin, 0, 0});
  cuts_.Add({Cut::kOwn, job_.bootstrap_end, Up(job_.library_end, kPage), 0, 0});
}

void MemoryScanner::CutThread(int tid, uintptr_t control_block, uintptr_t stack_pointer,
                              uintptr_t alternate_begin, uintptr_t alternate_end) {
  const uint32_t serial = SerialOf(tid);
  // One that asked is in a call: nothing of its own lies below.
  const uintptr_t red_zone = tid == job_.tid ? 0 : arch::kRedZoneBytes;
  const uintptr_t used = Down(stack_pointer - red_zone, kWord);
  const auto has_pointer = [&](uintptr_t begin, uintptr_t end) {
    return stack_pointer - begin < end - begin;
  };
  uintptr_t begin = 0, end = 0;
  const ScanMapping* const mapping = mappings_.Find(control_block);
  if (mapping == nullptr || !FindStackBlock(control_block, mapping->end, &begin, &end)) {
    // The first thread's was made by the kernel.
    for (size_t i = 0; tid == job_.pid && i < mappings_.size(); ++i) {
      if (mappings_[i].kind != ScanRegionKind::kStack) continue;
      begin = mappings_[i].begin;
      end = mappings_[i].end;
    }
  }
  if (begin != end) {
    if (has_pointer(begin, end)) {
      if (used > begin) cuts_.Add({Cut::kDead, begin, used, serial, tid});
      cuts_.Add({Cut::kStack, used > begin ? used : begin, end, serial, tid});
    } else {
      // It runs on another: a coroutine's, or its signal stack. What of this one is in use is
      // not known.
      cuts_.Add({Cut::kStack, begin, end, serial, tid});
    }
  }
  if (alternate_begin != 0) {
    // Not in use it has nothing but what signals left there; ours, for one.
    const uintptr_t dead = has_pointer(alternate_begin, alternate_end) ? used : alternate_end;
    if (dead > alternate_begin) cuts_.Add({Cut::kDead, alternate_begin, dead, serial, tid});
  }
}

void MemoryScanner::CutThreads() {
  CutThread(job_.tid, job_.control_block, job_.stack_pointer, job_.alternate_begin,
            job_.alternate_end);
  for (size_t i = 0; i < job_.others->size(); ++i) {
    const StoppedThread& thread = (*job_.others)[i];
    if (thread.tid == 0 || thread.state.load() != StoppedThread::kParked) continue;
    CutThread(thread.tid, thread.control_block, thread.stack_pointer(), thread.alternate_begin,
              thread.alternate_end);
  }
}

// The stack of a thread that has ended: kept by glibc for a thread to come, or until the thread
// is joined.
void MemoryScanner::CutDeadStack(uintptr_t descriptor, const ScanMapping& mapping) {
  uintptr_t begin, end;
  if (!FindStackBlock(descriptor, mapping.end, &begin, &end)) return;
  // Joined: its id is -1. Detached: it is its own joiner. Else what it returned is still wanted.
  uintptr_t last = descriptor + kDescriptorBytes;
  if (last > end) last = end;
  const uintptr_t tid_offset = FindTidOffset(job_.control_block, job_.tid);
  const int tid = *reinterpret_cast<const int*>(descriptor + tid_offset);
  bool wanted = tid != -1;
  for (uintptr_t at = descriptor + 512; wanted && at + kWord <= last; at += kWord) {
    if (Load(at) == descriptor) wanted = false;
  }
  // The address of its thread-local blocks stays: they are allocated still.
  constexpr uintptr_t kHeaderBytes = 16;
  cuts_.Add({Cut::kDead, begin, descriptor, 0, 0});
  if (wanted) {
    cuts_.Add({Cut::kStack, descriptor, end, 0, 0});
    WriteThread(0, 0, ScanThreadState::kEnding, 0, nullptr, 0, 0);
  } else {
    cuts_.Add({Cut::kDead, descriptor + kHeaderBytes, end, 0, 0});
  }
}

void MemoryScanner::CutDeadStacks() {
  const uintptr_t tid_offset = FindTidOffset(job_.control_block, job_.tid);
  if (tid_offset == 0) return;
  for (size_t i = 1; i < mappings_.size(); ++i) {
    const ScanMapping& mapping = mappings_[i];
    const ScanMapping& below = mappings_[i - 1];
    // Stacks have a page without access at their lower end.
    if (!mapping.anonymous() || mapping.part != ScanMapping::Part::kRead ||
        mapping.kind != ScanRegionKind::kAnonymous || below.end != mapping.begin ||
        below.protection != 0) {
      continue;
    }
    PlanPages(mapping, mapping.begin, mapping.end);
    const size_t pages = (mapping.end - mapping.begin) / kPage;
    for (size_t page = 0; page < pages; ++page) {
      if (plan_[page] != kRead) continue;
      for (uintptr_t at = mapping.begin + page * kPage; at < mapping.begin + (page + 1) * kPage;
           at += 64) {
        if (Load(at) != at || Load(at + 2 * kWord) != at || at + 1024 > mapping.end) continue;
        const int tid = *reinterpret_cast<const int*>(at + tid_offset);
        if (!LiveTask(tid)) CutDeadStack(at, mapping);
      }
    }
  }
}

void MemoryScanner::CutArenaHeaps() {
  if (!g_process.allocator_is_glibc) {
    for (size_t i = 0; i < mappings_.size(); ++i) {
      if (!mappings_[i].anonymous()) continue;
      g_heap_territory.ForEach(mappings_[i].begin, mappings_[i].end,
                               [this](uintptr_t begin, uintptr_t end) {
                                 cuts_.Add({Cut::kTerritory, begin, end, 0, 0});
                               });
    }
    return;
  }
  g_process.arena_heaps.ForEach([this](uintptr_t base, size_t bytes) {
    // It may have shrunk, and may be gone.
    const ScanMapping* const mapping = mappings_.Find(base);
    if (mapping == nullptr || mapping->part != ScanMapping::Part::kRead) return;
    const uintptr_t end = base + bytes < mapping->end ? base + bytes : mapping->end;
    cuts_.Add({Cut::kTerritory, base, end, 0, 0});
  });
}

// --- Territory --------------------------------------------------------------

void MemoryScanner::AddTerritory(uintptr_t begin, uintptr_t end, bool direct) {
  if (begin >= end || end > kAddresses) return;
  Territory territory = {.begin = begin, .end = end, .direct = direct, .words = nullptr};
  const size_t bytes = (end - begin) / kWord / 8 + kWord;
  territory.words = arena_.Array<uint64_t>(bytes / kWord + 1);
  territory_.Add(territory);
  for (uintptr_t at = begin >> kMapShift; at <= (end - 1) >> kMapShift; ++at) {
    flags_[at] |= kMayBeTerritory;
  }
}

void MemoryScanner::FindTerritory() {
  for (size_t i = 0; i < mappings_.size(); ++i) {
    const ScanMapping& mapping = mappings_[i];
    if (mapping.file && (mapping.protection & PROT_READ) != 0 && mapping.end <= kAddresses) {
      for (uintptr_t at = mapping.begin >> kMapShift; at <= (mapping.end - 1) >> kMapShift; ++at) {
        flags_[at] |= kMayBeFile;
      }
    }
    if (mapping.part != ScanMapping::Part::kRead) continue;
    if (mapping.kind == ScanRegionKind::kHeap || mapping.kind == ScanRegionKind::kAnonymous) {
      AddTerritory(mapping.begin, mapping.end, true);
    } else if (mapping.kind != ScanRegionKind::kRelro) {
      g_heap_territory.ForEach(mapping.begin, mapping.end, [&](uintptr_t begin, uintptr_t end) {
        AddTerritory(begin, end, mapping.anonymous());
      });
    }
  }
}

Territory* MemoryScanner::InTerritory(uint64_t value) {
  Territory* const last = last_territory_;
  if (last != nullptr && value - last->begin < last->end - last->begin) return last;
  size_t low = 0, high = territory_.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (territory_[middle].end <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == territory_.size() || territory_[low].begin > value) return nullptr;
  return last_territory_ = &territory_[low];
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
                                uintptr_t alternate_begin, uintptr_t alternate_end) {
  uintptr_t stack_begin = 0, stack_end = 0;
  for (size_t i = 0; i < cuts_.size(); ++i) {
    if (cuts_[i].what == Cut::kStack && cuts_[i].tid == tid) {
      stack_begin = cuts_[i].begin;
      stack_end = cuts_[i].end;
    }
  }
  format::RecordEncoder& out = out_->Begin(ScanTag::kThread);
  out.Number(static_cast<uint64_t>(tid));
  out.Number(serial);
  out.Number(static_cast<uint64_t>(state));
  out.Number(stack_pointer);
  out.Number(stack_begin);
  out.Number(stack_end);
  out.Number(registers != nullptr ? arch::kRegisterCount : 0);
  for (int i = 0; registers != nullptr && i < arch::kRegisterCount; ++i) out.Number(registers[i]);
  out.Number(alternate_begin);
  out.Number(alternate_end);
  out_->End();
  // What only a register points to may be pointed into as well.
  for (int i = 0; registers != nullptr && i < arch::kRegisterCount; ++i) {
    if (Territory* const territory = InTerritory(registers[i])) {
      MarkTarget(registers[i], *territory);
    }
  }
}

void MemoryScanner::WriteThreads() {
  WriteThread(job_.tid, SerialOf(job_.tid), ScanThreadState::kAsking, job_.stack_pointer,
              job_.has_registers ? job_.registers : nullptr, job_.alternate_begin,
              job_.alternate_end);
  for (size_t i = 0; i < job_.others->size(); ++i) {
    const StoppedThread& thread = (*job_.others)[i];
    if (thread.tid == 0) continue;
    const bool parked = thread.state.load() == StoppedThread::kParked;
    WriteThread(thread.tid, SerialOf(thread.tid),
                parked ? ScanThreadState::kParked : ScanThreadState::kUnparked,
                parked ? thread.stack_pointer() : 0, parked ? thread.registers : nullptr,
                thread.alternate_begin, thread.alternate_end);
  }
  // And what the program told (memtrace.h).
  g_scan_hints.ForEachRoot([this](uintptr_t begin, uintptr_t end) {
    format::RecordEncoder& out = out_->Begin(ScanTag::kHint);
    out.Number(static_cast<uint64_t>(format::ScanHint::kRootRegion));
    out.Number(begin);
    out.Number(end);
    out_->End();
  });
}

void MemoryScanner::WriteHints() {
  g_scan_hints.ForEachRoot([this](uintptr_t begin, uintptr_t end) {
    format::RecordEncoder& out = out_->Begin(ScanTag::kHint);
    out.Number(static_cast<uint64_t>(format::ScanHint::kRootRegion));
    out.Number(begin);
    out.Number(end);
    out_->End();
  });
}

void MemoryScanner::WriteRegion(const ScanMapping& mapping, uintptr_t begin, uintptr_t end,
                                const Cut* cut, ScanRegionKind kind, ScanRegionUse use,
                                uint64_t read, uint64_t absent, uint64_t unreadable) {
  CloseWords();
  ++region_;
  format::RecordEncoder& out = out_->Begin(ScanTag::kRegion);
  out.Number(region_);
  out.Number(static_cast<uint64_t>(kind));
  out.Number(static_cast<uint64_t>(use));
  out.Number(begin);
  out.Number(end);
  out.Number(static_cast<uint64_t>(mapping.protection));
  out.Number(cut == nullptr ? 0 : cut->serial != 0 ? cut->serial : static_cast<uint64_t>(cut->tid));
  out.Bytes(First(mapping.path, 4096));
  out.Number(read);
  out.Number(absent);
  out.Number(unreadable);
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
    out_->encoder().Number(Zigzag(value - last_value_));
  }
  last_word_ = address;
  last_value_ = value;
}

// A reader looks for kBegin in the first block.
void MemoryScanner::FlushBegin() {
  if (ScanWriter::blocks() != 0) return;
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

// Blocks of glibc's begin at multiples of 16, so that what the heuristics about a word before
// a place can accept lies at 8 behind one.
void MemoryScanner::MarkTarget(uint64_t value, Territory& territory) {
  if (territory.words == nullptr || value % kWord != 0) return;
  if (g_process.allocator_is_glibc && !g_heap_territory.used() && value % 16 != 8) return;
  const uint64_t word = (value - Down(territory.begin, kWord)) / kWord;
  territory.words[word / 64] |= uint64_t{1} << (word % 64);
  if (word / 64 < territory.first) territory.first = word / 64;
  if (word / 64 > territory.last) territory.last = word / 64;
}

void MemoryScanner::WriteTargets() {
  bool open = false;
  uintptr_t last = 0;
  for (size_t i = 0; i < territory_.size(); ++i) {
    const Territory& territory = territory_[i];
    if (territory.words == nullptr || !territory.direct) continue;
    for (size_t w = territory.first; w <= territory.last; ++w) {
      for (uint64_t bits = territory.words[w]; bits != 0; bits &= bits - 1) {
        const uintptr_t place =
            territory.begin + (w * 64 + static_cast<size_t>(__builtin_ctzll(bits))) * kWord;
        if (place < territory.begin + kWord || place >= territory.end) continue;
        const uint64_t before = Load(place - kWord);
        const bool more = place >= territory.begin + 3 * kWord;
        const uint64_t length = more ? Load(place - 3 * kWord) : 1;
        const uint64_t capacity = more ? Load(place - 2 * kWord) : 0;
        const bool string = length <= capacity && capacity < uint64_t{1} << 40;
        if ((before == 0 || before >= kAddresses) && !string) continue;
        if (open && !out_->HasRoom()) {
          out_->End();
          open = false;
        }
        if (!open) {
          out_->Begin(ScanTag::kTargets);
          open = true;
          last = 0;
        }
        format::RecordEncoder& out = out_->encoder();
        out.Number(place - last);
        out.Number(before);
        out.Number(string);
        if (string) {
          out.Number(length);
          out.Number(capacity);
        }
        last = place;
      }
    }
  }
  if (open) out_->End();
}

// --- Pages ------------------------------------------------------------------

// Reads `pages` entries; false: there is no pagemap for us.
bool MemoryScanner::Pagemap(uintptr_t begin, size_t pages) {
  if (pagemap_ < 0) return false;
  size_t done = 0;
  while (done < pages) {
    const long bytes = sys::Pread(pagemap_, entries_ + done, (pages - done) * kWord,
                                  begin / kPage * kWord + done * kWord);
    if (bytes <= 0) return false;
    done += static_cast<size_t>(bytes) / kWord;
  }
  return true;
}

// Which pages of a file's mapping can be read: a file may be shorter than its mapping.
void MemoryScanner::TestPages(uintptr_t begin, size_t pages, const ScanMapping& mapping) {
  iovec* const remote = tested_parts_;
  for (size_t done = 0; done < pages;) {
    size_t count = 0;
    size_t* const from = tested_pages_;
    for (; done < pages && count < kTested; ++done) {
      if (plan_[done] != kRead) continue;
      from[count] = done;
      remote[count++] = {reinterpret_cast<void*>(begin + done * kPage), 1};
    }
    for (size_t first = 0; first < count;) {
      iovec local = {tested_bytes_, count - first};
      const long read = sys::Call(SYS_process_vm_readv, sys::Getpid(),
                                  reinterpret_cast<long>(&local), 1,
                                  reinterpret_cast<long>(remote + first),
                                  static_cast<long>(count - first), 0);
      if (sys::Failed(read) && read != -14 /* EFAULT */) {
        // Not allowed here. Anonymous memory can be loaded.
        for (; first < count && !mapping.anonymous(); ++first) plan_[from[first]] = kUnreadable;
        break;
      }
      if (read > 0) first += static_cast<size_t>(read);
      if (first < count) plan_[from[first++]] = kUnreadable;
    }
  }
}

// Fills plan_ for the pages of [begin, end).
void MemoryScanner::PlanPages(const ScanMapping& mapping, uintptr_t begin, uintptr_t end) {
  begin = Down(begin, kPage);
  const size_t pages = (Up(end, kPage) - begin) / kPage;
  if (pages > plan_capacity_) {
    plan_ = arena_.Array<uint8_t>(pages);
    plan_capacity_ = plan_ != nullptr ? pages : 0;
    if (plan_ == nullptr) return;
  }
  constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62,
                     kOfFile = uint64_t{1} << 61;
  const bool only_written = mapping.kind == ScanRegionKind::kRelro ||
                            mapping.kind == ScanRegionKind::kModuleData ||
                            mapping.kind == ScanRegionKind::kFile;
  for (size_t done = 0; done < pages;) {
    const size_t count = pages - done < kEntries ? pages - done : kEntries;
    const uintptr_t at = begin + done * kPage;
    planned_by_pagemap_ = !mapping.shared && Pagemap(at, count);
    if (planned_by_pagemap_) {
      for (size_t i = 0; i < count; ++i) {
        const bool there = (entries_[i] & (kPresent | kSwapped)) != 0;
        plan_[done + i] =
            there && !(only_written && (entries_[i] & kOfFile) != 0) ? kRead : kAbsent;
      }
    } else {
      // In a copy the pages of shared mappings are not in its tables yet; the kernel tells
      // which of them it has in memory.
      auto* const resident = reinterpret_cast<uint8_t*>(entries_);
      const bool known = !sys::Failed(sys::Call(SYS_mincore, static_cast<long>(at),
                                                static_cast<long>(count * kPage),
                                                reinterpret_cast<long>(resident)));
      for (size_t i = 0; i < count; ++i) {
        plan_[done + i] = !known || (resident[i] & 1) != 0 ? kRead : kAbsent;
      }
    }
    done += count;
  }
  // What is the process's own can be loaded.
  if (!planned_by_pagemap_ && (mapping.file || mapping.shared)) TestPages(begin, pages, mapping);
}

// --- Words ------------------------------------------------------------------

bool MemoryScanner::ReadsAsVtable(uint64_t value) {
  if (value % kWord != 0 || value < kPage) return false;
  const ScanMapping* const mapping = mappings_.Find(value);
  if (mapping == nullptr || !mapping->file || (mapping->protection & PROT_READ) == 0) return false;
  constexpr size_t kMost = 20;
  uint64_t words[kMost];
  size_t bytes = sizeof(words);
  if (mapping->end - value < bytes) bytes = mapping->end - value;
  iovec local = {words, bytes};
  iovec remote = {reinterpret_cast<void*>(value), bytes};
  const long read = sys::Call(SYS_process_vm_readv, sys::Getpid(), reinterpret_cast<long>(&local),
                              1, reinterpret_cast<long>(&remote), 1, 0);
  if (read <= 0) return false;
  int functions = 0;
  for (size_t i = 0; i < static_cast<size_t>(read) / kWord; ++i) {
    if (words[i] == 0) continue;
    const ScanMapping* const code = mappings_.Find(words[i]);
    if (code == nullptr || !code->file || (code->protection & PROT_EXEC) == 0) return false;
    if (++functions == 2) return true;
  }
  return false;
}

bool MemoryScanner::LooksLikeVtable(uint64_t value) {
  if (value % kWord != 0) return false;
  uint64_t& cached = vtable_cache_[(value / kWord * 0x9e3779b97f4a7c15u) >> 52];
  if ((cached & ~uint64_t{1}) != value) cached = value | ReadsAsVtable(value);
  return cached & 1;
}

void MemoryScanner::ScanWords(const uint64_t* words, uintptr_t address, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = words[i];
    if (value >= kAddresses) continue;
    const uint8_t flags = flags_[value >> kMapShift];
    if (flags == 0) [[likely]] continue;
    if (flags & kMayBeTerritory) {
      if (Territory* const territory = InTerritory(value)) {
        MarkTarget(value, *territory);
        AddWord(address + i * kWord, value);
        continue;
      }
    }
    if ((flags & kMayBeFile) != 0 && in_territory_ && LooksLikeVtable(value)) {
      AddVtable(address + i * kWord);
    }
  }
}

void MemoryScanner::ScanPart(const ScanMapping& mapping, uintptr_t begin, uintptr_t end,
                             const Cut* cut) {
  ScanRegionKind kind = mapping.kind;
  ScanRegionUse use = ScanRegionUse::kRoot;
  if (cut != nullptr && cut->what == Cut::kStack) kind = ScanRegionKind::kStack;
  if (mapping.part == ScanMapping::Part::kNotRead || (cut != nullptr && cut->what <= Cut::kDead)) {
    if (cut == nullptr || cut->what != Cut::kOwn) absent_bytes_ += end - begin;
    // Every small piece of ours would say nothing to anybody.
    if (cut != nullptr && cut->what == Cut::kOwn) return;
    WriteRegion(mapping, begin, end, cut, kind, ScanRegionUse::kNotScanned, 0, end - begin, 0);
    return;
  }
  if ((cut != nullptr && cut->what == Cut::kTerritory) ||
      (kind == ScanRegionKind::kHeap && g_process.allocator_is_glibc)) {
    use = ScanRegionUse::kTerritory;
  }
  PlanPages(mapping, begin, end);
  if (plan_ == nullptr) return;
  const uintptr_t first_page = Down(begin, kPage);
  uint64_t bytes[3] = {};
  for (uintptr_t page = first_page; page < end; page += kPage) {
    const uintptr_t from = page < begin ? begin : page;
    const uintptr_t to = page + kPage < end ? page + kPage : end;
    bytes[plan_[(page - first_page) / kPage]] += to - from;
  }
  absent_bytes_ += bytes[kAbsent];
  unreadable_bytes_ += bytes[kUnreadable];
  (use == ScanRegionUse::kTerritory ? territory_bytes_ : root_bytes_) += bytes[kRead];
  // A read-only mapping of which nothing was ever written has no data of its own.
  if (kind == ScanRegionKind::kRelro && bytes[kRead] == 0) return;
  WriteRegion(mapping, begin, end, cut, kind, use, bytes[kRead], bytes[kAbsent],
              bytes[kUnreadable]);
  // Vtables are asked for in blocks, and blocks may be anywhere in anonymous memory.
  in_territory_ = mapping.kind == ScanRegionKind::kHeap ||
                  mapping.kind == ScanRegionKind::kAnonymous || g_heap_territory.used();
  for (uintptr_t page = first_page; page < end;) {
    if (plan_[(page - first_page) / kPage] != kRead) {
      page += kPage;
      continue;
    }
    uintptr_t run = page;
    while (run < end && run - page < kPiece && plan_[(run - first_page) / kPage] == kRead) {
      run += kPage;
    }
    const uintptr_t from = Up(page < begin ? begin : page, kWord);
    const uintptr_t to = Down(run < end ? run : end, kWord);
    page = run;
    if (from >= to) continue;
    if (planned_by_pagemap_ || mapping.anonymous()) {
      ScanWords(reinterpret_cast<const uint64_t*>(from), from, (to - from) / kWord);
      continue;
    }
    iovec local = {piece_, to - from};
    iovec remote = {reinterpret_cast<void*>(from), to - from};
    const long read = sys::Call(SYS_process_vm_readv, sys::Getpid(),
                                reinterpret_cast<long>(&local), 1,
                                reinterpret_cast<long>(&remote), 1, 0);
    if (read > 0) ScanWords(piece_, from, static_cast<size_t>(read) / kWord);
  }
  CloseWords();
}

void MemoryScanner::ScanMapped(const ScanMapping& mapping) {
  // The rings, where they are not hidden from copies.
  if (mapping.shared && mapping.path == g_process.file.path()) return;
  uintptr_t at = mapping.begin;
  while (at < mapping.end && !out_->failed()) {
    // What begins here, and where the next thing begins or this one ends.
    const Cut* here = nullptr;
    uintptr_t next = mapping.end;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      const Cut& cut = cuts_[i];
      if (cut.end <= at || cut.begin >= next || cut.begin >= cut.end) continue;
      if (cut.begin > at) {
        if (here == nullptr || cut.what < here->what) next = cut.begin;
        continue;
      }
      if (here != nullptr && cut.what >= here->what) continue;
      here = &cut;
      i = static_cast<size_t>(-1);  // again, for what may come before its end
      next = cut.end < mapping.end ? cut.end : mapping.end;
    }
    ScanPart(mapping, at, next, here);
    at = next;
  }
}

bool MemoryScanner::Prepare() {
  flags_ = arena_.Array<uint8_t>(kAddresses >> kMapShift);
  piece_ = arena_.Array<uint64_t>(kPiece / kWord);
  entries_ = arena_.Array<uint64_t>(kEntries);
  vtable_cache_ = arena_.Array<uint64_t>(kVtableCache);
  plan_capacity_ = 16 << 10;
  plan_ = arena_.Array<uint8_t>(plan_capacity_);
  return flags_ != nullptr && piece_ != nullptr && entries_ != nullptr &&
         vtable_cache_ != nullptr && plan_ != nullptr;
}

bool MemoryScanner::Run() {
  const uint64_t began_ns = Nanoseconds(CLOCK_MONOTONIC);
  const uint64_t began_cpu_ns = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  const int parent = sys::Getpid() == job_.pid ? 0 : job_.pid;
  void* const buffers[] = {arena_.Allocate(ScanWriter::kBytes),
                           arena_.Allocate(ScanWriter::kBytes)};
  if (buffers[0] == nullptr || buffers[1] == nullptr) {
    WriteFailedScan(job_.number, job_.reason, job_.label, job_.show, job_.ticks,
                    "no memory for the scan");
    return false;
  }
  ScanWriter::StartCounting();
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
    Fail("/proc/self/maps cannot be read");
    return false;
  }
  if (!Prepare()) {
    Fail("no address space for the scan");
    return false;
  }
  pagemap_ = sys::Open("/proc/self/pagemap", O_RDONLY);
  FindTerritory();
  CutOwnMemory();
  CutThreads();
  WriteThreads();
  WriteHints();
  CutArenaHeaps();
  CutDeadStacks();
  for (size_t i = 0; i < mappings_.size() && !out.failed(); ++i) {
    if (mappings_[i].part != ScanMapping::Part::kNone) ScanMapped(mappings_[i]);
  }
  CloseWords();
  FlushBegin();
  if (vtables_open_) vtables.End();
  vtables.Flush();
  WriteTargets();
  if (pagemap_ >= 0) sys::Close(pagemap_);
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
  // Large: not on the stack of the program.
  ScanArena memory;
  void* const place = memory.Allocate(sizeof(MemoryScanner));
  if (place == nullptr) return false;
  auto* const scanner = new (place) MemoryScanner(job);
  const bool done = scanner->Run();
  scanner->~MemoryScanner();
  return done;
}

}  // namespace memtrace
