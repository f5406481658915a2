// Real programs of several processes, unmodified, as Debian ships them: what they print,
// write and serve is the same with the library, and each of their processes has its trace,
// linked to its parent's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/harness.h"
#include "tests/e2e/real_programs.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

Json TreeOf(const std::string& directory) {
  return Json::parse(ReportText(directory, {"--format", "json", "--top", "1"}));
}

// How many images ran each program, by file name.
std::map<std::string, int> ProgramsOf(const Json& tree) {
  std::map<std::string, int> programs;
  for (const Json& image : tree.at("processes")) {
    const std::string path = image.at("executable");
    ++programs[path.substr(path.rfind('/') + 1)];
  }
  return programs;
}

size_t RootsOf(const Json& tree) {
  size_t roots = 0;
  for (const Json& image : tree.at("processes")) roots += image.at("parent").is_null();
  return roots;
}

// Lines of jobs that ran at the same time come in any order.
std::vector<std::string> SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

template <typename Done>
bool Wait(Done done) {
  for (int i = 0; i < 3000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// The examples of this project, by a Makefile with pattern rules, an archive, and recursion.
TEST(RealProcessTreesTest, MakeOfACProject) {
  TempDir work;
  std::vector<std::string> sources;
  for (const std::string& file : FilesIn(SourcePath("examples"), ".c")) {
    if (file.rfind("plugin_", 0) != 0) sources.push_back(file);
  }
  ASSERT_GT(sources.size(), 8u);
  // Compiled in place of the build, so that no path differs between the runs.
  const auto build = [&](auto wrap, std::map<std::string, std::string>* made) {
    const std::string directory = work / "project";
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory + "/sub");
    std::string programs;
    for (const std::string& file : sources) {
      WriteFile(directory + "/" + file, ReadFile(SourcePath("examples/" + file)));
      programs += " " + file.substr(0, file.size() - 2);
    }
    WriteFile(directory + "/memtrace.h", ReadFile(SourcePath("include/memtrace.h")));
    WriteFile(directory + "/shared.c", "int Shared(int x) { return x * 3; }\n");
    WriteFile(directory + "/Makefile",
              "PROGRAMS =" + programs + "\nall: $(PROGRAMS) libshared.a sub/done\n"
              "%.o: %.c\n\t@echo CC $<\n\t@gcc -O1 -g0 -MMD -I. -pthread -c $< -o $@\n"
              "$(PROGRAMS): %: %.o\n\t@gcc -o $@ $< -pthread && echo LD $@\n"
              "libshared.a: shared.o\n\t@ar rcD $@ $<\n"
              "sub/done: libshared.a\n\t@$(MAKE) --no-print-directory -C sub -f ../sub.mk\n");
    WriteFile(directory + "/sub.mk", "done: ; @ls .. | sort | grep -c '[.]c$$' > done\n");
    const Result result = RunCommand(wrap(
        Command{.arguments = {"make", "-j2"}, .directory = directory, .timeout_seconds = 300}));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file()) (*made)[entry.path()] = ReadFile(entry.path());
    }
    return std::pair(result.Outcome() + "\n" + result.err, SortedLines(result.out));
  };
  std::map<std::string, std::string> plain_files, traced_files;
  const auto plain = build([](Command command) { return command; }, &plain_files);
  ASSERT_THAT(plain.first, HasSubstr("exit 0"));
  TempDir traces;
  EXPECT_EQ(build([&](Command command) { return Traced(command, traces.path()); }, &traced_files),
            plain);
  EXPECT_TRUE(traced_files == plain_files) << "objects, programs, archive";
  EXPECT_GT(plain_files.size(), sources.size() * 3);

  const Json tree = TreeOf(traces.path());
  EXPECT_EQ(RootsOf(tree), 1u);
  EXPECT_EQ(tree.at("coverage").at("dropped_events"), 0);
  const auto programs = ProgramsOf(tree);
  const int files = static_cast<int>(sources.size());
  EXPECT_EQ(programs.at("cc1"), files + 1);
  EXPECT_EQ(programs.at("make"), 2);
  EXPECT_GE(programs.at("collect2"), files);
}

