// OwnTasks: the threads of this process, as the kernel tells of them in /proc.
//
// They are listed there by the numbers of the pid namespace whose /proc it is. Where that is an
// outer one (unshare --pid --fork) the process itself knows them by others, as all calls do.
//
// Of one thread at a time; makes system calls only.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_OWN_TASKS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_OWN_TASKS_H_

#include <fcntl.h>

#include <cstddef>
#include <cstdint>

#include "preload/descriptor_table.h"
#include "preload/leak_scan/interrupted_call.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {

// What a thread is in.
struct SeenTask {
  bool known = false, ended = false;
  uint64_t blocked = 0;  // signals, as a mask
  bool sleeps_deeply = false;  // no signal wakes it
  bool call_known = false;
  SeenCall call;
};

class OwnTasks {
 public:
  OwnTasks() = default;
  ~OwnTasks();
  OwnTasks(const OwnTasks&) = delete;
  OwnTasks& operator=(const OwnTasks&) = delete;

  // Once, and before all others. False: there is no memory.
  bool Open();

  // visit(number) for each that is listed. False: there is no list. No other is called meanwhile.
  template <typename Visit>
  bool ForEach(Visit visit) {
    Text<64> path;
    path << process_.view() << "/task";
    const long listed = WithDescriptor([&] {
      const long fd = sys::OpenBriefly(path.c_str(), O_DIRECTORY);
      if (sys::Failed(fd)) return fd;
      for (long bytes; (bytes = ReadEntries(fd)) > 0;) {
        for (long at = 0; at < bytes;) {
          if (const int tid = TakeEntry(&at); tid != 0) visit(tid);
        }
      }
      sys::Close(fd);
      return 0L;
    });
    return !sys::Failed(listed);
  }

  bool numbers_are_ours() const { return numbers_are_ours_; }
  // By what the process knows the thread that is listed so; 0: it has ended.
  int OwnNumber(int listed);

  SeenTask LookAt(int listed);

  // io_uring's threads and the like (Linux 5.12) are listed, and never run the program's code: they
  // have nothing of its heap, and block all signals for ever. By the kernel's flags of it, the 9th
  // field of "stat". Before Linux 5.8 one of them was that of a thread that runs a virtual machine:
  // then the name is none of io_uring's.
  bool IsOfKernel(int listed);

 private:
  // Fills the buffer with entries of the directory: so many bytes.
  long ReadEntries(long directory);
  // The thread of the entry at `at`, which becomes the place of the next; 0: it is none.
  int TakeEntry(long* at) const;

  char* buffer_ = nullptr;
  Text<32> process_;  // its directory in /proc
  bool numbers_are_ours_ = true;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_OWN_TASKS_H_
