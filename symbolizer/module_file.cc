#include "symbolizer/module_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file_stamp.h"
#include "symbolizer/debug_file_finder.h"
#include "symbolizer/sysroot.h"

namespace memtrace::symbolizer {

bool IsNoFile(const std::string& path) {
  return path.empty() || path.front() == '[' || path.starts_with("linux-vdso") ||
         path.starts_with("linux-gate") ||
         // A descriptor of the traced process, which is another file in every process.
         path.starts_with("/proc/self/fd/") || path.starts_with("/proc/thread-self/fd/") ||
         path.starts_with("/dev/fd/");
}

std::vector<std::string> PlacesOf(const std::string& sysroot, const Module& module) {
  std::string path = module.path;
  constexpr std::string_view kDeleted = " (deleted)";  // how /proc/PID/maps marks it
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  std::vector<std::string> names = {path};
  // The same file may also have these names.
  if (path != module.path) names.push_back(module.path);
  if (path.find("\\012") != std::string::npos)
    names.push_back(absl::StrReplaceAll(path, {{"\\012", "\n"}}));
  std::vector<std::string> places;
  for (const std::string& name : names) places.push_back(ResolveInSysroot(sysroot, name));
  // Outside the sysroot only a file that can be proven to be the same.
  if (!sysroot.empty() && !module.build_id.empty())
    places.insert(places.end(), names.begin(), names.end());
  return places;
}

std::optional<ModuleResult> AnswerWithoutFiles(const Options& options, const Module& module,
                                               size_t addresses) {
  if (options.debuginfod || IsNoFile(module.path)) return std::nullopt;
  ModuleResult result;
  result.state = ModuleState::kNotFound;
  result.frames.resize(addresses);
  std::vector<std::string> places = PlacesOf(options.sysroot, module);
  for (std::string& place : DebugFileFinder(options).BuildIdPlaces(module.build_id)) {
    places.push_back(std::move(place));
  }
  for (const std::string& place : places) {
    struct stat st;
    if (stat(place.c_str(), &st) == 0 || (errno != ENOENT && errno != ENOTDIR)) return std::nullopt;
    if (result.message.empty()) result.message = absl::StrCat(place, ": ", std::strerror(errno));
    result.files.push_back(base::FileStamp::Of(place));
  }
  return result;
}

namespace {

// Whether this time of a file is later than when the program loaded it. Asked of a file that only
// its times tell apart from others; copies in a sysroot have times of their own. (A file may also
// be written again as it was; that cannot be told.)
bool IsLater(int64_t time_ns, const Module& module, const Options& options) {
  return module.build_id.empty() && module.loaded_ns != 0 && options.sysroot.empty() &&
         time_ns > module.loaded_ns;
}

}  // namespace

std::unique_ptr<ElfFile> OpenModuleFile(const Options& options, const Module& module,
                                        ModuleResult* result) {
  const std::vector<std::string> places = PlacesOf(options.sysroot, module);
  for (const std::string& place : places) {
    absl::StatusOr<std::unique_ptr<ElfFile>> file = ElfFile::Open(place);
    if (file.ok()) {
      if (absl::Status status = (*file)->CheckLoadable(); !status.ok()) file = status;
    }
    ModuleState state = ModuleState::kNotFound;
    std::string message;
    if (!file.ok()) {
      if (!absl::IsNotFound(file.status())) state = ModuleState::kUnreadable;
      message = std::string(file.status().message());
    } else if (!module.build_id.empty() && (*file)->build_id() != module.build_id) {
      state = ModuleState::kBuildIdDiffers;
      message = absl::StrCat(
          place, ": replaced since the trace: build-id ",
          (*file)->build_id().empty() ? "(none)" : HexOf((*file)->build_id()),
          ", traced ", HexOf(module.build_id));
    } else if (IsLater((*file)->written_ns(), module, options)) {
      state = ModuleState::kWrittenSince;
      message = absl::StrCat(place, ": changed since the trace, and without a build-id");
    } else {
      result->state = ModuleState::kSymbolsOnly;
      result->message.clear();
      // It may be that file with another mode or place, or another one that was
      // moved to where it was.
      if (IsLater((*file)->changed_ns(), module, options)) {
        result->message = result->missed =
            absl::StrCat(place,
                         ": moved there, or its attributes changed, since the trace, and without a "
                         "build-id: if it is another build, its names are wrong");
      }
      return *std::move(file);
    }
    if (place == places.front()) {
      result->state = state;
      result->message = std::move(message);
    }
  }
  return nullptr;
}

}  // namespace memtrace::symbolizer
