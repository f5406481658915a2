#include "symbolizer/symbol_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/private_file.h"
#include "base/sealed_file.h"
#include "format/build_id_note.h"
#include "symbolizer/answer_bytes.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/module_answer.h"
#include "symbolizer/own_build.h"

namespace memtrace::symbolizer {
namespace {

constexpr base::PrivateKind kKind = {".sym", "MTSYMS01"};
constexpr uint64_t kCalled = uint64_t{1} << 63;  // of a key: Address::called

uint64_t KeyOf(const Address& address) { return address.offset | (address.called ? kCalled : 0); }

// Modules without a build-id, and offsets that no entry can have, are not kept.
bool MayHaveEntry(const Module& module, std::span<const Address> addresses) {
  return !module.build_id.empty() && module.build_id.size() <= format::kMaxBuildIdBytes &&
         !OwnBuildId().empty() &&
         std::all_of(addresses.begin(), addresses.end(), [](const Address& address) {
           return address.is_return_address && address.offset < kCalled;
         });
}

// Only what will still be true next time.
bool MayBeKept(const Options& options, const ModuleResult& result) {
  const bool found =
      result.state == ModuleState::kDebugInfo || result.state == ModuleState::kSymbolsOnly;
  // A server that has no debug file today may have one tomorrow.
  return found && !(options.debuginfod && result.state != ModuleState::kDebugInfo);
}

bool IsGone(ModuleState state) {
  return state == ModuleState::kBuildIdDiffers || state == ModuleState::kNotFound ||
         state == ModuleState::kUnreadable;
}

bool StillTrue(const std::vector<base::FileStamp>& stamps) {
  return std::all_of(stamps.begin(), stamps.end(), [](const base::FileStamp& stamp) {
    return base::FileStamp::Of(stamp.path) == stamp;
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
  return base::UserCacheDirectory();
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
  if (!base::ReadSealedFile(path, kKind.magic, &content)) return std::nullopt;
  AnswerReader in(content);
  const uint64_t count = in.Number64();
  if (count > in.rest().size() / sizeof(uint64_t)) return std::nullopt;
  Entry entry;
  entry.keys.resize(count);
  for (uint64_t& key : entry.keys) key = in.Number64();
  if (!std::is_sorted(entry.keys.begin(), entry.keys.end()) ||
      !DecodeAnswer(in.rest(), entry.keys.size(), &entry.result)) {
    return std::nullopt;
  }
  return entry;
}

void SymbolCache::Store(const std::string& path, const Entry& entry) {
  std::string content;
  Put64(entry.keys.size(), &content);
  for (const uint64_t key : entry.keys) Put64(key, &content);
  content += EncodeAnswer(entry.result);
  if (base::MakePrivateDirectory(directory_) && base::WriteSealedFile(path, kKind.magic, content)) {
    base::TrimPrivateDirectory(directory_, kKind, most_bytes_, path);
  }
}

const std::vector<Frame>* SymbolCache::Entry::Find(const Address& address) const {
  const auto at = std::lower_bound(keys.begin(), keys.end(), KeyOf(address));
  return at != keys.end() && *at == KeyOf(address) ? &result.frames[at - keys.begin()] : nullptr;
}

SymbolCache::Lookup SymbolCache::LookUp(const std::optional<Entry>& known,
                                        std::span<const Address> addresses) {
  Lookup lookup;
  lookup.answer.frames.resize(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::vector<Frame>* frames = known.has_value() ? known->Find(addresses[i]) : nullptr;
    if (frames != nullptr) {
      lookup.answer.frames[i] = *frames;
    } else {
      lookup.unknown.push_back(addresses[i]);
      lookup.places.push_back(i);
    }
  }
  hits_ += addresses.size() - lookup.unknown.size();
  misses_ += lookup.unknown.size();
  return lookup;
}

ModuleResult SymbolCache::FromBefore(const Entry& before, const Module& module,
                                     std::span<const Address> addresses, ModuleState now) {
  ModuleResult answer;
  answer.frames.resize(addresses.size());
  size_t lacks = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::vector<Frame>* frames = before.Find(addresses[i]);
    if (frames == nullptr) {
      ++lacks;
    } else {
      answer.frames[i] = *frames;
    }
  }
  hits_ += addresses.size() - lacks;
  misses_ -= addresses.size() - lacks;
  CopyAllButFrames(before.result, &answer);
  answer.from_before = true;
  answer.missed = absl::StrCat(
      module.path, now == ModuleState::kBuildIdDiffers ? " is another build now" : " is gone",
      ": its names are those of an earlier report",
      lacks == 0
          ? ""
          : absl::StrCat(", which ", lacks, " of its ", addresses.size(), " addresses lack"));
  return answer;
}

SymbolCache::Entry SymbolCache::Merge(std::optional<Entry> known,
                                      std::span<const Address> unknown, ModuleResult found) {
  std::vector<std::pair<uint64_t, std::vector<Frame>*>> all;
  if (known.has_value()) {
    for (size_t i = 0; i < known->keys.size(); ++i) {
      all.emplace_back(known->keys[i], &known->result.frames[i]);
    }
  }
  for (size_t i = 0; i < unknown.size(); ++i) {
    all.emplace_back(KeyOf(unknown[i]), &found.frames[i]);
  }
  std::sort(all.begin(), all.end());
  Entry entry;
  for (auto& [key, frames] : all) {
    if (!entry.keys.empty() && entry.keys.back() == key) continue;
    entry.keys.push_back(key);
    entry.result.frames.push_back(std::move(*frames));
  }
  // For what is called no debug information is opened: what there is of that says an answer with
  // places.
  CopyAllButFrames(AsksForPlaces(unknown) ? found : known->result, &entry.result);
  return entry;
}

ModuleResult SymbolCache::Symbolize(const Options& options, const Module& module,
                                    std::span<const Address> addresses, const Ask& ask) {
  if (directory_.empty() || !MayHaveEntry(module, addresses)) {
    misses_ += addresses.size();
    return ask(module, addresses);
  }
  const std::string path = PathOf(options, module);
  std::optional<Entry> known = Load(path), before;
  if (known.has_value() && !StillTrue(known->result.files)) known.swap(before);
  Lookup lookup = LookUp(known, addresses);
  const std::vector<Address>& unknown = lookup.unknown;
  ModuleResult& answer = lookup.answer;
  if (unknown.empty() && known.has_value()) {
    CopyAllButFrames(known->result, &answer);
    return std::move(answer);
  }
  ModuleResult found = ask(module, unknown);
  // They are of this build, whatever lies in its place today.
  if (IsGone(found.state) && before.has_value()) {
    return FromBefore(*before, module, addresses, found.state);
  }
  // Without places nothing says what debug information there is (see Merge).
  const bool has_places = AsksForPlaces(unknown);
  if (!has_places && !known.has_value()) return found;
  if (!MayBeKept(options, has_places ? found : known->result) ||
      found.frames.size() != unknown.size()) {
    return unknown.size() == addresses.size() ? found : ask(module, addresses);
  }
  // The files were changed between the two looks at them.
  if (has_places && known.has_value() && found.files != known->result.files) {
    return ask(module, addresses);
  }
  for (size_t i = 0; i < unknown.size(); ++i) {
    answer.frames[lookup.places[i]] = found.frames[i];
  }
  const Entry entry = Merge(std::move(known), unknown, std::move(found));
  CopyAllButFrames(entry.result, &answer);
  Store(path, entry);
  return std::move(answer);
}

}  // namespace memtrace::symbolizer
