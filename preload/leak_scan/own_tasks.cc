#include "preload/leak_scan/own_tasks.h"

#include <cstring>
#include <string_view>

#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/proc_text.h"

namespace memtrace {
namespace {

constexpr size_t kTextBytes = 32 << 10;

}  // namespace

OwnTasks::~OwnTasks() {
  if (buffer_ != nullptr) OwnUnmap(buffer_, kTextBytes);
}

bool OwnTasks::Open() {
  buffer_ = static_cast<char*>(OwnMap(kTextBytes, /*touch=*/false));
  if (buffer_ == nullptr) return false;
  process_ = OwnProcDirectory();
  numbers_are_ours_ = WhoseNumbersInProc() != ProcNumbers::kOfOuterNamespace;
  return true;
}

long OwnTasks::ReadEntries(long directory) {
  return sys::Call(SYS_getdents64, directory, reinterpret_cast<long>(buffer_), kTextBytes);
}

int OwnTasks::TakeEntry(long* at) const {
  // struct linux_dirent64: inode and offset of 8 bytes, length of 2, type of 1, name.
  const char* const entry = buffer_ + *at;
  uint16_t length;
  memcpy(&length, entry + 16, sizeof(length));
  *at += length;
  std::string_view name = entry + 19;
  return static_cast<int>(TakeNumber(name, 10));
}

int OwnTasks::OwnNumber(int listed) {
  if (numbers_are_ours_) return listed;
  constexpr std::string_view kLabel = "NSpid:";
  Text<64> path;
  path << process_.view() << "/task/" << listed << "/status";
  const long bytes = ReadFile(path.c_str(), buffer_, kTextBytes);
  if (bytes <= 0) return 0;
  std::string_view rest(buffer_, static_cast<size_t>(bytes)), numbers;
  const size_t at = rest.find(kLabel);
  if (at == rest.npos) return 0;
  rest.remove_prefix(at + kLabel.size());
  if (!TakeLine(rest, &numbers)) return 0;
  // One for each namespace, the innermost last, a tab before each.
  uint64_t number = 0;
  while (!numbers.empty()) {
    numbers.remove_prefix(1);
    number = TakeNumber(numbers, 10);
  }
  return static_cast<int>(number);
}

bool OwnTasks::IsOfKernel(int listed) {
  // PF_IO_WORKER; PF_USER_WORKER, Linux 6.4.
  constexpr uint64_t kIoWorker = 0x10, kUserWorker = 0x4000;
  Text<64> path;
  path << process_.view() << "/task/" << listed << "/stat";
  const long bytes = ReadFile(path.c_str(), buffer_, kTextBytes);
  if (bytes <= 0) return false;
  const std::string_view stat(buffer_, static_cast<size_t>(bytes));
  const bool is_named_so = From(stat, stat.find('(') + 1).starts_with("iou-");
  const uint64_t flags = StatNumber(stat, 9);
  return (flags & kUserWorker) != 0 || ((flags & kIoWorker) != 0 && is_named_so);
}

SeenTask OwnTasks::LookAt(int listed) {
  SeenTask seen;
  Text<64> path;
  path << process_.view() << "/task/" << listed << "/status";
  long bytes = ReadFile(path.c_str(), buffer_, kTextBytes);
  if (bytes <= 0) return seen;
  seen.known = true;
  const std::string_view status(buffer_, static_cast<size_t>(bytes));
  const size_t state = status.find("State:\t");
  seen.ended = state != status.npos && (status[state + 7] == 'Z' || status[state + 7] == 'X');
  seen.sleeps_deeply = state != status.npos && status[state + 7] == 'D';
  seen.blocked = HexAfter(status, "SigBlk:");
  path.Clear();
  path << process_.view() << "/task/" << listed << "/syscall";
  bytes = ReadFile(path.c_str(), buffer_, kTextBytes);
  seen.call_known = bytes > 0;
  if (seen.call_known) seen.call = SeenCall::Parse({buffer_, static_cast<size_t>(bytes)});
  return seen;
}

}  // namespace memtrace