TEST(RealProcessTreesTest, GitCloneByPathAndByFileUrl) {
  const Environment environment = {{"GIT_AUTHOR_NAME", "A"},
                                   {"GIT_AUTHOR_EMAIL", "a@example.com"},
                                   {"GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z"},
                                   {"GIT_COMMITTER_NAME", "C"},
                                   {"GIT_COMMITTER_EMAIL", "c@example.com"},
                                   {"GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z"},
                                   {"GIT_CONFIG_NOSYSTEM", "1"},
                                   {"GIT_CONFIG_COUNT", "2"},
                                   {"GIT_CONFIG_KEY_0", "init.defaultBranch"},
                                   {"GIT_CONFIG_VALUE_0", "main"},
                                   {"GIT_CONFIG_KEY_1", "protocol.file.allow"},
                                   {"GIT_CONFIG_VALUE_1", "always"}};
  TempDir work;
  const auto git = [&](const Words& words, auto wrap) {
    Words all = {"git"};
    all.insert(all.end(), words.begin(), words.end());
    const Result result = RunCommand(wrap(
        Command{.arguments = all, .environment = environment, .directory = work.path()}));
    return result.Outcome() + "\n" + result.out + result.err;
  };
  const auto plainly = [](Command command) { return command; };
  ASSERT_THAT(git({"init", "-q", "repository"}, plainly), HasSubstr("exit 0"));
  for (int commit = 0; commit < 3; ++commit) {
    for (int file = 0; file < 30; ++file) {
      std::string content;
      for (int line = 0; line < 50; ++line) {
        content += std::to_string(file * 37 + line * (line % 5 == commit ? 3 : 1)) + "\n";
      }
      WriteFile(work / ("repository/file" + std::to_string(file)), content);
    }
    git({"-C", "repository", "add", "-A"}, plainly);
    git({"-C", "repository", "commit", "-qm", "commit"}, plainly);
  }
  const auto clones = [&](auto wrap) {
    std::string said;
    for (const std::string& from : {std::string("repository"), "file://" + (work / "repository")}) {
      std::filesystem::remove_all(work / "clone");
      said += git({"clone", from, "clone"}, wrap);
      said += git({"-C", "clone", "status"}, wrap) + git({"-C", "clone", "log", "--stat"}, wrap);
      said += git({"-C", "clone", "rev-parse", "HEAD^{tree}"}, plainly);
    }
    return said;
  };
  const std::string plain = clones(plainly);
  EXPECT_THAT(plain, HasSubstr("Cloning into 'clone'"));
  TempDir traces;
  EXPECT_EQ(clones([&](Command command) { return Traced(command, traces.path()); }), plain);
  const Json tree = TreeOf(traces.path());
  EXPECT_EQ(RootsOf(tree), 6u) << "one for each command";
  EXPECT_GT(tree.at("processes").size(), 12u);
  EXPECT_EQ(tree.at("coverage").at("dropped_events"), 0);
}

TEST(RealProcessTreesTest, ShellScriptWithPipes) {
  TempDir work;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "word" + std::to_string(i * 7919 % 613) + " line\n";
  WriteFile(work / "words", text);
  const Command command = {.arguments = {"/bin/sh", "-c", R"script(
cut -d' ' -f1 words | sort | uniq -c | sort -rn -k1,1 -k2,2 | head -5
awk '{ sum += length($1) } END { print sum }' words
for i in 1 2 3; do grep -c "word$i" words & wait; done
seq 100000 | tr 0-9 a-j | sed -n '5p;$p'
(cd / && pwd); (echo to stderr >&2; exit 3) || echo "status $?"
yes | head -2 | cat -n
exit 6
)script"},
                           .directory = work.path()};
  const Result plain = RunCommand(command);
  TempDir traces;
  const Result traced = RunCommand(Traced(command, traces.path()));
  EXPECT_EQ(traced.Outcome(), plain.Outcome());
  EXPECT_EQ(plain.Outcome(), "exit 6");
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);
  const Json tree = TreeOf(traces.path());
  EXPECT_EQ(RootsOf(tree), 1u);
  const auto programs = ProgramsOf(tree);
  EXPECT_EQ(programs.at("sort"), 2);
  EXPECT_EQ(programs.at("grep"), 3);
}

