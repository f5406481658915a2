#include "tests/e2e/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace memtrace::e2e {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Fail(const std::string& what) { throw std::runtime_error(what); }

std::string Preload(const Environment& environment) {
  for (const auto& [name, value] : environment) {
    if (name == "LD_PRELOAD") return value;
  }
  return "";
}

Command WithPreload(Command command, const std::string& libraries) {
  if (!Preload(command.environment).empty()) Fail("the command sets LD_PRELOAD itself");
  command.environment.emplace_back("LD_PRELOAD", libraries);
  return command;
}

// "<program>.<pid>" with anything behind the dot that follows.
bool Matches(const std::string& file, const std::string& program, pid_t pid) {
  const std::string start = program + ".";
  if (file.compare(0, start.size(), start) != 0) return false;
  char* end = nullptr;
  const long number = std::strtol(file.c_str() + start.size(), &end, 10);
  return end != file.c_str() + start.size() && *end == '.' && (pid == 0 || number == pid);
}

std::string OnlyMatch(const std::string& directory, const std::string& suffix,
                      const std::string& program, pid_t pid) {
  std::string found;
  std::string all;
  for (const std::string& file : FilesIn(directory, suffix)) {
    all += " " + file;
    if (!Matches(file, program, pid)) continue;
    if (!found.empty()) {
      Fail("more than one file of " + program + " " + std::to_string(pid) + " in " + directory +
           ": " + found + ", " + file);
    }
    found = file;
  }
  if (found.empty()) {
    Fail("no file of " + program + " " + std::to_string(pid) + " in " + directory + ", only" +
         all);
  }
  return directory + "/" + found;
}

void CollectFunctions(const Json& stack, std::set<std::string>* functions) {
  for (const Json& frame : stack) {
    if (auto name = frame.find("function"); name != frame.end() && name->is_string()) {
      functions->insert(name->get<std::string>());
    }
  }
}

}  // namespace

std::string LibraryPath() { return MEMTRACE_BUILD_DIR "/lib/libmemtrace.so"; }
std::string ToolPath() { return MEMTRACE_BUILD_DIR "/bin/memtrace"; }
std::string ShimPath() { return MEMTRACE_BUILD_DIR "/tests/tracees/libcounting_shim.so"; }
std::string ExamplePath(const std::string& name) { return MEMTRACE_BUILD_DIR "/examples/" + name; }
std::string TraceePath(const std::string& name) {
  return MEMTRACE_BUILD_DIR "/tests/tracees/" + name;
}
std::string SourcePath(const std::string& in_source) {
  return MEMTRACE_SOURCE_DIR "/" + in_source;
}

std::vector<std::string> FilesIn(const std::string& directory, const std::string& suffix) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.size() >= suffix.size() && name.ends_with(suffix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool Exists(const std::string& path) { return fs::exists(path); }

std::string Result::Outcome() const {
  if (timed_out) return "timed out";
  if (signal != 0) return "signal " + std::to_string(signal);
  return "exit " + std::to_string(exit_status);
}

Environment BaseEnvironment(const std::string& home) {
  return {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
          {"HOME", home},
          {"LANG", "C.UTF-8"},
          {"TZ", "UTC"},
          {"COLUMNS", "100"}};
}

Process::Process(const Command& command) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : BaseEnvironment(streams_.path())) {
    const auto is_set = [&](const auto& variable) { return variable.first == name; };
    if (std::none_of(command.environment.begin(), command.environment.end(), is_set)) {
      entries.push_back(name + "=" + value);
    }
  }
  for (const auto& [name, value] : command.environment) entries.push_back(name + "=" + value);
  std::vector<char*> environment, arguments;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  Words words = command.arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string out = streams_ / "out", err = streams_ / "err";
  const std::string in = command.input.empty() ? "/dev/null" : command.input;

  // There also if the child is killed at once.
  WriteFile(out, "");
  WriteFile(err, "");
  pid_ = fork();
  if (pid_ < 0) Fail("fork: " + std::string(std::strerror(errno)));
  if (pid_ != 0) return;
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
  if (dup2(open(in.c_str(), O_RDONLY), 0) < 0 || dup2(open(out.c_str(), flags, 0600), 1) < 0 ||
      dup2(open(err.c_str(), flags, 0600), 2) < 0) {
    _exit(126);
  }
  for (int fd = 3; fd < 256; ++fd) close(fd);
  if (!command.directory.empty() && chdir(command.directory.c_str()) != 0) _exit(126);
  execvpe(arguments[0], arguments.data(), environment.data());
  _exit(127);
}

