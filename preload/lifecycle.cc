#include "preload/lifecycle.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <cstring>

#include "format/checksum.h"
#include "preload/allowed_calls.h"
#include "preload/bootstrap_arena.h"
#include "preload/clock.h"
#include "preload/confinement.h"
#include "preload/coverage_notes.h"
#include "preload/cross_check.h"
#include "preload/descriptor_table.h"
#include "preload/exported.h"
#include "preload/faults/faults.h"
#include "preload/faults/page_snapshot.h"
#include "preload/foreign_runtime.h"
#include "preload/leak_scan/exit_call.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/memory_map_record.h"
#include "preload/mapping_query.h"
#include "preload/module_map.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/process_identity.h"
#include "preload/raw_log.h"
#include "preload/real_allocator.h"
#include "preload/recorder.h"
#include "preload/sampled_set.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/thread_state.h"
#include "preload/trace_end.h"
#include "preload/usage_samples.h"

extern "C" int __cxa_at_quick_exit(void (*function)(void*), void* module);

namespace memtrace {

constinit ForkSensitivePage g_switch;
constinit Process g_process;

namespace {

constexpr const char kVersion[] = MEMTRACE_VERSION;

// A file of /proc in a mapping of its own, for as long as the object lives.
class ProcFile {
 public:
  ProcFile(const char* path, size_t capacity) : capacity_(capacity) {
    data_ = static_cast<char*>(OwnMap(capacity, /*touch=*/false));
    const long bytes = data_ != nullptr ? ReadFile(path, data_, capacity) : -ENOMEM;
    size_ = bytes > 0 ? static_cast<size_t>(bytes) : 0;
    error_ = bytes < 0 ? bytes : 0;
  }
  ~ProcFile() {
    if (data_ != nullptr) OwnUnmap(data_, capacity_);
  }
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;
  std::string_view text() const { return {data_, size_}; }
  long error() const { return error_; }  // 0, or -errno

