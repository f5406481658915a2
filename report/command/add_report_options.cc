#include "report/command/add_report_options.h"

#include <CLI/CLI.hpp>

#include "report/cli/common_options.h"
#include "report/cli/filter_options.h"

namespace memtrace::report {

void AddReportOptions(CLI::App* command, render::ReportFlags* flags) {
  command->add_option("FILE", flags->files, "The trace; several, or a directory of them:\n"
                      "the processes of a run")
      ->required()
      ->type_name("");
  command->add_option("-f,--format", flags->format, "text (default), json, csv, mtrace, valgrind,\n"
                      "valgrind-xml, massif, dhat, folded, pprof,\n"
                      "speedscope, callgrind, heaptrack, sqlite, html")
      ->type_name("F");
  command->add_option("-o,--output", flags->output, "Write here, whole or not at all")
      ->type_name("OUT");
  AddTimeFilters(command, flags);
  command->add_flag("--series", flags->series,
                    "Each site over time: live, allocated, freed;\n"
                    "in text, csv and json");
  AddBlockFilters(command, flags, ": all figures are of these");
  command->add_option("--timeline-by", flags->timeline_by,
                      "The heap over time by site, thread, module, folder")
      ->type_name("WHAT");
  command->add_option("--executable", flags->executable,
                      "Of several traces, the sites of this program")
      ->type_name("NAME");
  command->add_option("--top", flags->top, "Rows of each table; text: 10; json: 1000;\n"
                      "html: 20000; csv: all")
      ->type_name("N")
      ->check(WholeNumber, "");
  command->add_option("--sort", flags->sort,
                      "Allocators by total, wasted, live, blocks, peak,\n"
                      "allocations, frees, temporary, caller")
      ->type_name("COLUMN");
  command->add_option("--measure", flags->measure,
                      "Of folded, pprof, speedscope, callgrind the number\n"
                      "of each site: live (default), blocks, allocated,\n"
                      "allocations, peak, peak-blocks, wasted, temporary,\n"
                      "resident, peak-resident")
      ->type_name("WHAT");
  command
      ->add_option("--table,--tables", flags->tables,
                   "text: summary leaks growing sites growth faults\n"
                   "pressure invalid-frees temporary lifetimes\n"
                   "reallocs (and pairs that do not match) sizes\n"
                   "modules threads mappings, separated by commas;\n"
                   "csv: one of sites leaks timeline threads mappings\n"
                   "sizes lifetimes reallocs modules exchanges\n"
                   "site-sizes timeline-by-site (-thread, -module,\n"
                   "-folder) pressure; of several traces:\n"
                   "summary processes executables leaks sites")
      ->type_name("LIST")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--scan", flags->scan,
                      "The memory scan whose leaks are shown: its number,\n"
                      "or last (default)")
      ->type_name("N");
  command->add_option("--show-leak-kinds", flags->leak_kinds,
                      "Of definite, indirect, possible, reachable, or\n"
                      "all, none; text: definite,possible; else all")
      ->type_name("SET");
  command->add_option("--suppressions", flags->suppressions,
                      "Leaks to count apart: a file of Valgrind's or of\n"
                      "LeakSanitizer's syntax; repeatable")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--suppress-children", flags->suppress_children,
                    "And what only they lead to, as LeakSanitizer does");
  command->add_option("--leak-resolution", flags->leak_resolution,
                      "Frames that make two stacks one: low (2), med (4),\n"
                      "high (all, default)")
      ->type_name("R");
  command->add_option("--leak-check-heuristics", flags->heuristics,
                      "Interior pointers that count: stdstring, length64,\n"
                      "newarray, multipleinheritance, gobject, gslice,\n"
                      "all (default), none")
      ->type_name("SET");
  command->add_option("--leader", flags->leader,
                      "Of a lost cycle the definite one: by address\n"
                      "(default), sequence of allocation, or code, which\n"
                      "is the same in each run and what check, diff and\n"
                      "trend have")
      ->type_name("BY");
  command->add_flag("--graph", flags->questions.summary,
                    "What keeps the heap: by root (variables, stacks,\n"
                    "registers) and by site, what would go with it");
  command->add_option("--why", flags->questions.why,
                      "What keeps the blocks of a site: the number in\n"
                      "front of a loss record, a fingerprint, or a\n"
                      "block's 0xADDRESS")
      ->type_name("SITE");
  command->add_option("--who-points-at", flags->questions.who_points_at,
                      "Every pointer into the block at that address")
      ->type_name("0xADDRESS");
  command->add_flag("--full", flags->full, "Every row, every frame, nothing shortened");
  AddTextOptions(command, &flags->color, &flags->width);
  command->add_option("--jobs", flags->jobs, "Threads that read the trace: one a processor")
      ->type_name("N")
      ->check(WholeNumber, "");
  AddNameOptions(command, {&flags->debug_dirs, &flags->sysroot, &flags->debuginfod});
  command->add_option("--symbol-cache", flags->symbol_cache,
                      "Keep names here for the next report, or off;\n"
                      "default: MEMTRACE_SYMBOL_CACHE, ~/.cache/memtrace")
      ->type_name("D");
  command->add_option("--index", flags->index,
                      "Keep here what makes the next report of a trace\n"
                      "fast, or off; default: ~/.cache/memtrace, and\n"
                      "FILE.idx for --at, --from, --to, --series")
      ->type_name("D");
  command->footer(
      "Examples:\n"
      "  memtrace report app.mtr\n"
      "  memtrace report app.mtr --sort wasted --top 30\n"
      "  memtrace report traces/ --executable app\n"
      "  memtrace report app.mtr --from 90% --match 'cache|pool'\n"
      "  memtrace report app.mtr --at 90%\n"
      "  memtrace report app.mtr --series --top 5\n"
      "  memtrace report app.mtr --why 1\n"
      "  memtrace report app.mtr --format json -o report.json\n"
      "  memtrace report app.mtr --format html -o report.html\n"
      "  memtrace report app.mtr --format csv --table timeline > timeline.csv");
}

}  // namespace memtrace::report
