// PageSnapshot: which pages of the process are resident at a moment: its mappings as
// /proc/self/smaps tells of them, and the pages of those that are writable, or private memory of
// no file, by /proc/self/pagemap (else mincore), as runs.
//
// At the end (not of a fork child that touched little of what it has from its parent), when the
// peak of the resident memory has grown by half (from 16 MiB on), and at marks. Other threads go on
// meanwhile. What it costs grows with the resident pages, some 10 ns each, which their faults cost
// many times over; the sum of all snapshots at growth is at most three times the last.
//
// Threads: any, inside a section. It never waits: where another thread writes faults or a
// snapshot, this one is not taken.

#ifndef MEMTRACE_PRELOAD_FAULTS_PAGE_SNAPSHOT_H_
#define MEMTRACE_PRELOAD_FAULTS_PAGE_SNAPSHOT_H_

#include <sys/resource.h>

#include <string_view>

#include "format/faults.h"

namespace memtrace {

// Nothing with MEMTRACE_FAULTS=off.
void TakePageSnapshot(format::SnapshotReason reason, std::string_view name = {});
// True: one was taken. What the caller records next is later, and has to be told so: its stamp is
// to be taken anew.
bool TakePageSnapshotIfGrown(long peak_kb);

// To be called in a fork child.
void ForgetPageSnapshots();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_FAULTS_PAGE_SNAPSHOT_H_