TEST(RealProcessTreesTest, PythonWithChildrenOfEveryKind) {
  TempDir work;
  WriteFile(work / "work.py", R"script(
import multiprocessing, os, subprocess, sys

def square(n):
    return sum(i * n for i in range(200))

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        pool = context.Pool(2)
        print(method, sum(pool.map(square, range(200))))
        pool.close()
        pool.join()
    print(subprocess.run(["sort", "-r"], input="a\nc\nb\n", text=True, capture_output=True).stdout)
    print(subprocess.run("echo from a shell; exit 5", shell=True).returncode)
    print(subprocess.run([sys.executable, "-s", "-c", "print('from a python')"],
                         preexec_fn=os.setsid, text=True, stdout=subprocess.PIPE).stdout)
    child = os.fork()
    if child == 0:
        os._exit(4)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
)script");
  const Command command = {.arguments = {"/usr/bin/python3", "-s", "-B", work / "work.py"},
                           .environment = {{"PYTHONHASHSEED", "0"}, {"PYTHONUNBUFFERED", "1"}},
                           .timeout_seconds = 300};
  const Result plain = RunCommand(command);
  ASSERT_EQ(plain.Outcome(), "exit 0") << plain.err;
  TempDir traces;
  const Result traced = RunCommand(Traced(command, traces.path()));
  EXPECT_EQ(traced.Outcome(), "exit 0");
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);
  const Json tree = TreeOf(traces.path());
  EXPECT_EQ(tree.at("coverage").at("dropped_events"), 0);
  EXPECT_GE(tree.at("totals").at("processes"), 12);
  EXPECT_EQ(ProgramsOf(tree).at("sort"), 1);
}

// Over a socket of the file system, which needs no port: what a client gets, before and
// after a reload, which exchanges the workers, and how the server ends.
TEST(RealProcessTreesTest, NginxWithTwoWorkers) {
  if (!Exists("/usr/sbin/nginx")) GTEST_SKIP() << "nginx is not installed";
  const auto serve = [](auto wrap, pid_t* pid) {
    TempDir work;
    chmod(work.path().c_str(), 0755);
    std::filesystem::create_directories(work / "www");
    for (int i = 0; i < 5; ++i) {
      WriteFile(work / ("www/" + std::to_string(i) + ".txt"),
                std::string(static_cast<size_t>(i) * 3000 + 7, static_cast<char>('a' + i)));
    }
    const std::string temp = " " + work.path() + "/temp;\n";
    WriteFile(work / "nginx.conf",
              std::string(geteuid() == 0 ? "user root;\n" : "") +
                  "daemon off; worker_processes 2; pid " + work.path() + "/pid; error_log " +
                  work.path() + "/log notice;\nevents { worker_connections 64; }\nhttp {\n"
                  "access_log off; gzip on; gzip_types text/plain;\nclient_body_temp_path" + temp +
                  "proxy_temp_path" + temp + "fastcgi_temp_path" + temp + "uwsgi_temp_path" + temp +
                  "scgi_temp_path" + temp + "server { listen unix:" + work.path() +
                  "/socket; location / { root " + work.path() + "/www; default_type text/plain; } "
                  "location /ok { return 200 'well\\n'; } } }\n");
    WriteFile(work / "client.py", R"script(
import http.client, socket, sys, zlib
for i in range(40):
    for path in ("/%d.txt" % (i % 5), "/ok", "/missing"):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(sys.argv[1])
        connection.request("GET", path, headers={"Accept-Encoding": "gzip" if i % 2 else ""})
        answer = connection.getresponse()
        print(answer.status, path, zlib.crc32(answer.read()), answer.getheader("Content-Encoding"))
)script");
    Process server(wrap(Command{.arguments = {"/usr/sbin/nginx", "-e", work / "log", "-p",
                                              work.path(), "-c", work / "nginx.conf"}}));
    *pid = server.pid();
    const auto workers = [&] {
      const std::string log = Exists(work / "log") ? ReadFile(work / "log") : "";
      size_t count = 0;
      for (size_t at = 0; (at = log.find("start worker process ", at)) != log.npos; ++at) ++count;
      return count;
    };
    const auto ask = [&] {
      return RunCommand({.arguments = {"/usr/bin/python3", "-s", work / "client.py",
                                       work / "socket"}}).out;
    };
    std::string seen;
    EXPECT_TRUE(Wait([&] { return workers() == 2; }));
    seen += ask();
    server.Signal(SIGHUP);
    EXPECT_TRUE(Wait([&] { return workers() == 4; }));
    seen += ask();
    server.Signal(SIGQUIT);
    const Result ended = server.Wait(60);
    return seen + ended.Outcome() + "\n" + ended.out + ended.err;
  };
  pid_t pid = 0;
  const std::string plain = serve([](Command command) { return command; }, &pid);
  EXPECT_THAT(plain, HasSubstr("200 /4.txt"));
  EXPECT_THAT(plain, HasSubstr("exit 0\n"));
  TempDir traces;
  EXPECT_EQ(serve([&](Command command) { return Traced(command, traces.path()); }, &pid), plain);
  const Json tree = TreeOf(traces.path());
  EXPECT_EQ(tree.at("processes").size(), 5u) << "the master, and two workers twice";
  EXPECT_EQ(tree.at("coverage").at("dropped_events"), 0);
  for (const Json& image : tree.at("processes")) {
    EXPECT_EQ(image.at("end"), "exit");
    if (image.at("pid") == pid) continue;
    EXPECT_EQ(image.at("link"), "fork");
    EXPECT_EQ(tree.at("processes")[image.at("parent").get<size_t>()].at("pid"), pid);
  }
}

