// TraceFile: the file this process spools to.
//
// No descriptor is kept, because programs close and reuse all of them, and use all there are
// (descriptor_table.h): each access opens the file by its absolute path and checks that it is
// still the file that was created: device, inode, and the trace id in its header, for the number
// of a deleted inode is soon given out again. Space is given out by one atomic counter, so
// threads never write to the same place and need no lock. A write that fails leaves a gap, which
// readers step over, unless nothing came behind it yet. With MEMTRACE_KEEP=newest it is Segments
// that gives out space.
//
// What cannot be appended is told in place: status().
//
// When the program is about to give up the right to open it, MakeReserve() maps a part of it
// that is still empty (trace_reserve.h); what is written from then on goes there.
//
// Threads: Append/AppendRing may run on any thread at any time after Create().

#ifndef MEMTRACE_PRELOAD_TRACE_FILE_H_
#define MEMTRACE_PRELOAD_TRACE_FILE_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "format/records.h"
#include "format/trace_format.h"
#include "preload/descriptor_table.h"
#include "preload/open_numbers.h"
#include "preload/segments.h"
#include "preload/sys.h"
#include "preload/trace_name.h"
#include "preload/trace_reserve.h"
#include "preload/trace_status.h"

namespace memtrace {

// A flight recorder gives up its oldest blocks: every thread has to define its stacks anew.
// Asks all of them to do so with their next event (thread_spool.cc).
void AskForNewStacks();

class TraceFile {
 public:
  // Sets the limit for the file that is created next. `max_bytes`: 0 for none. `keep_newest`:
  // at the limit older events are written over; at least Segments::kSmallestFile.
  void SetLimit(uint64_t max_bytes, bool keep_newest) {
    max_bytes_ = max_bytes;
    keep_newest_ = keep_newest;
  }

  // Sets what the status of the file that is created next says of MEMTRACE_LEAK_SIGNAL.
  void SetLeakSignal(uint32_t number) { leak_signal_ = number; }

  // Creates the file that `pattern` and `values` name (trace_name.h), with mode 0600. 0 or -errno.
  long Create(const char* pattern, const TraceName::Values& values,
              const format::FileHeader& header);

  // Whether a flight recorder keeps a block for ever, or may give it up when it is no longer new.
  enum class Keep { kForEver, kWhileNew };

  // Appends one block. False when it could not be written: the block is lost. The file keeps
  // metadata for ever, as far as there is room for that, and events while they are new. `kept`,
  // unless null, is then told which of the two it is.
  bool Append(format::BlockHeader& header, const void* payload, Keep keep = Keep::kForEver,
              Keep* kept = nullptr);
  // The same with `bytes` of records, as one metadata block.
  bool AppendRecords(const void* records, size_t bytes, Keep keep = Keep::kForEver,
                     Keep* kept = nullptr);

  // Appends a ring block with room for `ring_bytes` (header included) and maps
  // it. Null when the space or the shared mapping is refused; and, after want of address space,
  // for a tenth of a second without asking for as much again.
  void* AppendRing(size_t ring_bytes, uint32_t thread);

  // Gives back a ring that AppendRing() mapped.
  void ReleaseRing(void* ring, size_t ring_bytes);

  // While the file can still be opened. 0, also when there is one already; or -errno. A flight
  // recorder gets none: -EOPNOTSUPP.
  long MakeReserve();
  // Before or after it: see TraceReserve.
  bool MustNotPopulateReserve() {
    return reserve_.MustNotPopulate(end_->load(std::memory_order_relaxed));
  }
  const TraceReserve& reserve() const { return reserve_; }
  // RLIMIT_AS is this now.
  void LimitAddressSpace(uint64_t bytes);

  TraceStatus& status() { return status_; }
  // These do what the functions of TraceStatus of that name do. Where a store could find the disk
  // full, because the kernel refuses the space or cannot be asked for it (before Linux 5.14), they
  // write by a system call. They must be called in the order of the scans.
  void AnswerScan(uint64_t answer);
  void NoteScanFinished(uint32_t number);
  void NoteNoScans(format::NoScans why);
  // A block of the scan `number`, or of the end of the process, could not be appended just now.
  void NoteLostScan(uint32_t number);
  void NoteLostEnd();
  // This process, a fork child, could not Create() a file. To be called after Forsake(), by the one
  // thread that begins the trace.
  void NoteUntracedChild(long error);

  // Whether MEMTRACE_KEEP=newest is set.
  bool keeps_newest() const { return segments_.on(); }
  // A number that is raised when older blocks were given up: see Segments::begun().
  uint32_t segments_begun() const { return segments_.begun(); }
  uint64_t segment_bytes() const { return segments_.segment_bytes(); }

  // Since this was asked last, records were lost that a reader needs: it should be told
  // modules and threads again.
  bool TakeLostRecords() {
    return lost_records_.load(std::memory_order_relaxed) &&
           lost_records_.exchange(false, std::memory_order_acquire);
  }

  // The same of records that somebody else keeps: once more, for who kept them may have been asked
  // between their loss and now.
  void NoteLostRecords() { lost_records_.store(true, std::memory_order_release); }

