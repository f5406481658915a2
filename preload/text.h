// Text: a small string builder on a fixed buffer, for paths and messages inside
// the traced program, where neither allocation nor stdio is possible. What does
// not fit is cut; the buffer always ends in NUL.

#ifndef MEMTRACE_PRELOAD_TEXT_H_
#define MEMTRACE_PRELOAD_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memtrace {

template <size_t kCapacity>
class Text {
 public:
  Text& operator<<(std::string_view part) {
    for (char c : part) {
      if (size_ + 1 == kCapacity) {
        cut_ = true;
        break;
      }
      data_[size_++] = c;
    }
    data_[size_] = 0;
    return *this;
  }
  Text& operator<<(uint64_t number) {
    char digits[20];
    size_t n = 0;
    do digits[n++] = static_cast<char>('0' + number % 10);
    while (number /= 10);
    while (n > 0) *this << std::string_view(&digits[--n], 1);
    return *this;
  }
  Text& operator<<(int number) {
    if (number < 0) *this << "-";
    return *this << static_cast<uint64_t>(number < 0 ? -static_cast<int64_t>(number) : number);
  }

  template <size_t kOther>
  Text& operator<<(const Text<kOther>& other) {
    return *this << other.view();
  }

  void Clear() {
    data_[size_ = 0] = 0;
    cut_ = false;
  }
  void Cut(size_t size) { data_[size_ = size] = 0; }
  const char* c_str() const { return data_; }
  std::string_view view() const { return {data_, size_}; }
  size_t size() const { return size_; }
  bool cut() const { return cut_; }

 private:
  char data_[kCapacity] = {};
  size_t size_ = 0;
  bool cut_ = false;
};

// Parts of a view. string_view::substr may throw, which would need libstdc++.
constexpr std::string_view First(std::string_view text, size_t bytes) {
  return {text.data(), bytes < text.size() ? bytes : text.size()};
}
constexpr std::string_view From(std::string_view text, size_t offset) {
  return offset < text.size() ? std::string_view(text.data() + offset, text.size() - offset)
                              : std::string_view();
}

// ENOSPC -> "No space left on device", for the handful that users meet; another one by its number.
Text<48> ErrorText(long error);

// The hexadecimal number behind `label` and blanks, with or without 0x; 0: there is none.
uint64_t HexAfter(std::string_view text, std::string_view label);

// Takes a number off the begin of a text, with digits as the kernel writes them; 0 where there is
// none.
constexpr uint64_t TakeNumber(std::string_view& text, unsigned base) {
  uint64_t value = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text[0];
    unsigned digit = 99;
    if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a' + 10);
    if (digit >= base) break;
    value = value * base + digit;
  }
  return value;
}

// Takes a line off the begin of a text, without its end, which the last one need not have. False:
// there is none.
constexpr bool TakeLine(std::string_view& text, std::string_view* line) {
  if (text.empty()) return false;
  const size_t end = text.find('\n');
  *line = First(text, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return true;
}

// Takes a word off the begin of a text, and the blanks before it.
constexpr std::string_view TakeWord(std::string_view& text) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  size_t end = 0;
  while (end < text.size() && text[end] != ' ') ++end;
  const std::string_view word = First(text, end);
  text.remove_prefix(end);
  return word;
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TEXT_H_