// A database of its own, made, served and stopped, as a user who is not root.
TEST(RealProcessTreesTest, DISABLED_PostgresWithItsWorkers) {
  std::string programs;
  for (const char* version : {"17", "16", "15", "14"}) {
    const std::string path = std::string("/usr/lib/postgresql/") + version + "/bin";
    if (programs.empty() && Exists(path + "/initdb")) programs = path;
  }
  if (programs.empty()) GTEST_SKIP() << "PostgreSQL is not installed";
  TempDir library;
  chmod(library.path().c_str(), 0755);
  std::filesystem::copy_file(LibraryPath(), library / "libmemtrace.so");
  const auto serve = [&](const std::string& traces) {
    TempDir work;
    chmod(work.path().c_str(), 0777);
    const auto as_user = [&](Words words, bool traced) {
      Command command;
      if (geteuid() == 0) {
        command.arguments = {"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"};
      }
      command.arguments.push_back("env");
      if (traced && !traces.empty()) {
        command.arguments.push_back("LD_PRELOAD=" + (library / "libmemtrace.so"));
        command.arguments.push_back("MEMTRACE_OUT=" + traces + "/%e.%p.mtr");
      }
      command.arguments.insert(command.arguments.end(), words.begin(), words.end());
      command.directory = work.path();
      command.timeout_seconds = 600;
      return command;
    };
    std::string seen;
    const Result made = RunCommand(as_user({programs + "/initdb", "-D", work / "data", "-U", "me",
                                            "--no-sync", "--no-locale", "-E", "UTF8"}, true));
    EXPECT_EQ(made.Outcome(), "exit 0") << made.err;
    Process server(as_user({programs + "/postgres", "-D", work / "data", "-k", work.path(), "-c",
                            "listen_addresses=", "-c", "fsync=off"}, true));
    const auto ask = [&](const std::string& question) {
      return RunCommand(as_user({programs + "/psql", "-h", work.path(), "-U", "me", "-d",
                                 "postgres", "-X", "-c", question}, true));
    };
    EXPECT_TRUE(Wait([&] { return Exists(work / ".s.PGSQL.5432"); }));
    EXPECT_TRUE(Wait([&] { return ask("select 1").exit_status == 0; }));
    for (const char* question :
         {"create table t as select i as id, 'word ' || i % 97 as word from "
          "generate_series(1, 50000) i",
          "create index on t (word)", "analyze t",
          "select word, count(*) from t group by word order by 2 desc, 1 limit 5",
          "set max_parallel_workers_per_gather = 2; set min_parallel_table_scan_size = 0; "
          "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; "
          "select sum(id), count(distinct word) from t",
          "select 1 / 0", "update t set word = upper(word) where id % 3 = 0", "vacuum t",
          "select count(*) from t where word ~ '^WORD 1'"}) {
      const Result answer = ask(question);
      seen += answer.Outcome() + "\n" + answer.out + answer.err;
    }
    server.Signal(SIGINT);
    seen += server.Wait(120).Outcome();
    return seen;
  };
  const std::string plain = serve("");
  EXPECT_THAT(plain, HasSubstr("UPDATE 16666"));
  EXPECT_TRUE(plain.ends_with("exit 0")) << plain;
  TempDir traces;
  chmod(traces.path().c_str(), 0777);
  EXPECT_EQ(serve(traces.path()), plain);
  const Json tree = TreeOf(traces.path());
  EXPECT_EQ(tree.at("coverage").at("dropped_events"), 0);
  EXPECT_GT(ProgramsOf(tree).at("postgres"), 20) << "of initdb, and with a backend for each";
}

}  // namespace
}  // namespace memtrace::e2e
