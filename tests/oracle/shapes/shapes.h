// A corpus of stack shapes. Every library of the corpus holds the same functions,
// built by another compiler or with other flags; each calls the probe below frames
// of one kind. The test that loads it compares what unwinders make of the stack.

#ifndef MEMTRACE_TESTS_ORACLE_SHAPES_SHAPES_H_
#define MEMTRACE_TESTS_ORACLE_SHAPES_SHAPES_H_

// Called with the name of the shape; compares the stacks of this moment.
using Probe = void (*)(const char* shape);

// In each library: all of its shapes, one after the other.
extern "C" using RunShapesFunction = void(Probe probe);

#endif  // MEMTRACE_TESTS_ORACLE_SHAPES_SHAPES_H_
