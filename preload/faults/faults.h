// Faults: from the kernel's page-fault events to the trace (format/faults.h).
//
//   process begins    OpenFaults()      rings, or the reason why there are none
//   while it runs     DrainFaults()     where the tracer looks at the clock or spools: whoever
//                                       comes by empties the rings of all processors
//   the end           DrainFaults()     right before the last getrusage
//
// Threads that never allocate need nothing of their own: their faults are in the rings of the
// processors. When the process is killed the rings go with it, and what they held since the last
// turn is missing: the reader sees by how much the faults of getrusage exceed those told.
//
// Threads: any, inside a section. DrainFaults() never waits: where another thread is at it,
// there is nothing to do.

#ifndef MEMTRACE_PRELOAD_FAULTS_FAULTS_H_
#define MEMTRACE_PRELOAD_FAULTS_FAULTS_H_

namespace memtrace {

// The calling thread is the only one of the process.
void OpenFaults();
// To be called in a fork child, before its own OpenFaults().
void ForgetFaults();

// kIfDue: the rings fill up. kIfAny: something is in one; else nothing is written.
enum class DrainWhen { kIfDue, kIfAny, kAtEnd };
void DrainFaults(DrainWhen when);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_FAULTS_FAULTS_H_
