#include "preload/leak_scan/exec_under_way.h"

#include "preload/allowed_calls.h"
#include "preload/process.h"
#include "preload/sys.h"

namespace memtrace {

ExecUnderWay::ExecUnderWay() {
  const OtherCalls calls;
  if (!calls || IsVforkChild()) return;
  counted_ = true;
  g_execs.fetch_add(1);
  // On return from a call to the kernel a signal that is pending is taken.
  do sys::Call(SYS_sched_yield);
  while (g_sending.load());
  sys::Gettid();
}

ExecUnderWay::~ExecUnderWay() {
  if (counted_) g_execs.fetch_sub(1);
}

void ForgetExecs() {
  g_sending.store(false);
  g_execs.store(0);
}

}  // namespace memtrace
