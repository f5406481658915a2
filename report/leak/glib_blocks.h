// GLib's ways to use a block by a place within it. What points there is as good as a pointer to the
// start, as memcheck learns from GLib itself, which asks whether it runs under Valgrind.
//
//   gobject  an object of a class with private data: that lies in front of the object, and so does the
//            block's start. The object begins with a pointer to its class, the class with one to the
//            node of its type (struct _TypeNode of gtype.c), which has its own address among its
//            supertypes, and data that lead to the class again.
//            Closures are another such: 32 bytes that GLib does not show are in front of a GClosure, or
//            of a GCClosure, which is a word longer. Nothing but their sizes tells them (heuristics.h).
//   gslice   a slab of slices (gslice.c, before GLib 2.76): 2^n - 16 bytes at a multiple of 2^n, with
//            links to slabs before and behind it at its end (struct _SlabInfo).
//
// Told by the edges of the graph, the others. Any thread.

#ifndef MEMTRACE_REPORT_LEAK_GLIB_BLOCKS_H_
#define MEMTRACE_REPORT_LEAK_GLIB_BLOCKS_H_

#include "report/leak/heap_graph.h"
#include "report/leak/heuristics.h"

namespace memtrace::report::leak {

// Interior pointers to such blocks are pointers by that heuristic from now on, of those in `set`.
void FindGLibBlocks(HeuristicSet set, HeapGraph* graph);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_GLIB_BLOCKS_H_
