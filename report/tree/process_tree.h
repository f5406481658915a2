// ProcessTree: which of many traces were written by whom, and who made whom.
//
// A trace is of a process *image*: what a process is from its start, or from an exec, to
// its end or to the next exec. How two images are linked:
//
//   kExec    the same process, an image after the other: the same pid, pid namespace and
//            start of the process (ProcessInfo::boot_ticks, which an exec keeps)
//   kFork    the trace names the trace of the process that forked (FileHeader)
//   kParent  the process that was the parent when the trace began: its pid, namespace
//            and start are in the trace; of its images the one that ran then
//   kTime    the same without the start: by pids and times. /proc did not show the
//            process or its parent, so that a pid that was used again may mislead
//
// Of a process that was killed before it had written who it is (ProcessInfo::has_record), the pid
// is known, and the trace that it was forked from. It comes last, and is what the last process
// with its pid became whose next image is not there.
//
// A fork child whose parent and grandparent forked without an event of their own names the
// nearest ancestor that has a trace; where the kernel's word for the parent is closer, that
// is taken. A child that its parent did not outlive belongs to init or a subreaper by the
// time it executes something: its parent is not known (kNone).
//
// Links lead to earlier images only, whatever the traces say: there is no cycle.

#ifndef MEMTRACE_REPORT_TREE_PROCESS_TREE_H_
#define MEMTRACE_REPORT_TREE_PROCESS_TREE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/findings/analysis.h"

namespace memtrace::report {

// What is kept of a trace when it has been read.
struct ProcessImage {
  std::string file;              // as named by the user
  uint64_t trace_id = 0;
  uint64_t parent_trace_id = 0;  // 0: not a fork child
  uint64_t start_monotonic_ns = 0;
  ProcessInfo process;           // its command cut to a few words
  Totals totals;
  uint64_t events = 0;
  uint64_t dropped_events = 0;
  bool truncated = false;        // damage or a cut: `damage` says where
  std::string part;              // of the run's time that it is of (coverage.h); empty: of all
  std::string damage;
  bool events_missing = false;   // Coverage::events_missing
  // The leaks that the scan at the exit found, or the last scan; `no_scan` says why there is
  // none; empty: there is one.
  std::array<LeakAmount, kLeakKinds> leaks;
  std::string no_scan;
  size_t executable = 0;         // element of TreeAnalysis::sites.executables()
};

inline constexpr size_t kNoImage = SIZE_MAX;

enum class ImageLink { kNone, kExec, kFork, kParent, kTime };

struct ImageNode {
  size_t parent = kNoImage;   // the image that made this one, or that this one replaced
  ImageLink link = ImageLink::kNone;
  size_t replaced_by = kNoImage;  // the next image of the same process
  std::vector<size_t> children;   // without replaced_by; in the order of their starts
};

struct ProcessTree {
  std::vector<ImageNode> nodes;  // of the images with the same index
  // Of all images: by host, then by start, those killed at their start last; parents come first.
  std::vector<size_t> order;
  std::vector<size_t> roots;     // images without a parent, in that order
  size_t processes = 0;          // images that replaced none
};

ProcessTree LinkProcesses(const std::vector<ProcessImage>& images);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_PROCESS_TREE_H_
