// MergedSites: the allocating stacks of many processes, those of one executable added up.
//
// Addresses differ from process to process; what a frame is in all of them is a file, by its
// path and build-id, and an offset in it. So stacks are put into one StackTable whose nodes
// are such offsets, and whose module instances are files. The modules in `symbols_of()` have
// bias 0: SiteSymbols and ReportView take it for a process.
//
// Memory grows with files and distinct stacks; the numbers of the processes that have a
// site are kept as runs. Single-threaded.

#ifndef MEMTRACE_REPORT_TREE_MERGED_SITES_H_
#define MEMTRACE_REPORT_TREE_MERGED_SITES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/analysis/analyzer.h"
#include "report/findings/analysis.h"
#include "report/names/site_symbols.h"
#include "report/trace/stack_table.h"

namespace memtrace::report {

// Numbers that are added in increasing order, as runs of consecutive ones.
class NumberRuns {
 public:
  void Add(uint32_t number);
  uint64_t size() const;
  // How many numbers there are in any of `sets`.
  static uint64_t SizeOfUnion(std::span<const NumberRuns* const> sets);

 private:
  std::vector<std::pair<uint32_t, uint32_t>> runs_;  // first, behind the last
};

// The processes of one executable, as if they were one.
struct MergedExecutable {
  std::string path;
  std::string build_id;       // hexadecimal; empty: not known
  uint32_t images = 0;        // traces
  uint32_t exact_images = 0;  // of those, that have everything
  uint64_t dropped_events = 0;
  uint64_t most_live_bytes = 0;  // at the end of one image
  uint64_t most_peak_bytes = 0;  // of one image
  // `sites`, `totals` (sums; peaks are sums of the images' own), `process` as the first image's,
  // but for sample_bytes, the largest, and the allocator: one whose waste is not
  // known, if any has it.
  Analysis analysis;
  std::vector<NumberRuns> images_of;  // of the sites: images by number, 0, 1, ...
  absl::flat_hash_map<std::pair<StackId, uint32_t>, size_t> index;  // (stack, function) -> site
  // By stack and function: what is possibly lost, by the scan of each image that counts.
  absl::flat_hash_map<std::pair<StackId, format::AllocFunction>, LeakAmount> possibly_lost;

  // How many images have one of the sites of `group`: of analysis.sites.
  uint64_t ImagesOf(std::span<const Site* const> group) const;
};

class MergedSites {
 public:
  // The element of executables() that the trace was added to.
  size_t Add(const AnalyzedTrace& trace);
  // Call it when all traces are added. Notes how much of the sampled sites comes from
  // traces of everything.
  void CompleteSamples();
  // The ids in stacks() of stacks of a trace, whether they are of sites or not.
  std::vector<StackId> Translate(const AnalyzedTrace& trace, std::span<const StackId> stacks);

  const std::vector<MergedExecutable>& executables() const { return executables_; }
  // Files as modules, and no sites.
  const Analysis& files() const { return files_; }
  // The stacks of all executables.
  const StackTable& stacks() const { return stacks_; }
  // The stacks of all sites, once each.
  std::vector<StackId> AllStacks() const;

 private:
  class Translation;
  uint32_t FileOf(const ModuleInfo& module);

  std::vector<MergedExecutable> executables_;
  std::map<std::pair<std::string, std::string>, size_t> executable_index_;
  Analysis files_;
  absl::flat_hash_map<std::tuple<std::string, std::string, uint32_t>, uint32_t> file_index_;
  StackTable stacks_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_MERGED_SITES_H_
