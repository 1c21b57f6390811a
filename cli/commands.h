/* The commands of the program. Each takes argv from its own name on and returns the exit code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_COMMANDS_H
#define CLATTN_CLI_COMMANDS_H

int attend_main(int argc, char **argv);
int merge_main(int argc, char **argv);
int mha_main(int argc, char **argv);
int project_main(int argc, char **argv);
int rnn_main(int argc, char **argv);
int lstm_main(int argc, char **argv);
int devices_main(int argc, char **argv);
int cache_main(int argc, char **argv);
int lab_main(int argc, char **argv);
int race_main(int argc, char **argv);
int tune_main(int argc, char **argv);

#endif
