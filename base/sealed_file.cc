#include "base/sealed_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <cstddef>
#include <cstring>
#include <ctime>

#include "base/private_file.h"

namespace memtrace::base {
namespace {

// A file's time is set anew when it is older than this, so that the last use is known to the day.
constexpr time_t kTouchAfterSeconds = 24 * 3600;

struct Header {
  char magic[8];
  uint64_t content_bytes;  // of what follows, decompressed
  uint64_t stored_bytes;   // of what follows
  uint64_t hash[2];        // XXH3 of the above and what follows
};

XXH128_hash_t HashOf(const Header& header, std::string_view stored) {
  const XXH128_hash_t front = XXH3_128bits(&header, offsetof(Header, hash));
  return XXH3_128bits_withSeed(stored.data(), stored.size(), front.low64 ^ front.high64);
}

}  // namespace

bool ReadSealedFile(const std::string& path, std::string_view magic, std::string* content) {
  std::string bytes;
  if (!ReadPrivateFile(path, kMostSealedBytes, kTouchAfterSeconds, &bytes)) return false;
  Header header;
  if (bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::string_view stored = std::string_view(bytes).substr(sizeof(header));
  const XXH128_hash_t hash = HashOf(header, stored);
  if (magic != std::string_view(header.magic, sizeof(header.magic)) ||
      header.stored_bytes != stored.size() || header.content_bytes > kMostContentBytes ||
      header.hash[0] != hash.low64 || header.hash[1] != hash.high64 ||
      ZSTD_getFrameContentSize(stored.data(), stored.size()) != header.content_bytes) {
    return false;
  }
  content->resize(header.content_bytes);
  return ZSTD_decompress(content->data(), content->size(), stored.data(), stored.size()) ==
         content->size();
}

bool WriteSealedFile(const std::string& path, std::string_view magic, std::string_view content) {
  if (content.size() > kMostContentBytes) return false;
  std::string bytes(sizeof(Header) + ZSTD_compressBound(content.size()), 0);
  const size_t stored = ZSTD_compress(bytes.data() + sizeof(Header), bytes.size() - sizeof(Header),
                                      content.data(), content.size(), 1);
  if (ZSTD_isError(stored) || sizeof(Header) + stored > kMostSealedBytes) return false;
  bytes.resize(sizeof(Header) + stored);
  Header header = {};
  std::memcpy(header.magic, magic.data(), sizeof(header.magic));
  header.content_bytes = content.size();
  header.stored_bytes = stored;
  const XXH128_hash_t hash = HashOf(header, std::string_view(bytes).substr(sizeof(header)));
  header.hash[0] = hash.low64;
  header.hash[1] = hash.high64;
  std::memcpy(bytes.data(), &header, sizeof(header));
  return WritePrivateFile(path, bytes);
}

}  // namespace memtrace::base
