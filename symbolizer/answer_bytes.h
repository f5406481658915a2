// Put(), AnswerReader: numbers and texts one after the other, each text behind its length, for what
// a child process answers (ask_child.h) and for the cache of answers.
//
//   Put(number, &bytes); Put(text, &bytes); Put64(number, &bytes)
//   AnswerReader in(bytes); number = in.Number(); text = in.Text(); number = in.Number64()
//   if (!in.ok() || !in.at_end()) these are not the bytes of such an answer
//
// Native byte order. The reader takes any bytes: past their end everything is 0 or empty.

#ifndef MEMTRACE_SYMBOLIZER_ANSWER_BYTES_H_
#define MEMTRACE_SYMBOLIZER_ANSWER_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace memtrace::symbolizer {

inline void Put(uint32_t number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

inline void Put(std::string_view text, std::string* out) {
  Put(static_cast<uint32_t>(text.size()), out);
  out->append(text);
}

inline void Put64(uint64_t number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

class AnswerReader {
 public:
  explicit AnswerReader(std::string_view bytes) : rest_(bytes) {}

  uint32_t Number() { return Next<uint32_t>(); }
  uint64_t Number64() { return Next<uint64_t>(); }
  std::string_view Text() {
    const size_t bytes = Number();
    if (!Has(bytes)) return {};
    const std::string_view text = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return text;
  }
  // How many things follow, of at least so many bytes each.
  size_t Count(size_t bytes) {
    const size_t count = Number();
    ok_ &= count <= rest_.size() / bytes;
    return ok_ ? count : 0;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  bool Has(size_t bytes) { return ok_ &= bytes <= rest_.size(); }
  template <typename T>
  T Next() {
    T number = 0;
    if (!Has(sizeof(number))) return 0;
    std::memcpy(&number, rest_.data(), sizeof(number));
    rest_.remove_prefix(sizeof(number));
    return number;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ANSWER_BYTES_H_
