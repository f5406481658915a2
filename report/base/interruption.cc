#include "report/base/interruption.h"

namespace memtrace::report {
namespace {

volatile sig_atomic_t g_requested = 0;

void Request(int) { g_requested = 1; }

}  // namespace

Interruption::Interruption() {
  g_requested = 0;
  struct sigaction action = {};
  action.sa_handler = Request;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler != SIG_IGN) sigaction(SIGINT, &action, nullptr);
}

Interruption::~Interruption() { sigaction(SIGINT, &before_, nullptr); }

bool Interruption::requested() const { return g_requested != 0; }

}  // namespace memtrace::report
