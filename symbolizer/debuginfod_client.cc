// DebuginfodFind(). See debuginfod_client.h.

#include "symbolizer/debuginfod_client.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "symbolizer/elf_file.h"

namespace memtrace::symbolizer {
namespace {

// debuginfod_client is opaque; these are the three calls of elfutils/debuginfod.h.
struct Api {
  void* (*begin)() = nullptr;
  int (*find_debuginfo)(void* client, const unsigned char* id, int length, char** path) = nullptr;
  void (*end)(void* client) = nullptr;
};

const Api* LoadApi() {
  static const Api* const api = []() -> const Api* {
    void* library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto* loaded = new Api;  // for the rest of the process, as the library is
    loaded->begin = reinterpret_cast<void* (*)()>(dlsym(library, "debuginfod_begin"));
    loaded->find_debuginfo =
        reinterpret_cast<int (*)(void*, const unsigned char*, int, char**)>(
            dlsym(library, "debuginfod_find_debuginfo"));
    loaded->end = reinterpret_cast<void (*)(void*)>(dlsym(library, "debuginfod_end"));
    return loaded->begin && loaded->find_debuginfo && loaded->end ? loaded : nullptr;
  }();
  return api;
}

}  // namespace

std::string DebuginfodFind(const std::string& build_id, const std::string& module_path,
                           std::string* note) {
  const char* urls = std::getenv("DEBUGINFOD_URLS");
  if (urls == nullptr || *urls == '\0') {
    *note = "debuginfod: DEBUGINFOD_URLS is not set; set it to the servers to ask";
    return "";
  }
  const Api* api = LoadApi();
  if (api == nullptr) {
    *note = "debuginfod: libdebuginfod.so.1 is not installed (Debian: libdebuginfod1)";
    return "";
  }
  void* client = api->begin();
  if (client == nullptr) {
    *note = "debuginfod: cannot start the client";
    return "";
  }
  char* path = nullptr;
  const int fd =
      api->find_debuginfo(client, reinterpret_cast<const unsigned char*>(build_id.data()),
                          static_cast<int>(build_id.size()), &path);
  api->end(client);
  std::string found;
  if (fd >= 0) {
    close(fd);
    if (path != nullptr) found = path;
  } else {
    *note = absl::StrCat("debuginfod: no debug file for ", module_path, " (build-id ",
                         HexOf(build_id), "): ", std::strerror(-fd));
  }
  std::free(path);
  return found;
}

}  // namespace memtrace::symbolizer
