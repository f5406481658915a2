// Reloads: a library that is loaded again is, for stacks, what it was the first time.
//
// Each load is a module instance of its own, mostly at another address. A plugin that leaks a block
// whenever it is loaded would be as many call sites with a block each, none of which grows.
// So the words of a path are translated: the first instance of the same file, by its
// build-id, and the address there.
//
//   const Reloads reloads(reader.metadata().modules);
//   if (reloads.any()) words = reloads.PathOfFirst(words, &path);
//
// A library without build-id may be another one at its next load, and is left as it is.

#ifndef MEMTRACE_REPORT_MODEL_RELOADS_H_
#define MEMTRACE_REPORT_MODEL_RELOADS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "format/event_words.h"
#include "report/trace/trace_metadata.h"

namespace memtrace::report {

class Reloads {
 public:
  explicit Reloads(std::span<const ModuleRecord> modules);

  bool any() const { return !by_instance_.empty(); }
  // kPath: its words, with those of the first loads; they are in `*path`.
  const uint64_t* PathOfFirst(const uint64_t* words, std::vector<uint64_t>* path) const;
  // The word of a node (format/event_words.h), as it would be in the first load of its module.
  uint64_t First(uint64_t word) const {
    const uint32_t instance = format::NodeInstance(word);
    if (instance >= by_instance_.size()) return word;
    const Load& load = by_instance_[instance];
    return load.first == 0 ? word
                           : format::NodeWord(format::NodePc(word) + load.distance, load.first);
  }

 private:
  struct Load {
    uint32_t first = 0;     // instance; 0: this is the first
    uint64_t distance = 0;  // to its addresses, modulo 2^64
  };
  std::vector<Load> by_instance_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_RELOADS_H_
