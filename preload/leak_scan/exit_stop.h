// ExitStop: the other threads at the end of the process. Without us they have microseconds left
// behind the last destructor, and what they use may be destroyed. So they stand from the scan at
// the exit until End(), and behind it until the process is no more.
//
// Nobody else begins a scan meanwhile, and the calling thread takes no signal. They go on where
// something is asked of the process: by a signal that one of its threads would take, or by a scan
// that takes long.
//
// Threads: the one that ends the process.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_EXIT_STOP_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_EXIT_STOP_H_

#include <cstdint>
#include <optional>

#include "preload/leak_scan/thread_stop.h"
#include "preload/signals_blocked.h"

namespace memtrace {

class ExitStop {
 public:
  ExitStop() = default;
  ~ExitStop() { Release(); }
  ExitStop(const ExitStop&) = delete;
  ExitStop& operator=(const ExitStop&) = delete;

  // They go on, and signals come: what the process has still to do may need one of them.
  void Release();
  // The same where a signal is there that a thread of the process would take.
  void ReleaseIfAsked();
  // The process ends now: they stand until then.
  void End();

  // The steps of the scan. The calling thread takes no signal from here on.
  void BlockSignals() { no_handler_.emplace(); }
  // Behind that: whom the scan stops. The caller has the right to begin a scan (Beginning), and
  // hands it over: Release() gives it back.
  ThreadStop& threads() { return threads_.emplace(~no_handler_->before()); }
  bool has_threads() const { return threads_.has_value(); }
  // Waits for the copy at work while the others stand; when that cannot be any more, they go on.
  void AwaitScanCopy();

 private:
  bool IsAsked() const;

  std::optional<SignalsBlocked> no_handler_;
  std::optional<ThreadStop> threads_;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_EXIT_STOP_H_
