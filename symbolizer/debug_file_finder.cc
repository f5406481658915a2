// DebugFileFinder: the search. See debug_file_finder.h.

#include "symbolizer/debug_file_finder.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <climits>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/whole_io.h"
#include "symbolizer/debuginfod_client.h"
#include "symbolizer/sysroot.h"

namespace memtrace::symbolizer {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) == nullptr ? path : std::string(resolved);
}

// The checksum that .gnu_debuglink records: CRC-32 over the whole file.
bool CrcOf(const std::string& path, uint32_t* result) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  uLong crc = crc32(0, nullptr, 0);
  const bool read = base::ReadParts(fd, [&](std::string_view part) {
    crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
    return true;
  });
  close(fd);
  *result = static_cast<uint32_t>(crc);
  return read;
}

std::unique_ptr<ElfFile> OpenWithBuildId(const std::string& path, const std::string& build_id) {
  auto file = ElfFile::Open(path);
  if (!file.ok() || (*file)->build_id() != build_id) return nullptr;
  return *std::move(file);
}

// Remembers the first candidate with symbols while looking for one with DWARF.
class Best {
 public:
  bool Offer(std::unique_ptr<ElfFile> file) {  // true: the search is over
    if (file == nullptr) return false;
    const bool dwarf = file->HasDwarf();
    if (dwarf || (best_ == nullptr && file->HasSymbolTable())) best_ = std::move(file);
    return dwarf;
  }
  std::unique_ptr<ElfFile> Take() { return std::move(best_); }

 private:
  std::unique_ptr<ElfFile> best_;
};

}  // namespace

std::vector<std::string> DebugFileFinder::Places(const std::string& path) const {
  if (options_.sysroot.empty()) return {path};
  return {ResolveInSysroot(options_.sysroot, path), path};
}

std::vector<std::string> DebugFileFinder::BuildIdPlaces(const std::string& build_id) const {
  std::vector<std::string> places;
  const std::string hex = HexOf(build_id);
  if (hex.size() < 4) return places;
  for (const std::string& directory : options_.debug_dirs) {
    for (std::string& place : Places(absl::StrCat(directory, "/.build-id/", hex.substr(0, 2), "/",
                                                  hex.substr(2), ".debug"))) {
      places.push_back(std::move(place));
    }
  }
  return places;
}

std::unique_ptr<ElfFile> DebugFileFinder::FindFor(const ElfFile& module,
                                                  const std::string& module_path,
                                                  std::string* note) const {
  Best best;
  for (const std::string& place : BuildIdPlaces(module.build_id())) {
    if (best.Offer(OpenWithBuildId(place, module.build_id()))) return best.Take();
  }

  uint32_t crc = 0;
  const std::string link = module.DebugLink(&crc);
  // A link is a bare file name; anything else could lead anywhere.
  if (!link.empty() && link.find('/') == std::string::npos) {
    const std::string here = DirectoryOf(module.path());
    const std::string real = DirectoryOf(RealPath(module.path()));
    std::vector<std::string> places = {absl::StrCat(here, "/", link),
                                       absl::StrCat(here, "/.debug/", link)};
    if (real != here) {
      places.push_back(absl::StrCat(real, "/", link));
      places.push_back(absl::StrCat(real, "/.debug/", link));
    }
    for (const std::string& directory : options_.debug_dirs) {
      std::vector<std::string> homes = {DirectoryOf(module_path)};
      if (options_.sysroot.empty() && real != homes[0]) homes.push_back(real);
      for (const std::string& home : homes) {
        for (std::string& place : Places(absl::StrCat(directory, "/", home, "/", link))) {
          places.push_back(std::move(place));
        }
      }
    }
    for (const std::string& place : places) {
      auto file = ElfFile::Open(place);
      if (!file.ok()) continue;
      const bool is_the_module =
          (*file)->device() == module.device() && (*file)->inode() == module.inode();
      if (is_the_module) continue;
      uint32_t actual = 0;
      const bool ids_agree = module.build_id().empty() || (*file)->build_id().empty() ||
                             module.build_id() == (*file)->build_id();
      if (!ids_agree || !CrcOf(place, &actual) || actual != crc) {
        *note = absl::StrCat(place, ": belongs to another build of ", module_path,
                             "; not used for debug information");
        continue;
      }
      if (best.Offer(*std::move(file))) {
        note->clear();
        return best.Take();
      }
    }
  }

  if (options_.debuginfod && !module.build_id().empty()) {
    std::string why;
    const std::string path = DebuginfodFind(module.build_id(), module_path, &why);
    if (!path.empty() && best.Offer(OpenWithBuildId(path, module.build_id()))) note->clear();
    if (!why.empty()) absl::StrAppend(note, note->empty() ? "" : "; ", why);
  }
  return best.Take();
}

std::unique_ptr<ElfFile> DebugFileFinder::FindByBuildId(const std::string& build_id,
                                                        std::string* note) const {
  Best best;
  for (const std::string& place : BuildIdPlaces(build_id)) {
    if (best.Offer(OpenWithBuildId(place, build_id))) return best.Take();
  }
  if (options_.debuginfod && !build_id.empty()) {
    const std::string path = DebuginfodFind(build_id, "", note);
    if (!path.empty()) best.Offer(OpenWithBuildId(path, build_id));
  }
  return best.Take();
}

std::unique_ptr<ElfFile> DebugFileFinder::FindAlternate(const ElfFile& debug,
                                                        const std::string& name,
                                                        const std::string& build_id) const {
  std::vector<std::string> places;
  if (name.starts_with("/")) {
    places = Places(name);
  } else {
    // Relative to where the debug file really is: .build-id/ has links in some distributions.
    places = {absl::StrCat(DirectoryOf(debug.path()), "/", name),
              absl::StrCat(DirectoryOf(RealPath(debug.path())), "/", name)};
  }
  for (std::string& place : BuildIdPlaces(build_id)) places.push_back(std::move(place));
  for (const std::string& directory : options_.debug_dirs) {
    const std::string base = name.substr(name.rfind('/') + 1);
    for (std::string& place : Places(absl::StrCat(directory, "/.dwz/", base))) {
      places.push_back(std::move(place));
    }
  }
  for (const std::string& place : places) {
    if (auto file = OpenWithBuildId(place, build_id)) return file;
  }
  return nullptr;
}

}  // namespace memtrace::symbolizer