Process::~Process() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::Signal(int number) const {
  if (!ended_) kill(pid_, number);
}

bool Process::HasWritten(const std::string& text) const {
  return Exists(streams_ / "out") && ReadFile(streams_ / "out").ends_with(text);
}

bool Process::AwaitOutput(const std::string& text) const {
  for (int i = 0; i < 1000 && !HasWritten(text); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return HasWritten(text);
}

Result Process::Wait(int timeout_seconds) {
  Result result;
  result.pid = pid_;
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds);
  int status = 0;
  const std::chrono::microseconds longest(10000);
  for (std::chrono::microseconds pause(200);; pause = std::min(pause * 2, longest)) {
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) break;
    if (ended < 0 && errno != EINTR) Fail("waitpid: " + std::string(std::strerror(errno)));
    if (std::chrono::steady_clock::now() > deadline) {
      result.timed_out = true;
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(pause);
  }
  ended_ = true;
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = ReadFile(streams_ / "out");
  result.err = ReadFile(streams_ / "err");
  return result;
}

Result RunCommand(const Command& command) {
  Process process(command);
  return process.Wait(command.timeout_seconds);
}

Command Traced(Command command, const std::string& traces) {
  command = WithPreload(std::move(command), LibraryPath());
  command.environment.emplace_back("MEMTRACE_OUT", traces + "/%e.%p.mtr");
  return command;
}

Command TracedAndCounted(Command command, const std::string& traces, const std::string& counts) {
  command = WithPreload(std::move(command), LibraryPath() + ":" + ShimPath());
  command.environment.emplace_back("MEMTRACE_OUT", traces + "/%e.%p.mtr");
  command.environment.emplace_back("COUNT_DIR", counts);
  return command;
}

Command Counted(Command command, const std::string& counts) {
  command = WithPreload(std::move(command), ShimPath());
  command.environment.emplace_back("COUNT_DIR", counts);
  return command;
}

std::string ReportText(const std::string& trace, const Words& more) {
  Words words = {ToolPath(), "report", trace};
  words.insert(words.end(), more.begin(), more.end());
  const Result result = RunCommand({.arguments = words, .timeout_seconds = 1800});  // of an hour's soak
  if (result.exit_status != 0) {
    Fail("memtrace report " + trace + ": " + result.Outcome() + ": " + result.err);
  }
  return result.out;
}

Json Report(const std::string& trace, const Words& more) {
  Words words = {"--format", "json"};
  words.insert(words.end(), more.begin(), more.end());
  return Json::parse(ReportText(trace, words));
}

Json BriefReport(const std::string& trace) { return Report(trace, {"--top", "1"}); }

std::string ProgramName(const std::string& program) {
  if (program.find('/') != std::string::npos) return fs::canonical(program).filename();
  std::istringstream directories(BaseEnvironment("").front().second);
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (fs::exists(directory + "/" + program)) return ProgramName(directory + "/" + program);
  }
  Fail(program + " is not installed");
}

MemtraceCounts Counts(const std::string& counts, const std::string& program, pid_t pid) {
  const std::string bytes = ReadFile(OnlyMatch(counts, "", program, pid));
  MemtraceCounts result;
  if (bytes.size() != sizeof(result)) Fail("the counts of " + program + " are cut");
  std::memcpy(&result, bytes.data(), sizeof(result));
  return result;
}

std::string TraceOf(const std::string& traces, const std::string& program, pid_t pid) {
  return OnlyMatch(traces, ".mtr", program, pid);
}

std::vector<std::string> FunctionsOf(const Json& report) {
  std::set<std::string> functions;
  for (const char* list : {"leaks", "sites"}) {
    for (const Json& entry : report.value(list, Json::array())) {
      CollectFunctions(entry.value("stack", Json::array()), &functions);
    }
  }
  return {functions.begin(), functions.end()};
}

bool NamesFunction(const Json& report, const std::string& regex) {
  const std::regex pattern(regex);
  for (const std::string& function : FunctionsOf(report)) {
    if (std::regex_search(function, pattern)) return true;
  }
  return false;
}

uint64_t AllocationsOf(const Json& report, uint64_t bytes) {
  uint64_t count = 0;
  for (const Json& site : report.at("sites")) {
    const auto allocations = site.at("allocations").get<uint64_t>();
    if (site.at("bytes_allocated").get<uint64_t>() == bytes * allocations) count += allocations;
  }
  return count;
}

}  // namespace memtrace::e2e
