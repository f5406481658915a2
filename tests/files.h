// Whole files, read and written. What cannot be done throws std::runtime_error, which fails the test with
// the cause.

#ifndef MEMTRACE_TESTS_FILES_H_
#define MEMTRACE_TESTS_FILES_H_

#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace memtrace {

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

inline void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

// A file that may be executed.
inline void WriteProgram(const std::string& path, const std::string& content) {
  WriteFile(path, content);
  if (chmod(path.c_str(), 0755) != 0) throw std::runtime_error("cannot make a program of " + path);
}

}  // namespace memtrace

#endif  // MEMTRACE_TESTS_FILES_H_
