// ExecUnderWay: an exec and a signal that stops a thread keep out of each other's way.
//
// A signal that is pending outlives an exec and ends the next program, which has no handler for it.
// So none is sent while a thread is about to exec, and an exec waits for one that is just being
// sent.
//
// Who sends says so and then looks for execs; who execs says so and then looks for senders. Of two
// at a time one sees the other.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_EXEC_UNDER_WAY_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_EXEC_UNDER_WAY_H_

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace memtrace {

inline constinit std::atomic<uint32_t> g_execs{0};
inline constinit std::atomic<bool> g_sending{false};

// Lives from before the call of exec until that failed. Waits for a signal that is just
// being sent, so that the calling thread takes it before its program is replaced. In a
// vfork child it does nothing.
class ExecUnderWay {
 public:
  ExecUnderWay();
  ~ExecUnderWay();
  ExecUnderWay(const ExecUnderWay&) = delete;
  ExecUnderWay& operator=(const ExecUnderWay&) = delete;

 private:
  bool counted_ = false;
};

// There is one of these now.
inline bool IsExecUnderWay() { return g_execs.load() != 0; }

// What send() returns; -EAGAIN, and it is not called, while an exec is under way.
template <typename Send>
long SendUnlessExec(Send send) {
  g_sending.store(true);
  const long result = IsExecUnderWay() ? -EAGAIN : send();
  g_sending.store(false);
  return result;
}

// To be called in a fork child.
void ForgetExecs();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_EXEC_UNDER_WAY_H_