  // To be called in a fork child: closes the descriptors of the file that other threads of the
  // parent had open just then, which nobody else would close.
  void CloseInherited();

  // Writes nothing from now on but what NoteUntracedChild() does: the file is another process's.
  void Forsake() {
    forsaken_.store(true, std::memory_order_relaxed);
    status_.Forsake();
  }

  uint64_t written_bytes() const { return end_->load(std::memory_order_relaxed); }
  // A copy of this process, made by fork, may append to this file as well, while this one does.
  // Not where there is a reserve: see LetCopyAppend().
  bool is_shared_with_copies() const { return end_ != &private_end_; }
  // Around the making of such a copy.
  void LetCopyAppend(bool yes) { reserve_.LetFork(yes); }
  // Why the last Append failed: errno and our own reason. 0 when none has.
  long last_error() const { return last_error_.load(std::memory_order_relaxed); }
  format::RecordingStop last_stop() const { return last_stop_.load(std::memory_order_relaxed); }
  const char* path() const { return name_.c_str(); }

 private:
  long CreateNamed(const TraceName::Values& values, const format::FileHeader& header);
  long OpenNumbered();
  long OpenVerified();
  // `write(descriptor)` with the trace open. 0, or -errno: it cannot be opened, and why is noted.
  template <typename Function>
  long WithFile(Function write);
  void WriteStatus(uint64_t offset, const void* words, size_t bytes);
  void ShareEnd();
  bool Refuse(format::RecordingStop why, long error);
  format::RecordingStop WhyRefused() const;
  // Of a reserve that is used up: whether the size limit is what it was mapped up to.
  format::RecordingStop WhyReserveEnds() const;
  bool AppendToSegment(format::BlockHeader& header, const void* payload, Keep* kept);
  static void Seal(format::BlockHeader& header);
  static long WriteAll(long fd, iovec* parts, int count, uint64_t offset);
  static std::optional<uint64_t> TakeUpTo(std::atomic<uint64_t>& end, uint64_t bytes,
                                          uint64_t limit);
  static long Allocate(long fd, uint64_t offset, uint64_t bytes);
  static long Write(long fd, format::BlockHeader& header, const void* payload, uint64_t offset,
                    bool* torn);
  std::optional<uint64_t> TakeSpace(uint64_t bytes, uint64_t limit);
  void GiveBack(uint64_t offset, uint64_t bytes);
  bool AppendToReserve(format::BlockHeader& header, const void* payload, uint64_t bytes,
                       uint64_t limit);
  // Where a block goes: to the space that was taken for it, or else to the end, below `limit`.
  struct Place {
    uint64_t limit;
    std::optional<uint64_t> offset;
    Keep* kept;  // see Append()
  };
  bool AppendToFile(format::BlockHeader& header, const void* payload, uint64_t bytes, Place place);
  bool WriteAt(long fd, uint64_t offset, format::BlockHeader& header, const void* payload,
               uint64_t bytes);
  uint64_t RingsLimit(uint32_t thread) const;
  std::optional<uint64_t> TakeRingSpace(uint64_t reserved, uint32_t thread);
  void GiveBackRing(uint64_t offset, uint64_t reserved, uint32_t thread);
  bool MappingWasRefused(size_t bytes) const;
  void* MapShared(void* place, size_t bytes, int prot, int flags, long fd, uint64_t offset);
  void* MapRing(long fd, uint64_t offset, uint64_t reserved, format::BlockHeader& header,
                uint64_t ring, size_t ring_bytes, void* place);

  TraceName name_;
  std::atomic<bool> forsaken_{false};  // name_ to trace_id_ are of another process's file
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t trace_id_ = 0;
  // Where the next block goes: on a page that copies of the process share, if there is one.
  std::atomic<uint64_t> private_end_{0};
  std::atomic<uint64_t>* end_ = &private_end_;
  OpenNumbers open_numbers_;
  TraceReserve reserve_;
  std::atomic<bool> making_reserve_{false};
  uint64_t max_bytes_ = 0;
  bool keep_newest_ = false;
  uint32_t leak_signal_ = 0;
  std::atomic<bool> lost_records_{false};
  // The file system of this file has no shared mappings, or none that are safe for the program.
  std::atomic<bool> no_shared_mappings_{false};
  // So many bytes, and more, are not asked for before this: a mapping of that size was refused for
  // want of address space. Only to save the asking: they need not be of one time.
  std::atomic<uint64_t> refused_mapping_bytes_{0};
  std::atomic<uint64_t> no_mapping_until_ns_{0};
  // With segments_: where the next ring goes. Else: the bytes of the rings for
  // which the limit was asked.
  std::atomic<uint64_t> rings_end_{0};
  TraceStatus status_;
  Segments segments_;
  std::atomic<long> last_error_{0};
  std::atomic<format::RecordingStop> last_stop_{};
};

template <typename Function>
long TraceFile::WithFile(Function write) {
  return WithOwnDescriptor([&] {
    const long fd = OpenVerified();
    if (sys::Failed(fd)) return fd;
    write(fd);
    sys::Close(fd);
    return 0L;
  });
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_FILE_H_
