// Records: the slow, rare part of a trace, in kMetadata blocks.
//
//   record = tag:varint body_bytes:varint body
//   body   = field*         in the order listed at each tag; new ones go at the end
//   field  = number:varint  |  bytes: length:varint byte*
//
// A reader takes a missing field for 0 or empty: the writer was older.

#ifndef MEMTRACE_FORMAT_RECORDS_H_
#define MEMTRACE_FORMAT_RECORDS_H_

#include <cstdint>

namespace memtrace::format {

enum class RecordTag : uint32_t {
  // Once, first. bytes library version; bytes executable path; bytes executable build-id;
  // number of arguments, each bytes; number start CLOCK_REALTIME ns; number start CLOCK_MONOTONIC
  // ns; number start ticks; ClockKind; ticks per second estimated at start (0 unknown); page size;
  // ppid; parent's tid that forked (0); bytes kernel release; bytes host name; bytes working
  // directory; AllocatorKind; StackMode; sample bytes (0: every allocation); StampRule; start of
  // the process in clock ticks since boot (field 22 of /proc/PID/stat; an exec keeps it); the same
  // of its parent; inode number of its pid namespace. These three 0: not known
  kProcess = 1,
  // number instance; ModuleFlags; start address; end address (of the whole mapped range); load
  // bias (address in memory minus address in the file's program headers); bytes path as the
  // loader knows it, absolute; bytes build-id; number ticks; bytes ELF soname (may be empty); of
  // a module with thread-local variables: how far below the thread pointer those of a thread
  // begin, the same in each; and their bytes (0, 0: there are none, or they lie where it differs
  // from thread to thread)
  kModule = 2,
  // number instance; number ticks. Frames of the instance may still appear: in
  // nodes defined before. So may its kModule, which comes more than once, or late, where a disk was
  // full or a flight recorder gave up blocks.
  kModuleUnload = 3,
  // number serial; kernel tid; ticks, not after its first event, 0 when told again; bytes name at
  // that time; number serial of the thread whose signal handlers' events these are, of those that
  // interrupted the tracer (0: a thread's own)
  kThread = 4,
  // number serial; number ticks when it was seen to be gone
  kThreadGone = 5,
  // MapReason; number ticks; bytes the text of /proc/self/maps; bytes of private memory in it that
  // are the tracer's own (its shared rings show as mappings of the trace file)
  kMemoryMap = 6,
  // EndReason; number exit status (kExit: as given to exit; else 0); ticks; CLOCK_MONOTONIC ns;
  // minor faults; major faults; peak resident bytes. If more events follow it, the end was
  // premature (an exec that failed, a thread that ran on): the last kEnd counts.
  // Then, or nothing: 1 if a child by vfork(), which shares the process's memory, may have written
  // it, for after a seccomp filter nobody asks who it is; 1 if it is of an exec whose failure a
  // kExecFailed would tell, so that events behind it are of threads that went on until the kernel
  // ended them.
  kEnd = 7,
  // bytes name; number value. Counters of the library, cumulative: the last of a name counts.
  kCounter = 8,
  // bytes text: one sentence for the report's coverage notes. The same may come more than once.
  kNote = 9,
  // number why: RecordingStop; number ticks; number errno. No events follow on purpose.
  kRecordingStopped = 10,
  // How the process ended, as its parent saw it (`memtrace run`). ObservedEndKind; number exit
  // status or signal; CLOCK_REALTIME ns; user plus system CPU time ns; peak resident bytes; 1 if
  // a core was dumped. It outranks kEnd, which a program that is killed has no time to write.
  kObservedEnd = 11,
  // The clock pairs of block headers that the packer merged away: (number ticks,
  // number CLOCK_MONOTONIC ns)*, each the difference to the pair before it, zigzag
  // coded: (d << 1) ^ (d >> 63).
  kClockPairs = 12,
  // A stack that libunwind did not confirm (MEMTRACE_CROSS_CHECK), the first few of each
  // result. CrossCheckResult; thread serial; ticks; CrossCheckLayer; return address of the
  // interposed function; stack pointer after it; the first frame that differs, 0 the
  // innermost; StackMarker of ours; CrossCheckEnd; libunwind's
  // error, positive; frames of ours; frames of libunwind's; how many of ours follow, each
  // (pc, instance) as in a kPath event; how many of libunwind's follow, each (pc as in a
  // kPath event, stack pointer, 1 if guessed by the frame pointer). Innermost first.
  kCrossCheck = 13,
  // The program gave up rights that the library uses. Confinement; number ticks; bytes the call
  // that did it; the file offsets where the reserve begins and ends: a part of the file that was
  // mapped before, in which everything that follows is written. 0 both: there is none. Behind
  // the last block in it there may be nothing up to its end (a hole of the file).
  kConfined = 14,
  // The losses that the raw file's StatusArea told of; written by the packer. number lost events;
  // ticks of the first loss; of the last; RecordingStop; errno; missed events; LostScans, four
  // numbers; LostEnd, two; UntracedChildren, two.
  kLosses = 15,
  // kFileNewest: number ticks. Events before this moment are there in part only: what the
  // process did is known from here on. Written by the packer.
  kWindow = 16,
  // Samples that `memtrace run` took from outside while the program ran (docs/pressure.md).
  // number of columns; each its bytes name; then the samples: number CLOCK_MONOTONIC ns, minus
  // that of the sample before; and of each column 0 when it is not known, else 1 + the zigzag
  // coded difference to the last known value of the column in this record (0 before the first).
  kPressure = 17,
  // bytes: a sentence on what these samples lack.
  kPressureNote = 18,
  // Whether the kernel's OOM killer sent the SIGKILL that ended the process. KillVerdict; bytes
  // a sentence, by what that is known; bytes the program's memory control group; its limit in
  // bytes, 0 none known.
  kKillVerdict = 19,
  // number of the blocks in front of its own. Alone in the last block of a kFileSealed file, which
  // is whole then; where it is not the last, of a file that this one was packed from.
  kSeal = 20,
  // The exec failed whose kEnd has these ticks. number ticks.
  kExecFailed = 21,
};

enum class CrossCheckResult : uint32_t {
  kSame = 0,        // the same frames and a like end; never in a record
  kDifferent = 1,   // a frame differs, or one of the two has more without a reason below
  kGuessedOn = 2,   // ours ends in a marker; libunwind guesses on by the frame pointer
  kWentOn = 3,      // ours ends in a marker; libunwind goes on by unwind information
  kGaveUp = 4,      // libunwind gave up with an error, all frames up to there the same
  kNotUnwound = 5,  // libunwind did not find the way out of the tracer
};
enum class CrossCheckLayer : uint32_t { kMemo = 0, kJoin = 1, kWalk = 2, kGeneric = 3 };
enum class CrossCheckEnd : uint32_t {
  kFirstFrame = 0,  // libunwind knows of no frame outside
  kGaveUp = 1,      // with an error
  kLimit = 2,       // as many frames as there was room for
  kSiteMissed = 3,  // it did not come to the caller of the interposed function
};

enum class ClockKind : uint32_t { kTsc = 1, kMonotonicCoarseNs = 2, kMonotonicNs = 3 };
enum class AllocatorKind : uint32_t { kUnknown = 0, kGlibc = 1, kOther = 2 };
enum class StackMode : uint32_t { kOff = 0, kAll = 1 };
// Which events have a kTime word of their own in front of them, besides those that come every
// few events. kChangeOfOwner: every event of an address whose latest event was another
// thread's, and every mapping. Then spans in the order of their stamps are the order of every
// address (docs/event-order.md).
enum class StampRule : uint32_t { kUnknown = 0, kChangeOfOwner = 1 };
enum ModuleFlags : uint32_t {
  kModulePermanent = 1,   // loaded before the program began
  kModuleExecutable = 2,  // the program itself
  kModuleTracer = 4,      // libmemtrace.so
  kModuleVdso = 8,
};
enum class MapReason : uint32_t { kStart = 1, kGrowth = 2, kEnd = 3 };
enum class EndReason : uint32_t { kExit = 1, kUnderscoreExit = 2, kExec = 3 };
enum class ObservedEndKind : uint32_t { kExit = 1, kSignal = 2 };
enum class KillVerdict : uint32_t { kOomKiller = 1, kNotOomKiller = 2, kNotKnown = 3 };
enum class Confinement : uint32_t {
  kPathLost = 1,         // the trace cannot be opened by its name any more
  kMemoryCallsOnly = 2,  // a seccomp filter: no usage samples, thread names, maps from then on
};
// A program that changes its effective user to and fro: only the first ones are told.
inline constexpr uint32_t kMostConfinementsTold = 16;
enum class RecordingStop : uint32_t {
  kMaxBytes = 1, kWriteFailed = 2, kFileReplaced = 3, kOpenFailed = 4,
  kSandboxed = 5,      // a sandbox of the program leaves no way to write
  kNoMemory = 6,       // in the child of a fork, for its first thread
  kReserveUsedUp = 7,  // what was mapped before the program gave up the right to open the trace
};

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_RECORDS_H_
