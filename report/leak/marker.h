// Marker: which blocks a chain of pointers leads to, from the roots, and by what pointers;
// and of the others, which are lost and which only hang on lost ones. memcheck's rules:
//
//   reachable  by pointers to starts alone, or interior ones that a heuristic takes for one
//   possible   by a chain with an interior pointer in it
//   definite   not at all
//   indirect   only from blocks that are lost themselves
//
// States only rise: a block that was possible and turns out reachable passes that on to
// those it points to. Among lost blocks start and interior pointers are alike.
//
// A *clique* is what a lost block leads to. Its leader is definitely lost, the rest
// indirectly: the first block that is looked at leads, and a leader met later from another
// one becomes part of that one's clique. Blocks of two cliques belong to the first.

#ifndef MEMTRACE_REPORT_LEAK_MARKER_H_
#define MEMTRACE_REPORT_LEAK_MARKER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "report/findings/leaks.h"
#include "report/leak/heap_graph.h"

namespace memtrace::report::leak {

struct Marks {
  std::vector<LeakKind> kind;        // by block: kDefinite .. kReachable
  std::vector<Pointer> heuristic;    // by block: of a reachable one, what it is reachable by;
                                     //   kStart: by pointers to starts alone
  std::vector<uint32_t> leader;      // by block, of an indirect one: who leads to it; or kNoBlock
  // By block, of a definite one: its clique, without itself and what is not counted.
  std::vector<LeakAmount> indirect;
};

// Puts blocks, which it is given by ascending address, in order. Empty: they are.
using ArrangeBlocks = std::function<void(std::vector<uint32_t>* blocks)>;

// `arrange`: in which order lost blocks are looked at; empty: by ascending address.
Marks Mark(const HeapGraph& graph, const ArrangeBlocks& arrange);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_MARKER_H_
