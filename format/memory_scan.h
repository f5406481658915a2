// Memory scans: where the process kept which pointers at one instant.
//
// The library stops the threads for a moment, forks, and the copy looks through the memory
// and writes down every word that may point into the heap, with its place. Which blocks
// were live at that instant follows from the events; what is lost, and why anything is not,
// is worked out by the reader (docs/leaks.md): the library knows no blocks.
//
//   payload = record*            of a kMemoryScan block; `thread` of its header is the scan's
//   record  = tag:varint body_bytes:varint body          number: 1, 2, ... in each trace;
//   body    = field*             `sequence` counts the blocks of one scan from 1
//   field   = number:varint | bytes: length:varint byte*
//
// Addresses are plain numbers. "Signed" numbers are zigzag coded: (d << 1) ^ (d >> 63).
// New fields come at the end; a reader skips tags that it does not know and takes missing
// fields for 0.
//
// The instant: kBegin's ticks. All threads stand; every event that is committed then has a
// time that is not later, and the first event of every thread after it has a kTime word in
// front with later ticks. So the live blocks are those after all events of spans that begin
// at or before these ticks. A realloc whose intent was written and whose result was not is
// under way: its old block counts as live, and what it holds as a root.
//
// A scan without kDone was cut short: nothing may be concluded from what is missing in it.

#ifndef MEMTRACE_FORMAT_MEMORY_SCAN_H_
#define MEMTRACE_FORMAT_MEMORY_SCAN_H_

#include <cstdint>

namespace memtrace::format {

enum class ScanTag : uint32_t {
  // First. ScanReason; number ticks; CLOCK_MONOTONIC ns; tid that asked; bytes label of who
  // asked (may be empty); ScanShow (which changes a report of this scan is about); ns that
  // the threads stood; ns of the fork; number of the process that scanned (0: this one did,
  // because there could be no other: `note` says why); bytes note, of a copy what it lacks
  kBegin = 1,
  // A thread. number tid; serial, 0 without one; ScanThreadState; stack pointer (0 unknown);
  // begin and end of the stack that was scanned (0, 0: none); number of registers, each a
  // number, in the order of kScanRegisterNames of its architecture (arch/); begin and end of
  // its alternate signal stack (0, 0: none); its thread pointer, which variables of its own lie
  // below (kModule) and libc's descriptor of it at (0 unknown)
  kThread = 2,
  // A stretch of memory, before its words. number of the region: 1, 2, ... in this scan;
  // ScanRegionKind; ScanRegionUse; start; end; protection as in PROT_*; serial or, if that
  // is 0, tid of its thread (stacks); bytes path as in /proc/self/maps ("[heap]", a file);
  // bytes in it that were read; bytes that were not because no page is there, or the page
  // was never written and so is what the file says; bytes that could not be read
  kRegion = 3,
  // Words of a region that point into the heap's territory. number of the region; address of
  // the first word; its value; then (place, value)*: place as the number of words since the
  // word before, value as the signed difference to the value before.
  kWords = 4,
  // Heap memory in front of a place that some word points to, for the heuristics about
  // interior pointers: (address, word at address - 8, 1 if two more numbers follow: the word at
  // address - 24 and at address - 16)*. Each address at most once, ascending, as
  // the difference to the one before (the first to 0). Left out where the word at address - 8 is 0
  // or not below 2^47 and the two more are not plausible: a length at most a capacity below 2^40.
  kTargets = 5,
  // Words of the heap whose value looks like the address of a virtual function table by memcheck's
  // rule: it is aligned and in a mapped file, and of the words there the first two that are not 0
  // are addresses of code. (address)*, ascending, as differences.
  kVtables = 6,
  // One thing that the program told by memtrace.h and that holds at the instant, or that is known
  // of the program otherwise. ScanHint; start; end.
  kHint = 7,
  // Last. bytes of roots read; bytes of the heap's territory read; bytes not read because they
  // cannot hold pointers; bytes that could not be read; CPU ns; elapsed ns of the scan.
  kDone = 8,
  // The scan did not take place, or stops here: bytes why, a sentence. No kDone follows.
  kFailed = 9,
};

enum class ScanReason : uint32_t {
  kExitLate = 1,   // at the end: after the destructors, if any are run
  kExitEarly = 2,  // at the call of exit or the return from main
  kRequest = 3,    // memtrace_leak_check() of memtrace.h
  kOutside = 4,    // `memtrace leaks PID`
};

// Which records the report of this scan shows; the same as in memcheck's leak_check command.
enum class ScanShow : uint32_t { kAny = 0, kNew = 1, kIncreased = 2, kChanged = 3 };

// Why a process takes no request for a scan any more (StatusArea::no_scans).
enum class NoScans : uint32_t {
  kNone = 0,           // it takes them
  kSeccompFilter = 1,  // it has installed a filter, which may not allow what a scan needs
};

enum class ScanThreadState : uint32_t {
  kAsking = 1,    // the one that asked
  kParked = 2,    // stood in our signal handler: registers and stack pointer are exact
  kUnparked = 3,  // did not stop in time: its whole stack was scanned, its registers were not
  kEnding = 4,    // ended without being joined: its descriptor was scanned
};

enum class ScanRegionKind : uint32_t {
  kModuleData = 1,   // a writable part of a module, its .bss too
  kStack = 2,        // of a thread, from its stack pointer, with its thread-local storage
  kHeap = 3,         // [heap]
  kAnonymous = 4,    // private, no file
  kFile = 5,         // private writable mapping of a file that is no module
  kShared = 6,       // MAP_SHARED
  kOther = 7,
  kRelro = 8,        // data of a module that is read-only after relocation
};

// Which words of it are roots. Words within live blocks never are: they are the blocks'
// content. kTerritory: elsewhere in it is free memory and the allocator's own, which is no root.
enum class ScanRegionUse : uint32_t {
  kRoot = 1,         // every word outside of live blocks
  kTerritory = 2,    // no word: the allocator's memory
  kNotScanned = 3,   // kRegion only, for the account: devices, this library's own memory
  // kRegion only: nobody's memory, in which nothing is to be found. What lies below a stack
  // pointer, a signal stack that is not in use, the stack of a thread that has ended.
  kDead = 4,
};

enum class ScanHint : uint32_t {
  kRootRegion = 1,   // memtrace_root_region()
  kIgnored = 2,      // memtrace_ignore_object(): start alone. Of older versions; an event since
  kProgramBreak = 3,  // of [heap], what the program's own brk() or sbrk() added: none of libc's
  // Where a module lies that calls an allocator past the library: it has blocks that are not in the
  // trace; it frees blocks that are.
  kAllocatesUnseen = 4,
  kFreesUnseen = 5,
  kUsableSizes = 6,   // 0, 0: the program has asked malloc_usable_size(), and may use what it said
};

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_MEMORY_SCAN_H_
