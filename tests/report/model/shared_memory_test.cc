// Names of memory that processes share, as the kernel writes them and as they are kept.

#include "report/model/shared_memory.h"

#include <gtest/gtest.h>

namespace memtrace::report {
namespace {

// memtrace pages strips " (deleted)" of what it asks for, the reader of snapshots does not.
TEST(SharedMemoryTest, IsKnownByItsName) {
  for (const char* shared : {"/dev/zero", "/dev/zero (deleted)", "/SYSV00000000 (deleted)",
                             "/dev/shm/queue", "/memfd:name", "/memfd:name (deleted)"}) {
    EXPECT_TRUE(IsSharedMemory(shared)) << shared;
  }
  for (const char* file : {"", "/dev/zeroes", "/dev/shmem", "/home/memfd:name", "/file"}) {
    EXPECT_FALSE(IsSharedMemory(file)) << file;
  }
}

}  // namespace
}  // namespace memtrace::report
