#include "report/run/preflight.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "report/base/path.h"
#include "report/base/unique_fd.h"

namespace memtrace::report {
namespace {

constexpr int kMaxInterpreters = 5;     // as in the kernel: more is ELOOP
constexpr size_t kScriptHeadBytes = 256;  // BINPRM_BUF_SIZE: what the kernel looks at

Refusal CannotTrace(absl::string_view path, absl::string_view why) {
  return {kExitNotTraceable, absl::StrCat("cannot trace ", path, ": ", why)};
}

// Valgrind runs the program on a processor of its own, below an allocator of its own.
std::optional<Refusal> CheckLauncher(const std::string& path) {
  const absl::string_view name = FileNameOf(path);
  if (name != "valgrind" && name != "valgrind.bin") return std::nullopt;
  return CannotTrace(path, "a program that runs under Valgrind has Valgrind's allocator; run it "
                           "under one of the two at a time");
}

// The interpreter named by a "#!" line; nullopt when the file has none.
std::optional<std::string> ScriptInterpreter(int fd) {
  char head[kScriptHeadBytes];
  const ssize_t n = pread(fd, head, sizeof(head), 0);
  if (n < 2 || head[0] != '#' || head[1] != '!') return std::nullopt;
  absl::string_view line(head + 2, static_cast<size_t>(n) - 2);
  line = line.substr(0, line.find('\n'));
  line = line.substr(0, line.find('\0'));
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

// Does the kernel ignore set-id bits and capabilities of this file?
bool PrivilegesIgnored(const std::string& path) {
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return true;
  struct statvfs filesystem;
  return statvfs(path.c_str(), &filesystem) == 0 && (filesystem.f_flag & ST_NOSUID) != 0;
}

bool GrantsCapabilities(const std::string& path) {
  if (getuid() == 0) return false;  // root has them: execution is not "secure" for it
  vfs_ns_cap_data data = {};
  const ssize_t n = getxattr(path.c_str(), "security.capability", &data, sizeof(data));
  if (n < static_cast<ssize_t>(XATTR_CAPS_SZ_1)) return false;
  const bool two_words = n >= static_cast<ssize_t>(XATTR_CAPS_SZ_2);
  return data.data[0].permitted != 0 || (two_words && data.data[1].permitted != 0);
}

// The kernel's AT_SECURE (security/commoncap.c): ld.so then drops LD_PRELOAD.
std::optional<Refusal> CheckSecureExecution(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || PrivilegesIgnored(path)) return std::nullopt;
  const uid_t new_euid = (info.st_mode & S_ISUID) ? info.st_uid : geteuid();
  const bool setgid = (info.st_mode & S_ISGID) && (info.st_mode & S_IXGRP);
  const gid_t new_egid = setgid ? info.st_gid : getegid();
  const char* why = nullptr;
  if (new_euid != getuid()) {
    why = "it is setuid";
  } else if (new_egid != getgid()) {
    why = "it is setgid";
  } else if (GrantsCapabilities(path)) {
    why = "it has file capabilities";
  }
  if (why == nullptr) return std::nullopt;
  return CannotTrace(path, absl::StrCat(
      why, ", so the loader ignores preloaded libraries; trace a copy without the privilege (cp ",
      path, " /tmp/), or run memtrace as the user it changes to"));
}

std::optional<Refusal> CheckElf(const std::string& path, const ElfFacts& program,
                                const ElfFacts& library) {
  const std::string ours = MachineName(library.machine);
  if (program.elf_class != library.elf_class) {
    return CannotTrace(
        path, program.elf_class == ELFCLASS32
                  ? absl::StrCat("it is a 32-bit program, and there is a libmemtrace.so for 64-bit "
                                 "ones only; build it for ", ours)
                  : absl::StrCat("it is a 64-bit program and this libmemtrace.so is for 32-bit ",
                                 ours, "; leave --library out"));
  }
  if (program.machine != library.machine || program.byte_order != library.byte_order) {
    return CannotTrace(path, absl::StrCat("it is for ", MachineName(program.machine),
                                          " and this libmemtrace.so is for ", ours,
                                          "; run a memtrace that was built for its machine"));
  }
  if (!program.readable_here()) return std::nullopt;
  if (program.type != ET_EXEC && program.type != ET_DYN) {
    return CannotTrace(path, "it is an ELF file but no program (an object file or a core?)");
  }
  if (program.interpreter.empty()) {
    if (program.is_dynamic_loader()) return std::nullopt;
    return CannotTrace(path, program.dynamic && !program.soname.empty()
                                 ? "it is a shared library and no program"
                                 : "it is statically linked, so no library can be preloaded; "
                                   "link it dynamically (without -static)");
  }
  const absl::string_view loader = FileNameOf(program.interpreter);
  if (absl::StartsWith(loader, "ld-musl")) {
    return CannotTrace(path, "it uses musl libc and this libmemtrace.so needs glibc; "
                             "build it for glibc");
  }
  if (access(program.interpreter.c_str(), F_OK) != 0) {
    return CannotTrace(path, absl::StrCat("its loader ", program.interpreter, " is missing (",
                                          strerror(errno), "); install the libc it was built for"));
  }
  if (!program.sanitizer.empty()) {
    return CannotTrace(path, absl::StrCat("it is built with ", program.sanitizer,
                                          ", which replaces the allocator itself; "
                                          "build it without -fsanitize"));
  }
  return std::nullopt;
}

}  // namespace

Refusal ExplainNotFound(const std::string& name, int error) {
  const bool is_path = name.find('/') != name.npos;
  struct stat info;
  if (is_path && stat(name.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return {kExitNotExecutable, absl::StrCat("cannot run ", name, ": it is a directory")};
  }
  if (error == EACCES && is_path) {
    return {kExitNotExecutable,
            absl::StrCat("cannot run ", name, ": Permission denied; is it executable (chmod +x)?")};
  }
  if (error == EACCES) {
    return {kExitNotExecutable,
            absl::StrCat("cannot run ", name, ": found in PATH, but not executable")};
  }
  if (is_path || name.empty()) {
    const bool missing = error == ENOENT || error == ENOTDIR;
    return {missing ? kExitNotFound : kExitNotExecutable,
            absl::StrCat("cannot run ", name.empty() ? "''" : name, ": ", strerror(error))};
  }
  return {kExitNotFound, absl::StrCat("cannot run ", name, ": not found in PATH; "
                                      "give its path (./", name, "?)")};
}

std::optional<Refusal> CheckTraceable(const std::string& path, const ElfFacts& library) {
  if (auto refusal = CheckLauncher(path)) return refusal;
  std::string file = path;
  for (int depth = 0; depth < kMaxInterpreters; ++depth) {
    const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    // Executable but not readable: ld.so still preloads. The missing trace would tell.
    if (!fd.ok()) return CheckSecureExecution(file);
    if (const auto interpreter = ScriptInterpreter(fd.get())) {
      if (interpreter->empty()) return CannotTrace(file, "its #! line names no interpreter");
      if (access(interpreter->c_str(), F_OK) != 0) {
        return CannotTrace(file, absl::StrCat("its interpreter ", *interpreter, " is missing (",
                                              strerror(errno), "); correct its first line"));
      }
      if (access(interpreter->c_str(), X_OK) != 0) {
        return CannotTrace(file, absl::StrCat("its interpreter ", *interpreter,
                                              " is not executable; correct its first line"));
      }
      file = *interpreter;
      continue;
    }
    const absl::StatusOr<ElfFacts> facts = ReadElfFacts(fd.get());
    if (absl::IsFailedPrecondition(facts.status())) {
      // Neither ELF nor "#!": execvp() gives it to the shell, and so does the launcher.
      if (file == path) {
        file = "/bin/sh";
        continue;
      }
      return CannotTrace(path, absl::StrCat("its interpreter ", file, " is not a program"));
    }
    if (!facts.ok()) return CannotTrace(file, facts.status().message());
    if (auto refusal = CheckElf(file, *facts, library)) return refusal;
    return CheckSecureExecution(file);
  }
  return CannotTrace(path, "too many interpreters of interpreters; correct the #! lines");
}

std::optional<Refusal> CheckPreloaded(const char* ld_preload) {
  if (ld_preload == nullptr) return std::nullopt;
  for (absl::string_view entry : absl::StrSplit(ld_preload, absl::ByAnyChar(": "))) {
    const absl::string_view file = FileNameOf(entry);
    for (absl::string_view runtime : {"libasan", "libtsan", "libmsan", "liblsan", "libhwasan",
                                     "libclang_rt."}) {
      if (absl::StartsWith(file, runtime)) {
        return Refusal{kExitNotTraceable,
                       absl::StrCat("LD_PRELOAD already has ", entry,
                                    ", which replaces the allocator itself; unset LD_PRELOAD")};
      }
    }
  }
  return std::nullopt;
}

}  // namespace memtrace::report
