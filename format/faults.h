// Page faults and resident pages, in kFaults blocks.
//
//   payload = record*            `thread` of the block's header is 0; `sequence` counts the
//   record  = tag:varint body_bytes:varint body         kFaults blocks of the trace from 1
//   body    = field*             field = number:varint | bytes: length:varint byte*
//
// "Signed" numbers are zigzag coded: (d << 1) ^ (d >> 63). "ns" are CLOCK_MONOTONIC. New
// fields come at the end; a reader skips tags that it does not know and takes missing fields
// for 0.
//
// Faults come in turns: all that the kernel had told when the library looked, of every
// processor, one after the other. Within a turn they are not in order. The last kFaults of a
// turn says until when every fault has been told: what later turns tell is later, but for a
// fault that was under way at that very moment.

#ifndef MEMTRACE_FORMAT_FAULTS_H_
#define MEMTRACE_FORMAT_FAULTS_H_

#include <cstdint>

namespace memtrace::format {

enum class FaultTag : uint32_t {
  // How faults are known from here on. FaultSource; number ns; minor faults of the process
  // before; major faults before; errno of what was refused (0 nothing); bytes why (a sentence
  // about the refusal, may be empty); rings; bytes of each; ns that a minor fault took, events
  // included (0: not measured)
  kSource = 1,
  // number ns until which all faults are told (0: this turn goes on in a later record); then
  // for each fault four numbers, signed differences to the fault before it (the first to 0):
  // ns << 2 | flags (the difference of ns, zigzag coded, then shifted); kernel tid;
  // address; address of the instruction (0: in the kernel)
  kFaults = 2,
  // Faults that are not told, because nobody had emptied the ring in time or the block could not
  // be written. number of faults; ns when they were missed, at the latest
  kLost = 3,
  // The counts of getrusage right before a turn: ns; minor faults; major faults of the process
  kUsage = 4,
  // A snapshot of the resident pages begins. number 1, 2, ...; SnapshotReason; ticks;
  // PageSource; errno, where the source is not kPagemap; bytes the text of
  // /proc/self/smaps_rollup; bytes that of /proc/self/status; bytes a name (kMark)
  kSnapshot = 5,
  // Pages of the mapping before. number address; then (PageState, pages)*: runs that follow
  // each other. What no run tells is not resident.
  kPages = 6,
  // Memory of the library itself. number begin; end
  kOwnRange = 7,
  // The snapshot is complete. number pages that were not asked for, for there are too many
  kSnapshotDone = 8,
  // A mapping of the snapshot, as /proc/self/smaps tells of it. number begin; end; bytes "rwxp";
  // offset; inode; bytes path; then in KiB: Rss, Pss, Shared_Clean, Shared_Dirty, Private_Clean,
  // Private_Dirty, Anonymous, AnonHugePages, Swap, SwapPss, Locked, ShmemPmdMapped,
  // FilePmdMapped. Its pages follow where it is writable or anonymous and any is there or swapped.
  kMapping = 9,
  // Memory of the library itself came or went: a fault there is the library's, whoever's
  // instruction took it (libc's memcpy, a system call). Not in order. number ns; begin; end;
  // 1 it came, 0 it goes
  kOwnMemory = 10,
};
inline constexpr int kMappingNumbers = 13;  // of those in KiB

inline constexpr uint64_t kFaultMajor = 1, kFaultInKernel = 2;

enum class FaultSource : uint32_t {
  kNone = 0,           // counts of getrusage alone, and snapshots
  kUserEvents = 1,     // each fault of user code
  kAllEvents = 2,      // and of the kernel on its behalf: a read() into fresh memory
};

enum class SnapshotReason : uint32_t { kGrowth = 1, kEnd = 2, kMark = 3 };

enum class PageSource : uint32_t { kNone = 0, kPagemap = 1, kMincore = 2 };

enum class PageState : uint32_t {
  kAbsent = 0,
  kPrivate = 1,   // anonymous, of this process alone
  kFile = 2,      // of a file, or shared memory
  kSwapped = 3,
  kShared = 4,    // anonymous, and not of this process alone: the page of zeros, or shared with
                  //   a process that forked or was forked
  kResident = 5,  // mincore says no more
};

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_FAULTS_H_