 private:
  const size_t capacity_;
  char* data_ = nullptr;
  size_t size_ = 0;
  long error_ = 0;
};

template <size_t kCapacity>
void ReadLink(const char* path, Text<kCapacity>& out) {
  char buffer[2048];
  out.Clear();
  const long bytes = sys::Readlink(path, buffer, sizeof(buffer));
  if (bytes > 0) out << std::string_view(buffer, static_cast<size_t>(bytes));
}

// For the name of the trace: of the file of the program, also where it was removed or never had a
// name. A mount that is gone leaves none at all: then it is what the kernel calls the first thread.
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

// Is the parent process traced as well? Then this one is a child of the traced
// tree, though exec has made it forget. After su the parent may be another user's, and what it has
// mapped not ours to see.
enum class Parent { kTraced, kNotTraced, kHidden };

Parent LookAtParent() {
  Text<32> path;
  path << "/proc/" << sys::Getppid() << "/maps";
  const ProcFile maps(path.c_str(), 4 << 20);
  if (maps.error() == -EACCES || maps.error() == -EPERM) return Parent::kHidden;
  return maps.text().find("/libmemtrace.so") != std::string_view::npos ? Parent::kTraced
                                                                       : Parent::kNotTraced;
}

bool IsTerminal(int fd) {
  char settings[256];  // larger than any struct termios
  return !sys::Failed(sys::Call(SYS_ioctl, fd, TCGETS, reinterpret_cast<long>(settings)));
}

// Whether to say on standard error what went wrong. The first process of a tree may: the standard
// error of its children may be read or compared by somebody. Where it is not known whether this is
// the first, only a terminal is told.
bool MaySay() {
  const Parent parent = LookAtParent();
  return parent == Parent::kNotTraced || (parent == Parent::kHidden && IsTerminal(2));
}

// Who gives his process a title (setproctitle) leaves zeros where its arguments were. A single one
// behind the last argument's own is an empty argument.
std::string_view WithoutFilling(std::string_view arguments) {
  size_t zeros = 0;
  while (zeros < arguments.size() && arguments[arguments.size() - 1 - zeros] == '\0') ++zeros;
  if (zeros > 2) arguments.remove_suffix(zeros - 1);
  return arguments;
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

// Creates the trace of this process. False: it runs untraced.
bool BeginTrace(uint64_t parent_trace_id) {
  const uint64_t realtime = NowNs(CLOCK_REALTIME);
  const uint64_t start_ns = NowNs(CLOCK_MONOTONIC);
  const uint64_t ticks = g_clock.Now();
  g_process.pid = sys::Getpid();
  const uint64_t seed[] = {realtime, start_ns, ticks, static_cast<uint64_t>(g_process.pid),
                           parent_trace_id};
  g_process.trace_id = format::Checksum(seed, sizeof(seed));

  format::FileHeader header = {};
  memcpy(header.magic, format::kFileMagic, sizeof(header.magic));
  header.version = format::kFormatVersion;
  header.header_bytes = sizeof(header);
  header.trace_id = g_process.trace_id;
  header.parent_trace_id = parent_trace_id;
  header.pid = static_cast<uint32_t>(g_process.pid);
  if (parent_trace_id != 0) header.flags = format::kFileForked;
  if (g_process.config.keep_newest) header.flags |= format::kFileNewest;
  header.header_checksum = format::HeaderChecksum(header);
  Text<256> program;
  NameProgram(program);
  g_process.file.SetLimit(g_process.config.max_bytes, g_process.config.keep_newest);
  g_process.file.SetLeakSignal(g_process.config.leak_signal);
  const long created = g_process.file.Create(
      g_process.config.out.c_str(),
      {g_process.working_directory.c_str(), program.view(), g_process.pid, start_ns}, header);
  if (sys::Failed(created)) {
    if (parent_trace_id != 0 || !MaySay()) return false;
    RawLog("cannot create the trace ", g_process.file.path(), ": ", ErrorText(created), " (error ",
           static_cast<int>(-created),
           "); the program runs untraced (set MEMTRACE_OUT to a file in a writable directory)");
    return false;
  }
  g_process.next_serial.store(1, std::memory_order_relaxed);
  g_process.missed_events.store(0, std::memory_order_relaxed);
  g_process.abandoned_events.store(0, std::memory_order_relaxed);
  g_process.private_rings.store(0, std::memory_order_relaxed);
  g_process.arena_heaps.Clear();
  g_process.sample_seed =
      g_process.config.sample_seed != 0 ? g_process.config.sample_seed : g_process.trace_id;
  g_process.next_sample_stream.store(1, std::memory_order_relaxed);
  g_process.first_break = static_cast<uintptr_t>(sys::Call(SYS_brk));
  g_process.seen_break.store(reinterpret_cast<uintptr_t>(__curbrk), std::memory_order_relaxed);
  WriteProcess(realtime, start_ns, ticks, /*forked=*/parent_trace_id != 0);
  RestartCrossCheck(/*forked=*/parent_trace_id != 0);
  return true;
}

// Has the kernel wipe the switch in fork children. Where it cannot (Linux before 4.14,
// emulations of it), a child would take its parent's rings for its own, which are not
// there: nothing is recorded.
bool TellForkChildren() {
  const long told = sys::Madvise(&g_switch, sizeof(g_switch), MADV_WIPEONFORK);
  if (!sys::Failed(told)) return true;
  if (MaySay()) {
    RawLog("the kernel has no MADV_WIPEONFORK (Linux 4.14), which tells fork children that they "
           "are such: ", ErrorText(told), " (error ", static_cast<int>(-told),
           "); the program runs untraced");
  }
  return false;
}

void NoteOtherDefinition() {
  const OtherDefinition other = FindOtherDefinition();
  if (other.function == nullptr) return;
  Text<512> note;
  if (other.module[0] == 0) {
    note << "the program has a " << other.function
         << " of its own: what is allocated with it is not in this trace, only its mappings and "
            "what libraries get from libc";
  } else {
    note << other.module << " comes before libmemtrace.so and has a " << other.function
         << " of its own: what is allocated with it is not in this trace (name libmemtrace.so "
            "first in LD_PRELOAD)";
  }
  AddCoverageNote(note.view());
}

// The kernel's strings of the environment lie one behind the other, as in /proc/self/environ.
std::string_view StringsOf(char* const* environment) {
  if (environment == nullptr || environment[0] == nullptr) return {};
  const char* const begin = environment[0];
  const char* end = begin;
  for (; *environment != nullptr && *environment == end; ++environment) end += strlen(end) + 1;
  return {begin, static_cast<size_t>(end - begin)};
}

// False: they are not to be had. What was asked for is not known then: where to
// write, for one thing.
bool ReadSettings() {
  const ProcFile file("/proc/self/environ", 4 << 20);
  if (file.error() == 0) {
    g_process.config.Parse(file.text(), MaySay);
    return true;
  }
  // If a program may be executed but not read, its files in /proc belong to root.
  const std::string_view strings = StringsOf(environ);
  if (strings.empty()) {
    if (MaySay()) {
      RawLog(
          "off: this process may not read its own /proc/self/environ, and so no setting (is its "
          "program "
          "executable and not readable?)");
    }
    return false;
  }
  g_process.config.Parse(strings, MaySay);
  return true;
}

// The file of the program. The link is of the loader where that was called by its name, and leads
// nowhere where the program came from a mount that is gone.
void ReadExecutable() {
  ReadLink("/proc/self/exe", g_process.executable);
  if (getauxval(AT_BASE) != 0 && g_process.executable.view() != "/") return;
  Text<8192> path;
  const uintptr_t headers = getauxval(AT_PHDR);
  if (headers == 0 || !NameOfMapping(headers & ~(arch::kPageBytes - 1), path)) return;
  g_process.executable.Clear();
  g_process.executable << path.view();
}

// The kernel's peak is that of a process, which may have been a larger program.
void NoteInheritedPeak() {
  rusage usage;
  const auto resident_kb = static_cast<long>(ResidentBytes() >> 10);
  if (resident_kb == 0 || sys::Failed(sys::Getrusage(RUSAGE_SELF, &usage))) return;
  constexpr long kLeastKb = 8 << 10;
  if (usage.ru_maxrss > 2 * resident_kb + kLeastKb) g_process.inherited_peak_kb = usage.ru_maxrss;
}

bool StartProcess() {
  // First: where all descriptors are in use, files are read by a process of our own.
  LookWhereFirstChildrenGo();
  if (const std::string_view why = WhyNotInThisProcess(); !why.empty()) {
    if (MaySay()) RawLog(why);
    return false;
  }
  if (IsUnderValgrind()) {
    g_under_valgrind.store(true, std::memory_order_relaxed);
    g_process.must_not_clone.store(true, std::memory_order_relaxed);
  }
  const OwnFaultsScope faults;
  if (getauxval(AT_SECURE) != 0) return false;
  if (!ReadSettings()) return false;
  g_clock.Init();
  unwind::StackMemo::faults_of_a_page_read_first = FaultsOfPageReadFirst();
  ReadExecutable();
  ReadLink("/proc/self/cwd", g_process.working_directory);
  const bool is_glibc = RealAllocatorIsGlibc();
  g_process.allocator_is_glibc = is_glibc && !g_process.config.glibc_has_huge_heaps;
  if (!is_glibc) {
    RealAllocatorModule(&g_process.other_allocator.begin, &g_process.other_allocator.bytes);
  }
  if (!g_process.config.children && LookAtParent() == Parent::kTraced) return false;
  if (!TellForkChildren()) return false;
  if (!BeginTrace(/*parent_trace_id=*/0)) return false;
  if (g_process.config.sample_bytes != 0) {
    g_sampled.Begin();
    // Blocks that the bootstrap arena gave out must not reach the real free.
    g_sampled.Watch(g_bootstrap_arena.begin(), g_bootstrap_arena.used_end());
  }
  ReadPermanentModules();
  NoteInheritedPeak();
  NoteOtherDefinition();
  WriteMemoryMap(format::MapReason::kStart);
  OpenFaults();
  return true;
}

// To begin a trace takes some KiB of stack, and the child of a clone() may have been given not
// more than it needs itself.
[[gnu::noinline]] bool OnOwnStack(bool (*function)(uint64_t), uint64_t argument) {
  constexpr size_t kBytes = 64 << 10;
  void* const stack = OwnMap(kBytes, /*touch=*/false);
  if (stack == nullptr) return function(argument);
  struct Job {
    bool (*function)(uint64_t);
    uint64_t argument;
    bool result;
  } job = {function, argument, false};
  arch::CallOnStack(
      static_cast<char*>(stack) + kBytes,
      [](void* data) {
        auto* const job = static_cast<Job*>(data);
        job->result = job->function(job->argument);
      },
      &job);
  OwnUnmap(stack, kBytes);
  return job.result;
}

}  // namespace

void CloseParentsFile() {
  const OtherCalls calls;
  // A process that has a trace of its own has done so already.
  if (calls && g_process.pid != sys::Getpid()) g_process.file.CloseInherited();
}

namespace {

// Our handler runs, the last one of exit(), which libc has taken off its list: also of a child that
// is forked now.
constinit std::atomic<bool> g_at_exit{false};

bool StartForkChild() {
  const uint64_t parent = g_process.trace_id;
  CloseParentsFile();
  g_process.file.Forsake();
  g_process.must_not_clone.store(g_under_valgrind.load(std::memory_order_relaxed),
                                 std::memory_order_relaxed);
  g_process.ended_for_itself.store(false, std::memory_order_relaxed);
  ForgetThreads();
  ForgetOwnMinorFaults();
  ForgetConfinement();
  ForgetScans();
  ForgetFaults();
  ForgetPageSnapshots();
  ForgetMemoryMaps();
  if (!g_process.config.children) return false;
  // It could create no file. What it forks has the same filter.
  if (g_memory_calls_only.load(std::memory_order_relaxed)) return false;
  const OwnFaultsScope faults;
  return OnOwnStack([](uint64_t parent_trace_id) {
    if (!BeginTrace(parent_trace_id)) return false;
    // Without this the children of one parent would all sample the same way.
    if (g_process.config.sample_seed == 0) t_slot.random ^= g_process.trace_id;
    WriteModulesAgain();
    WriteCoverageNotesAgain();
    WriteMemoryMap(format::MapReason::kStart);
    OpenFaults();
    return true;
  }, parent);
}

constinit std::atomic<int> g_quick_exit_status{0};

// The last scan, and the end. Not `now`: the process may go on.
void EndWith(format::EndReason reason, int status, const ScanCaller& caller, bool now) {
  ExitStop stop;
  ScanAtExit(format::ScanReason::kExitLate, caller, &stop, now);
  stop.ReleaseIfAsked();  // by what ends the process otherwise
  NoteEnd(reason, status & 0xff);
  if (now) stop.End();
}

ENTERED void AtExit(int status, void*) {
  g_at_exit.store(true, std::memory_order_relaxed);
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const ScanCaller caller =
      CallerOfExit(reinterpret_cast<uintptr_t>(__builtin_return_address(0)),
                   frame + arch::kFrameAddressToCfa, *reinterpret_cast<const uintptr_t*>(frame));
  EndWith(format::EndReason::kExit, status, caller, /*now=*/true);
}

ENTERED void AtQuickExit(void*) {
  EndAtOnce(g_quick_exit_status.load(std::memory_order_relaxed),
            MEMTRACE_KEPT_REGISTERS_ON_STACK());
}

// Runs before main and before the constructors of the program; with the first
// malloc of ld.so recording has usually begun already.
ENTERED __attribute__((constructor)) void OnLoad() {
  {
    const Section section;  // a trace even of a program that never allocates
    if (!section) return;
  }
  if (g_process.config.cross_check != 0) OpenCrossCheck(MaySay);
  PrepareScans();
  // Registered first, so run last: after the destructors of the program.
  on_exit(&AtExit, nullptr);
  // This is what at_quick_exit() calls, which itself is not a name in the shared libc. Any address
  // in the module names the module.
  __cxa_at_quick_exit(&AtQuickExit, &g_process);
}

}  // namespace

void ExitIsCalled(int status, const ScanCaller& caller) {
  {
    const Section section;  // the thread's state is made before the first destructor runs
  }
  // Our handler has run, or runs, and will not be called: for a signal's handler that leaves by
  // exit(), another thread, a child that was forked meanwhile.
  if (!g_at_exit.load(std::memory_order_relaxed)) return;
  EndWith(format::EndReason::kExit, status, caller, /*now=*/true);
}

void EndAtOnce(int status, uintptr_t stack_pointer, bool now) {
  EndWith(format::EndReason::kUnderscoreExit, status, {stack_pointer}, now);
}

void WillQuickExit(int status) { g_quick_exit_status.store(status, std::memory_order_relaxed); }

// Whether a process that is off stays off. It does not if only the recording of the process that it
// was forked from had ended.
static bool IsOffForGood() {
  return !g_process.ended_for_itself.load(std::memory_order_relaxed) ||
         g_switch.ended.load(std::memory_order_relaxed) != 0;
}

bool EnsureRecording() {
  if (g_process.mode.load(std::memory_order_acquire) == Mode::kOff && IsOffForGood()) return false;
  const SignalsBlocked no_handler;
  const OwnCalls own;
  if (!FindRealAllocator()) return false;  // called back from inside that search
  Mode mode = g_process.mode.load(std::memory_order_acquire);
  if (mode == Mode::kOff && IsOffForGood()) return false;
  // Recording, but the switch is 0: the kernel wiped it, this is a fork child. So is one whose
  // recording ended, and nothing there says that it did.
  const bool child = mode == Mode::kRecording || mode == Mode::kOff;
  if (mode == Mode::kStarting ||
      !g_process.mode.compare_exchange_strong(mode, Mode::kStarting, std::memory_order_acq_rel)) {
    return false;
  }
  if (g_switch.recording.load(std::memory_order_acquire) != 0) {
    g_process.mode.store(Mode::kRecording, std::memory_order_release);
    return true;  // another thread did it meanwhile
  }
  const bool started = child ? StartForkChild() : StartProcess();
  g_process.mode.store(started ? Mode::kRecording : Mode::kOff, std::memory_order_release);
  if (started) {
    const bool stopped = g_process.stopped_by_program.load(std::memory_order_relaxed);
    g_switch.recording.store(stopped ? kRecordStopped : kRecordAll, std::memory_order_release);
  }
  return started;
}

void StopRecording(format::RecordingStop why, long error) {
  // The limit is one for each file. What a filter forbids, it forbids to what is
  // forked from here as well.
  if (why == format::RecordingStop::kMaxBytes) {
    g_switch.ended.store(1, std::memory_order_relaxed);
    g_process.ended_for_itself.store(true, std::memory_order_relaxed);
  }
  g_process.mode.store(Mode::kOff, std::memory_order_release);
  if (g_switch.recording.exchange(0, std::memory_order_acq_rel) == 0) return;
  const uint64_t now = g_clock.Now();
  g_process.file.status().NoteStop(now, why, error);
  AppendRecords<64>([&](format::RecordEncoder& out) {
    out.Begin(format::RecordTag::kRecordingStopped);
    out.Number(static_cast<uint64_t>(why));
    out.Number(now);
    out.Number(static_cast<uint64_t>(error));
    out.End();
  });
}

}  // namespace memtrace
