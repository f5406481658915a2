#include "report/commands.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "report/output_file.h"

namespace memtrace::report {

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  const std::string line = absl::StrCat("memtrace: ", status.message(), "\n");
  fputs(line.c_str(), stderr);
  return kExitFailed;
}

absl::Status WriteTo(const std::string& path,
                     const std::function<absl::Status(std::ostream&)>& write) {
  if (path.empty() || path == "-") return write(std::cout);
  auto file = OutputFile::Create(path);
  if (!file.ok()) return file.status();
  std::ofstream out((*file)->temporary_path(), std::ios::binary);
  absl::Status status = write(out);
  out.close();
  if (status.ok() && !out) {
    status = absl::UnavailableError(absl::StrCat("cannot write ", path, ": is the disk full?"));
  }
  return status.ok() ? (*file)->Commit() : status;
}

}  // namespace memtrace::report
