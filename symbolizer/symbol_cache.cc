#include "symbolizer/symbol_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/build_id_note.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/module_answer.h"
#include "symbolizer/own_build.h"
#include "symbolizer/private_file.h"
#include "symbolizer/sealed_file.h"

namespace memtrace::symbolizer {
namespace {

constexpr PrivateKind kKind = {".sym", "MTSYMS01"};
constexpr uint64_t kCalled = uint64_t{1} << 63;  // of a key: Address::called

uint64_t KeyOf(const Address& address) { return address.offset | (address.called ? kCalled : 0); }

void PutNumber(uint64_t number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

bool TakeNumber(std::string_view* rest, uint64_t* number) {
  if (rest->size() < sizeof(*number)) return false;
  std::memcpy(number, rest->data(), sizeof(*number));
  rest->remove_prefix(sizeof(*number));
  return true;
}

// Only what will still be true next time.
bool MayBeKept(const Options& options, const ModuleResult& result) {
  const bool found =
      result.state == ModuleState::kDebugInfo || result.state == ModuleState::kSymbolsOnly;
  // A server that has no debug file today may have one tomorrow.
  return found && !(options.debuginfod && result.state != ModuleState::kDebugInfo);
}

bool StillTrue(const std::vector<FileStamp>& stamps) {
  return std::all_of(stamps.begin(), stamps.end(), [](const FileStamp& stamp) {
    return FileStamp::Of(stamp.path) == stamp;
  });
}

void CopyAllButFrames(const ModuleResult& from, ModuleResult* to) {
  to->state = from.state;
  to->message = from.message;
  to->missed = from.missed;
  to->debug_file = from.debug_file;
  to->files = from.files;
}

}  // namespace

std::string SymbolCacheDirectory(const std::string& chosen) {
  std::string directory = chosen;
  if (directory.empty()) {
    const char* set = std::getenv("MEMTRACE_SYMBOL_CACHE");
    if (set != nullptr) directory = set;
  }
  if (directory == "off") return "";
  if (!directory.empty()) return directory;
  return UserCacheDirectory();
}

std::string SymbolCache::PathOf(const Options& options, const Module& module) const {
  std::string key;
  for (const std::string& part : options.debug_dirs) absl::StrAppend(&key, part, std::string(1, 0));
  absl::StrAppend(&key, std::string(1, 0), options.sysroot, std::string(1, 0),
                  options.debuginfod ? "+" : "-", module.path, std::string(1, 0), OwnBuildId());
  return absl::StrCat(directory_, "/", HexOf(module.build_id), "-",
                      absl::Hex(XXH3_64bits(key.data(), key.size()), absl::kZeroPad16),
                      kKind.suffix);
}

std::optional<SymbolCache::Entry> SymbolCache::Load(const std::string& path) const {
  std::string content;
  if (!ReadSealedFile(path, kKind.magic, &content)) return std::nullopt;
  std::string_view rest = content;
  uint64_t count = 0;
  if (!TakeNumber(&rest, &count) || count > rest.size() / sizeof(uint64_t)) return std::nullopt;
  Entry entry;
  entry.keys.resize(count);
  for (uint64_t& key : entry.keys) TakeNumber(&rest, &key);
  if (!std::is_sorted(entry.keys.begin(), entry.keys.end()) ||
      !DecodeAnswer(rest, entry.keys.size(), &entry.result)) {
    return std::nullopt;
  }
  return entry;
}

void SymbolCache::Store(const std::string& path, const Entry& entry) {
  std::string content;
  PutNumber(entry.keys.size(), &content);
  for (const uint64_t key : entry.keys) PutNumber(key, &content);
  content += EncodeAnswer(entry.result);
  if (MakePrivateDirectory(directory_) && WriteSealedFile(path, kKind.magic, content)) {
    TrimPrivateDirectory(directory_, kKind, most_bytes_, path);
  }
}

ModuleResult SymbolCache::Symbolize(const Options& options, const Module& module,
                                    std::span<const Address> addresses, const Ask& ask) {
  const auto is_other = [](const Address& address) {
    return !address.is_return_address || address.offset >= kCalled;
  };
  if (directory_.empty() || module.build_id.empty() ||
      module.build_id.size() > format::kMaxBuildIdBytes || OwnBuildId().empty() ||
      std::any_of(addresses.begin(), addresses.end(), is_other)) {
    misses_ += addresses.size();
    return ask(module, addresses);
  }
  const std::string path = PathOf(options, module);
  std::optional<Entry> known = Load(path), before;
  if (known.has_value() && !StillTrue(known->result.files)) known.swap(before);

  const auto find = [](const Entry& entry, const Address& address) {
    const auto at = std::lower_bound(entry.keys.begin(), entry.keys.end(), KeyOf(address));
    const bool there = at != entry.keys.end() && *at == KeyOf(address);
    return there ? static_cast<size_t>(at - entry.keys.begin()) : SIZE_MAX;
  };
  ModuleResult answer;
  answer.frames.resize(addresses.size());
  std::vector<Address> asked;
  std::vector<size_t> places;  // of these in `addresses`
  for (size_t i = 0; i < addresses.size(); ++i) {
    const size_t at = known.has_value() ? find(*known, addresses[i]) : SIZE_MAX;
    if (at != SIZE_MAX) {
      answer.frames[i] = known->result.frames[at];
    } else {
      asked.push_back(addresses[i]);
      places.push_back(i);
    }
  }
  hits_ += addresses.size() - asked.size();
  misses_ += asked.size();
  if (asked.empty() && known.has_value()) {
    CopyAllButFrames(known->result, &answer);
    return answer;
  }
  ModuleResult found = ask(module, asked);
  const bool gone = found.state == ModuleState::kBuildIdDiffers ||
                    found.state == ModuleState::kNotFound ||
                    found.state == ModuleState::kUnreadable;
  if (gone && before.has_value()) {
    // They are of this build, whatever lies in its place today.
    size_t lacks = 0;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const size_t at = find(*before, addresses[i]);
      if (at == SIZE_MAX) {
        ++lacks;
      } else {
        answer.frames[i] = before->result.frames[at];
      }
    }
    hits_ += addresses.size() - lacks;
    misses_ -= addresses.size() - lacks;
    CopyAllButFrames(before->result, &answer);
    answer.from_before = true;
    answer.missed = absl::StrCat(
        module.path,
        found.state == ModuleState::kBuildIdDiffers ? " is another build now" : " is gone",
        ": its names are those of an earlier report",
        lacks == 0
            ? ""
            : absl::StrCat(", which ", lacks, " of its ", addresses.size(), " addresses lack"));
    return answer;
  }
  // For what is called no debug information is opened: what there is of that says
  // an answer with places.
  const bool has_places = AsksForPlaces(asked);
  if (!has_places && !known.has_value()) return found;
  if (!MayBeKept(options, has_places ? found : known->result) ||
      found.frames.size() != asked.size()) {
    return asked.size() == addresses.size() ? found : ask(module, addresses);
  }
  // The files were changed between the two looks at them.
  if (has_places && known.has_value() && found.files != known->result.files)
    return ask(module, addresses);

  Entry entry;
  std::vector<std::pair<uint64_t, std::vector<Frame>*>> merged;
  if (known.has_value()) {
    for (size_t i = 0; i < known->keys.size(); ++i) {
      merged.emplace_back(known->keys[i], &known->result.frames[i]);
    }
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    answer.frames[places[i]] = found.frames[i];
    merged.emplace_back(KeyOf(asked[i]), &found.frames[i]);
  }
  std::sort(merged.begin(), merged.end());
  for (auto& [key, frames] : merged) {
    if (!entry.keys.empty() && entry.keys.back() == key) continue;
    entry.keys.push_back(key);
    entry.result.frames.push_back(std::move(*frames));
  }
  const ModuleResult& about = has_places ? found : known->result;
  CopyAllButFrames(about, &entry.result);
  CopyAllButFrames(about, &answer);
  Store(path, entry);
  return answer;
}

}  // namespace memtrace::symbolizer
