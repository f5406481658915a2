// What a reader does with the page of --format html, in a headless Chromium. One process for all of it: the pages
// are made once, and nobody makes them anew while another reads them.

import './page_verdict.mjs';
import './page_run_words.mjs';
import './page_views.mjs';
import './page_time.mjs';
import './page_told.mjs';
import './page_filter.mjs';
import './page_flame.mjs';
import './page_tables.mjs';
import './page_names.mjs';
import './page_address.mjs';
import './page_look.mjs';
import './page_large.mjs';
import './page_hostile.mjs';
import './page_sums.mjs';
