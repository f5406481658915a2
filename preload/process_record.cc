#include "preload/process_record.h"

#include <sys/auxv.h>
#include <sys/utsname.h>

#include <string_view>

#include "format/record_encoder.h"
#include "format/records.h"
#include "preload/append_records.h"
#include "preload/clock.h"
#include "preload/executable_path.h"
#include "preload/proc_file.h"
#include "preload/process.h"
#include "preload/process_identity.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr const char kVersion[] = MEMTRACE_VERSION;

// Who gives his process a title (setproctitle) leaves zeros where its arguments were. A single one
// behind the last argument's own is an empty argument.
std::string_view WithoutFilling(std::string_view arguments) {
  size_t zeros = 0;
  while (zeros < arguments.size() && arguments[arguments.size() - 1 - zeros] == '\0') ++zeros;
  if (zeros > 2) arguments.remove_suffix(zeros - 1);
  return arguments;
}

}  // namespace

void ReadProgram() {
  ReadExecutablePath(g_process.executable);
  ReadProcLink("/proc/self/cwd", g_process.working_directory);
}

void NameProgram(Text<256>& program) {
  std::string_view name = g_process.executable.view();
  name = From(name, name.rfind('/') + 1);  // npos + 1 is 0
  constexpr std::string_view kDeleted = " (deleted)", kMemfd = "memfd:";
  if (name.ends_with(kDeleted)) name = First(name, name.size() - kDeleted.size());
  if (name.starts_with(kMemfd)) name = From(name, kMemfd.size());
  program << name;
  if (program.size() != 0) return;
  const ProcFile comm("/proc/self/comm", 4096);
  for (const char c : First(comm.text(), comm.text().find('\n'))) {
    program << std::string_view(c == '/' ? "_" : &c, 1);
  }
}

void WriteProcess(uint64_t start_realtime_ns, uint64_t start_ns, uint64_t start_ticks,
                  bool forked) {
  const ProcFile command("/proc/self/cmdline", 4 << 20);
  utsname system = {};
  sys::Call(SYS_uname, reinterpret_cast<long>(&system));
  AppendBigRecords(command.text().size() * 2 + (32 << 10), [&](format::RecordEncoder& out) {
    out.Begin(format::RecordTag::kProcess);
    out.Bytes(kVersion);
    out.Bytes(g_process.executable.view());
    out.Bytes("");  // the build-id is in the executable's kModule record
    // Of a program that only begins they are as they were given.
    std::string_view arguments = forked ? WithoutFilling(command.text()) : command.text();
    uint64_t count = 0;
    for (char c : arguments) count += c == 0;
    out.Number(count);
    for (uint64_t i = 0; i < count; ++i) {
      const size_t end = arguments.find('\0');
      out.Bytes(First(arguments, end));
      arguments.remove_prefix(end + 1);
    }
    out.Number(start_realtime_ns);
    out.Number(start_ns);
    out.Number(start_ticks);
    out.Number(static_cast<uint64_t>(g_clock.kind()));
    out.Number(g_clock.kind() == format::ClockKind::kTsc ? g_clock.ticks_per_us() * 1'000'000
                                                         : 1'000'000'000);
    out.Number(getauxval(AT_PAGESZ));
    out.Number(static_cast<uint64_t>(sys::Getppid()));
    out.Number(0);
    out.Bytes(system.release);
    out.Bytes(system.nodename);
    out.Bytes(g_process.working_directory.view());
    out.Number(static_cast<uint64_t>(g_process.allocator_is_glibc ? format::AllocatorKind::kGlibc
                                                                  : format::AllocatorKind::kOther));
    out.Number(static_cast<uint64_t>(g_process.config.stacks ? format::StackMode::kAll
                                                             : format::StackMode::kOff));
    out.Number(g_process.config.sample_bytes);
    out.Number(static_cast<uint64_t>(format::StampRule::kChangeOfOwner));
    out.Number(StartTicksOfSelf());
    out.Number(StartTicksOfProcess(sys::Getppid()));
    out.Number(PidNamespace());
    out.End();
  });
}

}  // namespace memtrace
