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
#include <string>
#include <vector>

#include "report/analysis/unseen_allocators.h"
#include "report/leak/leak_options.h"
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
  uint64_t not_read = 0;            // files, because the reading was stopped before
  std::vector<std::string> spools;  // see TraceSet
  Totals totals;                    // sums; the peak is that of the image with the largest
  uint64_t events = 0, dropped_events = 0;
  uint64_t truncated = 0;           // images
  std::array<LeakAmount, kLeakKinds> leaks;  // sums over the images that were scanned
  uint64_t scanned_early = 0;  // of those, images whose end was not: leak::EndWasNotScanned()
  uint64_t scanned = 0;             // images
  // What a report on one trace says that it lacks, or that there is to know of it. The first
  // kMostNotes that differ.
  struct Note {
    std::string text;
    uint64_t images = 0;
    size_t first = 0;  // of these
  };
  static constexpr size_t kMostNotes = 1000;
  std::vector<Note> notes;
  uint64_t not_all_recorded = 0;    // images, by AllRecorded()
  uint64_t untraced_children = 0;   // which are no images
  uint64_t invalid_frees = 0, with_invalid_frees = 0;  // InvalidFrees::told; images
  uint64_t sample_bytes = 0;        // the largest of any
  bool waste_is_known = true;       // of all of them
};

// Sees each trace before only sums are kept of it: the element of TreeAnalysis::images that
// it becomes, and its sites, which have been added to `sites`.
using SeeTrace = std::function<void(size_t image, AnalyzedTrace& trace, MergedSites& sites)>;

struct TreeOptions {
  unsigned jobs = 0;           // AnalyzeOptions
  FindModuleNames find_names;  // looks for allocators that are not recorded; empty: nobody does
  leak::LeaderBy leader = leak::LeaderBy::kAddress;
  // AnalyzeOptions. Of a trace that was not read to its end nothing is kept.
  std::function<bool()> stop;
};

// `progress`: the share of the bytes that were read, 0 to 1.
TreeAnalysis AnalyzeTree(const TraceSet& set, const std::function<void(double)>& progress,
                         const SeeTrace& see = {}, const TreeOptions& how = {});

// "the reading was interrupted: this is of the first 3 traces; 2 files were not read"; empty when
// it was not.
std::string NotReadText(const TreeAnalysis& tree);

// "FILE: what it says of itself", or "3 traces: ...", of one of `tree.notes`.
std::string NoteText(const TreeAnalysis& tree, const TreeAnalysis::Note& note);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_TREE_ANALYSIS_H_
