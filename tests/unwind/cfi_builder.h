// CfiBuilder: .eh_frame and .eh_frame_hdr by hand, for tests of the reader.
//
// The image pretends to lie at kBase. Its bytes end where a page without access
// begins, so that a read past the end is a crash, not luck.

#ifndef MEMTRACE_TESTS_UNWIND_CFI_BUILDER_H_
#define MEMTRACE_TESTS_UNWIND_CFI_BUILDER_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "preload/unwind/cfi_reader.h"

namespace memtrace::unwind {

using Bytes = std::vector<uint8_t>;

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
template <typename T>
Bytes Raw(T value) {
  Bytes bytes(sizeof(T));
  memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
inline Bytes Uleb(uint64_t value) {
  Bytes bytes;
  do {
    bytes.push_back(static_cast<uint8_t>((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
    value >>= 7;
  } while (value != 0);
  return bytes;
}
inline Bytes Sleb(int64_t value) {
  Bytes bytes;
  for (bool more = true; more;) {
    const auto byte = static_cast<uint8_t>(value & 0x7f);
    value >>= 7;
    more = !((value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40)));
    bytes.push_back(static_cast<uint8_t>(byte | (more ? 0x80 : 0)));
  }
  return bytes;
}

// Bytes in front of a page without access.
class GuardedBytes {
 public:
  explicit GuardedBytes(const Bytes& bytes) {
    mapped_ = (bytes.size() + 4095) / 4096 * 4096 + 4096;
    base_ = static_cast<uint8_t*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + mapped_ - 4096, 4096, PROT_NONE);
    data_ = base_ + mapped_ - 4096 - bytes.size();
    if (!bytes.empty()) memcpy(data_, bytes.data(), bytes.size());
  }
  GuardedBytes(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(base_, mapped_); }
  uint8_t* data() const { return data_; }

 private:
  size_t mapped_;
  uint8_t* base_;
  uint8_t* data_;
};

class CfiBuilder {
 public:
  static constexpr uintptr_t kBase = 0x40000000;
  static constexpr uintptr_t kHdrBytes = 0x1000;  // .eh_frame lies behind
  static constexpr uintptr_t kEhFrame = kBase + kHdrBytes;

  // What compilers write at the head of every CIE: CFA = rsp + 8, RA at CFA - 8.
  static Bytes UsualProgram() { return {0x0c, 7, 8, 0x90, 1}; }

  // Returns the offset of the CIE, for AddFde().
  size_t AddCie(const Bytes& program = UsualProgram(), const std::string& augmentation = "zR",
                const Bytes& augmentation_data = {0x1b}, uint8_t version = 1) {
    Bytes body = {version};
    body.insert(body.end(), augmentation.begin(), augmentation.end());
    body.push_back(0);
    if (version == 4) body = body + Bytes{8, 0};
    body = body + Uleb(1) + Sleb(-8) + Uleb(16);
    if (!augmentation.empty() && augmentation[0] == 'z') {
      body = body + Uleb(augmentation_data.size()) + augmentation_data;
    }
    const size_t offset = frame_.size();
    AddEntry(Raw<uint32_t>(0), body + program);
    return offset;
  }

  // An FDE for [start, start + length), whose pointer is pcrel sdata4. Returns its offset.
  size_t AddFde(size_t cie, uintptr_t start, uint32_t length, const Bytes& program,
              const Bytes& augmentation_data = {}) {
    const size_t id = frame_.size() + 4;
    const size_t place = id + 4;
    const size_t offset = frame_.size();
    table_.push_back({start, offset});
    AddEntry(Raw(static_cast<uint32_t>(id - cie)),
             Raw(static_cast<int32_t>(start - (kEhFrame + place))) + Raw(length) +
                 Uleb(augmentation_data.size()) + augmentation_data + program);
    return offset;
  }
  void DropTableEntry(size_t offset) {
    std::erase_if(table_, [offset](const auto& entry) { return entry.second == offset; });
  }
  // Any entry; `id` is the CIE pointer or 0.
  void AddEntry(const Bytes& id, const Bytes& body) {
    frame_ = frame_ + Raw(static_cast<uint32_t>(id.size() + body.size())) + id + body;
  }
  void AddWideEntry(uint64_t id, const Bytes& body) {
    frame_ = frame_ + Raw<uint32_t>(0xffffffff) + Raw<uint64_t>(8 + body.size()) + Raw(id) + body;
  }
  void AddTableEntry(uintptr_t start, size_t offset) { table_.push_back({start, offset}); }
  size_t size() const { return frame_.size(); }

  Bytes Image(bool with_table = true) const {
    Bytes image;
    auto table = table_;
    std::sort(table.begin(), table.end());
    if (with_table) {
      image = Bytes{1, 0x1b, 0x03, 0x3b} + Raw(static_cast<int32_t>(kHdrBytes - 4)) +
              Raw(static_cast<uint32_t>(table.size()));
      for (const auto& [start, offset] : table) {
        image = image + Raw(static_cast<int32_t>(start - kBase)) +
                Raw(static_cast<int32_t>(kHdrBytes + offset));
      }
    } else {
      image = Bytes{1, 0x1b, 0xff, 0xff} + Raw(static_cast<int32_t>(kHdrBytes - 4));
    }
    image.resize(kHdrBytes);
    return image + frame_ + Raw<uint32_t>(0);
  }

 private:
  Bytes frame_;
  std::vector<std::pair<uintptr_t, size_t>> table_;
};

inline CfiImage ImageOf(const GuardedBytes& bytes, size_t size) {
  return {bytes.data(), CfiBuilder::kBase, size, CfiBuilder::kBase};
}

// The row of `pc`, in an image of these bytes.
inline CfiStatus RowOf(const Bytes& image, uintptr_t pc, CfiRow* row) {
  const GuardedBytes guarded(image);
  return FindRow(ImageOf(guarded, image.size()), pc, row);
}

}  // namespace memtrace::unwind

#endif  // MEMTRACE_TESTS_UNWIND_CFI_BUILDER_H_
