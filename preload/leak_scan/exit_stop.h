// ExitStop: the other threads, and the signals, at the end of the process. Without us the threads
// have microseconds left behind the last destructor, and what they use may be destroyed. So they
// stand from the scan at the exit until End(), and behind it until the process is no more. A signal
// that comes meanwhile would find no process without us: it must not change how this one ends, and
// is taken away by End().
//
// Nobody else begins a scan meanwhile, and the calling thread takes no signal. The threads go on,
// and signals come, where the scan takes long; and where the process may go on behind this, as soon
// as something is asked of it by a signal that one of its threads would take.
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
  // `now`: the process ends right behind this.
  explicit ExitStop(bool now) : now_(now) {}
  ~ExitStop() { Release(); }
  ExitStop(const ExitStop&) = delete;
  ExitStop& operator=(const ExitStop&) = delete;

  // They go on, and signals come: what the process has still to do may need one of them.
  void Release();
  // The same where a signal is there that a thread of the process would take.
  void ReleaseIfAsked();
  // The process ends now: they stand until then. Signals that have come are taken away: should the
  // process still be there a second later, because its own end hangs, it gets them then.
  void End();

  // The calling thread takes no signal from here on, until Release().
  void BlockSignals() {
    if (!no_handler_.has_value()) no_handler_.emplace();
  }
  // Behind that: whom the scan stops. The caller has the right to begin a scan (Beginning), and
  // hands it over: Release() gives it back.
  ThreadStop& threads() { return threads_.emplace(~no_handler_->before()); }
  bool has_threads() const { return threads_.has_value(); }
  // Waits for the copy at work while the others stand; when that cannot be any more, they go on,
  // and signals come.
  void AwaitScanCopy();

 private:
  // The signals that a thread of the process would take, were it not for this.
  SignalsBlocked::Mask Taken() const;
  bool IsAsked() const;
  void PutOffSignals() const;

  const bool now_;
  std::optional<SignalsBlocked> no_handler_;
  std::optional<ThreadStop> threads_;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_EXIT_STOP_H_
