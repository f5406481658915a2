// TreeAnalysis: what is known of all processes of a run, from one trace each.
//
// The traces are read one after the other, and of each only sums are kept: a few hundred
// bytes for the process, and its sites where they are new to its executable.
// Single-threaded.

#ifndef MEMTRACE_REPORT_TREE_TREE_ANALYSIS_H_
#define MEMTRACE_REPORT_TREE_TREE_ANALYSIS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "report/tree/merged_sites.h"
#include "report/tree/process_tree.h"
#include "report/tree/trace_set.h"

namespace memtrace::report {

struct TreeAnalysis {
  std::string name;  // of the directory or the first file, as the user wrote it
  std::vector<ProcessImage> images;
  ProcessTree tree;
  MergedSites sites;
  struct Skipped {
    std::string file;
    std::string why;
    bool is_copy = false;
  };
  std::vector<Skipped> skipped;     // could not be read, or are another's copy
  std::vector<std::string> spools;  // see TraceSet
  Totals totals;                    // sums; the peak is that of the image with the largest
  uint64_t events = 0, dropped_events = 0;
  uint64_t truncated = 0;           // images
  std::array<LeakAmount, kLeakKinds> leaks;  // sums over the images that were scanned
  uint64_t scanned_early = 0;  // of those, images whose end was not: leak::EndWasNotScanned()
  uint64_t scanned = 0;             // images
  uint64_t sample_bytes = 0;        // the largest of any
  bool waste_is_known = true;       // of all of them
};

// Sees each trace before only sums are kept of it: the element of TreeAnalysis::images that
// it becomes, and its sites, which have been added to `sites`.
using SeeTrace = std::function<void(size_t image, AnalyzedTrace& trace, MergedSites& sites)>;

// `progress`: the share of the bytes that were read, 0 to 1. `jobs`: AnalyzeOptions.
TreeAnalysis AnalyzeTree(const TraceSet& set, const std::function<void(double)>& progress,
                         const SeeTrace& see = {}, unsigned jobs = 0);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_TREE_ANALYSIS_H_
