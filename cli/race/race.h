/* The race: a recurrence that walks word by word beside attention that arrives at once. Both are measured first, by the
 * benchmark's code; what is shown afterwards is those figures and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_RACE_RACE_H
#define CLATTN_CLI_RACE_RACE_H

#include "bench/group.h"

typedef enum race_language { RACE_ZH, RACE_EN } race_language;

/* What stands beside what. */
typedef enum race_contrast {
    RACE_CORE,  /* attention without projections, the recurrent loop without W_in·x */
    RACE_LAYER, /* projections on both sides */
    RACE_CONTRASTS,
} race_contrast;

typedef struct race_runner {
    bench_point point;
    double busy;      /* the device's own time of the wall's; NaN: not measured */
    double low, high; /* quartiles of the times, ms */
} race_runner;

/* Both sides, at one length on so many units. */
typedef struct race_pair {
    int64_t length;
    int units;
    race_runner attention, recurrence;
} race_pair;

enum { RACE_MAX_LENGTHS = 16 };

typedef struct race_results {
    bench_device *device;
    const char *os;
    int64_t width;
    int64_t stages[RACE_CONTRASTS];   /* of attention, counted as the recurrence's steps are: those of its plan step by step */
    race_pair units[BENCH_MAX_UNITS]; /* core against core, at the first length, on 1, 2, ... all units */
    size_t unit_count;
    race_pair lengths[RACE_CONTRASTS][RACE_MAX_LENGTHS]; /* on all units, rising */
    size_t length_count;
} race_results;

/* ---- measure.c ----------------------------------------------------------------------------------------------------- */

/* Both contrasts at a length on all units, appended to results->lengths. */
bool race_measure_length(bench_session *, race_results *, int64_t length, bench_error *);
/* The core on 1, 2, ... all units at a length, in turns. */
bool race_measure_units(bench_session *, race_results *, int64_t length, bench_error *);

/* The lengths of a contrast that are not too noisy, as the benchmark's rules take them. */
bench_contrast race_contrast_of(const race_results *, race_contrast, race_language);
/* The core whose times are told: on all units, or where those are too noisy, on as many as are the quietest. */
const race_pair *race_headline(const race_results *);
bool race_too_noisy(const race_pair *);
/* Unclear where it is too noisy. */
bench_winner race_winner(const race_pair *);
/* Whether the contrast has been won by both sides, each at its lengths. */
bool race_has_turned(const race_results *, race_contrast);

/* ---- replay.c ------------------------------------------------------------------------------------------------------ */

/* What has been done when `ms` of the machine's time have passed. A recurrence's words come one by one, evenly; attention's all
 * at its end. Steps that wait for one another are spread evenly on both sides. */
typedef struct race_state {
    int64_t words, steps;
    bool is_done;
} race_state;
race_state race_state_at(const race_pair *, bool is_recurrence, double ms);

/* Two lanes on a terminal, on one axis of time, so slowly that the slower one takes `seconds`; where stdout is no terminal,
 * only how they end. */
void race_replay(const race_pair *, race_language, double seconds, bool is_moving);

/* ---- words.c ------------------------------------------------------------------------------------------------------- */

race_language race_find_language(cli_integer asked);
/* What computes, on which system, with which version. */
void race_where(const race_results *, race_language, clattn__text *);
/* A noise in percent: "12", or where it says nothing any more, "over 100". */
enum { RACE_PERCENT = 24 };
const char *race_percent(double noise, race_language, char text[static RACE_PERCENT]);
/* Who is faster, by how much, and whether it is noisy. */
void race_outcome(const race_pair *, race_language, clattn__text *);
/* Why: how much more there is to do, and where times are not too noisy, how fast it is done. */
void race_why(const race_pair *, race_language, clattn__text *);
/* Of what the recurrence's steps consist: one a word, and what comes before the first; "" where that is nothing or unknown. */
enum { RACE_PARTS = 192 };
void race_chain_parts(const race_pair *, race_language, char text[static RACE_PARTS]);
/* Of what attention's steps consist; "" where they are others, or the device does not tell. */
void race_stage_parts(const race_pair *, race_language, char text[static RACE_PARTS]);
/* Where a contrast turns, or that it does not: the rest of a sentence. */
void race_turn(const race_results *, race_contrast, race_language, clattn__text *);
/* A paragraph of at most 80 columns, later lines indented. */
enum { RACE_COLUMNS = 80 };
void race_print_wrapped(const char *text, int indent);
void race_print_units(const race_results *, race_language);
void race_print_lengths(const race_results *, race_language);
/* The three sentences to remember, a line each, with this machine's numbers. */
enum { RACE_SENTENCES = 3 };
void race_sentences(const race_results *, race_language, clattn__text sentences[RACE_SENTENCES]);

#endif
