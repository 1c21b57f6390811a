/* `clattn lab` where there is no OpenCL to build kernels with, or no Linux to shut them in.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/commands.h"
#include "cli/options.h"

int lab_main(int argc, char **argv) {
    (void)argc;
    return cli_fail(argv[0], CLI_FAILURE,
                    "this build has no lab: it needs the OpenCL headers (Debian package opencl-headers), on Linux");
}
